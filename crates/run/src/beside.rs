//! Diagnoses a step from the samples taken during the load.

use mydyno_judge::diagnosis::{Rules, diagnose};
use mydyno_model::record::{Interval, RunRecord};
use mydyno_model::sample::Sample;
use mydyno_model::summary::StepDiagnosis;
use mydyno_samples::series::Series;
use time::OffsetDateTime;

use crate::samples_in::inside;

/// Sessions of mydyno that idle while the load runs and are no part of it.
const IDLE_SESSIONS: f64 = 1.0;

/// The bottlenecks in the measured windows of a step; `None` without samples of the server's counters.
pub fn diagnose_step(record: &RunRecord, windows: &[&Interval]) -> Option<StepDiagnosis> {
    let rules = Rules::embedded().ok()?;
    // The wall clock appears only in the times of the intervals, which the summary does not keep.
    let mut series = Series::new(OffsetDateTime::UNIX_EPOCH, mydyno_samples::Interval::SECOND.seconds());
    let intervals: Vec<_> = inside(record, windows)
        .filter(|sample| sample.values.contains_key("server.status.uptime"))
        .filter_map(|sample| series.push(of_server(sample)))
        .collect();
    if intervals.is_empty() {
        return None;
    }
    let found = diagnose(&rules, &intervals);
    Some(StepDiagnosis {
        over_s: found.over_s,
        intervals: found.intervals,
        bottlenecks: found.bottlenecks,
        not_said: found.not_said,
    })
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
