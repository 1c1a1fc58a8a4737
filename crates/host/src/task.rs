//! Scheduling attributes of a process that mydyno started: CPUs, nice value, class. Each applies to all its threads.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use mydyno_journal::{
    Change, Closing, Context, Journal, JournalError, Lease, Machine, Outcome, Presence, ProcessIdentity,
};
use mydyno_linux::calls::scheduler;
use mydyno_linux::cpus;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
use mydyno_linux::calls;
/// A scheduling attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    /// The CPUs to run on, as in `0-1,3`.
    Affinity,
    /// From -20 (first) to 19 (last).
    Nice,
    /// `other`, `batch` or `idle`: sched(7).
    Class,
    /// Adjustment of its score for the out-of-memory killer: proc_pid_oom_score_adj(5). It is only ever raised, which
    /// needs no privilege.
    OomScoreAdj,
}

const CLASSES: [(&str, i32); 3] =
    [("other", libc::SCHED_OTHER), ("batch", libc::SCHED_BATCH), ("idle", libc::SCHED_IDLE)];
/// New threads inherit from the thread that creates them, so a few rounds reach all.
const ROUNDS: usize = 20;

/// A process whose scheduling was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedTask {
    /// The process.
    pub process: ProcessIdentity,
    /// The attribute.
    pub attribute: Attribute,
    /// The value before.
    pub was: String,
    /// The new value.
    pub now: String,
}

impl Attribute {
    /// The end of the lever's name, as in `server.nice`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Affinity => "affinity",
            Self::Nice => "nice",
            Self::Class => "class",
            Self::OomScoreAdj => "oom_score_adj",
        }
    }

    fn read(self, tid: u32) -> io::Result<String> {
        Ok(match self {
            Self::Affinity => cpus::show(&scheduler::affinity(tid)?),
            Self::Nice => scheduler::nice(tid)?.to_string(),
            Self::Class => {
                let class = calls::scheduler::class(tid)?;
                CLASSES
                    .iter()
                    .find(|(_, number)| *number == class)
                    .map_or_else(|| class.to_string(), |(name, _)| (*name).to_owned())
            }
            Self::OomScoreAdj => fs::read_to_string(oom_score_adj(tid))?.trim().to_owned(),
        })
    }

    fn write(self, tid: u32, value: &str) -> io::Result<()> {
        let invalid = || io::Error::from(io::ErrorKind::InvalidInput);
        match self {
            Self::Affinity => scheduler::set_affinity(tid, &parse_cpus(value).ok_or_else(invalid)?),
            Self::Nice => scheduler::set_nice(tid, value.parse().map_err(|_| invalid())?),
            Self::Class => {
                let class = CLASSES.iter().find(|(name, _)| *name == value).ok_or_else(invalid)?;
                calls::scheduler::set_class(tid, class.1)
            }
            Self::OomScoreAdj => fs::write(oom_score_adj(tid), value),
        }
    }

    /// Sets it for a process with one thread, as before its program runs.
    pub(crate) fn give(self, pid: u32, value: &str) -> Result<(), HostError> {
        let value = self.normal(value)?;
        let failed = |why: String| HostError::Task { pid, attribute: self.name(), why };
        self.write(pid, &value).map_err(|e| failed(e.to_string()))?;
        match self.read(pid) {
            Ok(now) if now == value => Ok(()),
            Ok(now) => Err(failed(format!("it became {now} instead of {value}"))),
            Err(e) => Err(failed(e.to_string())),
        }
    }

    /// The canonical spelling of a value.
    ///
    /// # Errors
    /// It is not a value of this attribute.
    pub fn normal(self, value: &str) -> Result<String, HostError> {
        let normal = match self {
            Self::Affinity => parse_cpus(value).map(|list| cpus::show(&list)),
            Self::Nice => value.parse::<i32>().ok().filter(|n| (-20..=19).contains(n)).map(|n| n.to_string()),
            Self::Class => {
                CLASSES.iter().find(|(name, _)| *name == value).map(|(name, _)| (*name).to_owned())
            }
            Self::OomScoreAdj => value.parse::<u32>().ok().filter(|n| *n <= 1000).map(|n| n.to_string()),
        };
        normal.ok_or_else(|| HostError::SettingValue {
            name: format!("server.{}", self.name()),
            value: value.to_owned(),
            form: self.form().to_owned(),
        })
    }

    /// The accepted values, for people.
    pub fn form(self) -> &'static str {
        match self {
            Self::Affinity => "a list of CPUs like 0-1,3",
            Self::Nice => "a whole number from -20 to 19",
            Self::Class => "one of other batch idle",
            Self::OomScoreAdj => "a whole number from 0 to 1000",
        }
    }
}

