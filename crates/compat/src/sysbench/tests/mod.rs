//! The tests that sysbench has built in.

mod cpu;
mod memory;
mod mutex;
mod threads;

use std::sync::Arc;

use super::engine::Engine;
use super::log::Log;
use super::options::{Definition, Options};
use super::runner::{Reporter, Test};

/// A test that is built in.
pub(crate) struct BuiltIn {
    pub(crate) name: &'static str,
    /// One line for the help.
    pub(crate) summary: &'static str,
    pub(crate) options: fn() -> Vec<Definition>,
    /// Checks the options. The text of a fatal line where they are not possible.
    pub(crate) prepare: fn(&Options, threads: usize) -> Result<Ready, String>,
}

/// A test that can run.
pub(crate) struct Ready {
    pub(crate) test: Arc<dyn Test>,
    pub(crate) main: Box<dyn Reporter>,
    /// Prints what the test is going to do.
    pub(crate) print_mode: Box<dyn Fn(&Log)>,
}

/// The tests in the order of the help.
pub(crate) const ALL: &[BuiltIn] = &[cpu::TEST, memory::TEST, threads::TEST, mutex::TEST];

/// The test of this name.
pub(crate) fn find(name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|test| test.name == name)
}

/// Runs `event` until there are no more; `event` gives `false` when the thread has no more work.
pub(crate) fn run_events(engine: &Engine, thread: usize, mut event: impl FnMut() -> bool) -> bool {
    while let Some(begin) = engine.next_event() {
        match event() {
            true => engine.event_ended(thread, begin),
            false => {
                engine.event_given_up();
                break;
            }
        }
    }
    true
}
