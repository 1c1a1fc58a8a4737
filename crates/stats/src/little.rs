//! Little's law as a consistency check of a record: mean number in the system = throughput × mean time.
//!
//! In a closed loop without think time, throughput × mean response time must equal the number of connections. A difference
//! means that time was lost unmeasured: the client was busy elsewhere, connections were idle, or times were recorded wrongly.

/// Result of the check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Little {
    /// Throughput × mean time: the average number of transactions in the system.
    pub in_system: f64,
    /// Ratio of that number to the connections: 1 when all of them were always waiting for an answer.
    pub utilisation: f64,
    /// Whether the record is consistent: the number is at most that of the connections (apart from edge effects of the window),
    /// and at least 90 % of it.
    pub holds: bool,
}

/// Checks a closed loop from the number of transactions that completed in `window_s` seconds, the sum of their times, and the
/// connections. `None` when no transaction completed.
pub fn check(transactions: u64, sum_ns: u64, window_s: f64, connections: usize) -> Option<Little> {
    if transactions == 0 || window_s <= 0.0 || connections == 0 {
        return None;
    }
    let in_system = sum_ns as f64 / 1e9 / window_s;
    let utilisation = in_system / connections as f64;
    // Each connection may contribute one transaction that began before the window and lack one that ended after it.
    let mean_s = sum_ns as f64 / 1e9 / transactions as f64;
    let edge = 2.0 * mean_s / window_s;
    Some(Little { in_system, utilisation, holds: utilisation <= 1.0 + edge && utilisation >= 0.9 - edge })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_closed_loop_fits() {
        // 8 connections, 1 ms each, 10 s: 80,000 transactions, 80 s of time.
        let little = check(80_000, 80_000_000_000, 10.0, 8).unwrap();
        assert_eq!((little.in_system, little.utilisation, little.holds), (8.0, 1.0, true));
    }

    #[test]
    fn time_that_nobody_measured_and_time_counted_twice_are_seen() {
        assert!(!check(40_000, 40_000_000_000, 10.0, 8).unwrap().holds);
        assert!(!check(80_000, 90_000_000_000, 10.0, 8).unwrap().holds);
    }

    #[test]
    fn long_transactions_at_the_edges_are_no_alarm() {
        // 4 connections, each 3 transactions of 4 s ended within 10 s: 12 s of time each.
        assert!(check(12, 48_000_000_000, 10.0, 4).unwrap().holds);
    }

    #[test]
    fn without_transactions_there_is_nothing_to_check() {
        assert_eq!(check(0, 0, 10.0, 4), None);
    }
}
