//! The state of one file system: free inodes, recorded errors, and how it writes.

use std::os::unix::fs::FileExt;

use serde_json::Value;

use mydyno_linux::calls::files;

use crate::mounts::Mount;
use crate::parse::number;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source, reason};

/// Puts the facts of the file system that holds `path`, which is reached as `reached`. `device` is the kernel's name
/// of its block device. Facts that this kind of file system does not have are left out.
pub fn read(
    role: &str,
    source: &Source,
    mount: &Read<Mount>,
    device: Option<&str>,
    reached: &Read<String>,
    readings: &Readings,
) {
    let id = |name: &str| format!("storage.{role}.{name}");
    let Ok(mount) = mount else { return };
    // File systems that allocate inodes on demand report none.
    if let Some(space) =
        reached.as_ref().ok().and_then(|path| source.space(path).ok()).filter(|s| s.inodes > 0)
    {
        readings.put(&id("inodes"), "statvfs(3)", Ok(space.inodes));
        readings.put(&id("inodes_free"), "statvfs(3)", Ok(space.inodes_free));
    }
    match (mount.kind.as_str(), device) {
        ("ext2" | "ext3" | "ext4", Some(device)) => ext(&id, source, device, reached, readings),
        ("btrfs", Some(device)) => {
            btrfs_errors(&id, source, device, readings);
            let path = reached.clone().and_then(|path| no_cow(source, &path));
            readings.put(&id("no_cow"), "FS_IOC_GETFLAGS of ioctl_iflags(2)", path);
        }
        _ => {}
    }
}

/// Errors and the journal of the ext4 driver, which mounts ext2 and ext3 as well (filesystems/ext4 of the kernel).
fn ext(
    id: &dyn Fn(&str) -> String,
    source: &Source,
    device: &str,
    reached: &Read<String>,
    readings: &Readings,
) {
    let folder = format!("/sys/fs/ext4/{device}");
    if !source.exists(&folder) {
        return;
    }
    readings.read(&id("errors"), &format!("{folder}/errors_count"), |p| number::<u64>(&source.read(p)?, p));
    // The mount table shows `errors=` only when the mount set it; this file also shows the superblock's value.
    let options = format!("/proc/fs/ext4/{device}/options");
    let on_error = source.read(&options).and_then(|text| {
        let found = text.lines().find_map(|line| line.strip_prefix("errors="));
        found.map(str::to_owned).ok_or_else(|| Missing::Absent(format!("{options} has no line errors=")))
    });
    readings.put(&id("on_error"), options, on_error);
    let (from, found) = features(source, device, reached);
    readings.put(
        &id("extents"),
        from.clone(),
        found.clone().map(|(_, incompatible)| incompatible & EXTENTS != 0),
    );
    readings.put(&id("dir_index"), from, found.map(|(compatible, _)| compatible & DIR_INDEX != 0));
    // Only a file system with a journal has a task that writes it.
    let journal = format!("{folder}/journal_task");
    let there = source.list(&folder).map(|_| match source.read(&journal) {
        Ok(text) => text.chars().next().is_some_and(|c| c.is_ascii_digit()),
        Err(_) => false,
    });
    readings.put(&id("journal"), journal, there);
}

/// Bits of the superblock's features (filesystems/ext4 of the kernel, super block).
const DIR_INDEX: u32 = 0x20;
const EXTENTS: u32 = 0x40;

/// The compatible and the incompatible features of an ext4, by its superblock or, where the device is withheld, by the
/// kernel; with the name of that source.
fn features(source: &Source, device: &str, reached: &Read<String>) -> (String, Read<(u32, u32)>) {
    let path = format!("/dev/{device}");
    let found = superblock(source, &path);
    let told = match (&found, reached) {
        (Err(_), Ok(reached)) if source.is_live() => files::ext4_features(&source.path(reached)).ok(),
        _ => None,
    };
    match told {
        Some(told) => ("EXT4_IOC_GET_TUNE_SB_PARAM".to_owned(), Ok(told)),
        None => (path, found),
    }
}

