//! CPU time, context switches and memory of the load generator, as the kernel counts them.

/// CPU time and context switches of a thread, as the kernel counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUse {
    /// User CPU in microseconds.
    pub user_us: u64,
    /// System CPU in microseconds.
    pub system_us: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl ThreadUse {
    /// The calling thread's use so far.
    pub fn of_this_thread() -> Self {
        // SAFETY: an all-zero `rusage` is valid: it holds numbers only.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` is valid for writing; RUSAGE_THREAD exists since Linux 2.6.26, so the call cannot fail.
        unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
        let us = |t: libc::timeval| t.tv_sec as u64 * 1_000_000 + t.tv_usec as u64;
        Self {
            user_us: us(usage.ru_utime),
            system_us: us(usage.ru_stime),
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }

    /// The sum of both.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            user_us: self.user_us + other.user_us,
            system_us: self.system_us + other.system_us,
            voluntary_switches: self.voluntary_switches + other.voluntary_switches,
            involuntary_switches: self.involuntary_switches + other.involuntary_switches,
        }
    }

    /// The use since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(before.user_us),
            system_us: self.system_us.saturating_sub(before.system_us),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
        }
    }
}

/// Resident memory in bytes and threads of this process; zeros where /proc cannot be read.
pub fn process_size() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
            .unwrap_or(0)
    };
    (field("VmRSS") * 1024, field("Threads"))
}
