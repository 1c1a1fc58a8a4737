//! The system calls that the standard library does not offer.

pub mod emulated;
pub mod loops;
pub mod storage;
pub mod task;
pub mod user;

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// The effective user id.
pub fn effective_uid() -> u32 {
    // SAFETY: geteuid(2) takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// A file descriptor of the process that has `pid` now: pidfd_open(2), Linux 5.3. `None` where the kernel has none.
pub fn open_pidfd(pid: u32) -> io::Result<Option<OwnedFd>> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: pidfd_open(2) takes two integers; the descriptor that it returns is new and ours.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    if fd >= 0 {
        let fd = RawFd::try_from(fd).map_err(|_| io::ErrorKind::InvalidData)?;
        // SAFETY: `fd` was returned above and nothing else owns it.
        return Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) }));
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::ENOSYS) { Ok(None) } else { Err(error) }
}

/// Sends a signal to the process behind a descriptor: it cannot hit another one that has the id by now.
pub fn signal_pidfd(pidfd: &OwnedFd, signal: i32) -> io::Result<()> {
    // SAFETY: the descriptor is open for the call; a null siginfo means that of kill(2).
    let done = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_raw_fd(),
            signal,
            std::ptr::null::<libc::siginfo_t>(),
            0,
        )
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends a signal by process id, for kernels without pidfds.
pub fn signal_pid(pid: u32, signal: i32) -> io::Result<()> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: kill(2) takes two integers; `pid` is positive, so it names one process, never a group.
    let done = unsafe { libc::kill(pid, signal) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Waits until a descriptor is readable (a pidfd: until its process ended). False when time ran out.
pub fn wait_readable(fd: &impl AsRawFd, timeout: Duration) -> io::Result<bool> {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX);
    // SAFETY: `poll` is one valid pollfd for the time of the call.
    let ready = unsafe { libc::poll(&mut poll, 1, timeout_ms) };
    match ready {
        0 => Ok(false),
        n if n > 0 => Ok(true),
        _ => match io::Error::last_os_error() {
            e if e.kind() == io::ErrorKind::Interrupted => Ok(false),
            e => Err(e),
        },
    }
}

/// Collects an ended child so that no zombie stays; does nothing for processes that are not our children.
pub fn collect_child(pid: u32) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        let mut status = 0;
        // SAFETY: `status` is a valid place for the answer; WNOHANG does not block. ECHILD (not our child) is fine.
        unsafe { libc::waitpid(pid, &mut status, libc::WNOHANG) };
    }
}

/// Gives a file a length with all its blocks: fallocate(2).
pub fn allocate(file: &File, length: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: fallocate(2) takes an open descriptor and integers.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether this user may write to a path: access(2), of a file system that may be read-only too.
pub fn may_write(path: &Path) -> bool {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return false };
    // SAFETY: `path` is a C string that lives for the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}
