//! Random reads and writes past the page cache, alone and beside a writer that syncs.
//!
//! These measures show the effect of I/O schedulers and disks: a log that is synced for each commit shares the disk
//! with readers.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use mydyno_host::Host;
use mydyno_model::probe::{Measure, ProbeReport};
use mydyno_stats::Rng;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::report::{Draft, figure, rate};
use crate::scratch::{LOG_PIECE, PIECE, Scratch};
use crate::slot::{Grid, Slot, Window, together};
use crate::sys::Aligned;
use crate::{Run, machine, storage};

/// Bytes of a write of the writer that syncs: a block of a redo log, rounded up to a page.
const LOG_BLOCK: usize = 4096;
/// Bytes of the file that it overwrites.
const LOG_BYTES: u64 = 16 << 20;
/// Maximum number of threads: more would not change the result, and each needs a stack.
const MOST: usize = 1024;
/// Bytes of a thread's stack.
const STACK: usize = 256 << 10;

/// The measures to take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the file.
    pub folder: PathBuf,
    /// Bytes of a read or write: a page.
    pub block: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Whether to measure random reads.
    pub read: bool,
    /// Whether to measure random writes.
    pub write: bool,
    /// Whether to measure reads beside a writer that syncs each block.
    pub beside: bool,
}

impl Options {
    fn check(&self) -> Result<(), ProbeError> {
        let bad = |option, problem: &str| Err(ProbeError::Option { option, problem: problem.to_owned() });
        match self {
            o if o.block == 0 || o.block % 512 != 0 || o.block > 16 << 20 => {
                bad("block", "a multiple of 512, up to 16M")
            }
            o if o.bytes < 16 * o.block as u64 => bad("size", "at least 16 blocks (--block)"),
            o if o.threads.is_empty() || o.threads.iter().any(|n| *n == 0 || *n > MOST) => {
                bad("threads", "numbers from 1 to 1024, as in 1,16")
            }
            _ => Ok(()),
        }
    }

    /// Memory of all threads and of the buffer that fills the file.
    fn memory_bytes(&self) -> u64 {
        let threads = self.threads.iter().max().copied().unwrap_or(0) as u64;
        threads.saturating_mul((self.block + STACK) as u64).saturating_add(PIECE as u64)
    }
}

