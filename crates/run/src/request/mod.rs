//! The user's request as text, and its resolution to a plan, with all errors at once.

mod arrivals;
mod draft;
mod faults;
mod input;
mod keeping;
mod limits;
mod resolve;
mod search;
mod sweep;

pub use draft::{Draft, Resolved};
pub use faults::PlanError;
pub use input::Request;
pub use resolve::{Machine, resolve};
