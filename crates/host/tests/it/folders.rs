//! Folders are removed only when they are ours, and nothing beyond them is touched.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use mydyno_host::folder::{self, MARK_FILE, MarkedFolder};
use mydyno_host::{HostError, Lease, StateDir, data_directory, lost, restore};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, MadeUp, fixture};
use crate::until::until;

fn mark_of(f: &Fixture) -> MarkedFolder {
    f.journal.read().unwrap().open[0].as_kind::<MarkedFolder>().unwrap().clone()
}

fn put_back(f: &Fixture) -> (RestoreState, String) {
    put_back_of(f, |_| true)
}

fn put_back_of(f: &Fixture, wanted: impl Fn(&str) -> bool) -> (RestoreState, String) {
    let taken = f.journal.take_over(&f.lease, |open| wanted(&open.entry.purpose)).unwrap();
    let outcome = restore::put_back(&f.journal, &f.machine, &taken, &restore::NoHooks).unwrap().remove(0).1;
    (outcome.state, outcome.why)
}

#[test]
fn a_folder_of_ours_goes_with_all_that_is_in_it() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    fs::create_dir_all(path.join("a/b")).unwrap();
    fs::write(path.join("a/b/file"), "x").unwrap();
    assert_eq!(put_back(&f).0, RestoreState::Restored);
    assert!(!path.exists());
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn links_in_a_folder_go_and_what_they_point_to_stays() {
    let f = fixture();
    let (path, precious) = (f.path("ours"), f.path("precious"));
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "x").unwrap();
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    symlink(&precious, path.join("link")).unwrap();
    fs::create_dir(path.join("deep")).unwrap();
    symlink(&precious, path.join("deep/link")).unwrap();
    assert_eq!(put_back(&f).0, RestoreState::Restored);
    assert!(!path.exists() && precious.join("file").exists());
}

#[test]
fn a_folder_that_was_there_before_is_refused_and_kept() {
    let f = fixture();
    let path = f.path("theirs");
    fs::create_dir(&path).unwrap();
    let error = folder::create(&f.journal, &f.lease, "test", &path).unwrap_err();
    assert!(matches!(error, HostError::FolderExists { .. }), "{error}");
    assert!(path.exists());
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn a_folder_that_somebody_put_in_the_place_of_ours_is_left_alone() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    let ours = mark_of(&f);
    fs::remove_dir_all(&path).unwrap();
    for (name, text) in
        [(MARK_FILE, "another mark"), ("file", "x"), (MARK_FILE, &format!("{}x", ours.mark)[..])]
    {
        fs::create_dir(&path).unwrap();
        fs::write(path.join(name), text).unwrap();
        fs::write(path.join("precious"), "x").unwrap();
        // Asked on its own, so that the entry is there for the next round.
        let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
        let (state, why) = put_back(&f);
        assert_eq!(state, RestoreState::LeftAlone, "{why}");
        assert!(why.contains("mark") && path.join("precious").exists(), "{why}");
        fs::remove_dir_all(&path).unwrap();
        f.journal.record_boxed(&f.lease, "test", taken[0].entry.change.clone()).unwrap();
    }
}

#[test]
fn a_file_or_link_in_the_place_of_our_folder_is_left_alone() {
    let f = fixture();
    let (path, precious) = (f.path("ours"), f.path("precious"));
    fs::create_dir(&precious).unwrap();
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    fs::copy(path.join(MARK_FILE), precious.join(MARK_FILE)).unwrap();
    fs::remove_dir_all(&path).unwrap();
    symlink(&precious, &path).unwrap();
    let (state, why) = put_back(&f);
    assert_eq!(state, RestoreState::LeftAlone, "{why}");
    assert!(precious.join(MARK_FILE).exists());
}

