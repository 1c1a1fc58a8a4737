//! The kernel settings that mydyno may write, and their values: the rows of the table of settings that name a file of
//! procfs or sysfs. No other file is ever written.

use std::fs;
use std::path::{Path, PathBuf};

use mydyno_journal::Machine;
use mydyno_linux::cpus;
use mydyno_settings::{Row, table};

use crate::task::parse_cpus;

/// The values of a setting. All of them read back as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// An integer within bounds that is a multiple of a step.
    Number { low: u64, high: u64, step: u64 },
    /// One of these words.
    OneOf(Vec<String>),
    /// One of the words in the file, where brackets mark the current one.
    Bracketed,
    /// A list of CPUs in the kernel's format.
    Cpus,
    /// A share of memory (`20%`) or a number of bytes, in two files of which one is 0: writing either zeroes the other,
    /// so they are one setting here. The kernel's minimum is two pages.
    ShareOrBytes,
}

/// A setting of the whitelist.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) form: Form,
    /// Relative to `/proc` or `/sys`.
    files: Vec<(Root, String)>,
    /// The block device of a setting of its queue or of its write-back.
    device: Option<String>,
    /// Settings that the kernel changes along with this one; they are restored with it.
    pub(crate) along: Vec<String>,
    /// Settings that the kernel needlessly resets when this one is set; they are set again at once.
    pub(crate) unmoved: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Root {
    Proc,
    Sys,
}

/// Largest number of requests of a queue that has a scheduler: `MAX_SCHED_RQ` of block/blk-mq-sched.h, 16 times
/// `BLKDEV_DEFAULT_RQ`.
pub const MOST_REQUESTS: u64 = 16 * 128;

/// Prefixes of settings of one disk: those of its queue, and those of its backing device, which share the dirty memory
/// of the host among the disks (Documentation/ABI/testing/sysfs-class-bdi).
const OF_DISKS: [&str; 2] = ["queue.", "bdi."];

/// The row of a setting, with the part of its name that `*` stands for.
fn row(name: &str) -> Option<(&'static Row, Option<&str>)> {
    table().rows().filter(|row| row.path.is_some()).find_map(|row| match &row.lever {
        Some(lever) => instance(lever, name).map(|middle| (row, middle)),
        None => instance(&row.id, name).map(|middle| (row, middle)),
    })
}

/// The part of a name that the `*` of a pattern stands for; `Some(None)` for a pattern without one, `None` when the
/// name does not match.
fn instance<'a>(pattern: &str, name: &'a str) -> Option<Option<&'a str>> {
    let Some((head, tail)) = pattern.split_once('*') else { return (pattern == name).then_some(None) };
    // A device name has one component, so no name leads out of its folder.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '!');
    let middle = name.strip_prefix(head)?.strip_suffix(tail)?;
    (!middle.is_empty() && middle.chars().all(plain)).then_some(Some(middle))
}

/// The values of a row. `None` for rows that are not a file of the kernel.
fn form(row: &Row) -> Option<Form> {
    use mydyno_settings::Form as Of;
    Some(match &row.form {
        Of::Integer { min, max, step } => Form::Number {
            low: min.parse().ok()?,
            high: max.parse().ok()?,
            step: step.as_deref().map_or(Some(1), |step| step.parse().ok().filter(|step| *step > 0))?,
        },
        Of::Enum { listed: true, .. } => Form::Bracketed,
        Of::Enum { values, listed: false } => Form::OneOf(values.clone()),
        Of::Cpus => Form::Cpus,
        Of::ShareOrBytes => Form::ShareOrBytes,
        _ => return None,
    })
}

