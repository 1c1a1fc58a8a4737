//! Free disk space and memory, checked before anything is made.

use std::path::Path;

use mydyno_journal::Machine;
use mydyno_linux::calls::files;

use crate::error::HostError;
/// Memory that must stay free on the host during a measurement.
pub const MEMORY_KEPT: u64 = 2 << 30;

/// Bytes that this user can still write to the file system of a path.
///
/// # Errors
/// The path does not exist.
pub fn free_bytes(path: &Path) -> Result<u64, HostError> {
    let space = files::space(path);
    space.map(|space| space.available_bytes).map_err(|e| HostError::io("look at the free space of", path, e))
}

/// Checks that a file system has this much free space.
///
/// # Errors
/// It has less; the error says how much.
pub fn check_space(path: &Path, needed: u64) -> Result<(), HostError> {
    let free = free_bytes(path)?;
    if free >= needed {
        return Ok(());
    }
    Err(HostError::NoSpace { path: path.to_owned(), free: show(free), needed: show(needed) })
}

/// Checks that [`MEMORY_KEPT`] bytes of memory are available, so that the out-of-memory killer is not provoked.
///
/// # Errors
/// Less is available.
pub fn check_memory(machine: &Machine) -> Result<(), HostError> {
    check_memory_for(machine, 0)
}

/// As [`check_memory`], after an allocation of this many bytes.
///
/// # Errors
/// Less would be available.
pub fn check_memory_for(machine: &Machine, bytes: u64) -> Result<(), HostError> {
    let available = machine.available_bytes()?;
    let needed = MEMORY_KEPT.saturating_add(bytes);
    if available >= needed {
        return Ok(());
    }
    Err(HostError::NoMemory { free: show(available), needed: show(needed) })
}

fn show(bytes: u64) -> String {
    mydyno_model::units::show_bytes(bytes as f64)
}
