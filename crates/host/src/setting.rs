//! Kernel settings: check, read, set, restore. Each change goes through the journal.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use mydyno_journal::{Change, Closing, Context, Journal, JournalError, Lease, Machine, Open, Outcome, Place};
use mydyno_linux::calls::files;
use mydyno_linux::text::chosen;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
use crate::neighbours::Neighbours;
use crate::whitelist::{self, Form, Known};
pub use crate::whitelist::{MOST_REQUESTS, disk_of, of_disks};

/// The user's permission for changes of the whole host (`--allow-host-change`).
#[derive(Debug, Clone, Copy)]
pub struct AllowHostChange(());

impl AllowHostChange {
    /// To be called only where the user named the permission.
    pub fn by_the_user() -> Self {
        Self(())
    }
}

/// A changed kernel setting. The journal stores its name, not a path: only names on the whitelist are ever written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedSetting {
    /// As in `vm.swappiness`, `thp.enabled`, `queue.sda.scheduler` or `bdi.sda.max_ratio`.
    pub name: String,
    /// The value before.
    pub was: String,
    /// The new value, as the kernel shows it.
    pub now: String,
    /// The device of a disk's setting: device names are reused.
    pub device: Option<String>,
    /// The network namespace of a network setting, as in `net:[4026531840]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Settings that the kernel changes along with this one, with their values before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<(String, String)>,
    /// Their values after this one was set. A separate line of the journal has them; it is missing when the command was
    /// killed before it wrote that line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along_after: Vec<(String, String)>,
}

/// The value of a setting.
///
/// # Errors
/// It is not on the whitelist, this kernel does not have it, or it cannot be read.
pub fn read(machine: &Machine, name: &str) -> Result<String, HostError> {
    let known = whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.to_owned() })?;
    read_known(machine, &known)
}

/// Names of settings that mydyno may change on a machine, those of the loop devices' queues (`queue.DEVICE.…`)
/// included.
pub fn names(machine: &Machine) -> Vec<String> {
    whitelist::names(machine)
}

/// Whether settings of disks can be written here, also those of a disk that does not exist yet.
///
/// # Errors
/// They cannot; the error says how to get it.
pub fn check_disks(machine: &Machine) -> Result<(), HostError> {
    let folder = machine.sys().join("block");
    if files::may_write(&folder) {
        return Ok(());
    }
    Err(HostError::Missing {
        what: "a setting of a disk".to_owned(),
        missing: format!("{} cannot be written to", folder.display()),
        remedy: "run as root, outside a container that keeps it read-only".to_owned(),
    })
}

/// Whether a name is that of a setting that mydyno may change.
pub fn is_known(name: &str) -> bool {
    whitelist::find(name).is_some() && !whitelist::only_along(name)
}

/// The accepted values of a setting, for people.
///
/// # Errors
/// It is not on the whitelist.
pub fn form(machine: &Machine, name: &str) -> Result<String, HostError> {
    let known = whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.to_owned() })?;
    Ok(known.form.describe(&known, machine))
}

/// Whether a setting can be changed here. Changes nothing.
///
/// # Errors
/// It cannot; the error says why, and how to get it.
pub fn check(machine: &Machine, name: &str) -> Result<(), HostError> {
    read(machine, name)?;
    let known = whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.to_owned() })?;
    for path in known.files(machine) {
        // register_irq_proc of kernel/irq/proc.c gives the file no write permission, but root can open it anyway.
        if known.form == Form::Cpus && path.metadata().is_ok_and(|meta| meta.mode() & 0o200 == 0) {
            return Err(managed(name));
        }
        OpenOptions::new().write(true).open(&path).map_err(|source| HostError::SettingDenied {
            name: name.to_owned(),
            path,
            source,
        })?;
    }
    Ok(())
}

/// Whether a setting can be given a value here. Changes nothing.
///
/// # Errors
/// As [`check`], and when the setting does not accept the value.
pub fn check_value(machine: &Machine, name: &str, value: &str) -> Result<(), HostError> {
    if whitelist::only_along(name) {
        return Err(HostError::SettingUnknown { name: name.to_owned() });
    }
    check(machine, name)?;
    let known = whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.to_owned() })?;
    let choices = choices(machine, &known)?;
    let within = known.cap(machine).is_none_or(|cap| value.parse::<u64>().is_ok_and(|n| n <= cap));
    if known.form.fits(value) && within && choices.is_none_or(|c| c.iter().any(|choice| choice == value)) {
        return Ok(());
    }
    let form = known.form.describe(&known, machine);
    Err(HostError::SettingValue { name: name.to_owned(), value: value.to_owned(), form })
}

