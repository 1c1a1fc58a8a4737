//! File systems for mydyno's own devices, and the mount options accepted for each.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use mydyno_journal::Machine;

use crate::error::HostError;
use crate::features::Features;

/// A file system, and the options with which it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext4 with its journal.
    Ext4,
    /// ext4 without a journal: a crash can damage the file system itself.
    Ext4NoJournal,
    /// ext3: block maps instead of extents, made and mounted as such (the driver is that of ext4).
    Ext3,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
}

/// All file systems.
pub const FILE_SYSTEMS: [FileSystem; 5] =
    [FileSystem::Ext4, FileSystem::Ext4NoJournal, FileSystem::Ext3, FileSystem::Xfs, FileSystem::Btrfs];

/// Mount options, checked against the list of the file system.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    list: Vec<String>,
}

/// Options of every file system, and their flags for mount(2).
const FLAGS: &[(&str, u64)] = &[
    ("noatime", libc::MS_NOATIME),
    ("relatime", libc::MS_RELATIME),
    ("strictatime", libc::MS_STRICTATIME),
    ("nodiratime", libc::MS_NODIRATIME),
    ("lazytime", 1 << 25),
];

/// Options of ext4 and, as far as its journal and block maps allow, of ext3, from Documentation/filesystems of the kernel; after `=` comes a number or word.
const EXT4: &[&str] = &[
    "barrier=",
    "nobarrier",
    "data=",
    "commit=",
    "discard",
    "nodiscard",
    "delalloc",
    "nodelalloc",
    "auto_da_alloc",
    "noauto_da_alloc",
    "journal_checksum",
    "journal_async_commit",
    "stripe=",
    "dioread_nolock",
    "dioread_lock",
    "inode_readahead_blks=",
    "max_batch_time=",
    "min_batch_time=",
];
const XFS: &[&str] = &[
    "logbsize=",
    "logbufs=",
    "allocsize=",
    "largeio",
    "nolargeio",
    "discard",
    "nodiscard",
    "noalign",
    "swalloc",
];
const BTRFS: &[&str] = &[
    "nodatacow",
    "datacow",
    "nodatasum",
    "datasum",
    "compress=",
    "compress-force=",
    "ssd",
    "nossd",
    "autodefrag",
    "noautodefrag",
    "commit=",
    "barrier",
    "nobarrier",
    "notreelog",
    "treelog",
    "flushoncommit",
    "noflushoncommit",
    "discard=",
    "nodiscard",
    "max_inline=",
];

/// Minimum sizes: mkfs.xfs refuses less than 300 MB, mkfs.btrfs less than 109 MiB.
const LEAST_BYTES: [(FileSystem, u64); 5] = [
    (FileSystem::Ext4, 16 << 20),
    (FileSystem::Ext4NoJournal, 16 << 20),
    (FileSystem::Ext3, 16 << 20),
    (FileSystem::Xfs, 320 << 20),
    (FileSystem::Btrfs, 128 << 20),
];

impl FileSystem {
    /// The name of the lever's value, as in `ext4-nojournal`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Ext4NoJournal => "ext4-nojournal",
            Self::Ext3 => "ext3",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// The file system with this name.
    pub fn named(name: &str) -> Option<Self> {
        FILE_SYSTEMS.into_iter().find(|f| f.name() == name)
    }

    /// Its name in the kernel.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Ext4 | Self::Ext4NoJournal => "ext4",
            Self::Ext3 => "ext3",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Whether it is ext3 or ext4, whose features can be chosen.
    pub(crate) fn is_ext(self) -> bool {
        matches!(self, Self::Ext4 | Self::Ext4NoJournal | Self::Ext3)
    }

    /// The minimum size in bytes.
    pub fn least_bytes(self) -> u64 {
        LEAST_BYTES.iter().find(|(f, _)| *f == self).map_or(0, |(_, bytes)| *bytes)
    }

    /// Whether it can be made and mounted here, given a device.
    ///
    /// # Errors
    /// A prerequisite is missing; the error names it and how to get it.
    pub fn check(self, machine: &Machine) -> Result<(), HostError> {
        self.maker()?;
        if machine.knows_file_system(self.kind())? {
            return Ok(());
        }
        Err(HostError::Missing {
            what: self.name().to_owned(),
            missing: format!("{} is not in /proc/filesystems", self.kind()),
            remedy: format!("run `modprobe {}`, or use a kernel that has it", self.kind()),
        })
    }