/// Whether a process of this command can be given a value. Changes nothing.
///
/// # Errors
/// It cannot; the error says how to get it.
pub fn check(machine: &Machine, attribute: Attribute, value: &str) -> Result<(), HostError> {
    match attribute {
        Attribute::Nice => check_nice(machine, value),
        Attribute::Affinity => check_affinity(machine, value),
        Attribute::Class | Attribute::OomScoreAdj => Ok(()),
    }
}

fn oom_score_adj(tid: u32) -> PathBuf {
    Path::new("/proc").join(tid.to_string()).join("oom_score_adj")
}

fn check_nice(machine: &Machine, value: &str) -> Result<(), HostError> {
    const CAP_SYS_NICE: u32 = 23;
    let own = scheduler::nice(std::process::id()).map_err(|e| HostError::Task {
        pid: std::process::id(),
        attribute: Attribute::Nice.name(),
        why: e.to_string(),
    })?;
    if value.parse::<i32>().is_ok_and(|nice| nice >= own) || machine.has_capability(CAP_SYS_NICE) {
        return Ok(());
    }
    Err(HostError::Missing {
        what: format!("server.nice={value}"),
        missing: format!("this process has {own} and does not have CAP_SYS_NICE"),
        remedy: format!("use {own} or more, or run as root, in a container with that capability"),
    })
}

fn check_affinity(machine: &Machine, value: &str) -> Result<(), HostError> {
    let path = machine.sys().join("devices/system/cpu/online");
    // Where the machine does not list its CPUs, the check happens when the server starts.
    let Some(online) = fs::read_to_string(path).ok().and_then(|text| parse_cpus(text.trim())) else {
        return Ok(());
    };
    if parse_cpus(value).is_some_and(|wanted| wanted.iter().all(|cpu| online.contains(cpu))) {
        return Ok(());
    }
    Err(HostError::SettingValue {
        name: "server.affinity".to_owned(),
        value: value.to_owned(),
        form: format!("CPUs of this machine, which has {}", cpus::show(&online)),
    })
}

/// The value of a process, which all its threads have.
///
/// # Errors
/// It ended, or its threads have different values.
pub fn read(machine: &Machine, process: &ProcessIdentity, attribute: Attribute) -> Result<String, HostError> {
    let mut values = Vec::new();
    for tid in threads(machine, process)? {
        match attribute.read(tid) {
            Ok(value) if values.contains(&value) => {}
            Ok(value) => values.push(value),
            // The thread ended meanwhile.
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => {}
            Err(e) => return Err(failed(process, attribute, &e)),
        }
    }
    match values.len() {
        1 => Ok(values.remove(0)),
        _ => Err(failed(
            process,
            attribute,
            &io::Error::other(format!("its threads have {}", values.join(", "))),
        )),
    }
}

/// Sets it for all threads of a process that mydyno started. Returns the number of the journal entry; `None` when they
/// have the value already.
///
/// # Errors
/// It is not a value of this attribute, or not permitted; the threads then have their previous value.
pub fn set(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    process: &ProcessIdentity,
    attribute: Attribute,
    value: &str,
) -> Result<Option<u64>, HostError> {
    let machine = lease.machine();
    let now = attribute.normal(value)?;
    let mut changed = None;
    let recorded = journal.record_if_needed::<HostError>(lease, purpose, &key(process, attribute), || {
        let was = read(machine, process, attribute)?;
        let change = ChangedTask { process: process.clone(), attribute, was, now: now.clone() };
        changed = Some(change.clone());
        let differs = change.was != change.now;
        Ok(differs.then(|| Box::new(change) as Box<dyn Change>))
    })?;
    let (Some(id), Some(changed)) = (recorded, changed) else { return Ok(None) };
    let problem = match changed.write(machine, &changed.now) {
        Ok(()) => return Ok(Some(id)),
        Err(error) => error,
    };
    changed.write(machine, &changed.was)?;
    journal.close(id, Closing::Restored, "it could not be set")?;
    Err(problem)
}

fn threads(machine: &Machine, process: &ProcessIdentity) -> Result<Vec<u32>, HostError> {
    if machine.presence(process)? != Presence::Running {
        return Err(failed(process, Attribute::Nice, &io::Error::other("it ended")));
    }
    let folder = machine.proc().join(process.pid.to_string()).join("task");
    let entries = fs::read_dir(&folder).map_err(|e| HostError::io("read", &folder, e))?;
    Ok(entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).collect())
}

fn failed(process: &ProcessIdentity, attribute: Attribute, why: &io::Error) -> HostError {
    HostError::Task { pid: process.pid, attribute: attribute.name(), why: why.to_string() }
}

