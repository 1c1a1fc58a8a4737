//! Derives the summary of a run from its record alone, of any age and also after a kill.

use std::collections::BTreeMap;

use mydyno_model::Header;
use mydyno_model::plan::StepPlan;
use mydyno_model::record::{ClientUse, EventKind, Interval, Phase, RunRecord};
use mydyno_model::summary::{
    AttemptSummary, BoundSummary, CapacitySummary, CapacityTrial, ClientSummary, OperationSummary,
    ServerSummary, StepSummary, Summary, Throughput,
};
use mydyno_stats::interval;
use serde_json::Map;
use time::OffsetDateTime;

use crate::bound::Bound;
use crate::capacity::Search;
use crate::operation::{latency, operation_summary, time_s};
use crate::samples_in::{measured, samples_within, windows_of};
use crate::{beside, due, repeats, spikes, tpcc, warnings};

/// Derives the summary.
pub fn summarise(record: &RunRecord, now: OffsetDateTime) -> Summary {
    let plan = &record.manifest.plan;
    let planned = record.steps();
    let mut steps: Vec<StepSummary> = planned
        .iter()
        .enumerate()
        .filter_map(|(number, step)| summarise_step(record, number, step))
        .collect();
    let end = record.end();
    let capacity = Search::of(plan).map(|search| search.summarise(&steps, &end));
    for step in &mut steps {
        step.warnings = warnings::of_step(record, step);
    }
    let mut all = warnings::of_run(record, &end);
    all.extend(steps.iter().flat_map(|s| s.warnings.iter().cloned()));
    let bounds = bounds(&plan.fail_if, &steps, capacity.as_ref());
    Summary {
        header: Header::of::<Summary>(now),
        run: record.manifest.run.clone(),
        workload: plan.workload.name.clone(),
        target: plan.target.clone(),
        server_version: record
            .facts
            .as_ref()
            .and_then(|f| f.text("server.version"))
            .unwrap_or_default()
            .to_owned(),
        end,
        // A search repeats uncertain rates, so its repeats are no random sample.
        points: if plan.capacity.is_none() {
            repeats::points(&planned, plan.time_s, &steps)
        } else {
            Vec::new()
        },
        steps,
        capacity,
        bounds,
        warnings: all,
        fingerprint: record.manifest.fingerprint.clone(),
        extra: Map::new(),
    }
}

/// The results of bounds. A search for the highest rate measures beyond them on purpose, so they apply to the claimed
/// rate.
fn bounds(
    fail_if: &[String],
    steps: &[StepSummary],
    capacity: Option<&CapacitySummary>,
) -> Vec<BoundSummary> {
    let applies = |step: &&StepSummary| {
        capacity.is_none_or(|capacity| {
            let held = |t: &CapacityTrial| t.step == step.step && t.broken.is_empty();
            capacity.rate_per_s.is_some()
                && step.rate == capacity.rate_per_s
                && capacity.trials.iter().any(held)
        })
    };
    let bounds = fail_if.iter().filter_map(|text| Bound::parse_recorded(text).ok());
    bounds.flat_map(|bound| steps.iter().filter(applies).map(move |step| bound.summarise(step))).collect()
}

