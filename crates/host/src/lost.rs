//! Changes that the journal has lost, found by the marks that they carry: an emptied or damaged journal must not leave a server, a
//! mount or a loop device behind.
//!
//! Only what lies below a folder with mydyno's mark, or holds a process that such a folder names, counts as ours. Kernel settings
//! carry no mark: nothing but the journal tells what they were.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mydyno_journal::Journal;
use mydyno_journal::Lease;
use mydyno_journal::Machine;
use mydyno_linux::Mount;
use mydyno_linux::block;
use mydyno_linux::cgroup;

use crate::cgroup::MadeGroup;
use crate::emulated::control;
use crate::error::HostError;
use crate::folder::{MarkedFolder, is_mark, is_marked};
use crate::loops::AttachedLoop;
use crate::mounts::Mounted;
use crate::process::StartedProcess;
use crate::swap::{self, SwapFile};
use mydyno_linux::calls;
/// Hexadecimal digits of a random mark.
const MARK_DIGITS: usize = 32;

/// Adds entries for a marked folder that the journal has lost, and for the loop devices, mounts and swap files below
/// it, the process that works in it, and that process's control group: in the order in which they were made, so that a
/// restore, newest first, removes them in reverse.
///
/// # Errors
/// The folder has no mark, the journal has an entry for it, or the journal, `/proc` or `/sys` cannot be read or
/// written.
pub fn adopt(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    path: &Path,
    process: Option<StartedProcess>,
) -> Result<(), HostError> {
    let machine = lease.machine();
    journal.record(lease, purpose, MarkedFolder::found(path)?)?;
    let (loops, mounts) = (loops_below(machine, path)?, machine.mounts()?);
    let below = |line: &&Mount| line.point.starts_with(path);
    let served = mounts.iter().filter(below).filter(|line| control::is_source(&line.source));
    let on_loops = mounts
        .iter()
        .filter(below)
        .filter(|line| loops.iter().any(|attached| attached.device == line.source));
    for line in served {
        journal.record(lease, purpose, Mounted::found(machine, line))?;
    }
    for attached in loops.iter().cloned() {
        journal.record(lease, purpose, attached)?;
    }
    for line in on_loops {
        journal.record(lease, purpose, Mounted::found(machine, line))?;
    }
    for swap in swap_files_below(machine, path)? {
        journal.record(lease, purpose, swap)?;
    }
    if let Some(process) = process {
        for group in groups_of(machine, process.identity.pid)? {
            journal.record(lease, purpose, group)?;
        }
        journal.record(lease, purpose, process)?;
    }
    Ok(())
}

/// Marked folders directly below a folder whose names `wanted` accepts. A folder that does not exist contains none.
///
/// # Errors
/// The folder cannot be read.
pub fn marked_below(folder: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, HostError> {
    let entries = match fs::read_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(vec![]),
        entries => entries.map_err(|e| HostError::io("read", folder, e))?,
    };
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(&wanted))
        .filter(|path| is_marked(path))
        .collect();
    found.sort();
    Ok(found)
}

/// Loop devices that have a label of mydyno's and whose file is below a folder.
fn loops_below(machine: &Machine, folder: &Path) -> Result<Vec<AttachedLoop>, HostError> {
    let devices =
        block::devices(machine.sys()).map_err(|e| HostError::io("read", machine.sys().join("block"), e))?;
    let mut found = Vec::new();
    for name in devices {
        let Some(backing) = block::backing_file(machine.sys(), &name).filter(|f| f.starts_with(folder))
        else {
            continue;
        };
        let device = Path::new("/dev").join(name);
        let handle = File::open(&device).map_err(|e| HostError::io("open", &device, e))?;
        let attached = calls::loops::attached(&handle).map_err(|e| HostError::io("ask", &device, e))?;
        let ours = attached.filter(|found| found.label.len() == MARK_DIGITS && is_mark(&found.label));
        found.extend(ours.map(|a| AttachedLoop { device, backing, inode: a.inode, label: a.label }));
    }
    Ok(found)
}

fn swap_files_below(machine: &Machine, folder: &Path) -> Result<Vec<SwapFile>, HostError> {
    let swaps = match swap::swaps(machine) {
        // A kernel without swap has no such file.
        Err(HostError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => vec![],
        swaps => swaps?,
    };
    let below = swaps.into_iter().filter(|swap| swap.path.starts_with(folder));
    below
        .map(|swap| {
            let meta = fs::metadata(&swap.path).map_err(|e| HostError::io("read", &swap.path, e))?;
            Ok(SwapFile {
                inode: meta.ino(),
                device: Some(meta.dev()),
                bytes: meta.len(),
                namespace: machine.namespace("mnt"),
                path: swap.path,
            })
        })
        .collect()
}

/// The control groups of mydyno's that a process is in: cgroups(7), `/proc/PID/cgroup`.
fn groups_of(machine: &Machine, pid: u32) -> Result<Vec<MadeGroup>, HostError> {
    let text = fs::read_to_string(machine.proc().join(format!("{pid}/cgroup"))).unwrap_or_default();
    let mut names: Vec<&str> = cgroup::memberships(&text).filter_map(|one| group_name(one.path)).collect();
    names.sort_unstable();
    names.dedup();
    let mounts = machine.mounts()?;
    let trees = || mounts.iter().filter(|line| matches!(line.kind.as_str(), "cgroup" | "cgroup2"));
    let folders = |name: &str| -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            trees().map(|line| line.point.join(name)).filter(|f| f.is_dir()).collect();
        all.dedup();
        all
    };
    Ok(names.iter().map(|name| MadeGroup { name: (*name).to_owned(), folders: folders(name) }).collect())
}

/// The name of mydyno's group at the end of a path, as in `/mydyno-2f…`.
fn group_name(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let mark = name.strip_prefix("mydyno-")?;
    (mark.len() == MARK_DIGITS && is_mark(mark)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_groups_with_a_whole_mark_are_ours() {
        let mark = "2f".repeat(16);
        let name = format!("mydyno-{mark}");
        assert_eq!(group_name(&format!("/{name}")), Some(name.as_str()));
        assert_eq!(group_name(&format!("/docker/x/{name}")), Some(name.as_str()));
        assert_eq!(group_name("/mydyno-2f"), None);
        assert_eq!(group_name("/system.slice/mydyno.service"), None);
    }
}
