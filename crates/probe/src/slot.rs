//! One slot of measurement: warm-up, then windows of equal length.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mydyno_stats::{Distribution, Histogram, SparseHistogram};

use crate::error::ProbeError;

/// Duration of a batch of operations that are too short to be timed one by one: reading the clock twice takes less than
/// a thousandth of it.
const BATCH: Duration = Duration::from_micros(100);
/// Number of trials before a batch size counts as long enough: a trial may meet a page fault or another program.
const TRIES: usize = 3;
/// Maximum size of a batch: operations that take no time would make it grow for ever.
const LARGEST: u64 = 1 << 32;

/// Picoseconds in a nanosecond: values of batches are in picoseconds an operation.
pub(crate) const PS_PER_NS: f64 = 1e3;

/// The measurements of one window.
#[derive(Debug, Clone)]
pub struct Window {
    /// Nanoseconds an operation, or picoseconds for batches.
    pub values: SparseHistogram,
    /// Number of operations that ended in the window.
    pub operations: u64,
    /// Its length in seconds.
    pub width_s: f64,
}

/// A slot of measurement.
#[derive(Debug)]
pub struct Slot<'a> {
    /// Time before the first window.
    pub warm_up: Duration,
    /// Total time of the windows.
    pub time: Duration,
    /// Number of windows.
    pub windows: usize,
    /// Set when the user interrupts the probe.
    pub stop: &'a AtomicBool,
}

/// The instants of one slot, shared by threads that measure in parallel.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    start: Instant,
    width: Duration,
    windows: usize,
}

/// Batches of one size in the windows of one grid. All threads that measure in parallel share them, so that all values
/// have the same weight, whichever thread runs first.
#[derive(Debug, Clone, Copy)]
pub struct Batches {
    grid: Grid,
    size: u64,
}

/// Number of operations in a batch: the first power of two that takes at least half of [`BATCH`], independent of the
/// warm-up. It is determined by one thread alone, so that a batch has that much work even where threads wait for each
/// other.
///
/// # Errors
/// The error of the batch.
pub fn calibrate<E>(mut batch: impl FnMut(u64) -> Result<(), E>) -> Result<u64, E> {
    let mut size = 1;
    while size < LARGEST {
        let mut shortest = Duration::MAX;
        for _ in 0..TRIES {
            let begun = Instant::now();
            batch(size)?;
            shortest = shortest.min(begun.elapsed());
            if shortest < BATCH / 2 {
                break;
            }
        }
        if shortest >= BATCH / 2 {
            break;
        }
        size *= 2;
    }
    Ok(size)
}

impl Slot<'_> {
    /// Whether the user has interrupted the probe.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// The windows of this slot, after a warm-up that begins now.
    pub fn grid(&self) -> Grid {
        let width = self.time / u32::try_from(self.windows.max(1)).unwrap_or(u32::MAX);
        Grid { start: Instant::now() + self.warm_up, width, windows: self.windows.max(1) }
    }

    /// Repeats and times an operation on one thread.
    ///
    /// # Errors
    /// The error of the operation.
    pub fn timed(
        &self,
        operation: impl FnMut() -> Result<(), ProbeError>,
    ) -> Result<Vec<Window>, ProbeError> {
        self.timed_on(&self.grid(), operation)
    }

    /// The same on one of several threads. An operation belongs to the window that it ends in: the first window
    /// includes one that began in the warm-up, and the last lacks one that did not end in it.
    ///
    /// # Errors
    /// The error of the operation.
    pub fn timed_on(
        &self,
        grid: &Grid,
        mut operation: impl FnMut() -> Result<(), ProbeError>,
    ) -> Result<Vec<Window>, ProbeError> {
        let mut recorder = Recorder::new(grid);
        let mut begun = Instant::now();
        while !self.stopped() {
            operation()?;
            let ended = Instant::now();
            if !recorder.record(ended, nanoseconds(ended - begun), 1) {
                break;
            }
            begun = ended;
        }
        Ok(recorder.windows())
    }

    /// Repeats an operation that takes nanoseconds: `batch(n)` performs it `n` times. Values are in picoseconds an
    /// operation.
    ///
    /// # Errors
    /// The error of the batch.
    pub fn batched(
        &self,
        mut batch: impl FnMut(u64) -> Result<(), ProbeError>,
    ) -> Result<Vec<Window>, ProbeError> {
        let size = calibrate(&mut batch)?;
        self.batched_on(&self.batches(size), batch)
    }

    /// Batches of a size from [`calibrate`], in the windows of a grid whose warm-up begins now.
    pub fn batches(&self, size: u64) -> Batches {
        Batches { grid: self.grid(), size }
    }

    /// Batches on one of several threads.
    ///
    /// # Errors
    /// The error of the batch.
    pub fn batched_on(
        &self,
        batches: &Batches,
        mut batch: impl FnMut(u64) -> Result<(), ProbeError>,
    ) -> Result<Vec<Window>, ProbeError> {
        let Batches { grid, size } = batches;
        let mut recorder = Recorder::new(grid);
        while !self.stopped() {
            let begun = Instant::now();
            batch(*size)?;
            let ended = Instant::now();
            let ps = (nanoseconds(ended - begun) as f64 * PS_PER_NS / *size as f64).round() as u64;
            if !recorder.record(ended, ps, *size) {
                break;
            }
        }
        Ok(recorder.windows())
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Assigns values to the windows of a grid.
struct Recorder<'a> {
    grid: &'a Grid,
    current: usize,
    values: Histogram,
    operations: u64,
    windows: Vec<Window>,
}

