//! Control groups, versions 1 and 2: cgroups(7).

use crate::mounts::Mount;

/// Version of the hierarchy that a controller is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// One hierarchy for each controller.
    V1,
    /// One hierarchy for all.
    V2,
}

/// One line of `/proc/PID/cgroup`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Membership<'a> {
    /// Controllers, as in `cpu,cpuacct`; none for version 2.
    pub controllers: &'a str,
    /// The path in the hierarchy, as in `/system.slice/mariadb.service`.
    pub path: &'a str,
}

/// All lines of `/proc/PID/cgroup`.
pub fn memberships(text: &str) -> impl Iterator<Item = Membership<'_>> {
    text.lines().filter_map(|line| {
        // As in `4:memory:/a/b`; the path may hold colons.
        let mut parts = line.splitn(3, ':').skip(1);
        Some(Membership { controllers: parts.next()?, path: parts.next()? })
    })
}

/// Version and path of the group that holds a controller. Where version 1 has it, version 2 does not.
pub fn membership<'a>(text: &'a str, controller: &str) -> Option<(Version, &'a str)> {
    let v1 = memberships(text).find(|one| one.controllers.split(',').any(|name| name == controller));
    let v2 = || memberships(text).find(|one| one.controllers.is_empty());
    v1.map(|one| (Version::V1, one.path)).or_else(|| v2().map(|one| (Version::V2, one.path)))
}

/// The mount through which the groups of a controller are visible: the last one, which covers earlier ones on its mount
/// point.
pub fn mount_of<'a>(mounts: &'a [Mount], version: Version, controller: &str) -> Option<&'a Mount> {
    mounts.iter().rev().find(|mount| match version {
        Version::V1 => mount.kind == "cgroup" && mount.has_super_option(controller),
        Version::V2 => mount.kind == "cgroup2",
    })
}

/// The part of a group's path below what is mounted, as in `/a/b`; `None` when the group lies outside. The mount may show a part
/// of the hierarchy only, as in a container without a cgroup namespace.
pub fn inside<'a>(path: &'a str, mount: &Mount) -> Option<&'a str> {
    // `/..` is how the kernel shows what lies above the root of a cgroup namespace.
    if [path, &mount.root].iter().any(|one| one.split('/').any(|part| part == "..")) {
        return None;
    }
    let rest = path.strip_prefix(mount.root.trim_end_matches('/'))?;
    (rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::parse;

    const V1: &str = "31 21 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      32 21 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
    const V2: &str = "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn version_1_has_a_group_for_each_controller() {
        let text = "4:cpu,cpuacct:/a\n5:memory:/b:c\n1:name=systemd:/d\n";
        assert_eq!(membership(text, "cpuacct"), Some((Version::V1, "/a")));
        assert_eq!(membership(text, "memory"), Some((Version::V1, "/b:c")));
        assert_eq!(membership(text, "io"), None);
        let mounts = parse(V1);
        assert_eq!(mount_of(&mounts, Version::V1, "cpu").map(|m| m.id), Some(31));
        assert_eq!(mount_of(&mounts, Version::V2, "cpu"), None);
    }

    #[test]
    fn version_2_has_one_group() {
        assert_eq!(
            membership("0::/system.slice/x.service\n", "memory"),
            Some((Version::V2, "/system.slice/x.service"))
        );
        assert_eq!(mount_of(&parse(V2), Version::V2, "memory").map(|m| m.id), Some(30));
    }

    #[test]
    fn in_a_hybrid_a_controller_of_version_1_is_found_there() {
        let text = "4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\nbroken\n";
        assert_eq!(membership(text, "cpu"), Some((Version::V1, "/a")));
        assert_eq!(membership(text, "memory"), Some((Version::V2, "/c")));
        let mounts = parse(&format!("{V2}{V1}"));
        assert_eq!(mount_of(&mounts, Version::V1, "memory").map(|m| m.id), Some(32));
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount_and_nothing_above_its_namespace() {
        let mount = |root: &str| Mount { root: root.to_owned(), ..parse(V2).remove(0) };
        assert_eq!(inside("/docker/abc", &mount("/docker/abc")), Some(""));
        assert_eq!(inside("/docker/abc/x", &mount("/docker/abc")), Some("/x"));
        assert_eq!(inside("/docker/abcd", &mount("/docker/abc")), None);
        assert_eq!(inside("/../x", &mount("/")), None);
        assert_eq!(inside("/x", &mount("/..")), None);
        assert_eq!(inside("/a/b", &mount("/")), Some("/a/b"));
    }
}
