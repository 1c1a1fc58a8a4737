//! A running test: its threads, its end, its statistics.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use mydyno_stats::histogram::Histogram as ExactHistogram;
use mydyno_stats::rng::Rng;

use super::histogram::{Counts, Histogram};
use super::log::{Level, Log};
use super::queue::Queue;
use super::settings::Settings;
use super::stats::{Count, Stat, ThreadStats, Totals};

/// Histograms that threads share.
const SHARDS: usize = 16;

/// The state that the threads of a test share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) settings: Settings,
    pub(crate) log: Arc<Log>,
    /// Seed of all streams of random numbers.
    pub(crate) seed: u64,
    threads: Vec<ThreadStats>,
    histograms: Vec<Histogram>,
    queue: Queue,
    start: OnceLock<Instant>,
    events_begun: AtomicU64,
    running: AtomicU64,
    failed: AtomicBool,
    /// Ignored errors by number.
    errors: Mutex<BTreeMap<u16, u64>>,
    /// Durations for a record, by shards; none without one.
    durations: Vec<Mutex<ExactHistogram>>,
    ended: Mutex<bool>,
    end: Condvar,
}

/// The counts of the last report; the next one shows the difference.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    at: Instant,
    totals: Totals,
    latency: Counts,
}

impl Engine {
    pub(crate) fn new(settings: Settings, log: Arc<Log>) -> Self {
        let clock = || {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |now| now.as_nanos() as u64)
        };
        let seed = if settings.seed == 0 { clock() } else { settings.seed as u64 };
        let shards = if settings.record.is_some() { SHARDS.min(settings.threads) } else { 0 };
        Self {
            threads: (0..settings.threads).map(|_| ThreadStats::default()).collect(),
            histograms: (0..SHARDS.min(settings.threads)).map(|_| Histogram::of_latency()).collect(),
            settings,
            log,
            seed,
            queue: Queue::default(),
            start: OnceLock::new(),
            events_begun: AtomicU64::new(0),
            running: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            errors: Mutex::default(),
            durations: (0..shards).map(|_| Mutex::new(ExactHistogram::new())).collect(),
            ended: Mutex::new(false),
            end: Condvar::new(),
        }
    }

    /// The stream of random numbers of a thread.
    pub(crate) fn rng(&self, thread: u64) -> Rng {
        Rng::stream(self.seed, &[thread])
    }

    pub(crate) fn begin(&self) {
        self.running.store(self.threads.len() as u64, Relaxed);
        let _ = self.start.set(Instant::now());
    }

    pub(crate) fn start(&self) -> Instant {
        *self.start.get_or_init(Instant::now)
    }

    fn elapsed(&self) -> Duration {
        self.start().elapsed()
    }

    /// Notes that a thread has no more events; how many still have.
    pub(crate) fn thread_has_ended(&self) -> u64 {
        self.running.fetch_sub(1, Relaxed) - 1
    }

    pub(crate) fn count(&self, thread: usize, count: Count) {
        if let Some(stats) = self.threads.get(thread) {
            stats.count(count);
        }
    }

    pub(crate) fn count_of(&self, thread: usize, count: Count) -> u64 {
        self.threads.get(thread).map_or(0, |stats| stats.totals().get(count))
    }

    /// Ends the test because of a failure that has been printed.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Relaxed)
    }

    fn time_is_over(&self) -> bool {
        self.settings.time.is_some_and(|limit| self.elapsed() >= limit)
    }

    /// Whether the test has failed, or its time is over.
    pub(crate) fn should_end(&self) -> bool {
        self.has_failed() || self.time_is_over() || self.is_over()
    }

    /// The instant at which a thread's next event begins, or its arrival with `--rate`; `None` when the test is over.
    pub(crate) fn next_event(&self, thread: usize) -> Option<Instant> {
        if self.has_failed() {
            return None;
        }
        let now = Instant::now();
        if self.settings.time.is_some_and(|limit| now.duration_since(self.start()) >= limit) {
            self.log.line(Level::Info, "Time limit exceeded, exiting...");
            return None;
        }
        if self.settings.events > 0 && self.events_begun.fetch_add(1, Relaxed) >= self.settings.events {
            self.log.line(Level::Info, "Event limit exceeded, exiting...");
            return None;
        }
        let begin = match self.settings.rate > 0.0 {
            true => self.queue.take(|| self.should_end())?,
            false => now,
        };
        self.threads[thread].set_at_work(true);
        Some(begin)
    }

    /// Records an event that began at `begin`.
    pub(crate) fn event_ended(&self, thread: usize, begin: Instant) {
        let duration = begin.elapsed();
        let stats = &self.threads[thread];
        stats.set_at_work(false);
        stats.record(duration);
        stats.count(Count::Event);
        if self.settings.percentile > 0.0 {
            self.histograms[thread % self.histograms.len()].update(duration.as_secs_f64() * 1e3);
        }
        if let Some(shard) = self.durations.get(thread % SHARDS.min(self.threads.len())) {
            let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
            shard.lock().unwrap_or_else(PoisonError::into_inner).record(ns);
        }
    }

    /// An event that began and is not counted.
    pub(crate) fn event_given_up(&self, thread: usize) {
        self.threads[thread].set_at_work(false);
    }

    /// Makes arrivals for `--rate` until the test is over.
    pub(crate) fn generate_arrivals(&self) {
        let over = || self.should_end();
        self.queue.generate(self.start(), self.settings.rate, self.rng(u64::MAX), over);
    }

    /// Tells all that wait for it that the threads have ended.
    pub(crate) fn finish(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.end.notify_all();
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `instant`, or less when the test ends. Whether the instant came.
    pub(crate) fn wait_until(&self, instant: Instant) -> bool {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(left) = instant.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) {
            if *ended {
                return false;
            }
            (ended, _) = self.end.wait_timeout(ended, left).unwrap_or_else(PoisonError::into_inner);
        }
        true
    }

    /// Counts an error that starts an event again.
    pub(crate) fn count_error(&self, thread: usize, number: u16) {
        self.count(thread, Count::Error);
        *self.errors.lock().unwrap_or_else(PoisonError::into_inner).entry(number).or_default() += 1;
    }

    /// Ignored errors by number, from the start.
    pub(crate) fn errors(&self) -> BTreeMap<u16, u64> {
        self.errors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The durations of events for a record, which start again from none.
    pub(crate) fn take_durations(&self) -> ExactHistogram {
        let mut all = ExactHistogram::new();
        for shard in &self.durations {
            let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            all.merge(&shard);
            shard.clear();
        }
        all
    }

    pub(crate) fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        self.threads.iter().for_each(|thread| totals.add(&thread.totals()));
        totals
    }

    pub(crate) fn latency(&self) -> Counts {
        let mut counts = self.histograms[0].counts();
        self.histograms[1..].iter().for_each(|shard| counts.add(&shard.counts()));
        counts
    }

    /// The state at the start.
    pub(crate) fn mark(&self) -> Mark {
        let latency = self.latency();
        Mark { at: self.start(), totals: Totals::default(), latency: latency.since(&latency) }
    }

    /// The figures since `mark`, which moves to now.
    pub(crate) fn intermediate(&self, mark: &mut Mark) -> Stat {
        let next = Mark { at: Instant::now(), totals: self.totals(), latency: self.latency() };
        let stat = self.stat(mark, &next);
        *mark = next;
        stat
    }

    /// The figures since `mark` with durations, which start again.
    pub(crate) fn cumulative(&self, mark: &mut Mark) -> Stat {
        let mut stat = self.intermediate(mark);
        stat.threads = self.threads.iter().map(ThreadStats::take_durations).collect();
        // A percentile is the middle of a bucket, which may lie beyond the extremes.
        let (min, _, max, sum) = stat.latency();
        if sum > 0.0 {
            stat.latency_pct = stat.latency_pct.clamp(min, max);
            stat.percentiles.iter_mut().for_each(|(_, seconds)| *seconds = seconds.clamp(min, max));
        }
        if self.settings.errors_by_code {
            stat.errors = self.errors();
        }
        stat
    }

    fn stat(&self, from: &Mark, to: &Mark) -> Stat {
        let latency = to.latency.since(&from.latency);
        Stat {
            threads_running: self.running.load(Relaxed),
            time_interval: to.at.duration_since(from.at).as_secs_f64(),
            time_total: to.at.duration_since(self.start()).as_secs_f64(),
            latency_pct: latency.percentile(self.settings.percentile) / 1e3,
            percentiles: self
                .settings
                .more_percentiles
                .iter()
                .map(|p| (*p, latency.percentile(*p) / 1e3))
                .collect(),
            errors: BTreeMap::new(),
            totals: to.totals.since(&from.totals),
            queue_length: self.queue.len(),
            concurrency: self.threads.iter().filter(|thread| thread.is_at_work()).count() as u64,
            threads: Vec::new(),
            unfinished: None,
        }
    }
}
