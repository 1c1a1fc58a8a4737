//! Private servers, endings and documents for the tests of the bench.

use std::fs;
use std::path::Path;
use std::process::{Child, Output, Stdio};

use serde_json::Value;

use crate::home::Home;
pub use crate::until::until;

impl Home {
    /// Runs the binary to its end.
    pub fn end(&self, args: &[&str]) -> Ended {
        Ended::from(self.run(args))
    }

    /// Starts the binary with its output kept.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// A private server, with options for `server up`.
    pub fn server(&self, name: &str, options: &[&str]) -> Server<'_> {
        self.server_before(name, options, None)
    }

    /// The same with a library before all others.
    pub fn server_before(&self, name: &str, options: &[&str], library: Option<&Path>) -> Server<'_> {
        let args: Vec<&str> =
            ["server", "up", name, "--json", "--quiet"].iter().chain(options).copied().collect();
        let mut command = self.command(&args);
        if let Some(library) = library {
            command.env("LD_PRELOAD", library);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
        Server { home: self, info: serde_json::from_slice(&output.stdout).unwrap() }
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
    home: &'a Home,
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
        let text = self.home.fine(&["server", "cli", self.text("name"), "-e", sql, "--", "-N", "-B"]);
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

/// A stopped server (SIGSTOP), which continues when this is dropped.
pub struct Stopped(i32);

impl Stopped {
    pub fn now(server: &Server<'_>) -> Self {
        signal(server.pid(), libc::SIGSTOP);
        Self(server.pid())
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.0, libc::SIGCONT);
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
