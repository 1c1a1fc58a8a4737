//! `host restore` and `host status`: newest first, only changes without a running owner, and again after any
//! interruption.

use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use mydyno_host::journal::{Closing, Line, UnknownChange};
use mydyno_host::machine::Presence;
use mydyno_host::process::StartedProcess;
use mydyno_host::restore::{NoHooks, put_back, restore, restore_found, status};
use mydyno_host::swap::SwapFile;
use mydyno_host::{Lease, Machine, folder, loops, lost, process};
use mydyno_model::change::{LeaseState, RestoreState};

use crate::fixture::{Fixture, MadeUp, fixture, process_change};

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn outcomes(f: &Fixture, all: bool) -> Vec<(u64, RestoreState, String)> {
    restore(&f.journal, &f.lease, all, &NoHooks)
        .unwrap()
        .into_iter()
        .map(|o| (o.change.id, o.outcome, o.why))
        .collect()
}

#[test]
fn what_a_dead_command_left_is_put_back_newest_first() {
    let f = fixture();
    let dead = f.dead_lease("server up demo");
    let path = f.path("servers");
    let first = folder::create(&f.journal, &dead, "server demo", &path).unwrap();
    let mut started = process::start(&f.journal, &dead, "server demo", sleeper()).unwrap();
    let shown = status(&f.journal, &f.machine).unwrap();
    assert!(matches!(&shown[0].lease, LeaseState::Abandoned { command, .. } if command == "server up demo"));
    let done = outcomes(&f, false);
    assert_eq!(
        done.iter().map(|o| (o.0, o.1)).collect::<Vec<_>>(),
        [(started.id, RestoreState::Restored), (first, RestoreState::Restored)]
    );
    assert!(!path.exists());
    assert_eq!(f.machine.presence(&started.identity).unwrap(), Presence::Ended);
    let _ = started.child.wait();
    assert_eq!(outcomes(&f, false), []);
    assert_eq!(status(&f.journal, &f.machine).unwrap(), []);
}

#[test]
fn what_a_lost_journal_named_is_found_by_its_marks_and_put_back() {
    let f = fixture();
    let path = f.path("lost");
    folder::create(&f.journal, &f.lease, "server lost", &path).unwrap();
    let started = process::start(&f.journal, &f.lease, "server lost", sleeper()).unwrap();
    let backing = path.join("image");
    fs::File::create(&backing).unwrap().set_len(1 << 20).unwrap();
    let attached = loops::check(&f.machine)
        .is_ok()
        .then(|| loops::attach(&f.journal, &f.lease, "server lost", &backing).unwrap().1);
    fs::write(f.journal.path(), []).unwrap();
    assert_eq!(outcomes(&f, true), []);
    assert_eq!(lost::marked_below(path.parent().unwrap(), |name| name == "lost").unwrap(), [path.as_path()]);
    let found = StartedProcess { identity: started.identity.clone(), program: "sleep".into() };
    lost::adopt(&f.journal, &f.lease, "server lost", &path, Some(found)).unwrap();
    let done = restore_found(&f.journal, &f.lease, "server lost", &NoHooks).unwrap();
    assert_eq!(done.len(), 2 + usize::from(attached.is_some()), "{done:?}");
    for outcome in &done {
        assert_eq!(outcome.outcome, RestoreState::Restored, "{outcome:?}");
        assert!(outcome.why.starts_with("the journal did not know it"), "{}", outcome.why);
    }
    assert!(!path.exists());
    assert_eq!(f.machine.presence(&started.identity).unwrap(), Presence::Ended);
    assert!(attached.is_none_or(|a| loops::attached_to(&f.machine, &a.backing).unwrap().is_none()));
}

