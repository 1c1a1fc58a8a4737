//! Levels that come back: likelihoods of series whose level changes suddenly and often, which is no lasting change.
//!
//! A plan that flips leaves a short series in which one side has mostly the one level. Gaussian noise explains its jumps badly, so
//! that a step seems to stand out; here the jumps themselves are the noise. Levels change [`OFTEN`] times a run or more
//! often: a level that lasts longer than a quarter of the run breaks the assumption of the interval, too. Error rates:
//! docs/journal/statistics.md.

/// Changes of level in a series, on average, of the families.
const OFTEN: [f64; 3] = [4.0, 8.0, 16.0];

/// Steps of expectation and maximisation for the two levels.
const ROUNDS: usize = 12;

/// The same for rare slow seconds, and the quantiles that part the values at their start.
const MIXTURE_ROUNDS: usize = 30;
const PARTED_AT: [f64; 3] = [0.1, 0.5, 0.9];

/// Smallest variance about the levels, as a share of the series's variance.
const SMALLEST_NOISE: f64 = 1e-4;

/// Variances about levels that are drawn anew, as shares of the series's variance; that of the levels is the latter.
const NOISES: [f64; 5] = [0.01, 0.03, 0.1, 0.2, 0.35];

/// Logarithm of the likelihood of the values when a server flips between two levels under independent Gaussian noise (a hidden Markov
/// chain; Rabiner 1989), maximal over levels, noise and the frequency of flips. Up to the constant of
/// [`super::sudden`].
pub(super) fn two_plans(values: &[f64]) -> f64 {
    let (unit, offset) = in_units(values);
    let each = frequencies(unit.len()).map(|flips| Plans::started(&unit).fitted(&unit, flips));
    each.fold(f64::NEG_INFINITY, f64::max) + offset
}

/// The same when each level is drawn anew from a normal distribution, maximal over the noise about the levels and the frequency of
/// changes: all sequences of levels are weighed (Barry and Hartigan 1993).
pub(super) fn levels(values: &[f64]) -> f64 {
    let (unit, offset) = in_units(values);
    let each =
        frequencies(unit.len()).flat_map(|changes| NOISES.map(|noise| drawn_anew(&unit, changes, noise)));
    each.fold(f64::NEG_INFINITY, f64::max) + offset
}

/// The same of independent values of which a share lies about another level, as seconds that lose to a flush: a mixture of two normal
/// distributions of equal variance, maximal over levels, noise and share.
pub(super) fn slow_seconds(values: &[f64]) -> f64 {
    let (unit, offset) = in_units(values);
    let mut sorted = unit.clone();
    sorted.sort_by(f64::total_cmp);
    let each = PARTED_AT.map(|quantile| {
        let bound = sorted[((unit.len() - 1) as f64 * quantile) as usize];
        mixture(&unit, unit.iter().map(|v| f64::from(u8::from(*v > bound))).collect())
    });
    each.into_iter().fold(f64::NEG_INFINITY, f64::max) + offset
}

/// Largest log likelihood of a mixture on the way to its best fit, from the probabilities that the values belong to the second part.
fn mixture(values: &[f64], mut second: Vec<f64>) -> f64 {
    let n = values.len() as f64;
    let mut best = f64::NEG_INFINITY;
    for _ in 0..MIXTURE_ROUNDS {
        let Plans { levels, variance } = Plans::of(values, &second);
        let share = (second.iter().sum::<f64>() / n).clamp(1.0 / n, 1.0 - 1.0 / n);
        let mut log_likelihood = -0.5 * n * variance.ln();
        for (value, second) in values.iter().zip(&mut second) {
            let log = |share: f64, level: f64| share.ln() - 0.5 * (value - level).powi(2) / variance;
            let (a, b) = (log(1.0 - share, levels[0]), log(share, levels[1]));
            let largest = a.max(b);
            let (a, b) = ((a - largest).exp(), (b - largest).exp());
            log_likelihood += largest + (a + b).ln();
            *second = b / (a + b);
        }
        best = best.max(log_likelihood);
    }
    best
}

/// Probabilities of a change from one value to the next.
fn frequencies(n: usize) -> impl Iterator<Item = f64> {
    OFTEN.into_iter().map(move |often| (often / n as f64).min(0.5))
}

/// Deviations from the mean over their standard deviation, and what their logarithm of likelihood (without the power of 2π) lacks for
/// that of the Gaussian families: these leave out the terms of a variance that is fitted.
fn in_units(values: &[f64]) -> (Vec<f64>, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let deviation = (squares / n).sqrt().max(f64::MIN_POSITIVE);
    let unit = values.iter().map(|v| (v - mean) / deviation).collect();
    (unit, 0.5 * n - 0.5 * n * squares.max(f64::MIN_POSITIVE).ln())
}

