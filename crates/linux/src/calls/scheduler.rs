//! CPUs and nice values of threads.

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
}
