//! Data at rest: kept once, used by several servers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_host::process::{Ended, end};
use mydyno_host::restore::status;
use mydyno_host::{Host, Lease, room};
use mydyno_model::change::{LeaseState, RestoreState};
use mydyno_model::server::{ServerInfo, ServerState};
use mydyno_sandbox::data::{self, DataAtRest, Keeping};
use mydyno_sandbox::{Progress, SandboxError, Site, Spec, connect_options, down, up};
use mydyno_wire::Client;

use crate::scratch::{Scratch, check_disk_of_data, host_in, keeping, lever_set, shared_cache};
use crate::until::until;
use crate::whole_host::whole_host;

const PLAIN: Keeping = Keeping { room: None, plain: true, lent: false };
/// Bytes for a disk, the data beside it and the reserve of the host.
const SPACE: u64 = 2 << 30;

fn spec(name: &str) -> Spec {
    let lever_set = lever_set(&[("option.innodb_log_file_size".to_owned(), "8M".to_owned())]);
    Spec { name: name.to_owned(), lever_set, ..Spec::default() }
}

fn from(name: &str, data: &DataAtRest) -> Spec {
    Spec { data: Some(data.clone()), ..spec(name) }
}

fn run(server: &ServerInfo, statement: &str) -> String {
    let mut client = Client::connect(&connect_options(server).unwrap()).unwrap();
    let rows = client.query(statement).unwrap();
    if rows.is_empty() { String::new() } else { rows.scalar().unwrap().into_owned() }
}

/// Data with three rows in `d.t`.
fn three_rows(site: &Site, how: Keeping) -> DataAtRest {
    let server = up(site, &spec("first"), &mut |_| {}).unwrap();
    for statement in
        ["CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1), (2), (3)"]
    {
        run(&server, statement);
    }
    let kept = data::keep(site, &server, "three-rows", how, &mut |_| {}).unwrap();
    down(site, "first").unwrap();
    kept
}

/// The data; `None`, with a message, where they cannot have a disk.
fn three_rows_on_a_disk(scratch: &Scratch) -> Option<DataAtRest> {
    let machine = scratch.host.machine();
    if let Err(lack) = check_disk_of_data(machine) {
        println!("not tested: {lack}");
        return None;
    }
    let free = room::free_bytes(scratch.path()).unwrap();
    if free < SPACE {
        println!("not tested: only {free} bytes are free below {}", scratch.path().display());
        return None;
    }
    let kept = three_rows(&scratch.site(), keeping(machine, 100 << 20));
    // A host whose own file system shares blocks needs no disk.
    let host_shares = shares_blocks(scratch.path());
    assert_eq!(kept.info(&scratch.site()).unwrap().disk.is_some(), !host_shares);
    if host_shares {
        println!("not tested: {} is on a file system that shares blocks", scratch.path().display());
        return None;
    }
    Some(kept)
}

fn shares_blocks(place: &Path) -> bool {
    let temp = tempfile::tempdir_in(place).unwrap();
    let source = temp.path().join("a");
    fs::write(&source, [1; 4096]).unwrap();
    let mut copy = Command::new("cp");
    copy.arg("--reflink=always").arg(&source).arg(temp.path().join("b"));
    copy.output().unwrap().status.success()
}

fn device_of(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).unwrap().dev()
}

