//! From the request to the classes with their loads, before any server runs.

use std::path::Path;
use std::time::Duration;

use mydyno_model::Header;
use mydyno_model::experiment::classes::{ClassComparison, ClassResult, ClassRound};
use mydyno_model::experiment::definition::{Classes, ClassesExtent, Definition, Extent, LoadDefinition};
use mydyno_model::experiment::{LeverLevel, Role};
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::arm::{Common, ServerArm, of_the_host, plan_errors, server_arm};
use crate::error::ProveError;
use crate::experiment::times;
use crate::side;

use super::folder::read;

/// The class whose tables are those of all classes.
const SCRIPT: &str = "script";

/// The user's request.
#[derive(Debug, Clone)]
pub struct ClassesRequest {
    /// The experiment.
    pub definition: Definition,
    /// Its long extent, instead of the short one.
    pub full: bool,
    /// Levers of the baseline.
    pub baseline: Vec<LeverLevel>,
    /// Levers of the treatment.
    pub treatment: Vec<LeverLevel>,
    /// Time for the whole experiment, instead of the file's.
    pub budget: Option<Duration>,
    /// Starts of the servers, instead of the file's.
    pub starts: Option<usize>,
    /// Seed of rows and order.
    pub seed: u64,
}

/// A planned experiment, before any change is made.
pub struct Planned {
    /// The document, without results.
    pub document: ClassComparison,
    /// Settings of the whole host that it changes meanwhile, as `LEVER=VALUE`.
    pub of_the_host: Vec<String>,
    /// The classes, in the order of the document's.
    pub(super) classes: Vec<Class>,
    /// The arms with the tables of one storage engine each: those of the baseline, the treatment and the second copy.
    pub(super) arms: Vec<Vec<ServerArm>>,
    /// Shortest time of a measurement, pause before it, and least time of a class before its first one.
    pub(super) times: Times,
    /// Rounds that an earlier execution measured.
    pub(super) before: Vec<ClassRound>,
}

/// Lengths of the parts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) turn: Duration,
    pub(super) pause: Duration,
    pub(super) warmup: Duration,
}

/// A class of statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Class {
    /// The database of its tables.
    pub(super) database: String,
    /// Its statements with their names, in their order.
    pub(super) statements: Vec<(String, String)>,
}

impl Planned {
    /// Parses the arms and resolves the load of each class.
    ///
    /// # Errors
    /// All mistakes: the experiment has no classes, arms that do not parse or do not differ, classes that the workload does
    /// not have.
    pub fn plan(wanted: &ClassesRequest, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let one = |error: ProveError| vec![error];
        let definition = &wanted.definition;
        let Some(classes) = &definition.classes else {
            return Err(one(ProveError::NoClasses { name: definition.name.clone() }));
        };
        if wanted.baseline == wanted.treatment {
            let label = match wanted.baseline.first() {
                None => "the server as it is".to_owned(),
                Some(level) => format!("{}={}", level.lever, level.value),
            };
            return Err(one(ProveError::SameArms { label }));
        }
        let (extent, of_classes) = extent(definition, classes, wanted.full);
        let (found, _) = times(extent).map_err(|(value, why)| {
            one(ProveError::Plan { arm: "extent".to_owned(), why: format!("{value}: {why}") })
        })?;
        let mut planned = Vec::new();
        for name in &classes.names {
            planned.push(class(name, definition, of_classes, now)?);
        }
        let mut arms = Vec::new();
        for engine in engines(classes) {
            let load = load(definition, SCRIPT, engine, of_classes.scale);
            arms.push(arms_of(wanted, &load, now)?);
        }
        let changes = arms.first().map(|arms| of_the_host(arms)).unwrap_or_default();
        let seconds = Duration::from_secs_f64;
        Ok(Self {
            document: document(wanted, classes, of_classes, extent, now),
            of_the_host: changes,
            classes: planned,
            arms,
            times: Times {
                turn: seconds(found.slice_s),
                pause: seconds(found.settle_s),
                warmup: seconds(found.warmup_s),
            },
            before: Vec::new(),
        })
    }

    /// The interrupted experiment of a folder, with the rounds that it has. Servers that were up when it ended are gone, so that the
    /// rest of their start is a start of its own.
    ///
    /// # Errors
    /// There is none, or it cannot be planned again.
    pub fn resume(folder: &Path, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let (document, before) = read(folder).map_err(|error| vec![error])?;
        let wanted = ClassesRequest {
            definition: document.definition.clone(),
            full: document.full,
            baseline: document.baseline.clone(),
            treatment: document.treatment.clone(),
            budget: Some(Duration::from_secs_f64(document.budget_s)),
            starts: Some(document.starts),
            seed: document.seed,
        };
        let planned = Self::plan(&wanted, now)?;
        let mut kept = ClassComparison { answer: String::new(), ..document };
        for (class, fresh) in kept.classes.iter_mut().zip(&planned.document.classes) {
            (class.points, class.gain, class.not_measured) = (Vec::new(), None, fresh.not_measured.clone());
        }
        Ok(Self { document: kept, before, ..planned })
    }

    /// Peak disk usage in bytes, roughly: three data directories with the tables of all storage engines.
    pub fn disk_bytes(&self) -> u64 {
        let of = |arms: &Vec<ServerArm>| arms.first().map_or(0, |arm| arm.load.work.tables.disk_bytes());
        let tables: u64 = self.arms.iter().map(of).sum();
        Role::ALL.len() as u64 * (crate::comparison::DATA_DIRECTORY + tables + tables / 4)
    }
}

