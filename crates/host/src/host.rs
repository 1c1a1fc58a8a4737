//! A host under the lease of one command.

use mydyno_journal::Journal;
use mydyno_journal::Lease;
use mydyno_journal::Machine;

use crate::error::HostError;
use crate::state::StateDir;
/// All that changing a host rests on: the state folder, its journal, and the lease of the command that answers.
#[derive(Debug, Clone)]
pub struct Host {
    /// Where mydyno keeps its state.
    pub state: StateDir,
    /// The journal of changes that are not yet put back.
    pub journal: Journal,
    /// The lease of the command that answers for changes.
    pub lease: Lease,
}

impl Host {
    /// This host with the user's state folder, which is made if it is not there. `command` names the command in messages, as in
    /// `server up demo`.
    ///
    /// # Errors
    /// There is no place for the state folder, it is open to others, or `/proc` cannot be read.
    pub fn open(command: &str) -> Result<Self, HostError> {
        Self::of(StateDir::open(&StateDir::default_path()?)?, &Machine::real()?, command)
    }

    /// The same without making the state folder: `None` when there is none, and then nothing is changed either.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn find(command: &str) -> Result<Option<Self>, HostError> {
        match StateDir::find(&StateDir::default_path()?)? {
            Some(state) => Self::of(state, &Machine::real()?, command).map(Some),
            None => Ok(None),
        }
    }

    /// A state folder on a machine, held by this process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn of(state: StateDir, machine: &Machine, command: &str) -> Result<Self, HostError> {
        Ok(Self::held(state, Lease::take(machine, command)?))
    }

    /// A state folder under a lease that was taken.
    pub fn held(state: StateDir, lease: Lease) -> Self {
        Self { journal: state.journal(), state, lease }
    }

    /// The machine.
    pub fn machine(&self) -> &Machine {
        self.lease.machine()
    }
}
