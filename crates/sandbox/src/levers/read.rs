//! One lever and its value, read into what is wanted.

use std::path::{self, PathBuf};

use mydyno_host::HostError;
use mydyno_host::allocator::{ALLOCATORS, Allocator};
use mydyno_host::cgroup::IoLimit;
use mydyno_host::disk::{DiskSpec, Medium};
use mydyno_host::emulated::Spec as Drive;
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use mydyno_host::limit::Limit;
use mydyno_host::setting;
use mydyno_host::sync_delay;
use mydyno_host::task::Attribute;
use mydyno_model::units::parse_size;

use super::Turns;
use super::list::nearest;
use crate::arrangement::VARIABLES;
use crate::error::SandboxError;
use crate::settings::{bare_name, parse_set};
use crate::version::Wanted;

/// The price of `write_cache`.
pub(super) const WRITE_THROUGH: &str = "durability: `write through` keeps flushes from the disk";
/// Sizes of disks that are not asked for by name.
pub(super) const DISK_BYTES: u64 = 2 << 30;
/// The size of an emulated one: it lies in locked memory.
pub(super) const EMULATED_BYTES: u64 = 512 << 20;
/// What becomes of data that are written to an emulated disk.
pub(super) const CACHES: [(&str, CacheMode); 3] =
    [("off", CacheMode::Off), ("on", CacheMode::On), ("ignores-flushes", CacheMode::IgnoresFlushes)];
/// Variables with which a crash loses what was acknowledged, or more: value patterns are in the documentation of each.
const DURABILITY: &[&str] = &[
    "innodb_flush_log_at_trx_commit",
    "sync_binlog",
    "innodb_doublewrite",
    "innodb_checksum_algorithm",
    "innodb_flush_method",
    "innodb_fast_shutdown",
    "sync_master_info",
    "sync_relay_log",
];

/// Storage engines without transactions: `SHOW ENGINES`.
const NOT_TRANSACTIONAL: [&str; 9] =
    ["myisam", "aria", "memory", "heap", "csv", "archive", "merge", "mrg_myisam", "blackhole"];

