//! Samples in their order become intervals with figures and events: the same for a live watch and for a recorded one.

use mydyno_model::document::Header;
use mydyno_model::sample::Sample;
use mydyno_model::watch::{WatchEvent, WatchEventKind, WatchInterval};
use time::{Duration, OffsetDateTime};

use crate::figures::{figures, statements, waits};
use crate::growth::{CounterEvent, Growth, events};

/// A change of the wall clock against the monotonic clock between two samples that is no slewing: adjtimex(2) slews by at most
/// 500 µs a second.
const CLOCK_STEP_S: f64 = 0.5;

/// Status counters that only a reset lets fall. Others of SHOW GLOBAL STATUS are not all known to be counters.
const MONOTONIC: [&str; 5] = [
    "server.status.questions",
    "server.status.com_select",
    "server.status.handler_read_key",
    "server.status.bytes_sent",
    "server.status.bytes_received",
];

/// Turns samples into intervals.
#[derive(Debug)]
pub struct Series {
    started: OffsetDateTime,
    shortest_s: f64,
    before: Option<Sample>,
    server: ServerState,
}

/// The last known state of the server.
#[derive(Debug, Default)]
struct ServerState {
    pid: Option<f64>,
    uptime_s: Option<f64>,
    opened: Option<f64>,
    is_lost: bool,
}

impl Series {
    /// A series whose clock was zero at `started`, with a sample every `interval_s` seconds.
    pub fn new(started: OffsetDateTime, interval_s: f64) -> Self {
        Self { started, shortest_s: interval_s / 2.0, before: None, server: ServerState::default() }
    }

    /// Adds a full frame. The first one, and one that follows the start of an interval too closely, ends no interval.
    pub fn push(&mut self, sample: Sample) -> Option<WatchInterval> {
        self.push_with(sample.at_s, || sample)
    }

    /// As [`Self::push`], for a frame of this instant that `frame` makes; not where it would follow too closely.
    pub fn push_with(&mut self, at_s: f64, frame: impl FnOnce() -> Sample) -> Option<WatchInterval> {
        let over_s = at_s - self.before.as_ref().map_or(f64::NEG_INFINITY, |before| before.at_s);
        if over_s.is_nan() || over_s < self.shortest_s {
            return None;
        }
        let sample = frame();
        let Some(before) = self.before.take() else {
            self.server.note(&sample);
            self.before = Some(sample);
            return None;
        };
        let wall = self.started + Duration::seconds_f64(sample.at_s + sample.drift_s.unwrap_or(0.0));
        let interval = WatchInterval {
            header: Header::of::<WatchInterval>(wall),
            at_s: sample.at_s,
            over_s,
            late_s: sample.late_s,
            missed: sample.missed,
            figures: figures(&before, &sample),
            waits: waits(&before, &sample),
            statements: statements(&before, &sample),
            events: self.events(&before, &sample),
            extra: serde_json::Map::new(),
        };
        self.before = Some(sample);
        Some(interval)
    }

    fn events(&mut self, before: &Sample, after: &Sample) -> Vec<WatchEvent> {
        let mut found = Vec::new();
        let mut say = |kind, text: String| found.push(WatchEvent { kind, text });
        let step_s = after.drift_s.unwrap_or(0.0) - before.drift_s.unwrap_or(0.0);
        if step_s.abs() > CLOCK_STEP_S {
            say(
                WatchEventKind::ClockStep,
                format!(
                    "the wall clock moved by {step_s:+.1} s against the monotonic clock: it was set, or the machine was suspended"
                ),
            );
        }
        if after.missed > 0 {
            say(WatchEventKind::SamplesMissed, format!("{} samples were due and not taken", after.missed));
        }
        let server = self.server.events(before, after);
        let server_changed = server.iter().any(|(kind, _)| *kind != WatchEventKind::ServerSlow);
        server.into_iter().for_each(|(kind, text)| say(kind, text));
        counters(&events(before, after), server_changed, &mut say);
        found
    }
}

impl ServerState {
    /// Takes the server's state from a sample; values that it lacks stay as they were.
    fn note(&mut self, sample: &Sample) {
        let value = |name: &str| sample.values.get(name).copied();
        self.pid = value("server.pid_now").or(self.pid);
        self.uptime_s = value("server.status.uptime").or(self.uptime_s);
        self.opened = value("server.connection.opened").or(self.opened);
        self.is_lost = sample.values.contains_key("server.connection.error_now");
    }

