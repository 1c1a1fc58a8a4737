//! The tests that sysbench has built in.

mod cpu;
mod events;
mod fileio;
mod memory;
mod mutex;
mod threads;

use std::sync::Arc;

use super::log::Log;
use super::options::{Definition, Options};
use super::runner::{Reporter, Test};
use events::run_events;

/// A test that is built in.
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    /// One line for the help.
    pub(crate) summary: &'static str,
    pub(crate) options: fn() -> Vec<Definition>,
    /// Checks the options. The text of a fatal line where they are not possible.
    pub(crate) prepare: fn(&Options, threads: usize) -> Result<Ready, String>,
    /// Other commands than `run` and `help`, with their exit status.
    pub(crate) commands: &'static [(&'static str, Command)],
}

/// A command of a test.
pub(crate) type Command = fn(&Options, &Log) -> u8;

/// A test that can run.
pub(crate) struct Ready {
    pub(crate) test: Arc<dyn Test>,
    pub(crate) main: Box<dyn Reporter>,
    /// Prints what the test is going to do.
    pub(crate) print_mode: Box<dyn Fn(&Log)>,
}

/// The tests in the order of the help.
pub(crate) const ALL: &[BuiltIn] = &[fileio::TEST, cpu::TEST, memory::TEST, threads::TEST, mutex::TEST];

/// The test of this name.
pub(crate) fn find(name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|test| test.name == name)
}
