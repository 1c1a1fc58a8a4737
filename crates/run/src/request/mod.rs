//! What the user asks for, as text, and the plan that it resolves to, with all errors at once.

mod arrivals;
mod keeping;
mod sweep;

use std::time::Duration;

use mydyno_model::Header;
use mydyno_model::plan::{
    Allow, Arrivals, Backend, CapacityPlan, Plan, Spacing, Spread, TargetPlan, Think, Warmup, WorkloadPlan,
};
use mydyno_model::units::{UnitError, parse_counts, parse_duration};
use mydyno_workload::catalogue::{self, Spec, UnknownWorkload};
use mydyno_workload::{OptionError, Options};
use thiserror::Error;
use time::OffsetDateTime;

use crate::bound::{Bound, BoundError};
use crate::capacity::{RequirementError, Requirements};

/// Connections when none are asked for.
pub const CONNECTIONS: &str = "16";
/// Warm-up when none is asked for.
pub const WARMUP: &str = "5s";
/// Measured window when none is asked for.
pub const TIME: &str = "60s";
/// Longest warm-up of `--warmup auto`.
pub const WARMUP_LIMIT_S: f64 = 60.0;
/// How close the search for capacity comes when nothing else is asked for.
pub const RESOLUTION: &str = "5%";
/// Percentiles when none are asked for.
pub const PERCENTILES: &str = "50,95,99,99.9";
/// Database when none is asked for.
pub const DATABASE: &str = "mydyno";
/// Seed when none is given: runs repeat unless asked otherwise.
pub const SEED: u64 = 1;

/// More connections than any server takes.
const MOST_CONNECTIONS: usize = 100_000;

/// More repeats than anybody waits for.
const MOST_REPEATS: usize = 1000;

/// Steps of a search for capacity at most, the closed loop that it may begin with included: twice what an ordinary
/// search takes.
const MOST_SEARCH_STEPS: usize = 30;

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
    /// List of rates of an open loop.
    pub rate: Option<String>,
    /// A rate that grows, as in `100..5000`.
    pub ramp: Option<String>,
    /// Rates and their times, as in `500:20s,1000:20s`.
    pub rate_steps: Option<String>,
    /// Spacing of an open loop's arrivals.
    pub arrivals: Option<String>,
    /// Think time of a closed loop.
    pub think: Option<String>,
    /// How often each point of the sweep is measured.
    pub repeat: Option<String>,
    /// Steps run as they are listed.
    pub no_shuffle: bool,
    /// Transactions that a connection lives.
    pub reconnect_every: Option<String>,
    /// Connections that are open and silent.
    pub idle: Option<String>,
    /// Connections opened a second.
    pub connect_rate: Option<String>,
    /// Lost connections are not opened again.
    pub no_reconnect: bool,
    /// The first error ends the run.
    pub stop_on_error: bool,
    /// Codes that do not.
    pub ignore_errors: Option<String>,
    /// What must hold at the highest rate that is searched for.
    pub find_capacity: Option<String>,
    /// How close that search comes.
    pub resolution: Option<String>,
    /// Worker threads.
    pub workers: Option<String>,
    /// What tells the load generator of answers.
    pub backend: Option<String>,
    /// How long answers gather.
    pub coalesce: Option<String>,
    /// Scheduling policy of the load generator's threads.
    pub scheduling: Option<String>,
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
    /// Statements of the user's that may write where mydyno did not make the tables.
    pub allow_write: bool,
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
    /// What must hold at the highest rate that is searched for.
    pub requirements: Option<Requirements>,
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
    /// A requirement.
    #[error("--find-capacity: {0}")]
    Requirement(#[from] RequirementError),
    /// Anything else: the option and what is wrong.
    #[error("--{option}: {problem}")]
    Value {
        /// The option.
        option: &'static str,
        /// What is wrong and what is expected.
        problem: String,
    },
}

/// What is wrong, as it is found.
#[derive(Debug, Default)]
struct Faults(Vec<PlanError>);

impl Faults {
    fn value(&mut self, option: &'static str, problem: impl Into<String>) {
        self.0.push(PlanError::Value { option, problem: problem.into() });
    }

    /// The value of a text that can be read; one that cannot is noted.
    fn unit<T>(&mut self, option: &'static str, parsed: Result<T, UnitError>) -> Option<T> {
        parsed.map_err(|source| self.0.push(PlanError::Unit { option, source })).ok()
    }