#[test]
fn data_of_a_server_that_was_killed_are_not_at_rest() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let info = up(&site, &spec("killed"), &mut |_| {}).unwrap();
    let machine = scratch.host.machine();
    let server = machine.identify(info.pid.unwrap()).unwrap().unwrap();
    assert_eq!(end(machine, &server).unwrap(), Ended::Killed);
    let error = data::keep(&site, &info, "torn", PLAIN, &mut |_| {}).unwrap_err();
    assert!(matches!(error, SandboxError::NotStopped { .. }), "{error}");
    down(&site, "killed").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn keeping_that_is_interrupted_leaves_the_server_with_its_data_and_can_be_tried_again() {
    let scratch = Scratch::new();
    let server = up(&scratch.site(), &spec("first"), &mut |_| {}).unwrap();
    run(&server, "CREATE DATABASE d");
    let stop = AtomicBool::new(false);
    let site = scratch.site().cancelled_by(&stop);
    let mut interrupt = |progress| {
        if matches!(progress, Progress::ShuttingDown) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let error = data::keep(&site, &server, "three-rows", PLAIN, &mut interrupt).unwrap_err();
    assert!(matches!(error, SandboxError::Interrupted), "{error}");
    stop.store(false, Ordering::Relaxed);
    assert_eq!(data::names(&site).unwrap(), [""; 0]);
    assert_eq!(fs::read_dir(scratch.path().join("state/data")).unwrap().count(), 0);
    let state = || mydyno_sandbox::list(&scratch.host.state, scratch.host.machine()).unwrap()[0].state;
    until("the server has stopped", || state() == ServerState::Stopped);
    let kept = data::keep(&site, &server, "three-rows", PLAIN, &mut |_| {}).unwrap();
    down(&site, "first").unwrap();
    let again = up(&site, &from("again", &kept), &mut |_| {}).unwrap();
    assert_eq!(run(&again, "SHOW DATABASES LIKE 'd'"), "d");
    down(&site, "again").unwrap();
    data::remove(&site, "three-rows").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn lent_data_are_in_no_list_start_servers_and_leave_nothing() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let lent = three_rows(&site, Keeping { lent: true, ..PLAIN });
    assert_eq!(data::names(&site).unwrap(), [""; 0]);
    let open = status(&scratch.host.journal, scratch.host.machine()).unwrap();
    assert!(!open.is_empty(), "a killed command would leave them");
    let server = up(&site, &from("one", &lent), &mut |_| {}).unwrap();
    assert_eq!(run(&server, "SELECT COUNT(*) FROM d.t"), "3");
    down(&site, "one").unwrap();
    data::give_back(&site, &lent).unwrap();
    assert!(!scratch.path().join("state/data").exists());
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn arms_start_from_the_same_data_and_a_changed_byte_is_seen() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let kept = three_rows(&site, PLAIN);
    kept.verify(&site).unwrap();
    for arm in ["one", "two"] {
        let server = up(&site, &from(arm, &data::find(&site, "three-rows").unwrap()), &mut |_| {}).unwrap();
        assert_eq!(run(&server, "SELECT COUNT(*) FROM d.t"), "3", "{arm}");
        // Changes of one arm are not in the next one's data.
        run(&server, "DELETE FROM d.t WHERE a = 1");
        down(&site, arm).unwrap();
    }
    kept.verify(&site).unwrap();
    let added = scratch.path().join("state/data/three-rows/data/d/added");
    fs::write(&added, "x").unwrap();
    let error = up(&site, &from("three", &kept), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("d/added"), "{error}");
    fs::remove_file(&added).unwrap();
    turn_a_bit(&scratch.path().join("state/data/three-rows/data/d/t.ibd"));
    let error = kept.verify(&site).unwrap_err().to_string();
    assert!(error.contains("d/t.ibd"), "{error}");
    // The list of files and their lengths are unchanged; the content is compared where the stamp differs.
    let error = up(&site, &from("four", &kept), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("d/t.ibd"), "{error}");
    data::remove(&site, "three-rows").unwrap();
    assert_eq!(data::names(&site).unwrap(), [""; 0]);
    assert_eq!(scratch.traces(), [""; 0]);
}

fn turn_a_bit(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes[5000] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn where_the_host_cannot_share_blocks_servers_share_those_of_a_disk_that_is_mounted_while_one_lives_on_it() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let _alone = whole_host();
    let Some(kept) = three_rows_on_a_disk(&scratch) else { return };
    assert_eq!(scratch.traces(), [""; 0], "nothing is mounted that nobody uses");
    kept.verify(&site).unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
    let servers = ["one", "two"].map(|arm| {
        let mut restored = None;
        let server = up(&site, &Spec { keep: arm == "one", ..from(arm, &kept) }, &mut |progress| {
            if let Progress::Restored { files, shared, .. } = progress {
                restored = Some((files, shared));
            }
        })
        .unwrap();
        let (files, shared) = restored.unwrap();
        assert!(files > 0 && shared == files, "{shared} of {files}");
        assert_ne!(device_of(&server.datadir), device_of(scratch.path()), "{}", server.datadir);
        run(&server, &format!("DELETE FROM d.t WHERE a = {}", if arm == "one" { 1 } else { 2 }));
        server
    });
    let left = servers.each_ref().map(|server| run(server, "SELECT GROUP_CONCAT(a ORDER BY a) FROM d.t"));
    assert_eq!(left, ["2,3", "1,3"]);
    let mut on_it = kept.info(&site).unwrap().servers;
    on_it.sort();
    assert_eq!(on_it, ["one", "two"]);
    let error = data::remove(&site, "three-rows").unwrap_err().to_string();
    assert!(error.contains("one") && error.contains("server down"), "{error}");
    down(&site, "two").unwrap();
    // The remaining one is kept on purpose, and so is the disk below it.
    let done = scratch.restore(false);
    assert!(done.iter().all(|(_, state, _)| *state == RestoreState::LeftAlone), "{done:?}");
    let changes = status(&scratch.host.journal, scratch.host.machine()).unwrap();
    assert_eq!(changes.len(), 5, "{changes:?}");
    for change in changes {
        assert!(
            matches!(&change.lease, LeaseState::Kept { until } if until == "mydyno server down one"),
            "{change:?}"
        );
    }
    assert_eq!(run(&servers[0], "SELECT COUNT(*) FROM d.t"), "2");
    down(&site, "one").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
    kept.verify(&site).unwrap();
    let copied = up(&site, &Spec { copy_data: true, ..from("copied", &kept) }, &mut |_| {}).unwrap();
    assert_eq!(device_of(&copied.datadir), device_of(scratch.path()));
    assert_eq!(run(&copied, "SELECT COUNT(*) FROM d.t"), "3");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(scratch.path().to_str().unwrap()), "nobody needs it any more");
    down(&site, "copied").unwrap();
    data::remove(&site, "three-rows").unwrap();
    assert!(!scratch.path().join("state/data").exists());
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn a_byte_that_changes_on_the_disk_of_kept_data_is_seen_and_the_disk_is_left() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let _alone = whole_host();
    let Some(kept) = three_rows_on_a_disk(&scratch) else { return };
    up(&site, &from("one", &kept), &mut |_| {}).unwrap();
    turn_a_bit(&scratch.path().join("state/data/three-rows/disk/data/d/t.ibd"));
    down(&site, "one").unwrap();
    for seen in [kept.verify(&site), up(&site, &from("two", &kept), &mut |_| {}).map(drop)] {
        let error = seen.unwrap_err().to_string();
        assert!(error.contains("d/t.ibd") && error.contains("prepare them again"), "{error}");
        assert_eq!(scratch.traces(), [""; 0]);
    }
}

