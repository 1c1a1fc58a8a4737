//! A host and the lease under which one command changes it.

use mydyno_journal::Journal;
use mydyno_journal::Lease;
use mydyno_journal::Machine;

use crate::error::HostError;
use crate::state::StateDir;
/// The state folder, its journal, and the lease of the command: everything that a change needs.
#[derive(Debug, Clone)]
pub struct Host {
    /// Where mydyno keeps its state.
    pub state: StateDir,
    /// The journal of changes that are not yet restored.
    pub journal: Journal,
    /// The lease of the command that owns the changes.
    pub lease: Lease,
}

impl Host {
    /// This host with the user's state folder, which is made if it does not exist. `command` names the command in
    /// messages, as in `server up demo`.
    ///
    /// # Errors
    /// There is no place for the state folder, others can access it, or `/proc` cannot be read.
    pub fn open(command: &str) -> Result<Self, HostError> {
        Self::of(StateDir::open(&StateDir::default_path()?)?, &Machine::real()?, command)
    }

    /// As [`open`](Self::open), but without making the state folder: `None` when there is none, and then nothing is
    /// changed either.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn find(command: &str) -> Result<Option<Self>, HostError> {
        match StateDir::find(&StateDir::default_path()?)? {
            Some(state) => Self::of(state, &Machine::real()?, command).map(Some),
            None => Ok(None),
        }
    }

    /// The state folder on a machine, with a lease of this process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn of(state: StateDir, machine: &Machine, command: &str) -> Result<Self, HostError> {
        Ok(Self::held(state, Lease::take(machine, command)?))
    }

    /// A state folder with an existing lease.
    pub fn held(state: StateDir, lease: Lease) -> Self {
        Self { journal: state.journal(), state, lease }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        self.lease.machine()
    }
}
