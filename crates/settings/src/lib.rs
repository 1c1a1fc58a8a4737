//! Settings of servers and hosts: one table for facts, knobs and levers, and one ledger of the price of a setting.
//!
//! The data are embedded from `knobs/` at build time: `settings/` connects names, `ledger/` holds prices, `servers/`,
//! `history/`, `notes/` and `host/` describe variables, options and kernel settings. No file is read at run time.

mod embedded;
mod error;
mod form;
pub mod knobs;
mod ledger;
mod name;
mod nearest;
mod table;

pub use error::{Problem, SettingsError};
pub use form::Form;
pub use ledger::{Ledger, Price, is_safe, ledger};
pub use name::{Switch, bare_name};
pub use nearest::{nearest, several};
pub use table::{Row, Table, prices, table};
