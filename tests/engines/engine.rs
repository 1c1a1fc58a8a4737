//! The servers that `fetch` brings, started by `up` for one test: shared by the tests of the protocol and of the binary.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::certificates::Certificates;

/// Engines, as `up` names them.
pub const ENGINES: [&str; 11] = [
    "mysql-5.5",
    "mysql-5.6",
    "mysql-5.7",
    "mysql-8.0",
    "mysql-9.7",
    "mariadb-10.1",
    "mariadb-10.2",
    "mariadb-10.5",
    "mariadb-10.11",
    "mariadb-11.4",
    "mariadb-11.8",
];

/// Engines that are asked for: all, or the one that `MYDYNO_ENGINE` names.
pub fn wanted() -> impl Iterator<Item = &'static str> {
    let only = std::env::var("MYDYNO_ENGINE").ok();
    ENGINES.into_iter().filter(move |name| only.as_deref().is_none_or(|o| o == *name))
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/engines").join(name)
}

/// A running engine; it ends when it is dropped.
pub struct Engine {
    /// As in [`ENGINES`].
    pub name: &'static str,
    /// Its folder, short enough for a socket.
    pub folder: TempDir,
    /// Certificates that it presents to clients that ask for TLS.
    pub certificates: Certificates,
    options: Vec<OsString>,
}

impl Engine {
    /// Starts one with a data directory of its own.
    pub fn start(name: &'static str) -> Self {
        Self::start_with(name, &[])
    }

    /// The same with options of the server.
    pub fn start_with(name: &'static str, options: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("eng").tempdir_in("/tmp").unwrap();
        let certificates = Certificates::make_rsa(folder.path());
        let tls = [("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")];
        let tls = tls.map(|(o, file)| format!("--loose-ssl-{o}={}", certificates.path(file).display()));
        let options = tls.into_iter().chain(options.iter().map(|o| (*o).to_owned()));
        let engine = Self { name, folder, certificates, options: options.map(Into::into).collect() };
        engine.up().unwrap_or_else(|reported| panic!("{name}: {reported}"));
        engine
    }

    /// Starts it (again), or gives the last lines of its log.
    pub fn up(&self) -> Result<(), String> {
        self.up_with(None)
    }

    /// The same with an option file.
    pub fn up_with(&self, file: Option<&Path>) -> Result<(), String> {
        let mut command = Command::new(script("up"));
        command.arg(self.name).arg(self.folder.path()).arg("").args(&self.options);
        // The installed one needs no folder; for the others `up` names the missing prerequisite.
        command.env("ENGINES_PFX", std::env::var_os("MYDYNO_ENGINES").unwrap_or_default());
        if let Some(file) = file {
            command.env("ENGINES_CNF", file);
        }
        let output = command.output().unwrap();
        if output.status.success() {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }

    /// Ends it; its folder stays.
    pub fn down(&self) {
        let _ = Command::new(script("down")).arg(self.folder.path()).status();
    }

    /// Its error log so far.
    pub fn log(&self) -> String {
        let text = std::fs::read(self.folder.path().join("err.log")).unwrap();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        std::fs::read_to_string(self.folder.path().join("port")).unwrap().trim().parse().unwrap()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.down();
    }
}
