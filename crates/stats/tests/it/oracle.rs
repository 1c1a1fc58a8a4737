//! Functions against the vectors of tests/oracle/stats.json.

use std::sync::LazyLock;

use mydyno_stats::power::{blocks_for, minimum_detectable_effect, noncentral_t_sf};
use mydyno_stats::{Distribution, Histogram, sequential, special};
use serde_json::Value;

/// The vectors, read once.
pub static VECTORS: LazyLock<Value> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/oracle/stats.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
});

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

/// Checks a function of one to three arguments against rows of arguments and answer.
fn check(name: &str, tolerance: f64, ours: impl Fn(&[f64]) -> f64) {
    let rows = VECTORS[name].as_array().unwrap();
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
    check("ln_gamma", 1e-12, |a| {
        let ours = special::ln_gamma(a[0]);
        if ours.abs() < 1e-14 { 0.0 } else { ours }
    });
    check("beta_inc", 2e-11, |a| special::beta_inc(a[0], a[1], a[2]));
    check("gamma_q", 2e-11, |a| special::gamma_q(a[0], a[1]));
    check("kolmogorov_sf", 1e-12, |a| special::kolmogorov_sf(a[0]));
}

#[test]
fn distributions_agree_with_scipy() {
    check("normal_cdf", 1e-10, |a| special::normal_cdf(a[0]));
    check("normal_quantile", 1e-12, |a| special::normal_quantile(a[0]));
    check("t_sf", 1e-10, |a| special::t_sf(a[0], a[1]));
    check("t_quantile", 1e-10, |a| special::t_quantile(a[0], a[1]));
    check("chi2_sf", 1e-11, |a| special::chi2_sf(a[0], a[1]));
    check("f_sf", 1e-11, |a| special::f_sf(a[0], a[1], a[2]));
    check("noncentral_t_sf", 1e-6, |a| noncentral_t_sf(a[0], a[1], a[2]));
}

#[test]
fn blocks_and_detectable_effects_agree_with_scipy() {
    check("blocks_for", 0.0, |a| blocks_for(a[0], a[1]).unwrap() as f64);
    check("minimum_detectable_effect", 1e-6, |a| minimum_detectable_effect(a[0] as usize, a[1]).unwrap());
}

#[test]
fn boundaries_agree_with_multivariate_normal_probabilities() {
    for case in VECTORS["boundaries"].as_array().unwrap() {
        let ours = sequential::boundaries(&numbers(&case["times"]), case["alpha"].as_f64().unwrap());
        for (ours, theirs) in ours.iter().zip(numbers(&case["bounds"])) {
            close(*ours, theirs, 5e-4, &format!("boundary at {}", case["times"]));
        }
    }
    // As published with Lan and DeMets' program (Reboussin et al. 2000), five equal looks, 5 % two-sided.
    let published = [4.8769, 3.3569, 2.6803, 2.2898, 2.0310];
    let ours = sequential::boundaries(&[0.2, 0.4, 0.6, 0.8, 1.0], 0.05);
    for (ours, theirs) in ours.iter().zip(published) {
        close(*ours, theirs, 5e-5, "published boundary");
    }
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
