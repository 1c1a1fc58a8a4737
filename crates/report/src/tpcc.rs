//! The result of the workload `tpcc`, as text and as tables.

use mydyno_model::summary::{LatencySummary, StepSummary, Summary};
use mydyno_model::tpcc::{TpccRequirement, TpccSummary};

use crate::figures::{Unit, interval, number, percent, us};
use crate::sheet::Sheet;

/// The last measured step with its result.
pub fn last(summary: &Summary) -> Option<(&StepSummary, &TpccSummary)> {
    summary.steps.iter().rev().find_map(|step| Some((step, step.tpcc.as_ref()?)))
}

/// New orders a minute of each step, in sentences.
pub fn headline(summary: &Summary) -> Vec<String> {
    let sentence = |step: &StepSummary| {
        let tpcc = step.tpcc.as_ref()?;
        let per_minute = |x: f64| number(x);
        let ends = match (tpcc.notpm.low, tpcc.notpm.high) {
            (Some(low), Some(high)) => format!(" ({} to {})", per_minute(low), per_minute(high)),
            _ => String::new(),
        };
        Some(format!(
            "{} NOTPM{ends} with {} connections: new orders a minute, {}.",
            per_minute(tpcc.notpm.value),
            step.connections,
            tpcc.label
        ))
    };
    summary.steps.iter().filter_map(sentence).collect()
}

/// One row for each kind of transaction.
pub fn transactions(tpcc: &TpccSummary) -> Sheet {
    let all = &tpcc.transactions;
    let time = |of: &LatencySummary, name: &str| {
        of.percentiles.get(name).map_or("–".to_owned(), |estimate| us(estimate.value))
    };
    let low_high = |of: &LatencySummary| {
        of.percentiles.get("p90").and_then(|p90| interval(Unit::Us, p90)).unwrap_or_else(|| "–".to_owned())
    };
    let mut sheet = Sheet::default();
    sheet.column("transaction", 0, all.iter().map(|t| t.name.clone()));
    sheet.column("count", 1, all.iter().map(|t| number(t.count as f64)));
    sheet.column("share", 0, all.iter().map(|t| percent(t.share)));
    sheet.column("response p90", 0, all.iter().map(|t| time(&t.response_us, "p90")));
    sheet.column("low–high", 4, all.iter().map(|t| low_high(&t.response_us)));
    sheet.column("p95", 0, all.iter().map(|t| time(&t.response_us, "p95")));
    sheet.column("service p90", 2, all.iter().map(|t| time(&t.service_us, "p90")));
    sheet.column("p95", 3, all.iter().map(|t| time(&t.service_us, "p95")));
    sheet
}

/// One row for each rule of the specification.
pub fn requirements(tpcc: &TpccSummary) -> Sheet {
    let all = &tpcc.requirements;
    let holds = |rule: &TpccRequirement| match rule.holds {
        Some(true) => "holds",
        Some(false) => "does not hold",
        None if rule.found == "none" => "not counted",
        None => "too few to tell",
    };
    let mut sheet = Sheet::default();
    sheet.column("rule of the specification", 0, all.iter().map(|r| r.rule.clone()));
    sheet.column("required", 1, all.iter().map(|r| r.required.clone()));
    sheet.column("found", 0, all.iter().map(|r| r.found.clone()));
    sheet.column("", 0, all.iter().map(|r| holds(r).to_owned()));
    sheet
}
