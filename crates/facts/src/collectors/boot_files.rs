//! Files that are read at boot: kernel settings and mounts. Their contents take effect at the next boot.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::sysctl::{self, path_of};
use crate::context::{Context, Depth};
use crate::parse::unescape;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};

/// Settings and mounts of the next boot.
pub static COLLECTOR: Collector = Collector {
    name: "boot-files",
    cost: Cost { host_ms: 4, server_ms: 0 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "host.boot.sysctl.differing",
            "",
            "kernel settings whose value in the sysctl files is not the running one: name, value, running, file",
        ),
        fact(
            "host.boot.sysctl.gone",
            "",
            "settings of the sysctl files that this kernel does not have: name and file",
        ),
        fact(
            "host.boot.mounts",
            "",
            "mounts of /etc/fstab: mount_point, filesystem and those options that bear on a database",
        ),
    ],
    run: Run::Host(run),
};

/// Folders of sysctl.d(5); a file hides those of the same name in later folders.
const FOLDERS: [&str; 4] = ["/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d"];

/// Prefixes of settings that always exist. Others belong to modules that may not be loaded yet, so a missing one is not
/// an obsolete one.
const ALWAYS_THERE: [&str; 6] = ["vm.", "kernel.", "net.core.", "net.ipv4.tcp_", "net.ipv4.ip_", "fs.aio-"];

/// Mount options that are kept, by name; other options can contain credentials.
const OPTIONS: [&str; 49] = [
    "allocsize",
    "async",
    "atime",
    "attr2",
    "auto",
    "barrier",
    "bg",
    "commit",
    "compress",
    "compress-force",
    "data",
    "defaults",
    "delaylog",
    "dioread_lock",
    "dioread_nolock",
    "dirsync",
    "discard",
    "errors",
    "fg",
    "hard",
    "ihashsize",
    "inode32",
    "inode64",
    "intr",
    "irixsgid",
    "lazytime",
    "nfsvers",
    "noatime",
    "noattr2",
    "noauto",
    "nobarrier",
    "nodatacow",
    "nodelaylog",
    "nodelalloc",
    "nodiscard",
    "nodiratime",
    "nofail",
    "nointr",
    "norelatime",
    "osyncisdsync",
    "osyncisosync",
    "relatime",
    "ro",
    "rw",
    "size",
    "soft",
    "softerr",
    "strictatime",
    "sync",
];

fn run(context: &Context, readings: &Readings) {
    let source = &context.source;
    let written = written(source);
    let from = "/etc/sysctl.conf, sysctl.d";
    readings.put::<Value>(
        "host.boot.sysctl.differing",
        from,
        written.clone().map(|all| differing(source, &all).into()),
    );
    readings.put::<Value>("host.boot.sysctl.gone", from, written.map(|all| gone(source, &all).into()));
    readings.read("host.boot.mounts", "/etc/fstab", |p| Ok(Value::from(mounts(&source.read(p)?))));
}

/// A setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    value: String,
    file: String,
    /// Marked with `-`: it may be missing.
    may_fail: bool,
}

/// The last line for each setting. sysctl(8) reads /etc/sysctl.conf after all others; where systemd does so, a link
/// in /etc/sysctl.d puts it in its place.
fn written(source: &Source) -> Read<BTreeMap<String, Line>> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for folder in FOLDERS {
        let names = match source.list(folder) {
            Err(Missing::Absent(_)) => continue,
            other => other?,
        };
        for name in names.into_iter().filter(|name| name.ends_with(".conf")) {
            files.entry(name.clone()).or_insert_with(|| format!("{folder}/{name}"));
        }
    }
    let mut paths: Vec<String> = files.into_values().collect();
    paths.push("/etc/sysctl.conf".to_owned());
    let mut lines = BTreeMap::new();
    for path in paths {
        match source.read(&path) {
            Ok(text) => lines.extend(settings(&text, &path)),
            // A link to nothing, or to /dev/null, hides a file.
            Err(Missing::Absent(_)) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(lines)
}

fn settings<'a>(text: &'a str, file: &'a str) -> impl Iterator<Item = (String, Line)> + 'a {
    text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';'])).filter_map(move |line| {
        let (name, value) = line.split_once('=')?;
        let may_fail = name.starts_with('-');
        let line = Line { value: words(value), file: file.to_owned(), may_fail };
        Some((dotted(name.trim_start_matches('-').trim()), line))
    })
}