impl Turns {
    /// Reads one lever that is no bundle.
    ///
    /// # Errors
    /// There is no such lever, or it does not take the value.
    pub(super) fn read(&mut self, id: &str, value: &str, disk: &mut Disk) -> Result<(), SandboxError> {
        let size = || parse_size(value).map_err(|_| bad(id, value, "a size like 512M"));
        let (room, rest) = id.split_once('.').unwrap_or((id, ""));
        match (room, rest) {
            _ if setting::is_known(id) => {
                if id.ends_with(".write_cache") && value == "write through" {
                    self.ledger.push(WRITE_THROUGH.to_owned());
                }
                self.host.push((id.to_owned(), value.to_owned()));
            }
            ("swap", "file") => self.swap_bytes = Some(size()?),
            ("swap", "zram") => self.zram_bytes = Some(size()?),
            ("limit", name) => {
                let limit = Limit::named(name).ok_or_else(|| no_lever(id))?;
                self.arrangement.process_limits.push((limit, limit.parse(value)?));
            }
            ("server", "engine") => {
                Wanted::parse(value)?;
                self.engine = Some(value.to_owned());
            }
            ("server", "basedir") => self.basedir = Some(absolute(id, value)?),
            ("server", "option_file") => self.option_file = Some(absolute(id, value)?),
            ("server", "sync_delay") => self.arrangement.sync_delay = Some(sync_delay::parse(value)?),
            ("server", "user") if !value.is_empty() && !value.contains(['\0', '\n']) => {
                self.arrangement.user = Some(value.to_owned());
            }
            ("server", "user") => return Err(bad(id, value, USER)),
            ("cgroup", "memory") => self.arrangement.limits.memory_bytes = Some(size()?),
            ("cgroup", "swap") => self.arrangement.limits.swap_bytes = Some(size()?),
            ("cgroup", "cpu") => {
                let cpus = value.parse().ok().filter(|c: &f64| c.is_finite() && *c >= 0.01);
                self.arrangement.limits.cpus = Some(cpus.ok_or_else(|| bad(id, value, CPU))?);
            }
            ("cgroup", "cpuset") => {
                self.arrangement.limits.cpuset = Some(Attribute::Affinity.normal(value)?);
            }
            ("cgroup", "io") => self.arrangement.limits.io = Some(io_limit(id, value)?),
            ("disk", "file_system") => {
                let known = || FILE_SYSTEMS.map(FileSystem::name).join(" ");
                disk.file_system = Some(FileSystem::named(value).ok_or_else(|| bad(id, value, &known()))?);
            }
            ("disk", queue) if queue.strip_prefix("queue.").is_some_and(is_queue_file) => {
                let file = queue.trim_start_matches("queue.");
                if file == "write_cache" && value == "write through" {
                    self.ledger.push(WRITE_THROUGH.to_owned());
                }
                self.arrangement.queue.push((file.to_owned(), value.to_owned()));
            }
            ("disk", "medium") => {
                disk.emulated = match value {
                    "file" => false,
                    "emulated" => true,
                    _ => return Err(bad(id, value, "file or emulated")),
                };
            }
            ("disk", "cache") => {
                let known = CACHES.iter().find(|(name, _)| *name == value);
                let known = known.ok_or_else(|| bad(id, value, &CACHES.map(|(name, _)| name).join(" ")))?;
                disk.cache = Some(known.1);
            }
            ("disk", "depth") => {
                disk.depth = Some(value.parse().map_err(|_| bad(id, value, "a whole number from 1 to 32"))?);
            }
            ("disk", "mount_options") => disk.options = value.to_owned(),
            ("disk", "size") => disk.bytes = Some(size()?),
            ("server", "allocator") => {
                let known = || ALLOCATORS.map(Allocator::name).join(" ");
                self.arrangement.allocator =
                    Some(Allocator::named(value).ok_or_else(|| bad(id, value, &known()))?);
            }
            ("server", "affinity" | "nice" | "class") => {
                let attribute = match rest {
                    "affinity" => Attribute::Affinity,
                    "nice" => Attribute::Nice,
                    _ => Attribute::Class,
                };
                self.arrangement.scheduling.push((attribute, attribute.normal(value)?));
            }
            ("env", name) if VARIABLES.contains(&name) => {
                self.arrangement.environment.push((name.to_owned(), value.to_owned()));
            }
            ("option", name) if !name.is_empty() => {
                let text = format!("{name}={value}");
                let setting = parse_set(&text)?;
                self.pay(&setting.name);
                self.options.push(text);
            }
            ("variable", name) if !name.is_empty() => {
                self.pay(name);
                self.variables.push((name.to_owned(), value.to_owned()));
            }
            ("schema", "statement") if !value.trim().is_empty() && !value.contains(['\n', '\0']) => {
                self.ledger.extend(engine_of(value).and_then(price_of_engine));
                self.schema.push(value.to_owned());
            }
            ("schema", "statement") => return Err(bad(id, value, STATEMENT)),
            ("workload", option) if !option.is_empty() => {
                if option.replace('_', "-") == "storage-engine" {
                    self.ledger.extend(price_of_engine(value));
                }
                self.workload.push((option.to_owned(), value.to_owned()));
            }
            _ => return Err(no_lever(id)),
        }
        Ok(())
    }

    /// The prices of variables, each once.
    pub(crate) fn prices<'a>(variables: impl Iterator<Item = &'a str>) -> Vec<String> {
        let mut paid = Self::default();
        variables.for_each(|name| paid.pay(name));
        paid.ledger.sort();
        paid.ledger.dedup();
        paid.ledger
    }

    /// Notes the price of a variable, if it has one.
    fn pay(&mut self, variable: &str) {
        // Servers take any beginning of an option's name that only one option has.
        let bare = bare_name(variable);
        if let Some(name) = DURABILITY.iter().find(|name| name.starts_with(&bare)) {
            self.ledger.push(format!("durability: {name} decides what a crash can lose"));
        }
    }
}

