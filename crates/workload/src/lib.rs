//! The workloads: options, tables, data and the transactions that are sent to a server.
//!
//! A workload has two parts. Its *description* ([`Spec`]) is data: name, options, purpose; the catalogue, the command
//! line and the documentation are generated from it. Its *behaviour* ([`Workload`]) defines the statements that it
//! prepares and, as an `async fn` over a [`Session`], the statements of one transaction. Crate `load` drives
//! transactions (connections, clocks, arrivals, recording).

pub mod build_compare;
pub mod bulk_insert;
pub mod catalogue;
pub mod data;
pub mod distribution;
pub mod draws;
pub mod engine;
pub mod fingerprint;
#[cfg(test)]
mod golden;
pub mod hot_row;
pub mod mix;
pub mod oltp;
pub mod oltp_insert;
pub mod options;
pub mod registered;
pub mod registry;
pub mod sbtest;
pub mod select_random;
pub mod session;
pub mod slap;
pub mod sql;
pub mod tpcc;
pub mod transcript;
pub mod user_statement;

pub use catalogue::{Spec, find};
pub use options::{OptionError, Options};
pub use session::{
    Command, Due, Fault, Handle, Param, Session, Statement, StatementSpec, TransactionStream, Workload,
};

// One line a workload: its name as a type, and the type.
registry::register! {
    Oltp: crate::oltp::Oltp,
    OltpInsert: crate::oltp_insert::OltpInsert,
    SelectRandom: crate::select_random::SelectRandom,
    BulkInsert: crate::bulk_insert::BulkInsert,
    HotRow: crate::hot_row::HotRow,
    BuildCompare: crate::build_compare::BuildCompare,
    Tpcc: crate::tpcc::Tpcc,
    Slap: crate::slap::Slap,
    Sql: crate::sql::Sql,
    Mix: crate::mix::Mix,
}
