//! Samplers in parallel to the load, on their own threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_facts::Source;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::sample::Sample;
use mydyno_model::watch::WatchNote;
use mydyno_samples::kernel_files::{Cpus, GroupMemory, Interrupts, Network, Softirqs, Threads, Together};
use mydyno_samples::watched_server::{ServerNote, WatchedServer};
use mydyno_samples::{Bus, Details, Interval, MachineClock, Sampler, ServerPid, Smaps, Stop};
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

/// Connections of the samplers: one for the counters, one for the details.
pub const CONNECTIONS: u64 = 2;

/// The counters of the loaded server, over a separate connection, and its details over another one, where there is room.
pub struct Counted {
    server: WatchedServer<Reconnect>,
    details: Option<Details<Reconnect>>,
    cancel: Arc<AtomicBool>,
}

impl Counted {
    /// Connects, `room` connections at most; a refusal becomes a note, and the counters are missing from the record.
    pub fn connect(
        options: &ConnectOptions,
        clock: &MonotonicClock,
        room: u64,
        notes: &Notes,
    ) -> Option<Self> {
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
        let again = reconnect.clone();
        let server = WatchedServer::new(reconnect, first, ServerPid::new(None), note.clone());
        let details = match room {
            0..CONNECTIONS => {
                notes.add(
                    clock.now_s(),
                    format!("Not sampled: {}: max_connections leaves no room", Details::<Reconnect>::ALL),
                );
                None
            }
            CONNECTIONS.. => Some(Details::new(again, &server.own_sessions(), note)),
        };
        Some(Self { server, details, cancel })
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

/// Sources that are read in addition to the files of the sampler.
pub struct Beside {
    /// The server's process, where it is on this host.
    pub server_pid: Option<u32>,
    /// The server's counters.
    pub counted: Option<Counted>,
    /// Its stacks.
    pub stacks: Option<Stacks>,
}

/// Takes a sample at the start, at every whole second of the run's clock and at the end, until `stop` is set.
pub fn sample_until(
    stop: &Stop,
    clock: &MonotonicClock,
    sampler: &mut Sampler,
    beside: Beside,
    to: &Sender<Sample>,
) {
    let clock = MachineClock(|| clock.now_ns());
    let (source, pid) = (Source::live(), ServerPid::new(beside.server_pid));
    let mut bus = Bus::new(&clock, Interval::SECOND, sampler).after(Box::new(kernel(&source, &pid)));
    if beside.server_pid.is_some() {
        bus = bus.unawaited(Smaps::interval(), Box::new(Smaps::of(&source, &pid)));
    }
    if let Some(counted) = beside.counted {
        bus = bus.beside(Interval::SECOND, Box::new(counted.server));
        if let Some(details) = counted.details {
            let every = Details::<Reconnect>::interval(Interval::SECOND, None);
            bus = bus.unawaited(every, Box::new(details));
        }
    }
    if let Some(stacks) = beside.stacks {
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

/// Files that are read after the others, because they are many or large.
pub fn kernel(source: &Source, pid: &ServerPid) -> Together {
    Together(
        "kernel",
        vec![
            Box::new(Cpus::open(source)),
            Box::new(Interrupts::open(source)),
            Box::new(Softirqs::open(source)),
            Box::new(Network::open(source)),
            Box::new(Threads::of(source, pid)),
            Box::new(GroupMemory::of(source, pid)),
        ],
    )
}
