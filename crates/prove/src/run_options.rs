//! Options of an execution that experiments with several factors and classes of statements share.

use std::path::PathBuf;

use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_run::Cancel;

/// Options of the execution.
pub struct RunOptions<'a> {
    /// The state folder, its journal and a lease.
    pub host: &'a Host,
    /// The user's permission to change the host.
    pub allow_host_change: Option<AllowHostChange>,
    /// Folder of the experiment.
    pub folder: PathBuf,
    /// Whether the folder exists already.
    pub resume: bool,
    /// The command that repeats it.
    pub command: Option<String>,
    /// Lines on the host.
    pub set_up: Vec<String>,
    /// Set by the user to end the experiment.
    pub stop: &'a Cancel,
}
