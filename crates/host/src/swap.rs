//! Swap files that mydyno makes. Swapping affects the whole host, so it needs the user's permission.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mydyno_journal::{Change, Context, Journal, JournalError, Lease, Machine, Outcome};
use mydyno_linux::calls;
use mydyno_linux::calls::files;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
use crate::privilege::check_admin;
use crate::room::{MEMORY_KEPT, check_memory, check_space};
use crate::setting::AllowHostChange;
/// Free space that stays on the disk of a swap file.
const SPACE_KEPT: u64 = 1 << 30;
/// The smallest useful size; the kernel needs ten pages.
const LEAST_BYTES: u64 = 1 << 20;

/// Offset of the label in a swap header (`sws_volume`).
const LABEL_AT: usize = 1052;
/// Bytes of a label.
pub(crate) const LABEL_BYTES: usize = 16;
/// Signature at the end of the header's page.
const SIGNATURE: &[u8] = b"SWAPSPACE2";

/// A swap file in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwapFile {
    /// Its path: absolute, below a folder of mydyno's, whose removal removes the file.
    pub path: PathBuf,
    /// Its inode.
    pub inode: u64,
    /// The device number of its file system, as in stat(2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<u64>,
    /// Its size.
    pub bytes: u64,
    /// The mount namespace in which the path is valid.
    pub namespace: Option<String>,
}

/// Whether swap files are possible here, disk space aside.
///
/// # Errors
/// A prerequisite is missing; the error names it and how to get it.
pub fn check(machine: &Machine) -> Result<(), HostError> {
    check_admin(machine, "a swap file")?;
    check_memory(machine)
}

/// As [`check`], with space for a file of this size in a folder.
///
/// # Errors
/// As [`check`]; the size is too small; there is too little space.
pub fn check_file(machine: &Machine, folder: &Path, bytes: u64) -> Result<(), HostError> {
    let bytes = whole_pages("swap.file", bytes)?;
    check(machine)?;
    check_space(folder, bytes.saturating_add(SPACE_KEPT))
}

/// Makes a file in a folder of mydyno's and swaps to it. Returns the number of the journal entry.
///
/// # Errors
/// There is too little space or memory, or swapping is not permitted; the file is then not used.
pub fn turn_on(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    path: &Path,
    bytes: u64,
    _allowed: AllowHostChange,
) -> Result<u64, HostError> {
    let machine = lease.machine();
    let bytes = whole_pages("swap.file", bytes)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    check_file(machine, folder, bytes)?;
    let file = make(path, bytes).map_err(|e| HostError::io("write", path, e))?;
    let meta = file.metadata().map_err(|e| HostError::io("read", path, e))?;
    drop(file);
    let (inode, device) = (meta.ino(), Some(meta.dev()));
    let swap = SwapFile { path: path.to_owned(), inode, device, bytes, namespace: machine.namespace("mnt") };
    let id = journal.record(lease, purpose, swap.clone())?;
    let problem = match calls::mounts::swap_on(path) {
        Ok(()) if matches!(swap.listed(machine)?, Listed::Here(_)) => return Ok(id),
        Ok(()) => io::Error::other("it is not in /proc/swaps"),
        Err(e) => e,
    };
    let outcome = swap.turn_off(machine)?;
    journal.close_with(id, &outcome)?;
    Err(HostError::io("swap to (as root, outside a container)", path, problem))
}

/// A size in whole pages.
pub(crate) fn whole_pages(lever: &str, bytes: u64) -> Result<u64, HostError> {
    let page = calls::page_bytes() as u64;
    let bytes = bytes / page * page;
    if bytes >= LEAST_BYTES {
        return Ok(bytes);
    }
    Err(HostError::SettingValue {
        name: lever.to_owned(),
        value: bytes.to_string(),
        form: format!("a size from {LEAST_BYTES} bytes"),
    })
}

/// Makes a file with a swap header.
fn make(path: &Path, bytes: u64) -> io::Result<File> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    files::allocate(&file, bytes)?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header(bytes, "")?)?;
    file.sync_all()?;
    Ok(file)
}

/// The page that mkswap(8) writes: `union swap_header` of `linux/swap.h`. The label has at most [`LABEL_BYTES`] bytes.
pub(crate) fn header(bytes: u64, label: &str) -> io::Result<Vec<u8>> {
    let page = calls::page_bytes();
    let last_page = u32::try_from(bytes / page as u64 - 1).map_err(|_| io::ErrorKind::FileTooLarge)?;
    let mut header = vec![0u8; page];
    header[1024..1028].copy_from_slice(&1u32.to_ne_bytes());
    header[1028..1032].copy_from_slice(&last_page.to_ne_bytes());
    header[LABEL_AT..LABEL_AT + label.len()].copy_from_slice(label.as_bytes());
    header[page - SIGNATURE.len()..].copy_from_slice(SIGNATURE);
    Ok(header)
}

