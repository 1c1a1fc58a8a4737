//! Processes: journalled before they run, and no other process is ever killed.

use std::fs;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use mydyno_host::machine::{Presence, ProcessIdentity};
use mydyno_host::process::StartedProcess;
use mydyno_host::process::{self, Ended, Started};
use mydyno_host::{HostError, restore};
use mydyno_model::change::RestoreState;

use crate::fixture::{Fixture, fixture, process_change};
use crate::until::until;

fn sleeper() -> Command {
    let mut command = Command::new("sleep");
    command.arg("600").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn start(f: &Fixture) -> Started {
    process::start(&f.journal, &f.lease, "test", sleeper()).unwrap()
}

#[test]
fn a_started_process_is_in_the_journal_and_ends_with_it() {
    let f = fixture();
    let started = start(&f);
    let open = f.journal.read().unwrap().open;
    let expected = StartedProcess { program: "sleep".into(), ..process_change(started.identity.clone()) };
    assert_eq!(open[0].as_kind(), Some(&expected));
    assert_eq!(f.machine.presence(&started.identity).unwrap(), Presence::Running);
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    let outcomes = restore::put_back(&f.journal, &f.machine, &taken, &restore::NoHooks).unwrap();
    assert_eq!(outcomes[0].1.state, RestoreState::Restored);
    assert_eq!(f.machine.presence(&started.identity).unwrap(), Presence::Ended);
    // Not a zombie either: it was collected.
    assert!(!std::path::Path::new(&format!("/proc/{}", started.identity.pid)).exists());
}

#[test]
fn a_process_lives_in_its_own_session_without_our_open_files() {
    let f = fixture();
    // A file that this process was given without close-on-exec, as shells do with `9>lock`.
    let lock = fs::File::create(f.path("lock")).unwrap();
    // SAFETY: dup(2) of an open descriptor; the copy is not close-on-exec, which is the point.
    let inherited = unsafe { libc::dup(lock.as_raw_fd()) };
    assert!(inherited > 2);
    let started = start(&f);
    let open_files = || {
        let entries = fs::read_dir(format!("/proc/{}/fd", started.identity.pid)).unwrap();
        let mut open: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        open.sort();
        open
    };
    // The program's loader opens libraries for a moment.
    until("only its standard streams are open", || open_files() == ["0", "1", "2"]);
    // SAFETY: closes the descriptor made above.
    unsafe { libc::close(inherited) };
    let stat = fs::read_to_string(format!("/proc/{}/stat", started.identity.pid)).unwrap();
    let session = stat.rsplit_once(')').unwrap().1.split_whitespace().nth(3).unwrap().to_owned();
    assert_eq!(session, started.identity.pid.to_string());
    process::end(&f.machine, &started.identity).unwrap();
}

#[test]
fn a_program_that_is_not_there_leaves_no_entry() {
    let f = fixture();
    let error = process::start(&f.journal, &f.lease, "test", Command::new("/no/such/program")).unwrap_err();
    assert!(
        matches!(&error, HostError::Start { .. }) && error.to_string().contains("/no/such/program"),
        "{error}"
    );
    assert_eq!(f.journal_bytes(), b"");
}

#[test]
fn without_a_journal_nothing_is_started() {
    let f = fixture();
    // A folder in the journal's place: nothing can be written there.
    fs::create_dir(f.journal.path()).unwrap();
    let proof = f.path("proof");
    let mut command = Command::new("touch");
    command.arg(&proof);
    process::start(&f.journal, &f.lease, "test", command).unwrap_err();
    assert!(!proof.exists());
}

#[test]
fn another_process_with_the_same_id_is_not_killed() {
    let f = fixture();
    let mut innocent = sleeper().spawn().unwrap();
    let real = f.machine.identify(innocent.id()).unwrap().unwrap();
    let recycled = ProcessIdentity { start_ticks: real.start_ticks - 1, ..real };
    assert_eq!(process::end(&f.machine, &recycled).unwrap(), Ended::Already(Presence::Recycled));
    f.journal.record(&f.lease, "test", process_change(recycled)).unwrap();
    let taken = f.journal.take_over(&f.lease, |_| true).unwrap();
    let (_, outcome) =
        restore::put_back(&f.journal, &f.machine, &taken, &restore::NoHooks).unwrap().remove(0);
    assert_eq!(outcome.state, RestoreState::LeftAlone);
    assert!(outcome.why.contains("another process"), "{}", outcome.why);
    assert_eq!(f.journal_bytes(), b"");
    assert!(innocent.try_wait().unwrap().is_none());
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn a_process_of_another_boot_is_not_looked_for() {
    let f = fixture();
    let mut innocent = sleeper().spawn().unwrap();
    let mut identity = f.machine.identify(innocent.id()).unwrap().unwrap();
    identity.place.boot_id = "00000000-0000-0000-0000-000000000000".to_owned();
    assert_eq!(process::end(&f.machine, &identity).unwrap(), Ended::Already(Presence::OtherBoot));
    assert!(innocent.try_wait().unwrap().is_none());
    innocent.kill().unwrap();
    innocent.wait().unwrap();
}

#[test]
fn a_process_that_ended_by_itself_is_said_to_have_ended() {
    let f = fixture();
    let mut started = process::start(&f.journal, &f.lease, "test", Command::new("true")).unwrap();
    until("it has ended", || f.machine.presence(&started.identity).unwrap() == Presence::Ended);
    assert_eq!(process::end(&f.machine, &started.identity).unwrap(), Ended::Already(Presence::Ended));
    let _ = started.child.wait();
}

#[test]
fn many_threads_can_start_processes_at_once() {
    let f = fixture();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let started = start(&f);
                assert_eq!(process::end(&f.machine, &started.identity).unwrap(), Ended::Killed);
            });
        }
    });
}
