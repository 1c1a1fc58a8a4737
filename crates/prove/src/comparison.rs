//! A complete experiment: from the request to the verdict in its folder.

use std::path::PathBuf;

use mydyno_host::setting::AllowHostChange;
use mydyno_host::{Host, Reservation, restore};
use mydyno_levers::LeverSet;
use mydyno_model::Header;
use mydyno_model::change::RestoreState;
use mydyno_model::experiment::definition::{CurveDefinition, Job, LoadDefinition, Mode, Published};
use mydyno_model::experiment::price::CrashCost;
use mydyno_model::experiment::{
    Arm, Asks, CurveDesign, Design, Finding, LeverLevel, Role, Row, Slice, Verdict, labels,
};
use mydyno_run::Cancel;
use mydyno_sandbox::variable::PrivateServers;
use mydyno_stats::power::detectable_effect;
use serde_json::Map;
use time::OffsetDateTime;

use crate::analyse::Unit;
use crate::arm::{self, ArmPlan, Common, arm, of_the_host, pairs, plan_errors, settings};
use crate::budget::{self, Shape, Times};
use crate::error::ProveError;
use crate::execute::{self, Execution, Observer, Progress};
use crate::maker::server_error;
use crate::measure::{Measure, measure};
use crate::price::{self, Crashes};
use crate::store::Store;
use crate::users_server::OnServer;
use crate::{curve, design, duet, survival, templates, verdict};

mod earlier;
mod on_server;

/// Bytes of a data directory without tables: system tables, redo and undo logs.
pub(crate) const DATA_DIRECTORY: u64 = 200 << 20;
/// Standard deviation of the log ratio between starts, as observed on machines with two CPUs: an assumption before the
/// measurement.
const USUAL_SD_OF_STARTS: f64 = 0.03;
/// Standard deviation between blocks of one start with slices of a second, likewise.
const USUAL_SD_OF_BLOCKS: f64 = 0.06;

/// The user's request.
#[derive(Debug, Clone)]
pub struct ComparisonRequest {
    /// Name of the experiment.
    pub name: String,
    /// The question; made from the arms without it.
    pub question: Option<String>,
    /// The claim that it tests.
    pub claim: Option<String>,
    /// The load.
    pub load: LoadDefinition,
    /// Jobs beside the load.
    pub jobs: Vec<Job>,
    /// Levers of the baseline.
    pub baseline: Vec<LeverLevel>,
    /// Levers of the treatment.
    pub treatment: Vec<LeverLevel>,
    /// Levers of all arms.
    pub set_up: Vec<LeverLevel>,
    /// Further values of a lever that both arms set.
    pub curve: Option<CurveDefinition>,
    /// Whether equal arms are intended: an experiment that compares a server with itself.
    pub equal_arms: bool,
    /// How the arms share machine and time.
    pub mode: Mode,
    /// Name of the response that decides.
    pub response: String,
    /// The direction of the effect in question.
    pub asks: Asks,
    /// δ, as a share.
    pub delta: f64,
    /// Time for the whole experiment in seconds.
    pub budget_s: f64,
    /// Starts of the servers, if the user gives them.
    pub starts: Option<usize>,
    /// Lengths of the parts.
    pub times: Times,
    /// Seed of the order of slices.
    pub seed: u64,
    /// Published figures for the same question.
    pub published: Vec<Published>,
    /// The reason why it is only a stand-in for their set-up.
    pub stand_in: Option<String>,
}

/// A planned experiment, before any change is made.
pub struct Comparison {
    /// The run table.
    pub design: Design,
    /// Its numbers of starts and blocks.
    pub shape: Shape,
    /// Upper bound of its duration in seconds.
    pub takes_s: f64,
    /// Settings of the whole host that it changes meanwhile, as `LEVER=VALUE`.
    pub of_the_host: Vec<String>,
    /// Variables of the user's server that it changes meanwhile, in words.
    pub of_the_server: Vec<String>,
    on_server: Option<OnServer>,
    arms: Vec<ArmPlan>,
    shared: LeverSet,
    before: Vec<Slice>,
    /// Whether the whole table is measured, even after a look that decides.
    to_the_end: bool,
}

