//! Limits of processes.

use std::io;

/// The type of `RLIMIT_…`, which C libraries declare differently.
#[cfg(not(target_env = "musl"))]
pub type Resource = libc::__rlimit_resource_t;
/// The type of `RLIMIT_…`, which C libraries declare differently.
#[cfg(target_env = "musl")]
pub type Resource = libc::c_int;

fn id(pid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(pid).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The soft and hard limit of a process: prlimit(2).
///
/// # Errors
/// The system call's.
pub fn limit(pid: u32, resource: Resource) -> io::Result<(u64, u64)> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `found` is valid for writing, and nothing is set.
    match unsafe { libc::prlimit(id(pid)?, resource, std::ptr::null(), &raw mut found) } {
        0 => Ok((found.rlim_cur, found.rlim_max)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the soft and the hard limit of a process: prlimit(2).
///
/// # Errors
/// The system call's.
pub fn set_limit(pid: u32, resource: Resource, value: u64) -> io::Result<()> {
    let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `wanted` is valid for the call, and the old limit is not asked for.
    match unsafe { libc::prlimit(id(pid)?, resource, &raw const wanted, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Raises the soft limit of open files of this process towards `needed`, as far as the hard limit allows.
///
/// # Errors
/// The limit that holds, when it is below what is needed.
pub fn allow_open_files(needed: u64) -> Result<(), u64> {
    // SAFETY: an all-zero `rlimit` is valid: it holds numbers only.
    let mut limit: libc::rlimit = unsafe { std::mem::zeroed() };
    // SAFETY: `limit` is valid for writing.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if limit.rlim_cur >= needed {
        return Ok(());
    }
    limit.rlim_cur = needed.min(limit.rlim_max);
    // SAFETY: `limit` is valid for reading.
    unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    if limit.rlim_cur >= needed { Ok(()) } else { Err(limit.rlim_max) }
}
