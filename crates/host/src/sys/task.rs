//! The scheduling class of a thread, and limits of a process.

use std::io;

fn id(tid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The scheduling class of a thread, as in `SCHED_BATCH` (3): sched_getscheduler(2).
pub fn class(tid: u32) -> io::Result<i32> {
    // SAFETY: sched_getscheduler takes an integer.
    match unsafe { libc::sched_getscheduler(id(tid)?) } {
        class if class >= 0 => Ok(class & !libc::SCHED_RESET_ON_FORK),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets one of the classes without a real-time priority: sched_setscheduler(2).
pub fn set_class(tid: u32, class: i32) -> io::Result<()> {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: `parameter` is valid for the call.
    match unsafe { libc::sched_setscheduler(id(tid)?, class, &raw const parameter) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The soft and hard limit of a process: prlimit(2).
pub fn limit(pid: u32, resource: libc::__rlimit_resource_t) -> io::Result<(u64, u64)> {
    let mut found = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `found` is valid for writing, and nothing is set.
    match unsafe { libc::prlimit(id(pid)?, resource, std::ptr::null(), &raw mut found) } {
        0 => Ok((found.rlim_cur, found.rlim_max)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets both: prlimit(2).
pub fn set_limit(pid: u32, resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let wanted = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `wanted` is valid for the call, and the old limit is not asked for.
    match unsafe { libc::prlimit(id(pid)?, resource, &raw const wanted, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
