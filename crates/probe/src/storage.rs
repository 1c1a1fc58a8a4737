//! What the kernel says of the way from a folder to stable storage: file system, devices below, who flushes what.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mydyno_host::Machine;
use mydyno_model::probe::{BlockDevice, Storage};

use crate::error::ProbeError;

/// Devices may lie on files that lie on devices; nobody stacks them deeper.
const DEEPEST: usize = 8;

/// File systems that keep everything in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Looks at the way below a folder. `sys` is where sysfs is mounted.
///
/// # Errors
/// The folder or the list of mounts cannot be read.
pub fn look(machine: &Machine, sys: &Path, folder: &Path) -> Result<Storage, ProbeError> {
    let folder = fs::canonicalize(folder).map_err(ProbeError::io("find", folder))?;
    let mount = machine
        .mounts()?
        .into_iter()
        .filter(|mount| folder.starts_with(&mount.point))
        // The last of those mounted on one point is the one that is seen.
        .enumerate()
        .max_by_key(|(i, mount)| (mount.point.components().count(), *i))
        .map(|(_, mount)| mount);
    let Some(mount) = mount else {
        return Err(ProbeError::Lacks {
            lack: format!("no mount of /proc/self/mountinfo holds {}", folder.display()),
            way_out: "choose another folder with --folder".to_owned(),
        });
    };
    let mut devices = Vec::new();
    if let Some(number) = device_number(&folder, &mount.source) {
        follow(machine, sys, &number, &mut devices);
    }
    let options = [mount.options.as_str(), mount.super_options.as_str()].join(",");
    let (flushes_sent, flushes_why) = flushes(&mount.kind, &options, devices.first());
    Ok(Storage {
        folder: folder.display().to_string(),
        file_system: mount.kind,
        mount_point: mount.point.display().to_string(),
        mount_options: options,
        devices,
        flushes_sent,
        flushes_why,
    })
}

/// The number of the block device of a file system, as in `259:1`. File systems with several devices (btrfs) have a number of
/// their own, which is no device's; then the source of the mount tells.
fn device_number(folder: &Path, source: &Path) -> Option<String> {
    let show = |device: u64| format!("{}:{}", libc::major(device), libc::minor(device));
    let own = fs::metadata(folder).ok()?.dev();
    if libc::major(own) != 0 {
        return Some(show(own));
    }
    let source = fs::metadata(source).ok().filter(|meta| meta.rdev() != 0)?;
    Some(show(source.rdev()))
}

/// The device of a number and what it lies on.
fn follow(machine: &Machine, sys: &Path, number: &str, devices: &mut Vec<BlockDevice>) {
    if devices.len() >= DEEPEST {
        return;
    }
    let Ok(folder) = fs::canonicalize(sys.join("dev/block").join(number)) else { return };
    // Queues belong to whole disks.
    let folder = match folder.parent() {
        Some(disk) if folder.join("partition").exists() => disk.to_owned(),
        _ => folder,
    };
    let device = describe(&folder);
    if devices.iter().any(|known| known.name == device.name) {
        return;
    }
    let backing = device.backing_file.clone();
    devices.push(device);
    if let Some(backing) = backing.map(PathBuf::from)
        && let Some(parent) = backing.parent()
        && let Ok(below) = look(machine, sys, parent)
    {
        for device in below.devices {
            if devices.len() < DEEPEST && devices.iter().all(|known| known.name != device.name) {
                devices.push(device);
            }
        }
    }
    for slave in fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten() {
        if let Some(number) = line(&slave.path().join("dev")) {
            follow(machine, sys, &number, devices);
        }
    }
}

fn describe(folder: &Path) -> BlockDevice {
    let queue = |file: &str| line(&folder.join("queue").join(file));
    let flag = |file: &str| queue(file).map(|text| text != "0");
    let chosen = |text: String| {
        let inside = text.split_once('[').and_then(|(_, rest)| rest.split(']').next().map(str::to_owned));
        inside.unwrap_or(text)
    };
    BlockDevice {
        name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        model: line(&folder.join("device/model")),
        rotational: flag("rotational"),
        write_cache: queue("write_cache"),
        fua: flag("fua"),
        scheduler: queue("scheduler").map(chosen),
        backing_file: line(&folder.join("loop/backing_file")),
    }
}

