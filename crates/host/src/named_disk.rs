//! Emulated disks with names, which exist until the user removes them.

use std::fs;
use std::path::{Path, PathBuf};

use mydyno_journal::Open;
use mydyno_journal::{JournalError, NoHooks, Outcome, restore};
use mydyno_model::change::RestoreState;
use serde::{Deserialize, Serialize};

use crate::disk::{self, Disk, DiskFolder, DiskSpec, Emulation, Medium};
use crate::emulated::{EmulatedDisk, Spec, State};
use crate::error::HostError;
use crate::features::Features;
use crate::file_system::FileSystem;
use crate::folder;
use crate::host::Host;
use crate::{lost, setting};

/// Parameters of a named disk.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DiskRequest {
    /// As in `ext4`.
    pub file_system: String,
    /// Its size.
    pub bytes: u64,
    /// Features of the file system, as in `^dir_index,^extent`.
    #[serde(default)]
    pub features: String,
    /// As in `noatime,barrier=0`.
    pub mount_options: String,
    /// The drive.
    pub drive: Spec,
    /// The I/O scheduler in front of it, as in `bfq`; the kernel's choice without it.
    #[serde(default)]
    pub scheduler: Option<String>,
}

impl DiskRequest {
    /// The specification of the disk.
    ///
    /// # Errors
    /// There is no such file system, or it does not accept the options.
    pub fn spec(&self) -> Result<DiskSpec, HostError> {
        let file_system = FileSystem::named(&self.file_system).ok_or_else(|| HostError::SettingValue {
            name: "disk.file_system".to_owned(),
            value: self.file_system.clone(),
            form: crate::file_system::FILE_SYSTEMS.map(FileSystem::name).join(" "),
        })?;
        Ok(DiskSpec {
            medium: Medium::Emulated(self.drive.clone()),
            file_system,
            features: Features::of(file_system, &self.features)?,
            bytes: self.bytes,
            options: file_system.options(&self.mount_options)?,
        })
    }
}

fn purpose(name: &str) -> String {
    format!("disk {name}")
}

fn disk_of<'a>(host: &'a Host, purpose: &'a str, path: &'a Path) -> DiskFolder<'a> {
    DiskFolder { journal: &host.journal, lease: &host.lease, purpose, path }
}

/// # Errors
/// The name is not one of letters, digits, `_` and `-`.
fn folder_of(host: &Host, name: &str) -> Result<PathBuf, HostError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > 64 || !name.chars().all(fine) {
        return Err(HostError::SettingValue {
            name: "the name of a disk".to_owned(),
            value: name.to_owned(),
            form: "letters, digits, _ and -".to_owned(),
        });
    }
    Ok(host.state.path().join(format!("disk-{name}")))
}

fn wanted_of(host: &Host, name: &str) -> Result<DiskRequest, HostError> {
    let path = folder_of(host, name)?.join("wanted.json");
    let text = fs::read(&path).map_err(|_| HostError::Missing {
        what: format!("disk {name}"),
        missing: "there is no disk with that name".to_owned(),
        remedy: "`mydyno host disk up` makes one, `mydyno host status` shows them".to_owned(),
    })?;
    serde_json::from_slice(&text).map_err(|e| HostError::io("read", &path, e.into()))
}

/// Makes a disk that is kept.
///
/// # Errors
/// A prerequisite is missing, or a step failed; all of it is then removed again.
pub fn up(host: &Host, name: &str, wanted: &DiskRequest, means: &Emulation) -> Result<Disk, HostError> {
    let (path, purpose, spec) = (folder_of(host, name)?, purpose(name), wanted.spec()?);
    disk::check(&host.lease, host.state.path(), &spec)?;
    if let Some(scheduler) = &wanted.scheduler {
        setting::check_value(host.machine(), "queue.loop0.scheduler", scheduler)?;
    }
    folder::create(&host.journal, &host.lease, &purpose, &path)?;
    let made = (|| {
        let made = disk_of(host, &purpose, &path).make(&spec, Some(means))?;
        set_scheduler(host, &purpose, &made, wanted)?;
        let (file, text) = (path.join("wanted.json"), serde_json::to_vec(wanted).unwrap_or_default());
        fs::write(&file, text).map_err(|e| HostError::io("write", &file, e))?;
        keep(host, name)?;
        Ok(made)
    })();
    if made.is_err() {
        put_back(host, &purpose)?;
    }
    made
}

