//! What the user asks for, as text, and the plan that it resolves to, with all errors at once.

use mydyno_model::Header;
use mydyno_model::plan::{Allow, Arrivals, ConnectionPlan, Plan, StepPlan, TargetPlan, Warmup, WorkloadPlan};
use mydyno_model::units::{UnitError, parse_counts, parse_duration};
use mydyno_workload::catalogue::{Spec, UnknownWorkload};
use mydyno_workload::{OptionError, Options};
use thiserror::Error;
use time::OffsetDateTime;

use crate::bound::{Bound, BoundError};

/// Connections when none are asked for.
pub const CONNECTIONS: &str = "16";
/// Warm-up when none is asked for.
pub const WARMUP: &str = "5s";
/// Measured window when none is asked for.
pub const TIME: &str = "30s";
/// Percentiles when none are asked for.
pub const PERCENTILES: &str = "50,95,99,99.9";
/// Database when none is asked for.
pub const DATABASE: &str = "mydyno";
/// Seed when none is given: runs repeat unless asked otherwise.
pub const SEED: u64 = 1;

/// More connections than any server takes.
const MOST_CONNECTIONS: usize = 100_000;

/// Longest warm-up and longest window, in seconds: a week.
const LONGEST_S: f64 = 7.0 * 86_400.0;

/// What the user asks for, as it was typed; `None` takes the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Workload.
    pub workload: String,
    /// Its options by name.
    pub options: Vec<(String, String)>,
    /// List of connections.
    pub connections: Option<String>,
    /// Worker threads.
    pub workers: Option<String>,
    /// Measured window.
    pub time: Option<String>,
    /// Warm-up.
    pub warmup: Option<String>,
    /// Seed.
    pub seed: Option<u64>,
    /// Database.
    pub database: Option<String>,
    /// Percentiles.
    pub percentiles: Option<String>,
    /// Bounds.
    pub fail_if: Vec<String>,
    /// No samples.
    pub no_observe: bool,
    /// Load on a server that others use.
    pub allow_load: bool,
}

