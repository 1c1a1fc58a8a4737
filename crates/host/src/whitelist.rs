//! The kernel settings that mydyno may write to, and the values that each takes. Nothing else is ever written.

use std::fs;
use std::path::{Path, PathBuf};

use mydyno_journal::Machine;
use mydyno_linux::cpus;

use crate::task::parse_cpus;
/// The values of a setting. All of them read back as they were written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Form {
    /// A whole number within bounds that is a multiple of a step.
    Number { low: u64, high: u64, step: u64 },
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of the words that the file lists, with brackets around the one in force.
    Bracketed,
    /// A list of CPUs, as the kernel shows it.
    Cpus,
    /// A share of memory (`20%`) or a number of bytes, in two files of which one is 0: writing either zeroes the other, so
    /// they are one setting here. The kernel's least number of bytes is two pages.
    ShareOrBytes,
}

/// A setting of the whitelist.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) name: String,
    pub(crate) form: Form,
    /// Relative to `/proc/sys` or `/sys`.
    files: Vec<(Root, String)>,
    /// The block device, for settings of one.
    device: Option<String>,
    /// Settings that the kernel gives new values along with this one; they go back with it.
    pub(crate) along: Vec<String>,
    /// Settings that the kernel resets without need when this one is set; they get their values again at once.
    pub(crate) unmoved: Vec<String>,
}

#[derive(Debug, Clone, Copy)]
enum Root {
    Proc,
    ProcSys,
    Sys,
}

const ANY: Form = Form::Number { low: 0, high: u32::MAX as u64, step: 1 };
const SWITCH: Form = Form::Number { low: 0, high: 1, step: 1 };

/// Below `/proc/sys`, named with dots: Documentation/admin-guide/sysctl of the kernel.
const SYSCTLS: &[(&str, Form)] = &[
    ("vm.swappiness", Form::Number { low: 0, high: 200, step: 1 }),
    ("vm.dirty_expire_centisecs", Form::Number { low: 0, high: 360_000, step: 1 }),
    ("vm.dirty_writeback_centisecs", Form::Number { low: 0, high: 360_000, step: 1 }),
    ("vm.vfs_cache_pressure", Form::Number { low: 0, high: 10_000, step: 1 }),
    ("vm.zone_reclaim_mode", Form::Number { low: 0, high: 7, step: 1 }),
    ("vm.compaction_proactiveness", Form::Number { low: 0, high: 100, step: 1 }),
    ("vm.watermark_scale_factor", Form::Number { low: 1, high: 3000, step: 1 }),
    ("vm.nr_hugepages", Form::Number { low: 0, high: 1 << 24, step: 1 }),
    ("vm.page-cluster", Form::Number { low: 0, high: 31, step: 1 }),
    ("kernel.numa_balancing", SWITCH),
    ("kernel.sched_autogroup_enabled", SWITCH),
    ("net.core.somaxconn", Form::Number { low: 128, high: 65_535, step: 1 }),
    ("net.core.netdev_max_backlog", ANY),
    ("net.ipv4.tcp_max_syn_backlog", ANY),
    ("net.ipv4.tcp_slow_start_after_idle", SWITCH),
    ("net.ipv4.tcp_tw_reuse", Form::Number { low: 0, high: 2, step: 1 }),
];

/// Below `/sys/kernel/debug`, where debugfs is mounted: Documentation/scheduler/sched-design-CFS.rst. The shortest time that a
/// task runs before another takes its place, since Linux 6.6.
const DEBUG: &[(&str, &str, Form)] = &[(
    "sched.base_slice_ns",
    "sched/base_slice_ns",
    Form::Number { low: 100_000, high: 1_000_000_000, step: 1 },
)];

/// Largest number of requests of a queue that has a scheduler: `MAX_SCHED_RQ` of block/blk-mq-sched.h, 16 times
/// `BLKDEV_DEFAULT_RQ`.
const MOST_REQUESTS: u64 = 16 * 128;

