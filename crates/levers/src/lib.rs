//! Levers: everything that an experiment can change, by name and value.
//!
//! [`LeverSet::parse`] reads a list of (lever, value) pairs, checks their form and reports all mistakes at once. The result is
//! split by the moment at which each part takes effect: on the whole host, at the start of a private server, while it runs,
//! on the tables of the workload, or in the workload itself. [`LeverSet::server`] is what `mydyno_sandbox::up` takes; the sandbox
//! journals each change and puts it back when the server ends.
//!
//! A family of levers is one file in `family/`: its names, the parsing of values, and its entries in `mydyno host
//! levers`.

mod bundle;
mod catalogue;
mod draft;
mod error;
mod family;
mod in_place;
mod info;
mod kind;
mod lever_set;
mod parse;

#[cfg(test)]
mod tests;

pub use catalogue::{list, nearest};
pub use error::LeverError;
pub use in_place::InPlace;
pub use lever_set::{Client, LeverSet, When};
pub use mydyno_host::task::parse_cpus;
