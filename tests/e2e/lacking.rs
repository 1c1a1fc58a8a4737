//! Levers where something is missing: another user, no devices, kernel settings that cannot be written to. Each says what it
//! lacks and how to get it, and nothing is half done.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::home::{Home, binary};

/// `/dev` with nothing but `null`, `/sys`, `/proc/sys` and control groups read-only, as in a container.
const CONTAINER: &str = "set -e; mount -t tmpfs tmpfs /dev; mknod -m 666 /dev/null c 1 3; mount -o remount,bind,ro /sys
    mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys
    for group in /sys/fs/cgroup /sys/fs/cgroup/*; do mount -o remount,bind,ro $group 2>/dev/null || true; done";
/// The same with loop devices, and without FUSE alone.
const NO_FUSE: &str =
    "set -e; keep=$(mktemp -d); touch $keep/loop-control; mount --bind /dev/loop-control $keep/loop-control
    mount -t tmpfs tmpfs /dev; mknod -m 666 /dev/null c 1 3; touch /dev/loop-control
    mount --move $keep/loop-control /dev/loop-control; rm -r $keep";

/// Only `/sys` is read-only; the trees of control groups below it are mounts of their own.
const READ_ONLY_SYS: &str = "set -e; mount -o remount,bind,ro /sys";

/// Runs mydyno after a script, in a mount namespace of its own.
fn inside(home: &Home, script: &str, args: &[&str]) -> Output {
    let script = format!("{script}\nexec \"$0\" \"$@\"");
    shell("unshare", &["-m", "sh", "-c", &script], home, args)
}

/// Runs mydyno as a user that owns nothing: its program is opened before, since its folder may be closed to others.
fn as_nobody(home: &Home, args: &[&str]) -> Output {
    let script =
        "exec 3<\"$0\"; cd /; exec setpriv --reuid 65534 --regid 65534 --clear-groups /proc/self/fd/3 \"$@\"";
    shell("sh", &["-c", script], home, args)
}

/// Runs mydyno as root without a capability, as in a container that gives none.
fn without_capabilities(home: &Home, args: &[&str]) -> Output {
    shell("setpriv", &["--bounding-set", "-all", "--inh-caps", "-all"], home, args)
}

fn shell(program: &str, before: &[&str], home: &Home, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(before).arg(binary()).args(args).stdin(Stdio::null());
    command.env("MYDYNO_STATE", home.state()).env("MYDYNO_CACHE", home.cache()).output().unwrap()
}

/// Unmet requirements are reported with the way to meet them, and leave nothing behind.
fn is_refused(home: &Home, lever: &str, says: &str, run: impl Fn(&[&str]) -> Output) {
    let mut up = vec!["server", "up", "x", "--allow-host-change"];
    lever.split(' ').for_each(|one| up.extend(["--lever", one]));
    let output = run(&up);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{lever}: {error}");
    assert!(error.contains(says), "{lever}: {error}");
    assert_eq!(home.lasting_traces(), [""; 0], "{lever}");
}

/// Making namespaces and becoming another user need root; a test that is skipped says so.
fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions.
    let root = unsafe { libc::geteuid() } == 0;
    let namespaces =
        || Command::new("unshare").args(["-m", "true"]).output().is_ok_and(|o| o.status.success());
    if root && namespaces() {
        return true;
    }
    println!("not tested: this needs root and mount namespaces");
    false
}

fn levers(output: &Output) -> Vec<Value> {
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    document["levers"].as_array().unwrap().clone()
}

/// The missing requirement of a lever.
fn lack<'a>(levers: &'a [Value], id: &str) -> Option<&'a str> {
    levers.iter().find(|lever| lever["id"] == id).unwrap_or_else(|| panic!("there is no {id}"))["lacks"]
        .as_str()
}

fn says(levers: &[Value], id: &str, what: &str) {
    assert!(lack(levers, id).is_some_and(|text| text.contains(what)), "{id}: {:?}", lack(levers, id));
}

#[test]
fn a_user_without_privileges_is_told_of_each_lever_of_the_host_how_to_get_it() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let levers = levers(&as_nobody(&home, &["host", "levers", "--json"]));
    let of_the_host = levers.iter().filter(|lever| lever["scope"] == "host");
    let mut seen = 0;
    for lever in of_the_host {
        let text = lever["lacks"].as_str().unwrap_or_default();
        // What this kernel does not have, or does itself, is missing for everybody.
        let for_all = ["this kernel has no", "the kernel spreads this interrupt"];
        assert!(text.contains("run as root") || for_all.iter().any(|why| text.contains(why)), "{lever}");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
    for id in ["disk.file_system", "disk.medium", "disk.queue.nr_requests", "cgroup.memory", "cgroup.io"] {
        says(&levers, id, "run as root");
    }
    says(&levers, "server.user", "run all of mydyno as that user");
    for id in ["server.nice", "server.allocator", "limit.nofile", "option.VARIABLE"] {
        assert_eq!(lack(&levers, id), None, "{id}");
    }
}

#[test]
fn a_container_without_devices_and_with_read_only_settings_is_told_what_to_give_it() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let listed = levers(&inside(&home, CONTAINER, &["host", "levers", "--json"]));
    for id in ["vm.swappiness", "thp.enabled"] {
        says(&listed, id, "outside a container that keeps it read-only");
    }
    for id in ["disk.file_system", "disk.medium", "disk.queue.scheduler"] {
        says(&listed, id, "give it /dev/loop-control");
    }
    says(&listed, "cgroup.memory", "outside a container that keeps it read-only");
    for (lever, what) in [
        ("disk.file_system=ext4", "/dev/loop-control"),
        ("vm.swappiness=61", "Read-only file system"),
        ("cgroup.memory=512M", "cannot be written to"),
    ] {
        is_refused(&home, lever, what, |up| inside(&home, CONTAINER, up));
    }
}

#[test]
fn with_a_read_only_sys_what_is_not_written_there_can_be_had() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let here = levers(&home.run(&["host", "levers", "--json"]));
    let listed = levers(&inside(&home, READ_ONLY_SYS, &["host", "levers", "--json"]));
    let read_only = "outside a container that keeps it read-only";
    // What this machine lacks anyway says so.
    let mut seen = 0;
    for lever in &here {
        let id = lever["id"].as_str().unwrap();
        let of_sys = ["thp.", "queue.", "bdi.", "swap.zram", "disk.medium", "disk.queue.", "disk.bdi."];
        if lever["lacks"].is_null() && of_sys.iter().any(|room| id.starts_with(room)) {
            says(&listed, id, read_only);
            seen += 1;
        } else {
            assert_eq!(lack(&listed, id), lever["lacks"].as_str(), "{id}");
        }
    }
    assert!(seen > 0);
    for lever in [
        "thp.enabled=never",
        "disk.file_system=ext4 disk.medium=emulated disk.size=256M",
        "disk.file_system=ext4 disk.queue.nr_requests=64",
        "swap.zram=16M",
    ] {
        // The first part is what the others need.
        let needed = lever.split(['=', ' ']).next().unwrap();
        if lack(&here, needed).is_none() {
            is_refused(&home, lever, read_only, |up| inside(&home, READ_ONLY_SYS, up));
        }
    }
}

#[test]
fn root_without_capabilities_is_told_which_one_each_lever_needs() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let listed = levers(&without_capabilities(&home, &["host", "levers", "--json"]));
    for id in ["swap.file", "disk.file_system", "disk.medium", "disk.queue.scheduler"] {
        says(&listed, id, "CAP_SYS_ADMIN");
    }
    says(&listed, "server.user", "CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_KILL, CAP_SETGID, CAP_SETUID");
    for (lever, what) in [
        ("swap.file=16M", "CAP_SYS_ADMIN"),
        ("disk.file_system=ext4", "CAP_SYS_ADMIN"),
        ("server.nice=-20", "CAP_SYS_NICE"),
        ("server.user=nobody", "CAP_SETUID"),
        ("limit.nofile=1000000000", "CAP_SYS_RESOURCE"),
    ] {
        is_refused(&home, lever, what, |up| without_capabilities(&home, up));
    }
}

#[test]
fn a_rootless_container_is_told_of_a_user_that_it_does_not_have() {
    let alone = ["-U", "-r", "-m"];
    let possible =
        || Command::new("unshare").args(alone).arg("true").output().is_ok_and(|o| o.status.success());
    if !is_root() || !possible() {
        return;
    }
    let home = Home::new();
    is_refused(&home, "server.user=nobody", "not one of this container's", |up| {
        shell("unshare", &alone, &home, up)
    });
}

#[test]
fn a_user_without_privileges_gets_nothing_by_halves() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let state = home.path().join("nobody");
    fs::create_dir(&state).unwrap();
    chown(&state, Some(65534), Some(65534)).unwrap();
    fs::set_permissions(&state, Permissions::from_mode(0o700)).unwrap();
    let up = |lever: &str| {
        let script = format!(
            "exec 3<\"$0\"; cd /; export MYDYNO_STATE={0} MYDYNO_CACHE={0}/cache
            exec setpriv --reuid 65534 --regid 65534 --clear-groups /proc/self/fd/3 \"$@\"",
            state.display()
        );
        let args = ["server", "up", "x", "--allow-host-change", "--lever", lever];
        shell("sh", &["-c", &script], &home, &args)
    };
    let levers = [
        "vm.swappiness=61",
        "swap.file=16M",
        "disk.file_system=ext4",
        "cgroup.memory=512M",
        "server.user=root",
    ];
    for lever in levers {
        let output = up(lever);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{lever}: {error}");
        assert!(error.contains("run as root") || error.contains("or as root"), "{lever}: {error}");
        let journal = fs::read(state.join("journal.jsonl")).unwrap_or_default();
        assert!(journal.is_empty(), "{lever}: {}", String::from_utf8_lossy(&journal));
        let servers = fs::read_dir(state.join("servers")).map_or(0, Iterator::count);
        assert_eq!(servers, 0, "{lever}");
    }
}

#[test]
fn without_fuse_only_the_emulated_disk_is_missing() {
    if !is_root() || !std::path::Path::new("/dev/loop-control").exists() {
        return;
    }
    let home = Home::new();
    let listed = levers(&inside(&home, NO_FUSE, &["host", "levers", "--json"]));
    assert_eq!(lack(&listed, "disk.file_system"), None);
    says(&listed, "disk.medium", "/dev/fuse");
    let output = inside(&home, NO_FUSE, &["host", "disk", "up", "d", "--allow-host-change"]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && error.contains("/dev/fuse"), "{error}");
    assert_eq!(home.lasting_traces(), [""; 0]);
}