#[test]
fn a_server_with_a_disk_of_its_own_gets_a_copy_of_kept_data() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let _alone = whole_host();
    let Some(kept) = three_rows_on_a_disk(&scratch) else { return };
    let mut own = from("own", &kept);
    let levers = [("disk.file_system", "ext4"), ("disk.size", "256M"), ("option.innodb_log_file_size", "8M")];
    own.lever_set = lever_set(&levers.map(|(id, value)| (id.to_owned(), value.to_owned())));
    let server = up(&site, &own, &mut |_| {}).unwrap();
    assert_eq!(run(&server, "SELECT COUNT(*) FROM d.t"), "3");
    let table = fs::read_to_string("/proc/mounts").unwrap();
    let mark = scratch.path().to_str().unwrap();
    let mounts: Vec<&str> = table.lines().filter(|line| line.contains(mark)).collect();
    assert!(mounts.len() == 1 && mounts[0].contains("servers/own/disk ext4"), "{mounts:?}");
    down(&site, "own").unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
}

#[test]
fn what_a_dead_command_or_somebody_else_left_of_the_disk_does_not_keep_the_next_server_from_it() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let _alone = whole_host();
    let Some(kept) = three_rows_on_a_disk(&scratch) else { return };
    let point = scratch.path().join("state/data/three-rows/disk");
    // Killed commands: their leases belong to processes that have ended.
    let mut commands = ["theirs", "mine"].map(|_| Command::new("sleep").arg("100").spawn().unwrap());
    let [theirs, mine] = commands.each_ref().map(|command| {
        let lease = Lease::of_process(scratch.host.machine(), command.id(), "prove").unwrap();
        Host { lease, ..host_in(scratch.path()) }
    });
    let server =
        up(&Site::new(&theirs).with_cache(shared_cache()), &from("theirs", &kept), &mut |_| {}).unwrap();
    commands[0].kill().unwrap();
    commands[0].wait().unwrap();
    let machine = scratch.host.machine();
    end(machine, &machine.identify(server.pid.unwrap()).unwrap().unwrap()).unwrap();
    // Another program unmounted the disk meanwhile, with folders of servers on it.
    assert!(Command::new("umount").arg(&point).status().unwrap().success());
    let their_site = Site::new(&mine).with_cache(shared_cache());
    let server = up(&their_site, &from("mine", &kept), &mut |_| {}).unwrap();
    assert_eq!(run(&server, "SELECT COUNT(*) FROM d.t"), "3");
    down(&their_site, "mine").unwrap();
    commands[1].kill().unwrap();
    commands[1].wait().unwrap();
    let done = scratch.restore(false);
    assert!(done.iter().all(|(_, state, _)| *state == RestoreState::Restored), "{done:?}");
    assert_eq!(scratch.traces(), [""; 0]);
    kept.verify(&site).unwrap();
}

