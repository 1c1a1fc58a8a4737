//! Crash tests during which something other than the crash fails: the report says so, and counts nothing as lost or as
//! intact.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_model::crash::{CrashBy, CrashReport};
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::crash::{Crash, crash};
use mydyno_sandbox::{Progress, SandboxError, Spec, connect_options, list};
use mydyno_wire::Client;

use crate::scratch::Scratch;
use crate::whole_host::whole_host;

/// A crash test with an intervention: while the load runs, before the crash, or before the server starts again.
fn crash_with(
    scratch: &Scratch,
    commits: u64,
    cancelled: &AtomicBool,
    mut at: impl FnMut(&str),
) -> Result<CrashReport, SandboxError> {
    let server = Spec { name: "c".to_owned(), ..Spec::default() };
    let wanted = Crash { server, levers: vec![], by: CrashBy::Kill, commits, connections: 4 };
    let site = scratch.site().cancelled_by(cancelled);
    let mut crashing = false;
    let done = crash(&site, &wanted, &mut |progress| match progress {
        Progress::Loading { .. } => at("load"),
        Progress::Crashing => {
            crashing = true;
            at("crash");
        }
        Progress::Starting { .. } if crashing => at("start"),
        _ => {}
    });
    assert_eq!(scratch.traces(), [""; 0]);
    done
}

fn server(scratch: &Scratch) -> ServerInfo {
    list(&scratch.host.state, scratch.host.machine()).unwrap().remove(0)
}

fn execute(scratch: &Scratch, statements: &[&str]) {
    let mut client = Client::connect(&connect_options(&server(scratch)).unwrap()).unwrap();
    for statement in statements {
        client.execute(statement).unwrap();
    }
}

#[test]
fn a_load_that_ends_early_is_no_crash_and_its_error_is_told() {
    let _one = whole_host();
    let scratch = Scratch::new();
    let drop = "DROP TABLE mydyno_crash.ledger_b";
    let done = crash_with(&scratch, 20_000, &AtomicBool::new(false), |moment| match moment {
        "load" => execute(&scratch, &[drop]),
        moment => panic!("it went on to {moment}"),
    });
    let error = done.unwrap_err();
    assert!(matches!(error, SandboxError::TooFewCommits { wanted: 20_000, .. }), "{error}");
    assert!(error.to_string().contains("1146") && error.to_string().contains("ledger_b"), "{error}");
}

#[test]
fn a_table_that_is_gone_is_empty_and_one_that_cannot_be_read_leaves_unknown_what_is_lost() {
    let _one = whole_host();
    let scratch = Scratch::new();
    let never = AtomicBool::new(false);
    let gone = crash_with(&scratch, 20, &never, |moment| {
        if moment == "crash" {
            execute(&scratch, &["DROP DATABASE mydyno_crash"]);
        }
    });
    let gone = gone.unwrap();
    assert_eq!((gone.lost, gone.not_recovered.as_ref()), (Some(gone.acknowledged), None), "{gone:?}");

    let scratch = Scratch::new();
    // A view of a missing table fails as a damaged table does: the server answers with an error.
    let break_one = [
        "RENAME TABLE mydyno_crash.ledger_a TO mydyno_crash.other",
        "CREATE VIEW mydyno_crash.ledger_a AS SELECT * FROM mydyno_crash.other",
        "DROP TABLE mydyno_crash.other",
    ];
    let broken = crash_with(&scratch, 20, &never, |moment| {
        if moment == "crash" {
            execute(&scratch, &break_one);
        }
    });
    let broken = broken.unwrap();
    assert_eq!((broken.lost, broken.torn, broken.never_sent), (None, None, None), "{broken:?}");
    assert!(broken.not_recovered.as_ref().unwrap().contains("ledger_a"), "{broken:?}");
    assert!(broken.recovery_ms.is_some() && broken.acknowledged >= 20 && !broken.is_sound());
}

#[test]
fn of_a_server_that_does_not_come_back_it_is_unknown_what_is_lost() {
    let _one = whole_host();
    let scratch = Scratch::new();
    let report = crash_with(&scratch, 20, &AtomicBool::new(false), |moment| {
        if moment == "start" {
            let file = Path::new(&server(&scratch).datadir).join("ibdata1");
            OpenOptions::new().write(true).open(file).unwrap().set_len(4096).unwrap();
        }
    });
    let report = report.unwrap();
    assert!(report.not_recovered.is_some() && report.recovery_ms.is_none(), "{report:?}");
    assert_eq!((report.lost, report.torn, report.in_doubt_present), (None, None, None));
    assert!(report.acknowledged >= 20 && !report.is_sound());
}

#[test]
fn an_interruption_in_the_recovery_is_an_interruption() {
    let _one = whole_host();
    let scratch = Scratch::new();
    let cancelled = AtomicBool::new(false);
    let done = crash_with(&scratch, 20, &cancelled, |moment| {
        cancelled.store(moment == "start", Ordering::Relaxed);
    });
    assert!(matches!(done, Err(SandboxError::Interrupted)), "{done:?}");
}