impl<'a> Recorder<'a> {
    fn new(grid: &'a Grid) -> Self {
        Self {
            grid,
            current: 0,
            values: Histogram::new(),
            operations: 0,
            windows: Vec::with_capacity(grid.windows),
        }
    }

    /// Records a value that ended at an instant. False after the last window.
    fn record(&mut self, ended: Instant, value: u64, operations: u64) -> bool {
        let Some(since) = ended.checked_duration_since(self.grid.start) else { return true };
        let width_ns = self.grid.width.as_nanos().max(1);
        let window = usize::try_from(since.as_nanos() / width_ns).unwrap_or(usize::MAX);
        while self.current < window.min(self.grid.windows) {
            self.close();
        }
        if window >= self.grid.windows {
            return false;
        }
        self.values.record(value);
        self.operations += operations;
        true
    }

    fn close(&mut self) {
        self.windows.push(Window {
            values: self.values.to_sparse(),
            operations: std::mem::take(&mut self.operations),
            width_s: self.grid.width.as_secs_f64(),
        });
        self.values.clear();
        self.current += 1;
    }

    /// Complete windows only: an interrupted one is dropped.
    fn windows(self) -> Vec<Window> {
        self.windows
    }
}

/// Merges the windows of threads that measured in parallel.
pub fn together(threads: Vec<Vec<Window>>) -> Vec<Window> {
    // Threads stop at slightly different instants; only windows that all of them completed are whole.
    let common = threads.iter().map(Vec::len).min().unwrap_or(0);
    let mut columns: Vec<std::vec::IntoIter<Window>> = threads.into_iter().map(Vec::into_iter).collect();
    (0..common)
        .map(|_| {
            let parts: Vec<Window> = columns.iter_mut().filter_map(Iterator::next).collect();
            let mut values = Histogram::new();
            parts.iter().for_each(|part| values.merge_sparse(&part.values));
            Window {
                values: values.to_sparse(),
                operations: parts.iter().map(|part| part.operations).sum(),
                width_s: parts.first().map_or(0.0, |part| part.width_s),
            }
        })
        .collect()
}

