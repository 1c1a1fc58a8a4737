//! Errors of this crate.

use std::io;
use thiserror::Error;

/// A capture that is not possible.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The kernel does not permit it.
    #[error(
        "the kernel does not permit performance events of all processes (perf_event_paranoid is {paranoid}): run mydyno as root, or give it the \
         capability: setcap cap_perfmon,cap_sys_ptrace,cap_syslog+ep MYDYNO"
    )]
    Denied {
        /// The value of the kernel's setting, or why it is not known.
        paranoid: String,
    },
    /// The kernel has no such events.
    #[error(
        "this kernel or container has no performance events ({source}): a kernel with CONFIG_PERF_EVENTS, and a container whose seccomp \
         profile permits perf_event_open, have them"
    )]
    Missing {
        /// The system's error.
        source: io::Error,
    },
    /// No tracefs shows the tracepoints.
    #[error(
        "the kernel's tracepoints are not to be seen: run mydyno as root on a host whose tracefs is mounted \
         (mount -t tracefs nodev /sys/kernel/tracing)"
    )]
    NoTracepoints,
    /// There is no such process.
    #[error("process {pid} is not there")]
    NoProcess {
        /// Its number.
        pid: u32,
    },
    /// Another architecture.
    #[error("stacks are unwound on x86-64 and aarch64 only")]
    Architecture,
    /// A system call.
    #[error("{doing}: {source}")]
    System {
        /// As in `mapping the ring`.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A file of folded stacks that is none.
    #[error("line {line} is no folded stack: functions with `;` between them, a space and a number")]
    Folded {
        /// Its line, from 1.
        line: usize,
    },
}

impl ProfileError {
    /// For `map_err` of a system call.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}