fn key(process: &ProcessIdentity, attribute: Attribute) -> String {
    format!("task:{}:{}:{}", process.pid, process.start_ticks, attribute.name())
}

impl ChangedTask {
    /// Sets all threads; repeated until a round finds no thread with another value.
    fn write(&self, machine: &Machine, value: &str) -> Result<(), HostError> {
        for _ in 0..ROUNDS {
            let mut differed = false;
            for tid in threads(machine, &self.process)? {
                let gone = |e: &io::Error| e.raw_os_error() == Some(libc::ESRCH);
                match self.attribute.read(tid) {
                    Ok(current) if current == value => {}
                    Ok(_) => {
                        differed = true;
                        match self.attribute.write(tid, value) {
                            Err(e) if !gone(&e) => return Err(failed(&self.process, self.attribute, &e)),
                            _ => {}
                        }
                    }
                    Err(e) if gone(&e) => {}
                    Err(e) => return Err(failed(&self.process, self.attribute, &e)),
                }
            }
            if !differed {
                return Ok(());
            }
        }
        Err(failed(&self.process, self.attribute, &io::Error::other("its threads do not keep it")))
    }

    /// Restores the value of threads that still have the one that was set; others stay unchanged.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    fn set_back(&self, machine: &Machine) -> Result<Outcome, HostError> {
        match machine.presence(&self.process)? {
            Presence::Running => {}
            Presence::Recycled => {
                return Ok(Outcome::left_alone("it had ended, and another process has the id now"));
            }
            Presence::Unseen => return Ok(Outcome::left_alone("it belongs to another machine or container")),
            Presence::Ended | Presence::OtherBoot => return Ok(Outcome::restored("it ended")),
        }
        let mut others = 0;
        // A command that was killed half-way has left some threads unchanged.
        let threads = match threads(machine, &self.process) {
            Ok(threads) => threads,
            Err(_) if machine.presence(&self.process)? != Presence::Running => {
                return Ok(Outcome::restored("it ended"));
            }
            Err(error) => return Err(error),
        };
        for tid in threads {
            match self.attribute.read(tid) {
                Ok(current) if current == self.was => {}
                Ok(current) if current == self.now => {
                    if let Err(e) = self.attribute.write(tid, &self.was)
                        && e.raw_os_error() != Some(libc::ESRCH)
                    {
                        return Ok(Outcome::failed(format!("cannot set it back to {}: {e}", self.was)));
                    }
                }
                Ok(_) => others += 1,
                Err(_) => {}
            }
        }
        Ok(if others == 0 {
            Outcome::restored(format!("set back to {}", self.was))
        } else {
            Outcome::left_alone(format!("another program has since changed {others} of its threads"))
        })
    }
}

impl Change for ChangedTask {
    fn kind(&self) -> &str {
        "task"
    }

    fn what(&self) -> String {
        format!("{} of process {}", self.attribute.name(), self.process.pid)
    }

    fn key(&self) -> String {
        key(&self.process, self.attribute)
    }

    fn was(&self) -> Value {
        Value::from(self.was.as_str())
    }

    fn now(&self) -> Value {
        Value::from(self.now.as_str())
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.set_back(context.machine)?)
    }
}

/// The CPUs that the calling thread may run on, in the kernel's list format.
pub fn own_cpus() -> Option<String> {
    scheduler::affinity(0).ok().map(|cpus| cpus::show(&cpus))
}

/// Runs a closure with the calling thread, and the threads that it creates meanwhile, restricted to some CPUs.
///
/// # Errors
/// The calling thread may run on none of these CPUs.
pub fn on_cpus<T>(cpus: &[usize], run: impl FnOnce() -> T) -> io::Result<T> {
    let before = scheduler::affinity(0)?;
    scheduler::set_affinity(0, cpus)?;
    let done = run();
    scheduler::set_affinity(0, &before)?;
    Ok(done)
}

/// Parses a list of CPUs, as in `0-1,3`; `None` when it is not a list, or a number exceeds a mask of the kernel.
pub fn parse_cpus(text: &str) -> Option<Vec<usize>> {
    cpus::parse(text, 1023)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_have_one_spelling() {
        for (text, shown) in [("0", "0"), ("1,0", "0-1"), ("0-1,3", "0-1,3"), ("5,3-4,3", "3-5")] {
            assert_eq!(Attribute::Affinity.normal(text).unwrap(), shown);
        }
        for text in ["", "a", "2-1", "1-", "9999"] {
            assert!(Attribute::Affinity.normal(text).is_err(), "{text}");
        }
        assert!(Attribute::Nice.normal("20").is_err() && Attribute::Class.normal("fifo").is_err());
    }
}
