//! Whether the memory of a series may be as long as the run: its power still grows towards frequency 0.
//!
//! Two families of spectra are compared by their likelihood (Whittle 1953) on the slowest cosines: a level whose changes are
//! over within the run, and a level that drifts through all of it, each under independent noise. Power of the best possible
//! test, and other designs: docs/journal/statistics.md.

/// Largest number of cosines that are compared.
pub(super) const COSINES: usize = 100;

/// Largest number of values that the cosines are computed of; longer series are averaged in blocks.
pub(super) const MOST: usize = 720;

/// Half periods in a run at which the spectrum of a level falls to a half, of levels that drift through the run.
const DRIFTING: [f64; 3] = [0.0, 0.5, 1.0];

/// The same of levels that come back within a run: a memory of 1/12 of it and shorter.
const RETURNING: [f64; 6] = [4.0, 5.6, 8.0, 12.0, 20.0, 40.0];

/// Power of the independent noise relative to that of the level at the slowest cosine.
const INDEPENDENT: [f64; 8] = [0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0];

/// Smallest difference of log likelihoods, drifting less returning, that leaves no level: for runs below and from
/// [`super::LONG_S`]. The shorter run has to decide on little evidence; below 0 the doubt counts.
const LIMIT_SHORT: f64 = -0.6;
const LIMIT_LONG: f64 = 0.0;

/// The same beside independent noise.
const SLOW_PART: f64 = 4.0;

/// Limits of both differences from which the noise has long memory, whether or not it lasts the run.
const NEARLY: f64 = -4.0;
const NEARLY_SLOW_PART: f64 = 2.0;

/// How well a level that drifts through the whole run explains a series: differences of log likelihoods.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Drift {
    over_returning: f64,
    over_independent: f64,
}

impl Drift {
    /// Whether the level may drift through the whole run: that explains the series as well as a level that returns to its mean,
    /// and much better than independent noise.
    pub(super) fn may_be(self, long: bool) -> bool {
        let limit = if long { LIMIT_LONG } else { LIMIT_SHORT };
        self.over_independent > SLOW_PART && self.over_returning > limit
    }

    /// Whether it explains the series nearly as well, so that there is more power at frequency 0 than at the slowest cosines.
    pub(super) fn is_near(self) -> bool {
        self.over_independent > NEARLY_SLOW_PART && self.over_returning > NEARLY
    }
}

/// Compares the families on the powers of the slowest cosines (1, 2 … half periods). `None` where all are 0.
pub(super) fn drift(powers: &[f64]) -> Option<Drift> {
    let largest = powers.iter().copied().fold(0.0, f64::max);
    if largest <= 0.0 || !largest.is_finite() {
        return None;
    }
    let powers: Vec<f64> = powers.iter().map(|power| power / largest + 1e-12).collect();
    let best = |corners: &[f64]| {
        let each = corners.iter().flat_map(|corner| {
            let level = level(*corner, powers.len());
            INDEPENDENT.map(|floor| log_likelihood(&powers, level.iter().map(|level| level + floor)))
        });
        each.fold(f64::NEG_INFINITY, f64::max)
    };
    let independent = log_likelihood(&powers, powers.iter().map(|_| 1.0));
    let drifting = best(&DRIFTING);
    let over_returning = drifting - best(&RETURNING).max(independent);
    Some(Drift { over_returning, over_independent: drifting - independent })
}

/// Spectrum of an AR(1) level of this corner frequency at 1, 2 … half periods, relative to that at one half period.
fn level(corner: f64, count: usize) -> Vec<f64> {
    (1..=count).map(|k| (1.0 + corner * corner) / ((k * k) as f64 + corner * corner)).collect()
}

/// Logarithm of the likelihood of powers under a spectrum of this shape, up to a constant, maximal over its size: cosines are
/// independent and normal, with the spectrum as their variance.
fn log_likelihood(powers: &[f64], spectrum: impl Iterator<Item = f64>) -> f64 {
    let n = powers.len() as f64;
    let (mut size, mut product, mut logs) = (0.0, 1.0f64, 0.0);
    for (k, (power, expected)) in powers.iter().zip(spectrum).enumerate() {
        size += power / expected;
        // One logarithm for several factors: they lie between 1e-4 and 2.
        product *= expected;
        if k % 16 == 15 {
            logs += product.ln();
            product = 1.0;
        }
    }
    -0.5 * n * (size / n).ln() - 0.5 * (logs + product.ln())
}
