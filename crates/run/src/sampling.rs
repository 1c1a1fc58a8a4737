//! Samples beside the load, on a thread of their own.

use std::sync::mpsc::Sender;

use mydyno_facts::Source;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::sample::Sample;
use mydyno_samples::{Bus, Interval, MachineClock, Sampler, Stop};

/// Takes a sample at the start, at every whole second of the run's clock and at the end, until `stop` is set.
pub fn sample_until(stop: &Stop, clock: &MonotonicClock, sampler: &mut Sampler, to: &Sender<Sample>) {
    let clock = MachineClock(|| clock.now_ns());
    Bus::new(&clock, Interval::SECOND, sampler).run(stop, |sample| {
        // The receiver outlives this thread; if it has gone, so has the run.
        let _ = to.send(sample);
    });
}

/// Block devices that can be real disks: not loop devices or memory, and not parts of another.
pub fn disks(source: &Source) -> Vec<String> {
    let names = source.list("/sys/block").unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !["loop", "ram", "zram", "fd", "sr"].iter().any(|p| name.starts_with(p)))
        .collect()
}
