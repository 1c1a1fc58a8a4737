//! Servers that mean harm: every case ends in an error within its timeout and within 100 MB.

use std::time::{Duration, Instant};

use mydyno_wire::{Client, Compression, ConnectOptions, WireError};

use crate::fake::{Act, Fake, MYSQL_8, PATIENCE, greeting, ok, packet, welcome};

const COLUMN: &[u8] = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
/// All memory of a process that met every case.
pub const LIMIT_KB: u64 = 100_000;

const ZLIB_BOMB: &str = "a compression bomb of zlib";
const ZSTD_BOMB: &str = "a compression bomb of zstd";

/// 256 packets of one payload that may follow each other for ever, beginning with number `first`.
fn wheel(first: u8, payload: &[u8]) -> Vec<u8> {
    (0..=255).flat_map(|i: u8| packet(first.wrapping_add(i), payload)).collect()
}

/// Answers to a query, by name.
fn answers() -> Vec<(&'static str, Vec<Act>)> {
    let head = |columns: u8| [packet(1, &[columns]), packet(2, COLUMN)].concat();
    let bomb = |inner: Vec<u8>| {
        let length = inner.len() as u32;
        [&length.to_le_bytes()[..3], &[0, 0xFF, 0xFF, 0xFF], &inner].concat()
    };
    // 16 MiB of 520 bytes: a server can send thirty of them at once.
    let dense = bomb(zstd::bulk::compress(&vec![0xFB; 0xFF_FFFF], 1).unwrap());
    assert!(dense.len() < 1024, "{} bytes", dense.len());
    vec![
        ("endless rows of a byte", vec![Act::Send(head(1)), Act::Repeat(wheel(3, b"\x01x"))]),
        ("endless rows of NULL", vec![Act::Send(head(1)), Act::Repeat(wheel(3, b"\xfb"))]),
        ("endless rows of a megabyte", vec![Act::Send(head(1)), Act::Repeat(wheel(3, &vec![0xFB; 20_000]))]),
        (
            "columns without end",
            vec![
                Act::Send(packet(1, b"\xfc\xff\xff")),
                Act::Repeat(wheel(2, &[COLUMN, &[0; 6_000]].concat())),
            ],
        ),
        (
            "a column count of 4 billion",
            vec![Act::Send(packet(1, b"\xfe\xff\xff\xff\xff\0\0\0\0")), Act::Hang],
        ),
        ("results without end", vec![Act::Repeat(wheel(1, &[0, 0, 0, 10, 0, 0, 0]))]),
        (
            "a cell of 4 GB",
            vec![Act::Send([head(1), packet(3, b"\xfe\xff\xff\xff\xff\0\0\0\0x")].concat()), Act::Hang],
        ),
        ("a packet without end", vec![Act::EndlessFrames]),
        (
            "an error of 15 MiB",
            vec![Act::Send(vec![0xFF, 0xFF, 0xEF, 1, 0xFF, 0x15, 4]), Act::Repeat(vec![b'x'; 1 << 16])],
        ),
        (
            "many session changes",
            vec![
                Act::Send(packet(
                    1,
                    &[&b"\0\0\0\x02\x40\0\0\0\xfd\0\0\x08"[..], &[2, 0].repeat(1 << 18)].concat(),
                )),
                Act::Hang,
            ],
        ),
        ("a file request", vec![Act::Send(packet(1, b"\xfb/etc/shadow")), Act::Hang]),
        ("a slow trickle", vec![Act::Send(head(1)), Act::Send(vec![200, 0, 0]), Act::Hang]),
        ("a drip of rows", vec![Act::Send(head(1)), Act::Drip(wheel(3, b"\x01x"))]),
        ("silence", vec![Act::Hang]),
        (ZLIB_BOMB, vec![Act::Repeat(bomb(flate2_zeroes(0xFF_FFFF)))]),
        (ZSTD_BOMB, vec![Act::Repeat(dense.repeat(100))]),
    ]
}

fn flate2_zeroes(length: usize) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..length / 4095 {
        encoder.write_all(&[0xFB; 4095]).unwrap();
    }
    encoder.write_all(&vec![0xFB; length % 4095]).unwrap();
    encoder.finish().unwrap()
}

