//! Resources that a control group can limit, and the hierarchy of each one's controller: cgroups(7).

use std::fs;
use std::path::PathBuf;

use mydyno_journal::Machine;
use mydyno_linux::calls::files;
use mydyno_linux::cgroup::{Version, mount_of};

use crate::error::HostError;
/// A resource that a group can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Resource {
    /// Memory.
    Memory,
    /// Swap.
    Swap,
    /// CPU time.
    Cpu,
    /// CPUs.
    Cpuset,
    /// I/O of a device.
    Io,
}

/// All resources.
pub const RESOURCES: [Resource; 5] =
    [Resource::Memory, Resource::Swap, Resource::Cpu, Resource::Cpuset, Resource::Io];

/// The controller's hierarchy, with its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    V1(PathBuf),
    V2(PathBuf),
}

impl Resource {
    /// The end of the lever's name, as in `cgroup.memory`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Swap => "swap",
            Self::Cpu => "cpu",
            Self::Cpuset => "cpuset",
            Self::Io => "io",
        }
    }

    fn controllers(self) -> (&'static str, &'static str) {
        match self {
            Self::Memory | Self::Swap => ("memory", "memory"),
            Self::Cpu => ("cpu", "cpu"),
            Self::Cpuset => ("cpuset", "cpuset"),
            Self::Io => ("blkio", "io"),
        }
    }

    /// The control files that a group must have for this resource; checked in an existing group of the same kind.
    pub(super) fn limit_files(self) -> (&'static str, &'static str) {
        match self {
            Self::Memory => ("memory.limit_in_bytes", "memory.max"),
            Self::Swap => ("memory.memsw.limit_in_bytes", "memory.swap.max"),
            Self::Cpu => ("cpu.cfs_quota_us", "cpu.max"),
            Self::Cpuset => ("cpuset.cpus", "cpuset.cpus"),
            Self::Io => ("blkio.throttle.read_iops_device", "io.max"),
        }
    }

    /// Whether a group can limit it here. Makes no group.
    ///
    /// # Errors
    /// A prerequisite is missing; the error names it and how to get it.
    pub fn check(self, machine: &Machine) -> Result<(), HostError> {
        let tree = self.tree(machine)?;
        let root = match &tree {
            Tree::V1(root) | Tree::V2(root) => root,
        };
        if let Tree::V1(root) = &tree
            && !root.join(self.limit_files().0).exists()
        {
            return Err(self.missing_error(
                format!("{} is not in {}", self.limit_files().0, root.display()),
                match self {
                    Self::Swap => "boot with swapaccount=1",
                    _ => "use a kernel that is built with it",
                },
            ));
        }
        let writable = fs::metadata(root).is_ok_and(|_| files::may_write(root));
        if writable {
            return Ok(());
        }
        Err(self.missing_error(
            format!("{} cannot be written to", root.display()),
            "run as root, outside a container that keeps it read-only",
        ))
    }

    fn missing_error(self, missing: String, remedy: &str) -> HostError {
        let what = format!("a cgroup with a limit of {}", self.name());
        HostError::Missing { what, missing, remedy: remedy.to_owned() }
    }

    /// A controller is attached to a version 1 hierarchy or to the version 2 hierarchy, never to both: cgroups(7).
    pub(super) fn tree(self, machine: &Machine) -> Result<Tree, HostError> {
        let (v1, v2) = self.controllers();
        let mounts = machine.mounts()?;
        if let Some(mount) = mount_of(&mounts, Version::V1, v1) {
            return Ok(Tree::V1(mount.point.clone()));
        }
        let root = mount_of(&mounts, Version::V2, v2)
            .ok_or_else(|| {
                self.missing_error(
                    "no cgroup file system is mounted".to_owned(),
                    "mount -t cgroup2 none /sys/fs/cgroup",
                )
            })?
            .point
            .clone();
        let lists = |file: &str| {
            fs::read_to_string(root.join(file)).unwrap_or_default().split_whitespace().any(|c| c == v2)
        };
        if !lists("cgroup.controllers") {
            return Err(self.missing_error(
                format!("controller {v2} is not in {}/cgroup.controllers", root.display()),
                "use a kernel that has it, and no cgroup v1 that holds it",
            ));
        }
        if !lists("cgroup.subtree_control") {
            let file = root.join("cgroup.subtree_control");
            return Err(HostError::Missing {
                what: format!("a cgroup with a limit of {}", self.name()),
                missing: format!("controller {v2} is not in {}", file.display()),
                remedy: format!("run `echo +{v2} > {}`", file.display()),
            });
        }
        Ok(Tree::V2(root))
    }
}