/// Measures the I/O.
///
/// # Errors
/// The folder cannot be used, or has too little space.
pub fn run(host: &Host, options: &Options, run: &mut Run) -> Result<ProbeReport, ProbeError> {
    options.check()?;
    run.timing.check()?;
    machine::check_memory(host.machine(), options.memory_bytes())?;
    let mut draft = Draft::begin("random", &run.timing)
        .with("block_bytes", options.block)
        .with("size_bytes", options.bytes);
    draft.storage = Some(storage::look(host.machine(), Path::new("/sys"), &options.folder)?);
    let scratch = Scratch::make(host, &options.folder, options.bytes + LOG_BYTES)?;
    (run.progress)("writing the file");
    scratch.filled("pages", options.bytes, PIECE)?;
    scratch.filled("log", LOG_BYTES, LOG_PIECE)?;
    let stretches = AtomicU64::new(0);
    let place = Place { scratch: &scratch, options, seed: run.timing.seed, stretches: &stretches };
    let mut cells = Vec::new();
    for threads in &options.threads {
        if options.read {
            cells.push(place.alone(Access::Read, *threads));
        }
        if options.read && options.beside {
            cells.push(place.beside(*threads));
        }
        if options.write {
            cells.push(place.alone(Access::Write, *threads));
        }
    }
    if options.beside {
        cells.push(place.log_alone());
    }
    draft.pace = storage::pace(host.machine(), &options.folder);
    let outcome = course::run(cells, run);
    scratch.remove()?;
    draft.meaning = meaning(&outcome.measures, options);
    Ok(draft.finish(outcome))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

impl Access {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// State that all threads share.
#[derive(Clone, Copy)]
struct Place<'a> {
    scratch: &'a Scratch<'a>,
    options: &'a Options,
    seed: u64,
    /// Number of slots begun: each uses other positions, since caches below would hold those of the previous one.
    stretches: &'a AtomicU64,
}

/// The sequence of positions that a worker reads or writes in a slot: the same in each run with the same seed.
#[derive(Debug, Clone)]
struct Places {
    rng: Rng,
    block: u64,
    blocks: u64,
}

impl Places {
    fn of(seed: u64, stretch: u64, worker: usize, options: &Options) -> Self {
        let block = options.block as u64;
        let rng = Rng::stream(seed, &[stretch, worker as u64]);
        Self { rng, block, blocks: options.bytes / block }
    }

    fn next(&mut self) -> u64 {
        self.rng.below(self.blocks) * self.block
    }
}

impl<'a> Place<'a> {
    fn alone(self, access: Access, threads: usize) -> Cell<'a> {
        let id = format!("{}.{threads}", access.name());
        let what = format!("random {}s past the page cache by {}", access.name(), counted(threads));
        let series = self.series(id, what, threads);
        Cell::one(series, move |slot| {
            let file = self.pages()?;
            let grid = slot.grid();
            self.side_by_side(&file, access, threads, slot, &grid, |_| Ok(vec![])).map(|(pages, _)| pages)
        })
    }

    fn beside(self, threads: usize) -> Cell<'a> {
        let reads = self.series(
            format!("read.{threads}.beside"),
            format!("random reads by {} beside a writer that syncs", counted(threads)),
            threads,
        );
        let writes = Series::new(
            format!("log.{threads}.beside"),
            format!("overwrite 4 KiB and fdatasync beside {}", counted(threads)),
            Kind::Timed,
        )
        .with("block_bytes", LOG_BLOCK);
        Cell {
            series: vec![reads, writes],
            measure: Box::new(move |slot| {
                let file = self.pages()?;
                let grid = slot.grid();
                let (pages, log) = self
                    .side_by_side(&file, Access::Read, threads, slot, &grid, |grid| self.log(slot, grid))?;
                Ok(vec![pages, log])
            }),
        }
    }

    fn log_alone(self) -> Cell<'a> {
        let series = Series::new("log", "overwrite 4 KiB and fdatasync, alone", Kind::Timed)
            .with("block_bytes", LOG_BLOCK);
        Cell::one(series, move |slot| self.log(slot, &slot.grid()))
    }

    fn series(self, id: String, what: String, threads: usize) -> Series {
        Series::new(id, what, Kind::Timed).with("block_bytes", self.options.block).with("threads", threads)
    }

    fn pages(self) -> Result<File, ProbeError> {
        self.scratch.file("pages", libc::O_DIRECT)
    }

    /// Runs threads that read or write pages, and one thread with another task.
    fn side_by_side(
        self,
        file: &File,
        access: Access,
        threads: usize,
        slot: &Slot,
        grid: &Grid,
        other: impl FnOnce(&Grid) -> Result<Vec<Window>, ProbeError> + Send,
    ) -> Result<(Vec<Window>, Vec<Window>), ProbeError> {
        let stretch = self.stretches.fetch_add(1, Ordering::Relaxed);
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for worker in 0..threads {
                let places = Places::of(self.seed, stretch, worker, self.options);
                let spawned = thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, move || self.pages_of(file, access, places, slot, grid));
                workers.push(spawned.map_err(ProbeError::system("start a thread"))?);
            }
            let beside = other(grid);
            let all: Result<Vec<_>, _> = workers.into_iter().map(joined).collect();
            Ok((together(all?), beside?))
        })
    }

    fn pages_of(
        self,
        file: &File,
        access: Access,
        mut places: Places,
        slot: &Slot,
        grid: &Grid,
    ) -> Result<Vec<Window>, ProbeError> {
        let mut buffer = Aligned::new(self.options.block).map_err(ProbeError::system("get memory"))?;
        slot.timed_on(grid, || {
            let at = places.next();
            match access {
                Access::Read => file.read_exact_at(buffer.bytes(), at),
                Access::Write => file.write_all_at(buffer.bytes(), at),
            }
            .map_err(|source| ProbeError::System { action: "read or write past the page cache", source })
        })
    }

    fn log(self, slot: &Slot, grid: &Grid) -> Result<Vec<Window>, ProbeError> {
        let failed = ProbeError::system("write and sync");
        let file = self.scratch.file("log", 0)?;
        let mut buffer = Aligned::new(LOG_BLOCK).map_err(&failed)?;
        let mut at = 0;
        slot.timed_on(grid, || {
            file.write_all_at(buffer.bytes(), at).map_err(&failed)?;
            at = (at + LOG_BLOCK as u64) % LOG_BYTES;
            file.sync_data().map_err(&failed)
        })
    }
}

