//! CPU time, context switches and page faults, as the kernel counts them: getrusage(2).

/// Use of the CPU by a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadUsage {
    /// User CPU in microseconds.
    pub user_us: u64,
    /// System CPU in microseconds.
    pub system_us: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

/// Use of the calling thread so far.
pub fn of_this_thread() -> ThreadUsage {
    // RUSAGE_THREAD exists since Linux 2.6.26.
    let usage = read(libc::RUSAGE_THREAD);
    let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    ThreadUsage {
        user_us: us(usage.ru_utime),
        system_us: us(usage.ru_stime),
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
    }
}

/// User and system CPU of all threads of this process so far, in microseconds.
pub fn of_this_process() -> (u64, u64) {
    let usage = read(libc::RUSAGE_SELF);
    let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
    (us(usage.ru_utime), us(usage.ru_stime))
}

/// Minor and major page faults of this process so far.
pub fn page_faults() -> (u64, u64) {
    let usage = read(libc::RUSAGE_SELF);
    (usage.ru_minflt as u64, usage.ru_majflt as u64)
}

fn read(who: libc::c_int) -> libc::rusage {
    // SAFETY: an all-zero `rusage` is valid: it holds numbers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing; the call cannot fail for the calling thread and process.
    unsafe { libc::getrusage(who, &raw mut usage) };
    usage
}

#[cfg(test)]
mod tests {
    #[test]
    fn counts_grow_with_work() {
        let (minor, _) = super::page_faults();
        let before = super::of_this_thread();
        while super::of_this_thread().user_us + super::of_this_thread().system_us
            <= before.user_us + before.system_us
        {
            std::hint::black_box(vec![1u8; 1 << 20]);
        }
        assert!(super::page_faults().0 >= minor);
    }
}
