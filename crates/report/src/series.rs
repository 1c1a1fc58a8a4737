//! Time series of a run: buckets of its intervals, and the rates between its samples.

use std::collections::BTreeMap;

use mydyno_model::record::{Interval, Phase, RunRecord};
use mydyno_model::sample::Sample;

use mydyno_stats::Histogram;

use crate::latency::merged;

/// Maximum number of points in a chart's line; longer runs are aggregated into wider buckets.
pub const MOST_POINTS: usize = 720;

/// Sum of one or more consecutive intervals of one step and phase.
#[derive(Debug, Clone)]
pub struct Bucket<'a> {
    /// Step of the plan.
    pub step: usize,
    /// Phase of the step.
    pub phase: Phase,
    /// Start in seconds since the run began.
    pub start_s: f64,
    /// Length in seconds.
    pub width_s: f64,
    /// The intervals in the bucket, in order.
    pub parts: Vec<&'a Interval>,
}

impl Bucket<'_> {
    /// The middle of the bucket, where its point is drawn.
    pub fn middle_s(&self) -> f64 {
        self.start_s + self.width_s / 2.0
    }

    /// Events a second over the bucket.
    pub fn rate(&self, count: impl Fn(&Interval) -> u64) -> f64 {
        self.parts.iter().map(|i| count(i)).sum::<u64>() as f64 / self.width_s
    }

    /// Lowest and highest rate of its intervals; `None` for a single interval.
    pub fn rate_range(&self, count: impl Fn(&Interval) -> u64) -> Option<(f64, f64)> {
        if self.parts.len() < 2 {
            return None;
        }
        let rates = self.parts.iter().map(|i| count(i) as f64 / i.width_s);
        Some(rates.fold((f64::INFINITY, 0.0), |(low, high), r| (low.min(r), high.max(r))))
    }

    /// Response times of an operation, merged.
    pub fn response(&self, operation: &str) -> Histogram {
        merged(self.parts.iter().filter_map(|i| i.operations.get(operation)).map(|o| &o.response))
    }

    /// The longest response time of an operation in microseconds, exact.
    pub fn response_max_us(&self, operation: &str) -> Option<f64> {
        let times = self.parts.iter().filter_map(|i| i.operations.get(operation));
        times.filter(|o| o.response.count > 0).map(|o| o.response.max_ns).max().map(|ns| ns as f64 / 1e3)
    }
}

/// Intervals with load, in buckets of equal length, a second or more.
#[derive(Debug, Clone)]
pub struct Timeline<'a> {
    /// Buckets in order; a new step begins a new bucket.
    pub buckets: Vec<Bucket<'a>>,
    /// Nominal length of a bucket in seconds.
    pub width_s: f64,
}

impl<'a> Timeline<'a> {
    /// The warm-up and measured intervals of a run. A bucket lasts at least half a second, so that a short last window does not
    /// appear as a spike: it is merged into the previous bucket.
    pub fn of(record: &'a RunRecord) -> Self {
        let loaded: Vec<&Interval> = record
            .intervals
            .iter()
            .filter(|i| matches!(i.phase, Phase::Warmup | Phase::Measure) && i.width_s > 0.0)
            .collect();
        let total_s: f64 = loaded.iter().map(|i| i.width_s).sum();
        // Whole seconds keep the note about them simple.
        let width_s = (total_s / MOST_POINTS as f64).ceil().max(1.0);
        let mut buckets: Vec<Bucket<'a>> = Vec::new();
        for interval in loaded {
            match buckets.last_mut() {
                Some(last)
                    if last.step == interval.step
                        && last.phase == interval.phase
                        && (last.width_s < width_s - 0.5 || interval.width_s < 0.5) =>
                {
                    last.width_s += interval.width_s;
                    last.parts.push(interval);
                }
                _ => buckets.push(Bucket {
                    step: interval.step,
                    phase: interval.phase,
                    start_s: interval.start_s,
                    width_s: interval.width_s,
                    parts: vec![interval],
                }),
            }
        }
        Self { buckets, width_s }
    }

    /// The note about wider buckets; `None` when every interval has a separate point.
    pub fn note(&self) -> Option<String> {
        (self.width_s > 1.0).then(|| {
            format!(
                "Each point stands for {} s; the shaded band spans the lowest and highest second in it.",
                self.width_s
            )
        })
    }

    /// Error codes of the run, most frequent first.
    pub fn error_codes(&self) -> Vec<String> {
        let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
        for (code, count) in self.buckets.iter().flat_map(|b| &b.parts).flat_map(|i| &i.errors) {
            *totals.entry(code).or_default() += count;
        }
        let mut codes: Vec<_> = totals.into_iter().filter(|(_, n)| *n > 0).collect();
        codes.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        codes.into_iter().map(|(code, _)| code.to_owned()).collect()
    }
}

/// A period with one step and phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Step of the plan.
    pub step: usize,
    /// The phase.
    pub phase: Phase,
    /// Start in seconds since the run began.
    pub start_s: f64,
    /// End in seconds since the run began.
    pub end_s: f64,
}

/// The phases of a run, derived from its intervals.
pub fn spans(record: &RunRecord) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for i in &record.intervals {
        let end_s = i.start_s + i.width_s;
        match spans.last_mut() {
            Some(last) if last.step == i.step && last.phase == i.phase => last.end_s = end_s,
            _ => spans.push(Span { step: i.step, phase: i.phase, start_s: i.start_s, end_s }),
        }
    }
    spans
}

/// A rate between two samples, or a gauge at a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Seconds since the run began.
    pub at_s: f64,
    /// The value; `None` where it could not be read.
    pub value: Option<f64>,
    /// Lowest and highest value where several readings were averaged.
    pub range: Option<(f64, f64)>,
}

/// Increase a second of the sum of counters. A counter that fell (a restart) or is missing leaves a gap.
pub fn rates(samples: &[Sample], counters: &[String]) -> Vec<Reading> {
    if counters.is_empty() {
        return Vec::new();
    }
    let sum = |s: &Sample| counters.iter().map(|c| s.values.get(c.as_str()).copied()).sum::<Option<f64>>();
    let single: Vec<Reading> = samples
        .windows(2)
        .map(|pair| {
            let gap_s = pair[1].at_s - pair[0].at_s;
            let growth = sum(&pair[1]).zip(sum(&pair[0])).map(|(b, a)| b - a);
            let value = growth.filter(|g| *g >= 0.0 && gap_s > 0.0).map(|g| g / gap_s);
            Reading { at_s: (pair[0].at_s + pair[1].at_s) / 2.0, value, range: None }
        })
        .collect();
    thin(single)
}

/// At most [`MOST_POINTS`] readings: means of neighbours, with their lowest and highest value.
fn thin(readings: Vec<Reading>) -> Vec<Reading> {
    let each = readings.len().div_ceil(MOST_POINTS).max(1);
    if each == 1 {
        return readings;
    }
    readings
        .chunks(each)
        .map(|chunk| {
            let values: Vec<f64> = chunk.iter().filter_map(|r| r.value).collect();
            let n = values.len() as f64;
            Reading {
                at_s: chunk.iter().map(|r| r.at_s).sum::<f64>() / chunk.len() as f64,
                value: (n > 0.0).then(|| values.iter().sum::<f64>() / n),
                range: (n > 0.0).then(|| {
                    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)))
                }),
            }
        })
        .collect()
}
