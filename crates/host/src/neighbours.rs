//! State folders that change kernel settings of the same host. Each has a journal of its own, and none may change a
//! setting that another has changed: the second would record the first one's value as the original.
//!
//! A folder below `/run` holds a symbolic link to each state folder that has changed a setting since boot. Its flock(2)
//! lock is held from the check of the other journals until the own journal has the entry and the kernel has the value.
//! The journals decide: a link to a state folder that is gone, or whose journal has no entry in force, is removed. A
//! killed command leaves its entry, so the setting stays refused until `mydyno host restore` restores it.
//!
//! A command that sets and restores a setting several times, as an experiment does, reserves it meanwhile by a locked
//! file in that folder: the kernel releases the lock when the process ends for any reason.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, symlink};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use mydyno_journal::{Journal, JournalError, Machine, Open, refusal};
use mydyno_linux::calls::files::{try_lock, unlock};

use crate::error::HostError;
use crate::setting::{ChangedSetting, touches};
use crate::whitelist::{self, Known};

/// Time limit for the lock. Another mydyno holds it for the milliseconds that setting a value takes.
const LOCK_PATIENCE: Duration = Duration::from_secs(10);
/// Suffix of the names of reservations.
const RESERVED: &str = ".reserved";

/// The state folders of this host, locked.
#[derive(Debug)]
pub(crate) struct Neighbours {
    folder: PathBuf,
    lock: File,
}

impl Neighbours {
    /// Locks them. `None` where this process may not make the folder: only root may, and only root may change settings
    /// of the real kernel.
    ///
    /// # Errors
    /// The folder cannot be made or locked, or another process holds the lock for ten seconds.
    pub(crate) fn lock(machine: &Machine) -> Result<Option<Self>, HostError> {
        // Beside /proc, so that simulated machines in tests have their own.
        let folder = machine.proc().with_file_name("run").join("mydyno");
        match DirBuilder::new().recursive(true).mode(0o700).create(&folder) {
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem
                ) =>
            {
                return Ok(None);
            }
            made => made.map_err(|e| HostError::io("create", &folder, e))?,
        }
        let lock = match File::open(&folder) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Ok(None),
            opened => opened.map_err(|e| HostError::io("open", &folder, e))?,
        };
        let deadline = Instant::now() + LOCK_PATIENCE;
        while !try_lock(&lock, true).map_err(|e| HostError::io("lock", &folder, e))? {
            if Instant::now() >= deadline {
                let waited_s = LOCK_PATIENCE.as_secs();
                return Err(JournalError::Busy { path: folder, waited_s }.into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Some(Self { folder, lock }))
    }

    /// Refuses a change that conflicts with an entry in force of another state folder.
    ///
    /// # Errors
    /// There is one, or another state folder's journal cannot be read.
    pub(crate) fn check(&self, own: &Journal, machine: &Machine, known: &Known) -> Result<(), HostError> {
        self.check_reservations(known)?;
        let in_the_way = |open: &Open| {
            let same = |there: &ChangedSetting| {
                there.device == known.device_identity(machine) && there.namespace == known.namespace(machine)
            };
            open.as_kind::<ChangedSetting>().is_some_and(|there| same(there) && touches(there, known, true))
        };
        for (link, state) in self.links()? {
            if own.path().parent() == Some(&state) {
                continue;
            }
            let open = own.beside(&state).read()?.open;
            let here = |open: &&Open| open.entry.place.boot_id == machine.place().boot_id;
            if open.is_empty() {
                fs::remove_file(&link).map_err(|e| HostError::io("remove", &link, e))?;
            } else if let Some(open) = open.iter().filter(here).find(|open| in_the_way(open)) {
                let was = open.entry.was.as_str().map_or_else(|| open.entry.was.to_string(), str::to_owned);
                let source = Box::new(refusal(open, machine)?);
                return Err(HostError::OtherState { state, was, source });
            }
        }
        Ok(())
    }

    /// Refuses a setting that another process has reserved, or one that the kernel changes along with a reserved one.
    fn check_reservations(&self, known: &Known) -> Result<(), HostError> {
        for path in self.entries()? {
            let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(RESERVED)) else {
                continue;
            };
            let related = name == known.name
                || known.along.iter().chain(&known.unmoved).any(|along| along == name)
                || whitelist::find(name).is_some_and(|other| other.along.contains(&known.name));
            if !related {
                continue;
            }
            let Ok(file) = File::open(&path) else { continue };
            if try_lock(&file, false).map_err(|e| HostError::io("lock", &path, e))? {
                // Its process ended without removing it.
                fs::remove_file(&path).map_err(|e| HostError::io("remove", &path, e))?;
                continue;
            }
            let text = fs::read_to_string(&path).map_err(|e| HostError::io("read", &path, e))?;
            let (pid, state) = text.split_once(' ').unwrap_or(("unknown", &text));
            if pid != std::process::id().to_string() {
                let (name, pid, state) = (name.to_owned(), pid.to_owned(), state.trim_end().into());
                return Err(HostError::Reserved { name, pid, state });
            }
        }
        Ok(())
    }

    /// Registers a state folder.
    ///
    /// # Errors
    /// The link cannot be made.
    pub(crate) fn add(&self, own: &Journal) -> Result<(), HostError> {
        let Some(state) = own.path().parent() else { return Ok(()) };
        let about = fs::metadata(state).map_err(|e| HostError::io("read", state, e))?;
        let link = self.folder.join(format!("{:x}-{:x}", about.dev(), about.ino()));
        if fs::read_link(&link).is_ok_and(|there| there == state) {
            return Ok(());
        }
        // Inode numbers of removed state folders are reused.
        match fs::remove_file(&link) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(HostError::io("remove", &link, e)),
            _ => symlink(state, &link).map_err(|e| HostError::io("create", &link, e)),
        }
    }

    /// The links, each with its state folder.
    fn links(&self) -> Result<Vec<(PathBuf, PathBuf)>, HostError> {
        let target = |link: PathBuf| fs::read_link(&link).ok().map(|state| (link, state));
        Ok(self.entries()?.into_iter().filter_map(target).collect())
    }

    fn entries(&self) -> Result<Vec<PathBuf>, HostError> {
        let io = |e| HostError::io("read", &self.folder, e);
        fs::read_dir(&self.folder).map_err(io)?.map(|entry| Ok(entry.map_err(io)?.path())).collect()
    }
}

