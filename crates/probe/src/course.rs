//! Runs the measures of a probe in rounds, in a shuffled order each, so that changes of the machine affect all measures
//! alike.

use std::sync::atomic::Ordering;
use std::time::Duration;

use mydyno_model::Estimate;
use mydyno_model::probe::{Figure, Measure, NotMeasured};
use mydyno_model::units::show_seconds;
use mydyno_stats::{Rng, interval};
use serde_json::{Map, Value};

use crate::Run;
use crate::error::ProbeError;
use crate::slot::{self, PS_PER_NS, Slot, Window};

/// Number of windows in all rounds together: enough to estimate the correlation of neighbouring windows.
const WINDOWS: usize = 252;

/// Durations and repetitions.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Time for one measure over all rounds, without warm-ups.
    pub time: Duration,
    /// Warm-up before each stretch of a measure.
    pub warm_up: Duration,
    /// Number of rounds.
    pub rounds: usize,
    /// Seed of the order in each round, and of random positions.
    pub seed: u64,
}

impl Timing {
    /// Checks that the time and the number of rounds are above 0.
    ///
    /// # Errors
    /// There is no time or no round.
    pub fn check(&self) -> Result<(), ProbeError> {
        let bad = |option, problem: &str| Err(ProbeError::Option { option, problem: problem.to_owned() });
        match self {
            t if t.rounds == 0 || t.rounds > 100 => bad("rounds", "at least 1, at most 100"),
            t if t.time < Duration::from_millis(50) => bad("time", "at least 50ms"),
            _ => Ok(()),
        }
    }
}

/// The presentation of the values of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Each operation was timed: shown as a rate, and percentiles in microseconds.
    Timed,
    /// Batches were timed: shown as percentiles in nanoseconds an operation.
    Batched,
    /// Batches were timed in which each operation handles this many bytes: shown as bandwidth.
    Bytes(u64),
}

/// The subject of one series of values; a measure may have several, such as readers and a writer.
#[derive(Debug, Clone)]
pub struct Series {
    /// Id, as in `overwrite.fdatasync`.
    pub id: String,
    /// Description for people.
    pub what: String,
    /// Parameters: sizes, threads, library.
    pub parameters: Map<String, Value>,
    /// The presentation of its values.
    pub kind: Kind,
}

impl Series {
    /// A series.
    pub fn new(id: impl Into<String>, what: impl Into<String>, kind: Kind) -> Self {
        Self { id: id.into(), what: what.into(), parameters: Map::new(), kind }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.parameters.insert(name.to_owned(), value.into());
        self
    }
}

/// Measures one slot and returns the windows of each series.
pub type Measuring<'a> = Box<dyn FnMut(&Slot) -> Result<Vec<Vec<Window>>, ProbeError> + 'a>;

/// A unit of measurement within a round.
pub struct Cell<'a> {
    /// Its series.
    pub series: Vec<Series>,
    /// Measures the series.
    pub measure: Measuring<'a>,
}

impl<'a> Cell<'a> {
    /// A cell with one series.
    pub fn one(
        series: Series,
        mut measure: impl FnMut(&Slot) -> Result<Vec<Window>, ProbeError> + 'a,
    ) -> Self {
        Self { series: vec![series], measure: Box::new(move |slot| Ok(vec![measure(slot)?])) }
    }
}

/// The results of all rounds.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The measures, in the order of the cells.
    pub measures: Vec<Measure>,
    /// The measures that could not be taken.
    pub not_measured: Vec<NotMeasured>,
    /// Whether the user interrupted it.
    pub interrupted: bool,
}

