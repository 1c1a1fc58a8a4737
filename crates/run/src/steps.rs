//! A resolved request as a workload that can be prepared and run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::clock::MonotonicClock;
use mydyno_load::{End, LoadError, StepEvent, StepSpec, Warmup, run_step};
use mydyno_model::plan::{Plan, StepPlan};
use mydyno_model::record::OperationInfo;
use mydyno_tables::prepare::Tables;
use mydyno_tables::work_tables::WorkTables;
use mydyno_wire::{Client, WireError};
use mydyno_workload::registered::Request;
use mydyno_workload::registry::{AnyWorkload, Visitor};
use mydyno_workload::user_statement::UserStatement;
use mydyno_workload::{OptionError, Workload};

use crate::request::Resolved;

/// A step with its position in the plan.
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
    /// Number of connections that fill them.
    pub fillers: usize,
    workload: AnyWorkload,
}

impl Work {
    /// The workload of a plan.
    ///
    /// # Errors
    /// Options that contradict each other.
    pub fn new(resolved: &Resolved) -> Result<Self, Vec<OptionError>> {
        let plan = &resolved.draft;
        let (workload, tables) = AnyWorkload::build(&Request {
            name: resolved.spec.name,
            options: &resolved.options,
            database: &plan.database,
            connections: plan.steps.iter().map(|s| s.connections).max().unwrap_or(1),
            seed: plan.seed,
        })?;
        // Each connection occupies a thread of the server, and generating rows takes as long: one per CPU keeps both
        // busy.
        let fillers = std::thread::available_parallelism().map_or(2, usize::from).max(2);
        let work = Self { tables, fillers, workload };
        Ok(if work.workload.keeps_row_count() {
            work
        } else {
            work.with_tables(Tables::for_changing_row_count)
        })
    }

    /// Operations, the transaction first.
    pub fn operations(&self) -> &[OperationInfo] {
        self.workload.operations()
    }

    /// Statements that each connection prepares.
    pub fn statements(&self) -> usize {
        self.workload.statements()
    }

    /// Whether it changes data.
    pub fn writes(&self) -> bool {
        self.workload.writes()
    }

    /// As given, with changes to tables of the OLTP family.
    #[must_use]
    pub fn with_tables(mut self, change: impl FnOnce(Tables) -> Tables) -> Self {
        if let WorkTables::Oltp(tables) = self.tables {
            self.tables = WorkTables::Oltp(change(tables));
        }
        self
    }

    /// Statements that restore the tables to the state in which a step starts.
    pub fn before_step(&self) -> Vec<String> {
        self.workload.before_step()
    }

    /// Bytes of the longest statement that is sent as text.
    pub fn longest_query_bytes(&self) -> usize {
        self.workload.longest_query_bytes()
    }

    /// Whether it uses the user's tables and all of its statements only read.
    pub fn only_reads_users_tables(&self) -> bool {
        !self.tables.is_made() && !self.writes()
    }

    /// Fingerprint of its stream of operations; of a mix also that of its file.
    pub fn fingerprint(&self) -> String {
        self.workload.fingerprint()
    }

    /// Statements written by the user.
    pub fn user_statements(&self) -> &[UserStatement] {
        self.workload.user_statements()
    }

    /// Runs one step of the plan.
    ///
    /// # Errors
    /// The load could not start.
    pub fn run(
        &self,
        clock: &MonotonicClock,
        step: &NumberedStep<'_>,
        connect: Connect<'_>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        let load = RealLoad { clock, stop, sink };
        self.workload.visit(step.number as u64, StepBuilder { step, connect, load })
    }

    /// Calls `load` with the definition of the step for a workload of the OLTP family, the only type whose load is
    /// simulated: each type takes seconds to compile.
    #[cfg(test)]
    pub(crate) fn visit_oltp<L: StepVisitor>(
        &self,
        step: &NumberedStep<'_>,
        connect: Connect<'_>,
        load: L,
    ) -> L::Output {
        match &self.workload {
            AnyWorkload::Oltp(workload) => StepBuilder { step, connect, load }.visit(&**workload),
            other => panic!("{other:?} is not of the OLTP family"),
        }
    }
}

/// Opens a connection of the load.
pub(crate) type Connect<'a> = &'a (dyn Fn() -> Result<Client, WireError> + Sync);

/// Runs a step for a workload of any type.
pub(crate) trait StepVisitor {
    type Output;

    fn visit<W: Workload>(self, spec: &StepSpec<'_, W>) -> Self::Output;
}

/// Load on a real server, in real time.
struct RealLoad<'a> {
    clock: &'a MonotonicClock,
    stop: &'a AtomicBool,
    sink: &'a mut dyn FnMut(StepEvent),
}

impl StepVisitor for RealLoad<'_> {
    type Output = Result<End, LoadError>;

    fn visit<W: Workload>(self, spec: &StepSpec<'_, W>) -> Self::Output {
        run_step(self.clock, spec, self.stop, self.sink)
    }
}

/// Builds the load's definition of a step from the plan's.
struct StepBuilder<'a, L> {
    step: &'a NumberedStep<'a>,
    connect: Connect<'a>,
    load: L,
}

impl<L: StepVisitor> Visitor for StepBuilder<'_, L> {
    type Output = L::Output;

    fn visit<W: Workload>(self, workload: &W) -> Self::Output {
        let step = self.step;
        self.load.visit(&StepSpec {
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
            connect: self.connect,
        })
    }
}

/// Name of the random stream of the repeats' seeds.
const REPEAT: u64 = u64::from_be_bytes(*b"\0\0repeat");

/// Seed of arrivals and think times. Every repeat has its own: with the same instants in all of them the differences
/// between repeats would not contain the randomness of a schedule.
fn pace_seed(seed: u64, repeat: usize) -> u64 {
    match repeat {
        0 => seed,
        _ => mydyno_stats::Rng::stream(seed, &[REPEAT, repeat as u64]).next_u64(),
    }
}
