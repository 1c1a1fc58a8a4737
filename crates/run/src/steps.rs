//! From a workload's description to its behaviour: the one place that knows all kinds.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::{End, LoadError, StepEvent, StepSpec, Warmup, clock::MonotonicClock, run_step};
use mydyno_model::plan::{Plan, StepPlan};
use mydyno_model::record::OperationInfo;
use mydyno_wire::{Client, WireError};
use mydyno_workload::bulk_insert::BulkInsert;
use mydyno_workload::catalogue::Kind;
use mydyno_workload::hot_row::HotRow;
use mydyno_workload::mix::{Asked, Mix};
use mydyno_workload::oltp::Oltp;
use mydyno_workload::oltp_insert::OltpInsert;
use mydyno_workload::prepare::Tables;
use mydyno_workload::sbtest;
use mydyno_workload::select_random::SelectRandom;
use mydyno_workload::slap::Slap;
use mydyno_workload::sql::Sql;
use mydyno_workload::work_tables::WorkTables;
use mydyno_workload::{OptionError, Workload, fingerprint};

use crate::request::Resolved;

/// A step with its place in the plan.
#[derive(Clone, Copy)]
pub struct NumberedStep<'a> {
    /// From 0.
    pub number: usize,
    /// Its entry in the plan.
    pub plan: &'a StepPlan,
    /// The whole plan.
    pub whole: &'a Plan,
    /// Load before the measurement.
    pub warmup: Warmup<'a>,
}

/// A workload that can be prepared and run.
pub struct Work {
    /// Its tables.
    pub tables: WorkTables,
    /// Connections that fill them.
    pub fillers: usize,
    behaviour: Behaviour,
}

enum Behaviour {
    Oltp(Oltp),
    OltpInsert(OltpInsert),
    SelectRandom(SelectRandom),
    BulkInsert(BulkInsert),
    HotRow(HotRow),
    Slap(Slap),
    Sql(Sql),
    Mix(Box<Mix>),
}

/// The same for every behaviour, with its own type.
macro_rules! with {
    ($work:expr, $workload:ident => $what:expr) => {
        match &$work.behaviour {
            Behaviour::Oltp($workload) => $what,
            Behaviour::OltpInsert($workload) => $what,
            Behaviour::SelectRandom($workload) => $what,
            Behaviour::BulkInsert($workload) => $what,
            Behaviour::HotRow($workload) => $what,
            Behaviour::Slap($workload) => $what,
            Behaviour::Sql($workload) => $what,
            Behaviour::Mix($workload) => {
                let $workload: &Mix = $workload;
                $what
            }
        }
    };
}

impl Work {
    /// The workload of a plan.
    ///
    /// # Errors
    /// Options that do not fit together.
    pub fn new(resolved: &Resolved) -> Result<Self, Vec<OptionError>> {
        let (plan, options) = (&resolved.draft, &resolved.options);
        let (database, seed) = (&plan.database, plan.seed);
        let connections = plan.steps.iter().map(|s| s.connections).max().unwrap_or(1);
        let sbtests = |database: &str| {
            sbtest::data(options, seed).map(|data| WorkTables::Oltp(Tables::new(database, data)))
        };
        let (tables, behaviour) = match resolved.spec.kind {
            Kind::Oltp(mix) => (sbtests(database)?, Behaviour::Oltp(Oltp::new(mix, options, seed)?)),
            Kind::OltpInsert => (sbtests(database)?, Behaviour::OltpInsert(OltpInsert::new(options, seed))),
            Kind::SelectRandom(shape) => {
                (sbtests(database)?, Behaviour::SelectRandom(SelectRandom::new(shape, options, seed)))
            }
            Kind::BulkInsert => (
                WorkTables::Own(BulkInsert::tables(database, options, connections, seed)),
                Behaviour::BulkInsert(BulkInsert::new(options, connections)),
            ),
            Kind::HotRow => (
                WorkTables::Own(HotRow::tables(database, options, seed)),
                Behaviour::HotRow(HotRow::new(options, seed)?),
            ),
            Kind::Slap => (
                WorkTables::Own(Slap::tables(database, options, seed)?),
                Behaviour::Slap(Slap::new(options, seed)?),
            ),
            Kind::Sql => (WorkTables::Users(database.clone()), Behaviour::Sql(Sql::new(options, seed)?)),
            Kind::Mix => {
                let mix = Mix::new(options, seed)?;
                let tables = match mix.tables(database) {
                    Some(tables) => WorkTables::Own(tables),
                    None => WorkTables::Users(database.clone()),
                };
                (tables, Behaviour::Mix(Box::new(mix)))
            }
        };
        // A thread of the server works for each, and generating rows takes as long: one for each CPU keeps both busy.
        let fillers = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let work = Self { tables, fillers, behaviour };
        Ok(if work.keeps_row_count() { work } else { work.with_tables(Tables::for_changing_row_count) })
    }

