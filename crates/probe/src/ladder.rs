//! The ladder of latencies: the cost of one dependent access, from the first cache to a sync.
//!
//! Memory is measured by pointer chasing: each address comes from the previous access, in random order, so that no
//! prefetcher helps. All of it is touched before the first timing.

use std::fs;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mydyno_host::{Host, Machine};
use mydyno_model::probe::{Measure, NotMeasured, ProbeReport};
use mydyno_model::units::{show_bytes, show_us};
use mydyno_stats::Rng;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::report::{Draft, figure};
use crate::scratch::{LOG_PIECE, PIECE, Scratch};
use crate::sys::Aligned;
use crate::{Run, machine, storage};

/// Bytes of a cache line on common server processors.
const LINE: usize = 64;
/// Working sets of the rungs for caches.
const CACHES: [usize; 4] = [16 << 10, 256 << 10, 4 << 20, 32 << 20];
/// Smallest and largest working set of the rung for memory.
const MEMORY: (usize, usize) = (128 << 20, 1 << 30);
/// A page of InnoDB.
const PAGE: usize = 16 << 10;
/// Bytes of the file that stays in the page cache, and of the one that is overwritten and synced.
const SMALL_FILE: u64 = 16 << 20;

/// The rungs that need files.
const OF_FILES: [&str; 3] = ["read.cached", "read.device", "sync"];

/// Ids of all rungs, from the first cache to a sync.
pub fn rungs() -> Vec<String> {
    let caches = CACHES.into_iter().map(|bytes| rung(bytes, false));
    caches.chain([rung(MEMORY.0, true)]).chain(OF_FILES.map(str::to_owned)).collect()
}

/// Id of the rung with a working set.
fn rung(bytes: usize, is_memory: bool) -> String {
    if is_memory {
        return "memory".to_owned();
    }
    format!("cache.{}", show_bytes(bytes as f64).replace(' ', ""))
}

/// The measures to take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder for the files; `None` measures memory only.
    pub folder: Option<PathBuf>,
    /// Bytes of the file that is read past the page cache.
    pub bytes: u64,
}

/// Measures the ladder. Without a host no files are used.
///
/// # Errors
/// Too little space on the disk or too little memory.
pub fn run(
    host: Option<&Host>,
    machine: &Machine,
    options: &Options,
    run: &mut Run,
) -> Result<ProbeReport, ProbeError> {
    run.timing.check()?;
    let memory = memory_bytes();
    let only = run.only;
    let wanted = |id: &str| only.is_none_or(|only| only == id);
    let is_memory = |bytes: usize| bytes == memory;
    let sets: Vec<usize> =
        CACHES.into_iter().chain([memory]).filter(|bytes| wanted(&rung(*bytes, is_memory(*bytes)))).collect();
    machine::check_memory(machine, sets.iter().sum::<usize>() as u64)?;
    let mut draft = Draft::begin("latency", &run.timing).with("memory_bytes", memory);
    (run.progress)("touching memory and writing files");
    let scratch = match (host, &options.folder) {
        (Some(host), Some(folder)) => {
            draft = draft.with("size_bytes", options.bytes);
            draft.storage = Some(storage::look(machine, Path::new("/sys"), folder)?);
            let scratch = Scratch::make(host, folder, options.bytes + 2 * SMALL_FILE)?;
            let files = [
                ("read.device", "pages", options.bytes, PIECE),
                ("read.cached", "cached", SMALL_FILE, PIECE),
                ("sync", "log", SMALL_FILE, LOG_PIECE),
            ];
            for (_, name, bytes, piece) in files.into_iter().filter(|(id, ..)| wanted(id)) {
                scratch.filled(name, bytes, piece)?;
            }
            Some(scratch)
        }
        _ => None,
    };
    let mut cells: Vec<Cell> =
        sets.iter().map(|bytes| chase(*bytes, is_memory(*bytes), run.timing.seed)).collect();
    if let Some(scratch) = &scratch {
        cells.extend(of_files(scratch, options.bytes, run.timing.seed));
    }
    if let Some(folder) = options.folder.as_ref().filter(|_| scratch.is_some()) {
        draft.pace = storage::pace(machine, folder);
    }
    let mut outcome = course::run(cells, run);
    match scratch {
        Some(scratch) => scratch.remove()?,
        None => outcome.not_measured.extend(OF_FILES.iter().filter(|id| wanted(id)).map(|id| NotMeasured {
            id: (*id).to_owned(),
            why: "no folder was named: choose one with --folder".to_owned(),
        })),
    }
    draft.meaning = meaning(&outcome.measures);
    Ok(draft.finish(outcome))
}

/// Ten times the largest cache of this machine, within limits.
fn memory_bytes() -> usize {
    (10 * last_cache(Path::new("/sys/devices/system/cpu/cpu0/cache"))).clamp(MEMORY.0, MEMORY.1)
}

/// Bytes of the largest cache; 0 where sysfs does not show it.
pub(crate) fn last_cache(folder: &Path) -> usize {
    let size = |index: u8| {
        let text = fs::read_to_string(folder.join(format!("index{index}/size"))).ok()?;
        mydyno_model::units::parse_size(text.trim()).ok()
    };
    (0..5).filter_map(size).max().map_or(0, |bytes| bytes as usize)
}

