//! Tests for a difference between two independent samples. For independent values only; windows of one run are not (use
//! [`crate::interval`] and [`crate::compare::ratio_of_estimates`]).

use crate::special::{kolmogorov_sf, normal_cdf, t_quantile, t_sf};

/// Result of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Test {
    /// The statistic that the test is named after.
    pub statistic: f64,
    /// Two-sided p value.
    pub p_value: f64,
}

/// Welch's test with the interval of the difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Welch {
    /// t and its p value.
    pub test: Test,
    /// Degrees of freedom (Welch and Satterthwaite).
    pub df: f64,
    /// Mean of `b` minus mean of `a`.
    pub difference: f64,
    /// Lower end of its interval at the requested level.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

fn mean_and_variance(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0))
}

/// Difference of means without assuming equal variances. `None` when a sample has fewer than two values or neither varies.
pub fn welch(a: &[f64], b: &[f64], level: f64) -> Option<Welch> {
    if a.len() < 2 || b.len() < 2 {
        return None;
    }
    let ((ma, va), (mb, vb)) = (mean_and_variance(a), mean_and_variance(b));
    let (ea, eb) = (va / a.len() as f64, vb / b.len() as f64);
    let se = (ea + eb).sqrt();
    if se <= 1e-14 * (ma.abs() + mb.abs()) {
        return None;
    }
    let df = (ea + eb).powi(2) / (ea * ea / (a.len() as f64 - 1.0) + eb * eb / (b.len() as f64 - 1.0));
    let difference = mb - ma;
    let t = difference / se;
    let margin = t_quantile(0.5 + 0.5 * level, df) * se;
    let test = Test { statistic: t, p_value: 2.0 * t_sf(t.abs(), df) };
    Some(Welch { test, df, difference, low: difference - margin, high: difference + margin })
}

/// Mann and Whitney's test: is a value of `b` as often above as below one of `a`? The statistic is U of `a`. Exact for small
/// samples without ties (either below 9), otherwise normal with tie and continuity correction. `None` for an empty sample or
/// when all values are equal.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<Test> {
    let (na, nb) = (a.len(), b.len());
    if na == 0 || nb == 0 {
        return None;
    }
    let (ranks_a, ties) = rank_sum(a, b);
    let (fa, fb) = (na as f64, nb as f64);
    let u = ranks_a - fa * (fa + 1.0) / 2.0;
    let most = u.max(fa * fb - u);
    let n = fa + fb;
    let tie_sum: f64 = ties.iter().map(|t| t * t * t - t).sum();
    let no_ties = tie_sum == 0.0;
    let p = if no_ties && (na <= 8 || nb <= 8) && na * nb <= 4000 {
        2.0 * exact_u_sf(most, na, nb)
    } else {
        let variance = fa * fb / 12.0 * (n + 1.0 - tie_sum / (n * (n - 1.0)));
        if variance <= 0.0 {
            return None;
        }
        2.0 * normal_cdf(-(most - fa * fb / 2.0 - 0.5) / variance.sqrt())
    };
    Some(Test { statistic: u, p_value: p.min(1.0) })
}

/// Sum of the ranks of `a` in both samples together (ties share their mean rank), and the sizes of the ties.
fn rank_sum(a: &[f64], b: &[f64]) -> (f64, Vec<f64>) {
    let mut all: Vec<(f64, bool)> =
        a.iter().map(|v| (*v, true)).chain(b.iter().map(|v| (*v, false))).collect();
    all.sort_by(|x, y| x.0.total_cmp(&y.0));
    let (mut sum, mut ties, mut i) = (0.0, Vec::new(), 0);
    while i < all.len() {
        let same = all[i..].iter().take_while(|v| v.0 == all[i].0).count();
        let rank = i as f64 + (same as f64 + 1.0) / 2.0;
        sum += rank * all[i..i + same].iter().filter(|v| v.1).count() as f64;
        ties.push(same as f64);
        i += same;
    }
    (sum, ties)
}

/// P(U ≥ u) without ties, by counting arrangements.
fn exact_u_sf(u: f64, na: usize, nb: usize) -> f64 {
    // Probabilities instead of counts: f(i, j, u) is the probability of U = u among i and j values.
    let size = na * nb + 1;
    let mut rows: Vec<Vec<f64>> = vec![vec![0.0; size]; nb + 1];
    rows.iter_mut().for_each(|row| row[0] = 1.0);
    for i in 1..=na {
        let mut next: Vec<Vec<f64>> = vec![vec![0.0; size]; nb + 1];
        next[0][0] = 1.0;
        for j in 1..=nb {
            let (fi, fj) = (i as f64, j as f64);
            for k in 0..=i * j {
                // The largest value is one of the i (above all j) or one of the j.
                let from_a = if k >= j { rows[j][k - j] } else { 0.0 };
                next[j][k] = fi / (fi + fj) * from_a + fj / (fi + fj) * next[j - 1][k];
            }
        }
        rows = next;
    }
    rows[nb][u.ceil() as usize..].iter().sum()
}

/// Kolmogorov and Smirnov's test: the largest distance between the two distributions. Exact for samples whose product is at
/// most 10,000 (ties make it conservative), else the limit with Stephens's correction. `None` for an empty sample.
pub fn kolmogorov_smirnov(a: &[f64], b: &[f64]) -> Option<Test> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let sorted = |v: &[f64]| {
        let mut v = v.to_vec();
        v.sort_by(f64::total_cmp);
        v
    };
    let (a, b) = (sorted(a), sorted(b));
    let (na, nb) = (a.len(), b.len());
    // Whole numbers of 1/(na·nb), so that equal distances compare equal.
    let (mut i, mut j, mut largest) = (0, 0, 0i64);
    while i < na && j < nb {
        let at = a[i].min(b[j]);
        i += a[i..].iter().take_while(|v| **v == at).count();
        j += b[j..].iter().take_while(|v| **v == at).count();
        largest = largest.max((i as i64 * nb as i64 - j as i64 * na as i64).abs());
    }
    let d = largest as f64 / (na * nb) as f64;
    let p_value = if na * nb <= 10_000 {
        exact_ks_sf(largest, na, nb)
    } else {
        let n = (na * nb) as f64 / (na + nb) as f64;
        kolmogorov_sf((n.sqrt() + 0.12 + 0.11 / n.sqrt()) * d)
    };
    Some(Test { statistic: d, p_value })
}

/// P(D ≥ d) by walking all orders of both samples that stay inside the distance (Hodges 1957).
fn exact_ks_sf(largest: i64, na: usize, nb: usize) -> f64 {
    if largest == 0 {
        return 1.0;
    }
    let inside = |i: usize, j: usize| (i as i64 * nb as i64 - j as i64 * na as i64).abs() < largest;
    // Probability of passing a point while inside; each sample is drawn in proportion to its remaining values.
    let mut row = vec![0.0; nb + 1];
    for i in 0..=na {
        for j in 0..=nb {
            let left = (na + nb - i - j) as f64 + 1.0;
            let from_a = if i > 0 { row[j] * (na - i + 1) as f64 / left } else { 0.0 };
            let from_b = if j > 0 { row[j - 1] * (nb - j + 1) as f64 / left } else { 0.0 };
            let here = if i == 0 && j == 0 { 1.0 } else { from_a + from_b };
            row[j] = if inside(i, j) { here } else { 0.0 };
        }
    }
    (1.0 - row[nb]).clamp(0.0, 1.0)
}
