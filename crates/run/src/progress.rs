//! The progress of a trial, for a caller that shows it.

use mydyno_model::plan::StepPlan;
use mydyno_model::record::{Interval, Phase};
use mydyno_tables::prepare::Prepared;

/// An event of a trial's progress.
#[derive(Debug)]
pub enum Progress<'a> {
    /// An event of making a private server.
    Server(&'a mydyno_sandbox::Progress),
    /// The server warned of a statement of the lever `schema.statement`.
    SchemaWarning {
        /// The statement.
        statement: &'a str,
        /// The warning.
        reported: &'a str,
    },
    /// A change of a private server that was not restored because others use it: a sentence that names it.
    LeftAlone(&'a str),
    /// Tables are being filled.
    Preparing {
        /// Rows that are stored.
        rows: u64,
        /// Rows of all tables.
        of: u64,
        /// Rows that an earlier preparation had stored.
        found: u64,
    },
    /// The tables are ready.
    Ready(Prepared),
    /// Connections are being opened.
    Connecting {
        /// Step.
        step: &'a StepPlan,
        /// Open connections.
        done: usize,
        /// Connections of the step.
        of: usize,
    },
    /// Statements that check the tables are being sent.
    Looking {
        /// Answered statements.
        done: usize,
        /// All statements.
        of: usize,
    },
    /// A step is about to begin.
    Step {
        /// Number of the step, from 0.
        number: usize,
        /// Step.
        step: &'a StepPlan,
        /// Number of steps before it.
        before: usize,
        /// Number of steps in all; `None` while a search may add some.
        of: Option<usize>,
    },
    /// A step of a search has ended.
    Tried {
        /// Step.
        step: &'a StepPlan,
        /// Requirements that did not hold; empty when all did.
        broken: &'a [String],
    },
    /// A phase of a step began.
    Phase {
        /// Number of the step, from 0.
        number: usize,
        /// Step.
        step: &'a StepPlan,
        /// Phase.
        phase: Phase,
    },
    /// A second of load has ended.
    Interval {
        /// Step.
        step: &'a StepPlan,
        /// Its counts and times.
        interval: &'a Interval,
    },
}

/// Receives the progress of a trial or an audit, on the thread that called it.
pub type Watch<'w> = dyn FnMut(Progress<'_>) + 'w;
