//! Reads files of JSON lines within limits: keeps the lines that can be parsed and reports the others.

use std::collections::HashMap;
use std::io::{BufRead, Read as _};

use mydyno_model::document::separators;
use mydyno_model::record::{End, Event, EventKind, Interval, Phase};
use serde::de::DeserializeOwned;

/// Longest line in bytes. One second of 20 operations takes 24 kB.
const LONGEST_LINE: u64 = 4 << 20;

/// Most values of a line, as [`separators`] bounds them. A window of 1,000 operations has 20,000 of them.
const MOST_SEPARATORS: usize = 200_000;

/// Longest time in seconds between two lines; the first one may start up to 30 times as late.
pub(crate) const LONGEST_GAP_S: f64 = 86_400.0;

/// Seconds that may lie between the event of a phase and its first window, and between its last window and the next event.
const TOLERANCE_S: f64 = 0.25;

/// Seconds by which the end of a window and the start of the next may differ by rounding.
const ROUNDING_S: f64 = 1e-6;

/// Largest plausible count of a window: no load reaches it, and the sum over all windows of a record fits 64 bits.
const LARGEST_COUNT: u64 = 1_000_000_000_000;

/// The lines of a file.
pub(crate) struct Lines<T> {
    /// Lines that could be read, in order.
    pub values: Vec<T>,
    /// Number of the first line that could not be read, from 1, and how many there are.
    pub unreadable: Option<(usize, usize)>,
    /// Whether the last line or the compressed stream is incomplete: the writer was killed.
    pub torn: bool,
    /// Whether the file exceeds the limit, or reading failed.
    pub cut: bool,
}

/// Reads at most `most` bytes. Zeros, which file systems leave after a crash, are skipped and counted as an unreadable line.
pub(crate) fn read<T: DeserializeOwned>(reader: impl BufRead, most: u64) -> Lines<T> {
    let mut values = Vec::new();
    let lines = read_each(reader, most, |value| values.push(value));
    Lines { values, ..lines }
}

/// Reads likewise, and hands over each value as soon as its line was read: the lines that come back hold none.
pub(crate) fn read_each<T: DeserializeOwned>(
    reader: impl BufRead,
    most: u64,
    mut take: impl FnMut(T),
) -> Lines<T> {
    let mut lines = Lines { values: Vec::new(), unreadable: None, torn: false, cut: false };
    let mut reader = reader.take(most);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            // A compressed stream that its writer did not finish.
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => lines.torn = true,
            Err(_) => lines.cut = true,
            Ok(0) => lines.cut = reader.limit() == 0,
            Ok(read) => {
                if !line.ends_with(b"\n") {
                    if (read as u64) < LONGEST_LINE {
                        (lines.torn, lines.cut) = (reader.limit() > 0, reader.limit() == 0);
                        return lines;
                    }
                    lines.note_unreadable(number);
                    if reader.skip_until(b'\n').is_err() {
                        lines.cut = true;
                        return lines;
                    }
                    continue;
                }
                let zeros = line.iter().take_while(|byte| **byte == 0).count();
                let known = separators(&line) <= MOST_SEPARATORS;
                let parsed = known.then(|| serde_json::from_slice(&line[zeros..]).ok()).flatten();
                if zeros > 0 || parsed.is_none() {
                    lines.note_unreadable(number);
                }
                parsed.into_iter().for_each(&mut take);
                continue;
            }
        }
        return lines;
    }
    lines
}

impl<T> Lines<T> {
    /// The result for a file that could not be opened; a missing file has no lines.
    pub(crate) fn unopened(error: &std::io::Error) -> Self {
        let cut = error.kind() != std::io::ErrorKind::NotFound;
        Self { values: Vec::new(), unreadable: None, torn: false, cut }
    }

    fn note_unreadable(&mut self, number: usize) {
        let (_, all) = self.unreadable.get_or_insert((number, 0));
        *all += 1;
    }

