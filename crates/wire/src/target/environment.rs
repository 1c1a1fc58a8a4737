//! The environment in which a target is resolved: variables, user, files.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::regular;

/// The world around a command: its own (see [`Environment::current`]), or one that a test made up.
#[derive(Clone)]
pub struct Environment {
    /// Environment variables.
    pub variables: BTreeMap<String, OsString>,
    /// Prefix of every path that is opened: `/`, or a test's folder.
    pub root: PathBuf,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// The name that is used when none is given: as clients have it, `root` for root.
    pub user: String,
    /// Folder that relative paths start from.
    pub folder: PathBuf,
}

impl fmt::Debug for Environment {
    /// Without the values of variables, one of which is `MYSQL_PWD`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("root", &self.root)
            .field("home", &self.home)
            .field("user", &self.user)
            .field("folder", &self.folder)
            .finish()
    }
}

/// Metadata of a file before it is read.
pub(super) struct Facts {
    pub mode: u32,
    pub is_file: bool,
}

impl Environment {
    /// This process's.
    pub fn current() -> Self {
        let variables: BTreeMap<String, OsString> =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
        let text = |name: &str| variables.get(name).and_then(|v| v.to_str()).map(str::to_owned);
        // SAFETY: geteuid has no preconditions.
        let is_root = unsafe { libc::geteuid() } == 0;
        let user = if is_root {
            "root".to_owned()
        } else {
            ["USER", "LOGNAME", "LOGIN"].into_iter().find_map(text).unwrap_or_else(|| "root".to_owned())
        };
        Self {
            home: variables.get("HOME").map(PathBuf::from).filter(|h| h.is_absolute()),
            user,
            root: PathBuf::from("/"),
            folder: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            variables,
        }
    }

    /// A variable's text; empty ones count as not set.
    pub(super) fn variable(&self, name: &str) -> Option<String> {
        let value = self.variables.get(name)?.to_string_lossy();
        (!value.is_empty()).then(|| value.into_owned())
    }

    /// A variable's bytes.
    pub(super) fn variable_bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.variables.get(name).cloned().map(OsString::into_vec)
    }

    /// A path from the root, `~` and relative ones resolved.
    pub(super) fn absolute(&self, path: &Path) -> PathBuf {
        if let (Ok(rest), Some(home)) = (path.strip_prefix("~"), &self.home) {
            return home.join(rest);
        }
        self.folder.join(path)
    }

    fn real(&self, path: &Path) -> PathBuf {
        let absolute = self.absolute(path);
        self.root.join(absolute.strip_prefix("/").unwrap_or(&absolute))
    }

    pub(super) fn exists(&self, path: &Path) -> bool {
        self.real(path).exists()
    }

    pub(super) fn facts(&self, path: &Path) -> io::Result<Facts> {
        let data = std::fs::metadata(self.real(path))?;
        Ok(Facts { mode: data.mode(), is_file: data.is_file() })
    }

    /// The bytes of a regular file, at most `max`; wiped when dropped.
    pub(super) fn read(&self, path: &Path, max: usize) -> io::Result<Zeroizing<Vec<u8>>> {
        regular::read(&self.real(path), max)
    }

    /// Names in a folder, sorted.
    pub(super) fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = std::fs::read_dir(self.real(folder))?
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .collect();
        names.sort();
        Ok(names)
    }
}