impl Comparison {
    /// Parses the arms, divides the budget, and writes the run table.
    ///
    /// # Errors
    /// All mistakes of the arms, or the budget is too short.
    pub fn plan(wanted: &ComparisonRequest, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let mut problems = Vec::new();
        let arms = arms(wanted, now).map_err(|found| problems.extend(found)).unwrap_or_default();
        if wanted.baseline == wanted.treatment && !wanted.equal_arms && problems.is_empty() {
            let label = arms.first().map(|arm| arm.arm.label()).unwrap_or_default();
            problems.push(ProveError::SameArms { label });
        }
        let times = arm::times(wanted.times, &arms);
        let shape = budget::shape(wanted.budget_s, &times, wanted.starts, wanted.mode)
            .map_err(|error| problems.push(error))
            .unwrap_or(Shape { starts: 0, blocks_per_start: 0 });
        let (true, Some(first)) = (problems.is_empty(), arms.first()) else { return Err(problems) };
        check_mode(wanted.mode, &arms).map_err(|error| vec![error])?;
        if wanted.mode == Mode::Duet {
            duet::check(arms.iter().map(|arm| &arm.lever_set), &wanted.jobs).map_err(|error| vec![error])?;
        }
        let measure = measure(&wanted.response);
        let design = Design {
            header: Header::of::<Design>(now),
            experiment: wanted.name.clone(),
            question: wanted.question.clone().unwrap_or_else(|| question(wanted, &arms, measure)),
            arms: arms.iter().map(|arm| arm.arm.clone()).collect(),
            mode: wanted.mode,
            load: first.loaded().map(|loaded| loaded.plan.clone()),
            request: wanted.load.clone(),
            jobs: wanted.jobs.clone(),
            response: measure.name.to_owned(),
            asks: wanted.asks,
            delta: wanted.delta,
            seed: wanted.seed,
            slice_s: wanted.times.slice_s,
            settle_s: wanted.times.settle_s,
            warmup_s: times.warmup_s,
            starts: shape.starts,
            blocks_per_start: shape.blocks_per_start,
            rows: table(
                &arms.iter().map(|arm| arm.arm.role).collect::<Vec<_>>(),
                wanted.mode,
                shape,
                wanted.seed,
            ),
            curve: curve_of(wanted).transpose().map_err(|why| vec![ProveError::Curve { why }])?,
            claim: wanted.claim.clone(),
            published: wanted.published.clone(),
            stand_in: wanted.stand_in.clone(),
            earlier: Vec::new(),
            on_server: None,
            extra: Map::new(),
        };
        let takes_s = times.total_s(shape, wanted.mode) + crashes_s(&arms);
        Self::assemble(wanted, design, shape, takes_s, arms, Vec::new())
    }

    /// The experiment of a design on private servers; `before` are the slices of an earlier execution.
    fn assemble(
        wanted: &ComparisonRequest,
        design: Design,
        shape: Shape,
        takes_s: f64,
        arms: Vec<ArmPlan>,
        before: Vec<Slice>,
    ) -> Result<Self, Vec<ProveError>> {
        let shared = LeverSet::parse(&pairs(&wanted.set_up))
            .map_err(|errors| plan_errors(Role::Baseline.name(), &errors))?;
        Ok(Self {
            design,
            shape,
            takes_s,
            of_the_host: of_the_host(&arms),
            of_the_server: Vec::new(),
            on_server: None,
            arms,
            shared,
            before,
            to_the_end: false,
        })
    }

    /// Peak disk usage in bytes, roughly: a data directory and the tables of each running server, or a probe's files.
    pub fn disk_bytes(&self) -> u64 {
        let files = self.arms.iter().map(ArmPlan::disk_bytes).max().unwrap_or(0);
        if self.design.request.probe.is_some() {
            return files;
        }
        let servers =
            if matches!(self.design.mode, Mode::Alternate | Mode::Duet) { Role::ALL.len() as u64 } else { 1 };
        let kept = self
            .arms
            .iter()
            .any(|arm| arm.loaded().is_some_and(|load| templates::are_used(load, self.design.mode)));
        (servers + u64::from(kept)) * (DATA_DIRECTORY + files)
    }

