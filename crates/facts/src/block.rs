//! Block devices, walked down from a file system to the physical ones.

use crate::mounts;
use crate::source::{Missing, Read, Source};

/// Depth limit: a deeper stack can only be a loop device whose file lies on itself.
const DEEPEST: usize = 16;

/// Where a device's files are.
pub fn folder(name: &str) -> String {
    format!("/sys/class/block/{name}")
}

/// The kernel's name of the device with these numbers.
///
/// # Errors
/// There is no such block device, as for a file system without one.
pub fn name_of(source: &Source, (major, minor): (u32, u32)) -> Read<String> {
    let link = source.link(&format!("/sys/dev/block/{major}:{minor}"))?;
    link.rsplit('/')
        .next()
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .ok_or_else(|| Missing::Error(format!("/sys/dev/block/{major}:{minor} leads to {link:?}")))
}

/// The name of a device given by a path such as /dev/sda1 or /dev/mapper/data.
///
/// # Errors
/// No block device has that path.
pub fn name_of_path(source: &Source, path: &str) -> Read<String> {
    if source.is_live()
        && let Ok(stat) = source.stat(path)
        && stat.mode & libc::S_IFMT == libc::S_IFBLK
    {
        return name_of(source, stat.special);
    }
    let last = path.rsplit('/').next().unwrap_or_default();
    if source.exists(&folder(last)) && !last.is_empty() {
        return Ok(last.to_owned());
    }
    let mapped = source.list("/sys/class/block").unwrap_or_default().into_iter().find(|name| {
        source.read(&format!("{}/dm/name", folder(name))).is_ok_and(|dm| path == format!("/dev/mapper/{dm}"))
    });
    mapped.ok_or_else(|| Missing::Absent(format!("no block device is known by the path {path}")))
}

/// A stack of devices, from a file system's device to the disks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stack {
    /// All devices, each before those that it lies on.
    pub devices: Vec<String>,
    /// Those that lie on nothing: disks, as far as this kernel sees them.
    pub physical: Vec<String>,
}

/// Walks down from a device.
///
/// # Errors
/// The devices below one of them cannot be determined, so the physical devices would be a guess.
pub fn stack(source: &Source, top: &str) -> Read<Stack> {
    let mut stack = Stack::default();
    let mut open = vec![(top.to_owned(), 0)];
    while let Some((name, depth)) = open.pop() {
        if stack.devices.contains(&name) {
            continue;
        }
        if depth > DEEPEST {
            return Err(Missing::Error(format!("{top} lies on more than {DEEPEST} layers of devices")));
        }
        let below = below(source, &name)?;
        if below.is_empty() {
            stack.physical.push(name.clone());
        }
        stack.devices.push(name);
        open.extend(below.into_iter().rev().map(|name| (name, depth + 1)));
    }
    Ok(stack)
}

/// The devices that a device lies on; none for a disk.
///
/// # Errors
/// The device is not there, or its backing file cannot be followed.
pub fn below(source: &Source, name: &str) -> Read<Vec<String>> {
    let folder = folder(name);
    if !source.exists(&folder) {
        return Err(Missing::Absent(format!("{folder} is not there")));
    }
    if source.exists(&format!("{folder}/partition")) {
        return Ok(vec![whole_disk(source, name)?]);
    }
    let slaves = source.list(&format!("{folder}/slaves")).unwrap_or_default();
    if !slaves.is_empty() {
        return Ok(slaves);
    }
    match source.read(&format!("{folder}/loop/backing_file")) {
        Ok(file) => Ok(vec![under_file(source, name, &file)?]),
        // Not a loop device, or one that has no file.
        Err(_) => Ok(Vec::new()),
    }
}

/// The disk of a partition: the folder that holds the partition's own.
fn whole_disk(source: &Source, name: &str) -> Read<String> {
    let path = folder(name);
    if let Ok(link) = source.link(&path)
        && let Some(parent) = link.rsplit('/').nth(1)
    {
        return Ok(parent.to_owned());
    }
    let disks = source.list("/sys/block")?;
    let disk = disks.into_iter().find(|disk| source.exists(&format!("/sys/block/{disk}/{name}")));
    disk.ok_or_else(|| Missing::Error(format!("{path} is a partition of no known disk")))
}

/// The device under the file of a loop device.
fn under_file(source: &Source, name: &str, file: &str) -> Read<String> {
    let lost = |why: String| Missing::Absent(format!("{name} is backed by {file}, {why}"));
    let mounts = mounts::of(source, "self")?;
    let by_id = source.mount_id(file).ok().and_then(|id| mounts.iter().find(|m| m.id == id));
    let mount = by_id.or_else(|| mounts::holding(&mounts, file));
    let mount = mount.ok_or_else(|| lost("which no mount holds".to_owned()))?;
    if mount.device.0 != 0 {
        return name_of(source, mount.device);
    }
    if mount.from.starts_with("/dev/") {
        return name_of_path(source, &mount.from);
    }
    Err(lost(format!("which is on {}, a file system without a block device", mount.kind)))
}

/// The type of a device in the words of lsblk: `disk`, `part`, `lvm`, `crypt`, `mpath`, `raid1`, `loop` …
pub fn kind(source: &Source, name: &str) -> String {
    let folder = folder(name);
    if source.exists(&format!("{folder}/partition")) {
        return "part".to_owned();
    }
    if let Ok(uuid) = source.read(&format!("{folder}/dm/uuid")) {
        let prefix = uuid.split('-').next().unwrap_or_default().to_ascii_lowercase();
        // Partitions of mapped devices have uuids like `part1-mpath-…`.
        return match prefix.as_str() {
            "" => "dm".to_owned(),
            p if p.starts_with("part") => "part".to_owned(),
            p => p.to_owned(),
        };
    }
    if let Ok(level) = source.read(&format!("{folder}/md/level")) {
        return if level.is_empty() { "md".to_owned() } else { level };
    }
    if name.starts_with("loop") { "loop" } else { "disk" }.to_owned()
}