/// Settings that the kernel changes along with others and that only go back with them: no lever sets them.
const ALONG: &[(&str, Form)] = &[("vm.min_free_kbytes", ANY)];

/// Transparent huge pages: Documentation/admin-guide/mm/transhuge.rst.
const THP: &[(&str, &str, Form)] = &[
    ("thp.enabled", "enabled", Form::Bracketed),
    ("thp.defrag", "defrag", Form::Bracketed),
    ("thp.shmem_enabled", "shmem_enabled", Form::Bracketed),
    ("thp.khugepaged_defrag", "khugepaged/defrag", SWITCH),
    (
        "thp.khugepaged_pages_to_scan",
        "khugepaged/pages_to_scan",
        Form::Number { low: 1, high: 1 << 20, step: 1 },
    ),
    (
        "thp.khugepaged_scan_sleep_millisecs",
        "khugepaged/scan_sleep_millisecs",
        Form::Number { low: 0, high: 3_600_000, step: 1 },
    ),
    (
        "thp.khugepaged_alloc_sleep_millisecs",
        "khugepaged/alloc_sleep_millisecs",
        Form::Number { low: 0, high: 3_600_000, step: 1 },
    ),
    ("thp.khugepaged_max_ptes_none", "khugepaged/max_ptes_none", Form::Number { low: 0, high: 511, step: 1 }),
];

/// Block queues: Documentation/ABI/stable/sysfs-block. Read-ahead is rounded to pages, of 64 KiB at most.
const QUEUE: &[(&str, Form)] = &[
    ("scheduler", Form::Bracketed),
    ("nr_requests", Form::Number { low: 4, high: 65_536, step: 1 }),
    ("read_ahead_kb", Form::Number { low: 0, high: 1 << 20, step: 64 }),
    ("rotational", SWITCH),
    ("max_sectors_kb", Form::Number { low: 4, high: 1 << 16, step: 4 }),
    ("write_cache", Form::OneOf(&["write back", "write through"])),
    ("wbt_lat_usec", Form::Number { low: 0, high: 10_000_000, step: 1 }),
    ("nomerges", Form::Number { low: 0, high: 2, step: 1 }),
    ("rq_affinity", Form::Number { low: 0, high: 2, step: 1 }),
];

/// Tunables of schedulers, there while theirs is the queue's: Documentation/block/deadline-iosched.rst, kyber-iosched.rst and
/// bfq-iosched.rst. Times of mq-deadline are in
/// milliseconds that the kernel keeps in ticks of 1 to 10 of them.
const SCHEDULER: &[(&str, Form)] = &[
    ("read_expire", Form::Number { low: 0, high: 600_000, step: 20 }),
    ("write_expire", Form::Number { low: 0, high: 600_000, step: 20 }),
    ("prio_aging_expire", Form::Number { low: 0, high: 600_000, step: 20 }),
    ("writes_starved", Form::Number { low: 0, high: 10_000, step: 1 }),
    ("front_merges", SWITCH),
    ("fifo_batch", Form::Number { low: 0, high: 10_000, step: 1 }),
    ("async_depth", Form::Number { low: 1, high: 65_536, step: 1 }),
    ("read_lat_nsec", Form::Number { low: 1, high: 60_000_000_000, step: 1 }),
    ("write_lat_nsec", Form::Number { low: 1, high: 60_000_000_000, step: 1 }),
    ("low_latency", SWITCH),
    ("slice_idle", Form::Number { low: 0, high: 1000, step: 1 }),
    ("strict_guarantees", SWITCH),
    ("max_budget", Form::Number { low: 0, high: 1 << 20, step: 1 }),
];

