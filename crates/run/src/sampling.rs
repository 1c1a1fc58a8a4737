//! Samples beside the load, on a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use mydyno_facts::Source;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::sample::Sample;
use mydyno_samples::Sampler;

/// Samples are taken this often, at whole seconds of the run's clock.
const EVERY_NS: u64 = 1_000_000_000;

/// Longest sleep: how late the thread may learn that the run is over.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// Takes a sample at the start, at every whole second and at the end, until `done`.
pub fn sample_until(done: &AtomicBool, clock: &MonotonicClock, sampler: &mut Sampler, to: &Sender<Sample>) {
    let mut next_ns = clock.now_ns();
    loop {
        let over = done.load(Ordering::Acquire);
        let now_ns = clock.now_ns();
        if over || now_ns >= next_ns {
            // The receiver outlives this thread; if it has gone, so has the run.
            let _ = to.send(sampler.sample(clock.now_s()));
            next_ns = (now_ns / EVERY_NS + 1) * EVERY_NS;
        }
        if over {
            return;
        }
        std::thread::sleep(Duration::from_nanos(next_ns.saturating_sub(clock.now_ns())).min(LONGEST_SLEEP));
    }
}

/// Block devices that can be real disks: not loop devices or memory, and not parts of another.
pub fn disks(source: &Source) -> Vec<String> {
    let names = source.list("/sys/block").unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !["loop", "ram", "zram", "fd", "sr"].iter().any(|p| name.starts_with(p)))
        .collect()
}
