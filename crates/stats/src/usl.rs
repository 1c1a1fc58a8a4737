//! Gunther's Universal Scalability Law (1993, 2007) fitted to a sweep over connections:
//!
//! X(N) = λN / (1 + σ(N − 1) + κN(N − 1)),
//!
//! λ: throughput of one connection, σ: serial share (contention), κ: cost of coordination (coherency). With κ > 0 throughput
//! peaks at N* = √((1 − σ)/κ). The fit is least squares of relative errors over σ, κ ≥ 0; intervals are profile intervals: all
//! values of a parameter with which the best remaining fit is not significantly worse, which remain valid where the law is
//! nonlinear and at the bounds.

use mydyno_model::Estimate;

use crate::Error;
use crate::special::t_quantile;

/// A measured point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Connections.
    pub n: f64,
    /// Throughput, above 0.
    pub x: f64,
}

/// The law's parameters.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Law {
    /// Throughput of one connection.
    pub lambda: f64,
    /// Contention.
    pub sigma: f64,
    /// Coherency.
    pub kappa: f64,
}

impl Law {
    /// Throughput at `n` connections.
    pub fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Peak of throughput: its connections and its throughput; `None` when throughput never falls, or only falls.
    pub fn peak(&self) -> Option<(f64, f64)> {
        let n = ((1.0 - self.sigma) / self.kappa).sqrt();
        (self.kappa > 0.0 && n.is_finite() && n >= 1.0).then(|| (n, self.at(n)))
    }
}

/// The fit of a sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Best parameters.
    pub law: Law,
    /// λ with its interval.
    pub lambda: Estimate,
    /// σ with its interval.
    pub sigma: Estimate,
    /// κ with its interval.
    pub kappa: Estimate,
    /// Number of connections at the peak; `Err` gives the reason why the data do not determine it.
    pub peak_n: Result<Estimate, String>,
    /// Throughput at the peak, or the reason why the data do not determine it.
    pub peak_x: Result<Estimate, String>,
    /// Root mean square of relative residuals: 0.03 for 3 %.
    pub relative_error: f64,
}

/// Minimum number of different connection counts for a fit: three parameters and one for judging the fit.
pub const MIN_DISTINCT: usize = 4;

/// Fits the law, with intervals at a level like 0.95.
///
/// # Errors
/// Points that are not above 0, or fewer than [`MIN_DISTINCT`] different connection counts.
pub fn fit(points: &[Point], level: f64) -> Result<Fit, Error> {
    if let Some(bad) =
        points.iter().find(|p| !(p.x > 0.0 && p.x.is_finite() && p.n >= 1.0 && p.n.is_finite()))
    {
        return Err(Error::Design(format!(
            "a sweep's point of {} connections and {} a second: at least one connection and a throughput above 0 are needed",
            bad.n, bad.x
        )));
    }
    let mut distinct: Vec<f64> = points.iter().map(|p| p.n).collect();
    distinct.sort_by(f64::total_cmp);
    distinct.dedup();
    if distinct.len() < MIN_DISTINCT {
        return Err(Error::Design(format!(
            "{} different numbers of connections; at least {MIN_DISTINCT} are needed to fit three parameters and judge the fit",
            distinct.len()
        )));
    }
    let law = best(points, None);
    let df = points.len() as f64 - 3.0;
    let squares = sum_of_squares(points, &law);
    let relative_error = (squares / points.len() as f64).sqrt();
    // A point fits the data as long as its sum of squares stays below this (F with 1 and df degrees of freedom = t²).
    let t = t_quantile(0.5 + 0.5 * level, df);
    let limit = squares + t * t * (squares / df).max(1e-14);
    let method = format!("profile likelihood, {} points", points.len());
    let profile = |fixed: Fixed, value: f64, lowest: f64| -> Estimate {
        let worse = |v: f64| sum_of_squares(points, &best(points, Some((fixed, v)))) > limit;
        let (low, high) = ends(value, lowest, worse);
        Estimate::with_interval(value, low, high, level, method.clone())
    };
    let sigma = profile(Fixed::Sigma, law.sigma, 0.0);
    let kappa = profile(Fixed::Kappa, law.kappa, 0.0);
    let lambda = profile(Fixed::Lambda, law.lambda, f64::MIN_POSITIVE);
    let most = distinct.last().copied().unwrap_or(1.0);
    let (peak_n, peak_x) = peak(points, &law, &kappa, limit, most, level, &method);
    Ok(Fit { law, lambda, sigma, kappa, peak_n, peak_x, relative_error })
}

type Peak = Result<Estimate, String>;

