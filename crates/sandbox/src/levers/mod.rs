//! All levers by name: what an experiment can turn, checked before anything is touched.
//!
//! A lever is turned at one of four times: on the whole host, when a private server is started, while it runs, or when it is
//! loaded. What is wanted is read into [`Turns`], with all mistakes at once; each part is then handed to whoever turns it,
//! through the journal.

mod bundle;
mod list;
mod read;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use mydyno_host::disk::{self, DiskSpec, Medium};
use mydyno_host::room::check_memory_for;
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{HostError, emulated, folder, swap, sync_delay, task, zram};

use crate::arrangement::{Arrangement, environment, in_order, read_back};
use crate::error::SandboxError;
use crate::site::Site;

use bundle::BUNDLES;
pub use list::list;
use read::{Disk, bad};

/// What is wanted of levers.
#[derive(Debug, Clone, Default)]
pub struct Turns {
    /// Settings of the whole host, by name.
    pub host: Vec<(String, String)>,
    /// A swap file for the whole host.
    pub swap_bytes: Option<u64>,
    /// Swap in compressed memory for the whole host.
    pub zram_bytes: Option<u64>,
    /// Which server, as in `mariadb-10.11`.
    pub engine: Option<String>,
    /// Where its program is.
    pub basedir: Option<PathBuf>,
    /// An option file that it starts with, as far as a private server can.
    pub option_file: Option<PathBuf>,
    /// How the private server is started.
    pub arrangement: Arrangement,
    /// Variables that it is started with, as `var=value`.
    pub options: Vec<String>,
    /// Variables that are set while it runs.
    pub variables: Vec<(String, String)>,
    /// Statements that change the tables of a load before it begins, in order.
    pub schema: Vec<String>,
    /// Options of the workload, by name.
    pub workload: Vec<(String, String)>,
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

    /// What concerns the whole host: it needs the user's permission, and is named before it happens.
    pub fn of_the_host(&self) -> Vec<String> {
        let settings = self.settings_of_the_host();
        let emulated = self.arrangement.is_emulated().then(|| {
            format!("disk.medium=emulated (an {}: whoever calls sync waits for it)", emulated::LABEL)
        });
        settings.into_iter().chain(emulated).collect()
    }

    /// For whoever makes a server and no load of the user's.
    ///
    /// # Errors
    /// Something concerns a load.
    pub fn check_no_load(&self) -> Result<(), SandboxError> {
        let workload = self.workload.iter().map(|(name, value)| format!("workload.{name}={value}"));
        let mut all = self.schema.iter().map(|sql| format!("schema.statement={sql}")).chain(workload);
        all.next().map_or(Ok(()), |lever| Err(SandboxError::LeverOfLoad { lever }))
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
        if let Some(bytes) = self.swap_bytes {
            swap::check_file(machine, servers, bytes)?;
        }
        if let Some(bytes) = self.zram_bytes {
            zram::check(machine, bytes)?;
        }
        for (limit, value) in &self.arrangement.process_limits {
            limit.check(machine, *value)?;
        }
        for (attribute, value) in &self.arrangement.scheduling {
            task::check(machine, *attribute, value)?;
        }
        if let Some(user) = self.arrangement.other_user()? {
            user.check(machine)?;
        }
        for resource in self.arrangement.limits.resources() {
            resource.check(machine)?;
        }
        if let Some(spec) = &self.arrangement.disk {
            disk::check(site.lease, servers, spec)?;
        }
        if !self.arrangement.queue.is_empty() {
            setting::check_queues(machine)?;
        }
        // Each may fit alone, and all of them not.
        let taken = self.memory_bytes();
        if taken > 0 {
            check_memory_for(machine, taken)?;
        }
        if self.arrangement.sync_delay.is_some() {
            sync_delay::check_folder(servers)?;
        }
        environment(&self.arrangement, servers).map(drop)
    }

    /// Memory of the host that all of it can take at the most: the group's, the emulated disk's, that of swap in memory.
    fn memory_bytes(&self) -> u64 {
        let disk = match &self.arrangement.disk {
            Some(DiskSpec { medium: Medium::Emulated(_), bytes, .. }) => *bytes,
            _ => 0,
        };
        let group = self.arrangement.limits.memory_bytes.unwrap_or(0);
        [group, disk, self.zram_bytes.unwrap_or(0)].into_iter().fold(0, u64::saturating_add)
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
