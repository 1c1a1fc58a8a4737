//! How often a file can be written and synced.
//!
//! Overwriting is what a redo log of fixed size does, appending what a binary log does. Blocks that are reserved but not
//! written (fallocate) save a sync the search for space, not the journal: each write turns a piece of them into written ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mydyno_host::Host;
use mydyno_model::Warning;
use mydyno_model::probe::{Measure, ProbeReport, Storage};
use mydyno_model::units::show_us;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::report::{Draft, figure, rate};
use crate::scratch::{LOG_PIECE, Scratch};
use crate::slot::{Slot, Window};
use crate::sys::{self, Aligned};
use crate::{Run, storage};

/// Where the next write goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Blocks that were written before, from the beginning again at the end.
    Overwrite,
    /// The end of a growing file.
    Append,
    /// Blocks that fallocate(2) has reserved and nobody has written.
    Preallocated,
}

/// How a write is made to last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// fsync(2): data and all that describes the file.
    Fsync,
    /// fdatasync(2): data and what is needed to find them.
    Fdatasync,
    /// `O_DSYNC` of open(2): each write returns when its data last.
    Dsync,
}

/// All patterns.
pub const PATTERNS: [Pattern; 3] = [Pattern::Overwrite, Pattern::Append, Pattern::Preallocated];
/// All methods.
pub const METHODS: [Method; 3] = [Method::Fsync, Method::Fdatasync, Method::Dsync];

/// A disk that holds data in a volatile cache has to put them onto its medium before it answers a flush. Programming a page of
/// flash takes some 200 µs at least, and a turn of a disk milliseconds; below this, in microseconds, that did not happen.
const IMPLAUSIBLE_US: f64 = 100.0;
/// A file that grows or is filled is begun anew at so many times `Options::bytes`.
const GROWN: u64 = 4;

impl Pattern {
    /// As in `overwrite`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Append => "append",
            Self::Preallocated => "preallocated",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Self> {
        PATTERNS.into_iter().find(|pattern| pattern.name() == name)
    }
}

impl Method {
    /// As in `fdatasync`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Dsync => "o_dsync",
        }
    }

    /// The one with a name.
    pub fn named(name: &str) -> Option<Self> {
        METHODS.into_iter().find(|method| method.name() == name)
    }

    fn flags(self) -> i32 {
        if self == Self::Dsync { libc::O_DSYNC } else { 0 }
    }

    fn sync(self, file: &File) -> io::Result<()> {
        match self {
            Self::Fsync => file.sync_all(),
            Self::Fdatasync => file.sync_data(),
            Self::Dsync => Ok(()),
        }
    }
}

/// What to measure.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where: file systems differ.
    pub folder: PathBuf,
    /// Bytes of a write.
    pub block: usize,
    /// Bytes of the file that is overwritten.
    pub bytes: u64,
    /// Which patterns.
    pub patterns: Vec<Pattern>,
    /// Which methods.
    pub methods: Vec<Method>,
    /// Past the page cache, as a redo log that is opened with `O_DIRECT`.
    pub direct: bool,
}

