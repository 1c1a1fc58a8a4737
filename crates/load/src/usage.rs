//! CPU time, context switches and memory of the load generator, as the kernel counts them.

use mydyno_linux::text;

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
        let usage = mydyno_linux::calls::usage::of_this_thread();
        Self {
            user_us: usage.user_us,
            system_us: usage.system_us,
            voluntary_switches: usage.voluntary_switches,
            involuntary_switches: usage.involuntary_switches,
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
    let threads = text::field(&status, "Threads", ':').and_then(|count| count.parse().ok());
    (text::kib_field(&status, "VmRSS").unwrap_or(0), threads.unwrap_or(0))
}
