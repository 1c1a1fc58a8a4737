//! The arms of an experiment: levers parsed, load resolved.

use std::collections::BTreeSet;

use mydyno_levers::LeverSet;
use mydyno_model::experiment::definition::LoadDefinition;
use mydyno_model::experiment::{Arm, LeverLevel, Role};
use mydyno_model::plan::{Plan, TargetKind, TargetPlan, Transport};
use mydyno_run::Resolved;
use mydyno_run::steps::Work;
use time::OffsetDateTime;

use crate::budget::Times;
use crate::error::ProveError;
use crate::experiment;
use crate::probing::Probing;

/// An arm that can be carried out, with its levers and its resolved load.
pub struct ArmPlan<L = ArmLoad> {
    /// As the design names it.
    pub arm: Arm,
    /// All its levers.
    pub lever_set: LeverSet,
    /// Its levers beyond those that all arms share.
    pub own: LeverSet,
    /// Its load: options of it may be levers.
    pub load: L,
}

/// An arm whose load is a workload on a server.
pub type ServerArm = ArmPlan<Loaded>;

/// The load of an arm.
pub enum ArmLoad {
    /// A workload on a server.
    Workload(Box<Loaded>),
    /// An operation of a probe, without a server.
    Probe(Box<Probing>),
}

/// A workload with its plan.
pub struct Loaded {
    /// The workload and its options, resolved.
    pub resolved: Resolved,
    /// Its plan for one slice; it names no server.
    pub plan: Plan,
    /// The workload.
    pub work: Work,
}

impl ArmPlan {
    /// Its workload; `None` for a probe.
    pub fn loaded(&self) -> Option<&Loaded> {
        match &self.load {
            ArmLoad::Workload(loaded) => Some(loaded),
            ArmLoad::Probe(_) => None,
        }
    }

    /// The same, to be changed.
    pub(crate) fn loaded_mut(&mut self) -> Option<&mut Loaded> {
        match &mut self.load {
            ArmLoad::Workload(loaded) => Some(loaded),
            ArmLoad::Probe(_) => None,
        }
    }

    /// Bytes of its files at most: the tables with room to grow, or a probe's files.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match &self.load {
            ArmLoad::Workload(loaded) => {
                let tables = loaded.work.tables.disk_bytes();
                tables + tables / 4
            }
            ArmLoad::Probe(probing) => probing.disk_bytes(),
        }
    }
}

/// The parts of an experiment that all its arms share.
pub(crate) struct Common<'a> {
    pub(crate) set_up: &'a [LeverLevel],
    pub(crate) load: &'a LoadDefinition,
    pub(crate) slice_s: f64,
    pub(crate) now: OffsetDateTime,
}

/// Parses the levers of an arm and resolves its load; `who` names it in errors.
pub(crate) fn arm(
    role: Role,
    who: &str,
    own: &[LeverLevel],
    common: &Common<'_>,
) -> Result<ArmPlan, Vec<ProveError>> {
    let ArmPlan { mut arm, lever_set, own, load: () } = levers(role, who, own, common)?;
    let load = match &common.load.probe {
        Some(_) => {
            let probing =
                experiment::probing(common.load, &lever_set).map_err(|errors| plan_errors(who, &errors))?;
            arm.prices.extend(probing.prices());
            ArmLoad::Probe(Box::new(probing))
        }
        None => ArmLoad::Workload(Box::new(loaded(who, &lever_set, common)?)),
    };
    Ok(ArmPlan { arm, lever_set, own, load })
}

/// The same for a load that is a workload.
pub(crate) fn server_arm(
    role: Role,
    who: &str,
    own: &[LeverLevel],
    common: &Common<'_>,
) -> Result<ServerArm, Vec<ProveError>> {
    let ArmPlan { arm, lever_set, own, load: () } = levers(role, who, own, common)?;
    let load = loaded(who, &lever_set, common)?;
    Ok(ArmPlan { arm, lever_set, own, load })
}

/// An arm without its load.
fn levers(
    role: Role,
    who: &str,
    own: &[LeverLevel],
    common: &Common<'_>,
) -> Result<ArmPlan<()>, Vec<ProveError>> {
    let levers = [common.set_up, own].concat();
    let lever_set = LeverSet::parse(&pairs(&levers)).map_err(|errors| plan_errors(who, &errors))?;
    // Levers of a disk depend on each other, so those of one arm alone may be incomplete.
    let own = LeverSet::parse(&pairs(own)).unwrap_or_else(|_| lever_set.clone());
    let arm = Arm { role, levers, prices: lever_set.ledger.clone(), jobs: Vec::new() };
    Ok(ArmPlan { arm, lever_set, own, load: () })
}

fn loaded(who: &str, lever_set: &LeverSet, common: &Common<'_>) -> Result<Loaded, Vec<ProveError>> {
    let resolved = experiment::resolve(common.load, lever_set).map_err(|errors| plan_errors(who, &errors))?;
    let work = Work::new(&resolved).map_err(|errors| plan_errors(who, &errors))?;
    let mut plan = resolved.draft.on(no_server(), common.now);
    plan.time_s = common.slice_s;
    Ok(Loaded { resolved, plan, work })
}

/// Placeholder for the server and account in a plan whose servers do not exist yet.
fn no_server() -> TargetPlan {
    let (address, user) = (String::new(), String::new());
    TargetPlan { kind: TargetKind::Sandbox, transport: Transport::Unix, address, user }
}

pub(crate) fn pairs(levers: &[LeverLevel]) -> Vec<(String, String)> {
    levers.iter().map(|level| (level.lever.clone(), level.value.clone())).collect()
}

pub(crate) fn plan_errors<E: ToString>(who: &str, errors: &[E]) -> Vec<ProveError> {
    let error = |why: &E| ProveError::Plan { arm: who.to_owned(), why: why.to_string() };
    errors.iter().map(error).collect()
}

/// The times of an experiment with these arms: a probe has no server to start and to warm up, but files to make.
pub(crate) fn times(times: Times, arms: &[ArmPlan]) -> Times {
    let times = Times { further_arms: arms.len().saturating_sub(Role::ALL.len()), ..times };
    let probes = arms.iter().filter_map(|arm| match &arm.load {
        ArmLoad::Workload(_) => None,
        ArmLoad::Probe(probing) => Some(probing.set_up_s()),
    });
    times.of_probe(&probes.collect::<Vec<f64>>())
}

/// Kernel settings that the arms change, each once.
pub(crate) fn settings<L>(arms: &[ArmPlan<L>]) -> Vec<String> {
    let names = arms.iter().flat_map(|arm| &arm.lever_set.server.host).map(|(name, _)| name.clone());
    names.collect::<BTreeSet<String>>().into_iter().collect()
}

/// Settings of the whole host that the arms change, each once.
pub(crate) fn of_the_host<L>(arms: &[ArmPlan<L>]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for level in arms.iter().flat_map(|arm| arm.lever_set.of_the_host()) {
        if !all.contains(&level) {
            all.push(level);
        }
    }
    all
}
