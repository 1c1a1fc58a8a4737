//! Whether a warm-up has settled.

use mydyno_model::plan::Arrivals;
use mydyno_model::record::{Interval, Phase};
use mydyno_stats::slow::MIN_WINDOWS;
use mydyno_stats::steady;

/// Windows shorter than this, in seconds, are too short to judge.
const SHORT_S: f64 = 0.5;

/// Whether the windows of a warm-up end in a steady part that is long enough. A closed loop must have a settled
/// throughput; in an open loop the schedule sets the throughput, so the mean response time must have settled.
pub fn settled(arrivals: &Arrivals, transaction: &str, warmup: &[Interval]) -> bool {
    let whole = warmup.iter().filter(|w| w.phase == Phase::Warmup && w.width_s >= SHORT_S);
    let values: Vec<f64> = match arrivals {
        Arrivals::Closed { .. } => whole.map(|w| w.transactions as f64 / w.width_s).collect(),
        Arrivals::Open { .. } => whole
            .filter_map(|w| w.operations.get(transaction))
            .filter(|times| times.response.count > 0)
            .map(|times| times.response.sum_ns as f64 / times.response.count as f64)
            .collect(),
    };
    if values.len() < MIN_WINDOWS {
        return false;
    }
    // The windows before the cut were the transient. With too few values for a cut all are judged.
    let start = steady::warm_up_end(&values).unwrap_or(0);
    let rest = &values[start..];
    rest.len() >= MIN_WINDOWS && is_level(rest) && steady::assess(rest).steady == Some(true)
}

/// Tolerated change between the halves of a warm-up, as a share.
const LEVEL: f64 = 0.02;

/// Whether the halves of a series have the same mean within [`LEVEL`] or twice the noise between values. A test that is
/// repeated every second eventually passes by chance, so this requires more than the absence of a significant change.
fn is_level(values: &[f64]) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (early, late) = values.split_at(values.len() / 2);
    let change = (mean(late) - mean(early)).abs();
    // The noise is estimated from differences, which a trend hardly affects.
    let squares: f64 = values.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    let noise = (squares / 2.0 / (values.len() - 1) as f64).sqrt();
    let by_chance = 2.0 * noise * (4.0 / values.len() as f64).sqrt();
    change <= (LEVEL * mean(values)).max(by_chance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_stats::Rng;

    fn windows(count: usize, rate: impl Fn(usize) -> f64) -> Vec<Interval> {
        let line = r#"{"step":0,"phase":"warmup","start_s":0.0,"width_s":1.0,"transactions":0,"queries":0,
            "client":{"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,
            "resident_bytes":0,"threads":1},"lateness":{"count":0},"operations":{}}"#;
        let mut random = Rng::from_seed(3);
        (0..count)
            .map(|n| {
                let mut window: Interval = serde_json::from_str(line).unwrap();
                window.transactions = (rate(n) * (1.0 + 0.02 * random.normal())) as u64;
                window
            })
            .collect()
    }

    fn is_settled(windows: &[Interval]) -> bool {
        settled(&Arrivals::CLOSED, "transaction", windows)
    }

    #[test]
    fn a_level_series_settles_as_soon_as_it_can_be_judged() {
        let level = windows(40, |_| 1000.0);
        assert!(!is_settled(&level[..15]));
        assert!(is_settled(&level[..16]));
    }

    #[test]
    fn a_series_that_still_rises_has_not_settled_and_settles_behind_its_rise() {
        let rising = windows(60, |n| 200.0 + 800.0 * (n as f64 / 20.0).min(1.0));
        assert!((16..=24).all(|n| !is_settled(&rising[..n])));
        assert!(is_settled(&rising));
    }

    #[test]
    fn an_open_loop_without_response_times_has_not_settled() {
        let open = Arrivals::open(10.0, mydyno_model::plan::Spacing::Constant);
        assert!(!settled(&open, "transaction", &windows(40, |_| 10.0)));
    }
}
