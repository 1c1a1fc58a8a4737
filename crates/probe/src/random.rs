//! Random reads and writes past the page cache, alone and beside a writer that syncs.
//!
//! This is where schedulers and disks show themselves: a log that is synced for each commit shares the disk with readers.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
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
use crate::{Run, storage};

/// Bytes of a write of the writer that syncs: a block of a redo log, rounded up to a page.
const LOG_BLOCK: usize = 4096;
/// Bytes of the file that it overwrites.
const LOG_BYTES: u64 = 16 << 20;
/// More threads than these tell nothing more, and each has a stack.
const MOST: usize = 1024;

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where.
    pub folder: PathBuf,
    /// Bytes of a read or write: a page.
    pub block: usize,
    /// Bytes of the file.
    pub bytes: u64,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Random reads.
    pub read: bool,
    /// Random writes.
    pub write: bool,
    /// Reads beside a writer that syncs each block.
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
}

/// Measures it.
///
/// # Errors
/// The folder cannot be used, or has no room.
pub fn run(host: &Host, options: &Options, run: &mut Run) -> Result<ProbeReport, ProbeError> {
    options.check()?;
    run.timing.check()?;
    let mut draft = Draft::begin("random", &run.timing)
        .with("block_bytes", options.block)
        .with("size_bytes", options.bytes);
    draft.storage = Some(storage::look(host.machine(), Path::new("/sys"), &options.folder)?);
    let scratch = Scratch::make(host, &options.folder, options.bytes + LOG_BYTES)?;
    (run.progress)("writing the file");
    scratch.filled("pages", options.bytes, PIECE)?;
    scratch.filled("log", LOG_BYTES, LOG_PIECE)?;
    let place = Place { scratch: &scratch, options, seed: run.timing.seed };
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
    let outcome = course::run(cells, &run.timing, run.stop, run.progress);
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

/// Where all threads work.
#[derive(Clone, Copy)]
struct Place<'a> {
    scratch: &'a Scratch<'a>,
    options: &'a Options,
    seed: u64,
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

    /// Threads that read or write pages, and one that does something else.
    fn side_by_side(
        self,
        file: &File,
        access: Access,
        threads: usize,
        slot: &Slot,
        grid: &Grid,
        other: impl FnOnce(&Grid) -> Result<Vec<Window>, ProbeError> + Send,
    ) -> Result<(Vec<Window>, Vec<Window>), ProbeError> {
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for worker in 0..threads {
                let spawned = thread::Builder::new()
                    .stack_size(256 << 10)
                    .spawn_scoped(scope, move || self.pages_of(file, access, worker, slot, grid));
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
        worker: usize,
        slot: &Slot,
        grid: &Grid,
    ) -> Result<Vec<Window>, ProbeError> {
        let block = self.options.block as u64;
        let blocks = self.options.bytes / block;
        let mut buffer = Aligned::new(self.options.block).map_err(ProbeError::system("get memory"))?;
        let mut rng = Rng::stream(self.seed, &[worker as u64]);
        slot.timed_on(grid, || {
            let at = rng.below(blocks) * block;
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
