//! The request of a user as text, and the plan that it resolves to, with all its errors at once.

mod arrivals;
mod asked;
mod draft;
mod faults;
mod keeping;
mod limits;
mod resolve;
mod search;
mod sweep;

pub use asked::Request;
pub use draft::{Draft, Resolved};
pub use faults::PlanError;
pub use resolve::{Machine, resolve};
