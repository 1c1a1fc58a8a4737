//! All levers by name: what an experiment can turn, checked before anything is touched.
//!
//! A lever is turned at one of three times: on the whole host, when a private server is started, or while it runs. What is
//! wanted is read into [`Turns`], with all mistakes at once; each part is then handed to whoever turns it, through the
//! journal.

mod bundle;
mod list;

use std::path::Path;

use mydyno_host::allocator::{ALLOCATORS, Allocator};
use mydyno_host::cgroup::IoLimit;
use mydyno_host::disk::{self, DiskSpec, Medium};
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::emulated::{self, Spec as Drive};
use mydyno_host::file_system::{FILE_SYSTEMS, FileSystem};
use mydyno_host::limit::Limit;
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::task::Attribute;
use mydyno_host::{HostError, folder, swap, zram};
use mydyno_model::units::parse_size;

use crate::arrangement::{Arrangement, VARIABLES, environment, in_order, read_back};
use crate::error::SandboxError;
use crate::settings::{bare_name, parse_set};
use crate::site::Site;

use bundle::BUNDLES;
pub use list::list;
use list::{NO_SYNC_DELAY, NO_USER, nearest};

/// The price of `write_cache`.
const WRITE_THROUGH: &str = "durability: `write through` keeps flushes from the disk";
/// Sizes of disks that are not asked for by name.
const DISK_BYTES: u64 = 2 << 30;
/// The size of an emulated one: it lies in locked memory.
const EMULATED_BYTES: u64 = 512 << 20;
/// What becomes of data that are written to an emulated disk.
const CACHES: [(&str, CacheMode); 3] =
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

/// What is wanted of levers.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// Settings of the whole host, by name.
    pub host: Vec<(String, String)>,
    /// A swap file for the whole host.
    pub swap_bytes: Option<u64>,
    /// Swap in compressed memory for the whole host.
    pub zram_bytes: Option<u64>,
    /// How the private server is started.
    pub arrangement: Arrangement,
    /// Variables that it is started with, as `var=value`.
    pub options: Vec<String>,
    /// Variables that are set while it runs.
    pub variables: Vec<(String, String)>,
    /// What is paid in durability or semantics, one sentence each.
    pub ledger: Vec<String>,
}

impl Turns {
    /// Reads what is wanted. A bundle stands for its levers.
    ///
    /// # Errors
    /// All mistakes: names that no lever has, and values that a lever does not take.
    pub fn parse(wanted: &[(String, String)]) -> Result<Self, Vec<SandboxError>> {
        let mut turns = Self::default();
        let mut disk = Disk::default();
        let mut problems = Vec::new();
        for (id, value) in wanted {
            match BUNDLES.iter().find(|bundle| bundle.id == id) {
                Some(bundle) if value == "on" => {
                    for (id, value) in bundle.parts {
                        turns.read(id, value, &mut disk).unwrap_or_else(|e| problems.push(e));
                    }
                }
                Some(_) => problems.push(bad(id, value, "on")),
                None => turns.read(id, value, &mut disk).unwrap_or_else(|e| problems.push(e)),
            }
        }
        match disk.spec() {
            Ok(spec) => turns.arrangement.disk = spec,
            Err(error) => problems.push(error),
        }
        if disk.file_system.is_none()
            && let Some((file, value)) = turns.arrangement.queue.first()
        {
            let takes = "a value only together with disk.file_system, which makes the disk";
            problems.push(bad(&format!("disk.queue.{file}"), value, takes));
        }
        if let Some(disk) = &turns.arrangement.disk {
            let prices = disk.file_system.ledger().map(str::to_owned).into_iter();
            let options = disk.options.not_durable();
            let lost = options.iter().map(|o| format!("durability: a power cut can lose data with {o}"));
            let drive = match &disk.medium {
                Medium::File => None,
                Medium::Emulated(drive) => drive.ledger().map(str::to_owned),
            };
            turns.ledger.extend(prices.chain(lost).chain(drive));
        }
        if problems.is_empty() { Ok(turns) } else { Err(problems) }
    }

