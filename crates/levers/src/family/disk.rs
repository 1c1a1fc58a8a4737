//! A separate disk for the server's data.

use mydyno_host::disk::{DiskSpec, Medium};
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::emulated::{self, Spec as Drive};
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use mydyno_host::{Machine, loops, setting};
use mydyno_model::lever::{LeverInfo, LeverValue};
use mydyno_model::units::parse_size;

use crate::draft::{DiskDraft, Draft};
use crate::error::LeverError;
use crate::info::{at_start, reason};
use crate::kind::Family;
use crate::lever_set::When;

/// The size of a disk in a file, unless `disk.size` is given.
pub(crate) const FILE_BYTES: u64 = 2 << 30;
/// The size of an emulated disk, unless `disk.size` is given: it lies in locked memory.
pub(crate) const EMULATED_BYTES: u64 = 512 << 20;
/// Modes of an emulated disk's volatile cache.
const CACHES: [(&str, CacheMode); 3] =
    [("off", CacheMode::Off), ("on", CacheMode::On), ("ignores-flushes", CacheMode::IgnoresFlushes)];

/// Levers beside those of the queue: id, meaning, form of the values.
const LEVERS: [(&str, &str, &str); 6] = [
    ("disk.file_system", "a disk of its own for the server's data: a file as a loop device", "a file system"),
    ("disk.medium", "what that disk is made of; an emulated one concerns the whole host", "file or emulated"),
    ("disk.cache", "the volatile cache of an emulated disk", "off, on or ignores-flushes"),
    (
        "disk.depth",
        "from how many waiting requests an emulated disk takes the nearest first",
        "a whole number from 1 to 32",
    ),
    ("disk.mount_options", "mount options of that disk", "options with commas, as in noatime,barrier=0"),
    ("disk.size", "size of that disk", "a size like 4G; 2 GiB unless given"),
];

pub(crate) struct Disk;

impl Family for Disk {
    fn parse(&self, id: &str, value: &str, draft: &mut Draft) -> Result<Option<When>, LeverError> {
        let wrong = |takes: &str| LeverError::value(id, value, takes);
        let Some(name) = id.strip_prefix("disk.") else { return Ok(None) };
        let disk = &mut draft.disk;
        match name {
            "file_system" => {
                let named = FileSystem::named(value).ok_or_else(|| wrong(&file_systems()))?;
                disk.file_system = Some(named);
            }
            "medium" => {
                disk.emulated = match value {
                    "file" => false,
                    "emulated" => true,
                    _ => return Err(wrong("file or emulated")),
                };
            }
            "cache" => {
                let known = CACHES.iter().find(|(name, _)| *name == value);
                disk.cache = Some(known.ok_or_else(|| wrong(&CACHES.map(|(name, _)| name).join(" ")))?.1);
            }
            "depth" => disk.depth = Some(value.parse().map_err(|_| wrong("a whole number from 1 to 32"))?),
            "mount_options" => disk.options = value.to_owned(),
            "size" => disk.bytes = Some(parse_size(value).map_err(|_| wrong("a size like 512M"))?),
            _ => match name.strip_prefix("queue.").filter(|file| is_queue_file(file)) {
                Some(file) => {
                    draft.lever_set.server.arrangement.queue.push((file.to_owned(), value.to_owned()));
                }
                None => return Ok(None),
            },
        }
        Ok(Some(When::ServerStart))
    }

    fn list(&self, machine: &Machine) -> Vec<LeverInfo> {
        let lacks = reason(loops::check(machine));
        let queues = reason(setting::check_queues(machine));
        let of_disk = LEVERS.map(|(id, what, takes)| LeverInfo {
            values: values(machine, id),
            lacks: match id {
                "disk.medium" => {
                    lacks.clone().or_else(|| reason(emulated::check(machine))).or_else(|| queues.clone())
                }
                _ => lacks.clone(),
            },
            ..at_start(id, what, takes)
        });
        let of_queue = setting::queue_files().into_iter().map(|file| {
            let takes = match file.as_str() {
                "scheduler" => "a scheduler, as in none or mq-deadline".to_owned(),
                _ => setting::form(machine, &queue_setting(&file)).unwrap_or_default(),
            };
            LeverInfo {
                lacks: lacks.clone().or_else(|| queues.clone()),
                ..at_start(&format!("disk.queue.{file}"), what_of_queue(&file), &takes)
            }
        });
        of_disk.into_iter().chain(of_queue).collect()
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        let queue = setting::queue_files().into_iter().map(|file| format!("disk.queue.{file}"));
        LEVERS.iter().map(|(id, ..)| (*id).to_owned()).chain(queue).collect()
    }
}