    /// The smallest effect, as a share, that the table can be expected to detect with usual noise. `None` for fewer
    /// units than the first look needs.
    pub fn smallest_effect(&self) -> Option<(f64, f64)> {
        // The spread of a share follows from the share itself, which is not known before.
        if survival::decides(&self.design) {
            return None;
        }
        let (units, sd) = match Unit::of(self.design.mode) {
            Unit::Start => (self.shape.starts, USUAL_SD_OF_STARTS),
            Unit::Block => (self.shape.starts * self.shape.blocks_per_start, USUAL_SD_OF_BLOCKS),
        };
        let effect =
            detectable_effect(&crate::verdict::looks_up_to(&self.design, units)?, sd, self.design.delta)?;
        Some((effect, sd))
    }

    /// Executes the remaining rows and writes the folder.
    ///
    /// # Errors
    /// [`ProveError`]; the slices so far are in the folder.
    pub fn run(
        &self,
        options: &RunOptions<'_>,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Verdict, ProveError> {
        if !self.of_the_host.is_empty() && options.allow_host_change.is_none() {
            return Err(ProveError::NotAllowed { levers: self.of_the_host.join(", ") });
        }
        self.check_place()?;
        if let Some(on) = self.on_server.as_ref().filter(|_| !options.allow_change) {
            let (address, changes) = (on.server.address(), self.of_the_server.join("; "));
            return Err(ProveError::ChangeNotAllowed { address, changes });
        }
        if options.resume {
            put_back_what_a_kill_left(options.host, &mut |text| watch(Progress::Loud(text)))?;
        }
        // The levers are set and restored row by row; no other command may change them in between.
        let _reserved =
            Reservation::take(&options.host.journal, options.host.machine(), &settings(&self.arms))?;
        let store = match self.before.is_empty() && !options.resume {
            true => Store::create(&options.folder, &self.design)?,
            false => Store::open(&options.folder)?,
        };
        let execution = Execution {
            design: &self.design,
            arms: &self.arms,
            shared: &self.shared,
            host: options.host,
            allow_host_change: options.allow_host_change,
            stop: options.stop,
            on_server: self.on_server.as_ref(),
            before: self.before.clone(),
        };
        let mut server = self.on_server.as_ref().map(|on| on.version.clone());
        let mut noting = |progress: Progress<'_>| {
            if let Progress::Server { what: mydyno_sandbox::Progress::Found { engine, .. }, .. } = &progress {
                server.get_or_insert_with(|| engine.text.clone());
            }
            watch(progress);
        };
        // A curve needs all blocks for its other values, whatever the comparison says.
        let to_the_end = self.to_the_end || self.design.curve.is_some();
        let mut decided = |slices: &[Slice]| {
            !to_the_end
                && verdict::so_far(&self.design, slices)
                    .is_some_and(|(_, finding)| finding != Finding::Undecided)
        };
        let mut observer = Observer { decided: &mut decided, watch: &mut noting };
        let slices = execute::run(&execution, &store, &mut observer)?;
        let set_up = self.set_up(server, &options.set_up);
        let mut verdict = verdict::conclude(&self.design, &slices, set_up, OffsetDateTime::now_utc());
        if verdict.blocks > 0 && self.crashes() {
            let crashes = self.crash(options, watch)?;
            verdict = verdict::with_crashes(verdict, crashes);
        }
        verdict.command = options.command.clone();
        let changed = self.of_the_host.iter().chain(&self.of_the_server);
        verdict.changed = changed.map(|level| format!("{level}, put back at the end")).collect();
        store.verdict(&verdict)?;
        Ok(verdict)
    }

    /// Whether the treatment's server is crashed after the measurement, to measure its price in durability.
    pub fn crashes(&self) -> bool {
        // A probe has no server that could lose commits.
        self.design.request.probe.is_none() && price::is_of_crashes(&price::own(&self.design.arms))
    }

    fn crash(
        &self,
        options: &RunOptions<'_>,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Vec<CrashCost>, ProveError> {
        let Some(arm) = self.arms.iter().find(|arm| arm.arm.role == Role::Treatment) else {
            return Ok(Vec::new());
        };
        let (host, allow_host_change, stop) = (options.host, options.allow_host_change, options.stop);
        let crashes = Crashes { host, allow_host_change, stop };
        crashes.of(arm, &mut |what| watch(Progress::Server { role: Role::Treatment, what }))
    }

    /// Server, load and host in short lines.
    fn set_up(&self, server: Option<String>, host: &[String]) -> Vec<String> {
        let load = match &self.design.load {
            Some(plan) => {
                let connections = plan.steps.first().map_or(0, |step| step.connections);
                let rate = plan.steps.first().and_then(|step| step.arrivals.rate_per_s());
                let arrivals =
                    rate.map_or(String::new(), |rate| format!(", {rate} transactions a second arrive"));
                format!("{} with {connections} connections{arrivals}", plan.workload.name)
            }
            None => self.design.request.name(),
        };
        let mode = match self.design.mode {
            Mode::InPlace if self.design.request.probe.is_some() => {
                "no server, levers swapped between slices"
            }
            Mode::InPlace if self.on_server.is_some() => "the user's server, levers swapped between slices",
            Mode::Alternate => "servers of all arms up together, loaded in turns",
            Mode::InPlace => "one server, levers swapped between slices",
            Mode::Duet => {
                "two servers loaded at the same time, each on an equal part of the CPUs, swapped between blocks"
            }
            Mode::Rows => "one server at a time, a start of its own for each row",
        };
        let slice =
            format!("{mode}: {} s measured, {} s cut before", self.design.slice_s, self.design.settle_s);
        server.into_iter().chain([load, slice]).chain(host.iter().cloned()).collect()
    }
}