/// The setting with this name, if mydyno may write it.
pub(crate) fn find(name: &str) -> Option<Known> {
    let (row, middle) = row(name)?;
    let form = form(row)?;
    if form == Form::Cpus && !middle?.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    let path = row.path.as_ref()?.replace('*', middle.unwrap_or_default());
    let mut paths = vec![path];
    if form == Form::ShareOrBytes {
        paths.push(paths[0].strip_suffix("_ratio").map(|stem| format!("{stem}_bytes"))?);
    }
    let others = |patterns: &[String]| patterns.iter().flat_map(|p| expand(p, middle)).collect();
    Some(Known {
        name: name.to_owned(),
        form,
        files: paths.iter().map(|path| relative(path)).collect::<Option<_>>()?,
        device: middle.filter(|_| disk_of(name).is_some()).map(str::to_owned),
        along: others(&row.along),
        unmoved: others(&row.unmoved),
    })
}

/// A file's root and its path below the root.
fn relative(path: &str) -> Option<(Root, String)> {
    let roots = [(Root::Proc, "/proc/"), (Root::Sys, "/sys/")];
    roots.into_iter().find_map(|(root, prefix)| Some((root, path.strip_prefix(prefix)?.to_owned())))
}

/// The names that a pattern of a row stands for: its first `*` is the device of the requested name, a second one each
/// matching lever of the table.
fn expand(pattern: &str, device: Option<&str>) -> Vec<String> {
    let of_device = |pattern: &str| match device {
        Some(device) => pattern.replacen('*', device, 1),
        None => pattern.to_owned(),
    };
    match pattern.strip_suffix(".*").filter(|head| head.contains('*')) {
        Some(head) => {
            table().levers().filter(|lever| lever.starts_with(&format!("{head}."))).map(of_device).collect()
        }
        None => vec![of_device(pattern)],
    }
}

/// The disk of a setting, by its name in the kernel, as in `sda`; `None` for a setting that is not one disk's.
pub fn disk_of(name: &str) -> Option<&str> {
    OF_DISKS.iter().find_map(|prefix| name.strip_prefix(prefix)?.split('.').next())
}

/// Whether a setting is only ever restored along with another one.
pub(crate) fn only_along(name: &str) -> bool {
    row(name).is_some_and(|(row, _)| row.lever.is_none())
}

/// Levers of the table that have a file of the kernel.
fn levers() -> impl Iterator<Item = &'static str> {
    table()
        .rows()
        .filter(|row| row.path.is_some() && form(row).is_some())
        .filter_map(|row| row.lever.as_deref())
}

/// The settings of one disk, as in `queue.*.nr_requests`, with the tunables of all schedulers; `*` stands for the disk.
pub fn of_disks() -> Vec<String> {
    levers().filter(|lever| disk_of(lever) == Some("*")).map(str::to_owned).collect()
}

/// Names of the settings that are listed for a machine; those of disks for disks with a size.
pub(crate) fn names(machine: &Machine) -> Vec<String> {
    let mut names: Vec<String> = levers().filter(|lever| !lever.contains('*')).map(str::to_owned).collect();
    let entries = fs::read_dir(machine.sys().join("block"));
    let mut disks: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let sectors: u64 = fs::read_to_string(entry.path().join("size")).ok()?.trim().parse().ok()?;
            let name = entry.file_name().into_string().ok()?;
            let real = !["loop", "ram", "zram"].iter().any(|kind| name.starts_with(kind));
            (sectors > 0 && real).then_some(name)
        })
        .collect();
    disks.sort();
    for disk in disks {
        let there = |name: &String| find(name).is_some_and(|known| known.files(machine)[0].exists());
        for pattern in of_disks() {
            let name = pattern.replacen('*', &disk, 1);
            // Tunables exist while their scheduler is in use.
            if !pattern.contains(".iosched.") || there(&name) {
                names.push(name);
            }
        }
    }
    names.extend(interrupts(machine).into_iter().map(|number| format!("irq.{number}.affinity")));
    names
}

/// Numbers of interrupts that have a handler: /proc/irq of the kernel's Documentation/core-api/irq/irq-affinity.rst.
fn interrupts(machine: &Machine) -> Vec<u32> {
    let folder = machine.proc().join("irq");
    let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.retain(|number| handlers(&folder.join(number.to_string())).is_some());
    numbers.sort_unstable();
    numbers
}