/// Two levels and the variance about them.
#[derive(Debug, Clone, Copy)]
struct Plans {
    levels: [f64; 2],
    variance: f64,
}

impl Plans {
    /// Means of the values below and above 0.
    fn started(values: &[f64]) -> Self {
        let weights: Vec<f64> = values.iter().map(|v| f64::from(u8::from(*v > 0.0))).collect();
        Self::of(values, &weights)
    }

    /// Levels and variance of values that belong to the second level with these probabilities.
    fn of(values: &[f64], second: &[f64]) -> Self {
        let mean = |weight: &dyn Fn(f64) -> f64| {
            let pairs = values.iter().zip(second);
            let (sum, of) = pairs.fold((0.0, 0.0), |(s, w), (v, p)| (s + weight(*p) * v, w + weight(*p)));
            sum / of.max(1e-9)
        };
        let levels = [mean(&|p| 1.0 - p), mean(&|p| p)];
        let square = |(v, p): (&f64, &f64)| (1.0 - p) * (v - levels[0]).powi(2) + p * (v - levels[1]).powi(2);
        let variance = values.iter().zip(second).map(square).sum::<f64>() / values.len() as f64;
        Self { levels, variance: variance.max(SMALLEST_NOISE) }
    }

    /// Largest log likelihood on the way to the best fit.
    fn fitted(mut self, values: &[f64], flips: f64) -> f64 {
        let mut best = f64::NEG_INFINITY;
        for _ in 0..ROUNDS {
            let (log_likelihood, second) = self.weighed(values, flips);
            best = best.max(log_likelihood);
            self = Self::of(values, &second);
        }
        best
    }

    /// Log likelihood, and the probability of each value to belong to the second level (forward and backward recursions).
    fn weighed(self, values: &[f64], flips: f64) -> (f64, Vec<f64>) {
        let next = |[a, b]: [f64; 2]| [(1.0 - flips) * a + flips * b, flips * a + (1.0 - flips) * b];
        let mut log_likelihood = -0.5 * values.len() as f64 * self.variance.ln();
        let (mut forward, mut fits) = (Vec::with_capacity(values.len()), Vec::with_capacity(values.len()));
        let mut state = [0.5; 2];
        for value in values {
            let logs = self.levels.map(|level| -0.5 * (value - level).powi(2) / self.variance);
            let largest = logs[0].max(logs[1]);
            let fit = logs.map(|log| (log - largest).exp());
            let joint = [state[0] * fit[0], state[1] * fit[1]];
            let sum = joint[0] + joint[1];
            log_likelihood += sum.ln() + largest;
            let here = joint.map(|p| p / sum);
            forward.push(here);
            fits.push(fit.map(|fit| fit / sum));
            state = next(here);
        }
        let mut after = [1.0; 2];
        let mut second = vec![0.0; values.len()];
        for t in (0..values.len()).rev() {
            let both = [forward[t][0] * after[0], forward[t][1] * after[1]];
            second[t] = both[1] / (both[0] + both[1]);
            after = next([after[0] * fits[t][0], after[1] * fits[t][1]]);
        }
        (log_likelihood, second)
    }
}

/// Log likelihood of levels that are drawn anew with a variance of 1, with this probability of a change before each value and this
/// variance about them: a sum over all places of the last change.
fn drawn_anew(values: &[f64], changes: f64, noise: f64) -> f64 {
    let n = values.len();
    let (mut sums, mut squares) = (vec![0.0], vec![0.0]);
    for value in values {
        sums.push(sums[sums.len() - 1] + value);
        squares.push(squares[squares.len() - 1] + value * value);
    }
    let (stay, change) = ((1.0 - changes).ln(), changes.ln());
    // Logarithms of terms that depend on a level's length alone.
    let of_length: Vec<f64> = (0..=n)
        .map(|k| -0.5 * (k as f64 * noise.ln() + (1.0 + k as f64 / noise).ln()) + (k as f64 - 1.0) * stay)
        .collect();
    let mut until = vec![0.0];
    for end in 1..=n {
        let with_last_from = |start: usize| {
            let k = end - start;
            let (sum, square) = (sums[end] - sums[start], squares[end] - squares[start]);
            let unexplained = (square - sum * sum / (noise + k as f64)) / noise;
            until[start] + of_length[k] - 0.5 * unexplained
        };
        let terms: Vec<f64> = (0..end).map(with_last_from).collect();
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = terms.iter().map(|term| (term - largest).exp()).sum();
        until.push(largest + sum.ln() + if end < n { change } else { 0.0 });
    }
    until[n]
}
