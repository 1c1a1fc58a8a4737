//! Other processes: descriptors, signals, ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
pub use rustix::process::Signal;
use rustix::process::{Pid, PidfdFlags, WaitOptions, kill_process, pidfd_open, pidfd_send_signal, waitpid};

/// # Errors
/// The number is 0 or too large.
pub(super) fn id(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// A file descriptor of the process that has `pid` now: pidfd_open(2), Linux 5.3. `None` where the kernel has none.
///
/// # Errors
/// The system call's; ESRCH when there is no such process.
pub fn open_pidfd(pid: u32) -> io::Result<Option<OwnedFd>> {
    match pidfd_open(id(pid)?, PidfdFlags::empty()) {
        Ok(fd) => Ok(Some(fd)),
        Err(Errno::NOSYS) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Sends a signal to the process behind a descriptor; unlike an id, the descriptor cannot refer to a later process.
///
/// # Errors
/// The system call's.
pub fn signal_pidfd(pidfd: impl AsFd, signal: Signal) -> io::Result<()> {
    Ok(pidfd_send_signal(pidfd, signal)?)
}

/// Sends a signal to one process by its id, for kernels without pidfds: kill(2).
///
/// # Errors
/// The system call's.
pub fn signal_pid(pid: u32, signal: Signal) -> io::Result<()> {
    Ok(kill_process(id(pid)?, signal)?)
}

/// Waits until a descriptor is readable (a pidfd: until its process ended). `false` when the time ran out.
///
/// # Errors
/// The system call's.
pub fn wait_readable(fd: impl AsFd, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec::try_from(timeout).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Collects an ended child so that no zombie stays. Does nothing for processes that are not children of this one.
pub fn collect_child(pid: u32) {
    if let Ok(pid) = id(pid) {
        // ECHILD: it is not a child.
        let _ = waitpid(Some(pid), WaitOptions::NOHANG);
    }
}

/// Has the kernel kill this process with SIGKILL when its parent ends: PR_SET_PDEATHSIG of prctl(2). Returns whether `parent` is
/// still the parent; if it has ended before, no signal comes.
///
/// # Errors
/// The system call's.
pub fn end_with_parent(parent: u32) -> io::Result<bool> {
    // SAFETY: PR_SET_PDEATHSIG takes integers.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(std::os::unix::process::parent_id() == parent)
}

/// Locks all current and future memory of this process: mlockall(2).
///
/// # Errors
/// The system call's.
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: mlockall(2) takes flags.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Declares that I/O of other processes depends on this process: PR_SET_IO_FLUSHER of prctl(2), Linux 5.6. Needs
/// CAP_SYS_RESOURCE; without it the call has no effect.
pub fn be_an_io_flusher() {
    // Of `linux/prctl.h`.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: PR_SET_IO_FLUSHER takes a number, and zeros.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_is_killed_through_its_descriptor_and_collected() {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let Some(pidfd) = open_pidfd(child.id()).unwrap() else {
            child.kill().unwrap();
            return drop(child.wait());
        };
        assert!(!wait_readable(&pidfd, Duration::ZERO).unwrap());
        signal_pidfd(&pidfd, Signal::KILL).unwrap();
        assert!(wait_readable(&pidfd, Duration::from_secs(60)).unwrap());
        collect_child(child.id());
        assert_eq!(open_pidfd(child.id()).unwrap_err().raw_os_error(), Some(libc::ESRCH));
        assert!(child.wait().is_err(), "it was collected");
    }

    #[test]
    fn numbers_that_are_no_process_are_refused() {
        for pid in [0, u32::MAX] {
            assert_eq!(signal_pid(pid, Signal::KILL).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        }
    }
}
