//! Controlled experiments: two servers that differ in one thing, loaded alternately, and the effect of the difference.
//!
//! [`comparison`] runs a whole experiment. The order of the modules: [`experiment`] (files as data) → [`design`] (the
//! run table, written first) → [`execute`] (running servers, load on one arm at a time, slice by slice) → [`store`] (a
//! folder that stays readable however the experiment ends) → [`analyse`] (pure: slices to effects) → [`verdict`] (pure:
//! effects to an answer). [`factorial`] does the same for several factors at once.

pub mod analyse;
pub mod arm;
pub mod budget;
pub mod checkup;
pub mod classes;
pub mod comparison;
mod curve;
pub mod design;
mod duet;
mod error;
pub mod execute;
pub mod experiment;
pub mod factorial;
pub mod hog;
mod jobs;
pub mod ledger;
mod lines;
mod maker;
pub mod measure;
mod overhead;
pub mod price;
pub mod probing;
mod run_options;
mod server_cpu;
mod server_memory;
mod servers;
pub mod side;
mod slice;
pub mod statement;
pub mod store;
pub mod survival;
mod templates;
pub mod threats;
pub mod users_server;
pub mod verdict;

pub use error::ProveError;