/// Whether no value was recorded.
pub fn is_empty(windows: &[Window]) -> bool {
    windows.iter().all(|window| window.values.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(windows: usize) -> Grid {
        Grid { start: Instant::now(), width: Duration::from_millis(10), windows }
    }

    fn at(grid: &Grid, ms: u64) -> Instant {
        grid.start + Duration::from_millis(ms)
    }

    #[test]
    fn an_operation_belongs_to_the_window_that_it_ends_in_and_windows_without_any_are_kept() {
        let grid = grid(4);
        let mut recorder = Recorder::new(&grid);
        assert!(recorder.record(at(&grid, 3), 7, 1));
        assert!(recorder.record(at(&grid, 9), 7, 1));
        assert!(recorder.record(at(&grid, 30), 7, 1));
        assert!(!recorder.record(at(&grid, 41), 7, 1));
        let counts: Vec<u64> = recorder.windows().iter().map(|w| w.operations).collect();
        assert_eq!(counts, [2, 0, 0, 1]);
    }

    #[test]
    fn what_ends_in_the_warm_up_is_not_counted() {
        let grid = Grid { start: Instant::now() + Duration::from_secs(60), ..grid(2) };
        let mut recorder = Recorder::new(&grid);
        assert!(recorder.record(Instant::now(), 7, 1));
        assert_eq!(recorder.operations, 0);
    }

    #[test]
    fn windows_of_threads_add_up_and_end_with_the_first_that_ends() {
        let one = |counts: &[u64]| -> Vec<Window> {
            let grid = grid(counts.len());
            let mut recorder = Recorder::new(&grid);
            for count in counts {
                recorder.operations = *count;
                (0..*count).for_each(|_| recorder.values.record(5));
                recorder.close();
            }
            recorder.windows()
        };
        let sum = together(vec![one(&[1, 2, 3]), one(&[10, 20])]);
        assert_eq!(sum.iter().map(|w| w.operations).collect::<Vec<_>>(), [11, 22]);
        assert_eq!(sum.iter().map(|w| w.values.count()).collect::<Vec<_>>(), [11, 22]);
    }

    /// Some hundred operations per [`BATCH`], so that a batch of one would be far too short.
    fn spin(times: u64) -> Result<(), ProbeError> {
        for _ in 0..times {
            (0..50u64).for_each(|i| {
                std::hint::black_box(i);
            });
        }
        Ok(())
    }

    /// The operations of each value in the windows; they are whole numbers, as all batches are equal.
    fn sizes(windows: &[Window]) -> Vec<(u64, u64)> {
        let full = windows.iter().filter(|window| !window.values.is_empty());
        full.map(|window| {
            let count = window.values.count();
            (window.operations / count, window.operations % count)
        })
        .collect()
    }

    #[test]
    fn batches_are_long_and_of_one_size_also_without_a_warm_up() {
        let never = AtomicBool::new(false);
        let (warm_up, time) = (Duration::ZERO, Duration::from_millis(50));
        let slot = Slot { warm_up, time, windows: 10, stop: &never };
        let sizes = sizes(&slot.batched(spin).unwrap());
        assert!(!sizes.is_empty() && sizes[0].0 > 1, "{sizes:?}");
        assert!(sizes.iter().all(|size| *size == (sizes[0].0, 0)), "{sizes:?}");
    }

    #[test]
    fn a_thread_that_runs_only_after_the_warm_up_has_batches_as_large_as_the_others() {
        let never = AtomicBool::new(false);
        let (warm_up, time) = (Duration::from_millis(5), Duration::from_millis(400));
        let slot = Slot { warm_up, time, windows: 10, stop: &never };
        let batches = slot.batches(calibrate(spin).unwrap());
        let both = std::thread::scope(|scope| {
            let early = scope.spawn(|| slot.batched_on(&batches, spin).unwrap());
            let late = scope.spawn(|| {
                while Instant::now() < batches.grid.start {
                    std::thread::yield_now();
                }
                slot.batched_on(&batches, spin).unwrap()
            });
            [early.join().unwrap(), late.join().unwrap()]
        });
        let all: Vec<(u64, u64)> = both.iter().flat_map(|windows| sizes(windows)).collect();
        assert!(all.iter().all(|size| *size == (batches.size, 0)), "{all:?}");
        let together = together(both.into());
        assert!(sizes(&together).iter().all(|size| *size == (batches.size, 0)) && batches.size > 1);
    }

    #[test]
    fn what_takes_no_time_and_what_takes_long_have_a_size() {
        assert_eq!(calibrate(|_| Ok::<(), ()>(())), Ok(LARGEST));
        let slow = |times| {
            let begun = Instant::now();
            while begun.elapsed() < BATCH * u32::try_from(times).unwrap() {}
            Ok::<(), ()>(())
        };
        assert_eq!(calibrate(slow), Ok(1));
        let mut calls = 0;
        // One slow first trial must not keep the size small.
        let once = |times: u64| {
            calls += 1;
            if calls == 1 { slow(times) } else { slow(0) }
        };
        assert_eq!(calibrate(once), Ok(LARGEST));
        assert_eq!(calibrate(|_| Err(())), Err(()));
    }

    #[test]
    fn a_slot_that_is_stopped_keeps_whole_windows_only() {
        let stop = AtomicBool::new(false);
        let time = Duration::from_secs(3600);
        let slot = Slot { warm_up: Duration::ZERO, time, windows: 3_600_000, stop: &stop };
        let mut done = 0;
        let begun = Instant::now();
        let windows = slot
            .timed(|| {
                done += 1;
                stop.store(begun.elapsed() > Duration::from_millis(20), Ordering::Relaxed);
                Ok(())
            })
            .unwrap();
        assert!(!windows.is_empty() && windows.len() < 3_600_000);
        assert!(windows.iter().map(|w| w.operations).sum::<u64>() <= done);
    }
}
