//! The result of a step of the workload `tpcc`: new orders a minute, and the rules of TPC-C's specification.

use mydyno_model::Estimate;
use mydyno_model::record::{Interval, OperationInfo};
use mydyno_model::tpcc::{TpccRequirement, TpccSummary, TpccTransaction};
use mydyno_stats::interval;
use mydyno_workload::tpcc::statements::{KINDS, QUEUED};
use mydyno_workload::tpcc::waits::mean_think_s;

use crate::operation::operation_summary;

/// Percentiles that the specification asks for.
const PERCENTILES: [f64; 2] = [90.0, 95.0];

/// Smallest shares of the mix (clause 5.2.3), in the order of [`KINDS`]; none is required of New-Order.
const SMALLEST_SHARES: [f64; 5] = [0.0, 0.43, 0.04, 0.04, 0.04];

/// Largest 90th percentiles of response times in seconds (clause 5.2.5.7), in the same order.
const LIMITS_S: [f64; 5] = [5.0, 5.0, 5.0, 5.0, 20.0];

/// The result over the windows of a step; `None` for other workloads.
pub(crate) fn summarise(workload: &str, windows: &[&Interval]) -> Option<TpccSummary> {
    if workload != "tpcc" {
        return None;
    }
    let count = |window: &Interval, name: &str| window.operations.get(name).map_or(0, |t| t.service.count);
    let all: u64 = windows.iter().map(|window| window.transactions).sum();
    let transactions: Vec<TpccTransaction> = KINDS
        .iter()
        .map(|(_, name)| {
            let summary = operation_summary(&transaction_info(name), windows, &PERCENTILES);
            TpccTransaction {
                share: if all > 0 { summary.count as f64 / all as f64 } else { 0.0 },
                count: summary.count,
                name: summary.name,
                response_us: summary.response_us,
                service_us: summary.service_us,
            }
        })
        .collect();
    let orders: Vec<u64> = windows.iter().map(|window| count(window, KINDS[0].1)).collect();
    let widths_s: Vec<f64> = windows.iter().map(|window| window.width_s).collect();
    let per_s = interval::throughput(&orders, &widths_s);
    let notpm = Estimate {
        value: per_s.value * 60.0,
        low: per_s.low.map(|x| x * 60.0),
        high: per_s.high.map(|x| x * 60.0),
        ..per_s
    };
    let counted = |name: &str| windows.iter().filter_map(|window| window.counts.get(name)).sum::<u64>();
    let rules = requirements(&transactions, queueing(windows), &counted);
    Some(TpccSummary {
        label: "derived from TPC-C; not comparable with published TPC-C results".to_owned(),
        notpm,
        rollbacks: counted("rollbacks"),
        transactions,
        requirements: rules,
    })
}

/// The 90th percentile of the time in which terminals queue their deliveries, in seconds; `None` where they queue none.
fn queueing(windows: &[&Interval]) -> Option<f64> {
    let info = transaction_info(QUEUED);
    let summary = operation_summary(&info, windows, &PERCENTILES);
    if summary.count == 0 {
        return None;
    }
    summary.response_us.percentiles.get("p90").map(|p90| p90.value / 1e6)
}

fn transaction_info(name: &str) -> OperationInfo {
    let kind = mydyno_model::record::OperationKind::Transaction;
    OperationInfo { name: name.to_owned(), kind, sql: String::new() }
}

