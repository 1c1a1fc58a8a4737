//! Damaged and hostile files before the verbs that read files: tests/hostile/hostile.py.

use std::path::Path;
use std::process::Command;

use crate::home::{Home, binary};

/// Runs `count` files, with more time than `make test-hostile` allows to a release build.
fn files(count: usize, seconds: u64) {
    let home = Home::new();
    let record = home.path().join("record");
    let record = record.to_str().unwrap();
    let made = home.end(&[
        "bench",
        "oltp_point_select",
        "--sandbox",
        "--connections",
        "1,2",
        "--time",
        "3s",
        "--warmup",
        "1s",
        "--think",
        "10ms",
        "--tables",
        "1",
        "--table-size",
        "100",
        "--quiet",
        "--out",
        record,
    ]);
    assert_eq!(made.status, 0, "{}", made.stderr);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile/hostile.py");
    let output = Command::new("python3")
        .arg(script)
        .args(["--bin", binary().to_str().unwrap(), "--record", record])
        .args(["--count", &count.to_string(), "--limit-s", &seconds.to_string()])
        .output()
        .expect("python3 is needed");
    let reported = String::from_utf8_lossy(&output.stdout).into_owned();
    println!("{reported}");
    assert!(output.status.success(), "{reported}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_hundred_hostile_files_end_within_their_limits_and_their_damage_is_told() {
    files(108, 30);
}

#[test]
#[ignore = "takes minutes: make test-hostile"]
fn all_hostile_files_end_within_their_limits_and_their_damage_is_told() {
    files(1600, 10);
}
