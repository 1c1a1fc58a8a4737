//! A comparison whole: from what the user asks for to the verdict in its folder.

use std::path::PathBuf;

use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::Turns;
use mydyno_model::Header;
use mydyno_model::experiment::{Arm, Asks, Design, Finding, LeverLevel, Role, Slice, Verdict, labels};
use mydyno_model::plan::{TargetKind, TargetPlan, Transport};
use mydyno_run::steps::Work;
use mydyno_run::{Cancel, PlanError, Resolved};
use serde_json::Map;
use time::OffsetDateTime;

use crate::alternate::{self, Alternation, ArmPlan, Progress};
use crate::budget::{self, Shape, Times};
use crate::error::ProveError;
use crate::store::Store;
use crate::{design, verdict};

/// What the user asks for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Name of the workload, for the name of the experiment.
    pub workload: String,
    /// Levers of the baseline.
    pub baseline: Vec<LeverLevel>,
    /// Levers of the treatment.
    pub treatment: Vec<LeverLevel>,
    /// Levers of all arms.
    pub set_up: Vec<LeverLevel>,
    /// Which change is asked for.
    pub asks: Asks,
    /// δ, as a share.
    pub delta: f64,
    /// Time for the whole experiment in seconds.
    pub budget_s: f64,
    /// Starts of the servers, where the user says so.
    pub starts: Option<usize>,
    /// Lengths of the parts.
    pub times: Times,
    /// Seed of the order of slices.
    pub seed: u64,
}

/// A comparison that is ready: nothing was touched yet.
pub struct Comparison {
    /// The table.
    pub design: Design,
    /// How it is cut.
    pub shape: Shape,
    /// How long it takes, in seconds, at most.
    pub takes_s: f64,
    /// What changes for the whole host while it lasts.
    pub of_the_host: Vec<String>,
    arms: Vec<ArmPlan>,
}

/// Resolves the load of an arm: options of the workload may be levers. Given by whoever parsed the options of the load.
pub type ResolveLoad<'a> = &'a dyn Fn(&[(String, String)]) -> Result<Resolved, Vec<PlanError>>;

impl Comparison {
    /// Reads the arms, cuts the budget, and writes the table.
    ///
    /// # Errors
    /// All that is wrong with the arms, or the budget is too short.
    pub fn plan(
        wanted: &Wanted,
        resolve: ResolveLoad<'_>,
        now: OffsetDateTime,
    ) -> Result<Self, Vec<ProveError>> {
        let all = |levers: &[LeverLevel]| [wanted.set_up.as_slice(), levers].concat();
        let (baseline, treatment) = (all(&wanted.baseline), all(&wanted.treatment));
        let mut problems = Vec::new();
        let mut arms = Vec::new();
        for (role, levers) in
            [(Role::Baseline, &baseline), (Role::Treatment, &treatment), (Role::Again, &baseline)]
        {
            match arm(role, levers, wanted.times.slice_s, resolve, now) {
                Ok(arm) => arms.push(arm),
                // The second copy of the baseline has its mistakes, too.
                Err(_) if role == Role::Again => {}
                Err(found) => problems.extend(found),
            }
        }
        if baseline == treatment && problems.is_empty() {
            let label = arms.first().map(|arm| arm.arm.label()).unwrap_or_default();
            problems.push(ProveError::SameArms { label });
        }
        let shape = budget::shape(wanted.budget_s, &wanted.times, wanted.starts)
            .map_err(|error| problems.push(error))
            .unwrap_or(Shape { starts: 0, blocks_per_start: 0 });
        let (true, Some(first)) = (problems.is_empty(), arms.first()) else { return Err(problems) };
        let of_the_host = check_of_the_host(&arms).map_err(|error| vec![error])?;
        let design = Design {
            header: Header::of::<Design>(now),
            experiment: format!("compare-{}", wanted.workload),
            question: question(wanted, &arms),
            arms: arms.iter().map(|arm| arm.arm.clone()).collect(),
            load: first.plan.clone(),
            asks: wanted.asks,
            delta: wanted.delta,
            seed: wanted.seed,
            slice_s: wanted.times.slice_s,
            settle_s: wanted.times.settle_s,
            warmup_s: wanted.times.warmup_s,
            starts: shape.starts,
            blocks_per_start: shape.blocks_per_start,
            rows: design::table(shape.starts, shape.blocks_per_start, wanted.seed),
            extra: Map::new(),
        };
        Ok(Self { design, shape, takes_s: wanted.times.total_s(shape), of_the_host, arms })
    }