/// Runs cells in rounds: all of them, or the one that has the only measure wanted. An interruption keeps the values
/// measured so far.
pub fn run(mut cells: Vec<Cell<'_>>, run: &mut Run<'_>) -> Outcome {
    let Run { timing, only, stop, progress } = run;
    if let Some(only) = only {
        cells.retain(|cell| cell.series.iter().any(|series| series.id == *only));
    }
    let mut rng = Rng::from_seed(timing.seed);
    let mut kept: Vec<Kept> = cells.iter().map(|cell| Kept::of(cell.series.len())).collect();
    let total = (timing.time + timing.warm_up * u32::try_from(timing.rounds).unwrap_or(1))
        * u32::try_from(cells.len()).unwrap_or(1);
    if total > Duration::from_secs(2) {
        progress(&format!("{} measures, about {}", cells.len(), show_seconds(total.as_secs_f64())));
    }
    'rounds: for round in 0..timing.rounds {
        let mut order: Vec<usize> = (0..cells.len()).collect();
        rng.shuffle(&mut order);
        if timing.rounds > 1 && total > Duration::from_secs(2) {
            progress(&format!("round {} of {}", round + 1, timing.rounds));
        }
        for i in order {
            if stop.load(Ordering::Relaxed) {
                break 'rounds;
            }
            let (cell, kept) = (&mut cells[i], &mut kept[i]);
            if kept.failed.is_some() {
                continue;
            }
            let rounds = u32::try_from(timing.rounds).unwrap_or(1);
            let slot = Slot {
                warm_up: timing.warm_up,
                time: timing.time / rounds,
                windows: WINDOWS.div_ceil(timing.rounds),
                stop,
            };
            match (cell.measure)(&slot) {
                Ok(series) => kept.add(series),
                Err(error) => kept.failed = Some(error.to_string()),
            }
        }
    }
    let mut outcome = Outcome { interrupted: stop.load(Ordering::Relaxed), ..Outcome::default() };
    for (cell, kept) in cells.into_iter().zip(kept) {
        kept.finish(cell.series, &mut outcome);
    }
    outcome
}

/// The values of a cell measured so far.
struct Kept {
    series: Vec<Vec<Window>>,
    rounds_per_s: Vec<Vec<f64>>,
    failed: Option<String>,
}

impl Kept {
    fn of(series: usize) -> Self {
        Self { series: vec![vec![]; series], rounds_per_s: vec![vec![]; series], failed: None }
    }

    fn add(&mut self, measured: Vec<Vec<Window>>) {
        for (i, windows) in measured.into_iter().enumerate().take(self.series.len()) {
            let time_s: f64 = windows.iter().map(|w| w.width_s).sum();
            if time_s > 0.0 {
                let operations: u64 = windows.iter().map(|w| w.operations).sum();
                self.rounds_per_s[i].push(operations as f64 / time_s);
            }
            self.series[i].extend(windows);
        }
    }

    fn finish(self, series: Vec<Series>, outcome: &mut Outcome) {
        let failed = self.failed.clone();
        for ((series, windows), rounds) in series.into_iter().zip(self.series).zip(self.rounds_per_s) {
            if !slot::is_empty(&windows) {
                outcome.measures.push(measure(series.clone(), &windows, rounds));
            }
            let why = match (&failed, slot::is_empty(&windows)) {
                (Some(why), _) => why.clone(),
                (None, true) if outcome.interrupted => continue,
                (None, true) => "it did not end once in its time: give it more with --time".to_owned(),
                (None, false) => continue,
            };
            outcome.not_measured.push(NotMeasured { id: series.id, why });
        }
    }
}

fn measure(series: Series, windows: &[Window], rounds_per_s: Vec<f64>) -> Measure {
    let counts: Vec<u64> = windows.iter().map(|w| w.operations).collect();
    let widths: Vec<f64> = windows.iter().map(|w| w.width_s).collect();
    let steadiness = interval::steadiness(&counts, &widths);
    Measure {
        figures: figures(series.kind, windows, &counts, &widths),
        id: series.id,
        what: series.what,
        parameters: series.parameters,
        operations: counts.iter().sum(),
        windows: windows.len(),
        time_s: widths.iter().sum(),
        rounds_per_s,
        steady: steadiness.steady,
        steady_why: steadiness.why,
    }
}

fn figures(kind: Kind, windows: &[Window], counts: &[u64], widths: &[f64]) -> Vec<Figure> {
    let values: Vec<_> = windows.iter().map(|w| &w.values).collect();
    let time_s = widths.iter().sum();
    let named = |names: &[&str], estimates: Vec<Estimate>, factor: f64| -> Vec<Figure> {
        let pairs = names.iter().zip(estimates);
        pairs.map(|(name, e)| Figure { name: (*name).to_owned(), estimate: scaled(e, factor) }).collect()
    };
    match kind {
        Kind::Timed => {
            let rate = vec![interval::throughput(counts, widths)];
            let percentiles = interval::percentiles(&values, &[0.5, 0.95, 0.99, 0.999], time_s);
            let mut all = named(&["per_s"], rate, 1.0);
            all.extend(named(&["p50_us", "p95_us", "p99_us", "p999_us"], percentiles, 1e-3));
            all
        }
        Kind::Batched => named(
            &["p50_ns", "p95_ns"],
            interval::percentiles(&values, &[0.5, 0.95], time_s),
            1.0 / PS_PER_NS,
        ),
        Kind::Bytes(bytes) => {
            named(&["bytes_per_s"], vec![interval::throughput(counts, widths)], bytes as f64)
        }
    }
}

