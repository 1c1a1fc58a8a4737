//! The control groups of a process, version 1 or 2, as far as they can be seen from here (cgroups(7)).

use mydyno_linux::cgroup::{inside, membership, mount_of};
use mydyno_linux::mounts;

use crate::parse::{flat_number, unexpected};
use crate::source::{Missing, Read, Source};

pub use mydyno_linux::cgroup::Version;

/// A process's group for one controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Version of its hierarchy.
    pub version: Version,
    /// Its path in the hierarchy, as in `/system.slice/mariadb.service`.
    pub path: String,
    /// Its folder and those of its ancestors, innermost first, up to the top that is visible.
    pub levels: Vec<String>,
}

impl Group {
    /// The group of a process (`self` or a number) for a controller.
    ///
    /// # Errors
    /// Absent when the controller is not mounted or the group lies outside what is visible here.
    pub fn of(source: &Source, process: &str, controller: &str) -> Read<Self> {
        let file = format!("/proc/{process}/cgroup");
        let text = source.read(&file)?;
        let (version, path) = membership(&text, controller)
            .ok_or_else(|| Missing::Absent(format!("{file}: no group for the controller {controller}")))?;
        // mydyno's own mount table, because the files are read through its own mounts.
        let mounts = mounts::parse(&source.read("/proc/self/mountinfo")?);
        let mount = mount_of(&mounts, version, controller);
        let mount = mount.ok_or_else(|| {
            Missing::Absent(format!("no cgroup file system with the controller {controller} is mounted"))
        })?;
        let inside = inside(path, mount).ok_or_else(|| {
            Missing::Absent(format!("{path} ({file}) lies outside the groups that are visible here"))
        })?;
        let point = mount.point.to_string_lossy();
        let point = point.trim_end_matches('/');
        let mut folder = format!("{point}{}", inside.trim_end_matches('/'));
        let mut levels = vec![folder.clone()];
        while folder.len() > point.len() {
            let Some((parent, _)) = folder.rsplit_once('/') else { break };
            folder = parent.to_owned();
            levels.push(folder.clone());
        }
        Ok(Self { version, path: path.to_owned(), levels })
    }

    /// The innermost folder.
    pub fn folder(&self) -> &str {
        self.levels.first().map_or("", String::as_str)
    }

    /// The smallest value that any level sets, with the file that sets it. `read` gives `None` for a level without a
    /// limit; a file that is not there is a level without a limit.
    ///
    /// # Errors
    /// A level could not be read: the limit would not be known.
    pub fn smallest<T: PartialOrd>(
        &self,
        source: &Source,
        file: &str,
        read: impl Fn(&str, &str) -> Read<Option<T>>,
    ) -> Read<Option<(T, String)>> {
        let mut smallest: Option<(T, String)> = None;
        for level in &self.levels {
            let path = format!("{level}/{file}");
            let text = match source.read(&path) {
                Ok(text) => text,
                Err(Missing::Absent(_)) => continue,
                Err(other) => return Err(other),
            };
            if let Some(value) = read(&text, &path)?
                && smallest.as_ref().is_none_or(|(least, _)| value < *least)
            {
                smallest = Some((value, path));
            }
        }
        Ok(smallest)
    }
}

/// A number or `max`.
///
/// # Errors
/// Neither.
pub fn limit(text: &str, path: &str) -> Read<Option<u64>> {
    match text.trim() {
        "max" | "-1" => Ok(None),
        digits => digits.parse().map(Some).map_err(|_| unexpected(path, "a number or max", text)),
    }
}

/// A memory limit of version 1, which shows "no limit" as the largest multiple of a page below 2^63.
pub fn limit_v1(text: &str, path: &str) -> Read<Option<u64>> {
    const NONE: u64 = 1 << 62;
    Ok(limit(text, path)?.filter(|bytes| *bytes < NONE))
}

/// CPUs' worth of a quota in `cpu.max`: `max 100000` or `50000 100000`.
///
/// # Errors
/// Something else.
pub fn quota(text: &str, path: &str) -> Read<Option<f64>> {
    let wrong = || unexpected(path, "a quota and a period", text);
    let (quota, period) = text.trim().split_once(' ').ok_or_else(wrong)?;
    if quota == "max" {
        return Ok(None);
    }
    let quota: f64 = quota.parse().map_err(|_| wrong())?;
    let period: f64 = period.trim().parse().map_err(|_| wrong())?;
    if period > 0.0 && quota >= 0.0 { Ok(Some(quota / period)) } else { Err(wrong()) }
}