/// Sets a kernel setting: writes the journal entry, then the value, then reads it back. Returns the number of the
/// journal entry; `None` when the setting has the value already.
///
/// # Errors
/// The setting or value is not on the whitelist, cannot be set here, or the kernel stored another value; the setting
/// then has its previous value again.
pub fn set(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    name: &str,
    value: &str,
    _allowed: AllowHostChange,
) -> Result<Option<u64>, HostError> {
    let machine = lease.machine();
    let known = whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.to_owned() })?;
    // Held until the journal has the entry and the kernel has the value.
    let neighbours = Neighbours::lock(machine)?;
    if let Some(neighbours) = &neighbours {
        neighbours.check(journal, machine, &known)?;
        neighbours.add(journal)?;
    }
    set_beside(journal, lease, purpose, name, value, in_the_way)
}

/// As [`set`] for a disk that mydyno made; needs no permission. These settings depend on each other:
/// `nr_requests` set before the scheduler applies to the driver, and set again after it, to the scheduler. So the
/// command that made the disk may set a setting twice; restore goes from the newest to the oldest.
///
/// # Errors
/// As [`set`].
pub fn set_of_own_disk(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    name: &str,
    value: &str,
) -> Result<Option<u64>, HostError> {
    set_beside(journal, lease, purpose, name, value, |open, known, lease, purpose| {
        !is_own(open, lease, purpose) && in_the_way(open, known, lease, purpose)
    })
}

fn set_beside(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    name: &str,
    value: &str,
    in_the_way: impl Fn(&Open, &Known, &Lease, &str) -> bool,
) -> Result<Option<u64>, HostError> {
    let machine = lease.machine();
    check_value(machine, name, value)?;
    let known = whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.to_owned() })?;
    let mut before = None;
    let values = |names: &[String]| -> Vec<(String, String)> {
        names.iter().filter_map(|n| Some((n.clone(), read(machine, n).ok()?))).collect()
    };
    let mut unmoved = Vec::new();
    let in_the_way = |open: &Open| in_the_way(open, &known, lease, purpose);
    let recorded = journal.record_beside::<HostError>(lease, purpose, in_the_way, || {
        let was = read_known(machine, &known)?;
        if was == value {
            return Ok(None);
        }
        before = Some(was.clone());
        unmoved = values(&known.unmoved);
        Ok(Some(Box::new(ChangedSetting {
            name: name.to_owned(),
            was,
            now: value.to_owned(),
            device: known.device_identity(machine),
            namespace: known.namespace(machine),
            along: [values(&known.along), unmoved.clone()].concat(),
            along_after: vec![],
        })))
    })?;
    let (Some(id), Some(was)) = (recorded, before) else { return Ok(None) };
    let result = write_known(machine, &known, value)
        .and_then(|()| write_where_different(machine, &unmoved))
        .and_then(|()| read_known(machine, &known));
    let problem = match result {
        Ok(now) if now == value => {
            let neighbours = [known.along.as_slice(), &known.unmoved].concat();
            if !neighbours.is_empty() {
                journal.note_along(id, values(&neighbours))?;
            }
            return Ok(Some(id));
        }
        Ok(now) => HostError::SettingKernel { name: name.to_owned(), value: value.to_owned(), became: now },
        Err(error) => error,
    };
    // This command set the kernel's current value, so the old value is restored whatever the current one is.
    write_known(machine, &known, &was)?;
    write_where_different(machine, &unmoved)?;
    journal.close(id, Closing::Restored, "it could not be set")?;
    Err(problem)
}

/// Whether a change in force conflicts with setting a setting: it changes the same one, one that the kernel changes
/// along with it, or one whose change affects it. The last case is allowed within one purpose, which restores the later
/// change first.
fn in_the_way(open: &Open, known: &Known, lease: &Lease, purpose: &str) -> bool {
    let Some(there) = open.as_kind::<ChangedSetting>() else { return false };
    touches(there, known, !is_own(open, lease, purpose))
}

