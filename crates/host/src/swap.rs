//! Swap files of mydyno's own. Swapping concerns the whole host: it needs the user's permission.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::change::Change;
use crate::error::HostError;
use crate::journal::{Closing, Journal};
use crate::lease::Lease;
use crate::machine::Machine;
use crate::restore::Outcome;
use crate::room::{check_memory, check_space};
use crate::setting::AllowHostChange;
use crate::sys;

/// Kept free on the disk beside a swap file.
const SPACE_KEPT: u64 = 1 << 30;
/// The smallest that is worth having; the kernel wants ten pages.
const LEAST_BYTES: u64 = 1 << 20;

/// A file that is swapped to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapFile {
    /// Absolute, below a folder of mydyno's, which also removes the file.
    pub path: PathBuf,
    /// Its inode.
    pub inode: u64,
    /// Its size.
    pub bytes: u64,
    /// The mount namespace: elsewhere the path is another file, or none.
    pub namespace: Option<String>,
}

/// Whether a file can be swapped to here, without room on its disk.
///
/// # Errors
/// What is missing, and how to get it.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    machine.check_admin("a swap file")?;
    check_memory(machine)
}

/// Makes a file in a folder of mydyno's and swaps to it. Returns the number of the journal entry.
///
/// # Errors
/// There is too little room or memory, or swapping is not permitted; then nothing is swapped to the file.
pub fn turn_on(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    path: &Path,
    bytes: u64,
    _allowed: AllowHostChange,
) -> Result<u64, HostError> {
    let machine = lease.machine();
    let page = sys::storage::page_bytes() as u64;
    let bytes = bytes / page * page;
    if bytes < LEAST_BYTES {
        return Err(HostError::SettingValue {
            name: "swap.file".to_owned(),
            value: bytes.to_string(),
            form: format!("a size from {LEAST_BYTES} bytes"),
        });
    }
    let folder = path.parent().unwrap_or(Path::new("/"));
    check_space(folder, bytes + SPACE_KEPT)?;
    check(machine)?;
    let file = make(path, bytes).map_err(|e| HostError::io("write", path, e))?;
    let inode = file.metadata().map_err(|e| HostError::io("read", path, e))?.ino();
    drop(file);
    let swap = SwapFile { path: path.to_owned(), inode, bytes, namespace: machine.namespace("mnt") };
    let id = journal.record(lease, purpose, Change::Swap(swap.clone()))?;
    let problem = match sys::storage::swap_on(path) {
        Ok(()) if swap.is_on(machine)? => return Ok(id),
        Ok(()) => io::Error::other("it is not in /proc/swaps"),
        Err(e) => e,
    };
    let outcome = swap.put_back(machine)?;
    journal.close(id, outcome.closing().unwrap_or(Closing::Released), &outcome.why)?;
    Err(HostError::io("swap to (as root, outside a container)", path, problem))
}

/// A file with the header that mkswap(8) writes: `union swap_header` of `linux/swap.h`.
fn make(path: &Path, bytes: u64) -> io::Result<File> {
    let page = sys::storage::page_bytes();
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    sys::allocate(&file, bytes)?;
    let last_page = u32::try_from(bytes / page as u64 - 1).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut header = vec![0u8; page];
    header[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&last_page.to_ne_bytes());
    header[page - 10..].copy_from_slice(b"SWAPSPACE2");
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header)?;
    file.sync_all()?;
    Ok(file)
}

impl SwapFile {
    /// The kernel lists it, and the file of that name is the one that was made.
    fn is_on(&self, machine: &Machine) -> Result<bool, HostError> {
        let listed = swaps(machine)?.iter().any(|(path, _)| *path == self.path);
        Ok(listed && fs::metadata(&self.path).is_ok_and(|m| m.ino() == self.inode))
    }

    pub(crate) fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        let here = machine.namespace("mnt");
        (self.namespace.is_some() && self.namespace != here).then(|| {
            "it was made in another mount namespace: run `mydyno host restore` there, or with --all if that one is gone"
                .to_owned()
        })
    }

    /// Brings back what was swapped to the file and stops swapping to it.
    ///
    /// # Errors
    /// `/proc/swaps` cannot be read.
    pub(crate) fn put_back(&self, machine: &Machine) -> Result<Outcome, HostError> {
        if let Some(why) = self.out_of_reach(machine) {
            return Ok(Outcome::left_alone(why));
        }
        if !self.is_on(machine)? {
            return Ok(Outcome::restored("nothing is swapped to it"));
        }
        let used = swaps(machine)?.iter().find(|(path, _)| *path == self.path).map_or(0, |(_, used)| *used);
        let available = machine.available_bytes()?;
        if used > available {
            return Ok(Outcome::failed(format!(
                "{used} bytes are swapped to it and only {available} bytes of memory are free: end what needs it, and run \
                 `mydyno host restore`"
            )));
        }
        Ok(match sys::storage::swap_off(&self.path) {
            Ok(()) => Outcome::restored("turned off"),
            Err(e) => Outcome::failed(format!("cannot turn it off: {e}: run it as root")),
        })
    }
}

/// Files and devices that are swapped to, and the bytes in each: proc_swaps(5).
fn swaps(machine: &Machine) -> Result<Vec<(PathBuf, u64)>, HostError> {
    let path = machine.proc().join("swaps");
    let text = fs::read_to_string(&path).map_err(|e| HostError::io("read", &path, e))?;
    Ok(text.lines().skip(1).filter_map(parse_swap).collect())
}

fn parse_swap(line: &str) -> Option<(PathBuf, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let path = crate::machine::unescape_octal(fields.next()?);
    let used_kib: u64 = fields.nth(2)?.parse().ok()?;
    Some((path.into(), used_kib * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_swaps_are_read() {
        let line = "/a\\040b/swap                            file\t\t16380\t\t12\t\t-2";
        assert_eq!(parse_swap(line), Some(("/a b/swap".into(), 12 << 10)));
        assert_eq!(parse_swap("/x file"), None);
    }
}
