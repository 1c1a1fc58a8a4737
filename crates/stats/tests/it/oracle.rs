//! The vectors of tests/oracle, and tests of the functions that need nothing else: distributions, histograms, the end of a
//! warm-up, Little's law.

use std::sync::LazyLock;

use mydyno_stats::power::noncentral_t_sf;
use mydyno_stats::{Distribution, Histogram, little, special, steady};
use serde_json::Value;

/// Vectors of distributions, samples, fits and histograms, each file read once.
pub static VECTORS: LazyLock<Value> = LazyLock::new(|| read("stats.json"));

/// Vectors of experiments.
pub static EXPERIMENTS: LazyLock<Value> = LazyLock::new(|| read("experiments.json"));

/// Vectors of experiments with several factors.
pub static FACTORIALS: LazyLock<Value> = LazyLock::new(|| read("factorials.json"));

/// Vectors of the windows of one run.
pub static SERIES: LazyLock<Value> = LazyLock::new(|| read("series.json"));

fn read(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle");
    serde_json::from_str(&std::fs::read_to_string(format!("{folder}/{name}")).unwrap()).unwrap()
}

/// The numbers of a JSON array; `null` is NaN.
pub fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap_or(f64::NAN)).collect()
}

/// Asserts that two numbers agree to a relative (near 0: absolute) tolerance.
#[track_caller]
pub fn close(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    let scale = theirs.abs().max(1e-300);
    let near = (ours - theirs).abs() <= tolerance * scale || (ours - theirs).abs() <= 1e-280;
    assert!(near || ours == theirs, "{what}: {ours:e}, the oracle says {theirs:e}");
}

/// Checks a function of numbers against the rows of arguments and results with this name.
pub fn check(vectors: &Value, name: &str, tolerance: f64, ours: impl Fn(&[f64]) -> f64) {
    let rows = vectors[name].as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let row = numbers(row);
        let (arguments, theirs) = row.split_at(row.len() - 1);
        close(ours(arguments), theirs[0], tolerance, &format!("{name}{arguments:?}"));
    }
}

#[test]
fn special_functions_agree_with_scipy() {
    // ln Γ passes 0 at 1 and 2, where only an absolute tolerance makes sense.
    check(&VECTORS, "ln_gamma", 1e-12, |a| {
        let ours = special::ln_gamma(a[0]);
        if ours.abs() < 1e-14 { 0.0 } else { ours }
    });
    check(&VECTORS, "beta_inc", 2e-11, |a| special::beta_inc(a[0], a[1], a[2]));
    check(&VECTORS, "gamma_q", 2e-11, |a| special::gamma_q(a[0], a[1]));
    check(&VECTORS, "kolmogorov_sf", 1e-12, |a| special::kolmogorov_sf(a[0]));
}

#[test]
fn distributions_agree_with_scipy() {
    check(&VECTORS, "normal_cdf", 1e-10, |a| special::normal_cdf(a[0]));
    check(&VECTORS, "normal_quantile", 1e-12, |a| special::normal_quantile(a[0]));
    check(&VECTORS, "t_sf", 1e-10, |a| special::t_sf(a[0], a[1]));
    check(&VECTORS, "t_quantile", 1e-10, |a| special::t_quantile(a[0], a[1]));
    check(&VECTORS, "chi2_sf", 1e-11, |a| special::chi2_sf(a[0], a[1]));
    check(&VECTORS, "f_sf", 1e-11, |a| special::f_sf(a[0], a[1], a[2]));
    check(&VECTORS, "noncentral_t_sf", 1e-6, |a| noncentral_t_sf(a[0], a[1], a[2]));
}

#[test]
fn quantiles_of_a_histogram_are_the_exact_ones_within_its_resolution() {
    let case = &VECTORS["quantiles"];
    let mut histogram = Histogram::new();
    numbers(&case["values"]).iter().for_each(|v| histogram.record(*v as u64));
    for (q, exact) in numbers(&case["qs"]).iter().zip(numbers(&case["exact"])) {
        let (low, high) = histogram.quantile_bounds_ns(*q).unwrap();
        assert!(low as f64 <= exact && exact <= high as f64, "{q}: {low} {exact} {high}");
        close(histogram.quantile_ns(*q).unwrap(), exact, 1.0 / 128.0, &format!("quantile {q}"));
    }
}

#[test]
fn quantiles_lie_in_the_bucket_that_the_layout_gives_them() {
    for case in VECTORS["histograms"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let values: Vec<u64> =
            case["values"].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
        let mut histogram = Histogram::new();
        values.iter().for_each(|ns| histogram.record(*ns));
        let sparse = histogram.to_sparse();
        assert_eq!(histogram.sum_ns(), case["sum"].as_u64().unwrap(), "{name}");
        assert_eq!(histogram.saturated(), case["saturated"].as_u64().unwrap(), "{name}");
        assert_eq!(histogram.min_ns().zip(histogram.max_ns()), Some((values[0], values[values.len() - 1])));
        for row in case["quantiles"].as_array().unwrap() {
            let q = row[0].as_f64().unwrap();
            let [exact, low, high] = [1, 2, 3].map(|i| row[i].as_u64().unwrap());
            assert_eq!(histogram.quantile_bounds_ns(q), Some((low, high)), "{name}, {q}");
            assert_eq!(sparse.quantile_bounds_ns(q), Some((low, high)), "{name}, {q}");
            assert!(low <= exact && exact <= high, "{name}, {q}");
            let quantile = histogram.quantile_ns(q).unwrap();
            assert!(low as f64 <= quantile && quantile <= high as f64, "{name}, {q}: {quantile}");
            // At the edge of a bucket its count is exact.
            let below = values.iter().filter(|ns| **ns < low).count() as f64;
            assert_eq!(histogram.count_below(low as f64), below, "{name}, {q}");
        }
    }
    assert_eq!(Histogram::new().quantile_bounds_ns(0.5), None);
}

#[test]
fn a_warm_up_ends_where_mser_5_in_fractions_says() {
    for case in SERIES["warm_up_end"].as_array().unwrap() {
        let theirs = case["end"].as_u64().map(|end| end as usize);
        assert_eq!(steady::warm_up_end(&numbers(&case["values"])), theirs, "{}", case["name"]);
    }
}

#[test]
fn littles_law_agrees_with_the_number_in_a_loop_whose_every_transaction_is_known() {
    for case in SERIES["little"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let whole = |field: &str| case[field].as_u64().unwrap();
        let number = |field: &str| case[field].as_f64().unwrap();
        let connections = whole("connections") as usize;
        let ours = little::check(whole("transactions"), whole("sum_ns"), number("window_s"), connections);
        if case["in_system"].is_null() {
            assert_eq!(ours, None, "{name}");
            continue;
        }
        let ours = ours.unwrap();
        close(ours.in_system, number("in_system"), 1e-12, name);
        close(ours.utilisation, number("utilisation"), 1e-12, name);
        assert_eq!(ours.holds, case["fits"].as_bool().unwrap(), "{name}: {ours:?}");
        // Only transactions that began before the window or ended after it may differ between the law and the integral.
        if case["honest"].as_bool().unwrap() {
            let apart = (ours.in_system - number("truly_in_system")).abs();
            assert!(apart <= number("edge"), "{name}: {ours:?}");
        }
    }
}