impl Options {
    fn check(&self) -> Result<(), ProbeError> {
        let bad = |option, problem: &str| Err(ProbeError::Option { option, problem: problem.to_owned() });
        match self {
            o if o.block == 0 || o.block > 16 << 20 => bad("block", "from 1 byte to 16M"),
            o if o.direct && o.block % 512 != 0 => bad("block", "a multiple of 512 with --direct"),
            o if o.bytes < o.block as u64 => bad("size", "at least one block (--block)"),
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
    let sys = Path::new("/sys");
    let mut draft = Draft::begin("fsync", &run.timing)
        .with("block_bytes", options.block)
        .with("size_bytes", options.bytes)
        .with("direct", options.direct);
    let storage = storage::look(host.machine(), sys, &options.folder)?;
    let grows = options.patterns.iter().filter(|pattern| **pattern != Pattern::Overwrite).count() as u64;
    let needed = options.bytes.saturating_mul(1 + grows * GROWN);
    let scratch = Scratch::make(host, &options.folder, needed)?;
    if options.patterns.contains(&Pattern::Overwrite) {
        scratch.filled("overwrite", options.bytes, LOG_PIECE)?;
    }
    let device = storage.devices.first().map(|device| device.name.clone());
    let flushes = || device.as_deref().and_then(|device| storage::flushes_so_far(sys, device));
    let flushed_before = flushes();
    let mut cells = Vec::new();
    for pattern in &options.patterns {
        for method in &options.methods {
            cells.push(cell(&scratch, options, *pattern, *method));
        }
    }
    let outcome = course::run(cells, &run.timing, run.stop, run.progress);
    let flushes = flushes().zip(flushed_before).map(|(after, before)| after.saturating_sub(before));
    scratch.remove()?;
    draft.meaning = meaning(&outcome.measures, &storage, flushes);
    draft.warnings = implausible(&outcome.measures, &storage).into_iter().collect();
    draft.storage = Some(storage);
    Ok(draft.finish(outcome))
}

fn cell<'a>(scratch: &'a Scratch<'a>, options: &'a Options, pattern: Pattern, method: Method) -> Cell<'a> {
    let what = match pattern {
        Pattern::Overwrite => "overwrite a block that was written before",
        Pattern::Append => "append a block",
        Pattern::Preallocated => "write a block that fallocate has reserved",
    };
    let ends = match method {
        Method::Dsync => "through O_DSYNC".to_owned(),
        call => format!("and {}", call.name()),
    };
    let series =
        Series::new(format!("{}.{}", pattern.name(), method.name()), format!("{what} {ends}"), Kind::Timed)
            .with("block_bytes", options.block)
            .with("direct", options.direct);
    Cell::one(series, move |slot| measure(scratch, options, pattern, method, slot))
}

fn measure(
    scratch: &Scratch,
    options: &Options,
    pattern: Pattern,
    method: Method,
    slot: &Slot,
) -> Result<Vec<Window>, ProbeError> {
    let failed = ProbeError::system("write and sync");
    let mut buffer = Aligned::new(options.block).map_err(&failed)?;
    let direct = if options.direct { libc::O_DIRECT } else { 0 };
    let file = scratch.file(pattern.name(), method.flags() | direct)?;
    let block = options.block as u64;
    let end = match pattern {
        Pattern::Overwrite => options.bytes,
        Pattern::Append | Pattern::Preallocated => options.bytes * GROWN,
    };
    begin_anew(&file, pattern, end)?;
    let mut at = 0;
    slot.timed(|| {
        if at + block > end {
            at = 0;
            begin_anew(&file, pattern, end)?;
        }
        file.write_all_at(buffer.bytes(), at).map_err(&failed)?;
        at += block;
        method.sync(&file).map_err(&failed)
    })
}

/// The state before the first write.
fn begin_anew(file: &File, pattern: Pattern, end: u64) -> Result<(), ProbeError> {
    if pattern == Pattern::Overwrite {
        return Ok(());
    }
    file.set_len(0).map_err(ProbeError::system("empty a file"))?;
    if pattern == Pattern::Preallocated {
        sys::allocate(file, end).map_err(|e| match e.raw_os_error() {
            Some(libc::EOPNOTSUPP) => ProbeError::Lacks {
                lack: "this file system cannot reserve blocks (fallocate)".to_owned(),
                way_out: "leave that pattern out with --patterns overwrite,append".to_owned(),
            },
            _ => ProbeError::System { action: "reserve blocks", source: e },
        })?;
    }
    file.sync_all().map_err(ProbeError::system("sync a file"))
}

fn meaning(measures: &[Measure], storage: &Storage, flushes: Option<u64>) -> Vec<String> {
    let mut meaning = Vec::new();
    let per_s = |id: &str| figure(measures, id, "per_s").map(|estimate| estimate.value);
    let redo = per_s("overwrite.fdatasync").or_else(|| per_s("overwrite.fsync"));
    if let Some(redo) = redo {
        meaning.push(format!(
            "One connection that commits with innodb_flush_log_at_trx_commit=1 and without a binary log cannot pass about {} commits a \
             second in this folder; several connections share a sync (group commit) and pass it together.",
            rate(redo)
        ));
    }
    let binlog = per_s("append.fdatasync").or_else(|| per_s("append.fsync"));
    if let (Some(redo), Some(binlog)) = (redo, binlog) {
        meaning.push(format!(
            "With a binary log and sync_binlog=1 a commit waits for a sync of each: about {} a second for one connection.",
            rate(1.0 / (1.0 / redo + 1.0 / binlog))
        ));
        if redo > 1.3 * binlog {
            meaning.push(format!(
                "Appending is {:.1} times as slow as overwriting here: each append also commits the file's new size and blocks.",
                redo / binlog
            ));
        }
    }
    let syncs: u64 = measures.iter().map(|measure| measure.operations).sum();
    if let Some(flushes) = flushes.filter(|_| syncs > 0) {
        let device = &storage.devices[0].name;
        meaning.push(format!(
            "{device} was sent {flushes} flushes while {syncs} syncs were counted (warm-ups and other programs send theirs too)."
        ));
    }
    meaning
}

