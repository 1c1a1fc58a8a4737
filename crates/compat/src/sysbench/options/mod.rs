//! Options of sysbench: definitions, values, the command line, option files, help.

mod file;
mod help;
mod line;
mod table;
mod value;

pub(crate) use help::print_options;
pub(crate) use line::{CommandLine, Other, read};
pub(crate) use table::{DATABASE, GENERAL, LOG, MYSQL, PGSQL, RANDOM, additions};
pub(crate) use value::{Definition, Kind, Options, leading_int};