/// Times throttled and seconds of it, from the text of `cpu.stat`; `None` where the group counts neither.
pub fn throttled(text: &str, version: Version) -> Option<(u64, f64)> {
    let times = flat_number::<u64>(text, "nr_throttled")?;
    let seconds = match version {
        Version::V1 => flat_number::<u64>(text, "throttled_time")? as f64 * 1e-9,
        Version::V2 => flat_number::<u64>(text, "throttled_usec")? as f64 * 1e-6,
    };
    Some((times, seconds))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    const V2: &str = "30 21 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn the_groups_of_version_2_go_up_to_the_mount() {
        let (_keep, source) =
            tree(&[("proc/self/mountinfo", V2), ("proc/42/cgroup", "0::/system.slice/mariadb.service\n")]);
        let group = Group::of(&source, "42", "memory").unwrap();
        assert_eq!(group.version, Version::V2);
        assert_eq!(
            group.levels,
            ["/sys/fs/cgroup/system.slice/mariadb.service", "/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"]
        );
    }

    #[test]
    fn in_a_hybrid_a_controller_of_version_1_is_found_in_its_own_hierarchy() {
        let mounts = format!("{V2}31 21 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
        let (_keep, source) = tree(&[
            ("proc/self/mountinfo", &mounts),
            ("proc/42/cgroup", "4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/c\n"),
        ]);
        let cpu = Group::of(&source, "42", "cpu").unwrap();
        assert_eq!((cpu.version, cpu.folder()), (Version::V1, "/sys/fs/cgroup/cpu/a"));
        let memory = Group::of(&source, "42", "memory").unwrap();
        assert_eq!((memory.version, memory.folder()), (Version::V2, "/sys/fs/cgroup/c"));
    }

    #[test]
    fn a_container_sees_its_group_at_the_mount_and_nothing_above_its_namespace() {
        let mounts = "30 21 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n";
        let (_keep, source) = tree(&[
            ("proc/self/mountinfo", mounts),
            ("proc/1/cgroup", "5:memory:/docker/abc\n"),
            ("proc/2/cgroup", "5:memory:/docker/abcd\n"),
            ("proc/3/cgroup", "5:memory:/../x\n"),
        ]);
        assert_eq!(Group::of(&source, "1", "memory").unwrap().levels, ["/sys/fs/cgroup/memory"]);
        assert!(matches!(Group::of(&source, "2", "memory"), Err(Missing::Absent(_))));
        assert!(matches!(Group::of(&source, "3", "memory"), Err(Missing::Absent(_))));
    }

    #[test]
    fn the_smallest_limit_of_all_levels_counts_and_names_its_file() {
        let (_keep, source) = tree(&[
            ("proc/self/mountinfo", V2),
            ("proc/42/cgroup", "0::/a/b/c\n"),
            ("sys/fs/cgroup/a/memory.max", "1000\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/c/memory.max", "2000\n"),
        ]);
        let group = Group::of(&source, "42", "memory").unwrap();
        let found = group.smallest(&source, "memory.max", limit).unwrap();
        assert_eq!(found, Some((1000, "/sys/fs/cgroup/a/memory.max".to_owned())));
        assert_eq!(group.smallest(&source, "memory.high", limit), Ok(None));
    }

    #[test]
    fn a_level_that_makes_no_sense_is_an_error_and_not_no_limit() {
        let (_keep, source) = tree(&[
            ("proc/self/mountinfo", V2),
            ("proc/42/cgroup", "0::/a\n"),
            ("sys/fs/cgroup/a/memory.max", "99999999999999999999999\n"),
        ]);
        let group = Group::of(&source, "42", "memory").unwrap();
        assert!(matches!(group.smallest(&source, "memory.max", limit), Err(Missing::Error(_))));
    }

    #[test]
    fn limits_and_quotas_are_read() {
        assert_eq!(limit("max", "/l"), Ok(None));
        assert_eq!(limit_v1("9223372036854771712", "/l"), Ok(None));
        assert_eq!(limit_v1("4096", "/l"), Ok(Some(4096)));
        assert_eq!(quota("max 100000", "/q"), Ok(None));
        assert_eq!(quota("150000 100000", "/q"), Ok(Some(1.5)));
        for text in ["", "1", "x 1", "1 0", "-5 100"] {
            assert!(quota(text, "/q").is_err(), "{text}");
        }
    }

    #[test]
    fn throttling_is_in_seconds_in_both_versions() {
        assert_eq!(
            throttled("nr_periods 9\nnr_throttled 4\nthrottled_time 2500000000\n", Version::V1),
            Some((4, 2.5))
        );
        assert_eq!(
            throttled("usage_usec 1\nnr_throttled 4\nthrottled_usec 250000\n", Version::V2),
            Some((4, 0.25))
        );
        assert_eq!(throttled("usage_usec 1\n", Version::V2), None);
    }
}
