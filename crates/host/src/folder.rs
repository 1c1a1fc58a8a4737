//! Folders that mydyno makes. A mark file inside identifies each, so that only mydyno's own folders are ever removed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mydyno_journal::{Change, Closing, Context, Journal, JournalError, Lease, Machine, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::HostError;
/// The mark file inside a folder.
pub const MARK_FILE: &str = ".mydyno-mark";

/// The prefix of the name of a folder that is being removed; its mark follows.
const LEAVING: &str = ".mydyno-leaving-";

/// A folder and the random text of its mark. A folder with the same name and another mark is not mydyno's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarkedFolder {
    /// Absolute path without symbolic links.
    pub path: PathBuf,
    /// The content of the mark file: 128 random bits in hex.
    pub mark: String,
}

/// Makes a folder (mode 0700), journalled and marked. Its parent must exist. Returns the journal entry's number.
///
/// # Errors
/// A file with that name exists or is journalled; or the folder or its mark cannot be written, and then it is removed
/// again.
pub fn create(journal: &Journal, lease: &Lease, purpose: &str, path: &Path) -> Result<u64, HostError> {
    if path.symlink_metadata().is_ok() {
        // The journal is read first: its entry names the owner of an existing folder.
        let known = journal
            .read()?
            .open
            .into_iter()
            .any(|o| o.as_kind::<MarkedFolder>().is_some_and(|f| f.path == path));
        if !known {
            return Err(HostError::FolderExists { path: path.to_owned() });
        }
    }
    let folder = MarkedFolder { path: path.to_owned(), mark: random_mark()? };
    let id = journal.record(lease, purpose, folder.clone())?;
    match folder.make() {
        Ok(()) => Ok(id),
        Err(error) => {
            // Restore removes only a folder that carries this mark, so a folder that existed before stays.
            let outcome = folder.remove_if_ours(lease.machine())?;
            journal.close_with(id, &outcome)?;
            Err(error)
        }
    }
}

/// Takes the name from a folder of ours that the journal does not know, and leaves it to the journal to remove: the change
/// stays open until its purpose is put back. A crash leaves the folder whole under its name, or without a name that anybody
/// would use and known to the journal.
///
/// # Errors
/// The folder has no mark, or it or the journal cannot be written.
pub fn give_away(journal: &Journal, lease: &Lease, purpose: &str, path: &Path) -> Result<(), HostError> {
    let folder = MarkedFolder::found(path)?;
    let Some(leaving) = folder.leaving() else {
        return Err(HostError::FolderExists { path: path.to_owned() });
    };
    // The journal knows the new name alone: the old one may soon be another folder's.
    let change = MarkedFolder { path: leaving.clone(), mark: folder.mark };
    let id = journal.record(lease, purpose, change)?;
    if let Err(error) = fs::rename(path, &leaving) {
        journal.close(id, Closing::Released, "it kept its name")?;
        return Err(HostError::io("rename", path, error));
    }
    path.parent().map_or(Ok(()), sync_names)
}

/// Whether a folder has the temporary name of one that is being removed.
pub fn is_leaving(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix(LEAVING)).is_some_and(is_mark)
}

/// Whether a text is a valid mark; names of folders contain it.
pub(crate) fn is_mark(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Whether a folder carries a mark, of any owner.
pub fn is_marked(path: &Path) -> bool {
    fs::symlink_metadata(path.join(MARK_FILE)).is_ok_and(|m| m.is_file())
}

/// 128 random bits in hex: a unique name or label.
pub(crate) fn random_mark() -> Result<String, HostError> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|e| HostError::io("read", "/dev/urandom", e.into()))?;
    Ok(bytes.iter().map(|b| format!("{b:02x}")).collect())
}

impl MarkedFolder {
    /// An existing folder with the mark that it carries.
    pub(crate) fn found(path: &Path) -> Result<Self, HostError> {
        let file = path.join(MARK_FILE);
        let mark = fs::read_to_string(&file).map_err(|e| HostError::io("read", &file, e))?;
        if !is_mark(&mark) {
            return Err(HostError::FolderExists { path: path.to_owned() });
        }
        Ok(Self { path: path.to_owned(), mark })
    }

