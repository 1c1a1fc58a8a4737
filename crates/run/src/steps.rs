//! From a workload's description to its behaviour: the one place that knows all kinds.

use std::sync::atomic::AtomicBool;

use mydyno_load::{End, LoadError, Phases, StepEvent, StepSpec, clock::Clock, run_step};
use mydyno_model::plan::StepPlan;
use mydyno_model::record::OperationInfo;
use mydyno_wire::{Client, WireError};
use mydyno_workload::catalogue::Kind;
use mydyno_workload::oltp::Oltp;
use mydyno_workload::prepare::Tables;
use mydyno_workload::{OptionError, Workload, fingerprint};

use crate::request::Resolved;

/// A step with its place in the plan.
#[derive(Debug, Clone, Copy)]
pub struct NumberedStep<'a> {
    /// From 0.
    pub number: usize,
    /// What the plan says.
    pub plan: &'a StepPlan,
    /// Warm-up and measurement.
    pub phases: Phases,
}

/// A workload that can be prepared and run.
pub struct Work {
    /// Its tables.
    pub tables: Tables,
    behaviour: Behaviour,
}

enum Behaviour {
    Oltp(Oltp),
}

impl Work {
    /// The workload of a plan.
    ///
    /// # Errors
    /// Options that do not fit together.
    pub fn new(resolved: &Resolved) -> Result<Self, Vec<OptionError>> {
        let plan = &resolved.plan;
        let tables = Tables::new(&plan.database, &resolved.options, plan.seed);
        let behaviour = match resolved.spec.kind {
            Kind::Oltp(mix) => Behaviour::Oltp(Oltp::new(mix, &resolved.options, plan.seed)?),
        };
        Ok(Self { tables, behaviour })
    }

    /// Operations, the transaction first.
    pub fn operations(&self) -> &[OperationInfo] {
        match &self.behaviour {
            Behaviour::Oltp(oltp) => oltp.operations(),
        }
    }

    /// Statements that each connection prepares.
    pub fn statements(&self) -> usize {
        match &self.behaviour {
            Behaviour::Oltp(oltp) => oltp.statements().len(),
        }
    }

    /// Whether it changes data.
    pub fn writes(&self) -> bool {
        match &self.behaviour {
            Behaviour::Oltp(oltp) => oltp.writes(),
        }
    }

    /// Fingerprint of its stream of operations.
    pub fn fingerprint(&self) -> String {
        match &self.behaviour {
            Behaviour::Oltp(oltp) => fingerprint::operations(oltp),
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
        match &self.behaviour {
            Behaviour::Oltp(workload) => {
                let spec = StepSpec {
                    number: step.number,
                    workload,
                    connections: step.plan.connections,
                    workers: step.plan.workers,
                    phases: step.phases,
                    connect,
                };
                run_step(clock, &spec, stop, sink)
            }
        }
    }
}