#[test]
fn what_a_living_command_holds_is_left_alone_even_with_all() {
    let f = fixture();
    let mut other = sleeper().spawn().unwrap();
    let theirs = Lease::of_process(&f.machine, other.id(), "bench").unwrap();
    let path = f.path("theirs");
    folder::create(&f.journal, &theirs, "server b", &path).unwrap();
    for all in [false, true] {
        let done = outcomes(&f, all);
        assert_eq!(done[0].1, RestoreState::LeftAlone);
        assert!(done[0].2.contains(&format!("pid {}", other.id())), "{}", done[0].2);
        assert!(path.exists());
    }
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!(outcomes(&f, false)[0].1, RestoreState::Restored);
    assert!(!path.exists());
}

#[test]
fn what_is_kept_stays_until_all_is_asked_for() {
    let f = fixture();
    let dead = f.dead_lease("server up demo");
    let path = f.path("kept");
    let id = folder::create(&f.journal, &dead, "server demo", &path).unwrap();
    f.journal.keep(&[id], "mydyno server down demo").unwrap();
    let done = outcomes(&f, false);
    assert_eq!(done[0].1, RestoreState::LeftAlone);
    assert!(done[0].2.contains("mydyno server down demo") && path.exists(), "{}", done[0].2);
    assert_eq!(outcomes(&f, true)[0].1, RestoreState::Restored);
    assert!(!path.exists());
}

#[test]
fn a_restore_that_was_killed_is_gone_on_with() {
    let f = fixture();
    let dead = f.dead_lease("server up demo");
    let path = f.path("ours");
    folder::create(&f.journal, &dead, "server demo", &path).unwrap();
    // Another restore took it over, removed half of it and was killed.
    let killed = f.dead_lease("host restore");
    f.journal.take_over(&killed, |_| true).unwrap();
    fs::write(path.join("rest"), "x").unwrap();
    assert_eq!(outcomes(&f, false)[0].1, RestoreState::Restored);
    assert!(!path.exists());
}

#[test]
fn a_restore_that_was_killed_between_the_deed_and_its_closing_line_is_gone_on_with() {
    let f = fixture();
    let dead = f.dead_lease("server up demo");
    let path = f.path("ours");
    folder::create(&f.journal, &dead, "server demo", &path).unwrap();
    fs::remove_dir_all(&path).unwrap();
    let done = outcomes(&f, false);
    assert_eq!((done[0].1, done[0].2.as_str()), (RestoreState::Restored, "it is not there"));
}

