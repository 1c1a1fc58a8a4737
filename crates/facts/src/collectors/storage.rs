//! The storage of the server's files: mount, file system and the devices below, down to the disks.

use std::collections::BTreeSet;

use mydyno_linux::calls::files;
use serde_json::{Value, json};

use crate::block;
use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::{backing, device, file_system};
use crate::context::{Context, Depth};
use crate::mounts::{self, Mount};
use crate::process::Process;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Mounts and block devices of the server's files.
pub static COLLECTOR: Collector = Collector {
    name: "storage",
    cost: Cost { host_ms: 5, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Record,
    facts: &[
        fact("storage.datadir.path", "", "the server's data directory"),
        fact(
            "storage.ROLE.path",
            "",
            "a folder of the server: datadir, data, redo, undo, doublewrite, binlog, relaylog, tmpdir",
        ),
        fact("storage.ROLE.mount_point", "", "where its file system is mounted, as the server sees it"),
        fact("storage.ROLE.filesystem", "", "type of the file system"),
        fact("storage.ROLE.mount_options", "", "options of the mount and of the file system"),
        fact("storage.ROLE.mounted_from", "", "what is mounted"),
        fact("storage.ROLE.size_bytes", "bytes", "size of the file system"),
        fact("storage.ROLE.available_bytes", "bytes", "free for unprivileged users"),
        fact("storage.ROLE.backing_file", "", "file of the loop device that the file system lies on"),
        fact(
            "storage.ROLE.backing_promised_bytes",
            "bytes",
            "what that device may still take of the file system that holds its file: its size without what the file holds already",
        ),
        fact(
            "storage.ROLE.backing_available_bytes",
            "bytes",
            "free for unprivileged users on the file system that holds that file",
        ),
        fact(
            "storage.file_systems",
            "",
            "file systems of the server's folders: mount, size_bytes, available_bytes, holds (the folders)",
        ),
        fact("storage.ROLE.inodes", "count", "inodes, where the file system has a fixed number"),
        fact("storage.ROLE.inodes_free", "count", "of them, free"),
        fact("storage.ROLE.errors", "count", "errors that the file system has recorded (ext4, btrfs)"),
        fact(
            "storage.ROLE.on_error",
            "",
            "what an ext2, ext3 or ext4 does on an error, by its mount or its superblock: continue, remount-ro or panic",
        ),
        fact("storage.ROLE.extents", "", "whether an ext4 writes new files as extents, by its superblock"),
        fact(
            "storage.ROLE.dir_index",
            "",
            "whether an ext4 finds names in a folder by an index, by its superblock",
        ),
        fact("storage.ROLE.journal", "", "whether an ext2, ext3 or ext4 has a journal"),
        fact("storage.ROLE.no_cow", "", "whether new files in the folder are written in place (btrfs)"),
        fact("storage.ROLE.device", "", "block device of the file system"),
        fact("storage.ROLE.devices", "", "that device and all below it"),
        fact("storage.ROLE.disks", "", "those that lie on nothing else"),
        fact("block.DEVICE.type", "", "type in the words of lsblk"),
        fact("block.DEVICE.below", "", "devices that it lies on"),
        fact("block.DEVICE.size_bytes", "bytes", "size"),
        fact("block.DEVICE.read_only", "", "whether it refuses writes"),
        fact("block.DEVICE.name", "", "name of a mapped device"),
        fact("block.DEVICE.model", "", "model of a disk"),
        fact("block.DEVICE.firmware", "", "firmware of a disk"),
        fact("block.DEVICE.transport", "", "how it is attached: nvme, virtio, ata, scsi, usb, xen, virtual"),
        fact("block.DEVICE.controller", "", "driver of the SCSI controller"),
        fact("block.DEVICE.drive_cache", "", "write cache as the SCSI drive tells it"),
        fact("block.DEVICE.raid_level", "", "level of a software RAID"),
        fact("block.DEVICE.raid_degraded", "count", "missing members of a software RAID"),
        fact("block.DEVICE.backing_file", "", "file of a loop device"),
        fact("block.DEVICE.direct_io", "", "whether a loop device passes the page cache by"),
        fact("block.DEVICE.raid_action", "", "what a software RAID is doing: idle, check, resync, recover"),
        fact(
            "block.DEVICE.layer",
            "",
            "inner part of a logical volume: real under a snapshot, cow for one, pool",
        ),
        fact("block.DEVICE.state", "", "state of a path to a disk: running or live"),
        fact("block.DEVICE.misaligned_bytes", "bytes", "distance of its start from a physical block"),
        fact("block.DEVICE.scheduler", "", "I/O scheduler"),
        fact("block.DEVICE.schedulers", "", "I/O schedulers to choose from"),
        fact(
            "block.DEVICE.write_cache",
            "",
            "write back: the kernel flushes the device's cache; write through: it does not",
        ),
        fact("block.DEVICE.fua", "", "whether it writes through its cache on demand"),
        fact(
            "block.DEVICE.rotational",
            "",
            "whether the kernel takes it for a spinning disk; virtual disks often say so wrongly",
        ),
        fact("block.DEVICE.nr_requests", "count", "length of the request queue"),
        fact("block.DEVICE.read_ahead_bytes", "bytes", "read-ahead"),
        fact("block.DEVICE.max_request_bytes", "bytes", "largest request"),
        fact("block.DEVICE.logical_block_bytes", "bytes", "smallest addressable unit"),
        fact("block.DEVICE.physical_block_bytes", "bytes", "unit that is written without reading first"),
        fact("block.DEVICE.optimal_request_bytes", "bytes", "preferred size of requests; 0 is not told"),
        fact(
            "block.DEVICE.atomic_write_bytes",
            "bytes",
            "largest write that cannot tear (Linux 6.11); 0 is none",
        ),
        fact("block.DEVICE.discard_max_bytes", "bytes", "largest discard; 0 is not possible"),
        fact(
            "block.DEVICE.write_throttle_target_us",
            "us",
            "latency that writeback throttling aims at; 0 is off",
        ),
        fact("block.DEVICE.iostats", "", "whether the device counts what it does"),
        fact("block.DEVICE.nomerges", "", "2 never merges requests, 1 only simple ones, 0 always tries"),
        fact(
            "block.DEVICE.rq_affinity",
            "",
            "where requests complete: 2 strictly on the CPU that asked, 1 near it",
        ),
        fact("block.DEVICE.timeout_ms", "ms", "when a request is taken for lost"),
    ],
    run: Run::Host(run),
};

/// Roles, the variables that name their folders, and whether these name a file in the folder.
const ROLES: [(&str, &str, bool); 8] = [
    ("datadir", "datadir", false),
    ("data", "innodb_data_home_dir", false),
    ("redo", "innodb_log_group_home_dir", false),
    ("undo", "innodb_undo_directory", false),
    ("doublewrite", "innodb_doublewrite_dir", false),
    ("binlog", "log_bin_basename", true),
    ("relaylog", "relay_log_basename", true),
    ("tmpdir", "tmpdir", false),
];

fn run(context: &Context, readings: &Readings) {
    let server = match &context.server {
        Ok(server) => server,
        Err(missing) => return readings.rest_is("/proc/PID/mountinfo", missing),
    };
    let source = &context.source;
    let mounts = Mounts::of(source, server);
    let mut devices = BTreeSet::new();
    let mut file_systems: Vec<(String, Vec<&str>, files::Space)> = Vec::new();
    for (role, path, from) in folders(context, server) {
        let id = |name: &str| format!("storage.{role}.{name}");
        readings.put(&id("path"), from.as_str(), path.clone());
        let Ok(path) = path else { continue };
        let mount = mounts.as_ref().map_err(Clone::clone).and_then(|m| m.holding(source, &path));
        mount_facts(&id, &mount, &server.file("mountinfo"), readings);
        let space = space_facts(&id, source, &mounts, &path, readings);
        backing::read(&id, source, &mount, readings);
        if let (Ok(mount), Ok(space)) = (&mount, space) {
            match file_systems.iter_mut().find(|(point, ..)| *point == mount.point) {
                Some((_, holds, _)) => holds.push(role),
                None => file_systems.push((mount.point.clone(), vec![role], space)),
            }
        }
        let stack = mount.clone().and_then(|mount| stack_of(source, &mount));
        let reached = mounts.as_ref().map(|m| m.reached(&path)).map_err(Clone::clone);
        let first = stack.as_ref().ok().and_then(|s| s.devices.first()).map(String::as_str);
        file_system::read(role, source, &mount, first, &reached, readings);
        let of = |get: fn(&block::Stack) -> &Vec<String>| {
            stack.as_ref().map(|s| get(s).clone()).map_err(Clone::clone)
        };
        let top = of(|s| &s.devices).and_then(|all| {
            all.into_iter().next().ok_or_else(|| Missing::Absent("there is no device".to_owned()))
        });
        readings.put(&id("device"), "/sys/dev/block", top);
        readings.put(&id("devices"), "/sys/class/block/*/slaves", of(|s| &s.devices));
        readings.put(&id("disks"), "/sys/class/block/*/slaves", of(|s| &s.physical));
        devices.extend(stack.map(|s| s.devices).unwrap_or_default());
    }
    let file_systems: Vec<Value> = file_systems
        .into_iter()
        .map(|(mount, holds, space)| {
            json!({
                "mount": mount, "size_bytes": space.size_bytes, "available_bytes": space.available_bytes,
                "holds": holds,
            })
        })
        .collect();
    readings.put("storage.file_systems", "statvfs(3)", Ok(file_systems));
    for name in devices {
        device::read(source, &name, readings);
    }
}

/// The folder of each role that is set, with the source of its path.
fn folders(context: &Context, server: &Process) -> Vec<(&'static str, Read<String>, String)> {
    let datadir = match context.variable("datadir") {
        Some(path) => (Ok(path.to_owned()), "SHOW GLOBAL VARIABLES".to_owned()),
        None => datadir_of(&context.source, server),
    };
    let base = datadir.0.clone().unwrap_or_default();
    let mut folders = vec![("datadir", datadir.0.map(|path| absolute(&path, "/")), datadir.1)];
    for (role, variable, is_file) in ROLES.iter().skip(1) {
        let Some(value) = context.variable(variable) else { continue };
        // tmpdir may hold several folders; the first is used first.
        let value = if *role == "tmpdir" { value.split(':').next().unwrap_or(value) } else { value };
        let path = absolute(value, &base);
        let path =
            if *is_file { path.rsplit_once('/').map_or("/", |(folder, _)| folder).to_owned() } else { path };
        let path = if path.is_empty() { "/".to_owned() } else { path };
        folders.push((role, Ok(path), "SHOW GLOBAL VARIABLES".to_owned()));
    }
    folders
}

/// The data directory without querying the server, which changes into it at start. Everybody can read the command line,
/// but not the working directory.
fn datadir_of(source: &Source, server: &Process) -> (Read<String>, String) {
    let cwd = source.link(&server.file("cwd"));
    if let Err(Missing::Denied(_)) = &cwd {
        let arguments = source.bytes(&server.file("cmdline")).unwrap_or_default();
        let text = String::from_utf8_lossy(&arguments).into_owned();
        let given = text.split('\0').filter_map(|a| a.strip_prefix("--datadir=")).next_back();
        if let Some(path) = given.filter(|path| path.starts_with('/')) {
            return (Ok(path.to_owned()), server.file("cmdline"));
        }
    }
    (cwd, server.file("cwd"))
}

/// A path without `.` and doubled or final slashes, relative ones joined to `base`.
fn absolute(path: &str, base: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{path}") };
    let parts: Vec<&str> = whole.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    format!("/{}", parts.join("/"))
}

/// The mounts that the server sees, and the prefix under which its paths are reached from here.
struct Mounts {
    table: Vec<Mount>,
    /// The prefix of the server's paths; empty where the server has the same mounts.
    prefix: String,
}

impl Mounts {
    fn of(source: &Source, server: &Process) -> Read<Self> {
        let table = mounts::of(source, &server.pid.to_string())?;
        let prefix = mounts::view(source, server)?;
        Ok(Self { table, prefix })
    }

    fn holding(&self, source: &Source, path: &str) -> Read<Mount> {
        let found = if source.is_live() {
            match source.mount_id(&self.reached(path)) {
                Ok(id) => self.table.iter().find(|m| m.id == id),
                // On an old kernel the path is assumed to contain no links.
                Err(Missing::Absent(_)) if source.exists(&self.reached(path)) => {
                    mounts::holding(&self.table, path)
                }
                Err(other) => return Err(other),
            }
        } else {
            mounts::holding(&self.table, path)
        };
        found.cloned().ok_or_else(|| Missing::Error(format!("no mount that the server sees holds {path}")))
    }

    fn reached(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

fn mount_facts(id: &dyn Fn(&str) -> String, mount: &Read<Mount>, table: &str, readings: &Readings) {
    let of = |get: &dyn Fn(&Mount) -> Value| mount.as_ref().map(get).map_err(Clone::clone);
    for (name, value) in [
        ("mount_point", of(&|m| m.point.clone().into())),
        ("filesystem", of(&|m| m.kind.clone().into())),
        ("mount_options", of(&|m| m.options.clone().into())),
        ("mounted_from", of(&|m| m.from.clone().into())),
    ] {
        readings.put(&id(name), table, value);
    }
}

fn space_facts(
    id: &dyn Fn(&str) -> String,
    source: &Source,
    mounts: &Read<Mounts>,
    path: &str,
    readings: &Readings,
) -> Read<files::Space> {
    let space = mounts.as_ref().map_err(Clone::clone).and_then(|m| source.space(&m.reached(path)));
    readings.put(&id("size_bytes"), "statvfs(3)", space.as_ref().map(|s| s.size_bytes).map_err(Clone::clone));
    readings.put(
        &id("available_bytes"),
        "statvfs(3)",
        space.as_ref().map(|s| s.available_bytes).map_err(Clone::clone),
    );
    space
}

/// The devices below a mount.
fn stack_of(source: &Source, mount: &Mount) -> Read<block::Stack> {
    if mount.device.0 != 0 {
        return block::stack(source, &block::name_of(source, mount.device)?);
    }
    if mount.from.starts_with("/dev/") {
        let name = block::name_of_path(source, &mount.from)?;
        return members(source, &name)
            .map_or_else(|| block::stack(source, &name), |all| joined(source, &all));
    }
    if mount.kind == "overlay" {
        return upper_layer(source, mount);
    }
    let how = match mount.kind.as_str() {
        "zfs" => "its pool's devices are shown by zpool status",
        "tmpfs" | "ramfs" => "its files are in memory",
        _ => "it has no block device on this host",
    };
    Err(Missing::Absent(format!("{} on {}: {how}", mount.kind, mount.point)))
}

/// All devices of the btrfs that a device belongs to.
fn members(source: &Source, name: &str) -> Option<Vec<String>> {
    let file_systems = source.list("/sys/fs/btrfs").ok()?;
    file_systems
        .iter()
        .filter_map(|id| source.list(&format!("/sys/fs/btrfs/{id}/devices")).ok())
        .find(|devices| devices.iter().any(|d| d == name))
}

fn joined(source: &Source, names: &[String]) -> Read<block::Stack> {
    let mut all = block::Stack::default();
    for name in names {
        let stack = block::stack(source, name)?;
        for (into, from) in [(&mut all.devices, stack.devices), (&mut all.physical, stack.physical)] {
            for device in from {
                if !into.contains(&device) {
                    into.push(device);
                }
            }
        }
    }
    Ok(all)
}

/// A container's writable layer is a folder of the host, if the host's folders are visible from here.
fn upper_layer(source: &Source, mount: &Mount) -> Read<block::Stack> {
    let lost = || {
        Missing::Absent(format!(
            "the overlay on {} lies on a folder that is not visible from here; run mydyno on the container's host",
            mount.point
        ))
    };
    let upper = mount.option("upperdir").filter(|path| source.exists(path)).ok_or_else(lost)?;
    let ours = mounts::of(source, "self")?;
    let below = mounts::holding(&ours, upper).filter(|m| m.kind != "overlay").ok_or_else(lost)?;
    stack_of(source, below)
}

#[cfg(test)]
mod tests {
    use super::absolute;

    #[test]
    fn paths_of_the_server_are_made_absolute() {
        for (path, whole) in [
            ("./", "/var/lib/mysql"),
            ("/var/lib/mysql/", "/var/lib/mysql"),
            ("./#innodb_redo//x", "/var/lib/mysql/#innodb_redo/x"),
            ("/", "/"),
            (".", "/var/lib/mysql"),
        ] {
            assert_eq!(absolute(path, "/var/lib/mysql/"), whole, "{path}");
        }
    }
}
