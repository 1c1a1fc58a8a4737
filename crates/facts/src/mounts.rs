//! The mount table (proc_pid_mountinfo(5)) and which mount holds a path.

use mydyno_linux::mounts::{parse, unescape};

use crate::process::Process;
use crate::source::{Missing, Read, Source};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Id of the mount.
    pub id: u64,
    /// Major and minor number of the file system's device; with major 0 it is not a block device.
    pub device: (u32, u32),
    /// The folder of the file system that is mounted, as in `/` or `/@subvolume`.
    pub root: String,
    /// Mount point.
    pub point: String,
    /// Options of the mount and, behind them, those of the file system, without repetition.
    pub options: Vec<String>,
    /// File system, as in `ext4`.
    pub kind: String,
    /// The mounted device or file system, as in `/dev/sda1`.
    pub from: String,
    /// Options of the file system alone.
    pub super_options: Vec<String>,
}

impl From<mydyno_linux::Mount> for Mount {
    fn from(mount: mydyno_linux::Mount) -> Self {
        let split = |text: &str| text.split(',').filter(|o| !o.is_empty()).map(unescape).collect::<Vec<_>>();
        let super_options = split(&mount.super_options);
        let mut options = split(&mount.options);
        for option in &super_options {
            if !options.contains(option) {
                options.push(option.clone());
            }
        }
        Self {
            id: mount.id,
            device: mount.device,
            root: mount.root,
            point: mount.point.to_string_lossy().into_owned(),
            options,
            kind: mount.kind,
            from: mount.source.to_string_lossy().into_owned(),
            super_options,
        }
    }
}

impl Mount {
    /// The value of an option such as `upperdir=…`.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|o| o.strip_prefix(name)?.strip_prefix('='))
    }

    /// Whether a path lies below the mount point.
    fn holds(&self, path: &str) -> bool {
        below(path, &self.point).is_some()
    }
}

/// The part of `path` below `folder`: `Some("")` when it is the folder itself.
pub fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let rest = path.strip_prefix(folder.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

/// The mounts that a process sees; `self` for our own.
///
/// # Errors
/// Permission is denied, or the table does not exist. Lines that cannot be parsed are skipped.
pub fn of(source: &Source, process: &str) -> Read<Vec<Mount>> {
    let path = format!("/proc/{process}/mountinfo");
    let mounts: Vec<Mount> = parse(&source.read(&path)?).into_iter().map(Mount::from).collect();
    if mounts.is_empty() {
        return Err(Missing::Error(format!("{path} holds no mount")));
    }
    Ok(mounts)
}

/// The prefix under which paths of a process can be opened from here: empty if the process has the same mounts.
///
/// # Errors
/// One of the tables cannot be read.
pub fn view(source: &Source, process: &Process) -> Read<String> {
    // Mount ids are unique on a host, so equal tables are the same table.
    let same = of(source, &process.pid.to_string())? == of(source, "self")?;
    Ok(if same { String::new() } else { process.file("root") })
}

/// The mount that holds `path`, which contains no links: the longest mount point and, of several mounts on one point,
/// the last, which covers the others.
pub fn holding<'a>(mounts: &'a [Mount], path: &str) -> Option<&'a Mount> {
    mounts
        .iter()
        .filter(|m| m.holds(path))
        .max_by_key(|m| m.point.trim_end_matches('/').len())
        .and_then(|longest| mounts.iter().rev().find(|m| m.point == longest.point))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw,discard
22 21 0:5 / /proc rw - proc proc rw
30 21 8:1 /@ /var/lib\\040x rw,noatime master:1 propagate_from:2 - btrfs /dev/sda1 rw,noatime,subvol=/@
31 21 8:2 / /data rw - xfs /dev/sdb rw
32 31 8:3 / /data rw - ext4 /dev/sdc rw
broken line
40 21 x:1 / /y rw - ext4 /dev/sdd rw
41 21 8:9 / /dat rw - xfs /dev/sde rw";

    fn mounts() -> Vec<Mount> {
        parse(TABLE).into_iter().map(Mount::from).collect()
    }

    #[test]
    fn a_line_with_optional_fields_and_escapes_is_read() {
        let mounts = mounts();
        assert_eq!(mounts.len(), 6);
        assert_eq!(mounts[2].point, "/var/lib x");
        assert_eq!(mounts[2].device, (8, 1));
        assert_eq!(mounts[2].options, ["rw", "noatime", "subvol=/@"]);
        assert_eq!(mounts[2].option("subvol"), Some("/@"));
        assert_eq!(mounts[2].root, "/@");
    }

    #[test]
    fn the_longest_and_last_mount_holds_a_path() {
        let mounts = mounts();
        let from = |path: &str| holding(&mounts, path).map(|m| m.from.as_str());
        assert_eq!(from("/var/lib x/mysql"), Some("/dev/sda1"));
        assert_eq!(from("/var/lib xy"), Some("/dev/root"));
        assert_eq!(from("/data/mysql"), Some("/dev/sdc"));
        assert_eq!(from("/data"), Some("/dev/sdc"));
        assert_eq!(from("/dat/a"), Some("/dev/sde"));
        assert_eq!(from("/"), Some("/dev/root"));
    }
}