#[test]
fn what_a_crash_leaves_of_making_a_folder_is_removed() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    let ours = mark_of(&f);
    let stages: [(&str, Option<&str>); 4] = [
        ("no folder", None),
        ("no mark", Some("")),
        ("half a mark", Some(&ours.mark[..7])),
        ("all", Some(&ours.mark)),
    ];
    for (stage, mark) in stages {
        fs::remove_dir_all(&path).unwrap_or_default();
        if let Some(mark) = mark {
            fs::create_dir(&path).unwrap();
            if stage != "no mark" {
                fs::write(path.join(MARK_FILE), mark).unwrap();
            }
        }
        let (state, why) = put_back(&f);
        assert_eq!((state, path.exists()), (RestoreState::Restored, false), "{stage}: {why}");
        f.journal.record(&f.lease, "test", ours.clone()).unwrap();
    }
}

#[test]
fn a_folder_whose_journal_was_lost_is_known_by_its_own_mark() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    fs::write(path.join("file"), "x").unwrap();
    fs::remove_file(f.journal.path()).unwrap();
    lost::adopt(&f.journal, &f.lease, "test", &path, None).unwrap();
    assert_eq!(put_back(&f).0, RestoreState::Restored);
    assert!(!path.exists());
    let unmarked = f.path("unmarked");
    fs::create_dir(&unmarked).unwrap();
    assert!(lost::adopt(&f.journal, &f.lease, "test", &unmarked, None).is_err());
}

#[test]
fn a_folder_that_is_given_away_loses_its_name_at_once_and_another_may_have_it() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "make", &path).unwrap();
    fs::remove_file(f.journal.path()).unwrap();
    folder::give_away(&f.journal, &f.lease, "test", &path).unwrap();
    assert!(!path.exists());
    folder::create(&f.journal, &f.lease, "second", &path).unwrap();
    assert_eq!(put_back_of(&f, |purpose| purpose == "test").0, RestoreState::Restored);
    let left: Vec<_> = fs::read_dir(path.parent().unwrap()).unwrap().map(|e| e.unwrap().path()).collect();
    assert!(left.contains(&path), "the second one is not what was removed: {left:?}");
    assert!(!left.iter().any(|path| path.display().to_string().contains("leaving")), "{left:?}");
}

#[test]
fn a_folder_that_was_to_be_given_away_is_whole_when_the_command_died_before() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "make", &path).unwrap();
    fs::remove_file(f.journal.path()).unwrap();
    let mark = fs::read_to_string(path.join(MARK_FILE)).unwrap();
    let leaving = path.with_file_name(format!(".mydyno-leaving-{mark}"));
    f.journal.record(&f.lease, "test", MarkedFolder { path: leaving, mark }).unwrap();
    assert_eq!(put_back(&f).0, RestoreState::Restored);
    assert!(folder::is_marked(&path));
}

#[test]
fn a_folder_in_which_something_is_mounted_is_kept_until_it_is_unmounted() {
    let f = fixture();
    let (path, at) = (f.path("with space"), f.path("proc"));
    let made_up = MadeUp {
        host: "db1",
        machine_id: Some('1'),
        boot_id: "b1",
        pid_namespace: "pid:[1]",
        processes: &[(7, 100, 'S')],
    };
    let machine = made_up.machine(&at);
    let lease = Lease::of_process(&machine, 7, "prove").unwrap();
    folder::create(&f.journal, &lease, "test", &path).unwrap();
    fs::create_dir(path.join("disk")).unwrap();
    let mounted = path.join("disk").display().to_string().replace(' ', "\\040");
    fs::write(at.join("self/mountinfo"), format!("36 35 98:0 / {mounted} rw,noatime - ext4 /dev/loop0 rw\n"))
        .unwrap();
    let done = restore::restore(&f.journal, &lease, false, &restore::NoHooks).unwrap();
    assert_eq!(done[0].outcome, RestoreState::LeftAlone, "it is held by a living command");
    let taken = f.journal.take_over(&lease, |_| true).unwrap();
    let (_, outcome) = restore::put_back(&f.journal, &machine, &taken, &restore::NoHooks).unwrap().remove(0);
    assert_eq!(outcome.state, RestoreState::Failed);
    assert!(outcome.why.contains("umount") && path.join("disk").exists(), "{}", outcome.why);
    fs::write(at.join("self/mountinfo"), "").unwrap();
    let (_, outcome) = restore::put_back(&f.journal, &machine, &taken, &restore::NoHooks).unwrap().remove(0);
    assert_eq!((outcome.state, path.exists()), (RestoreState::Restored, false));
}