/// The handlers of an interrupt: the kernel makes a folder for each.
fn handlers(folder: &Path) -> Option<String> {
    let entries = fs::read_dir(folder).ok()?.flatten().filter(|e| e.file_type().is_ok_and(|t| t.is_dir()));
    let mut names: Vec<String> = entries.map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    (!names.is_empty()).then(|| names.join(" "))
}

impl Known {
    /// Its files on a machine.
    pub(crate) fn files(&self, machine: &Machine) -> Vec<PathBuf> {
        let path = |(root, relative): &(Root, String)| match root {
            Root::Proc => machine.proc().join(relative),
            Root::Sys => machine.sys().join(relative),
        };
        self.files.iter().map(path).collect()
    }

    /// The kernel's maximum where it is below the form's: without a scheduler a queue has as many requests as its
    /// driver has tags (blk_mq_update_nr_requests of block/blk-mq.c).
    pub(crate) fn cap(&self, machine: &Machine) -> Option<u64> {
        let device = self.device.as_ref().filter(|_| self.name.ends_with(".nr_requests"))?;
        let folder = machine.sys().join("block").join(device);
        let line = |file: &str| fs::read_to_string(folder.join(file)).ok();
        match line("queue/scheduler").is_some_and(|text| text.contains("[none]")) {
            true => line("mq/0/nr_tags")?.trim().parse().ok(),
            false => Some(MOST_REQUESTS),
        }
    }

    /// The network namespace of the setting: `/proc/sys/net` shows that of the reader, network_namespaces(7).
    pub(crate) fn namespace(&self, machine: &Machine) -> Option<String> {
        self.name.starts_with("net.").then(|| machine.namespace("net")).flatten()
    }

    /// Identity of a device, which distinguishes it from a later one with its name. An interrupt is identified by its
    /// handlers.
    pub(crate) fn device_identity(&self, machine: &Machine) -> Option<String> {
        if self.form == Form::Cpus {
            return handlers(self.files(machine)[0].parent()?);
        }
        disk_identity(machine, self.device.as_ref()?)
    }
}

/// Identity of a disk: its device number, and the kernel's sequence number of disks (diskseq, Linux 5.15).
pub(crate) fn disk_identity(machine: &Machine, disk: &str) -> Option<String> {
    let folder = machine.sys().join("block").join(disk);
    let line = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|t| t.trim().to_owned());
    Some(format!("{} diskseq {}", line("dev")?, line("diskseq").unwrap_or_else(|| "unknown".to_owned())))
}

impl Form {
    /// Whether a value has the form; the choices of `Bracketed` are the kernel's.
    pub(crate) fn fits(&self, value: &str) -> bool {
        // A number has one spelling, because it is compared with the kernel's.
        let number = || value.parse::<u64>().ok().filter(|n| n.to_string() == value);
        match self {
            Self::Number { low, high, step } => {
                number().is_some_and(|n| (*low..=*high).contains(&n) && n.is_multiple_of(*step))
            }
            Self::OneOf(words) => words.iter().any(|word| word == value),
            Self::Bracketed => true,
            Self::Cpus => parse_cpus(value).is_some_and(|cpus| cpus::show(&cpus) == value),
            Self::ShareOrBytes => match value.strip_suffix('%') {
                Some(share) => {
                    share.parse::<u64>().is_ok_and(|n| (1..=100).contains(&n) && n.to_string() == share)
                }
                None => number().is_some_and(|n| n >= 2 * 65_536),
            },
        }
    }

