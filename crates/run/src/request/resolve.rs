//! Resolves a request from text to a plan, with all errors at once.

use mydyno_load::default_workers;
use mydyno_model::plan::{Allow, Arrivals, Backend, CapacityPlan, Spread, Think, WorkloadPlan};
use mydyno_workload::Options;
use mydyno_workload::catalogue::{self, Checked, Spec};

use super::draft::{Draft, Resolved};
use super::faults::{Faults, PlanError};
use super::input::{Request, SEED};
use super::limits::MOST_REPEATS;
use super::{arrivals, keeping, limits, search, sweep};
use crate::bound::Bound;
use crate::capacity::Requirements;

/// The properties of this machine that defaults depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// CPUs that this process may use.
    pub cpus: usize,
    /// The cheapest event loop that the kernel permits.
    pub backend: Backend,
    /// Whether the kernel schedules sessions as groups (`kernel.sched_autogroup_enabled=1`).
    pub session_groups: bool,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn here() -> Self {
        Self {
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            backend: mydyno_load::cheapest_backend(),
            session_groups: mydyno_load::session::are_groups(),
        }
    }
}

impl Resolved {
    /// As given, for a load in a session of its own where that saves wake-ups: the kernel schedules sessions as groups, and
    /// the server is in another one.
    #[must_use]
    pub fn in_own_session(mut self) -> Self {
        let wait = &mut self.draft.wait;
        wait.session_nice = keeping::session_nice(wait.scheduling, &self.draft.steps);
        self
    }

    /// As given, for a load that stays in its user's session.
    #[must_use]
    pub fn without_session(mut self) -> Self {
        self.draft.wait.session_nice = None;
        self
    }
}

/// Resolves a request.
///
/// # Errors
/// All mistakes in it.
pub fn resolve(request: &Request, machine: Machine) -> Result<Resolved, Vec<PlanError>> {
    let mut faults = Faults::default();
    let found = workload(request, &mut faults.0);
    let checked = found.as_ref().and_then(|(spec, options)| catalogue::check(spec, options).ok());
    let own_connections = checked.as_ref().and_then(Checked::connections);
    let work = checked.as_ref().map(Checked::work).unwrap_or_default();
    let connections = limits::connections(request, own_connections, &mut faults);
    let workers = faults.count("workers", request.workers.as_ref(), 1..=1024, "a number of threads");
    let requested = arrivals::parse(request, &mut faults);
    if own_connections.is_some() {
        limits::only_the_workload_s_pace(request, &mut faults);
    }
    let repeats = faults.count("repeat", request.repeat.as_ref(), 1..=MOST_REPEATS, "a number of repeats");
    let time_s = limits::time_s(request, requested.time_s, &mut faults);
    let warmup = limits::warmup(request, &mut faults);
    let connecting = keeping::connecting(request, &mut faults);
    let mut wait = keeping::wait(request, machine.backend, &mut faults);
    let scheduling = keeping::scheduling(request, &mut faults);
    let stop_on_error = keeping::stop_on_error(request, &mut faults);
    let requirements = search::requirements(request, &mut faults);
    let capacity = search::capacity(request, &requirements, &requested.arrivals, &connections, &mut faults);
    let mut percentiles = limits::percentiles(request, &mut faults);
    let database = limits::database(request, found.as_ref(), &mut faults);
    let bounds: Vec<Bound> = request
        .fail_if
        .iter()
        .filter_map(|text| Bound::parse(text).map_err(|e| faults.0.push(e.into())).ok())
        .collect();
    // Warnings about waiting depend on these two.
    percentiles.extend([50.0, 99.0]);
    // The summary has to contain the percentiles that bounds need.
    percentiles.extend(bounds.iter().filter_map(Bound::percentile));
    percentiles.extend(requirements.iter().flat_map(Requirements::percentiles));
    percentiles.sort_by(f64::total_cmp);
    percentiles.dedup();
    let Some((spec, options)) = found.filter(|_| faults.0.is_empty()) else { return Err(faults.0) };
    // One thread serves the waits of any number of terminals.
    let own_workers = workers.or(own_connections.map(|_| 1));
    let Machine { cpus, session_groups, .. } = machine;
    let default = |connections| default_workers(cpus, connections, wait.backend, session_groups);
    let workers = |connections| own_workers.unwrap_or_else(|| default(connections));
    let points = match &capacity {
        // The search begins with a closed loop unless an initial rate is given, and adds its steps during the run.
        Some(_) => vec![Arrivals::CLOSED],
        None => requested.arrivals,
    };
    let mut steps = sweep::steps(&connections, workers, &points, repeats.unwrap_or(1));
    if let (Some(CapacityPlan { from_per_s: Some(rate), spacing, .. }), Some(first)) =
        (&capacity, steps.first_mut())
    {
        first.arrivals = Arrivals::open(*rate, *spacing);
    }
    let pause = Think { mean_s: checked.map_or(0.0, |checked| checked.think_s()), spread: Spread::Constant };
    for step in &mut steps {
        if let Arrivals::Closed { think: think @ None } = &mut step.arrivals {
            *think = (pause.mean_s > 0.0).then_some(pause);
        }
    }
    let at_instants = capacity.is_some() || own_connections.is_some();
    wait.scheduling = scheduling.unwrap_or_else(|| keeping::scheduling_for(&steps, at_instants));
    let seed = request.seed.unwrap_or(SEED);
    let shuffled = !request.no_shuffle && steps.len() > 1;
    let draft = Draft {
        workload: WorkloadPlan { name: spec.name.to_owned(), options: options.values().clone(), work },
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
        profile: !request.no_observe && !request.no_profile,
        allow: Allow { load: request.allow_load, write: request.allow_write },
        fail_if: request.fail_if.clone(),
    };
    Ok(Resolved { draft, spec, options, bounds, requirements })
}

