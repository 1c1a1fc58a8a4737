//! Drop-ins for sysbench and mysqlslap: their command lines, Lua scripts, reports and exit statuses.
//!
//! This crate neither prints nor exits: it writes to the [`Streams`] of its caller and returns an exit status. The
//! interface is that of sysbench 1.0.20 and of MariaDB's mysqlslap 10.11; code, texts and scripts are our own.

pub mod links;
pub mod slap;
mod streams;
pub mod sysbench;

pub use streams::Streams;

/// A program whose place this binary takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// sysbench.
    Sysbench,
    /// mysqlslap.
    Slap,
}

impl Program {
    /// The program that a file name stands for, as the first argument of a process has it.
    pub fn of_file_name(path: &str) -> Option<Self> {
        match path.rsplit('/').next().unwrap_or_default() {
            "sysbench" => Some(Self::Sysbench),
            "mysqlslap" | "mariadb-slap" => Some(Self::Slap),
            _ => None,
        }
    }

    /// The program that a verb of mydyno stands for.
    pub fn of_verb(verb: &str) -> Option<Self> {
        match verb {
            "sysbench" => Some(Self::Sysbench),
            "slap" => Some(Self::Slap),
            _ => None,
        }
    }

    /// Text that joins a password to an argument that asks for it at the terminal; `None` when the argument does not ask.
    pub fn password_joint(self, arg: &[u8]) -> Option<&'static str> {
        match self {
            Self::Sysbench => None,
            Self::Slap => slap::password_joint(arg),
        }
    }

    /// The nice value of a session of its own in which the command line runs best, on a host that schedules sessions as
    /// groups; `None` where it gains nothing.
    pub fn session_nice(self, args: &[String]) -> Option<u8> {
        match self {
            Self::Sysbench => sysbench::session_nice(args),
            Self::Slap => None,
        }
    }

    /// Runs the program with the arguments that follow its name.
    pub fn run(self, args: &[String], streams: Streams) -> u8 {
        match self {
            Self::Sysbench => sysbench::run(args, streams),
            Self::Slap => slap::run(args, &streams),
        }
    }

    /// Offset of a password within an argument; `None` when the argument holds none.
    pub fn password_at(self, arg: &[u8]) -> Option<usize> {
        match self {
            Self::Sysbench => sysbench::password_at(arg),
            Self::Slap => slap::password_at(arg),
        }
    }
}
