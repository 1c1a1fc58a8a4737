//! Watches a running server.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mydyno_facts::Source;
use mydyno_load::clock::{Clock as _, MonotonicClock};
use mydyno_model::document::Header;
use mydyno_model::sample::Sample;
use mydyno_model::watch::WatchManifest;
use mydyno_samples::series::Series;
use mydyno_samples::watched_server::{Connected, ServerNote, WatchedServer};
use mydyno_samples::{Bus, Details, MachineClock, Sampler, ServerPid, Smaps, Stop};
use mydyno_wire::Client;
use time::OffsetDateTime;

use super::black_box::BlackBox;
use super::recent::Recent;
use super::record::Record;
use super::{Seen, WatchEnd, WatchPlan, openmetrics};
use crate::error::RunError;
use crate::reconnect::Reconnect;
use crate::sampling::{self, sentence};
use crate::stacks::{AllStacks, Stacks};
use crate::target::Cancel;

/// Longest delay until the user's signal is noticed.
const LOOK: Duration = Duration::from_millis(50);

/// A figure of intervals with a capture of stacks.
const CAPTURED: &str = "budget.busy_threads";

/// Messages of the sampling threads.
#[derive(Clone)]
enum Message {
    Sample(Sample),
    Server(ServerNote),
    /// A sentence, and when it was said.
    Note(f64, String),
}

/// The server of a watch, connected.
struct Server {
    reconnect: Reconnect,
    first: Connected<Client>,
    version: String,
}

/// Watches until the plan's last interval or the user's signal.
///
/// # Errors
/// The server cannot be reached. Losing it later is no error: the watch reconnects.
pub fn watch(plan: &WatchPlan, stop: &Cancel, see: &mut dyn FnMut(Seen<'_>)) -> Result<WatchEnd, RunError> {
    let source = Source::live();
    let cancel = Arc::new(AtomicBool::new(false));
    let mut gaps = Vec::new();
    let server = connect(plan, &source, stop, &cancel, &mut gaps)?;
    let remote = server.as_ref().is_some_and(|server| server.reconnect.is_remote());
    let pid = ServerPid::new(server.as_ref().and_then(|server| server.first.pid));
    let mut files = match remote {
        true => Sampler::without_host(&source),
        false => Sampler::following(&source, &pid, &sampling::disks(&source)),
    };
    gaps.extend(files.gaps());
    // In milliseconds, like the manifest, so that a replay has the same instants.
    let now = OffsetDateTime::now_utc();
    let started = now.replace_millisecond(now.millisecond()).unwrap_or(now);
    let clock = MonotonicClock::start();
    let manifest = manifest(plan, server.as_ref(), gaps, started);
    let recent = Recent::new()?;
    let record = plan.record.as_ref().map(|folder| Record::create(folder, &manifest)).transpose()?;
    let (send, messages) = channel();
    let bus_clock = MachineClock(|| clock.now_ns());
    let mut bus = Bus::new(&bus_clock, plan.interval, &mut files);
    if !remote {
        bus = bus.after(Box::new(sampling::kernel(&source, &pid)));
    }
    let mut all_stacks = None;
    if plan.stacks && !remote && server.is_some() {
        let (notes, clock) = (send.clone(), clock);
        let note = move |why| _ = notes.send(Message::Note(clock.now_s(), why));
        let stacks = Stacks::new(pid.clone(), &cancel, note)?;
        all_stacks = Some(stacks.all());
        bus = bus.unawaited(Stacks::interval(), Box::new(stacks));
    }
    if let Some(Server { reconnect, first, .. }) = server {
        let notes = send.clone();
        let note = move |note| _ = notes.send(Message::Server(note));
        if !remote {
            bus = bus.unawaited(Smaps::interval(), Box::new(Smaps::of(&source, &pid)));
        }
        let again = reconnect.clone();
        let counters = WatchedServer::new(reconnect, first, pid, note.clone());
        let details = Details::new(again, &counters.own_sessions(), note);
        let every = Details::<Reconnect>::interval(plan.interval, plan.intervals);
        bus = bus.beside(plan.interval, Box::new(counters)).unawaited(every, Box::new(details));
    }
    let black_box = plan.black_box.as_ref();
    let black_box = black_box.map(|plan| BlackBox::open(plan, &manifest, all_stacks.clone())).transpose()?;
    see(Seen::Begins(&manifest));
    let stop_bus = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| sample(bus, &stop_bus, send));
        let series = Series::new(started, plan.interval.seconds());
        let mut watching = Watching {
            plan,
            stop,
            clock: &clock,
            series,
            recent,
            record,
            black_box,
            stacks: all_stacks.clone(),
            exported: false,
            seen: 0,
        };
        let ended = watching.until_end(&messages, see);
        cancel.store(true, Ordering::Relaxed);
        stop_bus.set();
        // The record contains the last sample too, which comes after the last interval.
        let kept = messages.iter().try_for_each(|message| watching.keep(message));
        if let Some(black_box) = &mut watching.black_box {
            black_box.finish(&mut |text| see(Seen::Note(text)));
        }
        let stacks = all_stacks.map(|all| all.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let finished = watching.record.map_or(Ok(()), |record| record.finish(stacks.as_ref()));
        if let Some(diagnosis) = watching.recent.diagnosis() {
            see(Seen::Ends(&diagnosis));
        }
        ended.and_then(|end| kept.and(finished).map(|()| end))
    })
}

