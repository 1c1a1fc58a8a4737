//! The levers of a private server: settings of the host, its environment at the start, variables that are set while it
//! runs.

use std::path::{Path, PathBuf};

use mydyno_host::disk::{self, DiskSpec, Medium};
use mydyno_host::room::check_memory_for;
use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{HostError, emulated, folder, swap, sync_delay, task, zram};

use crate::arrangement::{Arrangement, environment, in_order, read_back};
use crate::error::SandboxError;
use crate::site::Site;

/// Levers that apply as long as a private server exists; all changes are journalled and restored when it ends.
#[derive(Debug, Clone, Default)]
pub struct ServerLevers {
    /// Settings of the whole host, by name.
    pub host: Vec<(String, String)>,
    /// A swap file for the whole host.
    pub swap_bytes: Option<u64>,
    /// Swap in compressed memory for the whole host.
    pub zram_bytes: Option<u64>,
    /// The server, as in `mariadb-10.11`.
    pub engine: Option<String>,
    /// The folder of its program.
    pub basedir: Option<PathBuf>,
    /// An option file for it, as far as a private server can apply it.
    pub option_file: Option<PathBuf>,
    /// The environment in which it starts.
    pub arrangement: Arrangement,
    /// Variables that it is started with, as `var=value`.
    pub options: Vec<String>,
    /// Variables that are set while it runs.
    pub variables: Vec<(String, String)>,
}

impl ServerLevers {
    /// The changes of the whole host, as `name=value`. They need the user's permission.
    pub fn of_the_host(&self) -> Vec<String> {
        let settings = self.settings_of_the_host();
        let emulated = self.arrangement.is_emulated().then(|| {
            format!(
                "disk.medium=emulated (an {}: every program that calls sync waits for it)",
                emulated::LABEL
            )
        });
        settings.into_iter().chain(emulated).collect()
    }

    fn settings_of_the_host(&self) -> Vec<String> {
        let settings = self.host.iter().map(|(name, value)| format!("{name}={value}"));
        let file = self.swap_bytes.map(|bytes| format!("swap.file={bytes}"));
        settings.chain(file).chain(self.zram_bytes.map(|bytes| format!("swap.zram={bytes}"))).collect()
    }

    /// Checks that all changes are permitted and possible here, before any work is done. The server's folder will be
    /// made in `servers`.
    ///
    /// # Errors
    /// A change is not permitted, or not possible.
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
        if let Some(policy) = &self.arrangement.memory_policy {
            policy.check(machine)?;
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
        if !self.arrangement.disk_settings.is_empty() {
            setting::check_disks(machine)?;
        }
        // Each may fit alone while their sum does not.
        let taken = self.memory_bytes();
        if taken > 0 {
            check_memory_for(machine, taken)?;
        }
        if self.arrangement.sync_delay.is_some() {
            sync_delay::check_folder(servers)?;
        }
        environment(&self.arrangement, servers).map(drop)
    }

    /// The most memory that the changes can use, in bytes: of the group, the emulated disk and swap in memory.
    fn memory_bytes(&self) -> u64 {
        let disk = match &self.arrangement.disk {
            Some(DiskSpec { medium: Medium::Emulated(_), bytes, .. }) => *bytes,
            _ => 0,
        };
        let group = self.arrangement.limits.memory_bytes.unwrap_or(0);
        [group, disk, self.zram_bytes.unwrap_or(0)].into_iter().fold(0, u64::saturating_add)
    }

    /// Makes the changes of the whole host, in order, each journalled under `purpose`. Returns the numbers of the
    /// entries.
    ///
    /// # Errors
    /// A change is not permitted or not possible; the caller restores the earlier ones.
    pub fn apply_to_host(
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
