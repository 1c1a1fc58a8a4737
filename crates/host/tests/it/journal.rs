//! Tests of the journal's promises, and of its state after a crash at any byte.

use std::fs::{self, OpenOptions};
use std::io::Write;

use mydyno_host::folder::MarkedFolder;
use mydyno_host::journal::{self, Closing, Replay};
use mydyno_host::kinds::KINDS;
use mydyno_host::{JournalError, Lease};
use proptest::prelude::*;

use crate::fixture::{Fixture, MadeUp, fixture};
use crate::until::until;

fn folder(name: &str) -> MarkedFolder {
    MarkedFolder { path: format!("/nowhere/{name}").into(), mark: "00".into() }
}

fn replay(bytes: &[u8]) -> Replay {
    journal::replay(bytes, KINDS)
}

fn ids(replay: &Replay) -> Vec<u64> {
    replay.open.iter().map(|open| open.entry.id).collect()
}

#[test]
fn a_change_is_in_the_file_when_record_returns_and_gone_when_the_last_is_closed() {
    let f = fixture();
    let a = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    let b = f.journal.record(&f.lease, "test", folder("b")).unwrap();
    assert_eq!(ids(&replay(&f.journal_bytes())), [a, b]);
    f.journal.close(a, Closing::Restored, "done").unwrap();
    assert_eq!(ids(&f.journal.read().unwrap()), [b]);
    f.journal.close(b, Closing::Restored, "done").unwrap();
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn a_number_is_not_used_again_after_the_file_was_emptied() {
    let f = fixture();
    let a = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    f.journal.close(a, Closing::Restored, "done").unwrap();
    assert_eq!(f.journal_bytes(), b"");
    let b = f.journal.record(&f.lease, "test", folder("b")).unwrap();
    assert!(b > a);
    // Somebody who was slow speaks of what was closed already: that writes nothing that a crash could leave behind.
    let before = f.journal_bytes();
    f.journal.close(a, Closing::Restored, "done").unwrap();
    f.journal.keep(&[a], "mydyno x").unwrap();
    f.journal.note_along(a, vec![]).unwrap();
    assert_eq!(f.journal_bytes(), before);
    assert_eq!(ids(&f.journal.read().unwrap()), [b]);
}

#[test]
fn a_sealed_journal_waits_for_the_end_of_its_process() {
    let f = fixture();
    assert!(f.journal.seal(|_| true).unwrap(), "there is no file yet");
    let a = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    assert!(!f.journal.seal(|open| open.entry.id == a).unwrap());
    // One that is not sealed goes on.
    f.journal.close(a, Closing::Restored, "done").unwrap();
    assert!(f.journal.seal(|_| true).unwrap());
    let file = fs::File::open(f.journal.path()).unwrap();
    assert!(!mydyno_linux::calls::files::try_lock(&file, false).unwrap(), "another use has to wait");
    // So would the fixture, which cleans up in this process.
    fs::remove_file(f.journal.path()).unwrap();
}

#[test]
fn every_line_names_its_form_lease_boot_and_values() {
    let f = fixture();
    f.journal.record(&f.lease, "server demo", folder("a")).unwrap();
    let text = String::from_utf8(f.journal_bytes()).unwrap();
    let lines: Vec<serde_json::Value> = text.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(lines[0]["schema"], "mydyno.journal/1");
    let entry = &lines[1];
    assert_eq!(entry["record"], "change");
    assert_eq!((&entry["was"], &entry["now"]), (&"absent".into(), &"present".into()));
    assert_eq!(entry["purpose"], "server demo");
    assert_eq!(entry["lease"]["process"]["pid"], std::process::id());
    assert_eq!(entry["place"]["boot_id"], entry["lease"]["process"]["place"]["boot_id"]);
    assert!(entry["place"]["boot_id"].as_str().unwrap().len() >= 32);
}

#[test]
fn the_journal_is_readable_by_its_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let f = fixture();
    f.journal.record(&f.lease, "test", folder("a")).unwrap();
    assert_eq!(fs::metadata(f.journal.path()).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_recorded_change_has_room_to_be_closed_on_a_full_disk() {
    use std::os::unix::fs::MetadataExt;
    let f = fixture();
    let occupied = || {
        let meta = fs::metadata(f.journal.path()).unwrap();
        (meta.blocks() * 512).saturating_sub(meta.size())
    };
    let a = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    f.journal.record(&f.lease, "test", folder("b")).unwrap();
    f.journal.keep(&[a], "mydyno x").unwrap();
    f.journal.take_over(&f.lease, |_| true).unwrap();
    assert!(occupied() > 32 << 10, "{} bytes are kept free behind its end", occupied());
}

#[test]
fn a_living_command_keeps_others_from_the_same_thing_by_pid_and_name() {
    let f = fixture();
    let mut other = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let theirs = Lease::of_process(&f.machine, other.id(), "bench oltp").unwrap();
    f.journal.record(&theirs, "test", folder("a")).unwrap();
    let error = f.journal.record(&f.lease, "test", folder("a")).unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, JournalError::Held { .. }), "{text}");
    assert!(text.contains(&format!("pid {}", other.id())) && text.contains("mydyno bench oltp"), "{text}");
    f.journal.record(&f.lease, "test", folder("b")).unwrap();

    other.kill().unwrap();
    // Not collected yet, it is a zombie, and a zombie answers for nothing.
    until("it is a zombie", || f.machine.identify(other.id()).unwrap().is_none());
    let error = f.journal.record(&f.lease, "test", folder("a")).unwrap_err().to_string();
    assert!(error.contains("mydyno host restore"), "{error}");
    other.wait().unwrap();
}

