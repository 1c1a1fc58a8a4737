//! A separate session for a load generator that shares its host with the server.
//!
//! With `kernel.sched_autogroup_enabled=1`, the default of most distributions, the kernel gives each session an equal
//! share of the CPUs (sched(7), *The autogroup feature*). A load generator uses less than its share, so it is always
//! the next to run: each answer wakes it, at the cost of a context switch. In a session with a lower priority it runs
//! when the server's threads wait, as it does without autogroups (docs/journal/load-engine.md).
//!
//! After setsid(2) the process that the user has started would no longer receive Ctrl-C from the terminal. So that
//! process stays in its session and relays signals, and a child leads the new session. The nice value applies to the
//! new session only and ends with it.

use std::io;
use std::path::Path;

use mydyno_linux::Root;
use mydyno_linux::calls::processes::end_with_parent;
use mydyno_linux::calls::this_process::signal::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
};
use mydyno_linux::calls::this_process::{SignalSet, exit_status, fork, lead_session, send};

const AUTOGROUP: &str = "/proc/self/autogroup";

/// Signals that the parent relays.
const RELAYED: [i32; 6] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2];

/// Attempts to set the nice value: the kernel accepts ten changes a second from all users other than root together.
const ATTEMPTS: u32 = 30;

/// Whether the kernel schedules sessions as groups, and accepts nice values for them.
pub fn is_scheduled_as_group() -> bool {
    Root::real().schedules_sessions() && std::fs::OpenOptions::new().write(true).open(AUTOGROUP).is_ok()
}

/// Continues in a child that leads a new session with the nice value `nice`. Only the child returns: the parent relays
/// signals and ends as the child does.
///
/// # Errors
/// This process has several threads, or the kernel refuses the child, its session or the nice value.
pub fn enter(nice: u8) -> io::Result<()> {
    let watched = SignalSet::of(RELAYED.into_iter().chain([SIGTSTP, SIGCHLD]));
    // Blocked, so that none is lost between the fork and the wait.
    let before = watched.block()?;
    let parent = std::process::id();
    match fork() {
        Err(e) => before.set_mask().and(Err(e)),
        Ok(None) => {
            // SIGKILL has ended the parent meanwhile, so no process would relay signals to this one.
            if !end_with_parent(parent).unwrap_or(false) {
                std::process::exit(128 + SIGKILL);
            }
            before.set_mask()?;
            lead_session()?;
            set_nice(Path::new(AUTOGROUP), nice)
        }
        Ok(Some(child)) => std::process::exit(relay(child, &watched)),
    }
}

fn set_nice(file: &Path, nice: u8) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match std::fs::write(file, nice.to_string()) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            ended => return ended,
        }
    }
    Err(io::ErrorKind::WouldBlock.into())
}

/// Relays signals until the child has ended; returns its exit status.
fn relay(child: u32, watched: &SignalSet) -> i32 {
    loop {
        match watched.wait() {
            Some(SIGCHLD) => {
                if let Some(status) = exit_status(child) {
                    return status;
                }
            }
            // Ctrl-Z stops both. SIGSTOP stops this process here, until SIGCONT.
            Some(SIGTSTP) => {
                send(child, SIGSTOP);
                send(std::process::id(), SIGSTOP);
                send(child, SIGCONT);
            }
            Some(signal) => send(child, signal),
            None => {}
        }
    }
}
