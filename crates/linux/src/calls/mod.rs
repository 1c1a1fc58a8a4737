//! System calls that the standard library does not offer: through `rustix` where it has them, else through `libc`.

pub mod aio;
pub mod clock_state;
pub mod cpu_clocks;
pub mod files;
pub mod limits;
pub mod loops;
pub mod mapping;
pub mod memory_policy;
pub mod mounts;
pub mod own_memory;
pub mod perf;
pub mod processes;
pub mod replace;
pub mod scheduler;
pub mod taskstats;
pub mod this_process;
pub mod usage;
pub mod users;

/// The effective user id of this process: geteuid(2).
pub fn effective_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Clock ticks a second: the unit of CPU times in `/proc`.
pub fn ticks_per_s() -> u64 {
    rustix::param::clock_ticks_per_second()
}

/// The size of a memory page in bytes.
pub fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// The machine's architecture as the kernel names it, as in `x86_64`: uname(2).
pub fn machine() -> Option<String> {
    let name = rustix::system::uname();
    name.machine().to_str().ok().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_machine_has_plausible_values() {
        assert!(super::ticks_per_s() >= 100 && super::page_bytes() >= 4096);
        assert!(super::machine().is_some());
    }
}
