//! Experiments on one question, pooled: each has its own effect, and the mean of them is estimated with the variance between them.

use crate::special::t_quantile;

/// The effect that one experiment found, on an additive scale (log ratios).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Found {
    /// The effect.
    pub effect: f64,
    /// Its standard error, above 0.
    pub standard_error: f64,
}

/// Random-effects mean of several experiments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pooled {
    /// The mean effect.
    pub mean: f64,
    /// Standard deviation of the true effects between experiments.
    pub between: f64,
    /// Lower end of the mean's interval at the requested level.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// The random-effects mean with the variance between experiments of Paule and Mandel (1982). Its interval is Student's with one
/// degree of freedom less than experiments (Hartung and Knapp 2001; Sidik and Jonkman 2002), never narrower than the standard
/// errors alone would make it (Röver, Knapp and Friede 2015). `None` for fewer than two experiments, or a standard error that is not
/// above 0.
pub fn random_effects(found: &[Found], level: f64) -> Option<Pooled> {
    let usable = |f: &Found| f.effect.is_finite() && f.standard_error.is_finite() && f.standard_error > 0.0;
    if found.len() < 2 || !found.iter().all(usable) {
        return None;
    }
    let df = found.len() as f64 - 1.0;
    let variance = variance_between(found, df);
    let Weighted { mean, weights, squares } = weighted(found, variance);
    let standard_error = (squares / df).max(1.0).sqrt() / weights.sqrt();
    let margin = t_quantile(0.5 + 0.5 * level, df) * standard_error;
    Some(Pooled { mean, between: variance.sqrt(), low: mean - margin, high: mean + margin })
}

/// Sums over experiments whose weights are the reciprocals of their variances.
struct Weighted {
    mean: f64,
    /// Sum of the weights.
    weights: f64,
    /// Weighted sum of squared deviations from the mean.
    squares: f64,
}

fn weighted(found: &[Found], variance: f64) -> Weighted {
    let weight = |f: &Found| 1.0 / (f.standard_error.powi(2) + variance);
    let weights: f64 = found.iter().map(weight).sum();
    let mean = found.iter().map(|f| weight(f) * f.effect).sum::<f64>() / weights;
    let squares = found.iter().map(|f| weight(f) * (f.effect - mean).powi(2)).sum();
    Weighted { mean, weights, squares }
}

/// The variance between experiments with which the weighted squares are what they are expected to be, their degrees of freedom; 0 where
/// they are fewer without any. The squares fall as the variance grows, but are not convex, so Newton's method could step over
/// the root: bisection, down to neighbouring numbers.
fn variance_between(found: &[Found], df: f64) -> f64 {
    let is_below = |variance: f64| weighted(found, variance).squares > df;
    if !is_below(0.0) {
        return 0.0;
    }
    let effects = || found.iter().map(|f| f.effect);
    let range = effects().fold(f64::MIN, f64::max) - effects().fold(f64::MAX, f64::min);
    // With this variance the squares are at most a half, below any number of degrees of freedom.
    let (mut low, mut high) = (0.0, 2.0 * found.len() as f64 * range * range);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        if is_below(middle) { low = middle } else { high = middle }
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prop_assert, proptest};

    use super::*;

    #[test]
    fn one_experiment_or_an_impossible_error_is_not_pooled() {
        let found = |standard_error| Found { effect: 0.1, standard_error };
        assert_eq!(random_effects(&[], 0.95), None);
        assert_eq!(random_effects(&[found(0.01)], 0.95), None);
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(random_effects(&[found(0.01), found(bad)], 0.95), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn the_order_does_not_matter_and_a_shift_shifts(
            effects in vec((-1.0f64..1.0, 0.001f64..0.5), 2..8),
            shift in -1.0f64..1.0,
        ) {
            let found: Vec<Found> =
                effects.iter().map(|(effect, standard_error)| Found { effect: *effect, standard_error: *standard_error }).collect();
            let pooled = random_effects(&found, 0.95).unwrap();
            prop_assert!(pooled.low <= pooled.mean && pooled.mean <= pooled.high);
            let mut other: Vec<Found> = found.iter().map(|f| Found { effect: f.effect + shift, ..*f }).collect();
            other.reverse();
            let shifted = random_effects(&other, 0.95).unwrap();
            prop_assert!((shifted.mean - pooled.mean - shift).abs() < 1e-6, "{pooled:?} {shifted:?}");
            prop_assert!((shifted.high - pooled.high - shift).abs() < 1e-5, "{pooled:?} {shifted:?}");
        }
    }
}
