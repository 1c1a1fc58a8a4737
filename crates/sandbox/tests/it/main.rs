//! Private servers that are not of this place: seen, and left alone.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use mydyno_host::change::StartedProcess;
use mydyno_host::{Change, Journal, Lease, Machine, StateDir, folder};
use mydyno_model::server::ServerState;
use mydyno_sandbox::{SandboxError, Site, down, list};

/// A machine with one process, number 7.
fn machine(at: &Path, pid_namespace: &str) -> Machine {
    fs::create_dir_all(at.join("sys/kernel/random")).unwrap();
    fs::create_dir_all(at.join("self/ns")).unwrap();
    fs::create_dir_all(at.join("7")).unwrap();
    fs::write(at.join("sys/kernel/random/boot_id"), "b1\n").unwrap();
    fs::write(at.join("sys/kernel/hostname"), "db1\n").unwrap();
    fs::write(at.join("self/mountinfo"), "").unwrap();
    fs::write(at.join("7/stat"), "7 (m) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0\n").unwrap();
    symlink(pid_namespace, at.join("self/ns/pid")).unwrap();
    Machine::at(at, at.join("sysfs")).unwrap()
}

#[test]
fn a_server_of_another_container_is_not_taken_down_from_here() {
    let temp = tempfile::tempdir().unwrap();
    let state = StateDir::open(&temp.path().join("state")).unwrap();
    let journal = Journal::of(&state);
    let there = machine(&temp.path().join("there"), "pid:[2]");
    let theirs = Lease::of_process(&there, 7, "server up far").unwrap();
    fs::create_dir(state.servers()).unwrap();
    let path = state.servers().join("far");
    let id = folder::create(&journal, &theirs, "server far", &path).unwrap();
    let process = StartedProcess { identity: there.identify(7).unwrap().unwrap(), program: "/m".into() };
    let process = journal.record(&theirs, "server far", Change::Process(process)).unwrap();
    journal.keep(&[id, process], "mydyno server down far").unwrap();

    let here = machine(&temp.path().join("here"), "pid:[1]");
    let lease = Lease::of_process(&here, 7, "server down").unwrap();
    let site = Site::new(&state, &journal, &lease);
    assert_eq!(list(&state, &here).unwrap()[0].state, ServerState::Running);
    let error = down(&site, "far").unwrap_err();
    assert!(
        matches!(error, SandboxError::Elsewhere { .. }) && error.to_string().contains("--all"),
        "{error}"
    );
    assert!(path.exists());
    assert!(journal.read().unwrap().open.iter().all(|open| open.kept_until.is_some()));

    let site = Site::new(&state, &journal, &theirs);
    // The made-up process ends where it can be seen.
    fs::remove_dir_all(temp.path().join("there/7")).unwrap();
    down(&site, "far").unwrap();
    assert!(!path.exists());
}