/// What a request comes to.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The plan.
    pub plan: Plan,
    /// The workload's description.
    pub spec: &'static Spec,
    /// Its options.
    pub options: Options,
    /// Bounds that turn the exit status into 1.
    pub bounds: Vec<Bound>,
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PlanError {
    /// No such workload.
    #[error(transparent)]
    Workload(#[from] UnknownWorkload),
    /// An option of the workload.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A duration or list.
    #[error("--{option}: {source}")]
    Unit {
        /// The option.
        option: &'static str,
        /// What is wrong with its value.
        source: UnitError,
    },
    /// A bound.
    #[error("--fail-if: {0}")]
    Bound(#[from] BoundError),
    /// Anything else: the option and what is wrong.
    #[error("--{option}: {problem}")]
    Value {
        /// The option.
        option: &'static str,
        /// What is wrong and what is expected.
        problem: String,
    },
}

fn value(option: &'static str, problem: impl Into<String>) -> PlanError {
    PlanError::Value { option, problem: problem.into() }
}

/// Resolves a request against a target. `cpus` is what this process may use.
///
/// # Errors
/// Everything that is wrong with it.
pub fn resolve(
    request: &Request,
    target: TargetPlan,
    cpus: usize,
    now: OffsetDateTime,
) -> Result<Resolved, Vec<PlanError>> {
    let mut errors = Vec::new();
    let found = workload(request, &mut errors);
    let connections = connections(request, &mut errors);
    let workers = workers(request, &mut errors);
    let mut seconds = |option: &'static str, text: &Option<String>, default: &str| {
        let parsed = parse_duration(text.as_deref().unwrap_or(default));
        parsed
            .map_err(|source| errors.push(PlanError::Unit { option, source }))
            .map_or(0.0, |d| d.as_secs_f64())
    };
    let time_s = seconds("time", &request.time, TIME);
    let warmup_s = seconds("warmup", &request.warmup, WARMUP);
    for (option, given_s) in [("time", time_s), ("warmup", warmup_s)] {
        if given_s > LONGEST_S {
            errors.push(value(option, "longer than 7d: repeat the run instead"));
        }
    }
    if time_s < 1.0 && !errors.iter().any(|e| matches!(e, PlanError::Unit { option: "time", .. })) {
        errors.push(value(
            "time",
            "the measured window must be at least 1s; ten seconds and more give intervals",
        ));
    }
    let mut percentiles = percentiles(request, &mut errors);
    let database = request.database.clone().unwrap_or_else(|| DATABASE.to_owned());
    if let Err(problem) = check_database(&database) {
        errors.push(value("schema", problem));
    }
    let bounds: Vec<Bound> = request
        .fail_if
        .iter()
        .filter_map(|text| Bound::parse(text).map_err(|e| errors.push(e.into())).ok())
        .collect();
    // A bound is about a percentile that the summary then has.
    percentiles.extend(bounds.iter().filter_map(Bound::percentile));
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let Some((spec, options)) = found.filter(|_| errors.is_empty()) else { return Err(errors) };
    let plan = Plan {
        header: Header::of::<Plan>(now),
        workload: WorkloadPlan { name: spec.name.to_owned(), options: options.values().clone() },
        target,
        steps: connections
            .into_iter()
            .map(|connections| StepPlan {
                connections,
                workers: workers.unwrap_or_else(|| default_workers(cpus)).min(connections),
                arrivals: Arrivals::CLOSED,
                repeat: 0,
            })
            .collect(),
        order: Vec::new(),
        connections: ConnectionPlan::default(),
        stop_on_error: None,
        capacity: None,
        warmup: Warmup::Fixed { time_s: warmup_s },
        time_s,
        seed: request.seed.unwrap_or(SEED),
        database,
        percentiles,
        observe: !request.no_observe,
        allow: Allow { load: request.allow_load },
        fail_if: request.fail_if.clone(),
        extra: serde_json::Map::new(),
    };
    Ok(Resolved { plan, spec, options, bounds })
}

/// Two workers answer sooner than one where connections are few; beyond that a worker drives what eight CPUs of a
/// server can answer, so more would only take the server's CPUs. See docs/journal/load-engine.md.
fn default_workers(cpus: usize) -> usize {
    (cpus / 8).clamp(2, 16).min(cpus.max(1))
}

fn workload(request: &Request, errors: &mut Vec<PlanError>) -> Option<(&'static Spec, Options)> {
    let spec = mydyno_workload::find(&request.workload).map_err(|e| errors.push(e.into())).ok()?;
    match Options::resolve(spec.name, spec.options, &request.options) {
        Ok(options) => match mydyno_workload::catalogue::check(spec, &options) {
            Ok(()) => Some((spec, options)),
            Err(problems) => {
                errors.extend(problems.into_iter().map(PlanError::from));
                None
            }
        },
        Err(problems) => {
            errors.extend(problems.into_iter().map(PlanError::from));
            None
        }
    }
}

fn connections(request: &Request, errors: &mut Vec<PlanError>) -> Vec<usize> {
    match parse_counts(request.connections.as_deref().unwrap_or(CONNECTIONS)) {
        Ok(list) => {
            if let Some(most) = list.iter().max().filter(|n| **n > MOST_CONNECTIONS) {
                errors.push(value("connections", format!("{most} is too many, at most {MOST_CONNECTIONS}")));
            }
            list
        }
        Err(source) => {
            errors.push(PlanError::Unit { option: "connections", source });
            Vec::new()
        }
    }
}

fn workers(request: &Request, errors: &mut Vec<PlanError>) -> Option<usize> {
    let text = request.workers.as_deref()?;
    let workers = text.trim().parse().ok().filter(|n| (1..=1024).contains(n));
    if workers.is_none() {
        errors.push(value("workers", format!("{text:?} is not a number of threads from 1 to 1024")));
    }
    workers
}

fn percentiles(request: &Request, errors: &mut Vec<PlanError>) -> Vec<f64> {
    let text = request.percentiles.as_deref().unwrap_or(PERCENTILES);
    let parsed: Option<Vec<f64>> = text
        .split(',')
        .map(|p| p.trim().parse::<f64>().ok().filter(|p| (0.0..100.0).contains(p) && *p > 0.0))
        .collect();
    match parsed {
        Some(mut list) => {
            list.sort_by(f64::total_cmp);
            list.dedup();
            list
        }
        None => {
            let problem =
                format!("{text:?} is not a list of numbers above 0 and below 100 like {PERCENTILES}");
            errors.push(value("percentiles", problem));
            Vec::new()
        }
    }
}

/// Whether a percentile has a name of its own in documents (p95, p999): below 10 only whole ones do.
pub(crate) fn is_percentile(percent: f64) -> bool {
    let whole = percent.fract() == 0.0;
    (1.0..=99.9999).contains(&percent) && (whole || percent >= 10.0)
}

/// Databases that belong to the server.
const SYSTEM_DATABASES: &[&str] = &["mysql", "information_schema", "performance_schema", "sys"];

fn check_database(name: &str) -> Result<(), String> {
    if SYSTEM_DATABASES.iter().any(|system| system.eq_ignore_ascii_case(name)) {
        return Err(format!("{name:?} belongs to the server: name one that mydyno may make"));
    }
    let fits = !name.is_empty() && name.chars().count() <= 64 && !name.ends_with(' ');
    let clean = !name.chars().any(|c| c.is_control() || matches!(c, '/' | '\\' | '.'));
    if fits && clean {
        Ok(())
    } else {
        Err(format!("{name:?} is not a name of 1 to 64 characters without / \\ . and control characters"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::plan::{TargetKind, Transport};

    fn target() -> TargetPlan {
        TargetPlan {
            kind: TargetKind::Server,
            transport: Transport::Unix,
            address: "/s".to_owned(),
            user: "root".to_owned(),
        }
    }

    fn resolve_on_two_cpus(request: &Request) -> Result<Resolved, Vec<PlanError>> {
        resolve(request, target(), 2, OffsetDateTime::UNIX_EPOCH)
    }

    #[test]
    fn all_errors_of_a_request_are_told_at_once() {
        let text = |t: &str| Some(t.to_owned());
        let request = Request {
            workload: "oltp_read_rite".to_owned(),
            connections: text("1,none"),
            time: text("soon"),
            percentiles: text("101"),
            database: text("mysql"),
            workers: text("0"),
            fail_if: vec!["p99".to_owned()],
            ..Request::default()
        };
        let errors = resolve_on_two_cpus(&request).unwrap_err();
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(texts.len(), 7, "{texts:#?}");
        assert!(texts[0].contains("did you mean oltp_read_write?"), "{}", texts[0]);
    }

    #[test]
    fn defaults_stand_in_the_plan() {
        let request = Request { workload: "oltp_point_select".to_owned(), ..Request::default() };
        let plan = resolve_on_two_cpus(&request).unwrap().plan;
        assert_eq!((plan.steps.len(), plan.steps[0].connections, plan.steps[0].workers), (1, 16, 2));
        assert_eq!((plan.time_s, plan.warmup, plan.seed), (30.0, Warmup::Fixed { time_s: 5.0 }, 1));
        assert_eq!(plan.workload.options["table-size"], 10_000);
        assert_eq!(plan.percentiles, [50.0, 95.0, 99.0, 99.9]);
    }

    #[test]
    fn no_step_has_more_workers_than_connections() {
        let request = Request {
            workload: "oltp_point_select".to_owned(),
            connections: Some("1,4".to_owned()),
            workers: Some("3".to_owned()),
            ..Request::default()
        };
        let plan = resolve_on_two_cpus(&request).unwrap().plan;
        assert_eq!(plan.steps.iter().map(|s| s.workers).collect::<Vec<_>>(), [1, 3]);
    }
}
