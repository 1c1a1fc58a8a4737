//! A session of its own for a load generator that shares its host with the server.
//!
//! With `kernel.sched_autogroup_enabled=1`, the default of most distributions, the kernel gives each session an equal share of
//! the CPUs (sched(7), *The autogroup feature*). A load generator uses less than its share, so it is always the next to run:
//! it is woken by each answer, and pays a context switch for each. In a session with a lower priority it is woken when
//! the server's threads wait, as it is without autogroups (docs/journal/load-engine.md).
//!
//! setsid(2) would take the terminal's Ctrl-C from the process that the user has started. So that process stays what it
//! is and relays signals, and a child leads the new session. The nice value belongs to the new session alone and ends with it.

use std::io;
use std::path::Path;

use libc::pid_t;

const AUTOGROUP: &str = "/proc/self/autogroup";

/// Signals that the parent passes on.
const RELAYED: [i32; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// Attempts to set the nice value: the kernel takes ten changes a second from all users who are not root.
const ATTEMPTS: u32 = 30;

/// Whether sessions share the CPUs as groups, and the kernel takes nice values for them.
pub fn is_scheduled_as_group() -> bool {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled");
    enabled.is_ok_and(|text| text.trim() == "1")
        && std::fs::OpenOptions::new().write(true).open(AUTOGROUP).is_ok()
}

/// Goes on in a child that leads a session of its own, whose group has the nice value `nice`. Only the child returns: the
/// parent relays signals and ends as the child does.
///
/// # Errors
/// This process has several threads, or the kernel refuses the child, its session or the nice value.
pub fn enter(nice: u8) -> io::Result<()> {
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("a process with several threads cannot be split"));
    }
    let watched = signals();
    let before = block(&watched)?;
    let parent = std::process::id();
    match fork() {
        Err(e) => restore(&before).and(Err(e)),
        Ok(0) => {
            // SIGKILL has ended the parent meanwhile: nobody would see this process, nor stop it.
            if end_with(parent).is_err() {
                std::process::exit(128 + libc::SIGKILL);
            }
            restore(&before)?;
            lead_session()?;
            set_nice(Path::new(AUTOGROUP), nice)
        }
        Ok(child) => std::process::exit(relay(child, &watched)),
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

/// Passes signals on until the child has ended; its exit status.
fn relay(child: pid_t, watched: &libc::sigset_t) -> i32 {
    loop {
        match next_signal(watched) {
            Some(libc::SIGCHLD) => {
                if let Some(status) = ended(child) {
                    return status;
                }
            }
            // Ctrl-Z stops both. SIGSTOP stops this process here, until SIGCONT.
            Some(libc::SIGTSTP) => {
                send(child, libc::SIGSTOP);
                send(std::process::id() as pid_t, libc::SIGSTOP);
                send(child, libc::SIGCONT);
            }
            Some(signal) => send(child, signal),
            None => {}
        }
    }
}

/// The exit status of a child that has ended; as a shell's, 128 + its number, after a signal.
fn ended(child: pid_t) -> Option<i32> {
    let mut status = 0;
    // SAFETY: `status` is valid for writing.
    let pid = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
    match () {
        () if pid != child => None,
        () if libc::WIFEXITED(status) => Some(libc::WEXITSTATUS(status)),
        () if libc::WIFSIGNALED(status) => Some(128 + libc::WTERMSIG(status)),
        () => None,
    }
}

fn signals() -> libc::sigset_t {
    // SAFETY: an all-zero set is valid, and sigemptyset then makes it empty.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing, in this call and the next.
    unsafe { libc::sigemptyset(&raw mut set) };
    for signal in RELAYED.into_iter().chain([libc::SIGTSTP, libc::SIGCHLD]) {
        // SAFETY: as above; the signals are valid ones.
        unsafe { libc::sigaddset(&raw mut set, signal) };
    }
    set
}

/// Blocks signals, so that none is lost between the fork and the wait; the set that was blocked before.
fn block(set: &libc::sigset_t) -> io::Result<libc::sigset_t> {
    // SAFETY: an all-zero set is valid.
    let mut before: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: both sets are valid for the call.
    let status = unsafe { libc::sigprocmask(libc::SIG_BLOCK, set, &raw mut before) };
    if status == 0 { Ok(before) } else { Err(io::Error::last_os_error()) }
}

fn restore(set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: the set is valid for the call; a null pointer asks for no old one.
    let status = unsafe { libc::sigprocmask(libc::SIG_SETMASK, set, std::ptr::null_mut()) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The next of the signals; none when the wait was interrupted.
fn next_signal(set: &libc::sigset_t) -> Option<i32> {
    // SAFETY: the set is valid for the call; a null pointer asks for no details.
    let signal = unsafe { libc::sigwaitinfo(set, std::ptr::null_mut()) };
    (signal > 0).then_some(signal)
}

fn send(pid: pid_t, signal: i32) {
    // SAFETY: takes numbers only. A child that has just ended gets nothing, and SIGCHLD tells.
    unsafe { libc::kill(pid, signal) };
}

fn fork() -> io::Result<pid_t> {
    // SAFETY: this process has one thread, so the child has all of its state, and no lock of another thread.
    let pid = unsafe { libc::fork() };
    if pid < 0 { Err(io::Error::last_os_error()) } else { Ok(pid) }
}

fn lead_session() -> io::Result<()> {
    // SAFETY: takes nothing. A new child leads no process group.
    if unsafe { libc::setsid() } < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has the kernel kill this process when its parent ends: SIGKILL to the process that the user sees ends the load too.
fn end_with(parent: u32) -> io::Result<()> {
    if !mydyno_linux::calls::processes::end_with_parent(parent)? {
        return Err(io::Error::other("the parent process has ended"));
    }
    Ok(())
}
