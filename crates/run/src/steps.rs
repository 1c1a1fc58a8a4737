//! From a workload's description to its behaviour: the one place that knows all kinds.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::{End, LoadError, StepEvent, StepSpec, Warmup, clock::Clock, run_step};
use mydyno_model::plan::{Plan, StepPlan};
use mydyno_model::record::OperationInfo;
use mydyno_wire::{Client, WireError};
use mydyno_workload::catalogue::Kind;
use mydyno_workload::hot_row::HotRow;
use mydyno_workload::mix::{Asked, Mix};
use mydyno_workload::oltp::Oltp;
use mydyno_workload::prepare::Tables;
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
    /// What the plan says of it.
    pub plan: &'a StepPlan,
    /// What it says of all.
    pub whole: &'a Plan,
    /// Load before the measurement.
    pub warmup: Warmup<'a>,
}

/// A workload that can be prepared and run.
pub struct Work {
    /// Its tables.
    pub tables: WorkTables,
    behaviour: Behaviour,
}

enum Behaviour {
    Oltp(Oltp),
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
        let (plan, options) = (&resolved.plan, &resolved.options);
        let (database, seed) = (&plan.database, plan.seed);
        let (tables, behaviour) = match resolved.spec.kind {
            Kind::Oltp(mix) => (
                WorkTables::Oltp(Tables::new(database, options, seed)),
                Behaviour::Oltp(Oltp::new(mix, options, seed)?),
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
        Ok(Self { tables, behaviour })
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
            Behaviour::Oltp(_) | Behaviour::HotRow(_) | Behaviour::Slap(_) => &[],
        }
    }

    /// Runs one step of the plan.
    ///
    /// # Errors
    /// The load could not start.
    pub fn run(
        &self,
        clock: &Clock,
        step: &NumberedStep<'_>,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        with!(self, workload => {
            let spec = StepSpec {
                number: step.number,
                workload,
                connections: step.plan.connections,
                workers: step.plan.workers,
                arrivals: &step.plan.arrivals,
                seed: step.whole.seed,
                warmup: step.warmup,
                measure: Duration::from_secs_f64(step.whole.time_s),
                keep: &step.whole.connections,
                stop_on_error: step.whole.stop_on_error.as_ref(),
                connect,
            };
            run_step(clock, &spec, stop, sink)
        })
    }
}