    fn maker(self) -> Result<PathBuf, HostError> {
        let (program, package) = match self {
            Self::Ext4 | Self::Ext4NoJournal => ("mkfs.ext4", "e2fsprogs"),
            Self::Ext3 => ("mkfs.ext3", "e2fsprogs"),
            Self::Xfs => ("mkfs.xfs", "xfsprogs"),
            Self::Btrfs => ("mkfs.btrfs", "btrfs-progs"),
        };
        find_program(program).ok_or_else(|| HostError::Missing {
            what: self.name().to_owned(),
            missing: format!("{program} is not on the PATH"),
            remedy: format!("install the package {package}"),
        })
    }

    /// The command that formats a file.
    ///
    /// # Errors
    /// The program is missing.
    pub(crate) fn make_command(self, image: &Path, features: &Features) -> Result<Command, HostError> {
        let mut command = Command::new(self.maker()?);
        match self {
            // Without lazy initialisation, which would write in the background during a measurement.
            Self::Ext4 | Self::Ext3 => {
                command.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"])
            }
            Self::Ext4NoJournal => command.args(["-q", "-F", "-E", "lazy_itable_init=0,nodiscard"]),
            Self::Xfs => command.args(["-q", "-f", "-K"]),
            Self::Btrfs => command.args(["-q", "-f", "-K"]),
        };
        let without: &[&str] = if self == Self::Ext4NoJournal { &["^has_journal"] } else { &[] };
        if let Some(features) = features.argument(without) {
            command.args(["-O", &features]);
        }
        command.arg(image);
        Ok(command)
    }

    /// Reads mount options, as in `noatime,barrier=0`.
    ///
    /// # Errors
    /// One is not on the list of this file system.
    pub fn options(self, text: &str) -> Result<Options, HostError> {
        let own = match self.kind() {
            "ext4" | "ext3" => EXT4,
            "xfs" => XFS,
            _ => BTRFS,
        };
        let mut list = Vec::new();
        for option in text.split(',').filter(|o| !o.is_empty()) {
            let value = |name: &str| {
                let rest = name.ends_with('=').then(|| option.strip_prefix(name)).flatten();
                rest.is_some_and(|v| !v.is_empty() && v.bytes().all(|b| b.is_ascii_alphanumeric()))
            };
            let known =
                FLAGS.iter().any(|(n, _)| *n == option) || own.iter().any(|n| *n == option || value(n));
            if !known || option.ends_with('=') {
                let all: Vec<&str> = FLAGS.iter().map(|(n, _)| *n).chain(own.iter().copied()).collect();
                return Err(HostError::MountOption {
                    option: option.to_owned(),
                    file_system: self.name(),
                    known: all.join(" "),
                });
            }
            list.push(option.to_owned());
        }
        Ok(Options { list })
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Options {
    /// Whether there are no options.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Flags and data for mount(2); always with `nosuid`, `nodev` and `noexec`.
    pub(crate) fn for_mount(&self) -> (u64, String) {
        let flag = |option: &str| FLAGS.iter().find(|(n, _)| *n == option).map(|(_, flag)| *flag);
        let always = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        let flags = self.list.iter().filter_map(|o| flag(o)).fold(always, |all, flag| all | flag);
        let data: Vec<&str> = self.list.iter().map(String::as_str).filter(|o| flag(o).is_none()).collect();
        (flags, data.join(","))
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.list.join(","))
    }
}

/// A program on the PATH or in the usual sbin folders.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/sbin", "/usr/bin"].map(PathBuf::from);
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .chain(usual)
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_options_are_those_of_the_list() {
        let options = FileSystem::Ext4.options("noatime,barrier=0,data=writeback").unwrap();
        assert_eq!(options.to_string(), "noatime,barrier=0,data=writeback");
        let (flags, data) = options.for_mount();
        assert_eq!(data, "barrier=0,data=writeback");
        assert!(flags & libc::MS_NOATIME != 0 && flags & libc::MS_NODEV != 0);
        for (file_system, text) in [
            (FileSystem::Ext4, "journal_path=/dev/sda"),
            (FileSystem::Ext4, "commit="),
            (FileSystem::Ext4, "commit=1/x"),
            (FileSystem::Xfs, "nobarrier"),
            (FileSystem::Xfs, "logdev=/dev/sda"),
            (FileSystem::Btrfs, "subvol=/x"),
            (FileSystem::Btrfs, "suid"),
        ] {
            let error = file_system.options(text).unwrap_err().to_string();
            assert!(error.contains("noatime"), "{text}: {error}");
        }
    }
}