    /// The accepted values, for people.
    pub(crate) fn describe(&self, known: &Known, machine: &Machine) -> String {
        match self {
            Self::Number { low, high, step: 1 } => {
                format!(
                    "a whole number from {low} to {}",
                    known.cap(machine).map_or(*high, |cap| cap.min(*high))
                )
            }
            Self::Number { low, high, step } => format!("a multiple of {step} from {low} to {high}"),
            Self::OneOf(words) => words.join(" or "),
            Self::Cpus => "a list of CPUs as the kernel shows it, as in 0-1,3".to_owned(),
            Self::Bracketed => {
                let text = fs::read_to_string(&known.files(machine)[0]).unwrap_or_default();
                format!("one of {}", text.trim().replace(['[', ']'], ""))
            }
            Self::ShareOrBytes => "a share of memory like 20%, or a number of bytes from 131072".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_the_list_are_known() {
        for name in [
            "vm.swappiness",
            "vm.dirty",
            "thp.enabled",
            "queue.sda.scheduler",
            "queue.nvme0n1.nr_requests",
            "queue.loop0.write_cache",
            "queue.sda.iosched.fifo_batch",
            "irq.36.affinity",
            "bdi.sda.max_ratio",
            "bdi.loop0.strict_limit",
            "bdi.sda.max_ratio_fine",
        ] {
            assert!(find(name).is_some(), "{name}");
        }
        for name in [
            "",
            "vm",
            "vm.overcommit_memory",
            "kernel.core_pattern",
            "kernel.sysrq",
            "vm.dirty_ratio",
            "queue.scheduler",
            "queue..scheduler",
            "queue.../../x.scheduler",
            "queue.a/b.scheduler",
            "queue.sda.delete",
            "queue.sda.iosched.",
            "queue.sda.iosched.scheduler",
            "queue.sda.iosched/../scheduler",
            "irq..affinity",
            "irq.default_smp_affinity",
            "irq.1/../2.affinity",
            "irq.36.spurious",
            "bdi.sda.max_bytes",
            "bdi.7:0.max_ratio",
            "bdi.*.max_ratio_fine",
            "thp.enabled/../x",
        ] {
            assert!(find(name).is_none(), "{name}");
        }
    }

    #[test]
    fn every_row_with_a_file_can_be_written_and_what_goes_along_is_known() {
        for row in table().rows().filter(|row| row.path.is_some()) {
            let name = row.lever.as_ref().unwrap_or(&row.id);
            let middle = if name.starts_with("irq.") { "7" } else { "sda" };
            let known = find(&name.replace('*', middle)).unwrap_or_else(|| panic!("{name}"));
            for other in known.along.iter().chain(&known.unmoved) {
                assert!(find(other).is_some(), "{name}: {other}");
            }
        }
        assert_eq!(find("thp.enabled").unwrap().along, ["vm.min_free_kbytes"]);
        let along = find("queue.sda.scheduler").unwrap().along;
        assert_eq!(
            along[..3],
            ["queue.sda.nr_requests", "queue.sda.wbt_lat_usec", "queue.sda.iosched.read_expire"]
        );
        assert_eq!(along.len(), 15);
        assert_eq!(find("queue.sda.write_cache").unwrap().unmoved, ["queue.sda.read_ahead_kb"]);
        assert!(only_along("vm.min_free_kbytes") && !only_along("thp.enabled"));
        assert_eq!(find("bdi.sda.min_ratio").unwrap().along, ["bdi.sda.min_ratio_fine"]);
        assert!(only_along("bdi.sda.min_ratio_fine") && !only_along("bdi.sda.min_ratio"));
    }

    #[test]
    fn values_have_the_one_spelling_that_the_kernel_shows() {
        let form = Form::Number { low: 0, high: 200, step: 1 };
        assert!(form.fits("0") && form.fits("200"));
        for value in ["", "201", "-1", "+1", "01", "1 ", "1\n", "0x10"] {
            assert!(!form.fits(value), "{value:?}");
        }
        assert!(Form::Number { low: 0, high: 1024, step: 64 }.fits("128"));
        assert!(!Form::Number { low: 0, high: 1024, step: 64 }.fits("100"));
        for (value, fits) in [
            ("20%", true),
            ("0%", false),
            ("101%", false),
            ("020%", false),
            ("1073741824", true),
            ("4096", false),
            ("0", false),
        ] {
            assert_eq!(Form::ShareOrBytes.fits(value), fits, "{value}");
        }
    }
}
