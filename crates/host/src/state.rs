//! The state folder: the journal, private servers and runs of one user.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mydyno_journal::Journal;
use mydyno_linux::calls;

use crate::data_directory;
use crate::error::HostError;
use crate::kinds::KINDS;
/// A folder that only its owner can read: it holds passwords of private servers and the journal that undoes changes.
#[derive(Debug, Clone)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// The default state folder of this user: `$MYDYNO_STATE`, else the folder of [`Self::configure`], else
    /// `/var/lib/mydyno` for root, else `$XDG_STATE_HOME/mydyno` or `~/.local/state/mydyno`.
    ///
    /// # Errors
    /// No variable names a folder, and there is no home folder.
    pub fn default_path() -> Result<PathBuf, HostError> {
        choose(|name| std::env::var_os(name), CONFIGURED.get(), calls::effective_uid() == 0)
    }

    /// Sets the default of this process from the user's file of defaults. Only the first call has an effect.
    pub fn configure(path: PathBuf) {
        let _ = CONFIGURED.set(path);
    }

    /// Opens the folder; makes it (mode 0700) if it does not exist.
    ///
    /// # Errors
    /// It cannot be made, would be inside a data directory, or others can access it.
    pub fn open(path: &Path) -> Result<Self, HostError> {
        if let Some(found) = Self::find(path)? {
            return Ok(found);
        }
        data_directory::check_outside(path, "MYDYNO_STATE")?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .map_err(|e| HostError::io("create the state folder", path, e))?;
        Self::find(path)?
            .ok_or_else(|| HostError::io("open the state folder", path, io::ErrorKind::NotFound.into()))
    }

    /// Opens the folder if it exists.
    ///
    /// # Errors
    /// It belongs to another user, others can access it, or it is no folder.
    pub fn find(path: &Path) -> Result<Option<Self>, HostError> {
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(HostError::io("open the state folder", path, e)),
        };
        let refuse = |problem: String, remedy: String| {
            Err(HostError::StateFolder { path: path.clone(), problem, remedy })
        };
        let meta = fs::metadata(&path).map_err(|e| HostError::io("open the state folder", &path, e))?;
        let elsewhere = "set MYDYNO_STATE to a private folder of your own".to_owned();
        if !meta.is_dir() {
            return refuse("it is not a folder".to_owned(), elsewhere);
        }
        if meta.uid() != calls::effective_uid() {
            return refuse(
                format!("it belongs to user {}, and you are user {}", meta.uid(), calls::effective_uid()),
                elsewhere,
            );
        }
        let mode = meta.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return refuse(
                format!("its mode {mode:04o} gives others access"),
                format!("run `chmod 700 {}`", path.display()),
            );
        }
        if path.to_str().is_none() {
            return refuse("its name is not UTF-8".to_owned(), elsewhere);
        }
        Ok(Some(Self { path }))
    }

    /// The folder, absolute and without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The journal of changes, with all kinds that mydyno makes.
    pub fn journal(&self) -> Journal {
        Journal::at(self.path.join("journal.jsonl"), KINDS)
    }

    /// The folder of private servers.
    pub fn servers(&self) -> PathBuf {
        self.path.join("servers")
    }

    /// The folder of runs.
    pub fn runs(&self) -> PathBuf {
        self.path.join("runs")
    }
}

/// The state folder of the user's file of defaults.
static CONFIGURED: OnceLock<PathBuf> = OnceLock::new();

fn choose(
    env: impl Fn(&str) -> Option<OsString>,
    configured: Option<&PathBuf>,
    root: bool,
) -> Result<PathBuf, HostError> {
    let absolute = |name: &str| env(name).map(PathBuf::from).filter(|p| p.is_absolute());
    // A relative MYDYNO_STATE is the user's choice; the XDG specification says to ignore relative folders.
    if let Some(path) = env("MYDYNO_STATE").filter(|v| !v.is_empty()) {
        return Ok(PathBuf::from(path));
    }
    if let Some(path) = configured {
        return Ok(path.clone());
    }
    if root {
        return Ok(PathBuf::from("/var/lib/mydyno"));
    }
    if let Some(path) = absolute("XDG_STATE_HOME") {
        return Ok(path.join("mydyno"));
    }
    absolute("HOME").map(|home| home.join(".local/state/mydyno")).ok_or(HostError::NoHome)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(variables: &[(&str, &str)], root: bool) -> Option<String> {
        let env = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| OsString::from(v));
        choose(env, None, root).ok().map(|p| p.display().to_string())
    }

    #[test]
    fn the_state_folder_follows_the_user() {
        let home = [("HOME", "/home/a")];
        assert_eq!(chosen(&home, false).as_deref(), Some("/home/a/.local/state/mydyno"));
        assert_eq!(chosen(&home, true).as_deref(), Some("/var/lib/mydyno"));
        assert_eq!(chosen(&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")], false).as_deref(), Some("/x/mydyno"));
        assert_eq!(
            chosen(&[("XDG_STATE_HOME", "x"), ("HOME", "/h")], false).as_deref(),
            Some("/h/.local/state/mydyno")
        );
        assert_eq!(chosen(&[("MYDYNO_STATE", "/s"), ("HOME", "/h")], true).as_deref(), Some("/s"));
        assert_eq!(chosen(&[], false), None);
        let configured = PathBuf::from("/c");
        assert_eq!(choose(|_| None, Some(&configured), true).unwrap(), configured);
        let env = |name: &str| (name == "MYDYNO_STATE").then(|| OsString::from("/s"));
        assert_eq!(choose(env, Some(&configured), true).unwrap(), PathBuf::from("/s"));
    }

    #[test]
    fn a_state_folder_that_lets_others_in_is_refused_with_the_way_out() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        StateDir::open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        let error = StateDir::open(&path).unwrap_err().to_string();
        assert!(error.contains("0750") && error.contains("chmod 700"), "{error}");
    }

    #[test]
    fn looking_for_a_state_folder_makes_none() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("state");
        assert!(StateDir::find(&path).unwrap().is_none());
        assert!(!path.exists());
    }

    #[test]
    fn a_file_is_no_state_folder() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        assert!(StateDir::open(temp.path()).unwrap_err().to_string().contains("not a folder"));
    }
}