/// Says when a rate cannot be that of a disk that empties a volatile cache. It never says that data are safe: what happens below
/// the kernel cannot be seen from here.
fn implausible(measures: &[Measure], storage: &Storage) -> Option<Warning> {
    if storage.flushes_sent != Some(true) {
        return None;
    }
    let (id, p50_us) = ["overwrite.fdatasync", "overwrite.fsync", "overwrite.o_dsync"]
        .iter()
        .find_map(|id| Some((*id, figure(measures, id, "p50_us")?.value)))?;
    (p50_us < IMPLAUSIBLE_US).then(|| {
        Warning::new(
            "implausibly-fast",
            format!(
                "half of all syncs ({id}) took less than {}: implausibly fast for a disk with a volatile cache, which is what the \
                 kernel takes {} for",
                show_us(p50_us),
                storage.devices.first().map_or("it", |device| device.name.as_str())
            ),
            "find out what is below: a cache that survives a loss of power explains it, and so does a controller or a virtual \
             machine that does not pass flushes on, where a loss of power loses commits",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_model::Estimate;
    use mydyno_model::probe::{BlockDevice, Figure};
    use serde_json::Map;

    fn measured(id: &str, per_s: f64) -> Measure {
        let figure = |name: &str, value| Figure {
            name: name.to_owned(),
            estimate: Estimate::without_interval(value, "a test"),
        };
        Measure {
            id: id.to_owned(),
            what: String::new(),
            parameters: Map::new(),
            operations: 100,
            windows: 1,
            time_s: 1.0,
            rounds_per_s: vec![],
            steady: None,
            steady_why: String::new(),
            figures: vec![figure("per_s", per_s), figure("p50_us", 1e6 / per_s)],
        }
    }

    fn way(flushes_sent: Option<bool>) -> Storage {
        let device = BlockDevice {
            name: "sda".to_owned(),
            model: None,
            rotational: Some(true),
            write_cache: None,
            fua: None,
            scheduler: None,
            backing_file: None,
        };
        Storage {
            folder: "/x".to_owned(),
            file_system: "ext4".to_owned(),
            mount_point: "/".to_owned(),
            mount_options: String::new(),
            devices: vec![device],
            disk: None,
            flushes_sent,
            flushes_why: String::new(),
        }
    }

    #[test]
    fn a_sync_that_no_medium_can_do_is_called_implausible_and_never_safe() {
        let fast = [measured("overwrite.fdatasync", 20_000.0)];
        let warning = implausible(&fast, &way(Some(true))).unwrap();
        assert!(
            warning.text.contains("implausibly fast for a disk with a volatile cache"),
            "{}",
            warning.text
        );
        assert!(!format!("{} {}", warning.text, warning.next_step).contains("safe"));
        assert_eq!(implausible(&[measured("overwrite.fdatasync", 5_000.0)], &way(Some(true))), None);
        assert_eq!(implausible(&fast, &way(Some(false))), None);
        assert_eq!(implausible(&fast, &way(None)), None);
    }

    #[test]
    fn two_syncs_a_commit_take_the_sum_of_their_times() {
        let measures = [measured("overwrite.fdatasync", 3000.0), measured("append.fdatasync", 1500.0)];
        let meaning = meaning(&measures, &way(None), Some(7)).join("\n");
        assert!(
            meaning.contains("about 3,000 commits") && meaning.contains("about 1,000 a second"),
            "{meaning}"
        );
        assert!(
            meaning.contains("2.0 times as slow") && meaning.contains("7 flushes while 200"),
            "{meaning}"
        );
    }
}