/// Greetings and what follows them before authentication ends.
fn handshakes() -> Vec<(&'static str, Vec<Act>)> {
    let hello = || Act::Send(greeting("8.0.36", MYSQL_8, "caching_sha2_password"));
    vec![
        ("a greeting of 16 MiB", vec![Act::Send(vec![0xFE, 0xFF, 0xFF, 0]), Act::Repeat(vec![10; 4096])]),
        ("a greeting without an end", vec![Act::Repeat(vec![0xFF; 4096])]),
        ("fast answers without an end", vec![hello(), Act::Read, Act::Repeat(wheel(2, b"\x01\x03"))]),
        (
            "switches without an end",
            vec![
                hello(),
                Act::Read,
                Act::Repeat(wheel(2, b"\xfemysql_native_password\0ABCDEFGHIJKLMNOPQRST\0")),
            ],
        ),
        (
            "a key of garbage",
            vec![
                hello(),
                Act::Read,
                Act::Send(packet(2, b"\x01\x04")),
                Act::Read,
                Act::Send(packet(4, &[1; 60_000])),
            ],
        ),
        ("two results at once", vec![hello(), Act::Read, Act::Send([ok(2), ok(3)].concat()), Act::Hang]),
        ("silence", vec![Act::Hang]),
        (
            "a drip of a greeting",
            vec![Act::Drip(greeting("8.0.36", MYSQL_8, "caching_sha2_password").repeat(99))],
        ),
        ("a drip behind the greeting", vec![hello(), Act::Read, Act::Drip(vec![1])]),
    ]
}

fn bounded(options: &mut ConnectOptions) {
    options.connect_timeout = Duration::from_secs(2);
    options.read_timeout = Some(Duration::from_secs(4));
    options.password = Some("secret".into());
}

/// One case: it must end in an error within its timeout.
fn meet(name: &str, script: Vec<Act>, query: bool) {
    let compression = match name {
        ZLIB_BOMB => Some((Compression::Zlib, 0x20)),
        ZSTD_BOMB => Some((Compression::Zstd, 1 << 26)),
        _ => None,
    };
    let script = match (query, compression) {
        (false, _) => script,
        (true, None) => welcome([vec![Act::Read], script].concat()),
        (true, Some((_, capability))) => {
            let hello = greeting("8.0.36", MYSQL_8 | capability, "mysql_native_password");
            [vec![Act::Send(hello), Act::Read, Act::Send(ok(2)), Act::Read], script].concat()
        }
    };
    let fake = Fake::new(script);
    let mut options = fake.options();
    bounded(&mut options);
    options.compression.extend(compression.map(|(algorithm, _)| algorithm));
    let start = Instant::now();
    let error = match Client::connect(&options) {
        Ok(mut client) => client.query("SELECT c FROM t").expect_err(name),
        Err(error) => error,
    };
    // Most scripts have no end of their own, so that nothing but a limit or a timeout of the client has ended them.
    assert!(start.elapsed() < PATIENCE, "{name} took {:?}", start.elapsed());
    assert!(!matches!(error, WireError::Server(_)), "{name}: {error}");
    assert!(error.to_string().len() < 1000, "{name}: {error}");
}

#[test]
fn hostile_servers_end_in_errors_within_their_timeouts_and_100_mb() {
    alone("hostile::all_cases_in_one_process");
}

/// Runs an ignored test in a process of its own, so that its memory is the client's and not that of other tests.
pub fn alone(test: &str) {
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let reported =
        format!("{}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    assert!(child.status.success() && reported.contains("1 passed"), "{reported}");
}

#[test]
#[ignore = "run by hostile_servers_end_in_errors_within_their_timeouts_and_100_mb"]
fn all_cases_in_one_process() {
    for (name, script) in handshakes() {
        meet(name, script, false);
    }
    for (name, script) in answers() {
        let before = peak_kb();
        meet(name, script, true);
        println!("{name}: {} kB, before {before} kB", peak_kb());
        assert!(peak_kb() < LIMIT_KB, "{name}: {} kB, before {before} kB", peak_kb());
    }
}

/// The most memory that this process ever had.
pub fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