/// `queueing_s` is the response time of a terminal that queues its deliveries, in place of that of Delivery.
fn requirements(
    transactions: &[TpccTransaction],
    queueing_s: Option<f64>,
    counted: &dyn Fn(&str) -> u64,
) -> Vec<TpccRequirement> {
    let all: u64 = transactions.iter().map(|transaction| transaction.count).sum();
    let mut rules: Vec<TpccRequirement> = transactions
        .iter()
        .zip(SMALLEST_SHARES)
        .skip(1)
        .map(|(transaction, least)| TpccRequirement {
            rule: format!("5.2.3: share of {}", transaction.name),
            required: format!("at least {:.0} %", least * 100.0),
            found: format!("{:.2} %", transaction.share * 100.0),
            holds: (all > 0)
                .then(|| holds(transaction.share, (least, 1.0), |p| error_of_share(p, all)))
                .flatten(),
        })
        .collect();
    rules.extend(transactions.iter().zip(LIMITS_S).map(|(transaction, limit_s)| {
        let p90 = transaction.response_us.percentiles.get("p90").map(|p90| p90.value / 1e6);
        let p90 = queueing_s.filter(|_| transaction.name == KINDS[3].1).or(p90);
        TpccRequirement {
            rule: format!("5.2.5.7: 90th percentile of the response time of {}", transaction.name),
            required: format!("at most {limit_s} s"),
            found: p90.map_or("none".to_owned(), |p90| format!("{p90:.3} s")),
            holds: p90.map(|p90| p90 <= limit_s),
        }
    }));
    rules.extend(input_limits(counted));
    rules.extend(waits(counted));
    rules.extend(deliveries(transactions, counted));
    rules
}

/// The limits of clause 5.5.1.5 for the inputs of a run.
fn input_limits(counted: &dyn Fn(&str) -> u64) -> Vec<TpccRequirement> {
    let rule = |about: &str, unit: &str, (low, high): (f64, f64), found: Option<f64>, holds: Option<bool>| {
        TpccRequirement {
            rule: format!("5.5.1.5: {about}"),
            required: format!("{low} to {high}{unit}"),
            found: found.map_or("none".to_owned(), |found| format!("{found:.2}{unit}")),
            holds,
        }
    };
    let share = |about: &str, part: &str, of: &str, limits: (f64, f64)| {
        let n = counted(of);
        let percent = (n > 0).then(|| counted(part) as f64 / n as f64 * 100.0);
        let error = |limit: f64| error_of_share(limit / 100.0, n) * 100.0;
        rule(about, " %", limits, percent, percent.and_then(|percent| holds(percent, limits, error)))
    };
    let orders = counted("new_orders");
    let lines = (orders > 0).then(|| counted("lines") as f64 / orders as f64);
    let lines_hold =
        lines.and_then(|lines| holds(lines, (9.5, 10.5), |_| DEVIATION_OF_LINES / (orders as f64).sqrt()));
    vec![
        share("new orders that roll back", "rollbacks", "new_orders", (0.9, 1.1)),
        rule("lines of an order", "", (9.5, 10.5), lines, lines_hold),
        share("order lines of other warehouses", "remote_lines", "lines", (0.95, 1.05)),
        share("payments of other warehouses", "remote_payments", "payments", (14.0, 16.0)),
        share("payments by last name", "payments_by_name", "payments", (57.0, 63.0)),
        share("order statuses by last name", "order_statuses_by_name", "order_statuses", (57.0, 63.0)),
    ]
}

/// Standard errors by which a value may miss a limit by chance.
const ERRORS_BY_CHANCE: f64 = 3.0;

/// Standard deviation of a number of lines that is drawn uniformly from 5 to 15: √10.
const DEVIATION_OF_LINES: f64 = 3.1623;

/// Whether a measured value is within limits; `None` where it misses one by no more than chance explains. `error` gives the standard
/// error of a value at a limit.
fn holds(found: f64, (low, high): (f64, f64), error: impl Fn(f64) -> f64) -> Option<bool> {
    let limit = found.clamp(low, high);
    let missed = (found - limit).abs();
    (missed == 0.0 || missed > ERRORS_BY_CHANCE * error(limit)).then_some(missed == 0.0)
}

/// The standard error of a share of `n` cases.
fn error_of_share(share: f64, n: u64) -> f64 {
    (share * (1.0 - share) / n.max(1) as f64).sqrt()
}