/// The label of a swap header, if the page is one.
pub(crate) fn label(page: &[u8]) -> Option<&[u8]> {
    page.ends_with(SIGNATURE).then(|| &page[LABEL_AT..LABEL_AT + LABEL_BYTES])
}

impl SwapFile {
    /// Finds it in the kernel's list by inode: its folder may have been renamed, and the list is the same in all mount
    /// namespaces while paths differ.
    fn listed(&self, machine: &Machine) -> Result<Listed, HostError> {
        let all = swaps(machine)?;
        let is_it = |swap: &Swap| {
            fs::metadata(&swap.path).is_ok_and(|m| {
                m.is_file() && m.ino() == self.inode && self.device.is_none_or(|device| device == m.dev())
            })
        };
        if let Some(found) = all.iter().find(|swap| is_it(swap)) {
            return Ok(Listed::Here(found.clone()));
        }
        // The size without the header page: `swapon` of mm/swapfile.c.
        let size = self.bytes.saturating_sub(calls::page_bytes() as u64);
        let may_be = |swap: &&Swap| swap.bytes == size && !swap.path.exists();
        Ok(all.iter().find(may_be).map_or(Listed::No, |swap| Listed::Unseen(swap.path.clone())))
    }

    /// Stops swapping to the file; the kernel reads its pages back first.
    ///
    /// # Errors
    /// `/proc/swaps` cannot be read.
    fn turn_off(&self, machine: &Machine) -> Result<Outcome, HostError> {
        let swap = match self.listed(machine)? {
            Listed::Here(swap) => swap,
            Listed::No => return Ok(Outcome::restored("nothing is swapped to it")),
            Listed::Unseen(path) => {
                return Ok(Outcome::failed(format!(
                    "{} of /proc/swaps has its size and cannot be seen from here: run `mydyno host restore` where it can, or \
                     `swapoff` it there",
                    path.display()
                )));
            }
        };
        let available = machine.available_bytes()?;
        if swap.used > 0 && swap.used + MEMORY_KEPT > available {
            return Ok(Outcome::failed(format!(
                "{} bytes are swapped to it, only {available} bytes of memory are free, and {MEMORY_KEPT} are to stay free: \
                 end what needs it, and run `mydyno host restore`",
                swap.used
            )));
        }
        Ok(match calls::mounts::swap_off(&swap.path) {
            Ok(()) => Outcome::restored("turned off"),
            Err(e) => Outcome::failed(format!("cannot turn it off: {e}: run it as root")),
        })
    }
}

impl Change for SwapFile {
    fn kind(&self) -> &str {
        "swap"
    }

    fn what(&self) -> String {
        format!("swap file {}", self.path.display())
    }

    fn key(&self) -> String {
        format!("swap:{}", self.path.display())
    }

    fn was(&self) -> Value {
        Value::from("off")
    }

    fn now(&self) -> Value {
        Value::from(format!("{} bytes", self.bytes))
    }

    fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        let here = machine.namespace("mnt");
        (self.namespace.is_some() && self.namespace != here).then(|| {
            "it was made in another mount namespace: run `mydyno host restore` there, or with --all if that one is gone"
                .to_owned()
        })
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.turn_off(context.machine)?)
    }
}

/// Whether the kernel swaps to the file.
enum Listed {
    /// It does, under this path.
    Here(Swap),
    /// Unknown: an entry has its size and a path that does not exist in this namespace.
    Unseen(PathBuf),
    /// It does not.
    No,
}

/// A line of proc_swaps(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Swap {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) used: u64,
}

/// Files and devices that are swapped to.
pub(crate) fn swaps(machine: &Machine) -> Result<Vec<Swap>, HostError> {
    let path = machine.proc().join("swaps");
    let text = fs::read_to_string(&path).map_err(|e| HostError::io("read", &path, e))?;
    Ok(text.lines().skip(1).filter_map(parse_swap).collect())
}

fn parse_swap(line: &str) -> Option<Swap> {
    let mut fields = line.split_ascii_whitespace();
    let path = mydyno_linux::mounts::unescape(fields.next()?).into();
    let kib = |text: &str| text.parse::<u64>().ok()?.checked_mul(1024);
    Some(Swap { path, bytes: kib(fields.nth(1)?)?, used: kib(fields.next()?)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_swaps_are_read() {
        let line = "/a\\040b/swap                            file\t\t16380\t\t12\t\t-2";
        let swap = Swap { path: "/a b/swap".into(), bytes: 16380 << 10, used: 12 << 10 };
        assert_eq!(parse_swap(line), Some(swap));
        assert_eq!(parse_swap("/x file"), None);
    }
}
