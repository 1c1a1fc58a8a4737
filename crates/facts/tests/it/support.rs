//! A private server, and other programs as independent readers.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mydyno_facts::Options;
use mydyno_wire::{Client, ConnectOptions, Endpoint};
use tempfile::TempDir;

use crate::template::{LOG_FILE_SIZE, data_directory, own_user};
use crate::until::until;

/// The standard output of a program that must succeed.
#[track_caller]
pub fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// The output of a Python program: an independent reader.
#[track_caller]
pub fn python(program: &str) -> String {
    output("python3", &["-c", program])
}

/// Options with long deadlines, for a machine that is busy with other tests.
pub fn patient(options: Options) -> Options {
    Options { patience: 30.0, ..options }
}

/// Native AIO uses a limit of the whole host (fs.aio-max-nr), which many servers exhaust.
const NO_NATIVE_AIO: &str = "--innodb-use-native-aio=0";

/// A private MariaDB server in a temporary folder; dropping this stops it.
pub struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Starts a server on data of its own with additional options.
    pub fn start(options: &[&str]) -> Self {
        let folder = tempfile::Builder::new().prefix("mdo").tempdir().unwrap();
        let datadir = folder.path().join("data");
        // At start a server removes all temporary tables in its tmpdir, including those of other servers.
        let tmpdir = folder.path().join("tmp");
        std::fs::create_dir(&tmpdir).unwrap();
        let tmpdir = format!("--tmpdir={}", tmpdir.display());
        let program = server_program();
        let datadir_option = format!("--datadir={}", datadir.display());
        data_directory(&datadir);
        let child = Command::new(program)
            .args(["--no-defaults", "--skip-networking", "--innodb-buffer-pool-size=32M", NO_NATIVE_AIO])
            .args([LOG_FILE_SIZE])
            .args([&datadir_option, &tmpdir])
            .args(own_user())
            .arg(format!("--socket={}", folder.path().join("s").display()))
            .arg(format!("--pid-file={}", folder.path().join("p").display()))
            .args(options)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { child, folder };
        until("the server answers", || server.try_connect().is_some());
        server
    }

    /// The options of an administrator.
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::new(Endpoint::Unix(self.folder.path().join("s")), "root")
    }

    fn try_connect(&self) -> Option<Client> {
        Client::connect(&self.options()).ok()
    }

    /// Connects as a user without a password.
    pub fn connect_as(&self, user: &str) -> Client {
        let options = ConnectOptions::new(Endpoint::Unix(self.folder.path().join("s")), user);
        Client::connect(&options).unwrap()
    }

    pub fn connect(&self) -> Client {
        self.try_connect().unwrap()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn datadir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Kills the server and waits for its end.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

fn server_program() -> PathBuf {
    ["/usr/sbin/mariadbd", "/usr/sbin/mysqld", "/usr/libexec/mariadbd"]
        .iter()
        .map(PathBuf::from)
        .find(|p| p.exists())
        .expect("a MariaDB server is installed (mariadb-server-core)")
}