fn workload(request: &Request, errors: &mut Vec<PlanError>) -> Option<(&'static Spec, Options)> {
    let spec = mydyno_workload::find(&request.workload).map_err(|e| errors.push(e.into())).ok()?;
    let mut given = request.options.clone();
    if request.workload.ends_with(".toml") {
        given.push(("mix-file".to_owned(), request.workload.clone()));
    }
    match Options::resolve(spec.name, spec.options, &given) {
        Ok(options) => match catalogue::check(spec, &options) {
            Ok(_) => Some((spec, options)),
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

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::plan::{Scheduling, Warmup};

    fn resolve_on_two_cpus(request: &Request) -> Result<Resolved, Vec<PlanError>> {
        let machine = Machine { cpus: 2, backend: Backend::Epoll, session_groups: false };
        resolve(request, machine)
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
            resolve_on_two_cpus(&request).map(|resolved| resolved.draft.wait.scheduling)
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
        let draft = resolve_on_two_cpus(&request).unwrap().draft;
        assert_eq!((draft.steps.len(), draft.steps[0].connections, draft.steps[0].workers), (1, 16, 1));
        assert_eq!((draft.time_s, draft.warmup, draft.seed), (60.0, Warmup::Fixed { time_s: 5.0 }, 1));
        assert_eq!(draft.workload.options["table-size"], 10_000);
        assert_eq!(draft.percentiles, [50.0, 95.0, 99.0, 99.9]);
    }

    #[test]
    fn terminals_decide_the_connections_and_the_pace() {
        let text = |t: &str| Some(t.to_owned());
        let options = vec![("wait".to_owned(), "on".to_owned()), ("warehouses".to_owned(), "3".to_owned())];
        let mut request = Request { workload: "tpcc".to_owned(), options, ..Request::default() };
        let draft = resolve_on_two_cpus(&request).unwrap().draft;
        // Ten for each warehouse, and one for their deliveries.
        assert_eq!((draft.steps[0].connections, draft.steps[0].workers), (31, 1));
        assert_eq!(draft.wait.scheduling, Scheduling::Normal);
        assert_eq!(draft.workload.work["round trips of an order of ten lines"], "47");
        (request.connections, request.rate) = (text("8"), text("100"));
        let errors: Vec<String> =
            resolve_on_two_cpus(&request).unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(errors.len(), 2, "{errors:#?}");
        assert!(errors[0].starts_with("--connections:") && errors[1].starts_with("--rate:"), "{errors:#?}");
    }

    #[test]
    fn few_connections_on_few_cpus_have_one_worker_or_two() {
        let request = Request {
            workload: "oltp_point_select".to_owned(),
            connections: Some("1,16,64,511,512".to_owned()),
            ..Request::default()
        };
        for (session_groups, workers) in [(false, [1, 2, 1, 1, 2]), (true, [1, 1, 1, 1, 2])] {
            let machine = Machine { cpus: 2, backend: Backend::IoUring, session_groups };
            let draft = resolve(&request, machine).unwrap().draft;
            assert_eq!(draft.steps.iter().map(|s| s.workers).collect::<Vec<_>>(), workers);
        }
    }

    #[test]
    fn no_step_has_more_workers_than_connections() {
        let request = Request {
            workload: "oltp_point_select".to_owned(),
            connections: Some("1,4".to_owned()),
            workers: Some("3".to_owned()),
            ..Request::default()
        };
        let draft = resolve_on_two_cpus(&request).unwrap().draft;
        assert_eq!(draft.steps.iter().map(|s| s.workers).collect::<Vec<_>>(), [1, 3]);
    }
}