    fn make(&self) -> Result<(), HostError> {
        DirBuilder::new().mode(0o700).create(&self.path).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => HostError::FolderExists { path: self.path.clone() },
            _ => HostError::io("create", &self.path, e),
        })?;
        let mark = self.path.join(MARK_FILE);
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&mark)
            .and_then(|mut file| {
                file.write_all(self.mark.as_bytes())?;
                file.sync_all()
            })
            .map_err(|e| HostError::io("write", &mark, e))?;
        sync_names(&self.path)?;
        self.path.parent().map_or(Ok(()), sync_names)
    }

    /// Removes the folder if mydyno made it: it carries the recorded mark, or a crash left it half made or half
    /// removed. Never follows a symbolic link and never removes anything on a mount below it.
    ///
    /// # Errors
    /// `/proc` cannot be read.
    fn remove_if_ours(&self, machine: &Machine) -> Result<Outcome, HostError> {
        if let Some(leaving) = self.leaving().filter(|path| path.symlink_metadata().is_ok()) {
            return Ok(match remove_all(&leaving) {
                Ok(()) => Outcome::restored("removed"),
                Err(e) => Outcome::failed(format!("cannot remove {}: {e}", leaving.display())),
            });
        }
        match fs::symlink_metadata(&self.path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                return Ok(Outcome::restored("it is not there"));
            }
            Err(e) => return Ok(Outcome::failed(format!("cannot examine it: {e}"))),
            Ok(meta) if !meta.is_dir() => {
                return Ok(Outcome::left_alone("it is not a folder, so another program has replaced it"));
            }
            Ok(_) => {}
        }
        match self.ownership() {
            Ok(Ownership::Ours) => {}
            Ok(Ownership::Foreign) => {
                return Ok(Outcome::left_alone(format!(
                    "it does not carry the mark that mydyno gave it ({MARK_FILE}), so mydyno does not remove it"
                )));
            }
            Err(e) => return Ok(Outcome::failed(format!("cannot read its mark: {e}"))),
        }
        let mounts = machine.mounts_below(&self.path)?;
        if let Some(mount) = mounts.first() {
            return Ok(Outcome::failed(format!(
                "{} is mounted: run `umount {}` and then `mydyno host restore`",
                mount.display(),
                mount.display()
            )));
        }
        Ok(match self.remove() {
            Ok(()) => Outcome::restored("removed"),
            Err(e) => Outcome::failed(format!("cannot remove it: {e}")),
        })
    }

    fn ownership(&self) -> io::Result<Ownership> {
        let mut found = String::new();
        let mark = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(self.path.join(MARK_FILE));
        match mark {
            Ok(file) => {
                // A mark that is longer or no text is another program's.
                let limit = self.mark.len() as u64 + 1;
                if file.take(limit).read_to_string(&mut found).is_err() {
                    return Ok(Ownership::Foreign);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) if e.raw_os_error() == Some(libc::ELOOP) => return Ok(Ownership::Foreign),
            Err(e) => return Err(e),
        }
        if found == self.mark {
            return Ok(Ownership::Ours);
        }
        // A crash between mkdir and the sync of the mark leaves an empty folder, or one with a partial mark and nothing
        // else.
        let others =
            fs::read_dir(&self.path)?.filter(|e| !e.as_ref().is_ok_and(|e| e.file_name() == MARK_FILE));
        let alone = others.count() == 0;
        Ok(if alone && self.mark.starts_with(&found) { Ownership::Ours } else { Ownership::Foreign })
    }

    /// Its temporary name while it is removed. The name contains the random mark, so after a crash at any point what is
    /// left is known to be mydyno's, with or without its mark file.
    fn leaving(&self) -> Option<PathBuf> {
        is_mark(&self.mark).then(|| self.path.with_file_name(format!("{LEAVING}{}", self.mark)))
    }

    fn remove(&self) -> io::Result<()> {
        let Some(leaving) = self.leaving() else { return Err(io::ErrorKind::InvalidData.into()) };
        fs::rename(&self.path, &leaving)?;
        remove_all(&leaving)
    }
}

impl Change for MarkedFolder {
    fn kind(&self) -> &str {
        "folder"
    }

    fn what(&self) -> String {
        format!("folder {}", self.path.display())
    }

    fn key(&self) -> String {
        format!("folder:{}", self.path.display())
    }

    fn was(&self) -> Value {
        Value::from("absent")
    }

    fn now(&self) -> Value {
        Value::from("present")
    }

    fn ends_with_boot(&self) -> bool {
        false
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn tree(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(self.remove_if_ours(context.machine)?)
    }
}

/// Removes a folder by descriptors, without following symbolic links. A process that is ending may still add files to
/// it.
fn remove_all(folder: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match fs::remove_dir_all(folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty && tries < 100 => tries += 1,
            done => return done,
        }
    }
}

enum Ownership {
    Ours,
    Foreign,
}

/// Syncs the names in a folder: a new file survives a power cut only once its folder is synced.
///
/// # Errors
/// The folder cannot be opened or synced.
pub fn sync_names(path: &Path) -> Result<(), HostError> {
    File::open(path).and_then(|f| f.sync_all()).map_err(|e| HostError::io("sync", path, e))
}
