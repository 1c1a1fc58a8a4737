//! The command line of a server program, and its exit status in words.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use mydyno_host::effective_uid;

use crate::find::Install;

/// Environment variables that are passed to a server. Others may hold secrets, and would stay as long as it runs.
const ENVIRONMENT: &[&str] = &[
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TZ",
    "TZDIR",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "GLIBC_TUNABLES",
    "MALLOC_CONF",
    "MALLOC_ARENA_MAX",
    "TCMALLOC_RELEASE_RATE",
];

/// A command that runs the server program without option files and with a minimal environment.
pub(crate) fn base_command(install: &Install) -> Command {
    let mut command = Command::new(&install.program);
    command.env_clear();
    command.envs(ENVIRONMENT.iter().filter_map(|name| Some((*name, std::env::var_os(name)?))));
    // The server accepts this option only as the first one.
    command.arg("--no-defaults").args(install.options());
    command
}

/// The option that a server requires to run as root; for other users it is an error.
pub(crate) fn owner_option() -> Option<&'static str> {
    (effective_uid() == 0).then_some("--user=root")
}

/// The end of a process in words: `exit status 1`, `killed by signal 11`.
pub(crate) fn how_it_ended(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
