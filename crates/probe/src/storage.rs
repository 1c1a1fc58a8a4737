//! The path from a folder to stable storage as the kernel reports it: file system, devices below, and which of them
//! send flushes.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use mydyno_host::emulated::{LABEL, Pace};
use mydyno_host::{Machine, emulated};
use mydyno_linux::mounts::holding;
use mydyno_model::probe::{BlockDevice, Storage};

use crate::error::ProbeError;

/// Depth limit: devices may lie on files, which lie on devices again.
const DEEPEST: usize = 8;

/// File systems in memory.
const IN_MEMORY: [&str; 2] = ["tmpfs", "ramfs"];

/// Determines the storage below a folder. `sys` is the mount point of sysfs.
///
/// # Errors
/// The folder or the mount table cannot be read.
pub fn look(machine: &Machine, sys: &Path, folder: &Path) -> Result<Storage, ProbeError> {
    let folder = fs::canonicalize(folder).map_err(ProbeError::io("find", folder))?;
    let mounts = machine.mounts()?;
    let Some(mount) = holding(&mounts, &folder).cloned() else {
        return Err(ProbeError::Missing {
            missing: format!("no mount of /proc/self/mountinfo holds {}", folder.display()),
            remedy: "choose another folder with --folder".to_owned(),
        });
    };
    let mut below = Below::default();
    if let Some(number) = device_number(&folder, &mount.source) {
        follow(machine, sys, &number, &mut below);
    }
    let options = [mount.options.as_str(), mount.super_options.as_str()].join(",");
    let (flushes_sent, flushes_why) = flushes(&mount.kind, &options, &below);
    let devices = below.devices;
    Ok(Storage {
        disk: emulated::below(machine, &folder).map(|_| LABEL.to_owned()),
        folder: folder.display().to_string(),
        file_system: mount.kind,
        mount_point: mount.point.display().to_string(),
        mount_options: options,
        devices,
        flushes_sent,
        flushes_why,
    })
}

/// The pace of the emulated disk that a folder is on, from now on; `None` on another disk.
pub(crate) fn pace(machine: &Machine, folder: &Path) -> Pace {
    Pace::of(emulated::below(machine, folder).into_iter().collect())
}

/// The number of a file system's block device, as in `259:1`. File systems with several devices (btrfs) report a number
/// that belongs to no device; for these the source of the mount determines it.
fn device_number(folder: &Path, source: &Path) -> Option<String> {
    let show = |device: u64| format!("{}:{}", libc::major(device), libc::minor(device));
    let own = fs::metadata(folder).ok()?.dev();
    if libc::major(own) != 0 {
        return Some(show(own));
    }
    let source = fs::metadata(source).ok().filter(|meta| meta.rdev() != 0)?;
    Some(show(source.rdev()))
}

/// The devices below a file system.
#[derive(Debug, Default)]
struct Below {
    devices: Vec<BlockDevice>,
    /// For each file system that holds a device's file: whether its syncs send flushes, and why.
    files: Vec<(Option<bool>, String)>,
}