    /// A whole number within bounds; `None` when nothing was asked for or it cannot be read, which is noted.
    fn count(
        &mut self,
        option: &'static str,
        text: Option<&String>,
        within: std::ops::RangeInclusive<usize>,
        what: &str,
    ) -> Option<usize> {
        let text = text?;
        let found = text.trim().parse().ok().filter(|n| within.contains(n));
        if found.is_none() {
            self.value(option, format!("{text:?} is not {what} from {} to {}", within.start(), within.end()));
        }
        found
    }
}

/// What of this machine the defaults go by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// The cheapest event loop that the kernel permits.
    pub backend: Backend,
}

/// Resolves a request against a target.
///
/// # Errors
/// Everything that is wrong with it.
pub fn resolve(
    request: &Request,
    target: TargetPlan,
    machine: Machine,
    now: OffsetDateTime,
) -> Result<Resolved, Vec<PlanError>> {
    let mut faults = Faults::default();
    let found = workload(request, &mut faults.0);
    let connections = connections(request, &mut faults);
    let workers = faults.count("workers", request.workers.as_ref(), 1..=1024, "a number of threads");
    let asked = arrivals::asked(request, &mut faults);
    let repeats = faults.count("repeat", request.repeat.as_ref(), 1..=MOST_REPEATS, "a number of repeats");
    let time_s = time_s(request, asked.time_s, &mut faults);
    let warmup = warmup(request, &mut faults);
    let connecting = keeping::connecting(request, &mut faults);
    let mut wait = keeping::wait(request, machine.backend, &mut faults);
    let scheduling = keeping::scheduling(request, &mut faults);
    let stop_on_error = keeping::stop_on_error(request, &mut faults);
    let requirements = requirements(request, &mut faults);
    let capacity = capacity(request, &requirements, &asked.arrivals, &connections, &mut faults);
    let mut percentiles = percentiles(request, &mut faults);
    let database = database(request, found.as_ref(), &mut faults);
    let bounds: Vec<Bound> = request
        .fail_if
        .iter()
        .filter_map(|text| Bound::parse(text).map_err(|e| faults.0.push(e.into())).ok())
        .collect();
    // Warnings about waits go by these two.
    percentiles.extend([50.0, 99.0]);
    // A bound is about a percentile that the summary then has.
    percentiles.extend(bounds.iter().filter_map(Bound::percentile));
    percentiles.extend(requirements.iter().flat_map(Requirements::percentiles));
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let Some((spec, options)) = found.filter(|_| faults.0.is_empty()) else { return Err(faults.0) };
    let workers =
        |connections| workers.unwrap_or_else(|| default_workers(machine.cpus, connections, wait.backend));
    let points = match &capacity {
        // The search begins with a closed loop where no first rate is given, and adds its steps as it goes.
        Some(_) => vec![Arrivals::CLOSED],
        None => asked.arrivals,
    };
    let mut steps = sweep::steps(&connections, workers, &points, repeats.unwrap_or(1));
    if let (Some(CapacityPlan { from_per_s: Some(rate), spacing, .. }), Some(first)) =
        (&capacity, steps.first_mut())
    {
        first.arrivals = Arrivals::open(*rate, *spacing);
    }
    let pause = Think { mean_s: catalogue::think_s(spec, &options), spread: Spread::Constant };
    for step in &mut steps {
        if let Arrivals::Closed { think: think @ None } = &mut step.arrivals {
            *think = (pause.mean_s > 0.0).then_some(pause);
        }
    }
    wait.scheduling = scheduling.unwrap_or_else(|| keeping::scheduling_for(&steps, capacity.is_some()));
    let seed = request.seed.unwrap_or(SEED);
    let shuffled = !request.no_shuffle && steps.len() > 1;
    let plan = Plan {
        header: Header::of::<Plan>(now),
        workload: WorkloadPlan { name: spec.name.to_owned(), options: options.values().clone() },
        target,
        order: if shuffled { sweep::order(&steps, seed) } else { Vec::new() },
        steps,
        connections: connecting,
        wait,
        stop_on_error,
        capacity,
        warmup,
        time_s,
        seed,
        database,
        percentiles,
        observe: !request.no_observe,
        allow: Allow { load: request.allow_load, write: request.allow_write },
        fail_if: request.fail_if.clone(),
        extra: serde_json::Map::new(),
    };
    Ok(Resolved { plan, spec, options, bounds, requirements })
}