#[test]
fn what_is_kept_names_the_command_that_ends_it() {
    let f = fixture();
    let id = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    f.journal.keep(&[id], "mydyno server down demo").unwrap();
    let error = f.journal.record(&f.lease, "test", folder("a")).unwrap_err().to_string();
    assert!(error.contains("mydyno server down demo"), "{error}");
}

#[test]
fn a_lease_is_alive_only_with_its_boot_its_id_and_its_start() {
    use mydyno_host::Liveness::{Alive, Dead, Unseen};
    let f = fixture();
    let at = f.path("proc");
    let usual = MadeUp {
        host: "db1",
        machine_id: Some('1'),
        boot_id: "b1",
        pid_namespace: "pid:[1]",
        processes: &[(7, 100, 'S')],
    };
    let lease = Lease::of_process(&usual.machine(&at), 7, "bench").unwrap().identity().clone();
    for (other, expected) in [
        (MadeUp { ..usual }, Alive),
        (MadeUp { processes: &[(7, 100, 'D')], ..usual }, Alive),
        (MadeUp { processes: &[(7, 100, 'Z')], ..usual }, Dead),
        (MadeUp { processes: &[(7, 101, 'S')], ..usual }, Dead),
        (MadeUp { processes: &[], ..usual }, Dead),
        (MadeUp { boot_id: "b2", ..usual }, Dead),
        (MadeUp { boot_id: "b2", host: "renamed", ..usual }, Dead),
        // Another machine that has the same name, as in `localhost`.
        (MadeUp { boot_id: "b2", machine_id: Some('2'), ..usual }, Unseen),
        (MadeUp { boot_id: "b2", machine_id: None, ..usual }, Unseen),
        (MadeUp { pid_namespace: "pid:[2]", ..usual }, Unseen),
        (MadeUp { host: "renamed", ..usual }, Alive),
    ] {
        assert_eq!(lease.liveness(&other.machine(&at)).unwrap(), expected);
    }
}

#[test]
fn a_torn_last_line_is_cut_off_by_the_next_entry() {
    let f = fixture();
    let a = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    let whole = f.journal_bytes().len();
    for torn in [&b"{\"record\":\"change\",\"id\":2,\"pur"[..], b"\0\0\0\0", b"{\"record\":\0\0\n"] {
        OpenOptions::new().append(true).open(f.journal.path()).unwrap().write_all(torn).unwrap();
        let read = f.journal.read().unwrap();
        assert_eq!((ids(&read), read.sound_bytes, read.damaged_lines.len()), (vec![a], whole as u64, 0));
    }
    let b = f.journal.record(&f.lease, "test", folder("b")).unwrap();
    let read = f.journal.read().unwrap();
    assert_eq!((ids(&read), read.damaged_lines), (vec![a, b], vec![]));
}

#[test]
fn a_damaged_line_in_the_middle_is_reported_and_hides_no_other() {
    let f = fixture();
    let a = f.journal.record(&f.lease, "test", folder("a")).unwrap();
    OpenOptions::new().append(true).open(f.journal.path()).unwrap().write_all(b"garbage\n").unwrap();
    let mut bytes = f.journal_bytes();
    // Another mydyno appends behind it without looking.
    let line = bytes.split(|b| *b == b'\n').nth(1).unwrap().to_vec();
    bytes.extend(
        String::from_utf8(line)
            .unwrap()
            .replace(&format!("\"id\":{a}"), "\"id\":2")
            .replace("/a\"", "/b\"")
            .bytes(),
    );
    bytes.push(b'\n');
    let read = replay(&bytes);
    assert_eq!((ids(&read), read.damaged_lines), (vec![a, 2], vec![3]));
}

