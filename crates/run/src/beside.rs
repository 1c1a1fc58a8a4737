//! Diagnoses a step from the samples taken during the load.

use std::collections::BTreeMap;

use mydyno_judge::diagnosis::{Rules, diagnose, pooled};
use mydyno_model::diagnosis::Diagnosis;
use mydyno_model::document::Header;
use mydyno_model::record::{Interval, RunRecord};
use mydyno_model::sample::Sample;
use mydyno_model::summary::{ServerDetails, StepDiagnosis};
use mydyno_model::watch::WatchInterval;
use mydyno_samples::series::Series;
use time::OffsetDateTime;

use crate::samples_in::{inside, measured};

/// Sessions of mydyno that idle while the load runs and are no part of it.
const IDLE_SESSIONS: f64 = 1.0;

/// Intervals with the figures of the samples inside the measured windows of a step; none without samples of the server's counters.
pub fn intervals_of(record: &RunRecord, windows: &[&Interval]) -> Vec<WatchInterval> {
    // The wall clock appears only in the times of the intervals, which the summary does not keep.
    let mut series = Series::new(OffsetDateTime::UNIX_EPOCH, mydyno_samples::Interval::SECOND.seconds());
    inside(record, windows)
        .filter(|sample| sample.values.contains_key("server.status.uptime"))
        .filter_map(|sample| series.push_with(sample.at_s, || of_server(sample)))
        .collect()
}

/// The bottlenecks in the intervals of a step; `None` without any.
pub fn diagnose_step(intervals: &[WatchInterval]) -> Option<StepDiagnosis> {
    if intervals.is_empty() {
        return None;
    }
    let rules = Rules::embedded().ok()?;
    let found = diagnose(&rules, intervals);
    Some(StepDiagnosis {
        over_s: found.over_s,
        intervals: found.intervals,
        budget: found.budget,
        bottlenecks: found.bottlenecks,
        not_said: found.not_said,
    })
}

/// Figures that the summary of a step has the means of, by the start of their names.
const KEPT: [&str; 3] = ["innodb.", "server.waits.", "server.replica."];

/// The part of the running sessions that the counted statements explain at least where they are kept.
const LEAST_COUNTED: f64 = 0.1;

/// The server's own statistics in the intervals of a step; `None` where there are none of InnoDB, waits and statements.
pub fn details_of(intervals: &[WatchInterval]) -> Option<ServerDetails> {
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for interval in intervals {
        for (name, value) in &interval.figures {
            if KEPT.iter().any(|start| name.starts_with(start)) {
                let (sum, over_s) = sums.entry(name).or_default();
                *sum += value * interval.over_s;
                *over_s += interval.over_s;
            }
        }
    }
    let figures = sums.into_iter().map(|(name, (sum, over_s))| (name.to_owned(), sum / over_s)).collect();
    let running = intervals.iter().filter_map(|i| i.figures.get("server.threads_running")).copied();
    let (sum, count) = running.fold((0.0, 0.0), |(sum, count), running| (sum + running, count + 1.0));
    let mut statements = pooled::statements(intervals);
    // Where the server counts no prepared statements, those that are left are mydyno's own.
    let counted: f64 = statements.iter().map(|statement| statement.threads).sum();
    if counted * count < LEAST_COUNTED * sum {
        statements.clear();
    }
    let found = ServerDetails { figures, waits: pooled::waits(intervals), statements };
    let is_empty = found.figures.is_empty() && found.waits.is_empty() && found.statements.is_empty();
    (!is_empty).then_some(found)
}

/// The diagnosis of all measured windows of a run together; `None` without samples of the server's counters in them.
pub fn diagnose_run(record: &RunRecord, now: OffsetDateTime) -> Option<Diagnosis> {
    let steps = 0..record.steps().len();
    let intervals: Vec<WatchInterval> =
        steps.flat_map(|step| intervals_of(record, &measured(record, step))).collect();
    if intervals.is_empty() {
        return None;
    }
    let rules = Rules::embedded().ok()?;
    Some(Diagnosis { header: Header::of::<Diagnosis>(now), ..diagnose(&rules, &intervals) })
}

/// The sample without values that do not concern the loaded server: mydyno's idle session, and this host where the
/// server's process is not visible, since the host may be the load generator's only.
fn of_server(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    if !sample.values.contains_key("server.cpu.user_s") {
        sample.values.retain(|name, _| !name.starts_with("host."));
    }
    for name in ["server.status.threads_connected", "server.sessions.sleeping_now"] {
        if let Some(value) = sample.values.get_mut(name) {
            *value = (*value - IDLE_SESSIONS).max(0.0);
        }
    }
    sample
}