fn sample(bus: Bus<'_>, stop: &Stop, send: Sender<Message>) {
    bus.run(stop, |sample| {
        // The receiver is dropped first at the end of a watch.
        let _ = send.send(Message::Sample(sample));
    });
}

fn connect(
    plan: &WatchPlan,
    source: &Source,
    stop: &Cancel,
    cancel: &Arc<AtomicBool>,
    gaps: &mut Vec<String>,
) -> Result<Option<Server>, RunError> {
    let Some(options) = &plan.server else { return Ok(None) };
    // The user's signal ends the first connection, the end of the watch later ones.
    let mut reconnect = Reconnect::new(options, source, stop);
    let (first, hidden) = reconnect.first().map_err(RunError::wire("connecting"))?;
    reconnect.options.cancel = Some(Arc::clone(cancel));
    if reconnect.is_remote() {
        gaps.push(
            "the server's host: the server is reached over the network; run mydyno on its host".to_owned(),
        );
    } else if let Some(why) = hidden {
        gaps.push(format!("the server's process: {why}"));
    }
    let version = first.sql.server().text.clone();
    Ok(Some(Server { reconnect, first, version }))
}

fn manifest(
    plan: &WatchPlan,
    server: Option<&Server>,
    gaps: Vec<String>,
    started: OffsetDateTime,
) -> WatchManifest {
    WatchManifest {
        header: Header::of::<WatchManifest>(started),
        interval_s: plan.interval.seconds(),
        address: plan.server.as_ref().map(|options| options.endpoint.to_string()),
        version: server.map(|server| server.version.clone()),
        argv: plan.argv.clone(),
        gaps,
        extra: serde_json::Map::new(),
    }
}

/// The receiving side of a watch.
struct Watching<'a> {
    plan: &'a WatchPlan,
    stop: &'a Cancel,
    clock: &'a MonotonicClock,
    series: Series,
    recent: Recent,
    record: Option<Record>,
    black_box: Option<BlackBox>,
    stacks: Option<Arc<Mutex<AllStacks>>>,
    /// Whether the OpenMetrics file was written once.
    exported: bool,
    seen: u64,
}

impl Watching<'_> {
    fn until_end(
        &mut self,
        messages: &Receiver<Message>,
        see: &mut dyn FnMut(Seen<'_>),
    ) -> Result<WatchEnd, RunError> {
        while self.plan.intervals.is_none_or(|all| self.seen < all) {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(WatchEnd { interrupted: true, intervals: self.seen });
            }
            match messages.recv_timeout(LOOK) {
                Ok(message) => self.take(message, see)?,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(WatchEnd { interrupted: false, intervals: self.seen })
    }

    fn take(&mut self, message: Message, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), RunError> {
        self.keep(message.clone())?;
        match message {
            Message::Server(note) => see(Seen::Note(sentence(&note))),
            Message::Note(_, text) => see(Seen::Note(text)),
            Message::Sample(sample) => {
                self.export(&sample, see)?;
                if let Some(black_box) = &mut self.black_box {
                    black_box.sample(&sample, &mut |text| see(Seen::Note(text)));
                }
                if let Some(interval) = self.series.push(sample) {
                    self.seen += 1;
                    see(Seen::Interval(&interval));
                    if let Some(stacks) =
                        self.stacks.as_ref().filter(|_| interval.figures.contains_key(CAPTURED))
                    {
                        see(Seen::Stacks(&stacks.lock().unwrap_or_else(PoisonError::into_inner).on_cpu));
                    }
                    if let Some(black_box) = &mut self.black_box {
                        black_box.interval(&interval, &mut |text| see(Seen::Note(text)));
                    }
                    self.recent.push(interval);
                }
            }
        }
        Ok(())
    }

    /// Reports what was written to the record.
    fn keep(&mut self, message: Message) -> Result<(), RunError> {
        match (&mut self.black_box, &message) {
            (Some(black_box), Message::Server(note)) => black_box.note(self.clock.now_s(), &sentence(note)),
            (Some(black_box), Message::Note(at_s, text)) => black_box.note(*at_s, text),
            _ => {}
        }
        match (&mut self.record, message) {
            (None, _) => Ok(()),
            (Some(record), Message::Sample(sample)) => record.sample(sample),
            (Some(record), Message::Server(note)) => record.note(self.clock.now_s(), &sentence(&note)),
            (Some(record), Message::Note(at_s, text)) => record.note(at_s, &text),
        }
    }

    /// Writes the OpenMetrics file. A failure ends the watch only if it was never written: a disk may be full for a
    /// while.
    fn export(&mut self, sample: &Sample, see: &mut dyn FnMut(Seen<'_>)) -> Result<(), RunError> {
        let Some(path) = &self.plan.openmetrics else { return Ok(()) };
        let has = |prefix: &str| sample.values.keys().any(|name| name.starts_with(prefix));
        let up = self.plan.server.as_ref().map(|_| has("server.status."));
        match openmetrics::write(path, sample, up) {
            Ok(()) => self.exported = true,
            Err(error) if !self.exported => return Err(error),
            Err(error) => see(Seen::Note(error.to_string())),
        }
        Ok(())
    }
}