#[test]
fn a_journal_of_nul_bytes_is_damage_and_takes_no_change_until_it_is_emptied() {
    let f = fixture();
    std::fs::write(f.journal.path(), [0u8; 4096]).unwrap();
    let read = f.journal.read().unwrap();
    assert!(read.only_nul && read.damaged_lines == [1] && read.open.is_empty());
    let error = f.journal.record(&f.lease, "test", folder("a")).unwrap_err().to_string();
    assert!(error.contains("NUL") && error.contains("mydyno host restore"), "{error}");
    f.journal.keep(&[1], "x").unwrap();
    assert_eq!(f.journal_bytes(), [0u8; 4096], "the damage stays in sight");
    assert!(f.journal.empty_if_lost().unwrap());
    assert!(!f.journal.empty_if_lost().unwrap());
    f.journal.record(&f.lease, "test", folder("a")).unwrap();
}

#[test]
fn a_journal_of_a_newer_form_is_refused_untouched() {
    let f = fixture();
    let text = b"{\"record\":\"journal\",\"schema\":\"mydyno.journal/9\"}\n{\"record\":\"new\"}\n";
    fs::write(f.journal.path(), text).unwrap();
    let error = f.journal.record(&f.lease, "test", folder("a")).unwrap_err().to_string();
    assert!(error.contains("mydyno.journal/9"), "{error}");
    assert_eq!(f.journal_bytes(), text);
}

#[test]
fn many_commands_at_once_lose_no_entry_and_share_no_number() {
    let f = fixture();
    let all: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|t| {
                let f: &Fixture = &f;
                scope.spawn(move || {
                    (0..8)
                        .map(|n| f.journal.record(&f.lease, "test", folder(&format!("{t}-{n}"))).unwrap())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    });
    let mut sorted = all.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), 64);
    assert_eq!(ids(&f.journal.read().unwrap()), sorted);
}

/// One step of a random history of the journal.
#[derive(Debug, Clone)]
enum Step {
    Record,
    Keep(usize),
    Take(usize),
    Close(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Record),
        1 => (0usize..8).prop_map(Step::Keep),
        1 => (0usize..8).prop_map(Step::Take),
        2 => (0usize..8).prop_map(Step::Close),
    ]
}

/// Bytes of the file after each step. A history keeps one entry open, so that the file is never emptied.
fn history(f: &Fixture, steps: &[Step]) -> Vec<Vec<u8>> {
    f.journal.record(&f.lease, "anchor", folder("anchor")).unwrap();
    let mut files = vec![f.journal_bytes()];
    for (n, step) in steps.iter().enumerate() {
        let open: Vec<u64> = ids(&f.journal.read().unwrap()).into_iter().skip(1).collect();
        let pick = |at: &usize| open.get(at % open.len().max(1)).copied();
        match step {
            Step::Record => drop(f.journal.record(&f.lease, "test", folder(&n.to_string())).unwrap()),
            Step::Keep(at) => pick(at).into_iter().for_each(|id| f.journal.keep(&[id], "mydyno x").unwrap()),
            Step::Take(at) => pick(at)
                .into_iter()
                .for_each(|id| drop(f.journal.take_over(&f.lease, |open| open.entry.id == id).unwrap())),
            Step::Close(at) => {
                pick(at).into_iter().for_each(|id| f.journal.close(id, Closing::Restored, "x").unwrap());
            }
        }
        files.push(f.journal_bytes());
    }
    files
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// The law of replay: after a crash that leaves any beginning of the file, what is open is what was open after the
    /// last line that is whole, and the next command goes on from there.
    #[test]
    fn any_prefix_of_the_file_replays_to_the_state_after_its_last_whole_line(steps in prop::collection::vec(step(), 0..12)) {
        let f = fixture();
        let files = history(&f, &steps);
        let whole = files.last().unwrap();
        let states: Vec<(usize, Vec<u64>)> = std::iter::once((0, vec![]))
            .chain(whole.iter().enumerate().filter(|(_, b)| **b == b'\n').map(|(at, _)| {
                (at + 1, ids(&replay(&whole[..=at])))
            }))
            .collect();
        // Each step appended whole lines, so each file is itself one of those states.
        for file in &files {
            prop_assert!(states.iter().any(|(length, _)| *length == file.len()));
        }
        for cut in 0..=whole.len() {
            let read = replay(&whole[..cut]);
            let (length, open) = states.iter().rfind(|(length, _)| *length <= cut).unwrap();
            prop_assert_eq!(&ids(&read), open, "cut at byte {}", cut);
            prop_assert_eq!(read.sound_bytes, *length as u64);
            prop_assert!(read.damaged_lines.is_empty());
            prop_assert!(open.iter().all(|id| *id < read.next_id));
        }
    }

    #[test]
    fn no_bytes_make_replay_panic_and_sound_bytes_stay_within_the_file(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let read = replay(&bytes);
        prop_assert!(read.sound_bytes as usize <= bytes.len());
    }
}
