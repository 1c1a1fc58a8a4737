//! CPU clocks of threads and processes (clock_gettime(2)).

/// Reads a CPU clock in seconds.
fn clock_s(clock: libc::clockid_t) -> Option<f64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel fills the struct that the pointer is to.
    (unsafe { libc::clock_gettime(clock, &mut time) } == 0)
        .then_some(time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9)
}

/// CPU time that the calling thread has used, in seconds.
pub fn thread_cpu_s() -> Option<f64> {
    clock_s(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// User and system CPU time of all threads of a process, also of those that have ended, in seconds with the
/// scheduler's resolution (nanoseconds, where /proc/PID/stat has ticks). Any user may ask (clock_getcpuclockid(3)).
pub fn process_cpu_s(pid: u32) -> Option<f64> {
    let pid = libc::pid_t::try_from(pid).ok().filter(|p| *p > 0)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the call writes the clock's id through a valid pointer.
    if unsafe { libc::clock_getcpuclockid(pid, &mut clock) } != 0 {
        return None;
    }
    clock_s(clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_this_process_advances_with_its_work() {
        let before = process_cpu_s(std::process::id()).unwrap();
        let mut sum = 0u64;
        while process_cpu_s(std::process::id()).unwrap() - before < 0.002 {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(sum > 0);
        assert_eq!(process_cpu_s(0), None);
        assert_eq!(process_cpu_s(u32::MAX), None);
    }
}
