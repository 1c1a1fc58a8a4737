//! CPUs, nice values, scheduling classes and timers of threads.

use std::io;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::processes::id;

/// The CPUs that a thread may run on: sched_getaffinity(2). Thread 0 is the calling one.
///
/// # Errors
/// The system call's.
pub fn affinity(tid: u32) -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(thread(tid)?)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Sets the CPUs that a thread may run on: sched_setaffinity(2). Thread 0 is the calling one.
///
/// # Errors
/// A number is too large, or the system call's.
pub fn set_affinity(tid: u32, cpus: &[usize]) -> io::Result<()> {
    if cpus.iter().any(|cpu| *cpu >= CpuSet::MAX_CPU) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    Ok(sched_setaffinity(thread(tid)?, &set)?)
}

/// The nice value of a thread, from -20 to 19: getpriority(2).
///
/// # Errors
/// The system call's.
pub fn nice(tid: u32) -> io::Result<i32> {
    Ok(getpriority_process(Some(id(tid)?))?)
}

/// Sets the nice value of a thread: setpriority(2).
///
/// # Errors
/// The system call's.
pub fn set_nice(tid: u32, value: i32) -> io::Result<()> {
    Ok(setpriority_process(Some(id(tid)?), value)?)
}

/// The scheduling class of a thread, as in `SCHED_BATCH` (3): sched_getscheduler(2). Thread 0 is the calling one.
///
/// # Errors
/// The system call's.
pub fn class(tid: u32) -> io::Result<i32> {
    // SAFETY: sched_getscheduler takes an integer.
    match unsafe { libc::syscall(libc::SYS_sched_getscheduler, number(tid)?) } {
        class if class >= 0 => Ok(class as i32 & !libc::SCHED_RESET_ON_FORK),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The I/O class of a thread, as in `IOPRIO_CLASS_IDLE` (3): ioprio_get(2). 0 is a class that follows from the nice value.
///
/// # Errors
/// The system call's.
pub fn io_class(tid: u32) -> io::Result<i32> {
    const WHO_PROCESS: libc::c_int = 1;
    const CLASS_SHIFT: u32 = 13;
    // SAFETY: ioprio_get takes integers.
    match unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, number(tid)?) } {
        priority if priority >= 0 => Ok(priority as i32 >> CLASS_SHIFT),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets one of the classes without a real-time priority: sched_setscheduler(2). Thread 0 is the calling one. The call is made
/// directly: musl's functions of this name always answer ENOSYS.
///
/// # Errors
/// The system call's.
pub fn set_class(tid: u32, class: i32) -> io::Result<()> {
    // struct sched_param of the kernel: the priority alone.
    let priority: libc::c_int = 0;
    // SAFETY: `priority` is valid for reading during the call.
    match unsafe { libc::syscall(libc::SYS_sched_setscheduler, number(tid)?, class, &raw const priority) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sets the calling thread's scheduling class to `SCHED_BATCH` (sched(7)): when it wakes up, it does not preempt the
/// thread that runs.
///
/// # Errors
/// The host does not permit it: a filter of system calls, say.
pub fn schedule_as_batch() -> io::Result<()> {
    set_class(0, libc::SCHED_BATCH)
}

/// Sets the calling thread's timer slack to 1 ns: PR_SET_TIMERSLACK of prctl(2). The kernel's default lets timers expire up to
/// 50 µs late.
pub fn sleep_precisely() {
    // SAFETY: takes no pointers; the smallest slack is always permitted for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}

fn number(tid: u32) -> io::Result<libc::pid_t> {
    libc::pid_t::try_from(tid).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn thread(tid: u32) -> io::Result<Option<rustix::process::Pid>> {
    if tid == 0 { Ok(None) } else { id(tid).map(Some) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_to_the_cpus_that_it_is_given() {
        let all = affinity(0).unwrap();
        std::thread::spawn(move || {
            set_affinity(0, &all[..1]).unwrap();
            assert_eq!(affinity(0).unwrap(), all[..1]);
        })
        .join()
        .unwrap();
        assert!(set_affinity(0, &[CpuSet::MAX_CPU]).is_err());
        assert!((-20..=19).contains(&nice(std::process::id()).unwrap()));
    }

    #[test]
    fn only_the_calling_thread_becomes_batch() {
        let before = class(0).unwrap();
        let asked = std::thread::spawn(move || schedule_as_batch().and_then(|()| class(0)));
        assert_eq!(asked.join().unwrap().unwrap(), libc::SCHED_BATCH);
        assert_eq!(class(0).unwrap(), before);
    }
}