/// The setting with a name, if mydyno may write to it.
pub(crate) fn find(name: &str) -> Option<Known> {
    let known = |form: &Form, files: Vec<(Root, String)>| Known {
        name: name.to_owned(),
        form: form.clone(),
        files,
        device: None,
        along: vec![],
        unmoved: vec![],
    };
    if let "vm.dirty" | "vm.dirty_background" = name {
        let file = name.replace('.', "/");
        let files = ["ratio", "bytes"].map(|kind| (Root::ProcSys, format!("{file}_{kind}")));
        return Some(known(&Form::ShareOrBytes, files.into()));
    }
    if let Some((_, form)) = SYSCTLS.iter().chain(ALONG).find(|(n, _)| *n == name) {
        return Some(known(form, vec![(Root::ProcSys, name.replace('.', "/"))]));
    }
    if let Some((_, file, form)) = THP.iter().find(|(n, _, _)| *n == name) {
        let known = known(form, vec![(Root::Sys, format!("kernel/mm/transparent_hugepage/{file}"))]);
        // set_recommended_min_free_kbytes of mm/khugepaged.c: raised above the administrator's value and never lowered to it.
        let along = match *file {
            "enabled" | "shmem_enabled" => vec!["vm.min_free_kbytes".to_owned()],
            _ => vec![],
        };
        return Some(Known { along, ..known });
    }
    if let Some((_, file, form)) = DEBUG.iter().find(|(n, _, _)| *n == name) {
        return Some(known(form, vec![(Root::Sys, format!("kernel/debug/{file}"))]));
    }
    if let Some(number) = name.strip_prefix("irq.").and_then(|rest| rest.strip_suffix(".affinity")) {
        let plain = !number.is_empty() && number.len() < 8 && number.chars().all(|c| c.is_ascii_digit());
        let files = vec![(Root::Proc, format!("irq/{number}/smp_affinity_list"))];
        return plain.then(|| known(&Form::Cpus, files));
    }
    let (device, file) = name.strip_prefix("queue.")?.split_once('.')?;
    let (form, path) = match file.strip_prefix("iosched.") {
        Some(tunable) => (&SCHEDULER.iter().find(|(n, _)| *n == tunable)?.1, format!("iosched/{tunable}")),
        None => (&QUEUE.iter().find(|(n, _)| *n == file)?.1, file.to_owned()),
    };
    // A device is one name, so that no name leads out of /sys/block.
    let plain = !device.is_empty()
        && device.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '!'));
    plain.then(|| Known {
        device: Some(device.to_owned()),
        // The elevator switch sets these to the new scheduler's defaults (block/elevator.c, block/blk-wbt.c).
        along: match file {
            "scheduler" => ["nr_requests", "wbt_lat_usec"]
                .map(str::to_owned)
                .into_iter()
                .chain(SCHEDULER.iter().map(|(n, _)| format!("iosched.{n}")))
                .map(|n| format!("queue.{device}.{n}"))
                .collect(),
            // mq-deadline and kyber derive it from the number of requests (dd_depth_updated of block/mq-deadline.c).
            "nr_requests" => vec![format!("queue.{device}.iosched.async_depth")],
            // bfq raises it to 8 ms (bfq_strict_guarantees_store of block/bfq-iosched.c).
            "iosched.strict_guarantees" => vec![format!("queue.{device}.iosched.slice_idle")],
            _ => vec![],
        },
        // New limits of a queue come with the read-ahead that suits its optimal I/O size (blk_apply_bdi_limits of
        // block/blk-settings.c, since Linux 6.9), whatever the administrator had set.
        unmoved: match file {
            "write_cache" | "rotational" | "max_sectors_kb" => vec![format!("queue.{device}.read_ahead_kb")],
            _ => vec![],
        },
        ..known(form, vec![(Root::Sys, format!("block/{device}/queue/{path}"))])
    })
}

/// Whether a setting only ever goes back with another.
pub(crate) fn only_along(name: &str) -> bool {
    ALONG.iter().any(|(along, _)| *along == name)
}

/// The files of block queues, with the tunables of all schedulers.
pub(crate) fn queue_files() -> Vec<String> {
    let tunables = SCHEDULER.iter().map(|(name, _)| format!("iosched.{name}"));
    QUEUE.iter().map(|(name, _)| (*name).to_owned()).chain(tunables).collect()
}