/// The bus by which a disk is attached, from its path in the tree of devices.
pub fn transport(source: &Source, name: &str) -> Read<String> {
    let link = source.link(&folder(name))?;
    let found = link.split('/').find_map(|part| {
        [
            ("virtio", "virtio"),
            ("nvme", "nvme"),
            ("usb", "usb"),
            ("ata", "ata"),
            ("vbd-", "xen"),
            ("mmc", "mmc"),
        ]
        .iter()
        .find(|(prefix, _)| part.starts_with(prefix))
        .map(|(_, name)| (*name).to_owned())
    });
    let virtual_device = link.contains("/devices/virtual/");
    found
        .or_else(|| virtual_device.then(|| "virtual".to_owned()))
        .or_else(|| link.contains("/target").then(|| "scsi".to_owned()))
        .ok_or_else(|| Missing::Absent(format!("{link} names no known bus")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;

    fn device(tree: &Tree, place: &str, numbers: &str) {
        let name = place.rsplit('/').next().unwrap();
        tree.folder(&format!("sys/devices/{place}/slaves"));
        for link in [format!("sys/class/block/{name}"), format!("sys/dev/block/{numbers}")] {
            tree.link(&link, &format!("../../devices/{place}"));
        }
    }

    /// ext4 in a loop file on xfs on LVM on LUKS on RAID 1 of two NVMe partitions.
    fn tower() -> (Tree, Source) {
        let (tree, source) = crate::tree::tree(&[]);
        for (disk, part) in [("nvme0n1", "nvme0n1p2"), ("nvme1n1", "nvme1n1p2")] {
            let minor = &disk[4..5];
            device(&tree, &format!("pci0/nvme/nvme{minor}/{disk}"), &format!("259:{minor}0"));
            device(&tree, &format!("pci0/nvme/nvme{minor}/{disk}/{part}"), &format!("259:{minor}2"));
            tree.file(&format!("sys/devices/pci0/nvme/nvme{minor}/{disk}/{part}/partition"), "2\n");
        }
        for (name, numbers) in [("md0", "9:0"), ("dm-0", "252:0"), ("dm-1", "252:1"), ("loop3", "7:3")] {
            device(&tree, &format!("virtual/block/{name}"), numbers);
        }
        tree.file("sys/devices/virtual/block/md0/md/level", "raid1\n");
        for part in ["nvme0n1p2", "nvme1n1p2"] {
            tree.file(&format!("sys/devices/virtual/block/md0/slaves/{part}"), "");
        }
        tree.file("sys/devices/virtual/block/dm-0/slaves/md0", "");
        tree.file("sys/devices/virtual/block/dm-0/dm/uuid", "CRYPT-LUKS2-abc\n");
        tree.file("sys/devices/virtual/block/dm-1/slaves/dm-0", "");
        tree.file("sys/devices/virtual/block/dm-1/dm/uuid", "LVM-xyz\n");
        tree.file("sys/devices/virtual/block/dm-1/dm/name", "vg-data\n");
        tree.file("sys/devices/virtual/block/loop3/loop/backing_file", "/images/d b.img\n");
        tree.file("proc/self/mountinfo", "31 1 252:1 / /images rw - xfs /dev/mapper/vg-data rw\n");
        (tree, source)
    }

    #[test]
    fn a_tower_of_devices_is_walked_down_to_its_disks() {
        let (_keep, source) = tower();
        let stack = stack(&source, "loop3").unwrap();
        assert_eq!(
            stack.devices,
            ["loop3", "dm-1", "dm-0", "md0", "nvme0n1p2", "nvme0n1", "nvme1n1p2", "nvme1n1"]
        );
        assert_eq!(stack.physical, ["nvme0n1", "nvme1n1"]);
        let kinds: Vec<String> = stack.devices.iter().map(|d| kind(&source, d)).collect();
        assert_eq!(kinds, ["loop", "lvm", "crypt", "raid1", "part", "disk", "part", "disk"]);
        assert_eq!(transport(&source, "nvme0n1"), Ok("nvme".to_owned()));
    }

    #[test]
    fn names_are_found_by_numbers_and_by_paths() {
        let (_keep, source) = tower();
        assert_eq!(name_of(&source, (259, 12)), Ok("nvme1n1p2".to_owned()));
        assert_eq!(name_of_path(&source, "/dev/nvme0n1"), Ok("nvme0n1".to_owned()));
        assert_eq!(name_of_path(&source, "/dev/mapper/vg-data"), Ok("dm-1".to_owned()));
        assert!(matches!(name_of(&source, (0, 45)), Err(Missing::Absent(_))));
        assert!(matches!(name_of_path(&source, "/dev/"), Err(Missing::Absent(_))));
    }

    #[test]
    fn a_loop_file_on_memory_and_devices_that_lie_on_each_other_are_said_to_be_so() {
        let (keep, source) = tower();
        keep.file("proc/self/mountinfo", "31 1 0:40 / /images rw - tmpfs tmpfs rw\n");
        let Err(Missing::Absent(why)) = stack(&source, "loop3") else { panic!() };
        assert!(why.contains("tmpfs"), "{why}");
        keep.file("proc/self/mountinfo", "31 1 7:3 / /images rw - ext4 /dev/loop3 rw\n");
        assert_eq!(stack(&source, "loop3").unwrap().physical, Vec::<String>::new());
        assert!(matches!(stack(&source, "sdz"), Err(Missing::Absent(_))));
    }
}