/// `net/ipv4/tcp_sack` means `net.ipv4.tcp_sack`: when the first separator is a slash, dots and slashes swap their
/// roles.
fn dotted(name: &str) -> String {
    let slashes = name.find(['/', '.']).is_some_and(|at| name[at..].starts_with('/'));
    if !slashes {
        return name.to_owned();
    }
    name.chars()
        .map(|c| {
            if c == '/' {
                '.'
            } else if c == '.' {
                '/'
            } else {
                c
            }
        })
        .collect()
}

fn words(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<&str>>().join(" ")
}

/// Compares only settings that are facts.
fn differing(source: &Source, lines: &BTreeMap<String, Line>) -> Vec<Value> {
    let known = lines.iter().filter(|(name, _)| sysctl::settings().any(|(known, _)| known == name.as_str()));
    known
        .filter_map(|(name, line)| {
            let running = words(&source.read(&path_of(name)).ok()?);
            let zeroed_by_its_twin = is_of_a_pair(name) && running == "0";
            (running != line.value && !zeroed_by_its_twin)
                .then(|| json!({"name": name, "value": line.value, "running": running, "file": line.file}))
        })
        .collect()
}

/// Ratio and bytes settings come in pairs: writing one zeroes the other. The comparison of the other one reports which
/// of the two is in force.
fn is_of_a_pair(name: &str) -> bool {
    name.starts_with("vm.dirty_") && (name.ends_with("_bytes") || name.ends_with("_ratio"))
}

fn gone(source: &Source, lines: &BTreeMap<String, Line>) -> Vec<Value> {
    let lasting = lines.iter().filter(|(name, line)| {
        !line.may_fail && !name.contains('*') && ALWAYS_THERE.iter().any(|root| name.starts_with(root))
    });
    lasting
        .filter(|(name, _)| !source.exists(&path_of(name)))
        .map(|(name, line)| json!({"name": name, "file": line.file}))
        .collect()
}

/// fstab(5).
fn mounts(text: &str) -> Vec<Value> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (point, kind) = (fields.next()?, fields.next()?);
            let options = fields.next().unwrap_or("defaults").split(',');
            let kept: Vec<&str> =
                options.filter(|o| OPTIONS.contains(&o.split('=').next().unwrap_or(o))).collect();
            Some(json!({"mount_point": unescape(point), "filesystem": kind, "options": kept}))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::tree;

    #[test]
    fn the_last_file_decides_and_a_file_hides_its_namesake() {
        let (_root, source) = tree(&[
            (
                "etc/sysctl.d/60-db.conf",
                "vm.swappiness = 1\n# vm.swappiness = 9\nkernel/sched_min_granularity_ns=1\n",
            ),
            ("usr/lib/sysctl.d/60-db.conf", "vm.swappiness = 30\n"),
            (
                "usr/lib/sysctl.d/50-first.conf",
                "vm.swappiness = 40\nvm.dirty_ratio=5\n-kernel.not_here = 1\n",
            ),
            ("proc/sys/vm/swappiness", "60\n"),
            ("proc/sys/vm/dirty_ratio", "0\n"),
        ]);
        let lines = written(&source).unwrap();
        assert_eq!(
            differing(&source, &lines),
            [
                json!({"name": "vm.swappiness", "value": "1", "running": "60", "file": "/etc/sysctl.d/60-db.conf"})
            ]
        );
        assert_eq!(
            gone(&source, &lines),
            [json!({"name": "kernel.sched_min_granularity_ns", "file": "/etc/sysctl.d/60-db.conf"})]
        );
    }

    #[test]
    fn lists_are_equal_whatever_white_space_divides_them_and_sysctl_conf_comes_last() {
        let (_root, source) = tree(&[
            ("etc/sysctl.conf", "net.ipv4.ip_local_port_range = 10000   65000\n"),
            ("etc/sysctl.d/99-x.conf", "net.ipv4.ip_local_port_range = 1 2\n"),
            ("proc/sys/net/ipv4/ip_local_port_range", "10000\t65000\n"),
        ]);
        assert_eq!(differing(&source, &written(&source).unwrap()), Vec::<Value>::new());
    }

    #[test]
    fn options_that_can_hold_credentials_are_not_kept() {
        let found = mounts(
            "# a comment\n//nas/x /mnt/a\\040b cifs username=u,password=hunter2,soft 0 0\n/dev/sda1 / xfs\n",
        );
        assert_eq!(
            found,
            [
                json!({"mount_point": "/mnt/a b", "filesystem": "cifs", "options": ["soft"]}),
                json!({"mount_point": "/", "filesystem": "xfs", "options": ["defaults"]}),
            ]
        );
    }
}
