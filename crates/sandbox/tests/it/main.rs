//! Private servers of other machines and containers: detected, and left unchanged.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod crash_faults;
mod crashes;
mod data;
mod engines;
mod kills;
mod levers;
mod memory;
mod scratch;
#[path = "../../../../tests/until.rs"]
mod until;
mod users;
#[path = "../../../../tests/whole_host.rs"]
mod whole_host;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use mydyno_host::process::StartedProcess;
use mydyno_host::setting::ChangedSetting;
use mydyno_host::{Host, Lease, Machine, StateDir, folder};
use mydyno_model::server::ServerState;
use mydyno_sandbox::{SandboxError, Site, down, free, list};

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
    Machine::at(at, at.join("sysfs"), at).unwrap()
}

#[test]
fn a_server_of_another_container_is_not_taken_down_from_here() {
    let temp = tempfile::tempdir().unwrap();
    let state = StateDir::open(&temp.path().join("state")).unwrap();
    let journal = state.journal();
    let there = machine(&temp.path().join("there"), "pid:[2]");
    let theirs = Lease::of_process(&there, 7, "server up far").unwrap();
    fs::create_dir(state.servers()).unwrap();
    let path = state.servers().join("far");
    let id = folder::create(&journal, &theirs, "server far", &path).unwrap();
    let process = StartedProcess { identity: there.identify(7).unwrap().unwrap(), program: "/m".into() };
    let process = journal.record(&theirs, "server far", process).unwrap();
    journal.keep(&[id, process], "mydyno server down far").unwrap();

    let here = machine(&temp.path().join("here"), "pid:[1]");
    let lease = Lease::of_process(&here, 7, "server down").unwrap();
    let ours = Host::held(state.clone(), lease);
    let site = Site::new(&ours);
    assert_eq!(free(&state, &here).unwrap(), [""; 0]);
    assert_eq!(list(&state, &here).unwrap()[0].state, ServerState::Running);
    let error = down(&site, "far").unwrap_err();
    assert!(
        matches!(error, SandboxError::Elsewhere { .. }) && error.to_string().contains("--all"),
        "{error}"
    );
    assert!(path.exists());
    assert!(journal.read().unwrap().open.iter().all(|open| open.kept_until.is_some()));

    let theirs = Host::held(state.clone(), theirs);
    let site = Site::new(&theirs);
    // The simulated process ends where it is visible.
    fs::remove_dir_all(temp.path().join("there/7")).unwrap();
    down(&site, "far").unwrap();
    assert!(!path.exists());
}

#[test]
fn a_server_with_a_change_in_another_namespace_is_taken_down_there_or_not_at_all() {
    let temp = tempfile::tempdir().unwrap();
    let state = StateDir::open(&temp.path().join("state")).unwrap();
    let at = temp.path().join("proc");
    let here = machine(&at, "pid:[1]");
    symlink("net:[1]", at.join("self/ns/net")).unwrap();
    let host = Host::held(state.clone(), Lease::of_process(&here, 7, "server down").unwrap());
    fs::create_dir(state.servers()).unwrap();
    let path = state.servers().join("near");
    folder::create(&host.journal, &host.lease, "server near", &path).unwrap();
    let setting = ChangedSetting {
        name: "net.ipv4.tcp_tw_reuse".to_owned(),
        was: "2".to_owned(),
        now: "1".to_owned(),
        device: None,
        namespace: Some("net:[2]".to_owned()),
        along: vec![],
        along_after: vec![],
    };
    host.journal.record(&host.lease, "server near", setting).unwrap();
    let error = down(&Site::new(&host), "near").unwrap_err().to_string();
    assert!(error.contains("tcp_tw_reuse") && error.contains("net:[2]"), "{error}");
    assert!(path.exists());
    assert_eq!(host.journal.read().unwrap().open.len(), 2);
    // The value has changed meanwhile, and the outcome says so.
    fs::remove_file(at.join("self/ns/net")).unwrap();
    symlink("net:[2]", at.join("self/ns/net")).unwrap();
    fs::create_dir_all(at.join("sys/net/ipv4")).unwrap();
    fs::write(at.join("sys/net/ipv4/tcp_tw_reuse"), "0\n").unwrap();
    let reported = down(&Site::new(&host), "near").unwrap();
    assert!(
        reported.len() == 1 && reported[0].contains("another program has since set it to 0"),
        "{reported:?}"
    );
    assert!(!path.exists());
}

#[test]
fn what_somebody_else_put_beside_the_servers_is_no_server() {
    let temp = tempfile::tempdir().unwrap();
    let state = StateDir::open(&temp.path().join("state")).unwrap();
    fs::create_dir_all(state.servers().join("notes")).unwrap();
    fs::write(state.servers().join("file"), "x").unwrap();
    let host = Host::of(state, &Machine::real().unwrap(), "server down").unwrap();
    assert!(list(&host.state, host.machine()).unwrap().is_empty());
    let error = down(&Site::new(&host), "notes").unwrap_err();
    assert!(matches!(error, SandboxError::NoSuchServer { .. }), "{error}");
    assert!(host.state.servers().join("notes").exists());
}

#[test]
fn of_all_servers_those_that_another_command_uses_are_not_free() {
    let temp = tempfile::tempdir().unwrap();
    let state = StateDir::open(&temp.path().join("state")).unwrap();
    let machine = Machine::real().unwrap();
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let theirs = Lease::of_process(&machine, other.id(), "bench").unwrap();
    let journal = state.journal();
    fs::create_dir(state.servers()).unwrap();
    folder::create(&journal, &theirs, "server used", &state.servers().join("used")).unwrap();
    let kept = folder::create(&journal, &theirs, "server kept", &state.servers().join("kept")).unwrap();
    journal.keep(&[kept], "mydyno server down kept").unwrap();
    assert_eq!(free(&state, &machine).unwrap(), ["kept"]);
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(free(&state, &machine).unwrap(), ["kept", "used"]);
}