    fn read(&mut self, id: &str, value: &str, disk: &mut Disk) -> Result<(), SandboxError> {
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
            ("server", "user") => return Err(bad(id, value, &format!("no value: {NO_USER}"))),
            ("server", "sync_delay") => return Err(bad(id, value, &format!("no value: {NO_SYNC_DELAY}"))),
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
            _ => return Err(no_lever(id)),
        }
        Ok(())
    }

    fn pay(&mut self, variable: &str) {
        // Servers take any beginning of an option's name that only one option has.
        let bare = bare_name(variable);
        if let Some(name) = DURABILITY.iter().find(|name| name.starts_with(&bare)) {
            self.ledger.push(format!("durability: {name} decides what a crash can lose"));
        }
    }

    /// What concerns the whole host: it needs the user's permission, and is named before it happens.
    pub fn of_the_host(&self) -> Vec<String> {
        let settings = self.settings_of_the_host();
        let emulated = self.arrangement.is_emulated().then(|| {
            format!("disk.medium=emulated (an {}: whoever calls sync waits for it)", emulated::LABEL)
        });
        settings.into_iter().chain(emulated).collect()
    }

    fn settings_of_the_host(&self) -> Vec<String> {
        let settings = self.host.iter().map(|(name, value)| format!("{name}={value}"));
        let file = self.swap_bytes.map(|bytes| format!("swap.file={bytes}"));
        settings.chain(file).chain(self.zram_bytes.map(|bytes| format!("swap.zram={bytes}"))).collect()
    }

    /// Whether all of it is permitted and can be turned here, before time is spent on a server. `servers` is the folder that
    /// the server's own is made in.
    ///
    /// # Errors
    /// What is not permitted, or cannot be turned.
    pub fn check(
        &self,
        site: &Site,
        allowed: Option<AllowHostChange>,
        servers: &Path,
    ) -> Result<(), SandboxError> {
        let machine = site.lease.machine();
        let names = self.of_the_host();
        if !names.is_empty() && allowed.is_none() {
            return Err(HostError::NotAllowed { what: names.join(", ") }.into());
        }
        for (name, value) in &self.host {
            setting::check_value(machine, name, value)?;
        }
        if self.swap_bytes.is_some() {
            swap::check(machine)?;
        }
        if let Some(bytes) = self.zram_bytes {
            zram::check(machine, bytes)?;
        }
        for (limit, value) in &self.arrangement.process_limits {
            limit.check(machine, *value)?;
        }
        for resource in self.arrangement.limits.resources() {
            resource.check(machine)?;
        }
        if let Some(spec) = &self.arrangement.disk {
            disk::check(site.lease, servers, spec)?;
        }
        environment(&self.arrangement).map(drop)
    }

    /// Turns what concerns the whole host, in order. All of it carries `purpose` in the journal, with which it is put back.
    ///
    /// # Errors
    /// It is not permitted, or one cannot be turned; those before it are then for the caller to put back.
    pub fn turn_host(
        &self,
        site: &Site,
        purpose: &str,
        allowed: Option<AllowHostChange>,
    ) -> Result<Vec<u64>, SandboxError> {
        let names = self.settings_of_the_host();
        if names.is_empty() {
            return Ok(vec![]);
        }
        let allowed = allowed.ok_or_else(|| HostError::NotAllowed { what: names.join(", ") })?;
        let mut ids = Vec::new();
        for (name, value) in in_order(&self.host) {
            ids.extend(setting::set(site.journal, site.lease, purpose, name, value, allowed)?);
        }
        read_back(site, self.host.iter().cloned())?;
        if let Some(bytes) = self.swap_bytes {
            let path = site.state.path().join(format!("swap-{}", std::process::id()));
            ids.push(folder::create(site.journal, site.lease, purpose, &path)?);
            let file = path.join("swap");
            ids.push(swap::turn_on(site.journal, site.lease, purpose, &file, bytes, allowed)?);
        }
        if let Some(bytes) = self.zram_bytes {
            ids.push(zram::turn_on(site.journal, site.lease, purpose, bytes, allowed)?);
        }
        Ok(ids)
    }
}

