//! A separate disk for the server's data.

use mydyno_host::disk::{DiskSpec, Medium};
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::emulated::{self, DriveKind, Spec as Drive};
use mydyno_host::features::Features;
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
/// Modes of an emulated disk's write cache.
const CACHES: [(&str, CacheMode); 4] = [
    ("off", CacheMode::Off),
    ("on", CacheMode::On),
    ("ignores-flushes", CacheMode::IgnoresFlushes),
    ("protected", CacheMode::Protected),
];
/// Kinds of emulated drives.
const DRIVES: [(&str, DriveKind); 2] = [("7200rpm", DriveKind::Rotating), ("ssd", DriveKind::Ssd)];

/// Levers beside those of the queue and of the write-back: id, meaning, form of the values.
const LEVERS: [(&str, &str, &str); 9] = [
    ("disk.file_system", "a disk of its own for the server's data: a file as a loop device", "a file system"),
    ("disk.medium", "what that disk is made of; an emulated one concerns the whole host", "file or emulated"),
    (
        "disk.cache",
        "the write cache of an emulated disk: volatile, or protected by a battery",
        "off, on, ignores-flushes or protected",
    ),
    ("disk.drive", "the drives of an emulated disk", "7200rpm or ssd"),
    (
        "disk.heads",
        "over how many rotating drives, each with a head, an emulated disk spreads its data",
        "a whole number from 1 to 16",
    ),
    (
        "disk.depth",
        "from how many waiting requests an emulated disk takes the nearest first",
        "a whole number from 1 to 32",
    ),
    (
        "disk.features",
        "features of ext3 or ext4 that the file system is made with; ^ leaves one out",
        "features with commas, as in ^dir_index,^extent",
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
            "drive" => {
                let known = DRIVES.iter().find(|(name, _)| *name == value);
                disk.drive = Some(known.ok_or_else(|| wrong(&DRIVES.map(|(name, _)| name).join(" ")))?.1);
            }
            "heads" => disk.heads = Some(value.parse().map_err(|_| wrong("a whole number from 1 to 16"))?),
            "depth" => disk.depth = Some(value.parse().map_err(|_| wrong("a whole number from 1 to 32"))?),
            "features" => disk.features = value.to_owned(),
            "mount_options" => disk.options = value.to_owned(),
            "size" => disk.bytes = Some(parse_size(value).map_err(|_| wrong("a size like 512M"))?),
            _ => match setting_of(name) {
                Some(setting) => {
                    draft.lever_set.server.arrangement.disk_settings.push((setting, value.to_owned()));
                }
                None => return Ok(None),
            },
        }
        Ok(Some(When::ServerStart))
    }

    fn list(&self, machine: &Machine) -> Vec<LeverInfo> {
        let lacks = reason(loops::check(machine));
        let settings = reason(setting::check_disks(machine));
        let of_disk = LEVERS.map(|(id, what, takes)| LeverInfo {
            values: values(machine, id),
            lacks: match id {
                "disk.medium" => {
                    lacks.clone().or_else(|| reason(emulated::check(machine))).or_else(|| settings.clone())
                }
                _ => lacks.clone(),
            },
            ..at_start(id, what, takes)
        });
        let of_settings = setting::of_disks().into_iter().map(|setting| {
            let takes = match setting.as_str() {
                "queue.*.scheduler" => "a scheduler, as in none or mq-deadline".to_owned(),
                "queue.*.nr_requests" => {
                    let form = setting::form(machine, &of_a_loop(&setting)).unwrap_or_default();
                    format!("{form}; behind a scheduler to {}", setting::MOST_REQUESTS)
                }
                _ => setting::form(machine, &of_a_loop(&setting)).unwrap_or_default(),
            };
            LeverInfo {
                lacks: lacks.clone().or_else(|| settings.clone()),
                ..at_start(&lever_of(&setting), what_of_setting(&setting), &takes)
            }
        });
        of_disk.into_iter().chain(of_settings).collect()
    }

    fn names(&self, _machine: Option<&Machine>) -> Vec<String> {
        let settings = setting::of_disks().into_iter().map(|setting| lever_of(&setting));
        LEVERS.iter().map(|(id, ..)| (*id).to_owned()).chain(settings).collect()
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
        && let Some((setting, value)) = arrangement.disk_settings.first()
    {
        let takes = "a value only together with disk.file_system, which makes the disk";
        problems.push(LeverError::value(&lever_of(setting), value, takes));
    }
    problems
}

fn spec(disk: &DiskDraft) -> Result<Option<DiskSpec>, LeverError> {
    let of_drive = [
        ("disk.cache", disk.cache.is_some()),
        ("disk.depth", disk.depth.is_some()),
        ("disk.drive", disk.drive.is_some()),
        ("disk.heads", disk.heads.is_some()),
    ];
    if let Some((id, _)) = of_drive.iter().find(|(_, given)| *given && !disk.emulated) {
        return Err(LeverError::value("disk.medium", "file", &format!("emulated, for {id}")));
    }
    let Some(file_system) = disk.file_system else {
        let others =
            disk.bytes.is_some() || !disk.options.is_empty() || !disk.features.is_empty() || disk.emulated;
        return if others {
            Err(LeverError::value("disk.file_system", "", &file_systems()))
        } else {
            Ok(None)
        };
    };
    let options = file_system.options(&disk.options)?;
    let features = Features::of(file_system, &disk.features)?;
    let (medium, bytes) = if disk.emulated {
        let default = Drive::default();
        let drive = Drive {
            kind: disk.drive.unwrap_or(default.kind),
            heads: disk.heads.unwrap_or(default.heads),
            cache: disk.cache.unwrap_or(default.cache),
            depth: disk.depth.unwrap_or(default.depth),
        };
        (Medium::Emulated(drive), EMULATED_BYTES)
    } else {
        (Medium::File, FILE_BYTES)
    };
    let bytes = disk.bytes.unwrap_or(bytes);
    Ok(Some(DiskSpec { medium, file_system, features, bytes, options }))
}

fn file_systems() -> String {
    FILE_SYSTEMS.map(FileSystem::name).join(" ")
}

/// The setting of a lever, as in `queue.*.nr_requests` for `queue.nr_requests` of the disk.
fn setting_of(name: &str) -> Option<String> {
    let (room, file) = name.split_once('.')?;
    let setting = format!("{room}.*.{file}");
    setting::of_disks().contains(&setting).then_some(setting)
}

/// The lever of a setting, as in `disk.queue.nr_requests` for `queue.*.nr_requests`.
fn lever_of(setting: &str) -> String {
    format!("disk.{}", setting.replacen("*.", "", 1))
}

/// The host's name of a setting. Any loop device represents the one that will be made.
fn of_a_loop(setting: &str) -> String {
    setting.replacen('*', "loop0", 1)
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
        "disk.cache" => CACHES.map(|(name, _)| value_of(id, name)).into(),
        "disk.drive" => DRIVES.map(|(name, _)| value_of(id, name)).into(),
        _ => vec![],
    }
}

fn value_of(id: &str, name: &str) -> LeverValue {
    LeverValue { value: name.to_owned(), lacks: None, ledger: price_of(id, name) }
}

fn what_of_setting(setting: &str) -> &'static str {
    let (room, file) = setting.split_once(".*.").unwrap_or_default();
    match file {
        "min_ratio" => "share in percent of the host's dirty memory that is kept for that disk",
        "max_ratio" => "share in percent of the host's dirty memory that writes to that disk may take",
        "strict_limit" => {
            "whether writers are held to the disk's share even while the host has little dirty memory"
        }
        _ if room == "bdi" => "how that disk shares the host's dirty memory",
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