fn extent<'a>(
    definition: &'a Definition,
    classes: &'a Classes,
    full: bool,
) -> (&'a Extent, &'a ClassesExtent) {
    if full { (&definition.full, &classes.full) } else { (&definition.quick, &classes.quick) }
}

/// Time for the experiment in seconds, as the user or the file has it.
fn budget_s(wanted: &ClassesRequest, extent: &Extent) -> f64 {
    let of_file = times(extent).map_or(0.0, |(_, budget_s)| budget_s);
    wanted.budget.map_or(of_file, |budget| budget.as_secs_f64())
}

/// Each storage engine once, in the order of the classes.
fn engines(classes: &Classes) -> Vec<&str> {
    let mut engines: Vec<&str> = Vec::new();
    for (_, engine) in classes.names.iter().filter_map(|name| name.split_once('/')) {
        if !engines.contains(&engine) {
            engines.push(engine);
        }
    }
    engines
}

/// The database of a storage engine's tables.
fn database(engine: &str) -> String {
    format!("mydyno_{engine}")
}

/// The load of a class: that of the experiment, with the options of the class.
fn load(definition: &Definition, class: &str, engine: &str, scale: u64) -> LoadDefinition {
    let mut load =
        LoadDefinition { connections: Some(1), database: Some(database(engine)), ..definition.load.clone() };
    let options = [("class", Value::from(class)), ("storage-engine", engine.into()), ("scale", scale.into())];
    load.options.extend(options.map(|(name, value)| (name.to_owned(), value)));
    load
}

/// Whether the workload of an experiment has a class of this name, as in `update-join/innodb`.
///
/// # Errors
/// All mistakes.
pub(crate) fn check(
    name: &str,
    definition: &Definition,
    extent: &ClassesExtent,
    now: OffsetDateTime,
) -> Result<(), Vec<ProveError>> {
    class(name, definition, extent, now).map(drop)
}

fn class(
    name: &str,
    definition: &Definition,
    extent: &ClassesExtent,
    now: OffsetDateTime,
) -> Result<Class, Vec<ProveError>> {
    let Some((class, engine)) = name.split_once('/') else {
        let why = "a class has the form CLASS/ENGINE, as in like-scan/innodb".to_owned();
        return Err(vec![ProveError::Plan { arm: name.to_owned(), why }]);
    };
    let load = load(definition, class, engine, extent.scale);
    let common = Common { set_up: &[], load: &load, slice_s: 1.0, now };
    let found = server_arm(Role::Baseline, name, &[], &common)?;
    let of = found.load.work.operations().iter().filter(|operation| !operation.sql.is_empty());
    let statements = of.map(|operation| (operation.name.clone(), operation.sql.clone())).collect();
    Ok(Class { database: database(engine), statements })
}

/// The arms in the order of [`Role::ALL`].
fn arms_of(
    wanted: &ClassesRequest,
    load: &LoadDefinition,
    now: OffsetDateTime,
) -> Result<Vec<ServerArm>, Vec<ProveError>> {
    let set_up: Vec<LeverLevel> =
        wanted.definition.set_up.iter().filter_map(|text| side::level(text)).collect();
    let common = Common { set_up: &set_up, load, slice_s: 1.0, now };
    let mut arms = Vec::new();
    for role in Role::ALL {
        let own = if role == Role::Treatment { &wanted.treatment } else { &wanted.baseline };
        let arm = server_arm(role, role.name(), own, &common)?;
        if let Some((lever, ..)) = arm.lever_set.all.iter().find(|(_, _, when)| when.is_in_place()) {
            let why = format!("{lever} is no lever of a server's start, and each arm has servers of its own");
            return Err(plan_errors(role.name(), &[why]));
        }
        arms.push(arm);
    }
    Ok(arms)
}

fn document(
    wanted: &ClassesRequest,
    classes: &Classes,
    extent: &ClassesExtent,
    times: &Extent,
    now: OffsetDateTime,
) -> ClassComparison {
    let definition = &wanted.definition;
    let result = |name: &String| ClassResult {
        name: name.clone(),
        plans_differ: None,
        statements: Vec::new(),
        points: Vec::new(),
        gain: None,
        not_measured: Vec::new(),
    };
    ClassComparison {
        header: Header::of::<ClassComparison>(now),
        experiment: definition.name.clone(),
        question: definition.question.clone(),
        answer: String::new(),
        baseline: wanted.baseline.clone(),
        treatment: wanted.treatment.clone(),
        servers: Vec::new(),
        starts: wanted.starts.or(times.starts.map(|n| n as usize)).unwrap_or(1).max(1),
        rounds: extent.rounds,
        connections: extent.connections.clone(),
        definition: definition.clone(),
        full: wanted.full,
        budget_s: budget_s(wanted, times),
        seed: wanted.seed,
        classes: classes.names.iter().map(result).collect(),
        set_up: vec![
            format!("{} at a scale of {} % of the published sizes", definition.load.workload, extent.scale),
            "three servers up together (a second copy of the baseline shows the noise), one measured at a time".to_owned(),
        ],
        published: definition.published.clone(),
        stand_in: definition.stand_in.clone(),
        command: None,
        extra: Map::new(),
    }
}
