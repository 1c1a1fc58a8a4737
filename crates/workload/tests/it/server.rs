//! A real MariaDB of this machine, private to the tests: its folder and process end with the last test that uses it.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mydyno_wire::{Client, ConnectOptions, Endpoint, WireError};
use tempfile::TempDir;

/// A running server.
pub struct Server {
    folder: TempDir,
    /// Dropping it ends the keeper, and with it the server.
    stop: Option<Sender<()>>,
    keeper: Option<JoinHandle<()>>,
}

static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());

/// The server that tests share while any of them runs.
pub fn shared() -> Arc<Server> {
    let mut shared = SHARED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(Server::start());
    *shared = Arc::downgrade(&server);
    server
}

impl Server {
    /// A server of one's own.
    pub fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("workload").tempdir_in("/tmp").unwrap();
        let data = folder.path().join("data");
        let mut command = Command::new("mariadb-install-db");
        command.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
        command.args(["--innodb-log-file-size=16M", "--innodb-use-native-aio=0"]);
        command.arg(format!("--datadir={}", data.display())).args(own_user());
        // A server that starts removes the temporary tables that it finds in its tmpdir, also those of others.
        command.arg(format!("--tmpdir={}", folder.path().display()));
        let output = command.output().expect("mariadb-install-db is needed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (stop, stopped) = channel::<()>();
        let (told, ready) = channel();
        let place = folder.path().to_owned();
        // The kernel ends the server when the thread that started it dies, so a killed test run leaves none behind.
        let keeper = std::thread::spawn(move || {
            let mut command = Command::new("mariadbd");
            command.args(["--no-defaults", "--skip-log-bin", "--skip-networking"]);
            command.args(["--innodb-buffer-pool-size=64M", "--innodb-use-native-aio=0"]);
            command.args(["--innodb-flush-log-at-trx-commit=0", "--innodb-log-file-size=16M"]);
            command.arg(format!("--datadir={}", place.join("data").display()));
            command.arg(format!("--tmpdir={}", place.display()));
            command.arg(format!("--socket={}", place.join("s.sock").display()));
            command.arg(format!("--pid-file={}", place.join("pid").display()));
            command.arg(format!("--general-log-file={}", place.join("general.log").display()));
            command.args(own_user()).stdin(Stdio::null()).stdout(Stdio::null());
            command.stderr(fs::File::create(place.join("log")).unwrap());
            // SAFETY: prctl is safe to call between fork and exec.
            unsafe {
                command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                    0 => Ok(()),
                    _ => Err(io::Error::last_os_error()),
                });
            }
            let mut child = command.spawn().expect("mariadbd is needed");
            let ready = wait_until_ready(&place, || child.try_wait().unwrap().is_some());
            let _ = told.send(ready);
            if ready {
                // Ends when the sender is dropped.
                let _ = stopped.recv();
            }
            let _ = child.kill();
            let _ = child.wait();
        });
        assert!(ready.recv().unwrap(), "mariadbd does not start");
        Self { folder, stop: Some(stop), keeper: Some(keeper) }
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    pub fn general_log(&self) -> PathBuf {
        self.folder.path().join("general.log")
    }

    /// A connection as root.
    pub fn connect(&self) -> Result<Client, WireError> {
        Client::connect(&ConnectOptions::new(Endpoint::Unix(self.socket()), "root"))
    }

    pub fn client(&self) -> Client {
        self.connect().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(keeper) = self.keeper.take() {
            let _ = keeper.join();
        }
    }
}

fn wait_until_ready(folder: &Path, mut ended: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + Duration::from_secs(60);
    let options = ConnectOptions::new(Endpoint::Unix(folder.join("s.sock")), "root");
    while Instant::now() < deadline && !ended() {
        if Client::connect(&options).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

/// MariaDB runs as root only when it is told so.
fn own_user() -> Option<String> {
    // SAFETY: geteuid has no preconditions.
    (unsafe { libc::geteuid() } == 0).then(|| "--user=root".to_owned())
}
