//! Memory that the control groups of this process leave to it: cgroups(7).

use std::fs;
use std::path::Path;

use mydyno_linux::cgroup::{Membership, Version, inside, memberships, mount_of};
use mydyno_linux::mounts;

/// Files of a version of the memory controller.
struct Files {
    /// Limits in bytes: the kernel kills processes of a group that exceeds the first, and throttles one that exceeds
    /// the other.
    limits: &'static [&'static str],
    /// Bytes that are in use, the page cache included.
    used: &'static str,
    /// Lines of `memory.stat` that count page cache of the group and those below it, without shared memory.
    cache: [&'static str; 2],
}

/// Documentation/admin-guide/cgroup-v1/memory.rst.
const V1: Files = Files {
    limits: &["memory.limit_in_bytes"],
    used: "memory.usage_in_bytes",
    cache: ["total_active_file", "total_inactive_file"],
};
/// Documentation/admin-guide/cgroup-v2.rst.
const V2: Files = Files {
    limits: &["memory.max", "memory.high"],
    used: "memory.current",
    cache: ["active_file", "inactive_file"],
};
/// Without a limit, version 1 shows the largest number of pages.
const NO_LIMIT: u64 = 1 << 60;

/// Bytes that the tightest control group of this process can still allocate: its own or a visible ancestor. Page cache
/// counts as free, since the kernel evicts it before the group runs out of memory. `None` without a limit. `proc` is
/// the mount point of procfs.
pub(crate) fn available_bytes(proc: &Path) -> Option<u64> {
    let text = |file: &str| fs::read_to_string(proc.join("self").join(file)).unwrap_or_default();
    let (groups, mounts) = (text("cgroup"), mounts::parse(&text("mountinfo")));
    let of = |group: Membership| {
        let (version, files) = match group.controllers {
            "" => (Version::V2, &V2),
            list if list.split(',').any(|name| name == "memory") => (Version::V1, &V1),
            _ => return None,
        };
        let mount = mount_of(&mounts, version, "memory")?;
        // A group outside the visible subtree is limited at least by the top of the subtree.
        let inside = inside(group.path, mount).unwrap_or_default();
        let folder = mount.point.join(inside.trim_start_matches('/'));
        let levels = folder.ancestors().take_while(|level| level.starts_with(&mount.point));
        levels.filter_map(|level| left(level, files)).min()
    };
    memberships(&groups).filter_map(of).min()
}

/// Bytes that one group can still allocate.
fn left(level: &Path, files: &Files) -> Option<u64> {
    let number = |file: &str| fs::read_to_string(level.join(file)).ok()?.trim().parse::<u64>().ok();
    let limits = files.limits.iter().filter_map(|file| number(file));
    let limit = limits.filter(|limit| *limit < NO_LIMIT).min()?;
    let stat = fs::read_to_string(level.join("memory.stat")).unwrap_or_default();
    let cached = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let cache = files.cache.iter().map(|name| cached(name)).sum();
    Some(limit.saturating_sub(number(files.used)?.saturating_sub(cache)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    /// The result for these files below a test's folder.
    fn left_by(groups: &str, mounts: &str, files: &[(&str, &str)]) -> Option<u64> {
        let temp = TempDir::new().unwrap();
        let write = |path: &str, text: &str| {
            let path = temp.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/self/cgroup", groups);
        write("proc/self/mountinfo", &mounts.replace("TOP", temp.path().to_str().unwrap()));
        files.iter().for_each(|(path, text)| write(path, text));
        available_bytes(&temp.path().join("proc"))
    }

    const UNIFIED: &str = "31 23 0:28 / TOP/sys rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_tightest_group_up_to_the_top_counts() {
        let files = [
            ("sys/a.slice/b.scope/memory.max", "max\n"),
            ("sys/a.slice/b.scope/memory.high", "max\n"),
            ("sys/a.slice/b.scope/memory.current", "100\n"),
            ("sys/a.slice/memory.max", "1000\n"),
            ("sys/a.slice/memory.current", "400\n"),
            ("sys/a.slice/memory.stat", "anon 150\nfile 250\ninactive_file 200\nactive_file 30\n"),
        ];
        let of = |files: &[(&str, &str)]| left_by("0::/a.slice/b.scope\n", UNIFIED, files);
        assert_eq!(of(&files), Some(1000 - (400 - 230)));
        let high = [&files[..], &[("sys/a.slice/b.scope/memory.high", "500\n")]].concat();
        assert_eq!(of(&high), Some(400));
        assert_eq!(of(&files[..3]), None);
        assert_eq!(left_by("0::/\n", UNIFIED, &[]), None);
    }

    #[test]
    fn version_one_has_its_own_files_and_its_own_word_for_no_limit() {
        let mounts = "32 31 0:29 / TOP/sys/cpu rw - cgroup cgroup rw,cpu\n\
                      35 31 0:32 / TOP/sys/memory rw shared:9 - cgroup cgroup rw,memory\n\
                      41 31 0:38 / TOP/sys/unified rw - cgroup2 cgroup2 rw\n";
        let files = [
            ("sys/memory/x/memory.limit_in_bytes", "1000\n"),
            ("sys/memory/x/memory.usage_in_bytes", "900\n"),
            ("sys/memory/x/memory.stat", "active_file 1\ntotal_active_file 100\ntotal_inactive_file 300\n"),
            ("sys/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("sys/memory/memory.usage_in_bytes", "5000\n"),
        ];
        let groups = "5:cpu:/\n4:memory:/x\n0::/\n";
        assert_eq!(left_by(groups, mounts, &files), Some(1000 - 500));
        assert_eq!(left_by(groups, mounts, &files[3..]), None);
    }

    #[test]
    fn a_container_without_a_namespace_of_its_own_sees_its_group_as_the_top() {
        let files = [("sys/memory.max", "1000\n"), ("sys/memory.current", "100\n")];
        let mounts = UNIFIED.replace("0:28 /", "0:28 /docker/c1");
        assert_eq!(left_by("0::/docker/c1\n", &mounts, &files), Some(900));
        // A group that was moved outside of its visible subtree.
        assert_eq!(left_by("0::/../other\n", UNIFIED, &files), Some(900));
    }
}