/// The same features in the superblock, which begins at byte 1024 of the device.
fn superblock(source: &Source, path: &str) -> Read<(u32, u32)> {
    let mut block = [0_u8; 1024];
    let file = source.open(path)?;
    file.read_exact_at(&mut block, 1024).map_err(|e| Missing::Error(format!("{path}: {}", reason(&e))))?;
    let word = |at: usize| u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]]);
    match block[0x38..0x3a] {
        [0x53, 0xef] => Ok((word(0x5c), word(0x60))),
        _ => Err(Missing::Error(format!("{path} does not begin with the superblock of an ext4"))),
    }
}

/// Sum of all kinds of errors of all devices of the file system.
fn btrfs_errors(id: &dyn Fn(&str) -> String, source: &Source, device: &str, readings: &Readings) {
    let root = "/sys/fs/btrfs";
    let Ok(all) = source.list(root) else { return };
    let ours = all.iter().find(|fs| source.exists(&format!("{root}/{fs}/devices/{device}")));
    let Some(fs) = ours else { return };
    let folder = format!("{root}/{fs}/devinfo");
    let mut sum: Read<u64> = Ok(0);
    for info in source.list(&folder).unwrap_or_default() {
        let path = format!("{folder}/{info}/error_stats");
        sum = sum.and_then(|sum| {
            let text = source.read(&path)?;
            let counts = text.lines().filter_map(|l| l.split_ascii_whitespace().nth(1)?.parse::<u64>().ok());
            Ok(counts.fold(sum, u64::saturating_add))
        });
    }
    // The files exist since Linux 5.14.
    if !matches!(sum, Err(Missing::Absent(_))) {
        readings.put::<Value>(&id("errors"), format!("{folder}/*/error_stats"), sum.map(Value::from));
    }
}

fn no_cow(source: &Source, path: &str) -> Read<bool> {
    if !source.is_live() {
        return Err(Missing::Absent(format!("{path}: read from a copy, not from a live host")));
    }
    files::no_cow(&source.path(path)).map_err(|e| Missing::Error(format!("{path}: {}", reason(&e))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collectors::storage::COLLECTOR;
    use crate::tree::tree;
    use serde_json::json;

    fn unreached() -> Read<String> {
        Err(Missing::Absent("no folder".to_owned()))
    }

    #[test]
    fn errors_and_the_journal_of_an_ext4_are_those_of_its_folder_in_sysfs() {
        let (tree, source) = tree(&[("sys/fs/ext4/sdb1/errors_count", "3\n")]);
        let readings = Readings::new(&COLLECTOR);
        let id = |name: &str| format!("storage.datadir.{name}");
        ext(&id, &source, "sdb1", &unreached(), &readings);
        assert_eq!(readings.value("storage.datadir.errors"), Some(json!(3)));
        assert_eq!(readings.value("storage.datadir.journal"), Some(json!(false)));
        tree.file("sys/fs/ext4/sdb1/journal_task", "77\n");
        let readings = Readings::new(&COLLECTOR);
        ext(&id, &source, "sdb1", &unreached(), &readings);
        assert_eq!(readings.value("storage.datadir.journal"), Some(json!(true)));
    }

    #[test]
    fn errors_of_all_devices_of_a_btrfs_are_counted_together() {
        let (tree, source) = tree(&[
            ("sys/fs/btrfs/1234/devinfo/1/error_stats", "write_errs 2\nread_errs 1\n"),
            ("sys/fs/btrfs/1234/devinfo/2/error_stats", "write_errs 0\ncorruption_errs 4\n"),
        ]);
        tree.folder("sys/fs/btrfs/1234/devices/sdb");
        let readings = Readings::new(&COLLECTOR);
        btrfs_errors(&|name: &str| format!("storage.datadir.{name}"), &source, "sdb", &readings);
        assert_eq!(readings.value("storage.datadir.errors"), Some(json!(7)));
    }
}