fn peak(
    points: &[Point],
    law: &Law,
    kappa: &Estimate,
    limit: f64,
    most: f64,
    level: f64,
    method: &str,
) -> (Peak, Peak) {
    let none = |why: String| (Err(why.clone()), Err(why));
    let Some((n, x)) = law.peak() else {
        return none("no peak: throughput does not fall within the law that fits best".to_owned());
    };
    if kappa.low.is_none_or(|low| low <= 0.0) {
        return none(format!(
            "the data cannot say: a law without a peak fits them as well; measure beyond {most:.0} connections"
        ));
    }
    if n > 2.0 * most {
        return none(format!(
            "the data cannot say: the peak would lie at {n:.0} connections, far beyond the {most:.0} that were measured"
        ));
    }
    // The law in terms of its peak: κ = (1 − σ)/N*², and λ so that X(N*) = X*.
    let worse_n = |v: f64| sum_of_squares(points, &best(points, Some((Fixed::PeakN, v)))) > limit;
    let worse_x = |v: f64| sum_of_squares(points, &best(points, Some((Fixed::PeakX, v)))) > limit;
    let (n_low, n_high) = ends(n, 1.0, worse_n);
    let (x_low, x_high) = ends(x, f64::MIN_POSITIVE, worse_x);
    (
        Ok(Estimate::with_interval(n, n_low, n_high, level, method)),
        Ok(Estimate::with_interval(x, x_low, x_high, level, method)),
    )
}

/// Ends of the region about `value` that is not `worse`, never below `lowest`.
fn ends(value: f64, lowest: f64, worse: impl Fn(f64) -> bool) -> (f64, f64) {
    let low = if worse(lowest) { bisect_few(value, lowest, &worse) } else { lowest };
    let mut step = value.abs().max(1e-9);
    while !worse(value + step) && step < 1e12 * value.abs().max(1.0) {
        step *= 2.0;
    }
    (low, bisect_few(value, value + step, &worse))
}

/// Between a good point and a worse one, to a relative 1e-9: each step is a fit.
fn bisect_few(mut good: f64, mut bad: f64, worse: &impl Fn(f64) -> bool) -> f64 {
    for _ in 0..40 {
        let middle = 0.5 * (good + bad);
        if worse(middle) {
            bad = middle;
        } else {
            good = middle;
        }
    }
    0.5 * (good + bad)
}

/// The quantity that a profile holds fixed.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fixed {
    Lambda,
    Sigma,
    Kappa,
    PeakN,
    PeakX,
}

fn sum_of_squares(points: &[Point], law: &Law) -> f64 {
    points.iter().map(|p| (law.at(p.n) / p.x - 1.0).powi(2)).sum()
}

/// Best law over σ and κ ≥ 0, with or without a fixed quantity.
///
/// λ enters linearly and has a closed form, so the search has at most two dimensions: nested golden-section searches on
/// transformed axes, which cannot diverge where the surface is flat.
fn best(points: &[Point], fixed: Option<(Fixed, f64)>) -> Law {
    match fixed {
        Some((Fixed::Sigma, sigma)) => over_kappa(points, |kappa| with_lambda(points, sigma, kappa)),
        Some((Fixed::Kappa, kappa)) => over_sigma(points, |sigma| with_lambda(points, sigma, kappa)),
        Some((Fixed::Lambda, lambda)) => {
            over_sigma(points, |sigma| over_kappa(points, |kappa| Law { lambda, sigma, kappa }))
        }
        Some((Fixed::PeakN, n)) => {
            over_sigma(points, |sigma| with_lambda(points, sigma, (1.0 - sigma).max(0.0) / (n * n)))
        }
        Some((Fixed::PeakX, x)) => over_sigma(points, |sigma| {
            over_kappa(points, |kappa| {
                let unit = Law { lambda: 1.0, sigma, kappa };
                Law { lambda: unit.peak().map_or(0.0, |(_, at_one)| x / at_one), sigma, kappa }
            })
        }),
        None => over_sigma(points, |sigma| over_kappa(points, |kappa| with_lambda(points, sigma, kappa))),
    }
}

/// The best λ for given σ and κ: least squares of relative errors.
fn with_lambda(points: &[Point], sigma: f64, kappa: f64) -> Law {
    let unit = Law { lambda: 1.0, sigma, kappa };
    let (mut ab, mut aa) = (0.0, 0.0);
    for p in points {
        let a = unit.at(p.n) / p.x;
        ab += a;
        aa += a * a;
    }
    Law { lambda: ab / aa, sigma, kappa }
}

fn over_sigma(points: &[Point], law: impl Fn(f64) -> Law) -> Law {
    // σ beyond 1 means that two connections achieve less than one; a limit of 4 contains the profile's upper ends.
    golden(points, 4.0, law)
}

fn over_kappa(points: &[Point], law: impl Fn(f64) -> Law) -> Law {
    golden(points, 1.0, law)
}

/// Minimum over 0 … `most` on the axis u⁴, which resolves small values.
fn golden(points: &[Point], most: f64, law: impl Fn(f64) -> Law) -> Law {
    const RATIO: f64 = 0.618_033_988_749_894_9;
    let of = |u: f64| {
        let law = law(most * u.powi(4));
        (sum_of_squares(points, &law), law)
    };
    let (mut a, mut b) = (0.0, 1.0);
    let (mut c, mut d) = (b - RATIO * (b - a), a + RATIO * (b - a));
    let (mut fc, mut fd) = (of(c), of(d));
    for _ in 0..60 {
        if fc.0 <= fd.0 {
            (b, d, fd) = (d, c, fc);
            c = b - RATIO * (b - a);
            fc = of(c);
        } else {
            (a, c, fc) = (c, d, fd);
            d = a + RATIO * (b - a);
            fd = of(d);
        }
    }
    let edge = of(0.0);
    [fc, fd].into_iter().fold(edge, |best, next| if next.0 < best.0 { next } else { best }).1
}
