//! A real MariaDB of this machine, private to the tests: its folder and process end with the last test that uses it.
//! The tests of the workloads use it too.

use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mydyno_wire::capability::Capabilities;
use mydyno_wire::{Client, ConnectOptions, Endpoint, ServerVersion, Session, WireError};
use tempfile::TempDir;

use crate::certificates::Certificates;
use crate::template::{LOG_FILE_SIZE, data_directory, own_user};

/// A session for parsers, without a server.
pub fn session_of(capabilities: Capabilities) -> Session {
    Session::new(ServerVersion::parse("8.0.36", 1, capabilities), capabilities)
}

/// A running server.
pub struct Server {
    folder: TempDir,
    pub port: u16,
    pub pid: u32,
    pub certificates: Certificates,
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
        for _ in 0..5 {
            let folder = tempfile::Builder::new().prefix("wire").tempdir_in("/tmp").unwrap();
            data_directory(&folder.path().join("data"));
            let certificates = Certificates::make(folder.path());
            let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            // Another test may take the port before the server does; then the next try has another one.
            if let Some((pid, stop, keeper)) = launch(folder.path(), port) {
                return Self { folder, port, pid, certificates, stop: Some(stop), keeper: Some(keeper) };
            }
        }
        panic!("mariadbd does not start");
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s.sock")
    }

    /// Options for root over the socket.
    pub fn options(&self) -> ConnectOptions {
        ConnectOptions::new(Endpoint::Unix(self.socket()), "root")
    }

    /// Options for root over TCP.
    pub fn tcp(&self) -> ConnectOptions {
        ConnectOptions::new(Endpoint::Tcp { host: "127.0.0.1".into(), port: self.port }, "root")
    }

    /// A connection as root.
    pub fn connect(&self) -> Result<Client, WireError> {
        Client::connect(&self.options())
    }

    pub fn client(&self) -> Client {
        self.connect().unwrap()
    }

    /// Where it writes its general log, once that is switched on; the tests of the workloads read it.
    #[allow(dead_code)]
    pub fn general_log(&self) -> PathBuf {
        self.folder.path().join("general.log")
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

/// Starts the server from a thread that stays: the kernel ends the server when that thread dies, so a killed test
/// run leaves none behind.
fn launch(folder: &Path, port: u16) -> Option<(u32, Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = channel::<()>();
    let (reported, pid) = channel();
    let folder = folder.to_owned();
    let keeper = std::thread::spawn(move || {
        let mut command = Command::new("mariadbd");
        command.args(["--no-defaults", "--skip-log-bin", "--skip-name-resolve", "--bind-address=127.0.0.1"]);
        command.args([
            // Larger than the tables of any test: the pages of a full pool would be written and read again and again.
            "--innodb-buffer-pool-size=512M",
            LOG_FILE_SIZE,
            "--innodb-use-native-aio=0",
        ]);
        command.args([
            "--max-allowed-packet=64M",
            "--innodb-flush-log-at-trx-commit=0",
            "--key-buffer-size=1M",
        ]);
        command.arg(format!("--datadir={}", folder.join("data").display()));
        command.arg(format!("--tmpdir={}", folder.display()));
        command.arg(format!("--socket={}", folder.join("s.sock").display()));
        command.arg(format!("--general-log-file={}", folder.join("general.log").display()));
        command.arg(format!("--pid-file={}", folder.join("pid").display()));
        command.arg(format!("--port={port}"));
        for (option, file) in [("ca", "ca.pem"), ("cert", "server.pem"), ("key", "server.key")] {
            command.arg(format!("--ssl-{option}={}", folder.join(file).display()));
        }
        if let Some(user) = own_user() {
            command.arg(user);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(folder.join("log")).unwrap());
        // SAFETY: prctl is safe to call between fork and exec.
        unsafe {
            command.pre_exec(|| match libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let mut child =
            command.spawn().expect("mariadbd is needed: install mariadb-server-core or mariadb-server");
        let ready = wait_until_ready(&folder, || child.try_wait().unwrap().is_some());
        let _ = reported.send(ready.then(|| child.id()));
        if ready {
            // Ends when the sender is dropped.
            let _ = stopped.recv();
        }
        let _ = child.kill();
        let _ = child.wait();
    });
    match pid.recv().unwrap() {
        Some(pid) => Some((pid, stop, keeper)),
        None => {
            keeper.join().unwrap();
            None
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