fn no_lever(id: &str) -> SandboxError {
    HostError::NoLever { name: id.to_owned(), nearest: nearest(id) }.into()
}

/// Any loop device stands for the one that will be ours.
fn is_queue_file(file: &str) -> bool {
    setting::is_known(&format!("queue.loop0.{file}"))
}

const CPU: &str = "a number of CPUs like 1.5, at least 0.01";
const IO: &str = "limits a second like read_iops=200,write_iops=100,read_bytes=20M,write_bytes=10M";

/// The disk as its levers come in.
#[derive(Debug, Default)]
struct Disk {
    file_system: Option<FileSystem>,
    bytes: Option<u64>,
    options: String,
    emulated: bool,
    cache: Option<CacheMode>,
    depth: Option<usize>,
}

impl Disk {
    fn spec(&self) -> Result<Option<DiskSpec>, SandboxError> {
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

fn bad(id: &str, value: &str, takes: &str) -> SandboxError {
    SandboxError::LeverValue { id: id.to_owned(), value: value.to_owned(), takes: takes.to_owned() }
}

#[cfg(test)]
mod tests {
    use mydyno_host::Machine;

    use super::*;

    fn parse(wanted: &[(&str, &str)]) -> Result<Turns, Vec<String>> {
        let owned: Vec<_> =
            wanted.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
        Turns::parse(&owned).map_err(|all| all.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn each_lever_goes_to_whoever_turns_it() {
        let turns = parse(&[
            ("vm.swappiness", "1"),
            ("swap.file", "64M"),
            ("cgroup.memory", "512M"),
            ("cgroup.io", "read_iops=200,write_bytes=1M"),
            ("disk.file_system", "ext4"),
            ("disk.mount_options", "noatime,barrier=0"),
            ("server.nice", "5"),
            ("server.allocator", "jemalloc"),
            ("env.MALLOC_ARENA_MAX", "2"),
            ("option.innodb_doublewrite", "0"),
            ("variable.max_connections", "50"),
        ])
        .unwrap();
        assert_eq!(turns.of_the_host(), ["vm.swappiness=1", "swap.file=67108864"]);
        assert_eq!(turns.arrangement.limits.memory_bytes, Some(512 << 20));
        let io = turns.arrangement.limits.io.unwrap();
        assert_eq!((io.read_iops, io.write_bytes, io.write_iops), (Some(200), Some(1 << 20), None));
        let disk = turns.arrangement.disk.unwrap();
        assert_eq!((disk.file_system.name(), disk.bytes), ("ext4", DISK_BYTES));
        assert_eq!(turns.options, ["innodb_doublewrite=0"]);
        assert_eq!(turns.variables, [("max_connections".to_owned(), "50".to_owned())]);
        assert_eq!(turns.ledger.len(), 2, "{:?}", turns.ledger);
    }

    #[test]
    fn no_spelling_of_a_variable_hides_its_price() {
        for option in [
            "innodb-flush-log-at-trx-commit",
            "INNODB_FLUSH_LOG_AT_TRX_COMMIT",
            "loose_innodb_flush_log_at_trx_commit",
            "innodb_flush_log_at_trx_c",
            "loose-innodb-flush-l",
        ] {
            let turns = parse(&[(&format!("option.{option}"), "2")]).unwrap();
            let price = "durability: innodb_flush_log_at_trx_commit decides what a crash can lose";
            assert_eq!(turns.ledger, [price], "{option}");
        }
        assert_eq!(parse(&[("option.skip-innodb-doublewrite", "1")]).unwrap().ledger.len(), 1);
        assert_eq!(parse(&[("variable.Sync_Binlog", "0")]).unwrap().ledger.len(), 1);
        assert!(parse(&[("option.sync_frm", "0")]).unwrap().ledger.is_empty());
    }

    #[test]
    fn keeping_flushes_from_a_disk_of_the_host_has_its_price() {
        let ledger = |value| parse(&[("queue.sda.write_cache", value)]).unwrap().ledger;
        assert_eq!(ledger("write through"), [WRITE_THROUGH]);
        assert!(ledger("write back").is_empty());
    }

    #[test]
    fn a_queue_without_its_disk_is_refused() {
        let problems = parse(&[("disk.queue.nr_requests", "64")]).unwrap_err();
        assert!(problems.len() == 1 && problems[0].contains("disk.file_system"), "{problems:?}");
    }

    #[test]
    fn an_emulated_disk_concerns_the_whole_host_and_names_its_price() {
        let turns = parse(&[
            ("disk.file_system", "ext4"),
            ("disk.medium", "emulated"),
            ("disk.cache", "ignores-flushes"),
            ("disk.depth", "32"),
        ])
        .unwrap();
        assert!(turns.of_the_host()[0].contains("emulated disk"), "{:?}", turns.of_the_host());
        assert!(turns.ledger[0].contains("ignores flushes"), "{:?}", turns.ledger);
        let disk = turns.arrangement.disk.unwrap();
        let drive = Drive { cache: CacheMode::IgnoresFlushes, depth: 32 };
        assert_eq!((disk.medium, disk.bytes), (Medium::Emulated(drive), EMULATED_BYTES));
        let problems = parse(&[("disk.file_system", "ext4"), ("disk.cache", "off")]).unwrap_err();
        assert!(problems[0].contains("emulated"), "{problems:?}");
        assert!(parse(&[("disk.medium", "emulated")]).unwrap_err()[0].contains("disk.file_system"));
    }

    #[test]
    fn what_the_kernel_changes_along_is_set_last() {
        let settings = ["queue.sda.nr_requests", "vm.swappiness", "queue.sda.scheduler", "write_cache"]
            .map(|name| (name.to_owned(), "1".to_owned()));
        let order: Vec<&str> = in_order(&settings).iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(order, ["queue.sda.scheduler", "write_cache", "queue.sda.nr_requests", "vm.swappiness"]);
    }

    #[test]
    fn a_bundle_stands_for_its_levers_and_names_its_price() {
        let turns = parse(&[("bundle.relaxed", "on")]).unwrap();
        assert_eq!(turns.options, ["sync_binlog=0", "innodb_flush_log_at_trx_commit=2"]);
        assert_eq!(turns.ledger.len(), 2);
    }

    #[test]
    fn all_mistakes_are_named_at_once() {
        let problems = parse(&[
            ("vm.swapiness", "1"),
            ("cgroup.memory", "much"),
            ("server.nice", "99"),
            ("disk.mount_options", "noatime"),
            ("option.datadir", "/x"),
            ("cgroup.io", "iops=3"),
        ])
        .unwrap_err();
        assert_eq!(problems.len(), 6, "{problems:#?}");
        for says in ["did you mean vm.swappiness", "512M", "from -20 to 19", "sets this itself", "read_iops"]
        {
            assert!(problems.iter().any(|p| p.contains(says)), "{says}: {problems:#?}");
        }
    }

    #[test]
    fn every_listed_lever_says_what_it_takes_and_can_be_asked_for_by_its_name() {
        let machine = Machine::real().unwrap();
        let levers = list(&machine);
        for lever in &levers {
            assert!(!lever.takes.is_empty() && !lever.what.is_empty(), "{lever:?}");
            let id = lever.id.replace("VARIABLE", "max_connections");
            let unknown = parse(&[(&id, "?")]).err().unwrap_or_default();
            assert!(unknown.iter().all(|p| !p.contains("there is no lever")), "{id}: {unknown:?}");
        }
        let mut ids: Vec<&str> = levers.iter().map(|l| l.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), levers.len());
    }
}
