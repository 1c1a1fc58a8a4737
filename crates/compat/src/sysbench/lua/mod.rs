//! Lua scripts: states, the program's functions for them, commands and the test that a script describes.

mod command;
mod connection;
mod random;
mod script;
mod state;
mod target;
mod test;
mod twin;
mod twin_load;
mod twin_start;

pub(crate) use command::run_script;
pub(crate) use twin::may_have_twin;
