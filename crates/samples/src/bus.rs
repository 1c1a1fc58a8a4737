//! The sample bus: samplers with individual intervals, on one clock that the load cannot delay.
//!
//! The bus runs in a thread of its own and shares only the zero of its clock with the load. The thread of the bus reads
//! files. Sources that may block (statements) are read [beside](Bus::beside) it, in one thread for each group: a server that
//! does not answer delays its own group only.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use mydyno_model::sample::Sample;

use crate::clock::{Clock, Stop};
use crate::sampler::Sampler;
use crate::schedule::{Interval, Schedule, Tick};
use crate::values::Values;

/// Counters that are read together.
pub trait Counters: Send {
    /// The group's name, as it appears in `observe.GROUP.at_s`.
    fn group(&self) -> &'static str;

    /// Reads all counters of the group. Those that cannot be read are left out.
    fn read(&mut self, values: &mut Values);
}

/// The most time that a sample waits for groups that were due at the same instant, as a part of the interval. The files are
/// read before this wait.
const GRACE_PART: u32 = 2;

/// The longest such wait.
const LONGEST_GRACE: Duration = Duration::from_secs(1);

/// The most time that the first sample waits for the first reading of each group.
const FIRST_GRACE: Duration = Duration::from_secs(2);

/// How often such a wait looks whether the sampling has ended: a group whose server is silent gives no values then.
const LOOK: Duration = Duration::from_millis(20);

/// A group beside the bus: its latest values and when their reading began.
#[derive(Debug, Default)]
struct Slot {
    latest: Mutex<Option<(u64, Values)>>,
    changed: Condvar,
}

impl Slot {
    fn put(&self, begun_ns: u64, values: Values) {
        *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((begun_ns, values));
        self.changed.notify_all();
    }

    /// Waits for values whose reading began at `since_ns` or later, until an instant or until `stop` is set.
    fn wait_for(&self, since_ns: u64, until: Instant, stop: &Stop) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        while latest.as_ref().is_none_or(|(at, _)| *at < since_ns) && !stop.is_set() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let waited = self.changed.wait_timeout(latest, left.min(LOOK));
            latest = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn copy_into(&self, values: &mut Values) {
        if let Some((_, latest)) = &*self.latest.lock().unwrap_or_else(PoisonError::into_inner) {
            values.extend(latest);
        }
    }
}

/// Samplers on one clock.
pub struct Bus<'a> {
    clock: &'a dyn Clock,
    interval: Interval,
    files: &'a mut Sampler,
    after: Vec<Box<dyn Counters + 'a>>,
    beside: Vec<Beside<'a>>,
}

/// A group with its own thread.
struct Beside<'a> {
    interval: Interval,
    counters: Box<dyn Counters + 'a>,
    /// Whether samples that are due at the same instant wait for it.
    awaited: bool,
}

impl<'a> Bus<'a> {
    /// A bus that reads `files` at each interval.
    pub fn new(clock: &'a dyn Clock, interval: Interval, files: &'a mut Sampler) -> Self {
        Self { clock, interval, files, after: Vec::new(), beside: Vec::new() }
    }

    /// Adds `counters` that are read on the thread of the bus, at each interval after the files: files of the kernel that
    /// take longer than those of the sampler. `observe.GROUP.at_s` is the instant at which these were read.
    #[must_use]
    pub fn after(mut self, counters: Box<dyn Counters + 'a>) -> Self {
        self.after.push(counters);
        self
    }

    /// Adds `counters` with their own interval and thread. Each sample contains their latest values;
    /// `observe.GROUP.at_s` is the instant at which these were read. A sample waits a moment for groups that are due at
    /// the same instant, after its own files were read.
    #[must_use]
    pub fn beside(mut self, interval: Interval, counters: Box<dyn Counters + 'a>) -> Self {
        self.beside.push(Beside { interval, counters, awaited: true });
        self
    }

    /// Adds `counters` as [`Self::beside`] does, whose readings take so long that no sample but the first waits for them.
    #[must_use]
    pub fn unawaited(mut self, interval: Interval, counters: Box<dyn Counters + 'a>) -> Self {
        self.beside.push(Beside { interval, counters, awaited: false });
        self
    }

