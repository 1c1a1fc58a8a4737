//! Samplers in parallel to the load, on their own threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_facts::Source;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::sample::Sample;
use mydyno_model::watch::WatchNote;
use mydyno_samples::watched_server::{ServerNote, WatchedServer};
use mydyno_samples::{Bus, Interval, MachineClock, Sampler, ServerPid, Stop};
use mydyno_wire::ConnectOptions;

use crate::reconnect::Reconnect;
use crate::stacks::Stacks;

/// Reasons why counters are missing from the samples. A failure of the samplers does not end the run.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<WatchNote>>>);

impl Notes {
    /// Adds a sentence.
    pub fn add(&self, at_s: f64, text: impl Into<String>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(WatchNote { at_s, text: text.into() });
    }

    /// Removes and returns the sentences so far.
    pub fn take(&self) -> Vec<WatchNote> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The counters of the loaded server, over a separate connection.
pub struct Counted {
    server: WatchedServer<Reconnect>,
    cancel: Arc<AtomicBool>,
}

impl Counted {
    /// Connects; a refusal becomes a note, and the counters are missing from the record.
    pub fn connect(options: &ConnectOptions, clock: &MonotonicClock, notes: &Notes) -> Option<Self> {
        let cancel = Arc::new(AtomicBool::new(false));
        let mut reconnect = Reconnect::new(options, &Source::live(), &cancel);
        let first = match reconnect.first() {
            Ok((first, _)) => first,
            Err(error) => {
                notes.add(clock.now_s(), format!("Not sampled: the server's counters: {error}"));
                return None;
            }
        };
        let (heard, clock, ended) = (notes.clone(), *clock, Arc::clone(&cancel));
        let note = move |note: ServerNote| {
            // A statement that the end of the run interrupts is no loss.
            if !ended.load(Ordering::Relaxed) {
                heard.add(clock.now_s(), sentence(&note));
            }
        };
        let server = WatchedServer::<Reconnect>::new(reconnect, first, ServerPid::new(None), note);
        Some(Self { server, cancel })
    }

    /// Set at the end of the run, it cancels a pending statement.
    pub fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.cancel)
    }
}

/// A note of the sampler as a sentence.
pub fn sentence(note: &ServerNote) -> String {
    match note {
        ServerNote::Lost(lost) => format!("The server is lost: {}; watching for its return", lost.why),
        ServerNote::Back => "The server answers again".to_owned(),
        ServerNote::Refused(why) => format!("Not sampled: {why}"),
    }
}

/// Takes a sample at the start, at every whole second of the run's clock and at the end, until `stop` is set.
pub fn sample_until(
    stop: &Stop,
    clock: &MonotonicClock,
    sampler: &mut Sampler,
    server: Option<Counted>,
    stacks: Option<Stacks>,
    to: &Sender<Sample>,
) {
    let clock = MachineClock(|| clock.now_ns());
    let mut bus = Bus::new(&clock, Interval::SECOND, sampler);
    if let Some(counted) = server {
        bus = bus.beside(Interval::SECOND, Box::new(counted.server));
    }
    if let Some(stacks) = stacks {
        bus = bus.unawaited(Stacks::interval(), Box::new(stacks));
    }
    bus.run(stop, |sample| {
        // The receiver outlives this thread; if it is closed, the run has ended.
        let _ = to.send(sample);
    });
}

/// Block devices that can be disks: no loop or memory devices, no partitions.
pub fn disks(source: &Source) -> Vec<String> {
    let names = source.list("/sys/block").unwrap_or_default();
    names
        .into_iter()
        .filter(|name| !["loop", "ram", "zram", "fd", "sr"].iter().any(|p| name.starts_with(p)))
        .collect()
}
