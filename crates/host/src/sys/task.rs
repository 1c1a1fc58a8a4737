//! What the scheduler knows of a thread: CPUs, nice value, class.

use std::io;

fn id(tid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput.into())
}

/// The CPUs that a thread may run on: sched_getaffinity(2).
pub fn affinity(tid: u32) -> io::Result<Vec<usize>> {
    // SAFETY: a cpu_set_t is an array of integers, of which zeros are a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for its size.
    if unsafe { libc::sched_getaffinity(id(tid)?, size_of::<libc::cpu_set_t>(), &raw mut set) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let bits = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    // SAFETY: every number asked for is below CPU_SETSIZE.
    Ok((0..bits).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect())
}

/// Sets them: sched_setaffinity(2).
pub fn set_affinity(tid: u32, cpus: &[usize]) -> io::Result<()> {
    // SAFETY: a cpu_set_t is an array of integers, of which zeros are a valid value.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let bits = usize::try_from(libc::CPU_SETSIZE).unwrap_or(0);
    if cpus.iter().any(|cpu| *cpu >= bits) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for cpu in cpus {
        // SAFETY: the number is below CPU_SETSIZE.
        unsafe { libc::CPU_SET(*cpu, &mut set) };
    }
    // SAFETY: `set` is valid for its size.
    match unsafe { libc::sched_setaffinity(id(tid)?, size_of::<libc::cpu_set_t>(), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The nice value of a thread, from -20 to 19: getpriority(2).
pub fn nice(tid: u32) -> io::Result<i32> {
    // SAFETY: __errno_location gives this thread's errno; getpriority takes integers. -1 is a value too, so errno tells.
    unsafe {
        *libc::__errno_location() = 0;
        let value = libc::getpriority(libc::PRIO_PROCESS, tid);
        if value == -1 && *libc::__errno_location() != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(value)
    }
}

/// Sets it: setpriority(2).
pub fn set_nice(tid: u32, value: i32) -> io::Result<()> {
    // SAFETY: setpriority takes integers.
    match unsafe { libc::setpriority(libc::PRIO_PROCESS, tid, value) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
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