/// The database: the named one, mydyno's own, or none for statements on tables that are there, which may name theirs.
fn database(request: &Request, found: Option<&(&Spec, Options)>, faults: &mut Faults) -> String {
    let Some(name) = &request.database else {
        let brings = found.is_none_or(|(spec, options)| catalogue::brings_tables(spec, options));
        return if brings { DATABASE.to_owned() } else { String::new() };
    };
    if let Err(problem) = check_database(name) {
        faults.value("schema", problem);
    }
    name.clone()
}

/// Length of the measured window.
fn time_s(request: &Request, by_steps: Option<f64>, faults: &mut Faults) -> f64 {
    if let Some(by_steps) = by_steps {
        if request.time.is_some() {
            faults.value("time", "is what the times of --rate-steps make together: leave it out");
        }
        if by_steps > LONGEST_S {
            faults.value("rate-steps", "longer than 7d: repeat the run instead");
        }
        return by_steps;
    }
    let Some(time) = faults.unit("time", parse_duration(request.time.as_deref().unwrap_or(TIME))) else {
        return 1.0;
    };
    if time < Duration::from_secs(1) {
        faults.value("time", "the measured window must be at least 1s; 16 seconds and more give intervals");
    }
    bounded("time", time.as_secs_f64(), faults)
}

fn bounded(option: &'static str, time_s: f64, faults: &mut Faults) -> f64 {
    if time_s > LONGEST_S {
        faults.value(option, "longer than 7d: repeat the run instead");
    }
    time_s
}

/// A time, `auto`, or `auto:` and the longest time.
fn warmup(request: &Request, faults: &mut Faults) -> Warmup {
    let text = request.warmup.as_deref().unwrap_or(WARMUP).trim();
    let seconds = |text: &str, faults: &mut Faults| {
        let time = faults.unit("warmup", parse_duration(text)).unwrap_or_default();
        bounded("warmup", time.as_secs_f64(), faults)
    };
    match text.split_once(':') {
        _ if text == "auto" => Warmup::Steady { limit_s: WARMUP_LIMIT_S },
        Some(("auto", limit)) => Warmup::Steady { limit_s: seconds(limit, faults) },
        _ => Warmup::Fixed { time_s: seconds(text, faults) },
    }
}

fn requirements(request: &Request, faults: &mut Faults) -> Option<Requirements> {
    let parsed = Requirements::parse(request.find_capacity.as_deref()?);
    parsed.map_err(|e| faults.0.push(e.into())).ok()
}

/// What the search for the highest rate goes by, and what does not go with one.
fn capacity(
    request: &Request,
    requirements: &Option<Requirements>,
    arrivals: &[Arrivals],
    connections: &[usize],
    faults: &mut Faults,
) -> Option<CapacityPlan> {
    if request.find_capacity.is_none() {
        if request.resolution.is_some() {
            faults.value("resolution", "is that of --find-capacity: give both or none");
        }
        return None;
    }
    for (option, given) in [
        ("ramp", request.ramp.is_some()),
        ("rate-steps", request.rate_steps.is_some()),
        ("repeat", request.repeat.is_some()),
    ] {
        if given {
            faults.value(option, "does not go with --find-capacity, which sets the rates and repeats itself");
        }
    }
    if connections.len() > 1 {
        faults.value(
            "connections",
            "--find-capacity searches with one number of connections: give one, not a list",
        );
    }
    if arrivals.len() > 1 {
        faults.value("rate", "with --find-capacity it is the first rate: give one, not a list");
    }
    let text = request.resolution.as_deref().unwrap_or(RESOLUTION);
    let percent = text.trim().strip_suffix('%').and_then(|p| p.trim().parse::<f64>().ok());
    let resolution = percent.filter(|p| (0.1..=50.0).contains(p));
    if resolution.is_none() {
        faults.value("resolution", format!("{text:?} is not a share from 0.1% to 50%"));
    }
    let spacing = match request.arrivals.as_deref().map(str::trim) {
        Some(word) if word.eq_ignore_ascii_case("constant") => Spacing::Constant,
        _ => Spacing::Poisson,
    };
    Some(CapacityPlan {
        holds: requirements.as_ref()?.texts(),
        from_per_s: arrivals.first().and_then(Arrivals::rate_per_s),
        resolution: resolution? / 100.0,
        most_steps: MOST_SEARCH_STEPS,
        spacing,
    })
}