    /// Passes a sample to `give` at the start, at each multiple of the interval, and at the end, until `stop` is set.
    pub fn run(self, stop: &Stop, mut give: impl FnMut(Sample)) {
        let Self { clock, interval, files, mut after, beside } = self;
        let slots: Vec<(Option<Interval>, Arc<Slot>)> = beside
            .iter()
            .map(|group| (Some(group.interval).filter(|_| group.awaited), Arc::default()))
            .collect();
        let grace = interval.part(GRACE_PART).min(LONGEST_GRACE);
        thread::scope(|scope| {
            for (Beside { interval, counters, .. }, (_, slot)) in beside.into_iter().zip(&slots) {
                let slot = Arc::clone(slot);
                scope.spawn(move || read_beside(clock, interval, counters, &slot, stop));
            }
            let zero = Zero::of(clock);
            let mut take = |tick: Option<Tick>| {
                let now_ns = clock.now_ns();
                let mut sample = files.sample(seconds(now_ns));
                let mut values = Values { numbers: std::mem::take(&mut sample.values), ..Values::default() };
                for counters in &mut after {
                    values.set(&format!("observe.{}.at_s", counters.group()), seconds(clock.now_ns()));
                    counters.read(&mut values);
                }
                let due_ns = tick.map_or(0, |tick| tick.due_ns);
                let wait_until = Instant::now() + if due_ns == 0 { FIRST_GRACE } else { grace };
                for (every, slot) in &slots {
                    let waits = due_ns == 0 || every.is_some_and(|every| every.has_multiple_at(due_ns));
                    if waits {
                        slot.wait_for(due_ns, wait_until, stop);
                    }
                    slot.copy_into(&mut values);
                }
                (sample.values, sample.texts) = (values.numbers, values.texts);
                sample.late_s = tick.map(|tick| seconds(tick.late_ns));
                sample.missed = tick.map_or(0, |tick| tick.missed);
                sample.drift_s = Some(zero.drift_s(clock));
                give(sample);
            };
            take(None);
            let mut schedule = Schedule::after(clock.now_ns(), interval);
            while !stop.is_set() {
                match schedule.take(clock.now_ns()) {
                    Some(tick) => take(Some(tick)),
                    None => clock.sleep_until(schedule.due_ns(), stop),
                }
            }
            take(None);
        });
    }
}

/// Reads a group at the start and at each of its intervals.
fn read_beside(
    clock: &dyn Clock,
    interval: Interval,
    mut counters: Box<dyn Counters + '_>,
    slot: &Slot,
    stop: &Stop,
) {
    let at = format!("observe.{}.at_s", counters.group());
    let mut read = || {
        let mut values = Values::default();
        let begun_ns = clock.now_ns();
        values.set(&at, seconds(begun_ns));
        counters.read(&mut values);
        slot.put(begun_ns, values);
    };
    read();
    let mut schedule = Schedule::after(clock.now_ns(), interval);
    while !stop.is_set() {
        match schedule.take(clock.now_ns()) {
            Some(_) => read(),
            None => clock.sleep_until(schedule.due_ns(), stop),
        }
    }
}

/// Both clocks at the first sample.
struct Zero {
    now_ns: u64,
    wall_ns: i64,
}

impl Zero {
    fn of(clock: &dyn Clock) -> Self {
        Self { now_ns: clock.now_ns(), wall_ns: clock.wall_ns() }
    }

    /// Seconds by which the wall clock has advanced more than the run's clock since then.
    fn drift_s(&self, clock: &dyn Clock) -> f64 {
        let wall_s = (clock.wall_ns() - self.wall_ns) as f64 * 1e-9;
        wall_s - seconds(clock.now_ns() - self.now_ns)
    }
}

