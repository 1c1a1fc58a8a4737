//! Leases: the running command that owns a change. A lease ends with its process, so ownership by a dead command is
//! always detected.

use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::machine::{Machine, Presence, ProcessIdentity};

/// A lease as the journal stores it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseIdentity {
    /// The owning process.
    pub process: ProcessIdentity,
    /// Its command, as in `server up`.
    pub command: String,
}

/// Whether the owner of a lease still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// The process of the lease runs: boot, process id and start time are those of the lease.
    Alive,
    /// It ended.
    Dead,
    /// It belongs to another machine or container, whose processes are not visible here.
    Unseen,
}

/// This command's lease, under which it makes its changes.
#[derive(Debug, Clone)]
pub struct Lease {
    machine: Machine,
    identity: LeaseIdentity,
}

impl Lease {
    /// A lease of this process.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn take(machine: &Machine, command: &str) -> Result<Self, JournalError> {
        Self::of_process(machine, std::process::id(), command)
    }

    /// A lease of another running process.
    ///
    /// # Errors
    /// `/proc` cannot be read, or there is no such process.
    pub fn of_process(machine: &Machine, pid: u32, command: &str) -> Result<Self, JournalError> {
        let process = machine
            .identify(pid)?
            .ok_or_else(|| JournalError::Proc { path: format!("/proc/{pid}/stat").into() })?;
        Ok(Self {
            machine: machine.clone(),
            identity: LeaseIdentity { process, command: command.to_owned() },
        })
    }

    /// The machine of its process.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The part that the journal stores.
    pub fn identity(&self) -> &LeaseIdentity {
        &self.identity
    }
}

impl LeaseIdentity {
    /// Whether the owner still runs.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    pub fn liveness(&self, machine: &Machine) -> Result<Liveness, JournalError> {
        if machine.presence(&self.process)? == Presence::Running {
            machine.wait_for_killed(self.process.pid);
        }
        Ok(match machine.presence(&self.process)? {
            Presence::Running => Liveness::Alive,
            Presence::Ended | Presence::Recycled | Presence::OtherBoot => Liveness::Dead,
            Presence::Unseen => Liveness::Unseen,
        })
    }
}
