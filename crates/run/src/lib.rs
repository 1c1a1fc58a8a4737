//! One run, whole: the plan with all its errors at once, the guard, the phases, load beside observation, the record's
//! writer and reader, and the summary that is derived from the record.

mod bench;
pub mod bound;
pub mod capacity;
mod course;
mod due;
mod error;
pub mod folder;
pub mod guard;
mod recording;
mod repeats;
pub mod request;
mod sampling;
mod settled;
mod stall;
pub mod steps;
pub mod summarise;
mod users_sql;
mod warnings;
pub mod writer;

pub use bench::{Bench, Ended, Progress, bench, check, cleanup, prepare};
pub use error::RunError;
pub use request::{PlanError, Request, Resolved};