    fn events(&mut self, before: &Sample, after: &Sample) -> Vec<(WatchEventKind, String)> {
        let mut found = Vec::new();
        let value = |name: &str| after.values.get(name).copied();
        let lost = value("server.connection.error_now");
        if let (Some(code), false) = (lost, self.is_lost) {
            found.push((WatchEventKind::ServerLost, format!("the server is lost (error {code})")));
        }
        if lost.is_none() {
            let pids = self.pid.zip(value("server.pid_now")).filter(|(old, new)| old != new);
            let uptimes = self.uptime_s.zip(value("server.status.uptime")).filter(|(old, new)| new < old);
            let reopened =
                self.opened.zip(value("server.connection.opened")).is_some_and(|(old, new)| new > old);
            match (pids, uptimes) {
                (Some((old, new)), _) => found.push((
                    WatchEventKind::ServerRestarted,
                    format!("the server was restarted: process {new} follows {old}"),
                )),
                (None, Some((_, uptime_s))) => found.push((
                    WatchEventKind::ServerRestarted,
                    format!("the server was restarted {uptime_s:.0} s ago"),
                )),
                (None, None) if self.is_lost || reopened => {
                    found.push((
                        WatchEventKind::ServerBack,
                        "the server answers again, over a new connection".to_owned(),
                    ));
                }
                (None, None) => {}
            }
        }
        let at = "observe.server.at_s";
        if let Some(read_s) = value(at).filter(|at_s| before.values.get(at) == Some(at_s)) {
            let age_s = after.at_s - read_s;
            found.push((
                WatchEventKind::ServerSlow,
                format!("the server did not answer in this interval; its last counters are {age_s:.1} s old"),
            ));
        }
        self.note(after);
        found
    }
}