    /// Operations, the transaction first.
    pub fn operations(&self) -> &[OperationInfo] {
        with!(self, workload => workload.operations())
    }

    /// Statements that each connection prepares.
    pub fn statements(&self) -> usize {
        with!(self, workload => workload.statements().len())
    }

    /// Whether it changes data.
    pub fn writes(&self) -> bool {
        with!(self, workload => workload.writes())
    }

    /// Whether transactions leave as many rows as they find.
    fn keeps_row_count(&self) -> bool {
        with!(self, workload => workload.keeps_row_count())
    }

    /// The same with tables of the OLTP family changed.
    #[must_use]
    pub fn with_tables(mut self, change: impl FnOnce(Tables) -> Tables) -> Self {
        if let WorkTables::Oltp(tables) = self.tables {
            self.tables = WorkTables::Oltp(change(tables));
        }
        self
    }

    /// Statements that put the tables back to where a step starts from.
    pub fn before_step(&self) -> Vec<String> {
        with!(self, workload => workload.before_step())
    }

    /// Bytes of the longest statement that is sent as text.
    pub fn longest_query_bytes(&self) -> usize {
        with!(self, workload => workload.longest_query_bytes())
    }

    /// Whether it asks tables of the user's and its statements only read.
    pub fn only_reads_users_tables(&self) -> bool {
        !self.tables.is_made() && !self.writes()
    }

    /// Fingerprint of its stream of operations; of a mix also that of its file.
    pub fn fingerprint(&self) -> String {
        let operations = with!(self, workload => fingerprint::operations(workload));
        match &self.behaviour {
            Behaviour::Mix(mix) => format!("{operations}-{}", mix.content()),
            _ => operations,
        }
    }

    /// Statements that the user wrote.
    pub fn asked(&self) -> &[Asked] {
        match &self.behaviour {
            Behaviour::Sql(sql) => sql.asked(),
            Behaviour::Mix(mix) => mix.asked(),
            _ => &[],
        }
    }

    /// Runs one step of the plan.
    ///
    /// # Errors
    /// The load could not start.
    pub fn run(
        &self,
        clock: &MonotonicClock,
        step: &NumberedStep<'_>,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        match &self.behaviour {
            Behaviour::Mix(mix) => load(&mix.at_step(step.number as u64), clock, step, connect, stop, sink),
            _ => with!(self, workload => load(workload, clock, step, connect, stop, sink)),
        }
    }
}

fn load<W: Workload>(
    workload: &W,
    clock: &MonotonicClock,
    step: &NumberedStep<'_>,
    connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
    stop: &AtomicBool,
    sink: &mut dyn FnMut(StepEvent),
) -> Result<End, LoadError> {
    let spec = StepSpec {
        number: step.number,
        workload,
        connections: step.plan.connections,
        workers: step.plan.workers,
        arrivals: &step.plan.arrivals,
        seed: pace_seed(step.whole.seed, step.plan.repeat),
        warmup: step.warmup,
        measure: Duration::from_secs_f64(step.whole.time_s),
        keep: &step.whole.connections,
        wait: &step.whole.wait,
        stop_on_error: step.whole.stop_on_error.as_ref(),
        connect,
    };
    run_step(clock, &spec, stop, sink)
}

/// Names the random stream of the seeds of repeats.
const REPEAT: u64 = u64::from_be_bytes(*b"\0\0repeat");

/// Seed of arrivals and think times. A repeat has its own: with the same instants in all of them the differences between
/// repeats would not hold what chance does to a schedule.
fn pace_seed(seed: u64, repeat: usize) -> u64 {
    match repeat {
        0 => seed,
        _ => mydyno_stats::Rng::stream(seed, &[REPEAT, repeat as u64]).next_u64(),
    }
}