/// Options of the execution.
pub struct RunOptions<'a> {
    /// The state folder, its journal and a lease.
    pub host: &'a Host,
    /// The user's permission to change the host.
    pub allow_host_change: Option<AllowHostChange>,
    /// The user's permission to change variables of the user's own server.
    pub allow_change: bool,
    /// Folder of the experiment.
    pub folder: PathBuf,
    /// Whether the folder exists already.
    pub resume: bool,
    /// The command that repeats it, for the verdict.
    pub command: Option<String>,
    /// Lines on the host, for the verdict.
    pub set_up: Vec<String>,
    /// Set by the user to end the experiment.
    pub stop: &'a Cancel,
}

/// The run table for a mode.
fn table(arms: &[Role], mode: Mode, shape: Shape, seed: u64) -> Vec<Row> {
    match mode {
        Mode::Duet => design::duets(shape.starts, shape.blocks_per_start, seed),
        Mode::Alternate | Mode::InPlace | Mode::Rows => {
            design::table_of(arms, shape.starts, shape.blocks_per_start, seed)
        }
    }
}

/// Restores what a killed command has left: servers, and levers of its last row, which would conflict with the same
/// rows.
pub(crate) fn put_back_what_a_kill_left(host: &Host, tell: &mut dyn FnMut(String)) -> Result<(), ProveError> {
    let outcomes = restore::restore(&host.journal, &host.lease, false, &PrivateServers)
        .map_err(mydyno_host::HostError::from)?;
    for done in outcomes.iter().filter(|done| done.outcome != RestoreState::Restored) {
        tell(format!("{}: {}", done.change.what, done.why));
    }
    Ok(())
}

/// The roles of arms.
fn roles(arms: &[Arm]) -> Vec<Role> {
    arms.iter().map(|arm| arm.role).collect()
}

/// The levels of the curve, if there is one.
fn curve_of(wanted: &ComparisonRequest) -> Option<Result<CurveDesign, String>> {
    wanted.curve.as_ref().map(|curve| curve::levels(curve, &wanted.baseline, &wanted.treatment))
}

