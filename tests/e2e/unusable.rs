//! Audits of servers that accept the login and answer nothing that facts can be taken from, and of files without an end.

use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::process::{Command, Stdio};

use crate::fake::{Act, Fake, error, packet, welcome};
use crate::home::Home;

fn audit<'a>(socket: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
    [&["audit", "--no-defaults", "--window", "0s", "-uapp", "-S", socket], rest].concat()
}

#[test]
fn an_audit_of_a_server_that_answers_nothing_usable_ends_with_3_and_says_why() {
    let home = Home::new();
    let error = error(1, 1105, "go away");
    // One column, one row that holds "garbage": a well-formed answer to no question of ours.
    let column = packet(2, b"\x03def\0\0\0\x01x\x01x\x0c\x2d\0\0\x01\0\0\xfd\0\0\0\0\0");
    let row =
        [packet(1, b"\x01"), column, packet(3, b"\x07garbage"), packet(4, b"\xfe\0\0\x02\0\0\0")].concat();
    let each = |answer: &[u8]| (0..2000).flat_map(|_| [Act::Read, Act::Send(answer.to_vec())]).collect();
    for (name, then, why) in [
        ("drops", vec![Act::Read], "closed the connection"),
        ("mutes", vec![Act::Read, Act::Hang], "no complete answer within"),
        ("refuses", each(&error), "go away"),
        ("garbles", each(b"\x05\0\0\x01\x42\x42\x42\x42\x42"), "no fact of the server"),
        ("answers what was not asked", each(&row), "garbage"),
    ] {
        let fake = Fake::new(welcome(then));
        let socket = fake.socket().display().to_string();
        let reported = home.fails(3, &audit(&socket, &["--fail-on", "info"]));
        assert!(
            reported.contains("no fact of the server could be read") && reported.contains(why),
            "{name}: {reported}"
        );
    }
}

#[test]
#[allow(clippy::zombie_processes, reason = "wait4 waits for the child and tells its memory")]
fn error_packets_of_10_mb_cost_an_audit_little_memory() {
    let home = Home::new();
    let error = error(1, 1105, &"x".repeat(10 << 20));
    let fake = Fake::new(welcome(vec![Act::Read, Act::Repeat(error)]));
    let socket = fake.socket().display().to_string();
    let mut command = home.command(&audit(&socket, &[]));
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut status = 0;
    // SAFETY: all bit patterns are valid for this plain struct.
    let mut used: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the child belongs to this process and has no other waiter; the kernel fills both values.
    unsafe { libc::wait4(child.id() as i32, &mut status, 0, &mut used) };
    assert_eq!(libc::WEXITSTATUS(status), 3);
    assert!(used.ru_maxrss < 200 << 10, "{} KiB", used.ru_maxrss);
    println!("audit with error packets of 10 MiB: {} KiB", used.ru_maxrss);
}

#[test]
fn pipes_devices_and_huge_files_are_refused_by_an_audit() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    let large = folder.path().join("large");
    fs::write(&large, "max_connections=1\n".repeat(260_000)).unwrap();
    for (path, why) in [
        (pipe.to_str().unwrap(), "not a regular file"),
        ("/dev/zero", "not a regular file"),
        (large.to_str().unwrap(), "larger than"),
    ] {
        let reported = home.fails(2, &["audit", "--config", path, "--for", "mysql-9.7"]);
        assert!(reported.contains(why), "{path}: {reported}");
        let reported = home.fails(2, &["audit", "--host-only", "--accept", path]);
        assert!(reported.contains(why), "{path}: {reported}");
    }
    for path in [pipe.to_str().unwrap(), "/dev/zero"] {
        let reported = home.fails(3, &["audit", "--from", path]);
        assert!(reported.contains("not a regular file"), "{path}: {reported}");
    }
}

#[test]
fn what_cannot_be_told_counts_when_asked() {
    let home = Home::new();
    let folder = tempfile::tempdir().unwrap();
    let bundle = folder.path().join("b.json");
    let facts = r#"{"schema":"mydyno.facts/1","created":"2026-01-01T00:00:00Z","mydyno":{"version":"0","commit":"0"},"facts":{}}"#;
    fs::write(&bundle, facts).unwrap();
    let from = ["audit", "--from", bundle.to_str().unwrap()];
    home.fine(&[&from[..], &["--fail-on", "info"]].concat());
    home.fails(1, &[&from[..], &["--fail-on-unknown"]].concat());
    home.fails(1, &[&from[..], &["--fail-on-unknown", "--fail-on", "low"]].concat());
}
