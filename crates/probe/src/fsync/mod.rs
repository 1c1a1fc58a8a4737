//! The rate at which a file can be written and synced.
//!
//! Overwriting is the pattern of a redo log of fixed size, appending that of a binary log. With blocks that are
//! reserved but not written (fallocate), a sync needs no block allocation but still a journal write, because each write
//! converts a part of them to written blocks.

mod meaning;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use mydyno_host::Host;
use mydyno_linux::calls::files;
use mydyno_model::probe::ProbeReport;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::own_disk::DiskVariant;
use crate::report::Draft;
use crate::scratch::{LOG_PIECE, Scratch};
use crate::slot::{Slot, Window};
use crate::sys::Aligned;
use crate::{Run, storage};

/// The position of the next write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pattern {
    /// Blocks that were written before, starting over at the end of the file.
    Overwrite,
    /// The end of a growing file.
    Append,
    /// Blocks that fallocate(2) has reserved and that were never written.
    Preallocated,
}

/// The method by which a write is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// fsync(2): data and all metadata of the file.
    Fsync,
    /// fdatasync(2): data and the metadata needed to read them.
    Fdatasync,
    /// `O_DSYNC` of open(2): each write returns when its data are durable.
    Dsync,
}

/// All patterns.
pub const PATTERNS: [Pattern; 3] = [Pattern::Overwrite, Pattern::Append, Pattern::Preallocated];
/// All methods.
pub const METHODS: [Method; 3] = [Method::Fsync, Method::Fdatasync, Method::Dsync];

/// A file that grows or is preallocated is restarted at this multiple of `Options::bytes`.
const GROWN: u64 = 4;
/// Bytes of all files of all patterns at most, as a multiple of `Options::bytes`.
pub const LARGEST_FILES: u64 = 1 + 2 * GROWN;
/// Space that has to stay free in addition to a new disk.
const DISK_KEPT: u64 = 1 << 30;

impl Pattern {
    /// Its name, as in `overwrite`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Overwrite => "overwrite",
            Self::Append => "append",
            Self::Preallocated => "preallocated",
        }
    }

    /// The pattern with a name.
    pub fn named(name: &str) -> Option<Self> {
        PATTERNS.into_iter().find(|pattern| pattern.name() == name)
    }
}

impl Method {
    /// Its name, as in `fdatasync`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Fdatasync => "fdatasync",
            Self::Dsync => "o_dsync",
        }
    }

    /// The method with a name.
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

/// The measures to take.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder; results depend on its file system.
    pub folder: PathBuf,
    /// Bytes of a write.
    pub block: usize,
    /// Bytes of the file that is overwritten.
    pub bytes: u64,
    /// Patterns to measure.
    pub patterns: Vec<Pattern>,
    /// Methods to measure.
    pub methods: Vec<Method>,
    /// Whether to bypass the page cache, as for a redo log that is opened with `O_DIRECT`.
    pub direct: bool,
    /// File systems and flush settings of temporary disks in the folder (root); empty measures the folder itself.
    pub variants: Vec<DiskVariant>,
}

/// The location of the files.
#[derive(Debug)]
struct Place {
    /// `None` for the folder itself.
    variant: Option<DiskVariant>,
    /// The folder of its files, below that of the probe.
    below: PathBuf,
    /// The device whose flushes are counted.
    device: Option<String>,
    flushed_before: Option<u64>,
}

impl Place {
    fn id(&self, of: &str) -> String {
        self.variant.map_or_else(|| of.to_owned(), |variant| format!("{}.{of}", variant.name()))
    }

    fn file(&self, name: &str) -> String {
        self.below.join(name).display().to_string()
    }

