//! `tpcc`: work derived from TPC-C revision 5.11. Rules of the population and of the inputs, tables, transactions and
//! consistency conditions.
//!
//! Every value comes from the seed and from its place (table, warehouse, district, row), never from the clock, so that
//! tables can be filled in parallel and in any order. Results made with these rules are derived from TPC-C and are not
//! comparable with published TPC-C results. Clause numbers in this module are those of the specification.

pub mod batch;
mod builder;
mod calling;
pub mod calls;
pub mod cells;
pub mod channel;
pub mod conditions;
pub mod counts;
pub mod execute;
pub mod inputs;
pub mod lint;
mod new_order;
pub mod nurand;
pub mod options;
pub mod population;
pub mod procedures;
pub mod profile;
pub mod queue;
pub mod rules;
pub mod schema;
pub mod sets;
pub mod statements;
pub mod tables;
pub mod text;
pub mod waits;
pub mod workload;

pub use workload::Tpcc;

/// Rows of ITEM (clause 1.2.1).
pub const ITEMS: u64 = 100_000;
/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;
/// Customers of a district.
pub const CUSTOMERS: u64 = 3_000;
/// Orders of a district after the load.
pub const ORDERS: u64 = 3_000;
/// First order of a district that the load leaves undelivered: it and all later ones have a row in NEW_ORDER.
pub const FIRST_UNDELIVERED: u64 = 2_101;
/// Fewest lines of an order.
pub const FEWEST_LINES: u64 = 5;
/// Most lines of an order.
pub const MOST_LINES: u64 = 15;
/// Last names (clause 4.3.2.3).
pub const LAST_NAMES: u64 = 1_000;