/// Keying and think times (clauses 5.2.5.2 and 5.2.5.4): one row for each kind of transaction where terminals wait.
fn waits(counted: &dyn Fn(&str) -> u64) -> Vec<TpccRequirement> {
    let thinks = |name: &str| counted(&format!("thinks_{name}"));
    if KINDS.iter().all(|(_, name)| thinks(name) == 0) {
        return vec![TpccRequirement {
            rule: "5.2.5.2, 5.2.5.4: keying and think times".to_owned(),
            required: "of every terminal".to_owned(),
            found: "none".to_owned(),
            holds: Some(false),
        }];
    }
    let mut rules: Vec<TpccRequirement> = KINDS
        .iter()
        .map(|(kind, name)| {
            let (n, required_s) = (thinks(name), mean_think_s(*kind));
            let mean_s = (n > 0).then(|| counted(&format!("think_us_{name}")) as f64 / n as f64 / 1e6);
            // An exponential time has its mean as standard deviation: three standard errors below the mean are chance.
            let least_s = required_s * (1.0 - 3.0 / (n.max(1) as f64).sqrt());
            TpccRequirement {
                rule: format!("5.2.5.4: mean think time after {name}"),
                required: format!("exponential, at least {required_s} s (three standard errors less)"),
                found: mean_s.map_or("none".to_owned(), |mean_s| format!("{mean_s:.2} s of {n}")),
                holds: mean_s.map(|mean_s| mean_s >= least_s),
            }
        })
        .collect();
    rules.push(TpccRequirement {
        rule: "5.2.5.2: keying times".to_owned(),
        required: "18 s, 3 s, 2 s, 2 s, 2 s before each transaction".to_owned(),
        found: "kept before each".to_owned(),
        holds: Some(true),
    });
    rules
}

/// Largest 90th percentile of the time from queueing a delivery to its end, in seconds (clause 2.7.2).
const DEFERRED_LIMIT_S: f64 = 80.0;

