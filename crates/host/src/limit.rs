//! Resource limits of a process: getrlimit(2). A private server gets them before it runs its program.

use std::io;

use mydyno_journal::Machine;
use mydyno_model::units::parse_size;

use crate::error::HostError;
use mydyno_linux::calls;
/// The resources that are limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Open files: `RLIMIT_NOFILE`.
    OpenFiles,
    /// Bytes of locked memory: `RLIMIT_MEMLOCK`.
    LockedMemory,
    /// Bytes of a core file: `RLIMIT_CORE`.
    Core,
    /// Processes and threads of its user: `RLIMIT_NPROC`. It does not apply to root.
    Processes,
}

/// All limits.
pub const LIMITS: [Limit; 4] = [Limit::OpenFiles, Limit::LockedMemory, Limit::Core, Limit::Processes];

/// The text for an unlimited resource.
const UNLIMITED: &str = "unlimited";

impl Limit {
    /// The end of the lever's name, as in `limit.nofile`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenFiles => "nofile",
            Self::LockedMemory => "memlock",
            Self::Core => "core",
            Self::Processes => "nproc",
        }
    }

    /// The limit with this name.
    pub fn named(name: &str) -> Option<Self> {
        LIMITS.into_iter().find(|limit| limit.name() == name)
    }

    /// Its description for people.
    pub fn what(self) -> &'static str {
        match self {
            Self::OpenFiles => "files that the server may have open",
            Self::LockedMemory => "memory that the server may lock",
            Self::Core => "size of the file that is written when the server crashes",
            Self::Processes => "threads that the server's user may have; root is not held to it",
        }
    }

    /// The accepted values, for people.
    pub fn form(self) -> &'static str {
        match self {
            Self::OpenFiles | Self::Processes => "a whole number, or unlimited",
            Self::LockedMemory | Self::Core => "a size like 64M, or unlimited",
        }
    }

    fn resource(self) -> calls::limits::Resource {
        match self {
            Self::OpenFiles => libc::RLIMIT_NOFILE,
            Self::LockedMemory => libc::RLIMIT_MEMLOCK,
            Self::Core => libc::RLIMIT_CORE,
            Self::Processes => libc::RLIMIT_NPROC,
        }
    }

    /// Parses a value.
    ///
    /// # Errors
    /// This limit does not accept it.
    pub fn parse(self, value: &str) -> Result<u64, HostError> {
        let read = match (value, self) {
            (UNLIMITED, _) => Some(libc::RLIM_INFINITY),
            (number, Self::OpenFiles | Self::Processes) => number.parse().ok(),
            (size, Self::LockedMemory | Self::Core) => parse_size(size).ok(),
        };
        read.ok_or_else(|| HostError::SettingValue {
            name: format!("limit.{}", self.name()),
            value: value.to_owned(),
            form: self.form().to_owned(),
        })
    }

    /// The limit of this process, which a program that it starts inherits.
    pub fn now(self) -> Option<String> {
        calls::limits::limit(std::process::id(), self.resource()).ok().map(|(soft, _)| show(soft))
    }

    /// Whether this process can give a program this limit: exceeding its own hard limit needs CAP_SYS_RESOURCE.
    ///
    /// # Errors
    /// It cannot; the error says how to get it.
    pub fn check(self, machine: &Machine, value: u64) -> Result<(), HostError> {
        const CAP_SYS_RESOURCE: u32 = 24;
        let (_, hard) = calls::limits::limit(std::process::id(), self.resource())
            .map_err(|e| HostError::io("read", machine.proc().join("self/limits"), e))?;
        if value <= hard || machine.has_capability(CAP_SYS_RESOURCE) {
            return Ok(());
        }
        Err(HostError::Missing {
            what: format!("limit.{} of {}", self.name(), show(value)),
            missing: format!("the hard limit of this process is {}, and it may not raise it", show(hard)),
            remedy: format!(
                "ask for at most {}, or run from a shell with a higher one (`ulimit -H`, LimitNOFILE= and such of systemd, or a \
                 container with CAP_SYS_RESOURCE)",
                show(hard)
            ),
        })
    }

    /// Sets it for a process, soft and hard, and reads it back.
    pub(crate) fn give(self, pid: u32, value: u64) -> Result<(), HostError> {
        let failed = |e: io::Error| HostError::Task { pid, attribute: self.name(), why: e.to_string() };
        calls::limits::set_limit(pid, self.resource(), value).map_err(failed)?;
        match calls::limits::limit(pid, self.resource()).map_err(failed)? {
            now if now == (value, value) => Ok(()),
            (soft, _) => {
                Err(failed(io::Error::other(format!("it became {} instead of {}", show(soft), show(value)))))
            }
        }
    }
}

fn show(value: u64) -> String {
    if value == libc::RLIM_INFINITY { UNLIMITED.to_owned() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_numbers_sizes_or_none() {
        assert_eq!(Limit::OpenFiles.parse("1024").unwrap(), 1024);
        assert_eq!(Limit::LockedMemory.parse("64M").unwrap(), 64 << 20);
        assert_eq!(show(Limit::Core.parse("unlimited").unwrap()), "unlimited");
        for (limit, value) in [(Limit::OpenFiles, "1K"), (Limit::Core, "much"), (Limit::Processes, "-1")] {
            let error = limit.parse(value).unwrap_err().to_string();
            assert!(error.contains(limit.name()) && error.contains("unlimited"), "{error}");
        }
    }
}
