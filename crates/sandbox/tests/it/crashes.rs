//! Crash tests on a real server: no acknowledged commit is lost where durability is promised, and some are lost where
//! it is not.
//!
//! `MYDYNO_COMMITS` sets the number of commits before each crash.

use mydyno_host::emulated::{self, Service};
use mydyno_host::loops;
use mydyno_host::setting::AllowHostChange;
use mydyno_model::crash::{CrashBy, CrashReport};
use mydyno_sandbox::Spec;
use mydyno_sandbox::crash::{Crash, crash};

use crate::scratch::{Scratch, lever_set};
use crate::whole_host::whole_host;

fn report(scratch: &Scratch, by: CrashBy, commits: u64, levers: &[(&str, &str)]) -> CrashReport {
    let wanted: Vec<(String, String)> =
        levers.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect();
    let server = Spec {
        name: "c".to_owned(),
        lever_set: lever_set(&wanted),
        allow_host_change: Some(AllowHostChange::by_the_user()),
        ..Spec::default()
    };
    let levers = levers.iter().map(|(id, value)| format!("{id}={value}")).collect();
    let wanted = Crash { server, levers, by, commits, connections: 8 };
    let site = scratch.site();
    let report = crash(&site, &wanted, &mut |_| {}).unwrap();
    assert_eq!(scratch.traces(), [""; 0]);
    let ms = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |ms| format!("{ms:.0} ms"));
    let count = |value: Option<u64>| value.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
    println!(
        "{:?} of {} with {}: lost {}, torn {}, never sent {} of {} acknowledged; recovery {}, mount {}",
        report.by,
        report.engine,
        report.levers.join(" "),
        count(report.lost),
        count(report.torn),
        count(report.never_sent),
        report.acknowledged,
        ms(report.recovery_ms),
        ms(report.mount_ms)
    );
    report
}

/// Commits until the crash: `MYDYNO_COMMITS`, or the default of a test.
fn commits(usual: u64) -> u64 {
    std::env::var("MYDYNO_COMMITS").map_or(usual, |n| n.parse().unwrap())
}

fn emulates(scratch: &Scratch) -> bool {
    let checked = emulated::check(scratch.host.machine()).and_then(|()| loops::check(scratch.host.machine()));
    if let Err(lack) = &checked {
        println!("not tested: {lack}");
    }
    checked.is_ok()
}

/// The process that serves the disks of these tests: its last argument is the folder. Does nothing without it.
#[test]
fn serves_a_disk() {
    let folder = std::env::args_os().next_back().map(std::path::PathBuf::from).filter(|p| p.is_absolute());
    if let Some(folder) = folder.filter(|path| path.join("emulated.json").exists()) {
        emulated::serve(&folder).unwrap();
    }
}

/// The process that serves emulated disks: this test binary itself.
pub fn service() -> Service {
    Service::of_this_program(["--exact", "crashes::serves_a_disk", "--nocapture"])
}

#[test]
fn a_killed_server_loses_nothing_that_the_kernel_has() {
    let _one = whole_host();
    let scratch = Scratch::new();
    let report = report(
        &scratch,
        CrashBy::Kill,
        commits(1000),
        &[("option.innodb_flush_log_at_trx_commit", "2"), ("option.innodb_buffer_pool_size", "32M")],
    );
    assert!(report.is_sound() && report.acknowledged >= commits(1000) && report.disk.is_none(), "{report:?}");
    assert!(report.durability.contains(&("innodb_flush_log_at_trx_commit".to_owned(), "2".to_owned())));
    assert!(report.recovery_ms.unwrap() > 0.0 && report.in_doubt_present.unwrap() <= 8);
}

/// Report of a power cut of a server with durable settings on an emulated disk with ext4; `None` where such a disk is
/// not possible.
fn power_cut(mount: &[(&str, &str)], commits: u64) -> Option<CrashReport> {
    let scratch = Scratch::new();
    if !emulates(&scratch) {
        return None;
    }
    let mut settings = vec![
        ("disk.file_system", "ext4"),
        ("disk.medium", "emulated"),
        ("option.innodb_flush_log_at_trx_commit", "1"),
        ("option.innodb_buffer_pool_size", "32M"),
    ];
    settings.extend(mount);
    Some(report(&scratch, CrashBy::PowerCut, commits, &settings))
}

#[test]
fn durable_settings_on_a_disk_that_honours_flushes_lose_nothing_in_a_power_cut() {
    let _one = whole_host();
    let Some(report) = power_cut(&[], commits(1000)) else { return };
    assert!(report.is_sound() && report.acknowledged >= commits(1000), "{report:?}");
    assert_eq!(report.disk.as_deref(), Some("emulated disk"));
    assert!(report.mount_ms.unwrap() > 0.0);
}

#[test]
fn without_barriers_a_power_cut_loses_what_was_acknowledged() {
    let _one = whole_host();
    let Some(report) = power_cut(&[("disk.mount_options", "barrier=0")], commits(300)) else { return };
    assert!(report.lost.unwrap() > 0 && report.disk_lost_bytes.unwrap() > 0, "{report:?}");
}