/// A worker drives what eight CPUs of a server can answer, so more would only take the server's CPUs. Two answer sooner
/// than one, but where CPUs and connections are few, one costs less with epoll: more answers come with each of its
/// wake-ups. See docs/journal/load-engine.md.
fn default_workers(cpus: usize, connections: usize, backend: Backend) -> usize {
    match (backend, cpus, connections) {
        (Backend::Epoll, ..=4, ..=64) => 1,
        _ => (cpus / 8).clamp(2, 16).min(cpus.max(1)),
    }
}

fn workload(request: &Request, errors: &mut Vec<PlanError>) -> Option<(&'static Spec, Options)> {
    let spec = mydyno_workload::find(&request.workload).map_err(|e| errors.push(e.into())).ok()?;
    let mut given = request.options.clone();
    if request.workload.ends_with(".toml") {
        given.push(("mix-file".to_owned(), request.workload.clone()));
    }
    match Options::resolve(spec.name, spec.options, &given) {
        Ok(options) => match catalogue::check(spec, &options) {
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

fn connections(request: &Request, faults: &mut Faults) -> Vec<usize> {
    let list = parse_counts(request.connections.as_deref().unwrap_or(CONNECTIONS));
    let mut list = faults.unit("connections", list).unwrap_or_default();
    if let Some(most) = list.iter().max().filter(|n| **n > MOST_CONNECTIONS) {
        faults.value("connections", format!("{most} is too many, at most {MOST_CONNECTIONS}"));
    }
    // What stands twice would be a repeat without saying so.
    let mut seen = Vec::new();
    list.retain(|n| {
        !seen.contains(n) && {
            seen.push(*n);
            true
        }
    });
    list
}

fn percentiles(request: &Request, faults: &mut Faults) -> Vec<f64> {
    let text = request.percentiles.as_deref().unwrap_or(PERCENTILES);
    let parsed: Option<Vec<f64>> = text
        .split(',')
        .map(|p| p.trim().parse::<f64>().ok().filter(|p| (0.0..100.0).contains(p) && *p > 0.0))
        .collect();
    parsed.unwrap_or_else(|| {
        let problem = format!("{text:?} is not a list of numbers above 0 and below 100 like {PERCENTILES}");
        faults.value("percentiles", problem);
        Vec::new()
    })
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
    use mydyno_model::plan::{Scheduling, TargetKind, Transport};

    fn target() -> TargetPlan {
        TargetPlan {
            kind: TargetKind::Server,
            transport: Transport::Unix,
            address: "/s".to_owned(),
            user: "root".to_owned(),
        }
    }

    fn resolve_on_two_cpus(request: &Request) -> Result<Resolved, Vec<PlanError>> {
        let machine = Machine { cpus: 2, backend: Backend::Epoll };
        resolve(request, target(), machine, OffsetDateTime::UNIX_EPOCH)
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
    fn only_who_asks_at_certain_instants_may_interrupt_the_server() {
        let scheduling = |change: &dyn Fn(&mut Request)| {
            let mut request = Request { workload: "oltp_point_select".to_owned(), ..Request::default() };
            change(&mut request);
            resolve_on_two_cpus(&request).map(|resolved| resolved.plan.wait.scheduling)
        };
        let text = |t: &str| Some(t.to_owned());
        assert_eq!(scheduling(&|_| ()).unwrap(), Scheduling::Batch);
        assert_eq!(scheduling(&|r| r.rate = text("200")).unwrap(), Scheduling::Normal);
        assert_eq!(scheduling(&|r| r.think = text("10ms")).unwrap(), Scheduling::Normal);
        assert_eq!(scheduling(&|r| r.find_capacity = text("p99<10ms")).unwrap(), Scheduling::Normal);
        assert_eq!(scheduling(&|r| r.scheduling = text("normal")).unwrap(), Scheduling::Normal);
        let errors = scheduling(&|r| r.scheduling = text("idle")).unwrap_err();
        assert_eq!(errors[0].to_string(), "--scheduling: \"idle\" is not batch or normal");
    }

    #[test]
    fn defaults_stand_in_the_plan() {
        let request = Request { workload: "oltp_point_select".to_owned(), ..Request::default() };
        let plan = resolve_on_two_cpus(&request).unwrap().plan;
        assert_eq!((plan.steps.len(), plan.steps[0].connections, plan.steps[0].workers), (1, 16, 1));
        assert_eq!((plan.time_s, plan.warmup, plan.seed), (60.0, Warmup::Fixed { time_s: 5.0 }, 1));
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
