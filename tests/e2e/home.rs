//! A state folder and template cache of a test's own, and the binary run in it.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Whatever runs is ended and removed when it is dropped; what a killed test run has left, by the next one.
pub struct Home {
    folder: PathBuf,
    /// Templates that tests share; none for a test that wants to see them made.
    shared: Option<PathBuf>,
}

static NUMBER: AtomicU32 = AtomicU32::new(0);
static SWEPT: Once = Once::new();

/// Folder of all homes; short, since a socket's path has to fit in 107 bytes.
fn base() -> PathBuf {
    // SAFETY: geteuid has no preconditions.
    Path::new("/tmp").join(format!("mydyno-e2e-{}", unsafe { libc::geteuid() }))
}

/// Cleans up after test runs that were killed: their homes carry the pid of a process that is gone.
fn sweep() {
    for folder in entries(&base()) {
        let pid = folder.file_name().and_then(|n| n.to_str()?.split('-').next()?.parse::<u32>().ok());
        if pid.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            drop(Home { folder, shared: None });
        }
    }
}

impl Home {
    /// A home that shares its templates with other tests.
    pub fn new() -> Self {
        let mut home = Self::cold();
        home.shared = Some(Path::new(env!("CARGO_TARGET_TMPDIR")).join("mydyno-cache"));
        home
    }

    /// A home without templates.
    pub fn cold() -> Self {
        SWEPT.call_once(sweep);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        // Of one length, so that none is the beginning of another: homes are looked for in texts.
        let folder = base().join(format!("{}-{number:05}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self { folder, shared: None }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    pub fn state(&self) -> PathBuf {
        self.path().join("state")
    }

    pub fn cache(&self) -> PathBuf {
        self.shared.clone().unwrap_or_else(|| self.path().join("cache"))
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command.args(args).env("MYDYNO_STATE", self.state()).env("MYDYNO_CACHE", self.cache());
        for name in [
            "MYSQL_PWD",
            "MYSQL_HOST",
            "MYSQL_TCP_PORT",
            "MYSQL_UNIX_PORT",
            "MYSQL_HOME",
            "MYDYNO_CONFIG",
            "XDG_CONFIG_HOME",
            "COLUMNS",
        ] {
            command.env_remove(name);
        }
        command.env("HOME", self.path()).current_dir(self.path()).stdin(Stdio::null());
        // A test run in the background may ignore these signals, and mydyno respects that.
        let heed = || {
            for signal in [libc::SIGINT, libc::SIGHUP, libc::SIGTERM] {
                // SAFETY: takes no pointers.
                unsafe { libc::signal(signal, libc::SIG_DFL) };
            }
            Ok(())
        };
        // SAFETY: signal(2) may be called between fork and exec.
        unsafe { command.pre_exec(heed) };
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs a command that must succeed, and gives its standard output.
    pub fn fine(&self, args: &[&str]) -> String {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail with this status, and gives its standard error.
    pub fn fails(&self, status: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {output:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.fine(args)).unwrap()
    }

    pub fn spawn(&self, args: &[&str]) -> Child {
        self.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Traces of this home on the host: processes, files and journal entries beyond an empty state.
    pub fn traces(&self) -> Vec<String> {
        let mut traces = self.processes();
        for (document, list) in
            [(["server", "list", "--json"], "servers"), (["host", "status", "--json"], "changes")]
        {
            let found = &self.json(&document)[list];
            traces.extend(found.as_array().unwrap().iter().map(|entry| format!("{list}: {entry}")));
        }
        for entry in entries(&self.state()) {
            match entry.file_name().unwrap().to_str().unwrap() {
                "servers" => traces.extend(entries(&entry).iter().map(|p| p.display().to_string())),
                // A record of a run is what bench is there for.
                "runs" => {}
                // So are data that were kept; those that were not finished are not.
                "data" => traces.extend(
                    entries(&entry)
                        .iter()
                        .filter(|p| !p.join("data.json").is_file())
                        .map(|p| p.display().to_string()),
                ),
                "journal.jsonl" if fs::metadata(&entry).unwrap().len() == 0 => {}
                _ => traces.push(entry.display().to_string()),
            }
        }
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mark = self.path().to_str().unwrap();
        traces.extend(mounts.lines().filter(|line| line.contains(mark)).map(str::to_owned));
        if self.shared.is_some() {
            return traces;
        }
        // Finished templates stay; half-built ones do not.
        let unfinished = |p: &PathBuf| {
            !p.join("template.json").is_file() || p.file_name().unwrap().to_string_lossy().starts_with('.')
        };
        traces.extend(
            entries(&self.cache().join("templates"))
                .iter()
                .filter(|p| unfinished(p))
                .map(|p| p.display().to_string()),
        );
        traces
    }

    /// Processes that were started from this home and still run.
    pub fn processes(&self) -> Vec<String> {
        let mark = self.path().as_os_str().as_encoded_bytes();
        let mut found = Vec::new();
        for entry in entries(Path::new("/proc")) {
            let Some(pid) = entry.file_name().and_then(|n| n.to_str()?.parse::<u32>().ok()) else { continue };
            // A zombie has neither arguments nor environment.
            let mut words = fs::read(entry.join("cmdline")).unwrap_or_default();
            words.extend(fs::read(entry.join("environ")).unwrap_or_default());
            if words.windows(mark.len()).any(|w| w == mark) {
                found.push(format!("process {pid}: {}", String::from_utf8_lossy(&words).replace('\0', " ")));
            }
        }
        found
    }

    /// The traces that remain after waiting for processes that are ending.
    pub fn lasting_traces(&self) -> Vec<String> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let traces = self.traces();
            if traces.is_empty() || Instant::now() >= deadline {
                return traces;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = self.run(&["host", "restore", "--all"]);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The binary under test: another build when `MYDYNO_BIN` names one.
pub fn binary() -> PathBuf {
    std::env::var_os("MYDYNO_BIN").map_or_else(|| env!("CARGO_BIN_EXE_mydyno").into(), PathBuf::from)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder)
        .map(|entries| entries.filter_map(|e| Some(e.ok()?.path())).collect())
        .unwrap_or_default()
}
