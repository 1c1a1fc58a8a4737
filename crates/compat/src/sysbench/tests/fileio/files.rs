//! The files of the test: `test_file.0` and so on, in the working directory.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::time::Instant;

use mydyno_linux::calls::mapping::Mapping;

use super::size::{MIB, size_text};
use crate::sysbench::log::{Level, Log};

/// Flags of open(2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) sync: bool,
    pub(super) dsync: bool,
    pub(super) direct: bool,
}

impl Flags {
    pub(super) fn text(self) -> String {
        let names = [(self.sync, "sync "), (self.dsync, "dsync "), (self.direct, "directio")];
        let text: String = names.iter().filter(|(on, _)| *on).map(|(_, name)| *name).collect();
        if text.is_empty() { "(none)".to_owned() } else { text }
    }

    fn bits(self) -> i32 {
        let of = |on: bool, bits: i32| if on { bits } else { 0 };
        of(self.sync, libc::O_SYNC) | of(self.dsync, libc::O_DSYNC) | of(self.direct, libc::O_DIRECT)
    }
}

/// Number and size of the files.
#[derive(Debug, Clone, Copy)]
pub(super) struct Files {
    pub(super) count: usize,
    /// Of a file.
    pub(super) bytes: u64,
    pub(super) flags: Flags,
}

pub(super) fn name(file: usize) -> String {
    format!("test_file.{file}")
}

fn number(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    format!("errno = {} ({text})", error.raw_os_error().unwrap_or(0))
}

/// The text of a fatal line about a file.
pub(super) fn cannot(what: &str, file: usize, error: &io::Error) -> String {
    format!("Cannot {what} file '{}' {}", name(file), number(error))
}

impl Files {
    fn open_one(&self, file: usize, make: bool) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(make).mode(0o600).custom_flags(self.flags.bits());
        options.open(name(file))
    }

    /// Makes files and extends short ones.
    ///
    /// # Errors
    /// The text of a fatal line.
    pub(super) fn make(&self, block: u64, checked: bool, log: &Log) -> Result<(), String> {
        let total = self.bytes * self.count as u64;
        let (each, all) = (self.bytes >> 10, total >> 20);
        log.notice(&format!("{} files, {each}Kb each, {all}Mb total", self.count));
        log.notice("Creating files for the test...");
        log.notice(&format!("Extra file open flags: {}", self.flags.text()));
        let (began, mut written) = (Instant::now(), 0);
        let memory = Mapping::anonymous(block as usize, false).map_err(|error| error.to_string())?;
        let mut bytes = Vec::new();
        for file in 0..self.count {
            let opened = self.open_one(file, true).map_err(|error| cannot("open", file, &error))?;
            let there = opened.metadata().map_or(0, |known| known.len());
            let what = match there {
                0 => "Creating file",
                _ if there < self.bytes => "Extending existing file",
                _ => "Reusing existing file",
            };
            log.notice(&format!("{what} {}", name(file)));
            let mut offset = if checked { 0 } else { there / block * block };
            while offset < self.bytes {
                let length = block.min(self.bytes - offset) as usize;
                fill_block(&mut bytes, length, offset, checked);
                memory.write(0, &bytes);
                write_mapped(&opened, &memory, length, offset)
                    .map_err(|error| cannot("write", file, &error))?;
                offset += length as u64;
            }
            written += offset.saturating_sub(there);
            opened.sync_all().map_err(|error| cannot("fsync", file, &error))?;
        }
        let seconds = began.elapsed().as_secs_f64();
        match written {
            0 => log.notice("No bytes written."),
            _ => log.notice(&format!(
                "{written} bytes written in {seconds:.2} seconds ({:.2} MiB/sec).",
                written as f64 / MIB / seconds.max(1e-9)
            )),
        }
        Ok(())
    }

    /// Opens all files for a run; for `anew` they are made empty. `None` after a failure, which is printed.
    pub(super) fn open(&self, anew: bool, log: &Log) -> Option<Vec<File>> {
        let mut all = Vec::with_capacity(self.count);
        for file in 0..self.count {
            let opened = self.open_one(file, anew).and_then(|opened| {
                if anew {
                    opened.set_len(0)?;
                }
                let length = opened.metadata()?.len();
                Ok((opened, length))
            });
            let (opened, length) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    log.fatal(&cannot("open", file, &error));
                    log.line(Level::Warning, "Did you forget to run the prepare step?");
                    return None;
                }
            };
            if !anew && length < self.bytes {
                let (is, must) = (size_text(length), size_text(self.bytes));
                log.fatal(&format!(
                    "Size of file '{}' is {is}, but at least {must} is expected.",
                    name(file)
                ));
                log.line(
                    Level::Warning,
                    "Did you run 'prepare' with different --file-total-size or --file-num values?",
                );
                return None;
            }
            all.push(opened);
        }
        Some(all)
    }

    pub(super) fn remove(&self) {
        // Those that are not there need no removal.
        (0..self.count).for_each(|file| drop(fs::remove_file(name(file))));
    }
}

/// Writes bytes from memory that is aligned, as direct I/O wants it.
pub(super) fn write_mapped(file: &File, memory: &Mapping, length: usize, offset: u64) -> io::Result<()> {
    file.write_all_at(memory.bytes(length), offset)
}

/// The content of a block; with a checksum of what stands before it, and the block's place, at its end.
pub(super) fn fill_block(bytes: &mut Vec<u8>, length: usize, offset: u64, checked: bool) {
    bytes.clear();
    bytes.resize(length, 0);
    if checked && length >= CHECK_BYTES {
        let mut state = offset | 1;
        let text = &mut bytes[..length - CHECK_BYTES];
        for part in text.chunks_mut(8) {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            part.copy_from_slice(&state.to_le_bytes()[..part.len()]);
        }
        let sum = crc32fast::hash(text);
        bytes[length - CHECK_BYTES..length - 8].copy_from_slice(&sum.to_le_bytes());
        bytes[length - 8..].copy_from_slice(&offset.to_le_bytes());
    }
}

/// Bytes of checksum and place.
const CHECK_BYTES: usize = 12;

/// The faults of a block that was read: lines for the log.
pub(super) fn check_block(bytes: &[u8], offset: u64) -> Option<Vec<String>> {
    let at = bytes.len().checked_sub(CHECK_BYTES)?;
    let sum = crc32fast::hash(&bytes[..at]);
    let stored = u32::from_le_bytes(bytes[at..at + 4].try_into().ok()?);
    if sum != stored {
        return Some(vec![
            format!("Checksum mismatch in block with offset: {offset}"),
            format!("    Calculated value: 0x{sum:x}    Stored value: 0x{stored:x}"),
        ]);
    }
    let place = u64::from_le_bytes(bytes[at + 4..].try_into().ok()?);
    (place != offset).then(|| vec![format!("Invalid block offset: {place}, expected {offset}")])
}