    fn flushes_so_far(&self, sys: &Path) -> Option<u64> {
        storage::flushes_so_far(sys, self.device.as_deref()?)
    }
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

/// Measures the sync rates.
///
/// # Errors
/// The folder cannot be used, or has too little space.
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
    let files = options.bytes.saturating_mul(1 + grows * GROWN);
    let needed = match options.variants.as_slice() {
        [] => files,
        variants => {
            variants.iter().fold(DISK_KEPT, |sum, variant| sum.saturating_add(variant.disk_bytes(files)))
        }
    };
    let scratch = Scratch::make(host, &options.folder, needed)?;
    let device = storage.devices.first().map(|device| device.name.clone());
    let mut places = places(host, &scratch, options, files, device)?;
    for place in &mut places {
        if options.patterns.contains(&Pattern::Overwrite) {
            scratch.filled(&place.file(Pattern::Overwrite.name()), options.bytes, LOG_PIECE)?;
        }
        place.flushed_before = place.flushes_so_far(sys);
    }
    let mut cells = Vec::new();
    for place in &places {
        for pattern in &options.patterns {
            for method in &options.methods {
                cells.push(cell(&scratch, options, place, *pattern, *method));
            }
        }
    }
    draft.pace = storage::pace(host.machine(), &options.folder);
    let outcome = course::run(cells, run);
    draft.meaning = match places.as_slice() {
        [Place { variant: None, .. }] => meaning::of_folder(&outcome.measures),
        places => meaning::compared(&outcome.measures, places),
    };
    for place in &places {
        let sent = place
            .flushes_so_far(sys)
            .zip(place.flushed_before)
            .map(|(now, before)| now.saturating_sub(before));
        draft.meaning.extend(sent.and_then(|sent| meaning::flushed(&outcome.measures, place, sent)));
    }
    scratch.remove()?;
    draft.warnings = meaning::implausible(&outcome.measures, &storage).into_iter().collect();
    draft.storage = Some(storage);
    Ok(draft.finish(outcome))
}

fn places(
    host: &Host,
    scratch: &Scratch,
    options: &Options,
    files: u64,
    device: Option<String>,
) -> Result<Vec<Place>, ProbeError> {
    if options.variants.is_empty() {
        return Ok(vec![Place { variant: None, below: PathBuf::new(), device, flushed_before: None }]);
    }
    let made = options.variants.iter().map(|variant| {
        let disk = variant.make(host, scratch, files)?;
        Ok(Place {
            variant: Some(*variant),
            below: disk.below,
            device: Some(disk.device),
            flushed_before: None,
        })
    });
    made.collect()
}

fn cell<'a>(
    scratch: &'a Scratch<'a>,
    options: &'a Options,
    place: &'a Place,
    pattern: Pattern,
    method: Method,
) -> Cell<'a> {
    let what = match pattern {
        Pattern::Overwrite => "overwrite a block that was written before",
        Pattern::Append => "append a block",
        Pattern::Preallocated => "write a block that fallocate has reserved",
    };
    let ends = match method {
        Method::Dsync => "through O_DSYNC".to_owned(),
        call => format!("and {}", call.name()),
    };
    let on = place.variant.map_or_else(String::new, |variant| {
        format!(" on {}, its flushes {}", variant.file_system, variant.flushes.name())
    });
    let id = place.id(&format!("{}.{}", pattern.name(), method.name()));
    let mut series = Series::new(id, format!("{what} {ends}{on}"), Kind::Timed)
        .with("block_bytes", options.block)
        .with("direct", options.direct);
    if let Some(variant) = place.variant {
        series =
            series.with("file_system", variant.file_system.name()).with("flushes", variant.flushes.name());
    }
    let file = place.file(pattern.name());
    Cell::one(series, move |slot| measure(scratch, options, &file, pattern, method, slot))
}

fn measure(
    scratch: &Scratch,
    options: &Options,
    file: &str,
    pattern: Pattern,
    method: Method,
    slot: &Slot,
) -> Result<Vec<Window>, ProbeError> {
    let failed = ProbeError::system("write and sync");
    let mut buffer = Aligned::new(options.block).map_err(&failed)?;
    let direct = if options.direct { libc::O_DIRECT } else { 0 };
    let file = scratch.file(file, method.flags() | direct)?;
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

/// Prepares the file's state before the first write.
fn begin_anew(file: &File, pattern: Pattern, end: u64) -> Result<(), ProbeError> {
    if pattern == Pattern::Overwrite {
        return Ok(());
    }
    file.set_len(0).map_err(ProbeError::system("empty a file"))?;
    if pattern == Pattern::Preallocated {
        files::allocate(file, end).map_err(|e| match e.raw_os_error() {
            Some(libc::EOPNOTSUPP) => ProbeError::Missing {
                missing: "this file system cannot reserve blocks (fallocate)".to_owned(),
                remedy: "leave that pattern out with --patterns overwrite,append".to_owned(),
            },
            _ => ProbeError::System { action: "reserve blocks", source: e },
        })?;
    }
    file.sync_all().map_err(ProbeError::system("sync a file"))
}
