//! Room on disks and in memory, looked at before anything is made.

use std::path::Path;

use mydyno_journal::Machine;
use mydyno_linux::calls::files;

use crate::error::HostError;
/// Memory that the host keeps free while mydyno stresses it.
pub const MEMORY_KEPT: u64 = 2 << 30;

/// Bytes that this user can still write to the file system of a path.
///
/// # Errors
/// There is no such path.
pub fn free_bytes(path: &Path) -> Result<u64, HostError> {
    let space = files::space(path);
    space.map(|space| space.available_bytes).map_err(|e| HostError::io("look at the free space of", path, e))
}

/// Checks that a file system has room for so many bytes.
///
/// # Errors
/// It has not; how much it has.
pub fn check_space(path: &Path, needed: u64) -> Result<(), HostError> {
    let free = free_bytes(path)?;
    if free >= needed {
        return Ok(());
    }
    Err(HostError::NoSpace { path: path.to_owned(), free: show(free), needed: show(needed) })
}

/// Checks that the host has [`MEMORY_KEPT`] bytes of memory to spare, so that nothing provokes its out-of-memory killer.
///
/// # Errors
/// It has not.
pub fn check_memory(machine: &Machine) -> Result<(), HostError> {
    check_memory_for(machine, 0)
}

/// The same after so many bytes were taken.
///
/// # Errors
/// It would not.
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
