//! Intervals for a few single events, which form no windows.

use mydyno_model::Estimate;

/// The median of independent events with the interval that order statistics give: its ends are observed values, and the
/// probability that the true median lies between the k-th lowest and the k-th highest of n is 1 − 2 P(Binomial(n, ½) <
/// k).
pub(crate) fn median(values: &[f64]) -> Estimate {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let value = match n {
        0 => return Estimate::without_interval(0.0, "no values"),
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    };
    match rank(n, 0.95) {
        None => Estimate::without_interval(
            value,
            format!("only {n} events, at least 6 are needed for an interval: raise --count"),
        ),
        Some((k, level)) => {
            let method = format!("order statistics {} and {} of {n} events", k, n + 1 - k);
            Estimate::with_interval(value, sorted[k - 1], sorted[n - k], level, method)
        }
    }
}

/// The largest k for which the k-th lowest and highest of n enclose the median at a level, and the level that they have.
fn rank(n: usize, level: f64) -> Option<(usize, f64)> {
    let mut tail = 0.0;
    let mut term = 0.5f64.powi(i32::try_from(n).ok()?);
    let mut best = None;
    for k in 1..=n / 2 {
        // P(Binomial(n, ½) < k) is the sum of the terms below k.
        tail += term;
        term *= (n + 1 - k) as f64 / k as f64;
        let covered = 1.0 - 2.0 * tail;
        if covered < level {
            break;
        }
        best = Some((k, covered));
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // Conover, Practical Nonparametric Statistics, table of the binomial distribution at p = ½.
        for (n, k, level) in
            [(6, 1, 0.9688), (8, 1, 0.9922), (10, 2, 0.9785), (20, 6, 0.9586), (30, 10, 0.9572)]
        {
            let (found, covered) = rank(n, 0.95).unwrap();
            assert_eq!(found, k, "{n}");
            assert!((covered - level).abs() < 5e-5, "{n}: {covered}");
        }
        assert_eq!(rank(5, 0.95), None);
    }

    #[test]
    fn too_few_events_have_no_interval_and_say_so() {
        let few = median(&[3.0, 1.0, 2.0]);
        assert_eq!((few.value, few.low), (2.0, None));
        assert!(few.method.contains("--count"));
        let ten = median(&[10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0]);
        assert_eq!((ten.value, ten.low, ten.high), (5.5, Some(2.0), Some(9.0)));
    }
}
