//! Families of levers, one file each.

mod client;
pub(crate) mod disk;
mod group;
pub(crate) mod host;
mod option;
mod process;
mod program;
mod schema;
mod variable;
mod workload;

use crate::kind::Family;

/// All families, in the order of the list.
pub(crate) const FAMILIES: [&dyn Family; 10] = [
    &host::Host,
    &group::Group,
    &disk::Disk,
    &program::Program,
    &process::Process,
    &option::ServerOption,
    &variable::Variable,
    &schema::Schema,
    &workload::Workload,
    &client::Client,
];
