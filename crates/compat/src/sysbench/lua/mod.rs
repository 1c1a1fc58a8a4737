//! Lua scripts: states, the program's functions for them, commands and the test that a script describes.

mod api;
mod calls;
mod client;
mod command;
mod connection;
mod fibers;
mod heap;
mod native;
mod parts;
mod random;
mod script;
mod state;
mod target;
mod test;
mod twin;
mod twin_load;
mod twin_start;

pub(crate) use command::run_script;
pub(crate) use random::{Numbers, key_options};
pub(crate) use twin::may_have_twin;