/// Whether deliveries are queued, and how long they wait there (clause 2.7.2).
fn deliveries(transactions: &[TpccTransaction], counted: &dyn Fn(&str) -> u64) -> Vec<TpccRequirement> {
    let (queued, executed) = (counted("deliveries_queued"), counted("deliveries_executed"));
    if queued == 0 {
        return vec![TpccRequirement {
            rule: "2.7.2: Delivery is queued and runs deferred".to_owned(),
            required: "yes".to_owned(),
            found: "its connection waits for it".to_owned(),
            holds: Some(false),
        }];
    }
    let p90_s = transactions[3].response_us.percentiles.get("p90").map(|p90| p90.value / 1e6);
    vec![
        TpccRequirement {
            rule: "2.7.2: Delivery is queued and runs deferred".to_owned(),
            required: "yes".to_owned(),
            found: format!("{queued} queued, {executed} executed in the window"),
            holds: Some(true),
        },
        TpccRequirement {
            rule: "2.7.2: 90th percentile from queueing a delivery to its end".to_owned(),
            required: format!("at most {DEFERRED_LIMIT_S} s"),
            found: p90_s.map_or("none".to_owned(), |p90_s| format!("{p90_s:.3} s")),
            holds: Some(p90_s.is_some_and(|p90_s| p90_s <= DEFERRED_LIMIT_S)),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::record::{HistogramData, OperationTimes};

    fn window(counts: &[(&str, u64)]) -> Interval {
        let line = r#"{"step":0,"phase":"measure","start_s":0.0,"width_s":2.0,"transactions":230,"queries":5,"client":
            {"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,"resident_bytes":0,
            "threads":1},"lateness":{"count":0},"operations":{}}"#;
        let mut interval: Interval = serde_json::from_str(line).unwrap();
        for (name, count) in counts {
            let mut times = mydyno_stats::Histogram::new();
            (0..*count).for_each(|_| times.record(2_000_000));
            let data: HistogramData = times.to_data();
            interval
                .operations
                .insert((*name).to_owned(), OperationTimes { response: data.clone(), service: data });
        }
        interval
    }

    #[test]
    fn new_orders_are_counted_a_minute_and_rules_are_compared() {
        let counts = [
            ("new_order", 100),
            ("payment", 100),
            ("order_status", 10),
            ("delivery", 5),
            ("stock_level", 15),
        ];
        let mut window = window(&counts);
        for (name, count) in [
            ("new_orders", 100),
            ("rollbacks", 1),
            ("lines", 1_200),
            ("remote_lines", 12),
            ("payments", 200),
            ("remote_payments", 0),
        ] {
            window.counts.insert(name.to_owned(), count);
        }
        let summary = summarise("tpcc", &[&window, &window]).unwrap();
        // 200 new orders in four seconds.
        assert!((summary.notpm.value - 3_000.0).abs() < 1e-6, "{:?}", summary.notpm);
        assert_eq!((summary.rollbacks, summary.transactions[0].count), (2, 200));
        let holds = |rule: &str| {
            let found = summary.requirements.iter().find(|r| r.rule.contains(rule));
            found.unwrap_or_else(|| panic!("{rule}")).holds
        };
        assert_eq!(holds("share of payment"), Some(true));
        assert_eq!(holds("share of delivery"), None, "2.2 % of 460 are 4 % by chance");
        assert_eq!(holds("roll back"), Some(true));
        assert_eq!(holds("lines of an order"), Some(false));
        assert_eq!(holds("order lines of other warehouses"), Some(true));
        assert_eq!(holds("order statuses by last name"), None, "none was counted");
        assert_eq!(holds("payments of other warehouses"), Some(false));
        assert_eq!((holds("keying and think times"), holds("queued and runs")), (Some(false), Some(false)));
        assert_eq!(holds("response time of new_order"), Some(true));
        let p95 = summary.transactions[1].service_us.percentiles["p95"].value;
        assert!((p95 - 2_000.0).abs() < 20.0, "{p95}");
    }

    #[test]
    fn a_limit_is_missed_where_chance_does_not_explain_it() {
        let of = |n: u64| move |p: f64| error_of_share(p, n);
        // 1.07 % of 7,000 order lines, as a correct run of some seconds has them.
        assert_eq!(holds(0.0107, (0.0095, 0.0105), of(7_000)), None);
        assert_eq!(holds(0.0107, (0.0095, 0.0105), of(7_000_000)), Some(false));
        assert_eq!(holds(0.0, (0.0095, 0.0105), of(7_000)), Some(false));
        assert_eq!(holds(0.01, (0.0095, 0.0105), of(10)), Some(true));
        assert_eq!(holds(0.0386, (0.04, 1.0), of(1_000)), None);
        assert_eq!(holds(0.0386, (0.04, 1.0), of(1_000_000)), Some(false));
    }

    #[test]
    fn terminals_and_queued_deliveries_have_their_rules() {
        let mut window = window(&[("new_order", 40), ("delivery", 5), ("delivery.queued", 6)]);
        for (name, count) in [
            ("thinks_new_order", 100),
            ("think_us_new_order", 1_150_000_000),
            ("thinks_payment", 100),
            ("think_us_payment", 700_000_000),
            ("deliveries_queued", 6),
            ("deliveries_executed", 5),
        ] {
            window.counts.insert(name.to_owned(), count);
        }
        let summary = summarise("tpcc", &[&window]).unwrap();
        let find = |rule: &str| summary.requirements.iter().find(|r| r.rule.contains(rule)).unwrap();
        assert_eq!(find("think time after new_order").holds, Some(true), "11.5 s are 12 s by chance");
        assert_eq!(find("think time after payment").holds, Some(false));
        assert_eq!(find("think time after delivery").holds, None);
        assert_eq!(find("queued and runs").found, "6 queued, 5 executed in the window");
        assert_eq!(find("from queueing").holds, Some(true));
    }

    #[test]
    fn other_workloads_have_none() {
        assert!(summarise("oltp_read_only", &[]).is_none());
    }
}