/// Adds the device with a number and the devices that it lies on.
fn follow(machine: &Machine, sys: &Path, number: &str, below: &mut Below) {
    let devices = &mut below.devices;
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
    let (name, backing) = (device.name.clone(), device.backing_file.clone());
    devices.push(device);
    if let Some(backing) = backing.map(PathBuf::from)
        && let Some(parent) = backing.parent()
    {
        match look(machine, sys, parent) {
            Ok(storage) => {
                for device in storage.devices {
                    if devices.len() < DEEPEST && devices.iter().all(|known| known.name != device.name) {
                        devices.push(device);
                    }
                }
                let why = format!("{} lies on {}: {}", name, storage.mount_point, storage.flushes_why);
                below.files.push((storage.flushes_sent, why));
            }
            Err(error) => below.files.push((None, format!("{name} lies on {}: {error}", parent.display()))),
        }
    }
    for slave in fs::read_dir(folder.join("slaves")).into_iter().flatten().flatten() {
        if let Some(number) = line(&slave.path().join("dev")) {
            follow(machine, sys, &number, below);
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

/// Whether syncs send flushes to all devices. The kernel sends none to a device that reports `write through`:
/// Documentation/block/writeback_cache_control.rst. A device or file system that does not pass flushes on shields
/// everything below it.
fn flushes(kind: &str, options: &str, below: &Below) -> (Option<bool>, String) {
    if IN_MEMORY.contains(&kind) {
        return (Some(false), format!("{kind} keeps files in memory: nothing of it survives a reboot"));
    }
    if let Some(option) = options.split(',').find(|o| ["nobarrier", "barrier=0"].contains(o)) {
        return (Some(false), format!("{kind} is mounted with {option}, so it sends none"));
    }
    if below.devices.is_empty() {
        return (None, format!("{kind} does not show a block device of this host"));
    }
    let ways: Vec<_> = below.devices.iter().map(of_device).chain(below.files.iter().cloned()).collect();
    // One that sends none decides; after it, one whose behaviour is unknown.
    let first = |sent| ways.iter().find(|way| way.0 == sent).cloned();
    first(Some(false)).or_else(|| first(None)).unwrap_or_else(|| {
        let names: Vec<&str> = below.devices.iter().map(|device| device.name.as_str()).collect();
        let why = match names[..] {
            [name] => format!("the kernel takes {name} for a disk with a volatile cache and flushes it"),
            _ => format!(
                "the kernel takes {} for disks with volatile caches and flushes them",
                names.join(", ")
            ),
        };
        (Some(true), why)
    })
}

/// Whether the kernel sends flushes to a device.
fn of_device(device: &BlockDevice) -> (Option<bool>, String) {
    let name = &device.name;
    match device.write_cache.as_deref() {
        Some("write back") => (Some(true), format!("the kernel flushes {name}")),
        Some("write through") => (
            Some(false),
            format!(
                "the kernel takes {name} for a disk without a volatile cache (queue/write_cache is \"write through\"): either it \
                 has none, or the kernel was told so"
            ),
        ),
        Some(other) => (None, format!("queue/write_cache of {name} is {other:?}")),
        None => (None, format!("{name} has no queue/write_cache (it came with Linux 4.7)")),
    }
}

/// Number of flushes that the kernel has sent to a device since it appeared: field 16 of its `stat`, Linux 5.5.
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
        let on = |devices: Vec<BlockDevice>| Below { devices, files: vec![] };
        let sent = |kind, options, cache| flushes(kind, options, &on(vec![device(cache)])).0;
        assert_eq!(sent("ext4", "rw,noatime", Some("write back")), Some(true));
        assert_eq!(sent("ext4", "rw,noatime", Some("write through")), Some(false));
        assert_eq!(sent("ext4", "rw,nobarrier", Some("write back")), Some(false));
        assert_eq!(sent("ext4", "rw,barrier=0", Some("write back")), Some(false));
        assert_eq!(sent("xfs", "rw", None), None);
        assert_eq!(flushes("nfs4", "rw", &Below::default()).0, None);
        assert_eq!(flushes("tmpfs", "rw", &Below::default()).0, Some(false));
    }

    #[test]
    fn flushes_reach_the_disk_only_if_all_on_the_way_pass_them_on() {
        let named = |name: &str, cache: Option<&str>| BlockDevice { name: name.to_owned(), ..device(cache) };
        let (back, through) = (Some("write back"), Some("write through"));
        let of = |caches: &[Option<&str>], files: &[Option<bool>]| {
            let devices = caches.iter().zip(["loop0", "dm-0", "vda"]).map(|(c, n)| named(n, *c)).collect();
            let files = files.iter().map(|sent| (*sent, format!("the file below: {sent:?}"))).collect();
            flushes("ext4", "rw", &Below { devices, files })
        };
        let (sent, why) = of(&[back, back, back], &[Some(true)]);
        assert!(sent == Some(true) && why.contains("loop0, dm-0, vda"), "{why}");
        let (sent, why) = of(&[back, back, through], &[Some(false)]);
        assert!(sent == Some(false) && why.contains("vda"), "{why}");
        let (sent, why) = of(&[back, None, back], &[Some(true)]);
        assert!(sent.is_none() && why.contains("dm-0"), "{why}");
        // As for a file system without barriers that holds the file.
        let (sent, why) = of(&[back, None], &[Some(false)]);
        assert!(sent == Some(false) && why.contains("the file below"), "{why}");
        assert_eq!(of(&[back], &[None]).0, None);
    }

    /// A machine with these mounts, where TOP is its folder, and its sysfs.
    fn made_up(temp: &Path, mounts: &str) -> Machine {
        let write = |path: &str, text: &str| {
            let path = temp.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/sys/kernel/hostname", "db1\n");
        write("proc/sys/kernel/random/boot_id", "b1\n");
        write("proc/self/mountinfo", &mounts.replace("TOP", temp.to_str().unwrap()));
        fs::create_dir_all(temp.join("proc/self/ns")).unwrap();
        std::os::unix::fs::symlink("pid:[1]", temp.join("proc/self/ns/pid")).unwrap();
        Machine::at(temp.join("proc"), temp.join("sys"), temp).unwrap()
    }

    #[test]
    fn a_file_system_without_barriers_below_a_loop_device_takes_its_flushes() {
        let temp = tempfile::tempdir().unwrap();
        let temp = temp.path().canonicalize().unwrap();
        let disks = temp.join("disks");
        fs::create_dir_all(&disks).unwrap();
        let loop7 = temp.join("sys/dev/block/7:7");
        fs::create_dir_all(loop7.join("queue")).unwrap();
        fs::create_dir_all(loop7.join("loop")).unwrap();
        fs::write(loop7.join("queue/write_cache"), "write back\n").unwrap();
        fs::write(loop7.join("loop/backing_file"), format!("{}/a\n", disks.display())).unwrap();
        let verdict = |options: &str| {
            let mounts = format!("1 0 8:1 / TOP/disks rw - ext4 /dev/sda1 {options}\n");
            let _ = fs::remove_dir_all(temp.join("proc"));
            let machine = made_up(&temp, &mounts);
            let mut below = Below::default();
            follow(&machine, &temp.join("sys"), "7:7", &mut below);
            flushes("xfs", "rw", &below)
        };
        let (sent, why) = verdict("rw,nobarrier");
        assert!(sent == Some(false) && why.contains("nobarrier"), "{why}");
        assert_eq!(verdict("rw").0, None);
    }

    #[test]
    fn a_folder_on_an_emulated_disk_is_labelled() {
        let temp = tempfile::tempdir().unwrap();
        let temp = temp.path().canonicalize().unwrap();
        fs::create_dir_all(temp.join("data")).unwrap();
        fs::create_dir_all(temp.join("served")).unwrap();
        fs::create_dir_all(temp.join("sys/block/loop7/loop")).unwrap();
        let file = temp.join("sys/block/loop7/loop/backing_file");
        fs::write(file, format!("{}/served/disk\n", temp.display())).unwrap();
        let label = |served: &str| {
            let mounts = format!(
                "1 0 7:7 / TOP/data rw - ext4 /dev/loop7 rw\n2 0 0:50 / TOP/served rw - fuse {served} rw\n"
            );
            let _ = fs::remove_dir_all(temp.join("proc"));
            let machine = made_up(&temp, &mounts);
            look(&machine, &temp.join("sys"), &temp.join("data")).unwrap().disk
        };
        assert_eq!(label("mydyno-disk-1"), Some("emulated disk".to_owned()));
        assert_eq!(label("sshfs"), None);
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
        let mut below = Below::default();
        follow(&machine, sys.path(), "252:0", &mut below);
        let found = below.devices;
        let names: Vec<&str> = found.iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["dm-0", "sda"]);
        assert_eq!(found[1].model.as_deref(), Some("OLD DISK"));
        assert_eq!(found[1].scheduler.as_deref(), Some("mq-deadline"));
        assert_eq!((found[1].rotational, found[1].write_cache.as_deref()), (Some(true), Some("write back")));
        assert_eq!(flushes_so_far(sys.path(), "sda"), Some(16));
        assert_eq!(flushes_so_far(sys.path(), "sdb"), None);
    }
}