#[test]
fn after_a_reboot_folders_go_and_processes_are_not_looked_for() {
    let f = fixture();
    let at = f.path("proc");
    let before = MadeUp {
        host: "db1",
        machine_id: Some('1'),
        boot_id: "b1",
        pid_namespace: "pid:[1]",
        processes: &[(7, 100, 'S'), (8, 110, 'S')],
    };
    let machine = before.machine(&at);
    let lease = Lease::of_process(&machine, 7, "server up demo").unwrap();
    let path = f.path("ours");
    folder::create(&f.journal, &lease, "server demo", &path).unwrap();
    let server = machine.identify(8).unwrap().unwrap();
    f.journal.record(&lease, "server demo", process_change(server)).unwrap();
    // The same ids and start times after the boot: other processes.
    let after = MadeUp { boot_id: "b2", ..before }.machine(&at);
    let restorer = Lease::of_process(&after, 7, "host restore").unwrap();
    let done = restore(&f.journal, &restorer, false, &NoHooks).unwrap();
    assert_eq!(done[0].outcome, RestoreState::LeftAlone);
    assert!(done[0].why.contains("earlier boot"), "{}", done[0].why);
    assert_eq!((done[1].outcome, path.exists()), (RestoreState::Restored, false));
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn what_another_machine_or_container_holds_is_left_alone_until_all_is_asked_for() {
    for elsewhere in [
        MadeUp {
            host: "db2",
            machine_id: Some('2'),
            boot_id: "b2",
            pid_namespace: "pid:[1]",
            processes: &[(7, 1, 'S')],
        },
        MadeUp {
            host: "db1",
            machine_id: Some('1'),
            boot_id: "b1",
            pid_namespace: "pid:[2]",
            processes: &[(7, 1, 'S')],
        },
    ] {
        let f = fixture();
        let lease = Lease::of_process(&elsewhere.machine(&f.path("there")), 7, "server up demo").unwrap();
        let path = f.path("ours");
        folder::create(&f.journal, &lease, "server demo", &path).unwrap();
        let here = MadeUp {
            host: "db1",
            machine_id: Some('1'),
            boot_id: "b1",
            pid_namespace: "pid:[1]",
            processes: &[(9, 5, 'S')],
        };
        let machine: Machine = here.machine(&f.path("here"));
        let restorer = Lease::of_process(&machine, 9, "host restore").unwrap();
        let done = restore(&f.journal, &restorer, false, &NoHooks).unwrap();
        assert_eq!((done[0].outcome, path.exists()), (RestoreState::LeftAlone, true));
        assert!(done[0].why.contains(elsewhere.host), "{}", done[0].why);
        let done = restore(&f.journal, &restorer, true, &NoHooks).unwrap();
        assert_eq!((done[0].outcome, path.exists()), (RestoreState::Restored, false));
    }
}

const HERE: MadeUp = MadeUp {
    host: "db1",
    machine_id: Some('1'),
    boot_id: "b1",
    pid_namespace: "pid:[1]",
    processes: &[(9, 5, 'S')],
};

/// A machine in mount namespace 1 with `swaps` as its list of swap files.
fn swapping(f: &Fixture, swaps: &str) -> Machine {
    let machine = HERE.machine(&f.path("here"));
    symlink("mnt:[1]", f.path("here/self/ns/mnt")).unwrap();
    fs::write(f.path("here/swaps"), format!("Filename Type Size Used Priority\n{swaps}")).unwrap();
    fs::write(f.path("here/meminfo"), "MemAvailable: 8000000 kB\n").unwrap();
    machine
}

fn swap_file(path: &Path, device: Option<u64>, namespace: &str) -> SwapFile {
    let inode = fs::metadata(path).unwrap().ino();
    let namespace = Some(namespace.to_owned());
    SwapFile { path: path.to_owned(), inode, device, bytes: 16 << 20, namespace }
}

#[test]
fn the_folder_of_a_swap_file_of_another_mount_namespace_stays() {
    let f = fixture();
    let machine = swapping(&f, "");
    MadeUp::process(&HERE, &f.path("here"), 8, 4, 'S');
    let dead = Lease::of_process(&machine, 8, "prove").unwrap();
    let path = f.path("ours");
    folder::create(&f.journal, &dead, "prove", &path).unwrap();
    fs::write(path.join("swap"), "x").unwrap();
    f.journal.record(&dead, "prove", swap_file(&path.join("swap"), None, "mnt:[2]")).unwrap();
    // The process ended.
    fs::remove_dir_all(f.path("here/8")).unwrap();
    let restorer = Lease::of_process(&machine, 9, "host restore").unwrap();
    let done = restore(&f.journal, &restorer, false, &NoHooks).unwrap();
    assert!(path.join("swap").exists(), "{done:#?}");
    assert_eq!(f.journal.read().unwrap().open.len(), 2);
}

#[test]
fn a_swap_file_is_known_by_its_inode_when_its_folder_was_renamed() {
    let f = fixture();
    let path = f.path("renamed");
    fs::create_dir(&path).unwrap();
    fs::write(path.join("swap"), "x").unwrap();
    let device = fs::metadata(path.join("swap")).unwrap().dev();
    let lines = format!("{} file 16380 0 -2\n", path.join("swap").display());
    for (device, outcome) in [(device, RestoreState::Failed), (device + 1, RestoreState::Restored)] {
        let machine = swapping(&f, &lines);
        let lease = Lease::of_process(&machine, 9, "prove").unwrap();
        let swap = swap_file(&path.join("swap"), Some(device), "mnt:[1]");
        let swap = SwapFile { path: f.path("ours/swap"), ..swap };
        f.journal.record(&lease, "prove", swap).unwrap();
        let taken = f.journal.take_over(&lease, |_| true).unwrap();
        let done = put_back(&f.journal, &machine, &taken, &NoHooks).unwrap();
        // The kernel does not really swap to it, so swapoff fails.
        assert_eq!(done[0].1.state, outcome, "{done:#?}");
        for open in taken {
            f.journal.close(open.entry.id, Closing::Released, "tested").unwrap();
        }
    }
}

#[test]
fn what_is_swapped_out_comes_back_only_where_memory_stays_free() {
    let f = fixture();
    let path = f.path("swap");
    fs::write(&path, "x").unwrap();
    let machine = swapping(&f, &format!("{} file 16380 6000000 -2\n", path.display()));
    let lease = Lease::of_process(&machine, 9, "prove").unwrap();
    let id = f.journal.record(&lease, "prove", swap_file(&path, None, "mnt:[1]")).unwrap();
    let taken = f.journal.take_over(&lease, |_| true).unwrap();
    let done = put_back(&f.journal, &machine, &taken, &NoHooks).unwrap();
    assert_eq!(done[0].1.state, RestoreState::Failed);
    assert!(done[0].1.why.contains("are to stay free"), "{}", done[0].1.why);
    f.journal.close(id, Closing::Released, "tested").unwrap();
}

#[test]
fn a_kind_of_change_that_a_newer_mydyno_made_is_kept_and_said() {
    let f = fixture();
    let dead = f.dead_lease("prove");
    folder::create(&f.journal, &dead, "test", &f.path("a")).unwrap();
    let text = String::from_utf8(f.journal_bytes()).unwrap();
    let (start, end) = (text.find("{\"kind\":\"folder\"").unwrap(), text.find(",\"was\"").unwrap());
    let newer = format!("{}{{\"kind\":\"teleport\",\"to\":\"mars\"}}{}", &text[..start], &text[end..]);
    fs::write(f.journal.path(), &newer).unwrap();
    let line: Line = serde_json::from_str(newer.lines().nth(1).unwrap()).unwrap();
    assert!(serde_json::to_string(&line).unwrap().contains("\"to\":\"mars\""));
    let done = outcomes(&f, false);
    assert_eq!(done[0].1, RestoreState::Failed);
    assert!(done[0].2.contains("newer mydyno"), "{}", done[0].2);
    assert_eq!(status(&f.journal, &f.machine).unwrap().len(), 1);
    fs::remove_dir_all(f.path("a")).unwrap();
}

#[test]
fn a_folder_stays_while_the_process_in_it_cannot_be_ended() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "server demo", &path).unwrap();
    // A kind that cannot be restored stands for a process that cannot be ended.
    let unknown = UnknownChange(serde_json::from_str(r#"{"kind":"teleport"}"#).unwrap());
    f.journal.record(&f.lease, "server demo", unknown).unwrap();
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    let done = mydyno_host::restore::put_back(&f.journal, &f.machine, &taken, &NoHooks).unwrap();
    assert!(done.iter().all(|(_, outcome)| outcome.state == RestoreState::Failed));
    assert!(path.exists());
}

#[test]
fn a_journal_whose_last_line_closes_its_last_entry_is_emptied_by_the_next_restore() {
    let f = fixture();
    let id = folder::create(&f.journal, &f.lease, "test", &f.path("a")).unwrap();
    fs::remove_dir_all(f.path("a")).unwrap();
    let how = mydyno_host::journal::Closing::Restored;
    let line = Line::Closed { id, how, why: "removed".to_owned(), at: "2026-11-22T00:00:00Z".to_owned() };
    let text = format!(
        "{}{}\n",
        String::from_utf8(f.journal_bytes()).unwrap(),
        serde_json::to_string(&line).unwrap()
    );
    // Killed between that line and emptying the file.
    fs::write(f.journal.path(), text).unwrap();
    assert_eq!(outcomes(&f, false), []);
    assert_eq!(f.journal_bytes(), b"");
}