pub(crate) fn joined<T>(
    handle: thread::ScopedJoinHandle<'_, Result<T, ProbeError>>,
) -> Result<T, ProbeError> {
    handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn counted(threads: usize) -> String {
    if threads == 1 { "1 thread".to_owned() } else { format!("{threads} threads") }
}

fn meaning(measures: &[Measure], options: &Options) -> Vec<String> {
    let mut meaning = Vec::new();
    let value = |id: &str| figure(measures, id, "per_s").map(|estimate| estimate.value);
    let (few, many) = (options.threads.iter().min(), options.threads.iter().max());
    if let (Some(few), Some(many)) = (few, many)
        && let (Some(slow), Some(fast)) = (value(&format!("read.{few}")), value(&format!("read.{many}")))
    {
        meaning.push(format!(
            "A statement that misses the buffer pool page after page reads about {} pages a second; {many} of them at once \
             read {} together. A server whose working set does not fit reads no faster.",
            rate(slow / *few as f64),
            rate(fast)
        ));
    }
    for threads in &options.threads {
        let beside = (value(&format!("read.{threads}.beside")), value(&format!("log.{threads}.beside")));
        if let (Some(log), (Some(reads), Some(writes))) = (value("log"), beside) {
            let alone = value(&format!("read.{threads}")).unwrap_or(reads);
            meaning.push(format!(
                "With {} at work, syncs come to {:.0} % of what they do alone, and reads to {:.0} %. A share near 0 of either is a \
                 scheduler or a disk that starves it.",
                counted(*threads),
                100.0 * writes / log,
                100.0 * reads / alone
            ));
        }
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timing;
    use mydyno_host::{Machine, StateDir};
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    fn options(folder: &Path) -> Options {
        let threads = vec![1, 2];
        Options {
            folder: folder.to_owned(),
            block: 4096,
            bytes: 4 << 20,
            threads,
            read: true,
            write: false,
            beside: false,
        }
    }

    #[test]
    fn each_stretch_and_worker_has_places_of_its_own_and_a_run_repeats_with_its_seed() {
        let options = options(Path::new("/"));
        let places = |seed, stretch, worker| -> Vec<u64> {
            let mut places = Places::of(seed, stretch, worker, &options);
            (0..64).map(|_| places.next()).collect()
        };
        let first = places(1, 0, 0);
        assert_eq!(first, places(1, 0, 0));
        for other in [places(1, 1, 0), places(1, 0, 1), places(2, 0, 0)] {
            assert_ne!(first, other);
        }
        assert!(first.iter().all(|at| at % 4096 == 0 && *at < 4 << 20));
    }

    #[test]
    fn rounds_and_measures_count_as_stretches() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "probe").unwrap();
        let scratch = Scratch::make(&host, temp.path(), 1 << 20).unwrap();
        scratch.filled("pages", 1 << 20, PIECE).unwrap();
        let options = Options { bytes: 1 << 20, ..options(temp.path()) };
        let (stretches, never) = (AtomicU64::new(0), AtomicBool::new(false));
        let place = Place { scratch: &scratch, options: &options, seed: 1, stretches: &stretches };
        let file = scratch.file("pages", 0).unwrap();
        let slot = Slot { warm_up: Duration::ZERO, time: Duration::from_millis(2), windows: 1, stop: &never };
        for threads in [1, 2, 1] {
            let none = |_: &Grid| Ok(vec![]);
            place.side_by_side(&file, Access::Read, threads, &slot, &slot.grid(), none).unwrap();
        }
        assert_eq!(stretches.load(Ordering::Relaxed), 3);
        scratch.remove().unwrap();
    }

    #[test]
    fn buffers_that_do_not_fit_into_memory_are_refused_before_anything_is_written() {
        let temp = tempfile::tempdir().unwrap();
        let state = StateDir::open(&temp.path().join("state")).unwrap();
        let host = Host::of(state, &Machine::real().unwrap(), "probe").unwrap();
        // An artificial block size, too large for any machine.
        let options = Options { block: 1 << 42, ..options(temp.path()) };
        assert_eq!(options.memory_bytes(), 2 * ((1 << 42) + STACK as u64) + PIECE as u64);
        let stop = AtomicBool::new(false);
        let timing = Timing { time: Duration::from_secs(1), warm_up: Duration::ZERO, rounds: 1, seed: 1 };
        let mut run = Run { timing, only: None, stop: &stop, progress: &mut |_| {} };
        // The maximum that the command permits: 16 GiB of buffers.
        let largest = Options { block: 16 << 20, bytes: 1 << 30, threads: vec![MOST], ..options };
        let available = host.machine().available_bytes().unwrap();
        if available > 32 << 30 {
            println!("not tested: this machine has memory for the most that can be asked for");
            return;
        }
        let refused = super::run(&host, &largest, &mut run).unwrap_err();
        assert!(matches!(refused, ProbeError::Memory { .. }), "{refused}");
        assert_eq!(std::fs::read_dir(temp.path()).unwrap().count(), 1);
    }
}
