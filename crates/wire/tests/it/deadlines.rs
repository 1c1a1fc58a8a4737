//! Every call that blocks ends: at its deadline, when it is cancelled, or when the server is not at work.

use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mydyno_wire::{Client, ConnectOptions, Endpoint, WireError};

use crate::fake::{Act, Fake, MYSQL_8, greeting, ok, packet, welcome};
use crate::server;
use crate::until::until;

const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";

/// Sets the flag of `options` once the call has come to a place; the error of connecting and of a query, and how long it took from
/// then.
fn cancelled(options: &mut ConnectOptions, come: impl FnOnce() + Send) -> (WireError, Duration) {
    let flag = Arc::new(AtomicBool::new(false));
    options.cancel = Some(Arc::clone(&flag));
    std::thread::scope(|scope| {
        let setter = scope.spawn(move || {
            come();
            flag.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let error = Client::connect(options).and_then(|mut client| client.query("SELECT 1")).unwrap_err();
        let ended = Instant::now();
        (error, ended.saturating_duration_since(setter.join().unwrap()))
    })
}

/// A connect(2) that waits tells nobody that it does.
fn while_it_connects() {
    std::thread::sleep(Duration::from_millis(300));
}

#[test]
fn a_cancelled_call_ends_within_a_second_wherever_the_server_leaves_it() {
    let hello = || vec![Act::Send(greeting("8.0.36", MYSQL_8, "mysql_native_password")), Act::Read];
    let head = [packet(1, &[1]), packet(2, COLUMN)].concat();
    let after = |more: Vec<Act>| welcome([vec![Act::Read], more].concat());
    let scripts = [
        ("greeting", vec![Act::Hang]),
        ("authentication", [hello(), vec![Act::Hang]].concat()),
        ("answer", after(vec![Act::Hang])),
        (
            "a row of 4 GB",
            after(vec![Act::Send(head.clone()), Act::Send(vec![0xFF, 0xFF, 0xFF, 3]), Act::Hang]),
        ),
        ("a drip", after(vec![Act::Send(head), Act::Drip(vec![5, 0, 0, 3])])),
    ];
    for (name, script) in scripts {
        for limit in [None, Some(Duration::from_secs(60))] {
            let fake = Fake::new(script.clone());
            let mut options = fake.options();
            options.read_timeout = limit;
            let (error, took) = cancelled(&mut options, || until(name, || fake.hangs()));
            if name == "a drip" {
                // Its bytes are no valid packets for long.
                assert!(took < Duration::from_secs(1), "{name}: {took:?}");
                continue;
            }
            assert!(error.is_cancelled(), "{name}: {error}");
            assert!(took < Duration::from_secs(1), "{name}: {took:?}");
        }
    }
}

#[test]
fn a_cancelled_call_does_not_wait_for_a_host_or_a_full_queue() {
    // 192.0.2.0/24 is for documentation (RFC 5737): nothing answers there, or the network says so at once.
    let mut options = ConnectOptions::new(Endpoint::Tcp { host: "192.0.2.1".into(), port: 3306 }, "app");
    let (error, took) = cancelled(&mut options, while_it_connects);
    assert!(error.is_cancelled() || matches!(error, WireError::Unreachable { .. }), "{error}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    // SAFETY: the descriptor is an open listener's; the call changes only the length of its queue.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    let waiting = std::os::unix::net::UnixStream::connect(&path).unwrap();
    let mut options = ConnectOptions::new(Endpoint::Unix(path.clone()), "app");
    options.connect_timeout = Duration::from_secs(60);
    let (error, took) = cancelled(&mut options, while_it_connects);
    assert!(error.is_cancelled(), "{error}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    drop((listener, waiting));
}

#[test]
fn a_server_that_is_not_at_work_is_given_up_although_no_read_timeout_is_set() {
    let fake = Fake::new(welcome(vec![Act::Read, Act::Hang]));
    let mut options = fake.options();
    options.read_timeout = None;
    options.look_interval = Duration::from_millis(300);
    options.connect_timeout = Duration::from_secs(1);
    let mut client = Client::connect(&options).unwrap();
    let start = Instant::now();
    let error = client.query("ALTER TABLE t ADD INDEX (k)").unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    let text = error.to_string();
    for part in ["within 0.3 s", "does not seem to be at work", "second connection", "--read-timeout"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_server_that_does_not_read_is_given_up() {
    let fake = Fake::new(welcome(vec![Act::Freeze(Duration::from_secs(20))]));
    let mut options = fake.options();
    options.read_timeout = Some(Duration::from_millis(300));
    let mut client = Client::connect(&options).unwrap();
    let error = client.execute(&format!("DO '{}'", "x".repeat(500_000))).unwrap_err();
    assert!(matches!(error, WireError::Timeout { .. }), "{error}");
    assert!(error.to_string().contains("does not read"), "{error}");
}

#[test]
fn a_read_timeout_that_was_given_holds_for_long_statements_too() {
    let mut options = ConnectOptions::new(Endpoint::Unix("/s".into()), "app");
    assert_eq!(options.for_long_statements().read_timeout, None);
    options.read_timeout = Some(Duration::from_secs(5));
    options.read_timeout_given = true;
    assert_eq!(options.for_long_statements().read_timeout, Some(Duration::from_secs(5)));
}

#[test]
fn an_answer_that_trickles_within_its_deadline_is_read() {
    let fake = Fake::new(welcome(vec![Act::Read, Act::Trickle(ok(1))]));
    Client::connect(&fake.options()).unwrap().execute("DO 1").unwrap();
}

#[test]
fn a_real_server_that_is_at_work_may_take_longer_than_a_look() {
    let server = server::shared();
    let mut options = server.options();
    options.read_timeout = None;
    options.look_interval = Duration::from_millis(400);
    let mut client = Client::connect(&options).unwrap();
    let rows = client.query("SELECT SLEEP(1.5)").unwrap();
    assert_eq!(rows.scalar().unwrap(), "0");
}