    /// Describes missing parts; a torn last line is damage only where the run has an end.
    pub(crate) fn damage(&self, file: &str, ended: bool) -> Vec<String> {
        let mut damage = Vec::new();
        if let Some((first, all)) = self.unreadable {
            let more = match all {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            damage.push(format!("line {first}{more} of {file} cannot be read"));
        }
        if self.cut {
            damage.push(format!("{file} cannot be read to its end"));
        }
        if self.torn && ended {
            damage.push(format!("the last line of {file} is incomplete"));
        }
        damage
    }
}

/// Removes implausible windows, such as duplicates, and reports them and the gaps between the others.
pub(crate) fn check_intervals(intervals: Vec<Interval>, damage: &mut Vec<String>) -> Vec<Interval> {
    let (mut missing_s, mut gaps) = (0.0, 0);
    let order = without_overlong(&intervals, longest_in_order(&intervals));
    let mut wrong = intervals.len() - order.len();
    let mut kept: Vec<Interval> = Vec::with_capacity(order.len());
    let mut order = order.into_iter().peekable();
    let in_order = |(at, interval)| order.next_if_eq(&at).map(|_| interval);
    for interval in intervals.into_iter().enumerate().filter_map(in_order) {
        let last = kept.last();
        let end_s = last.map_or(0.0, |last| last.start_s + last.width_s);
        let latest_s = end_s + if last.is_some() { LONGEST_GAP_S } else { 30.0 * LONGEST_GAP_S };
        let tolerance_s = last.map_or(0.0, |last| overlap_s(last, &interval));
        let possible = plausible(&interval)
            && interval.width_s.is_finite()
            && (0.0..=LONGEST_GAP_S).contains(&interval.width_s)
            && interval.start_s >= 0.0
            && interval.start_s <= latest_s;
        let same = last.is_some_and(|last| (last.step, last.phase) == (interval.step, interval.phase));
        let backwards =
            last.is_some_and(|last| interval.start_s < last.start_s || reaches_into(last, &interval));
        if !possible || backwards {
            wrong += 1;
            continue;
        }
        let gap_s = interval.start_s - end_s;
        let measured = matches!(interval.phase, Phase::Warmup | Phase::Measure);
        if same && measured && tolerance_s > 0.0 && gap_s > tolerance_s {
            missing_s += gap_s;
            gaps += 1;
        }
        kept.push(interval);
    }
    if gaps > 0 {
        damage.push(format!("{missing_s:.0} seconds are missing in {gaps} places between windows"));
    }
    if wrong > 0 {
        damage.push(format!(
            "{wrong} windows are doubled or have an impossible time or count and are left out"
        ));
    }
    kept
}

/// Positions of the longest subsequence of windows whose starts do not decrease. One damaged start thus costs its own
/// window only, even where it is later than those of the windows after it. Fredman's algorithm for the longest
/// increasing subsequence, O(n log n).
fn longest_in_order(intervals: &[Interval]) -> Vec<usize> {
    // The last position of the best chain of each length, and each position's predecessor.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(intervals.len());
    for (at, interval) in intervals.iter().enumerate() {
        let length = ends.partition_point(|&end| intervals[end].start_s <= interval.start_s);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        if length == ends.len() {
            ends.push(at);
        } else {
            ends[length] = at;
        }
    }
    let mut chain: Vec<usize> = std::iter::successors(ends.last().copied(), |&at| before[at]).collect();
    chain.reverse();
    chain
}

/// Leaves out windows that reach into the one after the next: their width is damaged, and costs their own window only.
fn without_overlong(intervals: &[Interval], order: Vec<usize>) -> Vec<usize> {
    let second_next = order.iter().skip(2).map(Some).chain([None, None]);
    let overlong = |at: usize, later: &usize| reaches_into(&intervals[at], &intervals[*later]);
    order
        .iter()
        .zip(second_next)
        .filter(|&(at, later)| !later.is_some_and(|later| overlong(*at, later)))
        .map(|(at, _)| *at)
        .collect()
}

/// Whether a window ends within a later one, of its phase or of another: phases follow each other.
fn reaches_into(window: &Interval, later: &Interval) -> bool {
    later.start_s < window.start_s + window.width_s - overlap_s(window, later) - ROUNDING_S
}

/// Seconds that two windows may overlap: half of the shorter one.
fn overlap_s(window: &Interval, later: &Interval) -> f64 {
    0.5 * window.width_s.min(later.width_s)
}

/// Whether no count of the window is beyond [`LARGEST_COUNT`].
fn plausible(interval: &Interval) -> bool {
    let (arrivals, client) = (&interval.arrivals, &interval.client);
    let counts = [
        interval.transactions,
        interval.queries,
        interval.retries,
        interval.reconnects,
        arrivals.intended,
        arrivals.started,
        arrivals.failed,
        arrivals.dropped,
        arrivals.queued,
        arrivals.in_flight,
        client.user_us,
        client.system_us,
        client.opening_us,
        client.waits,
        client.voluntary_switches,
        client.involuntary_switches,
    ];
    let errors = interval.errors.values().try_fold(0_u64, |sum, errors| sum.checked_add(*errors));
    counts.into_iter().chain([errors.unwrap_or(u64::MAX)]).all(|count| count <= LARGEST_COUNT)
}

/// Reports phases of which the first or the last windows are missing, by the events that name the start of each phase, and
/// phases without an event. Warm-up and measured windows follow each other without a gap from one event to the next.
pub(crate) fn check_phases(intervals: &[Interval], events: &[Event], damage: &mut Vec<String>) {
    let phases: Vec<(f64, Option<(usize, Phase)>)> = events
        .iter()
        .filter_map(|event| match event.what {
            EventKind::Phase { step, phase } => Some((event.at_s, Some((step, phase)))),
            EventKind::End { how: End::Complete } => Some((event.at_s, None)),
            _ => None,
        })
        .collect();
    let mut of_phase: HashMap<(usize, u8), Vec<&Interval>> = HashMap::new();
    for interval in intervals {
        of_phase.entry((interval.step, interval.phase as u8)).or_default().push(interval);
    }
    for (n, (from_s, phase)) in phases.iter().enumerate() {
        let Some((step, phase)) = *phase else { continue };
        if phase == Phase::Drain && phases.len() > n + 1 && !of_phase.contains_key(&(step, phase as u8)) {
            damage.push(format!("the window after the end of step {step} is missing"));
        }
        if !matches!(phase, Phase::Warmup | Phase::Measure) {
            continue;
        }
        let named =
            format!("{} of step {step}", if phase == Phase::Warmup { "warm-up" } else { "measured window" });
        let windows = of_phase.remove(&(step, phase as u8)).unwrap_or_default();
        let start_s = windows.first().map(|first| first.start_s);
        let end_s = windows.last().map_or(*from_s, |last| last.start_s + last.width_s);
        // A phase that another phase of its step follows is complete; others may lack the last second.
        let next = phases.get(n + 1).filter(|(_, next)| next.is_some_and(|(next, _)| next == step));
        if let Some(missing_s) = start_s.map(|start_s| start_s - from_s).filter(|s| *s > TOLERANCE_S) {
            damage.push(format!("the first {missing_s:.1} seconds of the {named} are missing"));
        }
        if let Some(missing_s) = next.map(|(next_s, _)| next_s - end_s).filter(|s| *s > TOLERANCE_S) {
            damage.push(format!("the last {missing_s:.1} seconds of the {named} are missing"));
        }
    }
    let without =
        of_phase.keys().filter(|(_, phase)| [Phase::Warmup as u8, Phase::Measure as u8].contains(phase));
    match without.count() {
        0 => {}
        n => damage.push(format!("the events do not name the start of {n} recorded phases")),
    }
}

/// Removes consecutive duplicates of events, and reports them.
pub(crate) fn check_events(mut events: Vec<Event>, damage: &mut Vec<String>) -> Vec<Event> {
    let before = events.len();
    events.dedup();
    if events.len() < before {
        damage.push(format!("{} events are doubled", before - events.len()));
    }
    let ends = events.iter().position(|event| matches!(event.what, EventKind::End { .. }));
    if ends.is_some_and(|end| end + 1 < events.len()) {
        damage.push("events follow the end of the run".to_owned());
    }
    events
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    fn line(start_s: f64) -> String {
        format!(
            r#"{{"step":0,"phase":"measure","start_s":{start_s:?},"width_s":1.0,"transactions":5,"queries":5,"client":{{"user_us":0,"system_us":0,"waits":0,"voluntary_switches":0,"involuntary_switches":0,"resident_bytes":0,"threads":1}},"lateness":{{"count":0}},"operations":{{}}}}{}"#,
            "\n"
        )
    }

    fn read_intervals(text: &[u8]) -> (Vec<Interval>, Vec<String>) {
        let lines = read(text, 1 << 30);
        let mut damage = lines.damage("intervals.jsonl", true);
        let kept = check_intervals(lines.values, &mut damage);
        (kept, damage)
    }

    #[test]
    fn a_whole_file_has_no_damage() {
        let text: String = (0..5).map(|n| line(f64::from(n))).collect();
        let (kept, damage) = read_intervals(text.as_bytes());
        assert!(kept.len() == 5 && damage.is_empty(), "{damage:?}");
    }

    #[test]
    fn an_unfinished_stream_is_damage_only_where_the_run_has_an_end() {
        struct Unfinished<'a>(&'a [u8]);
        impl std::io::Read for Unfinished<'_> {
            fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
                match self.0.read(into)? {
                    0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
                    read => Ok(read),
                }
            }
        }
        let text = line(0.0) + &line(1.0);
        let lines: Lines<Interval> = read(std::io::BufReader::new(Unfinished(text.as_bytes())), LONGEST_LINE);
        assert_eq!(lines.values.len(), 2);
        assert!(lines.damage("observe.jsonl.zst", false).is_empty());
        assert_eq!(lines.damage("observe.jsonl.zst", true).len(), 1);
    }

    #[test]
    fn one_bad_line_costs_that_line_only_and_is_reported() {
        let zeros = "\0".repeat(line(2.0).len());
        let torn = line(2.0)[..40].to_owned() + "\n";
        for (bad, kept_lines, reported) in [
            (torn, 4, "line 3 of intervals.jsonl cannot be read"),
            (zeros, 4, "line 3 of intervals.jsonl cannot be read"),
            (String::new(), 4, "1 seconds are missing in 1 places"),
            (line(2.0) + &line(2.0), 5, "1 windows are doubled"),
            (line(2.0) + &line(1e15), 5, "an impossible time"),
            (line(4.0), 4, "an impossible time"),
            (line(2.0) + &line(2.2).replace("\"step\":0", "\"step\":1"), 5, "an impossible time"),
            (line(2.0).replace("1.0", "9.0"), 4, "an impossible time"),
            ("x".repeat(5 << 20) + "\n", 4, "line 3 of intervals.jsonl cannot be read"),
            (
                line(2.0).replace("\"step\"", &format!("\"x\":[{}0],\"step\"", "0,".repeat(200_000))),
                4,
                "line 3 of",
            ),
        ] {
            let text = line(0.0) + &line(1.0) + &bad + &line(3.0) + &line(4.0);
            let (kept, damage) = read_intervals(text.as_bytes());
            assert_eq!(kept.len(), kept_lines, "{reported}");
            assert!(damage.iter().any(|text| text.contains(reported)), "{reported}: {damage:?}");
        }
    }

    #[test]
    fn a_torn_last_line_is_damage_only_where_the_run_has_an_end() {
        let text = line(0.0) + &line(1.0)[..30];
        let lines: Lines<Interval> = read(text.as_bytes(), 1 << 30);
        assert!(lines.torn && lines.values.len() == 1);
        assert!(lines.damage("f", false).is_empty());
        assert_eq!(lines.damage("f", true), ["the last line of f is incomplete"]);
        let cut: Lines<Interval> = read(text.as_bytes(), 10);
        assert!(cut.cut && !cut.torn);
    }

    fn event(at_s: f64, what: EventKind) -> Event {
        Event { at_s, what }
    }

    /// Two phases of a step with 3 and 4 windows of a second, with their events.
    fn two_phases() -> (Vec<Interval>, Vec<Event>) {
        let text: String = (0..7).map(|n| line(f64::from(n))).collect();
        let mut intervals: Vec<Interval> = read(text.as_bytes(), 1 << 20).values;
        intervals[..3].iter_mut().for_each(|interval| interval.phase = Phase::Warmup);
        let phase = |at_s, phase| event(at_s, EventKind::Phase { step: 0, phase });
        let end = event(7.01, EventKind::End { how: End::Complete });
        let events =
            vec![phase(0.0, Phase::Warmup), phase(3.0, Phase::Measure), phase(7.0, Phase::Drain), end];
        let drain = Interval { phase: Phase::Drain, start_s: 7.0, width_s: 0.01, ..intervals[6].clone() };
        intervals.push(drain);
        (intervals, events)
    }

    #[test]
    fn a_missing_first_or_last_window_of_a_phase_is_reported() {
        let (whole, events) = two_phases();
        let reported = |intervals: Vec<Interval>, events: &[Event]| {
            let mut damage = Vec::new();
            let kept = check_intervals(intervals, &mut damage);
            check_phases(&kept, events, &mut damage);
            damage.join("; ")
        };
        assert_eq!(reported(whole.clone(), &events), "");
        for (missing, expected) in [
            (0, "the first 1.0 seconds of the warm-up of step 0 are missing"),
            (2, "the last 1.0 seconds of the warm-up of step 0 are missing"),
            (3, "the first 1.0 seconds of the measured window of step 0 are missing"),
            (6, "the last 1.0 seconds of the measured window of step 0 are missing"),
            (7, "the window after the end of step 0 is missing"),
        ] {
            let mut part = whole.clone();
            part.remove(missing);
            assert_eq!(reported(part, &events), expected);
        }
        let mut swapped = whole.clone();
        swapped.swap(2, 3);
        assert!(reported(swapped, &events).contains("doubled or have an impossible time"));
        assert!(reported(whole.clone(), &events[1..]).contains("do not name the start of 1 recorded phases"));
        // A run that was interrupted or killed may lack its last second.
        let killed = reported(whole[..5].to_vec(), &events[..2]);
        assert_eq!(killed, "");
        let mut huge = whole;
        huge[4].queries = u64::MAX;
        assert!(reported(huge, &events).contains("impossible time or count"));
    }

    #[test]
    fn doubled_events_and_events_after_the_end_are_reported() {
        let (_, events) = two_phases();
        let mut damage = Vec::new();
        assert_eq!(check_events(events.clone(), &mut damage).len(), 4);
        assert!(damage.is_empty());
        let mut doubled = events.clone();
        doubled.insert(1, events[1].clone());
        assert_eq!(check_events(doubled, &mut damage).len(), 4);
        let turned: Vec<Event> = events.into_iter().rev().collect();
        check_events(turned, &mut damage);
        assert_eq!(damage, ["1 events are doubled", "events follow the end of the run"]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, at in 0usize..1000, byte: u8) {
            let mut text: Vec<u8> = (0..5).flat_map(|n| line(f64::from(n)).into_bytes()).collect();
            let at = at % text.len();
            text[at] = byte;
            text.extend(&bytes);
            let (kept, _) = read_intervals(&text);
            prop_assert!(kept.len() >= 3);
        }
    }
}