/// A child that another thread forks holds a copy of the descriptor until it executes its program, so the lock is
/// released explicitly.
impl Drop for Neighbours {
    fn drop(&mut self) {
        unlock(&self.lock);
    }
}

/// Kernel settings that this process alone may change until it is dropped.
#[derive(Debug)]
pub struct Reservation {
    files: Vec<(PathBuf, File)>,
}

impl Reservation {
    /// Reserves settings for the commands of this process.
    ///
    /// # Errors
    /// Another process has reserved one of them, a command with another state folder has changed one, or a name is not
    /// that of a setting.
    pub fn take(journal: &Journal, machine: &Machine, names: &[String]) -> Result<Self, HostError> {
        let mut taken = Self { files: Vec::new() };
        let Some(neighbours) = Neighbours::lock(machine)?.filter(|_| !names.is_empty()) else {
            return Ok(taken);
        };
        for name in names {
            let known =
                whitelist::find(name).ok_or_else(|| HostError::SettingUnknown { name: name.clone() })?;
            neighbours.check(journal, machine, &known)?;
            let left = |open: &&Open| open.as_kind().is_some_and(|there| touches(there, &known, true));
            if let Some(open) = journal.read()?.open.iter().find(left) {
                return Err(refusal(open, machine)?.into());
            }
            let path = neighbours.folder.join(format!("{name}{RESERVED}"));
            if taken.files.iter().any(|(there, _)| *there == path) {
                continue;
            }
            let io = |action| {
                let path = path.clone();
                move |e| HostError::io(action, path, e)
            };
            let mut file = File::create(&path).map_err(io("create"))?;
            if !try_lock(&file, true).map_err(io("lock"))? {
                // Another experiment of the same process.
                let (pid, state) = (std::process::id().to_string(), PathBuf::from("this state folder"));
                return Err(HostError::Reserved { name: name.clone(), pid, state });
            }
            let state = journal.path().parent().unwrap_or(journal.path());
            writeln!(file, "{} {}", std::process::id(), state.display()).map_err(io("write"))?;
            taken.files.push((path, file));
        }
        Ok(taken)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for (path, file) in &self.files {
            // The next command removes a file that remains: it finds it unlocked.
            let _ = fs::remove_file(path);
            unlock(file);
        }
    }
}