/// The storage engine that a statement gives a table, as in `… ENGINE = Aria`.
fn engine_of(sql: &str) -> Option<&str> {
    let at = sql.to_ascii_lowercase().rfind("engine")?;
    let rest = sql[at..].get("engine".len()..)?.trim_start();
    let name = rest.strip_prefix('=').unwrap_or(rest).trim_start();
    name.split(|c: char| !c.is_ascii_alphanumeric()).next().filter(|name| !name.is_empty())
}

fn price_of_engine(engine: &str) -> Option<String> {
    let price = || format!("durability: {engine} has no transactions, so that a crash can leave half of one");
    NOT_TRANSACTIONAL.iter().any(|known| known.eq_ignore_ascii_case(engine)).then(price)
}

/// A path is meant from where the command runs; the server runs elsewhere.
fn absolute(id: &str, value: &str) -> Result<PathBuf, SandboxError> {
    path::absolute(value).map_err(|_| bad(id, value, "a path"))
}

fn no_lever(id: &str) -> SandboxError {
    HostError::NoLever { name: id.to_owned(), nearest: nearest(id) }.into()
}

/// Any loop device stands for the one that will be ours.
fn is_queue_file(file: &str) -> bool {
    setting::is_known(&format!("queue.loop0.{file}"))
}

pub(super) const STATEMENT: &str =
    "one statement, as in ALTER TABLE mydyno.sbtest1 ENGINE=MyISAM; may be given several times";
pub(super) const USER: &str = "a user of this machine, by name or number";
pub(super) const CPU: &str = "a number of CPUs like 1.5, at least 0.01";
pub(super) const IO: &str =
    "limits a second like read_iops=200,write_iops=100,read_bytes=20M,write_bytes=10M";

/// The disk as its levers come in.
#[derive(Debug, Default)]
pub(super) struct Disk {
    pub(super) file_system: Option<FileSystem>,
    bytes: Option<u64>,
    options: String,
    emulated: bool,
    cache: Option<CacheMode>,
    depth: Option<usize>,
}

impl Disk {
    pub(super) fn spec(&self) -> Result<Option<DiskSpec>, SandboxError> {
        if !self.emulated && (self.cache.is_some() || self.depth.is_some()) {
            return Err(bad("disk.medium", "file", "emulated, for disk.cache and disk.depth"));
        }
        let Some(file_system) = self.file_system else {
            let others = self.bytes.is_some() || !self.options.is_empty() || self.emulated;
            let known = FILE_SYSTEMS.map(FileSystem::name).join(" ");
            return if others { Err(bad("disk.file_system", "", &known)) } else { Ok(None) };
        };
        let options = file_system.options(&self.options)?;
        let (medium, bytes) = if self.emulated {
            let usual = Drive::default();
            let (cache, depth) = (self.cache.unwrap_or(usual.cache), self.depth.unwrap_or(usual.depth));
            (Medium::Emulated(Drive { cache, depth }), EMULATED_BYTES)
        } else {
            (Medium::File, DISK_BYTES)
        };
        Ok(Some(DiskSpec { medium, file_system, bytes: self.bytes.unwrap_or(bytes), options }))
    }
}

fn io_limit(id: &str, value: &str) -> Result<IoLimit, SandboxError> {
    let mut limit = IoLimit {
        device: String::new(),
        read_iops: None,
        write_iops: None,
        read_bytes: None,
        write_bytes: None,
    };
    for part in value.split(',') {
        let (name, number) = part.split_once('=').ok_or_else(|| bad(id, value, IO))?;
        let number = parse_size(number).ok().filter(|n| *n > 0).ok_or_else(|| bad(id, value, IO))?;
        *match name {
            "read_iops" => &mut limit.read_iops,
            "write_iops" => &mut limit.write_iops,
            "read_bytes" => &mut limit.read_bytes,
            "write_bytes" => &mut limit.write_bytes,
            _ => return Err(bad(id, value, IO)),
        } = Some(number);
    }
    Ok(limit)
}

pub(super) fn bad(id: &str, value: &str, takes: &str) -> SandboxError {
    SandboxError::LeverValue { id: id.to_owned(), value: value.to_owned(), takes: takes.to_owned() }
}