/// Names of the settings that are listed for a machine: those of block queues for disks that hold something.
pub(crate) fn names(machine: &Machine) -> Vec<String> {
    let mut names = vec!["vm.dirty".to_owned(), "vm.dirty_background".to_owned()];
    names.extend(SYSCTLS.iter().map(|(name, _)| (*name).to_owned()));
    names.extend(THP.iter().chain(DEBUG).map(|(name, _, _)| (*name).to_owned()));
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
        names.extend(QUEUE.iter().map(|(file, _)| format!("queue.{disk}.{file}")));
        let tunables = SCHEDULER.iter().map(|(file, _)| format!("queue.{disk}.iosched.{file}"));
        let there = |name: &String| find(name).is_some_and(|known| known.files(machine)[0].exists());
        names.extend(tunables.filter(there));
    }
    names.extend(interrupts(machine).into_iter().map(|number| format!("irq.{number}.affinity")));
    names
}

/// Numbers of the interrupts that somebody handles: /proc/irq of the kernel's Documentation/core-api/irq/irq-affinity.rst.
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
            Root::ProcSys => machine.proc().join("sys").join(relative),
            Root::Sys => machine.sys().join(relative),
        };
        self.files.iter().map(path).collect()
    }

    /// The largest number that the kernel takes, where that is less than the form's: without a scheduler a queue has as many
    /// requests as its driver has tags (blk_mq_update_nr_requests of block/blk-mq.c).
    pub(crate) fn cap(&self, machine: &Machine) -> Option<u64> {
        let device = self.device.as_ref().filter(|_| self.name.ends_with(".nr_requests"))?;
        let folder = machine.sys().join("block").join(device);
        let line = |file: &str| fs::read_to_string(folder.join(file)).ok();
        match line("queue/scheduler").is_some_and(|text| text.contains("[none]")) {
            true => line("mq/0/nr_tags")?.trim().parse().ok(),
            false => Some(MOST_REQUESTS),
        }
    }

    /// The network namespace whose setting it is: `/proc/sys/net` shows that of the reader, network_namespaces(7).
    pub(crate) fn namespace(&self, machine: &Machine) -> Option<String> {
        self.name.starts_with("net.").then(|| machine.namespace("net")).flatten()
    }

    /// Tells a device from a later one with its name. An interrupt is identified by its handlers.
    pub(crate) fn device_identity(&self, machine: &Machine) -> Option<String> {
        if self.form == Form::Cpus {
            return handlers(self.files(machine)[0].parent()?);
        }
        disk_identity(machine, self.device.as_ref()?)
    }
}

/// Tells a disk from a later one with its name: its number, and the kernel's count of disks (diskseq, Linux 5.15).
pub(crate) fn disk_identity(machine: &Machine, disk: &str) -> Option<String> {
    let folder = machine.sys().join("block").join(disk);
    let line = |file: &str| fs::read_to_string(folder.join(file)).ok().map(|t| t.trim().to_owned());
    Some(format!("{} diskseq {}", line("dev")?, line("diskseq").unwrap_or_else(|| "unknown".to_owned())))
}

impl Form {
    /// Whether a value has the form; the choices of `Bracketed` are the kernel's.
    pub(crate) fn fits(&self, value: &str) -> bool {
        // A number has one spelling, since it is compared with what the kernel shows.
        let number = || value.parse::<u64>().ok().filter(|n| n.to_string() == value);
        match self {
            Self::Number { low, high, step } => {
                number().is_some_and(|n| (*low..=*high).contains(&n) && n.is_multiple_of(*step))
            }
            Self::OneOf(words) => words.contains(&value),
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

    /// The values that it takes, for people.
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
            "thp.enabled/../x",
        ] {
            assert!(find(name).is_none(), "{name}");
        }
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
