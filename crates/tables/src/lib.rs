//! Databases that carry the mark of mydyno: created, filled on several connections, resumed, verified and dropped.
//!
//! Tables come in two forms. [`prepare::Tables`] is a data set whose rows a function of seed, table and row number makes
//! ([`table::Table`]); [`own_tables::OwnTables`] is a description as data, with a generator for each column. Both are
//! behind [`work_tables::WorkTables`]. Data is only created in, and dropped from, databases that hold the mark
//! ([`mark`]).

pub mod condition;
pub mod digits;
pub mod engine;
pub mod fingerprint;
pub mod generator;
pub mod mark;
pub mod own_tables;
pub mod prepare;
pub mod purpose;
pub mod sql_text;
pub mod table;
pub mod work_tables;
pub mod zipf;
