//! Private servers: found, initialised from templates, started, watched, ended.
//!
//! Every change that a private server makes to the host goes through the journal of `mydyno_host`: its folder, its
//! process, a template that is being built. [`up`] undoes all of it on any error; when the command is killed, `mydyno
//! host restore` does.

mod accounts;
mod arrangement;
mod cache;
pub mod client;
mod confine;
mod connect;
mod copy;
pub mod crash;
pub mod data;
mod deadline;
mod error;
pub mod find;
mod folder;
mod init;
mod lever_set;
mod list;
mod log;
mod lost;
mod memory;
mod option_file;
mod program;
mod purpose;
mod quirks;
mod settings;
mod site;
mod start;
mod template;
mod undo;
mod up;
pub mod users_server;
pub mod variable;
pub mod version;

pub use arrangement::{Arrangement, ENVIRONMENT};
pub use confine::confine;
pub use connect::connect_options;
pub use error::SandboxError;
pub use find::Install;
pub use folder::check_name;
pub use lever_set::ServerLevers;
pub use list::{down, free, list};
pub use log::tail;
pub use lost::{put_back_lost, unknown_to_journal};
pub use settings::{Setting, parse_set};
pub use site::{Progress, Site};
pub use undo::put_back_own as put_back;
pub use up::{Spec, up};
pub use version::{Engine, Family};
