//! The Universal Scalability Law over a sweep: the peak of throughput, and what limits it.

use mydyno_model::Estimate;
use mydyno_model::units::three_digits;
use mydyno_stats::usl::{Fit, Point, fit};

use crate::RunView;
use crate::figures::{Unit, interval, number, percent};

/// Confidence level of the law's intervals.
const LEVEL: f64 = 0.95;

/// The law fitted to a run's steps, or the reason why it cannot be fitted. `None` when the run is not a sweep over connections
/// in a closed loop: the law applies to nothing else.
pub fn law(run: &RunView<'_>) -> Option<Result<Fit, String>> {
    let steps = &run.summary.steps;
    let sweep = steps.windows(2).any(|pair| pair[0].connections != pair[1].connections);
    if !sweep || steps.iter().any(|s| s.rate.is_some()) {
        return None;
    }
    let points: Vec<Point> = steps
        .iter()
        .map(|s| Point { n: s.connections as f64, x: s.throughput.transactions_per_s.value })
        .collect();
    Some(fit(&points, LEVEL).map_err(|e| e.to_string()))
}

/// Parameters and peak of a fit in words.
pub fn words(fit: &Fit) -> String {
    let peak = match (&fit.peak_n, &fit.peak_x) {
        (Ok(n), Ok(x)) => format!(
            "throughput peaks at {} connections{} with {}{}",
            number(n.value),
            ends(Unit::Count, n),
            Unit::PerSecond.show(x.value),
            ends(Unit::PerSecond, x)
        ),
        (Err(why), _) | (_, Err(why)) => why.clone(),
    };
    format!(
        "{peak}; contention {}{}, coherency {}{}; residuals {}",
        share(fit.sigma.value),
        shares(&fit.sigma),
        share(fit.kappa.value),
        shares(&fit.kappa),
        percent(fit.relative_error)
    )
}

fn ends(unit: Unit, e: &Estimate) -> String {
    interval(unit, e).map(|i| format!(" ({i})")).unwrap_or_default()
}

fn share(v: f64) -> String {
    format!("{} %", digits(v * 100.0))
}

/// Three significant digits even for small values: a coherency of 0.001 % bends a sweep over thousands of connections.
fn digits(value: f64) -> String {
    if value == 0.0 || value.abs() >= 0.1 {
        return three_digits(value);
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    format!("{value:.decimals$}").trim_end_matches('0').to_owned()
}

fn shares(e: &Estimate) -> String {
    let show = |v: f64| digits(v * 100.0);
    match (e.low, e.high) {
        (Some(low), Some(high)) => format!(" ({}–{})", show(low), show(high)),
        _ => String::new(),
    }
}