fn seconds(ns: u64) -> f64 {
    ns as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;
    use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

    const MS: u64 = 1_000_000;

    /// A clock that advances only when something sleeps. Each sleep ends late by the next delay of the list; at the end
    /// of the list it sets the stop flag.
    struct Virtual {
        now_ns: AtomicU64,
        wall_ahead_ns: AtomicI64,
        delays_ms: Mutex<Vec<u64>>,
    }

    impl Virtual {
        fn with(delays_ms: &[u64]) -> Self {
            let delays_ms = Mutex::new(delays_ms.iter().rev().copied().collect());
            Self { now_ns: AtomicU64::new(250 * MS), wall_ahead_ns: AtomicI64::new(0), delays_ms }
        }
    }

    impl Clock for Virtual {
        fn now_ns(&self) -> u64 {
            self.now_ns.load(Relaxed)
        }

        fn wall_ns(&self) -> i64 {
            self.now_ns() as i64 + self.wall_ahead_ns.load(Relaxed)
        }

        fn sleep_until(&self, at_ns: u64, stop: &Stop) {
            match self.delays_ms.lock().unwrap().pop() {
                Some(delay) => self.now_ns.store(at_ns + delay * MS, Relaxed),
                None => stop.set(),
            }
        }
    }

    fn run(clock: &Virtual, interval_ms: u64) -> Vec<Sample> {
        let (_tree, source) = tree(&[("proc/stat", "cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1\nctxt 7\n")]);
        let mut files = Sampler::new(&source, None, &[]);
        let mut samples = Vec::new();
        let interval = Interval::new(Duration::from_millis(interval_ms)).unwrap();
        Bus::new(clock, interval, &mut files).run(&Stop::new(), |sample| samples.push(sample));
        samples
    }

    #[test]
    fn samples_come_at_the_start_at_whole_intervals_and_at_the_end() {
        let samples = run(&Virtual::with(&[0, 0, 0]), 100);
        let at: Vec<u64> = samples.iter().map(|s| (s.at_s * 1e3).round() as u64).collect();
        assert_eq!(at, [250, 300, 400, 500, 500]);
        assert!(samples.iter().all(|s| s.values["host.context_switches"] == 7.0));
        assert_eq!((samples[0].late_s, samples[1].late_s, samples[4].late_s), (None, Some(0.0), None));
    }

    #[test]
    fn lateness_and_missed_samples_are_recorded_and_do_not_add_up() {
        let samples = run(&Virtual::with(&[30, 2_150, 0]), 1000);
        let timing: Vec<(u64, u64, u64)> = samples[1..4]
            .iter()
            .map(|s| ((s.at_s * 1e3).round() as u64, (s.late_s.unwrap() * 1e3).round() as u64, s.missed))
            .collect();
        assert_eq!(timing, [(1_030, 30, 0), (4_150, 150, 2), (5_000, 0, 0)]);
    }

    #[test]
    fn a_step_of_the_wall_clock_shows_and_moves_no_sample() {
        /// Sets the wall clock forward by an hour during the second sleep.
        struct Stepped(Virtual);
        impl Clock for Stepped {
            fn now_ns(&self) -> u64 {
                self.0.now_ns()
            }
            fn wall_ns(&self) -> i64 {
                self.0.wall_ns()
            }
            fn sleep_until(&self, at_ns: u64, stop: &Stop) {
                if at_ns == 2_000 * MS {
                    self.0.wall_ahead_ns.store(3_600_000_000_000, Relaxed);
                }
                self.0.sleep_until(at_ns, stop);
            }
        }
        let clock = Stepped(Virtual::with(&[0, 0, 0]));
        let (_tree, source) = tree(&[]);
        let mut files = Sampler::new(&source, None, &[]);
        let mut samples = Vec::new();
        Bus::new(&clock, Interval::SECOND, &mut files).run(&Stop::new(), |s| samples.push(s));
        let drift: Vec<f64> = samples.iter().map(|s| s.drift_s.unwrap()).collect();
        assert_eq!(drift, [0.0, 0.0, 3600.0, 3600.0, 3600.0]);
        let at: Vec<u64> = samples.iter().map(|s| (s.at_s * 1e3).round() as u64).collect();
        assert_eq!(at, [250, 1_000, 2_000, 3_000, 3_000]);
    }

    #[test]
    fn the_end_of_the_sampling_ends_the_wait_for_a_group_that_is_late() {
        let (slot, stop, start) = (Slot::default(), Stop::new(), Instant::now());
        slot.put(5, Values::default());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| slot.wait_for(6, start + Duration::from_secs(3600), &stop));
            stop.set();
            waiting.join().unwrap();
        });
        assert!(start.elapsed() < Duration::from_secs(600));
        let open = Stop::new();
        slot.wait_for(5, start + Duration::from_secs(3600), &open);
        slot.wait_for(6, start, &open);
        assert!(start.elapsed() < Duration::from_secs(600));
    }

    #[test]
    fn a_group_that_never_answers_holds_up_no_sample() {
        /// Answers once; the next reading blocks until the end of the test.
        struct Stuck<'a> {
            answered: bool,
            stop: &'a Stop,
            asked: &'a AtomicU64,
        }
        impl Counters for Stuck<'_> {
            fn group(&self) -> &'static str {
                "stuck"
            }
            fn read(&mut self, values: &mut Values) {
                values.set("server.status.questions", 5.0);
                self.asked.fetch_add(1, Relaxed);
                if self.answered {
                    self.stop.wait_for(Duration::from_secs(600));
                }
                self.answered = true;
            }
        }
        let start = std::time::Instant::now();
        let clock = crate::clock::MachineClock(move || start.elapsed().as_nanos() as u64);
        let (_tree, source) = tree(&[]);
        let mut files = Sampler::new(&source, None, &[]);
        let (stop, asked) = (Stop::new(), AtomicU64::new(0));
        let interval = Interval::new(Interval::SHORTEST).unwrap();
        let mut samples = Vec::new();
        Bus::new(&clock, interval, &mut files)
            .beside(interval, Box::new(Stuck { answered: false, stop: &stop, asked: &asked }))
            .run(&stop, |sample| {
                let done = asked.load(Relaxed) >= 2
                    && sample.values.contains_key("server.status.questions")
                    && samples.len() >= 4;
                samples.push(sample);
                if done {
                    stop.set();
                }
            });
        let last = samples.last().unwrap();
        assert_eq!(last.values["server.status.questions"], 5.0);
        assert!(last.values["observe.stuck.at_s"] < last.at_s);
    }
}
