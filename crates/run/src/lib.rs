//! A complete run: the plan with all its errors at once, the guard, the phases, load and samplers in parallel, the
//! record's writer and reader, and the summary that is derived from the record.

pub mod archive;
pub mod audit;
mod beside;
pub mod bound;
pub mod capacity;
mod control;
mod course;
mod due;
mod error;
pub mod folder;
pub mod guard;
pub mod kept;
mod lines;
mod operation;
mod own_flag;
mod progress;
mod reconnect;
mod recording;
mod repeats;
pub mod request;
mod sample_stream;
mod samples_in;
mod sampling;
mod server;
mod settled;
#[cfg(test)]
mod simulation;
mod slice;
mod spikes;
mod stacks;
mod stall;
mod step;
pub mod steps;
pub mod summarise;
mod tables;
mod target;
mod tpcc;
mod tpcc_lint;
mod trial;
mod users_sql;
mod verdict;
mod warnings;
pub mod watch;
pub mod writer;

pub use audit::{AuditPlan, Audited, audit};
pub use error::RunError;
pub use progress::{Progress, Watch};
pub use request::{Draft, PlanError, Request, Resolved};
pub use slice::{Sliced, slice};
pub use step::EarlyEnd;
pub use tables::{LoadSite, check_tables, drop_tables, make_tables, read_tables};
pub use target::{Cancel, PrivateServer, Target};
pub use tpcc_lint::{TpccLintPlan, tpcc_lint};
pub use trial::{Ended, RecordPlan, TrialPlan, change_schema, check, cleanup, prepare, trial};
pub use verdict::Verdict;
