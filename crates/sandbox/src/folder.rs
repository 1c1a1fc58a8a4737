//! The folder of one private server and its files.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mydyno_host::StateDir;
use mydyno_host::machine::ProcessIdentity;
use mydyno_host::user::User;
use mydyno_linux::calls::replace::Replacement;
use mydyno_model::server::ServerInfo;
use serde::{Deserialize, Serialize};

use crate::cache::lock;
use crate::error::SandboxError;

/// The folder in which a server of another user makes its socket.
const RUN: &str = "run";
/// Bytes of a unix socket's path, `sun_path` of unix(7) without its final NUL.
const SOCKET_PATH_BYTES: usize = 107;
/// Time limit for a lock that nobody means to hold: a process that was just forked has a copy of each descriptor until it
/// executes its program, milliseconds later.
const FORKED: Duration = Duration::from_millis(200);

/// The folder `servers/NAME` of a state folder.
#[derive(Debug, Clone)]
pub(crate) struct ServerFolder {
    path: PathBuf,
}

/// Description of a server in its folder: enough to find, describe and end it from another command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Description {
    /// Its properties when it became ready.
    pub(crate) server: ServerInfo,
    /// Its process.
    pub(crate) process: ProcessIdentity,
    /// The program of the process.
    pub(crate) program: PathBuf,
    /// Its `--version` line.
    #[serde(default)]
    pub(crate) engine: String,
}

/// Checks the name of a private server; it becomes the name of a folder.
///
/// # Errors
/// It has characters that are not letters, digits, `_`, `-` or `.`, or is too long.
pub fn check_name(name: &str) -> Result<(), SandboxError> {
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let first = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if first && name.chars().all(fine) && name.len() <= 64 {
        Ok(())
    } else {
        Err(SandboxError::Name { name: name.to_owned() })
    }
}

impl ServerFolder {
    /// The folder of a server, which need not exist.
    pub(crate) fn of(state: &StateDir, name: &str) -> Self {
        Self { path: state.servers().join(name) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// A folder at any path.
    pub(crate) fn with_path(path: PathBuf) -> Self {
        Self { path }
    }

    /// Excludes other commands from the server for as long as the file is open.
    ///
    /// # Errors
    /// Another command is working on it.
    pub(crate) fn lock(&self, name: &str) -> Result<Option<File>, SandboxError> {
        // A folder that does not exist needs no lock.
        let Ok(folder) = File::open(&self.path) else { return Ok(None) };
        let deadline = Instant::now() + FORKED;
        loop {
            match lock(&folder, true) {
                Ok(()) => return Ok(Some(folder)),
                Err(_) if Instant::now() >= deadline => {
                    return Err(SandboxError::ServerBusy { name: name.to_owned() });
                }
                Err(_) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// Its data: on its own disk if it has one.
    pub(crate) fn data(&self) -> PathBuf {
        let disk = self.path.join("disk");
        if disk.is_dir() { disk.join("data") } else { self.path.join("data") }
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.path.join("tmp")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("server.log")
    }

    /// The folders that the server uses: this one, and that of its data on a disk of kept data, which the link `disk`
    /// refers to.
    pub(crate) fn places(&self) -> Vec<PathBuf> {
        let elsewhere = fs::read_link(self.path.join("disk")).ok();
        [self.path.clone()].into_iter().chain(elsewhere).collect()
    }

    /// The folder for the socket of a server that runs as another user, if it does.
    fn run(&self) -> Option<PathBuf> {
        Some(self.path.join(RUN)).filter(|run| run.is_dir())
    }

    pub(crate) fn pid_file(&self) -> PathBuf {
        // MySQL warns about a pid file in a folder that others may write to.
        let folder = if self.run().is_some() { self.tmp() } else { self.path.clone() };
        folder.join("pid")
    }

    pub(crate) fn password_file(&self) -> PathBuf {
        self.path.join("password")
    }

    pub(crate) fn init_file(&self) -> PathBuf {
        self.path.join("init.sql")
    }

    /// Option file for client programs; it holds the password.
    pub(crate) fn client_options(&self) -> PathBuf {
        self.path.join("client.cnf")
    }

    pub(crate) fn description(&self) -> PathBuf {
        self.path.join("server.json")
    }

    /// The socket's path.
    ///
    /// # Errors
    /// It is longer than the kernel permits.
    pub(crate) fn socket(&self) -> Result<PathBuf, SandboxError> {
        Self::socket_in(self.run().as_deref().unwrap_or(&self.path))
    }

    /// Checks the length of a socket's path before the folder is made.
    ///
    /// # Errors
    /// It is longer than the kernel permits.
    pub(crate) fn check_socket(&self, of_other_user: bool) -> Result<(), SandboxError> {
        let folder = if of_other_user { self.path.join(RUN) } else { self.path.clone() };
        Self::socket_in(&folder).map(drop)
    }

    fn socket_in(folder: &Path) -> Result<PathBuf, SandboxError> {
        let path = folder.join("s.sock");
        let length = path.as_os_str().as_bytes().len();
        if length > SOCKET_PATH_BYTES { Err(SandboxError::SocketPath { path, length }) } else { Ok(path) }
    }

    /// Lets another user enter the folder, and gives that user the files that the server writes beside its data. The
    /// rest stays root's, so that no file that root reads or removes here can become a link.
    pub(crate) fn let_in(&self, user: &User) -> Result<(), SandboxError> {
        let run = self.path.join(RUN);
        fs::create_dir(&run).map_err(|e| SandboxError::io("create", &run, e))?;
        // Only users who can enter the state folder can reach this one. Sticky and world-writable, so that the kernel
        // keeps root from following links that the user makes here: fs.protected_symlinks of proc_sys_fs(5).
        let places = self.places().into_iter().map(|place| (place, 0o711));
        for (path, mode) in [(run, 0o1777)].into_iter().chain(places) {
            let set = fs::set_permissions(&path, Permissions::from_mode(mode));
            set.map_err(|e| SandboxError::io("open", path, e))?;
        }
        Ok(user.own(&self.tmp())?)
    }

    /// Writes a file that only its owner can read.
    pub(crate) fn write_private(&self, path: &Path, text: &str) -> Result<(), SandboxError> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| SandboxError::io("write", path, e))
    }

    /// Saves the description atomically.
    pub(crate) fn save(&self, description: &Description) -> Result<(), SandboxError> {
        let path = self.description();
        let text = serde_json::to_string_pretty(description)
            .map_err(|e| SandboxError::Description { path: path.clone(), why: e.to_string() })?;
        Replacement::of(&path)
            .write(|mut file| file.write_all(text.as_bytes()))
            .map_err(|e| SandboxError::io("write", path, e))
    }

    /// The saved description; `None` when the server was not ready yet.
    pub(crate) fn load(&self) -> Result<Option<Description>, SandboxError> {
        let path = self.description();
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(SandboxError::io("read", path, e)),
        };
        serde_json::from_str(&text)
            .map(Some)
            .map_err(|e| SandboxError::Description { path, why: e.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_folders() {
        for name in ["a", "demo", "8.0-test_1", &"x".repeat(64)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "-x", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_socket_path_of_107_bytes_is_the_longest() {
        let at = |length: usize| ServerFolder { path: PathBuf::from(format!("/{}", "x".repeat(length - 8))) };
        assert_eq!(at(107).socket().unwrap().as_os_str().len(), 107);
        let error = at(108).socket().unwrap_err().to_string();
        assert!(
            error.contains("108 bytes") && error.contains("107") && error.contains("MYDYNO_STATE"),
            "{error}"
        );
    }
}
