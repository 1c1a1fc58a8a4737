//! The binary in a state folder of its own, with private servers that never outlive the test run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// A state folder, and the binary run in it.
pub struct Place {
    folder: PathBuf,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);
static SWEPT: Once = Once::new();

/// Folder of all places; short, because a socket's path must be.
fn base() -> PathBuf {
    // SAFETY: geteuid has no preconditions.
    std::env::temp_dir().join(format!("mydyno-e2e-{}", unsafe { libc::geteuid() }))
}

impl Place {
    pub fn new() -> Self {
        SWEPT.call_once(sweep);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = base().join(format!("{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub fn state(&self) -> PathBuf {
        self.path("state")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mydyno"));
        in_place(&mut command, &self.folder).args(args);
        command
    }

    /// Runs the binary to its end.
    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::from(self.command(args).output().unwrap())
    }

    /// Runs the binary and expects success; what it printed on standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let ended = self.run(args);
        assert_eq!(ended.status, 0, "{args:?}\n{}{}", ended.stdout, ended.stderr);
        ended.stdout
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A private server, with options for `server up`.
    pub fn server(&self, name: &str, options: &[&str]) -> Server<'_> {
        let args: Vec<&str> =
            ["server", "up", name, "--json", "--quiet"].iter().chain(options).copied().collect();
        let info: Value = serde_json::from_str(&self.ok(&args)).unwrap();
        Server { place: self, info }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        clean(&self.folder);
    }
}

fn in_place<'a>(command: &'a mut Command, folder: &Path) -> &'a mut Command {
    for name in ["MYSQL_PWD", "MYSQL_HOST", "MYSQL_TCP_PORT", "MYSQL_UNIX_PORT", "MYSQL_HOME", "COLUMNS"] {
        command.env_remove(name);
    }
    command
        .env("MYDYNO_STATE", folder.join("state"))
        .env("MYDYNO_CACHE", base().join("cache"))
        .env("HOME", folder)
        .stdin(Stdio::null())
}

/// Ends what is left in a place and removes it.
fn clean(folder: &Path) {
    let mut restore = Command::new(env!("CARGO_BIN_EXE_mydyno"));
    let _ = in_place(&mut restore, folder).args(["host", "restore", "--all", "--quiet"]).output();
    let _ = fs::remove_dir_all(folder);
}

/// Cleans up after test runs that were killed.
fn sweep() {
    for entry in fs::read_dir(base()).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.split('-').next().and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            clean(&entry.path());
        }
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            // A signal counts as shells count it.
            status: output.status.code().unwrap_or_else(|| {
                128 + std::os::unix::process::ExitStatusExt::signal(&output.status).unwrap_or(0)
            }),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A private server.
pub struct Server<'a> {
    place: &'a Place,
    info: Value,
}

impl Server<'_> {
    pub fn text(&self, field: &str) -> &str {
        self.info[field].as_str().unwrap()
    }

    pub fn pid(&self) -> i32 {
        self.info["pid"].as_i64().unwrap() as i32
    }

    pub fn port(&self) -> u64 {
        self.info["port"].as_u64().unwrap()
    }

    /// Rows of one statement, first column first.
    pub fn sql(&self, sql: &str) -> Vec<Vec<String>> {
        let text = self.place.ok(&["server", "cli", self.text("name"), "-e", sql, "--", "-N", "-B"]);
        text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect()
    }

    /// A counter of SHOW GLOBAL STATUS.
    pub fn counter(&self, name: &str) -> u64 {
        self.sql(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))[0][1].parse().unwrap()
    }

    /// `bench WORKLOAD` with the options that reach this server; the control session of a test counts as another.
    pub fn bench<'b>(&'b self, workload: &'b str, rest: &[&'b str]) -> Vec<&'b str> {
        let target = ["bench", workload, "--dsn", self.text("dsn")];
        target.into_iter().chain(rest.iter().copied()).collect()
    }
}

/// Polls until something holds.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process that the test has started.
pub fn signal(pid: i32, signal: i32) {
    // SAFETY: takes no pointers.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// The JSON lines of a file.
pub fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A JSON document.
pub fn document(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}
