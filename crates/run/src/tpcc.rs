//! The result of a step of the workload `tpcc`: new orders a minute, and the rules of TPC-C's specification.

use mydyno_model::Estimate;
use mydyno_model::record::{Interval, OperationInfo};
use mydyno_model::tpcc::{TpccRequirement, TpccSummary, TpccTransaction};
use mydyno_stats::interval;
use mydyno_workload::tpcc::statements::{KINDS, ROLLBACK};

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
    let total = |name: &str| windows.iter().map(|window| count(window, name)).sum::<u64>();
    let all: u64 = windows.iter().map(|window| window.transactions).sum();
    let transactions: Vec<TpccTransaction> = KINDS
        .iter()
        .map(|(_, name)| {
            let info = OperationInfo {
                name: (*name).to_owned(),
                kind: mydyno_model::record::OperationKind::Transaction,
                sql: String::new(),
            };
            let summary = operation_summary(&info, windows, &PERCENTILES);
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
    let requirements = requirements(&transactions, &total);
    Some(TpccSummary {
        label: "derived from TPC-C; not comparable with published TPC-C results".to_owned(),
        notpm,
        rollbacks: total(ROLLBACK),
        transactions,
        requirements,
    })
}

fn requirements(transactions: &[TpccTransaction], total: &dyn Fn(&str) -> u64) -> Vec<TpccRequirement> {
    let mut rules: Vec<TpccRequirement> = transactions
        .iter()
        .zip(SMALLEST_SHARES)
        .skip(1)
        .map(|(transaction, least)| TpccRequirement {
            rule: format!("5.2.3: share of {}", transaction.name),
            required: format!("at least {:.0} %", least * 100.0),
            found: format!("{:.2} %", transaction.share * 100.0),
            holds: (transaction.count > 0).then_some(transaction.share >= least),
        })
        .collect();
    rules.extend(transactions.iter().zip(LIMITS_S).map(|(transaction, limit_s)| {
        let p90 = transaction.response_us.percentiles.get("p90").map(|p90| p90.value / 1e6);
        TpccRequirement {
            rule: format!("5.2.5.7: 90th percentile of the response time of {}", transaction.name),
            required: format!("at most {limit_s} s"),
            found: p90.map_or("none".to_owned(), |p90| format!("{p90:.3} s")),
            holds: p90.map(|p90| p90 <= limit_s),
        }
    }));
    let orders = total("new_order");
    let ratio = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
    let mut between = |rule: &str, unit: &str, found: Option<f64>, low: f64, high: f64| {
        rules.push(TpccRequirement {
            rule: format!("5.5.1.5: {rule}"),
            required: format!("{low} to {high}{unit}"),
            found: found.map_or("none".to_owned(), |found| format!("{found:.2}{unit}")),
            holds: found.map(|found| (low..=high).contains(&found)),
        });
    };
    let percent = |share: Option<f64>| share.map(|share| share * 100.0);
    between("new orders that roll back", " %", percent(ratio(total(ROLLBACK), orders)), 0.9, 1.1);
    // Attempts that are retried send their lines again, as often as their orders.
    between("lines of an order", "", ratio(total("new_order.item"), total("new_order.customer")), 9.5, 10.5);
    let by_name = percent(ratio(total("payment.customers_by_name"), total("payment.district")));
    between("payments by last name", " %", by_name, 57.0, 63.0);
    let by_name = ratio(total("order_status.customers_by_name"), total("order_status.customer"));
    between("order statuses by last name", " %", percent(by_name), 57.0, 63.0);
    rules.push(TpccRequirement {
        rule: "5.2.5.2, 5.2.5.4: keying and think times".to_owned(),
        required: "of every terminal".to_owned(),
        found: "none".to_owned(),
        holds: Some(false),
    });
    rules.push(TpccRequirement {
        rule: "2.7.2: Delivery is queued and runs deferred".to_owned(),
        required: "yes".to_owned(),
        found: "its connection waits for it".to_owned(),
        holds: Some(false),
    });
    rules
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
            ("new_order.rollback", 1),
            ("new_order.item", 1_100),
            ("new_order.customer", 100),
        ];
        let window = window(&counts);
        let summary = summarise("tpcc", &[&window, &window]).unwrap();
        // 200 new orders in four seconds.
        assert!((summary.notpm.value - 3_000.0).abs() < 1e-6, "{:?}", summary.notpm);
        assert_eq!((summary.rollbacks, summary.transactions[0].count), (2, 200));
        let holds = |rule: &str| {
            let found = summary.requirements.iter().find(|r| r.rule.contains(rule));
            found.unwrap_or_else(|| panic!("{rule}")).holds
        };
        assert_eq!(holds("share of payment"), Some(true));
        assert_eq!(holds("share of delivery"), Some(false));
        assert_eq!(holds("roll back"), Some(true));
        assert_eq!(holds("lines of an order"), Some(false));
        assert_eq!(holds("payments by last name"), None);
        assert_eq!(holds("response time of new_order"), Some(true));
        let p95 = summary.transactions[1].service_us.percentiles["p95"].value;
        assert!((p95 - 2_000.0).abs() < 20.0, "{p95}");
    }

    #[test]
    fn other_workloads_have_none() {
        assert!(summarise("oltp_read_only", &[]).is_none());
    }
}
