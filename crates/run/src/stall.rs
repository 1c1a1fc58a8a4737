//! Stalls that a closed loop hides: while a server answers nothing, a closed loop sends nothing, so at most as many
//! transactions as connections show the stall.

use mydyno_model::record::Interval;

/// A period in which hardly any transaction was answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// End of the window in which it ended, in seconds of the run.
    pub until_s: f64,
    /// Response time of the longest transaction in it, in seconds.
    pub length_s: f64,
    /// Transactions that would have been due meanwhile at the median rate.
    pub hidden: f64,
}

/// Shorter stalls are ignored.
const SHORTEST_S: f64 = 0.1;

/// Multiple of the median response time that a stall exceeds.
const FAR: f64 = 10.0;

/// The longest stall in the windows of a closed loop. A stall has two signs: a transaction took long, and throughput
/// fell by at least half of what a pause of that length on all connections would cost. One slow transaction beside
/// others that continue is none.
pub fn longest(windows: &[&Interval], transaction: &str, median_response_us: f64) -> Option<Stall> {
    let rates = || windows.iter().map(|w| w.transactions as f64 / w.width_s.max(1e-9));
    let mut sorted: Vec<f64> = rates().collect();
    sorted.sort_by(f64::total_cmp);
    let median = *sorted.get(sorted.len() / 2).filter(|rate| **rate > 0.0)?;
    let lost_s = |w: &Interval| (w.width_s - w.transactions as f64 / median).max(0.0);
    let stalls = windows.iter().enumerate().filter_map(|(n, window)| {
        let length_s = window.operations.get(transaction)?.response.max_ns as f64 / 1e9;
        let far = length_s >= SHORTEST_S && length_s * 1e6 > FAR * median_response_us;
        // It may have begun in an earlier window.
        let reach = length_s.ceil() as usize;
        let lost_s: f64 = windows[n.saturating_sub(reach)..=n].iter().map(|w| lost_s(w)).sum();
        let until_s = window.start_s + window.width_s;
        let stall = Stall { until_s, length_s, hidden: median * length_s };
        (far && lost_s >= length_s / 2.0).then_some(stall)
    });
    stalls.max_by(|a, b| a.length_s.total_cmp(&b.length_s))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window with a rate and its longest response time in milliseconds.
    fn window(n: usize, transactions: u64, max_ms: u64) -> Interval {
        let text = format!(
            r#"{{"step":0,"phase":"measure","start_s":{n}.0,"width_s":1.0,"transactions":{transactions},"queries":0,
            "client":{{"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,
            "resident_bytes":0,"threads":1}},"lateness":{{"count":0}},"operations":{{"t":{{"service":{{"count":0}},
            "response":{{"count":1,"max_ns":{}}}}}}}}}"#,
            max_ms * 1_000_000
        );
        serde_json::from_str(&text).unwrap()
    }

    fn longest_of(windows: &[Interval]) -> Option<Stall> {
        longest(&windows.iter().collect::<Vec<_>>(), "t", 1000.0)
    }

    #[test]
    fn a_pause_of_all_connections_is_found_also_over_the_border_of_windows() {
        let mut windows: Vec<Interval> = (0..10).map(|n| window(n, 1000, 5)).collect();
        windows[4] = window(4, 300, 5);
        windows[5] = window(5, 700, 1000);
        let stall = longest_of(&windows).unwrap();
        assert_eq!((stall.until_s, stall.length_s, stall.hidden), (6.0, 1.0, 1000.0));
    }

    #[test]
    fn a_slow_transaction_beside_others_that_go_on_is_none() {
        let mut windows: Vec<Interval> = (0..10).map(|n| window(n, 1000, 5)).collect();
        windows[5] = window(5, 990, 900);
        assert_eq!(longest_of(&windows), None);
        assert_eq!(longest_of(&[]), None);
    }
}