/// Gives a disk its scheduler, if one was named.
fn set_scheduler(host: &Host, purpose: &str, disk: &Disk, wanted: &DiskRequest) -> Result<(), HostError> {
    let Some(scheduler) = &wanted.scheduler else { return Ok(()) };
    let device = disk.device.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("queue.{device}.scheduler");
    setting::set_of_own_disk(&host.journal, &host.lease, purpose, &name, scheduler).map(drop)
}

fn keep(host: &Host, name: &str) -> Result<(), HostError> {
    let purpose = purpose(name);
    let own = |open: &&Open| open.entry.purpose == purpose;
    let ids: Vec<u64> = host.journal.read()?.open.iter().filter(own).map(|open| open.entry.id).collect();
    Ok(host.journal.keep(&ids, &format!("mydyno host disk down {name}"))?)
}

fn put_back(host: &Host, purpose: &str) -> Result<Vec<(Open, Outcome)>, HostError> {
    restore::check_in_reach(&host.journal, host.machine(), |open| open.entry.purpose == purpose)?;
    let ours = host.journal.take_over(&host.lease, |open| open.entry.purpose == purpose)?;
    Ok(restore::put_back(&host.journal, host.machine(), &ours, &NoHooks)?)
}

/// Cuts its power, unmounts it and detaches its device.
///
/// # Errors
/// There is no such disk, or it is in use.
pub fn cut(host: &Host, name: &str) -> Result<State, HostError> {
    wanted_of(host, name)?;
    let path = folder_of(host, name)?;
    disk_of(host, &purpose(name), &path).cut_power()?;
    let disk = EmulatedDisk::of(&path).ok_or_else(|| JournalError::Proc { path: path.clone() })?;
    disk.state()
}

/// Switches it on again, attached and mounted as before.
///
/// # Errors
/// There is no such disk, or a step failed.
pub fn on(host: &Host, name: &str) -> Result<Disk, HostError> {
    let wanted = wanted_of(host, name)?;
    let spec = wanted.spec()?;
    let (path, purpose) = (folder_of(host, name)?, purpose(name));
    let disk = disk_of(host, &purpose, &path).power_on(&spec);
    let scheduled = disk.and_then(|disk| set_scheduler(host, &purpose, &disk, &wanted).map(|()| disk));
    keep(host, name)?;
    scheduled
}

/// Its state as reported by its process.
///
/// # Errors
/// There is no such disk, or it is not served.
pub fn state(host: &Host, name: &str) -> Result<State, HostError> {
    wanted_of(host, name)?;
    let path = folder_of(host, name)?;
    match EmulatedDisk::of(&path) {
        Some(disk) => disk.state(),
        None => Err(HostError::Missing {
            what: format!("disk {name}"),
            missing: "its process has ended".to_owned(),
            remedy: format!("run `mydyno host disk down {name}`"),
        }),
    }
}

/// Removes it. The report lists changes that could not be restored, and those left unchanged on purpose.
///
/// # Errors
/// There is no such disk, or the journal cannot be written.
pub fn down(host: &Host, name: &str) -> Result<Vec<String>, HostError> {
    let path = folder_of(host, name)?;
    let purpose_of_it = purpose(name);
    let known = host.journal.read()?.open.iter().any(|open| open.entry.purpose == purpose_of_it);
    if !known && folder::is_marked(&path) {
        // The journal was lost; the mark in the folder shows that mydyno made it.
        lost::adopt(&host.journal, &host.lease, &purpose_of_it, &path, None)?;
    }
    let done = put_back(host, &purpose(name))?;
    if done.is_empty() {
        wanted_of(host, name)?;
    }
    let not = done.into_iter().filter(|(_, outcome)| outcome.state != RestoreState::Restored);
    Ok(not.map(|(open, outcome)| format!("{}: {}", open.entry.change.what(), outcome.why)).collect())
}