#[test]
fn a_disk_stays_mounted_while_somebody_reads_it_and_goes_with_the_last_one_whoever_mounted_it() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let _alone = whole_host();
    let Some(kept) = three_rows_on_a_disk(&scratch) else { return };
    let disk = scratch.path().join("state/data/three-rows/disk");
    let is_mounted = || fs::read_to_string("/proc/self/mountinfo").unwrap().contains(disk.to_str().unwrap());
    // A reader holds the lock of the data.
    let reading = || {
        let lock = fs::File::open(disk.with_file_name("lock")).unwrap();
        lock.try_lock_shared().unwrap();
        lock
    };
    for dies in [false, true] {
        let mut command = Command::new("sleep").arg("600").spawn().unwrap();
        let lease = Lease::of_process(scratch.host.machine(), command.id(), "prove").unwrap();
        let theirs = Host { lease, ..host_in(scratch.path()) };
        let their_site = Site::new(&theirs).with_cache(shared_cache());
        up(&their_site, &from("theirs", &kept), &mut |_| {}).unwrap();
        let reader = reading();
        down(&their_site, "theirs").unwrap();
        assert!(is_mounted(), "it is read");
        if dies {
            command.kill().unwrap();
            command.wait().unwrap();
            let done = scratch.restore(false);
            assert!(done.len() == 2 && is_mounted(), "{done:?}");
            assert!(done.iter().all(|(_, state, _)| *state == RestoreState::LeftAlone), "{done:?}");
            assert!(done.iter().any(|(_, _, why)| why.contains("another command reads")), "{done:?}");
            drop(reader);
            let done = scratch.restore(false);
            assert!(done.iter().all(|(_, state, _)| *state == RestoreState::Restored), "{done:?}");
        } else {
            drop(reader);
            kept.verify(&site).unwrap();
            command.kill().unwrap();
            command.wait().unwrap();
        }
        assert!(!is_mounted());
        assert_eq!(scratch.traces(), [""; 0]);
    }
}

#[test]
fn commands_that_come_and_go_at_the_same_time_share_one_disk() {
    let scratch = Scratch::new();
    let site = scratch.site();
    let _alone = whole_host();
    let Some(kept) = three_rows_on_a_disk(&scratch) else { return };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (scratch, kept) = (&scratch, &kept);
            scope.spawn(move || {
                let site = scratch.site();
                for round in 0..3 {
                    let name = format!("s{thread}-{round}");
                    let server = up(&site, &from(&name, kept), &mut |_| {}).unwrap();
                    assert_eq!(run(&server, "SELECT COUNT(*) FROM d.t"), "3");
                    down(&site, &name).unwrap();
                }
            });
        }
    });
    assert_eq!(scratch.traces(), [""; 0]);
    kept.verify(&site).unwrap();
}
