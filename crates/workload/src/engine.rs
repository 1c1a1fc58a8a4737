//! The option for the storage engine.

pub use mydyno_tables::engine::Engine;
use mydyno_tables::engine::WORDS;

use crate::options::{Default, Form, OptionSpec};

/// `--storage-engine`.
pub const OPTION: OptionSpec = OptionSpec {
    name: "storage-engine",
    form: Form::Choice(WORDS),
    default: Default::Word("innodb"),
    help: "storage engine of the tables",
};