/// Whether a change in force affects a setting: the setting itself, one that the kernel changes along with it, or, if
/// `also_along`, one that it was changed along with.
pub(crate) fn touches(there: &ChangedSetting, known: &Known, also_along: bool) -> bool {
    there.name == known.name
        || known.along.contains(&there.name)
        || known.unmoved.contains(&there.name)
        || (also_along && there.along.iter().any(|(name, _)| *name == known.name))
}

fn is_own(open: &Open, lease: &Lease, purpose: &str) -> bool {
    open.entry.purpose == purpose && open.lease.process == lease.identity().process
}

impl Change for ChangedSetting {
    fn kind(&self) -> &str {
        "setting"
    }

    fn what(&self) -> String {
        format!("kernel setting {}", self.name)
    }

    fn key(&self) -> String {
        format!("setting:{}", self.name)
    }

    fn was(&self) -> Value {
        Value::from(self.was.as_str())
    }

    fn now(&self) -> Value {
        Value::from(self.now.as_str())
    }

    /// It compares boot ids itself and leaves the value unchanged after a reboot.
    fn ends_with_boot(&self) -> bool {
        false
    }

    fn out_of_reach(&self, machine: &Machine) -> Option<String> {
        let here = known_namespace(machine, &self.name);
        let there = self.namespace.clone();
        (there.is_some() && there != here).then(|| {
            format!(
                "it was set in network namespace {}, and this is {}: run `mydyno host restore` there (`nsenter --net=…`), or \
                 with --all if that namespace is gone",
                there.unwrap_or_default(),
                here.unwrap_or_else(|| "another one".to_owned())
            )
        })
    }

    /// Settings of a disk persist with the device's number: the next user of the number would get them.
    fn rests_on(&self, earlier: &dyn Change) -> bool {
        let name = earlier.device().and_then(|device| device.file_name());
        name.is_some_and(|name| whitelist::disk_of(&self.name) == name.to_str())
    }

    fn note_side_effects(&mut self, values: &[(String, String)]) {
        self.along_after = values.to_vec();
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.set_back(context.machine, context.place))
    }
}

impl ChangedSetting {
    /// Restores the value if the setting still has the one that was set, on the same device and in the same boot.
    fn set_back(&self, machine: &Machine, place: &Place) -> Outcome {
        if place.boot_id != machine.place().boot_id {
            return Outcome::left_alone("it ended with an earlier boot");
        }
        if let Some(why) = self.out_of_reach(machine) {
            return Outcome::left_alone(why);
        }
        let Some(known) = whitelist::find(&self.name) else {
            return Outcome::failed(
                "this mydyno may not write to it: run `mydyno host restore` of the one that did",
            );
        };
        if known.device_identity(machine) != self.device {
            return Outcome::left_alone("the device is gone, and another one may have its name now");
        }
        match read_known(machine, &known) {
            Err(error) => Outcome::failed(error.to_string()),
            // The command was killed before it set the value, or after it restored it. Where the values that the kernel
            // gave to the neighbours are unknown, the neighbours get their original values.
            Ok(current) if current == self.was => {
                let (along, foreign) = self.neighbours(machine);
                match write_where_different(machine, &along) {
                    Ok(()) => Outcome::restored(format!("it is {} already{}", self.was, kept(&foreign))),
                    Err(error) => along_failed(&error),
                }
            }
            Ok(current) if current != self.now => Outcome::left_alone(format!(
                "another program has since set it to {current}; mydyno had set it from {} to {}",
                self.was, self.now
            )),
            Ok(_) => self.write_back(machine, &known),
        }
    }

    fn write_back(&self, machine: &Machine, known: &Known) -> Outcome {
        // Read before the kernel changes them again.
        let (along, foreign) = self.neighbours(machine);
        let written = write_known(machine, known, &self.was);
        match written.and_then(|()| read_known(machine, known)) {
            Err(error) => return Outcome::failed(error.to_string()),
            Ok(value) if value != self.was => {
                return Outcome::failed(format!("it became {value} instead of {}", self.was));
            }
            Ok(_) => {}
        }
        if let Err(error) = write_where_different(machine, &along) {
            return along_failed(&error);
        }
        Outcome::restored(format!("set back to {}{}", self.was, kept(&foreign)))
    }

