//! How long each thread ran, waited and was kept from running, from the switches of its CPUs.

use std::collections::HashMap;
use std::sync::Arc;

use crate::records::Switched;

/// Times of a thread in a capture.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadTime {
    /// Its number.
    pub tid: u32,
    /// Seconds on a CPU.
    pub running_s: f64,
    /// Seconds for which it waited for something, until it ran again.
    pub waiting_s: f64,
    /// Seconds for which another thread had its CPU although it could have gone on.
    pub preempted_s: f64,
    /// Switches away from a CPU.
    pub switches: u64,
    /// Seconds for which it could run and waited for a CPU, preemptions included, as the scheduler counts them; absent where the kernel does
    /// not.
    pub run_delay_s: Option<f64>,
    /// One of its stacks, outermost function first; empty when none was sampled.
    pub stack: Vec<Arc<str>>,
}

/// The threads of one process.
#[derive(Debug, Default)]
pub struct Switches {
    threads: HashMap<u32, State>,
}

#[derive(Debug, Default)]
struct State {
    time: ThreadTime,
    /// Its state, and the instant at which that began.
    since: Option<(Switched, u64)>,
}

impl Switches {
    /// Notes a switch. Returns why and for how many nanoseconds the thread was away from a CPU, if it returns now.
    pub fn note(&mut self, tid: u32, time_ns: u64, what: Switched) -> Option<(Switched, u64)> {
        let state = self.threads.entry(tid).or_default();
        state.time.tid = tid;
        state.time.switches += u64::from(what != Switched::In);
        let (before, since_ns) = state.since.replace((what, time_ns))?;
        let passed_ns = time_ns.saturating_sub(since_ns);
        state.time.add(before, passed_ns);
        (before != Switched::In && what == Switched::In).then_some((before, passed_ns))
    }

    /// The threads that were switched at all, with the time until `end_ns`.
    pub fn into_times(self, end_ns: u64) -> Vec<ThreadTime> {
        let mut times: Vec<ThreadTime> = self
            .threads
            .into_values()
            .map(|state| {
                let mut time = state.time;
                if let Some((what, since_ns)) = state.since {
                    time.add(what, end_ns.saturating_sub(since_ns));
                }
                time
            })
            .collect();
        times.sort_by_key(|time| time.tid);
        times
    }
}

impl ThreadTime {
    fn add(&mut self, what: Switched, passed_ns: u64) {
        let place = match what {
            Switched::In => &mut self.running_s,
            Switched::Out => &mut self.waiting_s,
            Switched::Preempted => &mut self.preempted_s,
        };
        *place += passed_ns as f64 * 1e-9;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_between_switches_is_told_apart_by_what_began_it() {
        let mut switches = Switches::default();
        let second = 1_000_000_000;
        assert_eq!(switches.note(7, second, Switched::In), None);
        assert_eq!(switches.note(7, 3 * second, Switched::Out), None);
        assert_eq!(switches.note(7, 6 * second, Switched::In), Some((Switched::Out, 3 * second)));
        assert_eq!(switches.note(7, 7 * second, Switched::Preempted), None);
        assert_eq!(switches.note(7, 9 * second, Switched::In), Some((Switched::Preempted, 2 * second)));
        switches.note(8, 4 * second, Switched::Out);
        let times = switches.into_times(10 * second);
        assert_eq!(
            times,
            [
                ThreadTime {
                    tid: 7,
                    running_s: 4.0,
                    waiting_s: 3.0,
                    preempted_s: 2.0,
                    switches: 2,
                    ..ThreadTime::default()
                },
                ThreadTime { tid: 8, running_s: 0.0, waiting_s: 6.0, switches: 1, ..ThreadTime::default() },
            ]
        );
    }
}