fn scaled(estimate: Estimate, factor: f64) -> Estimate {
    Estimate {
        value: estimate.value * factor,
        low: estimate.low.map(|low| low * factor),
        high: estimate.high.map(|high| high * factor),
        ..estimate
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn ran(cells: Vec<Cell<'_>>, only: Option<&str>, stop: &AtomicBool) -> Outcome {
        run(cells, &mut Run { timing: timing(3), only, stop, progress: &mut |_| {} })
    }

    fn timing(rounds: usize) -> Timing {
        Timing { time: Duration::from_millis(60), warm_up: Duration::from_millis(1), rounds, seed: 1 }
    }

    #[test]
    fn each_round_measures_every_cell_and_a_cell_that_fails_is_said_and_not_tried_again() {
        let stop = AtomicBool::new(false);
        let mut tried = 0;
        let good = Cell::one(Series::new("good", "spinning", Kind::Batched), |slot| {
            slot.batched(|n| {
                (0..n).for_each(|i| {
                    std::hint::black_box(i);
                });
                Ok(())
            })
        });
        let bad = Cell::one(Series::new("bad", "nothing", Kind::Timed), |_| {
            tried += 1;
            Err(ProbeError::Missing { missing: "no disk".to_owned(), remedy: "buy one".to_owned() })
        });
        let outcome = ran(vec![good, bad], None, &stop);
        assert_eq!(tried, 1);
        assert_eq!(outcome.measures.len(), 1);
        assert_eq!((outcome.measures[0].rounds_per_s.len(), outcome.measures[0].windows), (3, WINDOWS));
        assert_eq!(outcome.not_measured[0].why, "no disk: buy one");
        assert!(!outcome.interrupted);
    }

    #[test]
    fn what_was_measured_before_the_users_word_is_kept() {
        let stop = AtomicBool::new(false);
        let cell = Cell::one(Series::new("one", "waiting", Kind::Timed), |slot| {
            let windows = slot.timed(|| {
                std::thread::yield_now();
                Ok(())
            })?;
            stop.store(true, Ordering::Relaxed);
            Ok(windows)
        });
        let outcome = ran(vec![cell], None, &stop);
        assert!(outcome.interrupted);
        assert_eq!(outcome.measures[0].rounds_per_s.len(), 1);
    }

    #[test]
    fn one_measure_alone_is_taken_where_it_is_asked_for() {
        let stop = AtomicBool::new(false);
        let cell = |id: &str| {
            Cell::one(Series::new(id, "waiting", Kind::Timed), |slot| {
                slot.timed(|| {
                    std::thread::yield_now();
                    Ok(())
                })
            })
        };
        let outcome = ran(vec![cell("one"), cell("two")], Some("two"), &stop);
        assert_eq!(outcome.measures.iter().map(|m| m.id.as_str()).collect::<Vec<_>>(), ["two"]);
        assert!(outcome.not_measured.is_empty());
    }

    #[test]
    fn known_values_come_out_in_their_units() {
        let mut values = mydyno_stats::Histogram::new();
        (0..100).for_each(|_| values.record(2_000_000));
        let window = Window { values: values.to_sparse(), operations: 100, width_s: 0.5 };
        let windows = vec![window; 70];
        let timed = measure(Series::new("a", "b", Kind::Timed), &windows, vec![200.0]);
        let value = |m: &Measure, name: &str| m.figure(name).unwrap().value;
        assert!((value(&timed, "per_s") - 200.0).abs() < 1e-9);
        assert!((value(&timed, "p50_us") - 2000.0).abs() < 20.0);
        let batched = measure(Series::new("a", "b", Kind::Batched), &windows, vec![]);
        assert!((value(&batched, "p50_ns") - 2000.0).abs() < 20.0);
        let bytes = measure(Series::new("a", "b", Kind::Bytes(4096)), &windows, vec![]);
        assert!((value(&bytes, "bytes_per_s") - 819_200.0).abs() < 1e-6);
        assert_eq!((timed.operations, timed.time_s), (7000, 35.0));
    }
}
