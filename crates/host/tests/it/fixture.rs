//! A private state folder, and machines whose `/proc` is made up.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use mydyno_host::machine::ProcessIdentity;
use mydyno_host::process::StartedProcess;
use mydyno_host::restore::{self, NoHooks};
use mydyno_host::{Journal, Lease, Machine, StateDir};
use tempfile::TempDir;

use crate::until::until;
use crate::whole_host::lock_of_tests;

pub struct Fixture {
    pub temp: TempDir,
    pub journal: Journal,
    pub machine: Machine,
    pub lease: Lease,
    /// Held until what the test has attached is detached.
    _loops: File,
}

pub fn fixture() -> Fixture {
    with_loops(libc::LOCK_SH)
}

/// For a test that frees a loop device and relies on its number staying free: the next attachment by any process gets the
/// lowest free number.
pub fn fixture_alone_with_loops() -> Fixture {
    with_loops(libc::LOCK_EX)
}

fn with_loops(kind: libc::c_int) -> Fixture {
    let loops = lock_of_tests("loops", kind);
    let temp = tempfile::tempdir().unwrap();
    let state = StateDir::open(&temp.path().join("state")).unwrap();
    let journal = state.journal();
    let machine = Machine::real().unwrap();
    let lease = Lease::take(&machine, "test").unwrap();
    Fixture { temp, journal, machine, lease, _loops: loops }
}

/// Removes whatever a failed test left, mounts and devices too.
impl Drop for Fixture {
    fn drop(&mut self) {
        if let Ok(left) = self.journal.take_over(&self.lease, |_| true) {
            let _ = restore::put_back(&self.journal, &self.machine, &left, &NoHooks);
        }
    }
}

impl Fixture {
    /// Frees a loop device as somebody else would, and waits until it is: one that is open is freed once it is closed.
    pub fn detach(&self, device: &Path) {
        assert!(Command::new("losetup").arg("-d").arg(device).status().unwrap().success());
        let attached = Path::new("/sys/block").join(device.file_name().unwrap()).join("loop");
        until(&format!("{} is detached", device.display()), || !attached.exists());
    }

    /// A path outside the state folder.
    pub fn path(&self, name: &str) -> PathBuf {
        fs::canonicalize(self.temp.path()).unwrap().join(name)
    }

    /// The lease of a process that ran and has ended.
    pub fn dead_lease(&self, command: &str) -> Lease {
        let mut child = Command::new("sleep").arg("600").spawn().unwrap();
        let lease = Lease::of_process(&self.machine, child.id(), command).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        lease
    }

    pub fn journal_bytes(&self) -> Vec<u8> {
        fs::read(self.journal.path()).unwrap_or_default()
    }
}

/// A machine with some processes: id and start time in ticks.
pub struct MadeUp<'a> {
    pub host: &'a str,
    pub machine_id: Option<char>,
    pub boot_id: &'a str,
    pub pid_namespace: &'a str,
    pub processes: &'a [(u32, u64, char)],
}

impl MadeUp<'_> {
    /// One more process on a machine that was made.
    pub fn process(&self, at: &Path, pid: u32, start: u64, state: char) {
        fs::create_dir(at.join(pid.to_string())).unwrap();
        let stat =
            format!("{pid} (my (odd) name) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {start} 0 0\n");
        fs::write(at.join(format!("{pid}/stat")), stat).unwrap();
    }

    pub fn machine(&self, at: &Path) -> Machine {
        let _ = fs::remove_dir_all(at);
        fs::create_dir_all(at.join("sys/kernel/random")).unwrap();
        fs::create_dir_all(at.join("self/ns")).unwrap();
        fs::write(at.join("sys/kernel/random/boot_id"), format!("{}\n", self.boot_id)).unwrap();
        fs::write(at.join("sys/kernel/hostname"), format!("{}\n", self.host)).unwrap();
        fs::write(at.join("self/mountinfo"), "").unwrap();
        fs::create_dir(at.join("etc")).unwrap();
        if let Some(digit) = self.machine_id {
            fs::write(at.join("etc/machine-id"), format!("{}\n", digit.to_string().repeat(32))).unwrap();
        }
        symlink(self.pid_namespace, at.join("self/ns/pid")).unwrap();
        symlink("net:[1]", at.join("self/ns/net")).unwrap();
        for (pid, start, state) in self.processes {
            self.process(at, *pid, *start, *state);
        }
        Machine::at(at, at.join("made-up-sys"), at.join("etc")).unwrap()
    }
}

pub fn process_change(identity: ProcessIdentity) -> StartedProcess {
    StartedProcess { identity, program: "/usr/bin/sleep".into() }
}