fn chase<'a>(bytes: usize, is_memory: bool, seed: u64) -> Cell<'a> {
    let size = show_bytes(bytes as f64);
    let what = if is_memory { "memory: a step through" } else { "a step through" };
    let series = Series::new(rung(bytes, is_memory), format!("{what} {size} in no order"), Kind::Batched)
        .with("bytes", bytes);
    let mut chain = None;
    let mut at = 0;
    Cell::one(series, move |slot| {
        // All of it is touched before the warm-up begins.
        let chain = chain.get_or_insert_with(|| Chain::new(bytes, seed));
        slot.batched(|steps| {
            at = chain.walk(at, steps);
            Ok(())
        })
    })
}

/// Cache lines that each contain the number of the next, in one cycle through all of them.
struct Chain(Vec<[u64; LINE / 8]>);

impl Chain {
    fn new(bytes: usize, seed: u64) -> Self {
        let lines = (bytes / LINE).max(2);
        let mut rng = Rng::stream(seed, &[bytes as u64]);
        // Sattolo's shuffle: a permutation that is one cycle.
        let mut next: Vec<u32> = (0..lines as u32).collect();
        for i in (1..lines).rev() {
            next.swap(i, rng.below(i as u64) as usize);
        }
        let mut chain = vec![[0u64; LINE / 8]; lines];
        for (line, next) in chain.iter_mut().zip(next) {
            *line = [u64::from(next); LINE / 8];
        }
        Self(chain)
    }

    fn walk(&self, from: u64, steps: u64) -> u64 {
        let mut at = from;
        for _ in 0..steps {
            at = self.0[at as usize][0];
        }
        black_box(at)
    }
}

fn of_files<'a>(scratch: &'a Scratch<'a>, bytes: u64, seed: u64) -> Vec<Cell<'a>> {
    let read = |id: &'static str, what: &str, name: &'static str, flags: i32, bytes: u64| {
        let series = Series::new(id, what, Kind::Timed).with("block_bytes", PAGE).with("size_bytes", bytes);
        let mut rng = Rng::stream(seed, &[bytes]);
        Cell::one(series, move |slot| {
            let failed = ProbeError::system("read a page");
            let file = scratch.file(name, flags)?;
            let mut buffer = Aligned::new(PAGE).map_err(&failed)?;
            if flags == 0 {
                // Another process may have evicted it from the page cache meanwhile.
                let pages = bytes / PAGE as u64;
                (0..pages)
                    .try_for_each(|page| file.read_exact_at(buffer.bytes(), page * PAGE as u64))
                    .map_err(&failed)?;
            }
            slot.timed(|| {
                let at = rng.below(bytes / PAGE as u64) * PAGE as u64;
                file.read_exact_at(buffer.bytes(), at).map_err(&failed)
            })
        })
    };
    let sync = Series::new("sync", "overwrite 4 KiB and fdatasync", Kind::Timed).with("block_bytes", 4096);
    vec![
        read("read.cached", "read 16 KiB from the page cache", "cached", 0, SMALL_FILE),
        read("read.device", "read 16 KiB past the page cache", "pages", libc::O_DIRECT, bytes),
        Cell::one(sync, move |slot| {
            let failed = ProbeError::system("write and sync");
            let file = scratch.file("log", 0)?;
            let mut buffer = Aligned::new(4096).map_err(&failed)?;
            let mut at = 0;
            slot.timed(|| {
                file.write_all_at(buffer.bytes(), at).map_err(&failed)?;
                at = (at + 4096) % SMALL_FILE;
                file.sync_data().map_err(&failed)
            })
        }),
    ]
}

fn meaning(measures: &[Measure]) -> Vec<String> {
    let us = |id: &str, name: &str, factor: f64| Some(figure(measures, id, name)?.value * factor);
    let memory = us("memory", "p50_ns", 1e-3);
    let cached = us("read.cached", "p50_us", 1.0);
    let device = us("read.device", "p50_us", 1.0);
    let sync = us("sync", "p50_us", 1.0);
    let mut meaning = Vec::new();
    if let (Some(memory), Some(device)) = (memory, device) {
        meaning.push(format!(
            "A page that is not in memory costs as much as {:.0} steps through memory ({} against {}): that is what a larger buffer \
             pool saves.",
            device / memory,
            show_us(device),
            show_us(memory)
        ));
    }
    if let (Some(cached), Some(device)) = (cached, device) {
        let faster = device / cached;
        meaning.push(if faster > 1.5 {
            format!("The page cache answers {faster:.0} times as fast as the disk: without O_DIRECT it hides reads of the disk.")
        } else {
            "Reads past the page cache are about as fast as from it: something below keeps the file in memory.".to_owned()
        });
    }
    if let Some(sync) = sync {
        meaning.push(format!("A commit that is synced waits at least {}.", show_us(sync)));
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_one_circle_through_all_lines() {
        let chain = Chain::new(64 << 10, 7);
        let lines = chain.0.len() as u64;
        assert_eq!(lines, 1024);
        let mut seen: Vec<u64> = (0..lines).map(|steps| chain.walk(0, steps)).collect();
        assert_eq!(chain.walk(0, lines), 0);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 1024);
    }

    #[test]
    fn the_largest_cache_counts() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(last_cache(folder.path()), 0);
        for (index, size) in [(0, "32K"), (2, "1024K"), (3, "32M")] {
            let cache = folder.path().join(format!("index{index}"));
            fs::create_dir(&cache).unwrap();
            fs::write(cache.join("size"), format!("{size}\n")).unwrap();
        }
        assert_eq!(last_cache(folder.path()), 32 << 20);
    }
}