/// Checks the disk's levers together and moves them into the draft's lever set. Returns the errors.
pub(crate) fn finish(draft: &mut Draft) -> Vec<LeverError> {
    let mut problems = Vec::new();
    let arrangement = &mut draft.lever_set.server.arrangement;
    match spec(&draft.disk) {
        Ok(spec) => arrangement.disk = spec,
        Err(error) => problems.push(error),
    }
    if draft.disk.file_system.is_none()
        && let Some((file, value)) = arrangement.queue.first()
    {
        let takes = "a value only together with disk.file_system, which makes the disk";
        problems.push(LeverError::value(&format!("disk.queue.{file}"), value, takes));
    }
    problems
}

fn spec(disk: &DiskDraft) -> Result<Option<DiskSpec>, LeverError> {
    if !disk.emulated && (disk.cache.is_some() || disk.depth.is_some()) {
        return Err(LeverError::value("disk.medium", "file", "emulated, for disk.cache and disk.depth"));
    }
    let Some(file_system) = disk.file_system else {
        let others = disk.bytes.is_some() || !disk.options.is_empty() || disk.emulated;
        return if others {
            Err(LeverError::value("disk.file_system", "", &file_systems()))
        } else {
            Ok(None)
        };
    };
    let options = file_system.options(&disk.options)?;
    let (medium, bytes) = if disk.emulated {
        let default = Drive::default();
        let (cache, depth) = (disk.cache.unwrap_or(default.cache), disk.depth.unwrap_or(default.depth));
        (Medium::Emulated(Drive { cache, depth }), EMULATED_BYTES)
    } else {
        (Medium::File, FILE_BYTES)
    };
    Ok(Some(DiskSpec { medium, file_system, bytes: disk.bytes.unwrap_or(bytes), options }))
}

fn file_systems() -> String {
    FILE_SYSTEMS.map(FileSystem::name).join(" ")
}

/// The host's name of a queue setting. Any loop device represents the one that will be made.
fn queue_setting(file: &str) -> String {
    format!("queue.loop0.{file}")
}

fn is_queue_file(file: &str) -> bool {
    setting::is_known(&queue_setting(file))
}

fn values(machine: &Machine, id: &str) -> Vec<LeverValue> {
    match id {
        "disk.file_system" => FILE_SYSTEMS
            .map(|file_system| LeverValue {
                value: file_system.name().to_owned(),
                lacks: reason(file_system.check(machine)),
                ledger: price_of(id, file_system.name()),
            })
            .into(),
        "disk.cache" => CACHES
            .map(|(name, _)| LeverValue { value: name.to_owned(), lacks: None, ledger: price_of(id, name) })
            .into(),
        _ => vec![],
    }
}

fn what_of_queue(file: &str) -> &'static str {
    match file {
        "scheduler" => "the I/O scheduler of that disk",
        "nr_requests" => "how many requests its queue holds",
        "read_ahead_kb" => "its read-ahead",
        "rotational" => "whether the kernel treats it as a rotating disk",
        "max_sectors_kb" => "the largest request that the kernel sends to it",
        "write_cache" => "whether the kernel sends flushes to it",
        "wbt_lat_usec" => "the read latency above which the kernel throttles writeback; 0: never",
        "nomerges" => "whether the kernel merges neighbouring requests",
        "rq_affinity" => "the CPU on which requests complete",
        _ => "a tunable of its scheduler",
    }
}

fn price_of(id: &str, value: &str) -> Option<String> {
    mydyno_settings::prices(id, value).pop()
}