fn line(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether syncs send flushes to the first device. A device that says `write through` is sent none by the kernel:
/// Documentation/block/writeback_cache_control.rst.
fn flushes(kind: &str, options: &str, device: Option<&BlockDevice>) -> (Option<bool>, String) {
    if IN_MEMORY.contains(&kind) {
        return (Some(false), format!("{kind} keeps files in memory: nothing of it survives a reboot"));
    }
    if let Some(option) = options.split(',').find(|o| ["nobarrier", "barrier=0"].contains(o)) {
        return (Some(false), format!("{kind} is mounted with {option}, so it sends none"));
    }
    let Some(device) = device else {
        return (None, format!("{kind} does not show a block device of this host"));
    };
    let name = &device.name;
    match device.write_cache.as_deref() {
        Some("write back") => {
            (Some(true), format!("the kernel takes {name} for a disk with a volatile cache and flushes it"))
        }
        Some("write through") => (
            Some(false),
            format!(
                "the kernel takes {name} for a disk without a volatile cache (queue/write_cache is \"write through\"): either it \
                 has none, or somebody has told the kernel so"
            ),
        ),
        Some(other) => (None, format!("queue/write_cache of {name} is {other:?}")),
        None => (None, format!("{name} has no queue/write_cache (it came with Linux 4.7)")),
    }
}

/// Flushes that the kernel has sent to a device since it was there: field 16 of its `stat`, Linux 5.5.
pub fn flushes_so_far(sys: &Path, device: &str) -> Option<u64> {
    let text = line(&sys.join("block").join(device).join("stat"))?;
    text.split_whitespace().nth(15)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(write_cache: Option<&str>) -> BlockDevice {
        BlockDevice {
            name: "sda".to_owned(),
            model: None,
            rotational: None,
            write_cache: write_cache.map(str::to_owned),
            fua: None,
            scheduler: None,
            backing_file: None,
        }
    }

    #[test]
    fn whether_flushes_are_sent_is_what_kernel_and_mount_say() {
        let sent = |kind, options, cache| flushes(kind, options, Some(&device(cache))).0;
        assert_eq!(sent("ext4", "rw,noatime", Some("write back")), Some(true));
        assert_eq!(sent("ext4", "rw,noatime", Some("write through")), Some(false));
        assert_eq!(sent("ext4", "rw,nobarrier", Some("write back")), Some(false));
        assert_eq!(sent("ext4", "rw,barrier=0", Some("write back")), Some(false));
        assert_eq!(sent("xfs", "rw", None), None);
        assert_eq!(flushes("nfs4", "rw", None).0, None);
        assert_eq!(flushes("tmpfs", "rw", None).0, Some(false));
    }

    #[test]
    fn a_partition_is_described_by_its_disk_and_a_mapped_device_by_what_it_lies_on() {
        let sys = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("devices/sda/queue/write_cache", "write back\n");
        write("devices/sda/queue/rotational", "1\n");
        write("devices/sda/queue/scheduler", "none [mq-deadline] bfq\n");
        write("devices/sda/device/model", "OLD DISK  \n");
        write("devices/sda/sda1/partition", "1\n");
        write("devices/sda/sda1/dev", "8:1\n");
        write("devices/dm-0/queue/write_cache", "write through\n");
        write("block/sda/stat", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17\n");
        let links = sys.path().join("dev/block");
        fs::create_dir_all(&links).unwrap();
        fs::create_dir_all(sys.path().join("devices/dm-0/slaves")).unwrap();
        let link = |to: &str, at: PathBuf| {
            std::os::unix::fs::symlink(sys.path().join("devices").join(to), at).unwrap();
        };
        link("sda/sda1", links.join("8:1"));
        link("dm-0", links.join("252:0"));
        link("sda/sda1", sys.path().join("devices/dm-0/slaves/sda1"));
        let machine = Machine::real().unwrap();
        let mut found = Vec::new();
        follow(&machine, sys.path(), "252:0", &mut found);
        let names: Vec<&str> = found.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda"]);
        assert_eq!(found[1].model.as_deref(), Some("OLD DISK"));
        assert_eq!(found[1].scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!((found[1].rotational, found[1].write_cache.as_deref()), (Some(true), Some("write back")));
        assert_eq!(flushes_so_far(sys.path(), "sda"), Some(16));
        assert_eq!(flushes_so_far(sys.path(), "sdb"), None);
    }
}