/// The arms, in the order of [`Role::ALL`], those of further levels last.
fn arms(wanted: &ComparisonRequest, now: OffsetDateTime) -> Result<Vec<ArmPlan>, Vec<ProveError>> {
    let (mut arms, mut problems) = (Vec::new(), Vec::new());
    let curve = curve_of(wanted).transpose().map_err(|why| vec![ProveError::Curve { why }])?;
    let all = Role::ALL.map(|role| {
        (role, if role == Role::Treatment { wanted.treatment.clone() } else { wanted.baseline.clone() })
    });
    let further = curve.iter().flat_map(|curve| {
        let of_level = curve.levels.iter().filter(|level| Role::LEVELS.contains(&level.arm));
        of_level.map(|level| (level.arm, curve::levers(&wanted.baseline, &curve.lever, &level.value)))
    });
    for (role, own) in all.into_iter().chain(further) {
        let common =
            Common { set_up: &wanted.set_up, load: &wanted.load, slice_s: wanted.times.slice_s, now };
        match arm(role, role.name(), &own, &common) {
            Ok(mut arm) => {
                arm.arm.jobs = own_jobs(wanted, role);
                arms.push(arm);
            }
            // The second copy of the baseline has the same mistakes.
            Err(_) if role == Role::Again => {}
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() { Ok(arms) } else { Err(problems) }
}

/// Jobs of one arm only, for its label. The second copy of the baseline has the baseline's.
fn own_jobs(wanted: &ComparisonRequest, role: Role) -> Vec<String> {
    let role = if role == Role::Again { Role::Baseline } else { role };
    wanted.jobs.iter().filter(|job| job.only == Some(role)).map(|job| job.work.label()).collect()
}

/// Time for the crashes after the measurement, in seconds.
fn crashes_s(arms: &[ArmPlan]) -> f64 {
    let of_servers = arms.iter().filter(|arm| arm.loaded().is_some());
    let arms: Vec<Arm> = of_servers.map(|arm| arm.arm.clone()).collect();
    if price::is_of_crashes(&price::own(&arms)) { price::CRASHES_S } else { 0.0 }
}

/// Whether the mode permits the levers: two servers that run together share the host, and a single server has one
/// start.
fn check_mode(mode: Mode, arms: &[ArmPlan]) -> Result<(), ProveError> {
    if mode != Mode::InPlace && arms.iter().any(|arm| arm.loaded().is_none()) {
        return Err(ProveError::ProbeMode);
    }
    if arms.len() > Role::ALL.len() && matches!(mode, Mode::Alternate | Mode::Duet) {
        let why = "its servers would all be up at the same time: use --mode rows, or in-place".to_owned();
        return Err(ProveError::Curve { why });
    }
    match mode {
        Mode::Rows => Ok(()),
        Mode::Alternate | Mode::Duet => {
            match arms.iter().map(|arm| arm.lever_set.of_the_host()).find(|of| !of.is_empty()) {
                None => Ok(()),
                Some(levers) => Err(ProveError::WholeHost { levers: levers.join(", ") }),
            }
        }
        Mode::InPlace => {
            let needs_start = |arm: &&ArmPlan| !arm.own.is_in_place();
            match arms.iter().find(needs_start) {
                None => Ok(()),
                Some(arm) => Err(ProveError::NotInPlace { lever: arm.arm.label() }),
            }
        }
    }
}

fn question(wanted: &ComparisonRequest, arms: &[ArmPlan], measure: &Measure) -> String {
    let arms: Vec<Arm> = arms.iter().map(|arm| arm.arm.clone()).collect();
    let (baseline, treatment) = labels(&arms);
    let (delta, load, of) = (wanted.delta * 100.0, wanted.load.name(), measure.plain);
    match wanted.asks {
        Asks::Differs => {
            format!("Under {load}, do {treatment} and {baseline} differ in {of} by {delta:.1} % or more?")
        }
        Asks::Higher | Asks::Lower => {
            let word = if wanted.asks == Asks::Higher { "raise" } else { "lower" };
            format!("Under {load}, does {treatment} {word} {of} by {delta:.1} % or more, against {baseline}?")
        }
    }
}
