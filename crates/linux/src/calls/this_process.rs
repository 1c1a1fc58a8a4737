//! This process: its signals, its session, its core dumps, its terminal.

use std::io;
use std::mem::zeroed;
use std::os::fd::AsFd;
use std::ptr::{null, null_mut};

use rustix::process::{DumpableBehavior, WaitOptions, set_dumpable_behavior, setsid, waitpid};

use super::processes::id;

/// Numbers of signals: signal(7).
pub mod signal {
    pub use libc::{
        SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGSTOP, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
    };
}

/// Excludes this process from core dumps and from debuggers of the same user: PR_SET_DUMPABLE of prctl(2). Best effort.
pub fn forbid_core_dumps() {
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Columns of the terminal on an output of this process; `None` when it is no terminal or does not report them: TIOCGWINSZ of
/// ioctl_tty(2).
pub fn terminal_columns(output: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(output).ok()?;
    (size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Whether this process ignores a signal: sigaction(2).
pub fn ignores(signal: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is valid: it contains numbers only.
    let mut action: libc::sigaction = unsafe { zeroed() };
    // SAFETY: with no new action the call only writes the old one, which is valid for writing.
    let status = unsafe { libc::sigaction(signal, null(), &raw mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Resets an ignored signal to its default action: signal(2). Has no effect on other signals, so it replaces no handler.
pub fn reset_ignored(signal: i32) {
    if ignores(signal) {
        // SAFETY: SIG_DFL is a valid action.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// A set of signals: sigsetops(3).
#[derive(Clone, Copy)]
pub struct SignalSet(libc::sigset_t);

impl std::fmt::Debug for SignalSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignalSet")
    }
}

impl SignalSet {
    /// The set of these signals. Invalid numbers are left out.
    pub fn of(signals: impl IntoIterator<Item = i32>) -> Self {
        // SAFETY: an all-zero set is valid, and sigemptyset then makes it empty.
        let mut set: libc::sigset_t = unsafe { zeroed() };
        // SAFETY: `set` is valid for writing, in this call and the next.
        unsafe { libc::sigemptyset(&raw mut set) };
        for signal in signals {
            // SAFETY: as above; the call checks the number.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        Self(set)
    }

    /// Blocks these signals in the calling thread and returns the mask before: sigprocmask(2).
    ///
    /// # Errors
    /// The system call's.
    pub fn block(&self) -> io::Result<Self> {
        // SAFETY: an all-zero set is valid.
        let mut before: libc::sigset_t = unsafe { zeroed() };
        // SAFETY: both sets are valid for the call.
        let status = unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const self.0, &raw mut before) };
        if status == 0 { Ok(Self(before)) } else { Err(io::Error::last_os_error()) }
    }

    /// Makes these signals the mask of the calling thread: sigprocmask(2).
    ///
    /// # Errors
    /// The system call's.
    pub fn set_mask(&self) -> io::Result<()> {
        // SAFETY: the set is valid for the call; a null pointer requests no old one.
        let status = unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.0, null_mut()) };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Waits for one of these signals, which must be blocked: sigwaitinfo(2). `None` when the wait was interrupted.
    pub fn wait(&self) -> Option<i32> {
        // SAFETY: the set is valid for the call; a null pointer requests no details.
        let signal = unsafe { libc::sigwaitinfo(&raw const self.0, null_mut()) };
        (signal > 0).then_some(signal)
    }
}

/// Sends a signal to a process of this user: kill(2). A process that has ended gets nothing.
pub fn send(pid: u32, signal: i32) {
    if let Ok(pid) = i32::try_from(pid) {
        // SAFETY: takes numbers only.
        unsafe { libc::kill(pid, signal) };
    }
}

/// Splits this process: fork(2). `None` in the child, the child's id in the parent.
///
/// # Errors
/// This process has several threads, whose locks the child would inherit without the threads; or the system call's.
pub fn fork() -> io::Result<Option<u32>> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be split"));
    }
    // SAFETY: this process has one thread, so the child has all of its state, and no lock of another thread.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        pid => u32::try_from(pid).map(Some).map_err(|_| io::Error::last_os_error()),
    }
}

/// Makes this process the leader of a new session: setsid(2).
///
/// # Errors
/// It leads a process group already.
pub fn lead_session() -> io::Result<()> {
    setsid()?;
    Ok(())
}

/// The exit status of a child that has ended, after a signal 128 + its number, as in a shell; `None` while it runs: waitpid(2).
pub fn exit_status(child: u32) -> Option<i32> {
    let (_, status) = waitpid(Some(id(child).ok()?), WaitOptions::NOHANG).ok()??;
    status.exit_status().or_else(|| Some(128 + status.terminating_signal()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::zombie_processes, reason = "`exit_status` waits for the child")]
    fn a_child_has_the_exit_status_of_a_shell() {
        for (script, status) in [("exit 3", 3), ("kill -TERM $$", 128 + libc::SIGTERM)] {
            let child = std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
            let found = loop {
                if let Some(status) = exit_status(child.id()) {
                    break status;
                }
                std::thread::yield_now();
            };
            assert_eq!(found, status, "{script}");
        }
    }

    #[test]
    fn only_ignored_signals_are_reset() {
        assert!(!ignores(libc::SIGUSR2));
        reset_ignored(libc::SIGUSR2);
        assert!(!ignores(libc::SIGUSR2));
        // SAFETY: SIG_IGN is a valid action, and no other test sends this signal.
        unsafe { libc::signal(libc::SIGUSR2, libc::SIG_IGN) };
        assert!(ignores(libc::SIGUSR2));
        reset_ignored(libc::SIGUSR2);
        assert!(!ignores(libc::SIGUSR2));
    }

    #[test]
    fn a_process_with_several_threads_is_not_split() {
        // The harness runs tests beside its main thread.
        assert!(fork().unwrap_err().to_string().contains("several threads"));
    }
}
