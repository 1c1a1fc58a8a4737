//! Reads files of JSON lines within bounds: what can be read is kept, what cannot is reported.

use std::io::{BufRead, Read as _};

use mydyno_model::record::{Interval, Phase};
use mydyno_model::sample::Sample;
use serde::de::DeserializeOwned;

/// Longest line in bytes. One second of 20 operations takes 24 kB.
const LONGEST_LINE: u64 = 4 << 20;

/// Longest time in seconds without a line, and the latest start of the first one is 30 times as long.
const LONGEST_GAP_S: f64 = 86_400.0;

/// Values of samples that are kept in memory, about 100 bytes each; longer runs keep every second, fourth … sample.
const MOST_VALUES: usize = 1_000_000;

/// Values that are copied while samples are expanded, which bounds the time: a day of 500 values a second.
const MOST_COPIED: usize = 50_000_000;

/// The lines of a file.
pub(crate) struct Lines<T> {
    /// Lines that could be read, in order.
    pub values: Vec<T>,
    /// Numbers of the lines that could not be read, from 1.
    pub unreadable: Vec<usize>,
    /// Whether the last line or the compressed stream has no end: the writer was killed.
    pub torn: bool,
    /// Whether the file is longer than what is read of it, or reading failed.
    pub cut: bool,
}

/// Reads at most `most` bytes. Zeros, which file systems leave after a crash, are skipped and counted as an unreadable line.
pub(crate) fn read<T: DeserializeOwned>(reader: impl BufRead, most: u64) -> Lines<T> {
    let mut lines = Lines { values: Vec::new(), unreadable: Vec::new(), torn: false, cut: false };
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
                    lines.unreadable.push(number);
                    if reader.skip_until(b'\n').is_err() {
                        lines.cut = true;
                        return lines;
                    }
                    continue;
                }
                let zeros = line.iter().take_while(|byte| **byte == 0).count();
                let parsed = serde_json::from_slice(&line[zeros..]);
                if zeros > 0 || parsed.is_err() {
                    lines.unreadable.push(number);
                }
                lines.values.extend(parsed.ok());
                continue;
            }
        }
        return lines;
    }
    lines
}

impl<T> Lines<T> {
    /// A file that could not be opened; one that is missing has no lines.
    pub(crate) fn unopened(error: &std::io::Error) -> Self {
        let cut = error.kind() != std::io::ErrorKind::NotFound;
        Self { values: Vec::new(), unreadable: Vec::new(), torn: false, cut }
    }

    /// Describes missing parts; a torn last line is damage only where the run has an end.
    pub(crate) fn damage(&self, file: &str, ended: bool) -> Vec<String> {
        let mut damage = Vec::new();
        if let [first, ..] = self.unreadable[..] {
            let more = match self.unreadable.len() {
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

/// Removes windows that cannot be right, such as doubled ones, and reports them and the gaps between the others.
pub(crate) fn check_intervals(intervals: Vec<Interval>, damage: &mut Vec<String>) -> Vec<Interval> {
    let (mut missing_s, mut gaps, mut wrong) = (0.0, 0, 0);
    let mut kept: Vec<Interval> = Vec::with_capacity(intervals.len());
    for interval in intervals {
        let last = kept.last();
        let end_s = last.map_or(0.0, |last| last.start_s + last.width_s);
        let latest_s = end_s + if last.is_some() { LONGEST_GAP_S } else { 30.0 * LONGEST_GAP_S };
        let tolerance_s = 0.5 * last.map_or(0.0, |last| last.width_s.min(interval.width_s));
        let possible = interval.width_s.is_finite()
            && (0.0..=LONGEST_GAP_S).contains(&interval.width_s)
            && interval.start_s >= 0.0
            && interval.start_s <= latest_s;
        let same = last.is_some_and(|last| (last.step, last.phase) == (interval.step, interval.phase));
        if !possible || same && interval.start_s < end_s - tolerance_s {
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
        damage.push(format!("{wrong} windows are doubled or have an impossible time and are left out"));
    }
    kept
}

/// Expands samples to full frames. Long series are thinned out: counters are cumulative, so that rates stay right.
pub(crate) fn frames(samples: Vec<Sample>, damage: &mut Vec<String>) -> Vec<Sample> {
    let mut kept: Vec<Sample> = Vec::new();
    let mut last: Option<Sample> = None;
    let (mut stride, mut values, mut copied) = (1, 0, 0_usize);
    for (number, sample) in samples.into_iter().enumerate() {
        let before = last.as_ref();
        let latest_s = before.map_or(30.0 * LONGEST_GAP_S, |last| last.at_s + LONGEST_GAP_S);
        let size = before.map_or(0, |last| last.values.len()) + sample.values.len();
        copied = copied.saturating_add(size.saturating_mul(1 + sample.gone.len() / 4));
        if !(0.0..=latest_s).contains(&sample.at_s) || copied > MOST_COPIED {
            damage.push("samples with an impossible time, or beyond what is read, are left out".to_owned());
            break;
        }
        let frame = sample.onto(before);
        if number % stride == 0 {
            values += frame.values.len();
            kept.push(frame.clone());
        }
        last = Some(frame);
        if values > MOST_VALUES && kept.len() > 2 {
            stride *= 2;
            let mut index = 0;
            kept.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            values = kept.iter().map(|frame| frame.values.len()).sum();
        }
    }
    kept
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
        for (bad, kept_lines, said) in [
            (torn, 4, "line 3 of intervals.jsonl cannot be read"),
            (zeros, 4, "line 3 of intervals.jsonl cannot be read"),
            (String::new(), 4, "1 seconds are missing in 1 places"),
            (line(2.0) + &line(2.0), 5, "1 windows are doubled"),
            (line(2.0) + &line(1e15), 5, "an impossible time"),
            ("x".repeat(5 << 20) + "\n", 4, "line 3 of intervals.jsonl cannot be read"),
        ] {
            let text = line(0.0) + &line(1.0) + &bad + &line(3.0) + &line(4.0);
            let (kept, damage) = read_intervals(text.as_bytes());
            assert_eq!(kept.len(), kept_lines, "{said}");
            assert!(damage.iter().any(|text| text.contains(said)), "{said}: {damage:?}");
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

    #[test]
    fn small_deltas_upon_a_large_frame_stay_within_bounds() {
        let sample = |at_s: f64, key, values| Sample { at_s, key, values, ..Sample::default() };
        let large = (0..20_000).map(|n| (format!("v{n}"), 1.0)).collect();
        let deltas = (1..5_000).map(|n| sample(f64::from(n), false, indexmap::IndexMap::new()));
        let samples = std::iter::once(sample(0.0, true, large)).chain(deltas).collect();
        let mut damage = Vec::new();
        let kept = frames(samples, &mut damage);
        let values: usize = kept.iter().map(|frame| frame.values.len()).sum();
        assert!(values <= MOST_VALUES && kept.len() > 10 && damage.len() == 1, "{values}, {damage:?}");
        let mut damage = Vec::new();
        assert!(frames(vec![sample(1e15, true, indexmap::IndexMap::new())], &mut damage).is_empty());
        assert_eq!(damage.len(), 1);
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
