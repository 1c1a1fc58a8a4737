//! How a server is asked: the clock, arrivals, connections, the executor and the recorders.
//!
//! One worker thread drives many connections. Each connection is a task: an `async fn` over the workload's
//! transaction, polled by exactly those events of the kernel that concern its socket. The hot path allocates
//! nothing, takes no lock, formats nothing and makes no system call but the I/O itself. Recorders belong to a worker
//! and are handed over once a second.

mod account;
pub mod clock;
mod connection;
mod drive;
mod error;
mod executor;
mod gate;
mod ledger;
mod net;
pub mod null;
mod opening;
mod outbox;
mod packets;
mod recorder;
pub mod retry;
mod ring;
mod schedule;
mod step;
mod sys;
mod waiting;
mod window;
mod worker;

pub use error::LoadError;
pub use net::{available, cheapest as cheapest_backend};
pub use recorder::FirstError;
pub use step::{End, Shortfalls, StepEvent, StepSpec, run_step};
pub use window::{Warmup, Windows};
