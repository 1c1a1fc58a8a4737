//! The load engine: clock, arrivals, connections, executor and recorders.
//!
//! One worker thread drives many connections. Each connection is a task: an `async fn` over the workload's
//! transaction, polled by exactly those events of the kernel that concern its socket. The hot path allocates
//! nothing, takes no lock, formats nothing and makes no system call but the I/O itself. Recorders belong to a worker
//! and are handed over once a second.
//!
//! Time, bytes and events come through `transport::Transport`: from sockets, or from a simulation in virtual time.

mod answer;
mod barrier;
pub mod clock;
mod connection;
mod context;
mod coordinator;
mod drive;
mod error;
mod event;
mod executor;
pub mod fibers;
mod handover;
mod late_statements;
mod merger;
mod net;
pub mod null;
mod opener_pool;
mod opening;
mod packets;
mod pool;
mod recorder;
mod reporter;
pub mod retry;
mod ring;
mod schedule;
mod send_queue;
pub mod session;
mod shared;
mod shared_columns;
#[cfg(any(test, feature = "simulation"))]
pub mod simulation;
mod step;
mod sys;
mod transport;
mod usage;
mod waiting;
mod window;
mod worker;

pub use error::LoadError;
pub use event::{End, Shortfalls, StepEvent, StepSpec};
pub use net::{available, cheapest as cheapest_backend, default_workers};
pub use recorder::FirstError;
pub use step::run_step;
pub use window::{Warmup, Windows};