    /// Carries it out and writes its folder.
    ///
    /// # Errors
    /// [`ProveError`]; what was measured is in the folder.
    pub fn run(
        &self,
        host: &Host,
        allow_host_change: Option<AllowHostChange>,
        folder: PathBuf,
        stop: &Cancel,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Verdict, ProveError> {
        let mut store = Store::create(&folder, &self.design)?;
        let alternation =
            Alternation { design: &self.design, arms: &self.arms, host, allow_host_change, stop };
        let mut server = None;
        let mut noting = |progress: Progress<'_>| {
            if let Progress::Server { what: mydyno_sandbox::Progress::Found { engine, .. }, .. } = &progress {
                server.get_or_insert_with(|| engine.text.clone());
            }
            watch(progress);
        };
        let mut decided = |slices: &[Slice]| {
            verdict::so_far(&self.design, slices).is_some_and(|(_, finding)| finding != Finding::Undecided)
        };
        let slices = alternate::run(&alternation, &mut store, &mut decided, &mut noting)?;
        let set_up = self.set_up(server);
        let verdict = verdict::conclude(&self.design, &slices, set_up, OffsetDateTime::now_utc());
        store.verdict(&verdict)?;
        Ok(verdict)
    }

    /// Server and load in short lines.
    fn set_up(&self, server: Option<String>) -> Vec<String> {
        let plan = &self.design.load;
        let connections = plan.steps.first().map_or(0, |step| step.connections);
        let load = format!("{} with {connections} connections", plan.workload.name);
        server.into_iter().chain([load]).collect()
    }
}

/// Server and account of a plan whose servers are not made yet.
fn no_server() -> TargetPlan {
    let (address, user) = (String::new(), String::new());
    TargetPlan { kind: TargetKind::Sandbox, transport: Transport::Unix, address, user }
}

fn arm(
    role: Role,
    levers: &[LeverLevel],
    slice_s: f64,
    resolve: ResolveLoad<'_>,
    now: OffsetDateTime,
) -> Result<ArmPlan, Vec<ProveError>> {
    let plan_error = |why: String| ProveError::Plan { arm: role.name().to_owned(), why };
    let plan_errors = |whys: Vec<String>| whys.into_iter().map(plan_error).collect::<Vec<_>>();
    let wanted: Vec<(String, String)> = levers.iter().map(|l| (l.lever.clone(), l.value.clone())).collect();
    let turns = Turns::parse(&wanted).map_err(|e| plan_errors(texts(&e)))?;
    let resolved = resolve(&turns.workload).map_err(|e| plan_errors(texts(&e)))?;
    let work = Work::new(&resolved).map_err(|e| plan_errors(texts(&e)))?;
    let mut plan = resolved.draft.on(no_server(), now);
    plan.time_s = slice_s;
    let arm = Arm { role, levers: levers.to_vec(), prices: turns.ledger.clone() };
    Ok(ArmPlan { arm, turns, resolved, plan, work })
}

fn texts<E: ToString>(errors: &[E]) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

/// What the arms change for the whole host, where all arms change the same.
fn check_of_the_host(arms: &[ArmPlan]) -> Result<Vec<String>, ProveError> {
    let of: Vec<Vec<String>> = arms.iter().map(|arm| arm.turns.of_the_host()).collect();
    match of.iter().find(|levers| !levers.is_empty()) {
        None => Ok(vec![]),
        Some(levers) => Err(ProveError::WholeHost { levers: levers.join(", ") }),
    }
}

fn question(wanted: &Wanted, arms: &[ArmPlan]) -> String {
    let arms: Vec<Arm> = arms.iter().map(|arm| arm.arm.clone()).collect();
    let (baseline, treatment) = labels(&arms);
    let (delta, load) = (wanted.delta * 100.0, &wanted.workload);
    match wanted.asks {
        Asks::Differs => format!(
            "Under {load}, do {treatment} and {baseline} differ in transactions a second by {delta:.1} % or more?"
        ),
        Asks::Higher | Asks::Lower => {
            let word = if wanted.asks == Asks::Higher { "more" } else { "fewer" };
            format!(
                "Under {load}, does {treatment} make {delta:.1} % {word} transactions a second than {baseline}, or beyond?"
            )
        }
    }
}