/// Events of counters. Those of the server come and go with its connection and its process, which have events of their own.
fn counters(events: &[CounterEvent], server_changed: bool, say: &mut impl FnMut(WatchEventKind, String)) {
    let counts = |event: &&CounterEvent| {
        let name = event.name.as_str();
        let is_status = name.starts_with("server.status.");
        // Instants of readings come and go with what was read.
        let of_server = name.starts_with("server.") || name.starts_with("observe.");
        let comes_or_goes = matches!(event.change, Growth::Vanished | Growth::Appeared);
        let fell_unknown = is_status && event.change == Growth::Restarted && !MONOTONIC.contains(&name);
        !(of_server && (server_changed || comes_or_goes)) && !fell_unknown
    };
    let of = |wanted: fn(&Growth) -> bool| -> Vec<&str> {
        let events = events.iter().filter(counts).filter(|event| wanted(&event.change));
        events.map(|event| event.name.as_str()).collect()
    };
    for (kind, verb, names) in [
        (WatchEventKind::CountersReset, "fell, so their source was reset", of(|c| *c == Growth::Restarted)),
        (WatchEventKind::CounterWrapped, "went on from zero", of(|c| matches!(c, Growth::Wrapped(_)))),
        (WatchEventKind::CountersGone, "are gone", of(|c| *c == Growth::Vanished)),
        (WatchEventKind::CountersNew, "are new", of(|c| *c == Growth::Appeared)),
    ] {
        match names.as_slice() {
            [] => {}
            [one] => say(kind, format!("1 counter: {one} ({verb})")),
            [first, ..] => say(kind, format!("{} counters, of them {first} ({verb})", names.len())),
        }
    }
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    fn sample(at_s: f64, values: &[(&str, f64)]) -> Sample {
        let values = values.iter().map(|(n, v)| ((*n).into(), *v)).collect();
        Sample { at_s, key: true, values, ..Sample::default() }
    }

    fn kinds(samples: Vec<Sample>) -> Vec<Vec<WatchEventKind>> {
        let mut series = Series::new(datetime!(2026-11-23 10:00 UTC), 1.0);
        let intervals = samples.into_iter().filter_map(|sample| series.push(sample));
        intervals.map(|interval| interval.events.into_iter().map(|event| event.kind).collect()).collect()
    }

    fn up(at_s: f64, pid: f64, uptime_s: f64, questions: f64, opened: f64) -> Sample {
        sample(
            at_s,
            &[
                ("observe.server.at_s", at_s),
                ("server.status.uptime", uptime_s),
                ("server.status.questions", questions),
                ("server.pid_now", pid),
                ("server.connection.opened", opened),
            ],
        )
    }

    fn down(at_s: f64) -> Sample {
        let values = [
            ("observe.server.at_s", at_s),
            ("server.connection.opened", 1.0),
            ("server.connection.error_now", 2002.0),
        ];
        sample(at_s, &values)
    }

    #[test]
    fn intervals_carry_the_wall_clock_and_short_ones_wait_for_the_next_sample() {
        let mut series = Series::new(datetime!(2026-11-23 10:00 UTC), 1.0);
        let forks = |at_s: f64, count: f64| sample(at_s, &[("host.forks", count)]);
        assert!(series.push(forks(0.8, 10.0)).is_none());
        assert!(series.push(forks(1.0, 11.0)).is_none(), "0.2 s are too short");
        let interval = series.push(Sample { drift_s: Some(0.25), ..forks(2.0, 22.0) }).unwrap();
        assert_eq!(interval.header.created, "2026-11-23T10:00:02.25Z");
        assert!((interval.over_s - 1.2).abs() < 1e-9);
        assert!((interval.figures["host.forks_per_s"] - 10.0).abs() < 1e-9);
        assert!(interval.events.is_empty(), "{:?}", interval.events);
    }

    #[test]
    fn a_server_that_dies_and_comes_back_as_another_process_is_two_events() {
        use WatchEventKind::{ServerLost, ServerRestarted};
        let found = kinds(vec![
            up(1.0, 50.0, 900.0, 10.0, 1.0),
            down(2.0),
            down(3.0),
            up(4.0, 61.0, 1.0, 2.0, 2.0),
            up(5.0, 61.0, 2.0, 5.0, 2.0),
        ]);
        assert_eq!(found, [vec![ServerLost], vec![], vec![ServerRestarted], vec![]]);
    }

    #[test]
    fn a_lost_connection_a_remote_restart_a_hang_and_a_reset_differ() {
        use WatchEventKind::{CountersReset, ServerBack, ServerLost, ServerRestarted, ServerSlow};
        let back = vec![up(1.0, 5.0, 9.0, 1.0, 1.0), down(2.0), up(3.0, 5.0, 11.0, 1.0, 2.0)];
        assert_eq!(kinds(back), [vec![ServerLost], vec![ServerBack]]);
        let mut remote = vec![up(1.0, 5.0, 900.0, 9.0, 1.0), up(2.0, 5.0, 1.0, 1.0, 2.0)];
        remote.iter_mut().for_each(|sample| _ = sample.values.shift_remove("server.pid_now"));
        assert_eq!(kinds(remote), [vec![ServerRestarted]]);
        let mut slow = vec![up(1.0, 5.0, 9.0, 1.0, 1.0), up(2.0, 5.0, 9.0, 1.0, 1.0)];
        slow[1].values.insert("observe.server.at_s".into(), 1.0);
        assert_eq!(kinds(slow), [vec![ServerSlow]]);
        let reset = vec![up(1.0, 5.0, 9.0, 100.0, 1.0), up(2.0, 5.0, 10.0, 3.0, 1.0)];
        assert_eq!(kinds(reset), [vec![CountersReset]]);
    }

    #[test]
    fn a_clock_step_missed_samples_and_a_disk_that_is_removed_are_events() {
        use WatchEventKind::{ClockStep, CountersGone, SamplesMissed};
        let disk = |at_s, more: &[(&str, f64)]| sample(at_s, &[&[("host.forks", 1.0)], more].concat());
        let found = kinds(vec![
            disk(1.0, &[("host.disk.sdb.reads", 1.0), ("host.disk.sdb.writes", 1.0)]),
            Sample { drift_s: Some(3600.0), missed: 2, ..disk(4.0, &[]) },
        ]);
        assert_eq!(found, [vec![ClockStep, SamplesMissed, CountersGone]]);
    }
}
