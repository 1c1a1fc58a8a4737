//! Likelihoods of a series with and without a step, over a family of Gaussian noises (Kay 1998, *Detection Theory*, chapter 6).
//!
//! The values are whitened by the errors of their prediction from all before them (recursion of Levinson and Durbin). What the
//! predictions weigh depends on the noise alone, so it is computed once in a process and kept (4.5 MB): a warm-up assesses its
//! series each second, and a simulation thousands of them.

use std::sync::LazyLock;

/// Largest number of values of a series; longer ones are averaged in blocks.
pub(super) const MOST: usize = 120;

/// Correlation with the value before, of the slow part of the noises of the family.
const CORRELATIONS: [f64; 9] = [0.4, 0.6, 0.75, 0.85, 0.9, 0.95, 0.98, 0.995, 0.999];

/// Share of the slow part in the variance; the rest is independent.
const SLOW_SHARES: [f64; 4] = [1.0, 0.7, 0.3, 0.1];

/// The same for pink noise: AR(1) processes an octave apart, with time constants of 1, 2, 4 … 128 values.
const PINK_SHARES: [f64; 2] = [1.0, 0.5];
const PINK_OCTAVES: i32 = 8;

/// Added to the variance, so that nearly singular covariances can be factored.
const RIDGE: f64 = 1e-9;

/// The noises of the family.
static FAMILY: LazyLock<Vec<Whitening>> = LazyLock::new(family);

/// Logarithms of the maximal likelihoods over the family of noises, without a step and with one after each number of values
/// (ascending). At most [`MOST`] values.
pub(super) fn maximal(values: &[f64], positions: &[usize]) -> (f64, Vec<f64>) {
    let mut without = f64::NEG_INFINITY;
    let mut with = vec![f64::NEG_INFINITY; positions.len()];
    for noise in FAMILY.iter() {
        let (none, steps) = noise.log_likelihoods(values, positions);
        without = without.max(none);
        with.iter_mut().zip(steps).for_each(|(best, step)| *best = best.max(step));
    }
    (without, with)
}

fn family() -> Vec<Whitening> {
    let mut family = vec![Whitening::of(&|lag| slow_and_independent(lag, 0.0, 0.0))];
    for phi in CORRELATIONS {
        for share in SLOW_SHARES {
            family.push(Whitening::of(&|lag| slow_and_independent(lag, share, phi.powi(lag as i32))));
        }
    }
    for share in PINK_SHARES {
        let pink = |lag: usize| {
            let octave = |octave: i32| (-(0.5f64.powi(octave)) * lag as f64).exp();
            (0..PINK_OCTAVES).map(octave).sum::<f64>() / f64::from(PINK_OCTAVES)
        };
        family.push(Whitening::of(&|lag| slow_and_independent(lag, share, pink(lag))));
    }
    family
}

fn slow_and_independent(lag: usize, share: f64, correlation: f64) -> f64 {
    if lag == 0 { 1.0 + RIDGE } else { share * correlation }
}

/// How each value of a series of [`MOST`] values is predicted from all before it under one noise; shorter series use the first of them.
struct Whitening {
    /// Weights of the best prediction of each value from the nearest values.
    weights: Vec<Vec<f64>>,
    /// Standard deviation of the error of each prediction.
    scales: Vec<f64>,
    /// Remainder of a level of 1 that began 0, 1, 2 … values before each, after its prediction, in standard deviations of the error.
    levels: Vec<Vec<f64>>,
}

impl Whitening {
    fn of(covariance: &dyn Fn(usize) -> f64) -> Self {
        let covariances: Vec<f64> = (0..MOST).map(covariance).collect();
        let mut all = Self { weights: vec![], scales: vec![], levels: vec![] };
        let mut weights: Vec<f64> = Vec::with_capacity(MOST);
        // Sums of the weights of the 0, 1, 2 … nearest values.
        let mut sums = vec![0.0];
        let mut variance = covariances[0];
        for t in 0..MOST {
            if t > 0 {
                variance *= extend(&mut weights, &mut sums, &covariances, variance);
            }
            let scale = variance.max(f64::MIN_POSITIVE).sqrt();
            all.weights.push(weights.clone());
            all.scales.push(scale);
            all.levels.push(sums.iter().map(|sum| (1.0 - sum) / scale).collect());
        }
        all
    }

