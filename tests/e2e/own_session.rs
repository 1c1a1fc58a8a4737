//! A load on a server of this host runs in a session of its own where the kernel shares the CPUs by sessions.
//! Where it does not (`kernel.sched_autogroup_enabled=0`, or a kernel without it), it runs in the process that was started.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use crate::fixture::{Ended, Server, document, signal, until};
use crate::home::Home;

struct Load {
    child: Child,
    run: PathBuf,
}

/// Starts a long load, and waits until it has measured a second.
fn loading(home: &Home, server: &Server<'_>, connections: &str, more: &[&str]) -> Load {
    let run = home.path().join("run");
    let out = run.to_str().unwrap();
    let options = ["--connections", connections, "--time", "100s", "--warmup", "0s", "--quiet", "--out", out];
    let child = home.start(&server.bench("oltp_point_select", &[options.as_slice(), more].concat()));
    until("a second is measured", || {
        fs::read_to_string(run.join("intervals.jsonl"))
            .is_ok_and(|text| text.contains("\"phase\":\"measure\""))
    });
    Load { child, run }
}

fn sessions_are_groups() -> bool {
    fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").is_ok_and(|text| text.trim() == "1")
}

/// The child of a process, if it has one.
fn child_of(pid: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
    children.split_whitespace().next().map(|child| child.parse().unwrap())
}

fn group_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/autogroup")).unwrap_or_default()
}

/// The letter of a process's state, as in `T` (stopped).
fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn interrupt(load: Load) -> PathBuf {
    signal(load.child.id() as i32, libc::SIGINT);
    let ended = Ended::from(load.child.wait_with_output().unwrap());
    assert_eq!(ended.status, 130, "{}", ended.stderr);
    assert_eq!(document(&load.run.join("summary.json"))["end"], "interrupted");
    load.run
}

fn planned_nice(run: &Path) -> Option<u64> {
    document(&run.join("manifest.json"))["plan"]["wait"]["session_nice"].as_u64()
}

#[test]
fn a_closed_loop_beside_its_server_has_a_session_of_its_own() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let load = loading(&home, &server, "32", &[]);
    let pid = load.child.id();
    if !sessions_are_groups() {
        assert_eq!(child_of(pid), None);
        assert_eq!(planned_nice(&interrupt(load)), None);
        return;
    }
    let child = child_of(pid).unwrap();
    assert!(group_of(child).ends_with("nice 10\n"), "{}", group_of(child));
    assert_eq!(
        group_of(pid),
        group_of(std::process::id()),
        "the session of who started it keeps its priority"
    );
    // Ctrl-Z stops both; SIGCONT continues both.
    signal(pid as i32, libc::SIGTSTP);
    until("both are stopped", || [pid, child].into_iter().all(|pid| state_of(pid) == Some('T')));
    signal(pid as i32, libc::SIGCONT);
    until("both go on", || [pid, child].into_iter().all(|pid| state_of(pid).is_some_and(|s| s != 'T')));
    assert_eq!(planned_nice(&interrupt(load)), Some(10));
}

#[test]
fn a_killed_load_leaves_no_child() {
    let home = Home::new();
    let server = home.server("s", &[]);
    let mut load = loading(&home, &server, "32", &[]);
    let child = child_of(load.child.id());
    load.child.kill().unwrap();
    load.child.wait().unwrap();
    if let Some(child) = child {
        until("the child is gone", || state_of(child).is_none_or(|state| state == 'Z'));
    }
}

#[test]
fn a_load_that_gains_nothing_by_a_session_of_its_own_stays_in_that_of_its_user() {
    let home = Home::new();
    let server = home.server("s", &[]);
    for (connections, options) in
        [("32", ["--rate", "100"].as_slice()), ("32", &["--scheduling", "normal"]), ("4", &[])]
    {
        let load = loading(&home, &server, connections, options);
        assert_eq!(child_of(load.child.id()), None, "{connections} {options:?}");
        assert_eq!(planned_nice(&interrupt(load)), None, "{connections} {options:?}");
        fs::remove_dir_all(home.path().join("run")).unwrap();
    }
}