#[test]
fn a_folder_into_which_somebody_keeps_writing_goes_all_the_same() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    fs::write(path.join("first"), "x").unwrap();
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0u64.. {
                if fs::write(path.join(n.to_string()), "x").is_err() {
                    return n;
                }
            }
            0
        });
        // The mark and `first` are counted too.
        until("it writes", || fs::read_dir(&path).unwrap().count() >= 102);
        let (state, why) = put_back(&f);
        assert_eq!(state, RestoreState::Restored, "{why}");
        assert!(writer.join().unwrap() >= 100);
    });
    let left: Vec<_> = fs::read_dir(f.temp.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left, ["state"]);
}

#[test]
fn a_folder_whose_removal_was_killed_is_known_without_its_mark() {
    let f = fixture();
    let path = f.path("ours");
    folder::create(&f.journal, &f.lease, "test", &path).unwrap();
    let mark = mark_of(&f).mark;
    let leaving = f.path(&format!(".mydyno-leaving-{mark}"));
    fs::rename(&path, &leaving).unwrap();
    fs::remove_file(leaving.join(MARK_FILE)).unwrap();
    fs::write(leaving.join("late"), "x").unwrap();
    // Somebody has made a folder with the name that is free again.
    fs::create_dir(&path).unwrap();
    let (state, why) = put_back(&f);
    assert_eq!((state, leaving.exists(), path.exists()), (RestoreState::Restored, false, true), "{why}");
}

#[test]
fn a_state_folder_is_not_made_in_the_data_directory_of_a_server_behind_whatever_link_or_mount() {
    let f = fixture();
    let (data, link, point) = (f.path("data"), f.path("link"), f.path("point"));
    fs::create_dir_all(data.join("shop")).unwrap();
    fs::write(data.join("ibdata1"), "").unwrap();
    symlink(data.join("shop"), &link).unwrap();
    fs::create_dir(&point).unwrap();
    let refused = |folder: &Path, data: &Path| {
        let error = StateDir::open(&folder.join("a/state")).unwrap_err().to_string();
        assert!(error.contains(&format!("would lie in {}, the data directory", data.display())), "{error}");
        assert!(error.contains("MYDYNO_STATE"), "{error}");
    };
    refused(&data, &data);
    refused(&data.join("none"), &data);
    refused(&link, &data);
    // Through a link that leads out of it, it lies outside.
    symlink(f.path("."), data.join("out")).unwrap();
    data_directory::check_outside(&data.join("out/state-2"), "MYDYNO_STATE").unwrap();
    // One that is there is used: what is in its journal has to go back.
    fs::create_dir(data.join("earlier")).unwrap();
    fs::set_permissions(data.join("earlier"), PermissionsExt::from_mode(0o700)).unwrap();
    StateDir::open(&data.join("earlier")).unwrap();
    let run = |program: &str, args: &[&Path]| {
        Command::new(program).args(args).status().is_ok_and(|status| status.success())
    };
    if !run("mount", &[Path::new("--bind"), &data, &point]) {
        return println!("not tested: binding a folder needs root");
    }
    let through_mount = std::panic::catch_unwind(|| refused(&point, &point));
    assert!(run("umount", &[&point]));
    through_mount.unwrap();
    assert!(!data.join("a").exists() && !data.join("shop/a").exists());
}
