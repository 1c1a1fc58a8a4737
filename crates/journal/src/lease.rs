//! Leases: the running command that answers for a change. A lease ends with its process, so a dead one is always seen.

use serde::{Deserialize, Serialize};

use crate::error::JournalError;
use crate::machine::{Machine, Presence, ProcessIdentity};

/// A lease as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseIdentity {
    /// The process that answers.
    pub process: ProcessIdentity,
    /// Its command, as in `server up`.
    pub command: String,
}

/// Whether the command of a lease still answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// The process of the lease runs: boot, process id and start time are those of the lease.
    Alive,
    /// It ended.
    Dead,
    /// It belongs to another machine or container; whether it runs cannot be seen from here.
    Unseen,
}

/// This command's lease: every change is made under one.
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

    /// A lease of another process that runs now.
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

    /// The machine that it holds on.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// The part that the journal keeps.
    pub fn identity(&self) -> &LeaseIdentity {
        &self.identity
    }
}

impl LeaseIdentity {
    /// Whether the command still answers.
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