    /// Logarithm of the likelihood of the values, up to a constant, maximal over the variance and the level: without a step, and
    /// with one after each number of values.
    fn log_likelihoods(&self, values: &[f64], positions: &[usize]) -> (f64, Vec<f64>) {
        let n = values.len();
        let mut half_log_determinant = 0.0;
        let (mut of_values, mut of_level, mut shared) = (0.0, 0.0, 0.0);
        let mut steps = vec![(0.0, 0.0, 0.0); positions.len()];
        for t in 0..n {
            let (scale, levels) = (self.scales[t], &self.levels[t]);
            half_log_determinant += scale.ln();
            let value = (values[t] - dot_reversed(&self.weights[t], &values[..t])) / scale;
            let level = levels[t];
            of_values += value * value;
            of_level += level * level;
            shared += value * level;
            for (position, step) in
                positions.iter().zip(&mut steps).take_while(|(position, _)| **position <= t)
            {
                let here = levels[t - position];
                *step = (step.0 + here * here, step.1 + here * level, step.2 + here * value);
            }
        }
        let unexplained = of_values - shared * shared / of_level;
        let log_likelihood = |squares: f64| {
            -0.5 * n as f64 * squares.max(f64::EPSILON * of_values).max(f64::MIN_POSITIVE).ln()
                - half_log_determinant
        };
        let with_step = steps.into_iter().map(|(squares, with_level, with_values)| {
            let explains = (with_values - with_level * shared / of_level).powi(2);
            log_likelihood(unexplained - explains / (squares - with_level * with_level / of_level))
        });
        (log_likelihood(unexplained), with_step.collect())
    }
}

/// Extends the weights of the best prediction from the nearest values by one value, and the sums of the 0, 1, 2 … nearest weights.
/// Returns the factor of the error's variance.
fn extend(weights: &mut Vec<f64>, sums: &mut Vec<f64>, covariances: &[f64], variance: f64) -> f64 {
    let lag = weights.len() + 1;
    let known = dot_reversed(weights, &covariances[1..lag]);
    let partial = (covariances[lag] - known) / variance;
    with_reversed(weights, |weight, mirrored| weight - partial * mirrored);
    weights.push(partial);
    // The k nearest weights become less by `partial` times the k farthest, whose sum is that of all less that of the others.
    let all = sums[lag - 1];
    with_reversed(sums, |sum, others| sum - partial * (all - others));
    sums.push(sums[lag - 1] + partial);
    1.0 - partial * partial
}

/// Replaces each value by a function of itself and of the value at the same distance from the other end.
fn with_reversed(values: &mut [f64], new: impl Fn(f64, f64) -> f64) {
    let middle = values.len() / 2;
    let (near, far) = values.split_at_mut(values.len() - middle);
    for (a, b) in near.iter_mut().zip(far.iter_mut().rev()) {
        (*a, *b) = (new(*a, *b), new(*b, *a));
    }
    if near.len() > middle {
        near[middle] = new(near[middle], near[middle]);
    }
}

/// Sum of the products of the first of one with the last of the other, and so on, of two lists of equal length. Four sums do not
/// wait for each other.
fn dot_reversed(forwards: &[f64], backwards: &[f64]) -> f64 {
    let (mut forwards, mut backwards) = (forwards.chunks_exact(4), backwards.rchunks_exact(4));
    let mut sums = [0.0; 4];
    for (f, b) in forwards.by_ref().zip(backwards.by_ref()) {
        for (i, sum) in sums.iter_mut().enumerate() {
            *sum += f[i] * b[3 - i];
        }
    }
    let rest = forwards.remainder().iter().zip(backwards.remainder().iter().rev());
    sums.iter().sum::<f64>() + rest.map(|(f, b)| f * b).sum::<f64>()
}