/// One step; `None` when nothing of it was measured.
pub(crate) fn summarise_step(record: &RunRecord, number: usize, step: &StepPlan) -> Option<StepSummary> {
    let windows = measured(record, number);
    let warmup = windows_of(record, number, Phase::Warmup);
    let operations = &record.manifest.operations;
    let transaction = operations.first()?;
    if windows.is_empty() {
        return None;
    }
    let qs = &record.manifest.plan.percentiles;
    let widths_s: Vec<f64> = windows.iter().map(|w| w.width_s).collect();
    let window_s = time_s(&windows);
    let total = |of: fn(&Interval) -> u64| windows.iter().map(|w| of(w)).sum::<u64>();
    let throughput = |of: fn(&Interval) -> u64| {
        interval::throughput(&windows.iter().map(|w| of(w)).collect::<Vec<_>>(), &widths_s)
    };
    let queries = total(|w| w.queries);
    let beside = beside::intervals_of(record, &windows);
    let transactions: Vec<u64> = windows.iter().map(|w| w.transactions).collect();
    let summaries: Vec<OperationSummary> =
        operations.iter().map(|info| operation_summary(info, &windows, qs)).collect();
    let headline = summaries.first()?.clone();
    debug_assert_eq!(headline.name, transaction.name);
    Some(StepSummary {
        step: number,
        connections: step.connections,
        workers: step.workers,
        rate: step.arrivals.rate_per_s(),
        arrivals: step.arrivals.clone(),
        repeat: step.repeat,
        warmup_s: warmup.iter().map(|w| w.width_s).sum(),
        window_s,
        transactions: total(|w| w.transactions),
        queries,
        errors: errors(&windows),
        retries: total(|w| w.retries),
        attempts: attempts(&windows, qs),
        reconnects: total(|w| w.reconnects),
        due: due::summarise(&warmup, &windows),
        throughput: Throughput {
            transactions_per_s: throughput(|w| w.transactions),
            queries_per_s: throughput(|w| w.queries),
        },
        response_us: headline.response_us,
        service_us: headline.service_us,
        lateness_us: latency(windows.iter().map(|w| Some(&w.lateness)), qs, window_s),
        connect_us: Some(latency(windows.iter().map(|w| Some(&w.connect)), qs, window_s))
            .filter(|c| c.count > 0),
        operations: summaries,
        tpcc: tpcc::summarise(&record.manifest.plan.workload.name, &windows),
        client: client_summary(&windows, queries, step.workers, window_s),
        server: ServerSummary {
            cpu_us_per_query: server_cpu_us_per_query(record, &windows, queries, window_s),
        },
        spikes: spikes::of_step(&transaction.name, &windows, &beside),
        diagnosis: beside::diagnose_step(&beside),
        details: beside::details_of(&beside),
        steady: interval::steadiness(&transactions, &widths_s).steady,
        warnings: Vec::new(),
        extra: Map::new(),
    })
}

fn attempts(windows: &[&Interval], qs: &[f64]) -> Option<AttemptSummary> {
    let total = |of: fn(&Interval) -> u64| windows.iter().map(|w| of(w)).sum::<u64>();
    let (good, retries) = (total(|w| w.transactions), total(|w| w.retries));
    let attempts = good + total(|w| w.arrivals.failed) + retries;
    (retries > 0).then(|| AttemptSummary {
        attempts,
        goodput: good as f64 / attempts as f64,
        retried_us: latency(windows.iter().map(|w| Some(&w.retried)), qs, time_s(windows)),
    })
}

fn errors(windows: &[&Interval]) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for (code, count) in windows.iter().flat_map(|w| &w.errors) {
        *errors.entry(code.clone()).or_insert(0) += count;
    }
    errors
}

fn client_summary(windows: &[&Interval], queries: u64, workers: usize, window_s: f64) -> ClientSummary {
    let total = |of: fn(&ClientUse) -> u64| windows.iter().map(|w| of(&w.client)).sum::<u64>() as f64;
    let per_query = |x: f64| if queries > 0 { x / queries as f64 } else { 0.0 };
    let (user_us, system_us, waits) = (total(|c| c.user_us), total(|c| c.system_us), total(|c| c.waits));
    ClientSummary {
        cpu_user_us_per_query: per_query(user_us),
        cpu_system_us_per_query: per_query(system_us),
        // Separate threads open connections.
        cpu_share_of_workers: (user_us + system_us - total(|c| c.opening_us))
            / 1e6
            / (window_s * workers.max(1) as f64),
        resident_bytes: windows.iter().map(|w| w.client.resident_bytes).max().unwrap_or(0),
        threads: windows.iter().map(|w| w.client.threads).max().unwrap_or(0),
        queries_per_wait: if waits > 0.0 { queries as f64 / waits } else { 0.0 },
        switches_per_query: per_query(total(|c| c.voluntary_switches)),
    }
}

/// The server's CPU time over the samples inside the measured window, divided by the statements of the same time.
/// `None` where its process is not visible or the samples cover less than a third of the window.
fn server_cpu_us_per_query(
    record: &RunRecord,
    windows: &[&Interval],
    queries: u64,
    window_s: f64,
) -> Option<f64> {
    let (first, last) = samples_within(record, windows)?;
    let cpus = mydyno_samples::rates::Rates::between(first, last).server_cpus?;
    (queries > 0 && last.at_s - first.at_s >= window_s / 3.0).then(|| cpus * 1e6 * window_s / queries as f64)
}

/// Warnings that were recorded during the run.
pub(crate) fn written_warnings(record: &RunRecord) -> Vec<mydyno_model::Warning> {
    let warnings = record.events.iter().filter_map(|event| match &event.what {
        EventKind::Warning(warning) => Some(warning.clone()),
        _ => None,
    });
    warnings.collect()
}