    /// The values for the neighbours after the restore, and the names of those that another program has changed
    /// meanwhile: these keep their current values.
    fn neighbours(&self, machine: &Machine) -> (Vec<(String, String)>, Vec<String>) {
        let mut values = Vec::new();
        let mut foreign = Vec::new();
        for (name, was) in &self.along {
            let after = self.along_after.iter().find(|(n, _)| n == name).map(|(_, value)| value);
            match read(machine, name) {
                Ok(now) if now != *was && after.is_some_and(|after| now != *after) => {
                    foreign.push(name.clone());
                    values.push((name.clone(), now));
                }
                _ => values.push((name.clone(), was.clone())),
            }
        }
        (values, foreign)
    }
}

fn kept(foreign: &[String]) -> String {
    match foreign {
        [] => String::new(),
        names => format!("; {} keeps the value that another program has since set", names.join(", ")),
    }
}

fn along_failed(error: &HostError) -> Outcome {
    Outcome::failed(format!("what changed along with it cannot be set back: {error}"))
}

/// Writes the settings whose current values differ.
fn write_where_different(machine: &Machine, values: &[(String, String)]) -> Result<(), HostError> {
    for (name, value) in values {
        let Some(known) = whitelist::find(name) else { continue };
        if read_known(machine, &known).is_ok_and(|now| now != *value) {
            write_known(machine, &known, value)?;
        }
    }
    Ok(())
}

fn known_namespace(machine: &Machine, name: &str) -> Option<String> {
    whitelist::find(name)?.namespace(machine)
}

fn read_file(known: &Known, path: &Path) -> Result<String, HostError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(text.trim().to_owned()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(HostError::SettingAbsent { name: known.name.clone(), path: path.to_owned() })
        }
        Err(e) => Err(HostError::io("read", path, e)),
    }
}

fn read_known(machine: &Machine, known: &Known) -> Result<String, HostError> {
    let files = known.files(machine);
    let first = read_file(known, &files[0])?;
    Ok(match &known.form {
        Form::Bracketed => chosen(&first).map(str::to_owned).unwrap_or(first),
        // The bytes setting is 0 while the ratio is in force.
        Form::ShareOrBytes => match read_file(known, &files[1])?.as_str() {
            "0" => format!("{first}%"),
            bytes => bytes.to_owned(),
        },
        Form::Number { .. } | Form::OneOf(_) | Form::Cpus => first,
    })
}

fn write_known(machine: &Machine, known: &Known, value: &str) -> Result<(), HostError> {
    let files = known.files(machine);
    let (path, text) = match (&known.form, value.strip_suffix('%')) {
        (Form::ShareOrBytes, Some(share)) => (&files[0], share),
        (Form::ShareOrBytes, None) => (&files[1], value),
        _ => (&files[0], value),
    };
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| match (&known.form, source.raw_os_error()) {
            // write_irq_affinity of kernel/irq/proc.c: EPERM, and EIO in earlier releases.
            (Form::Cpus, Some(libc::EIO | libc::EPERM)) => managed(&known.name),
            _ => HostError::SettingDenied { name: known.name.clone(), path: path.clone(), source },
        })
}

/// Drivers that spread their queues over the CPUs keep these interrupts fixed.
fn managed(name: &str) -> HostError {
    HostError::Missing {
        what: name.to_owned(),
        missing: "the kernel spreads this interrupt over the CPUs itself".to_owned(),
        remedy: "use one that it does not manage, or move the server with server.affinity".to_owned(),
    }
}

/// The choices in a setting's file, as in `always [madvise] never`.
fn choices(machine: &Machine, known: &Known) -> Result<Option<Vec<String>>, HostError> {
    if !matches!(known.form, Form::Bracketed) {
        return Ok(None);
    }
    let text = read_file(known, &known.files(machine)[0])?;
    Ok(Some(text.split_whitespace().map(|w| w.trim_matches(['[', ']']).to_owned()).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::AttachedLoop;

    #[test]
    fn a_loop_device_waits_for_the_settings_of_its_own_queue() {
        let device = AttachedLoop {
            device: "/dev/loop3".into(),
            backing: "/d/image".into(),
            inode: 7,
            label: "ab".to_owned(),
        };
        let setting = |name: &str| ChangedSetting {
            name: name.to_owned(),
            was: "none".to_owned(),
            now: "bfq".to_owned(),
            device: None,
            namespace: None,
            along: vec![],
            along_after: vec![],
        };
        assert!(setting("queue.loop3.scheduler").rests_on(&device));
        assert!(setting("bdi.loop3.max_ratio").rests_on(&device));
        assert!(!setting("queue.loop30.scheduler").rests_on(&device));
        assert!(!setting("vm.swappiness").rests_on(&device));
    }
}
