//! System calls of the process that serves an emulated disk.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Keeps all memory of this process, also what it takes later, out of swap: mlockall(2).
pub fn lock_memory() -> io::Result<()> {
    // SAFETY: mlockall(2) takes flags.
    match unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Says that the I/O of others waits for this process: prctl(2), PR_SET_IO_FLUSHER. It needs CAP_SYS_RESOURCE; without it the
/// watchdog has to do.
pub fn be_an_io_flusher() {
    // Of `linux/prctl.h`, Linux 5.6.
    const PR_SET_IO_FLUSHER: libc::c_int = 57;
    // SAFETY: PR_SET_IO_FLUSHER takes a number, and zeros.
    unsafe { libc::prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) };
}

/// Makes the timers of this thread as exact as they can be: prctl(2), PR_SET_TIMERSLACK, in nanoseconds.
pub fn wake_on_time() {
    // SAFETY: PR_SET_TIMERSLACK takes a number.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}

/// Writes out what is dirty of one file system: syncfs(2).
pub fn sync_file_system(of: &File) -> io::Result<()> {
    // SAFETY: syncfs(2) takes an open descriptor.
    match unsafe { libc::syncfs(of.as_raw_fd()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
