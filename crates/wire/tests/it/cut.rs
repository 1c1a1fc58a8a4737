//! Sessions of every kind, cut or changed at every byte of every packet that the server sends.

use std::time::{Duration, Instant};

use mydyno_wire::{Client, Compression, ConnectOptions, Rows, ServerKey, Value, WireError};

use crate::fake::{Act, Fake, MYSQL_8, PATIENCE, greeting, ok, packet};
use crate::hostile::{LIMIT_KB, alone, peak_kb};

const COLUMN: &[u8] = b"\x03def\x01s\x01t\x01t\x01c\x01c\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
const SWITCH: &[u8] = b"\xfemysql_native_password\0ABCDEFGHIJKLMNOPQRST\0";
const END: &[u8] = &[0xFE, 0, 0, 2, 0, 0, 0];
const EOF: &[u8] = &[0xFE, 0, 0, 2, 0];
/// The key that openssl made for these tests alone.
const KEY: &str = include_str!("../oracle/rsa-public.pem");

/// A session: what the server sends, each after it has read a packet, and what the client does.
struct Session {
    name: &'static str,
    sends: Vec<Vec<u8>>,
    compression: Vec<Compression>,
    /// Expected result of `run`.
    sees: &'static str,
    run: fn(&mut Client) -> Result<String, WireError>,
}

fn text(client: &mut Client) -> Result<String, WireError> {
    client.query("SELECT c FROM t").map(|rows| cell(&rows))
}

fn cell(rows: &Rows) -> String {
    rows.text(0, 0).unwrap_or_default().into_owned()
}

fn prepared(client: &mut Client) -> Result<String, WireError> {
    let statement = client.prepare("SELECT c FROM t WHERE a = ?")?;
    client.execute_prepared(&statement, &[Value::Int(1)]).map(|rows| cell(&rows))
}

fn changing(client: &mut Client) -> Result<String, WireError> {
    client.use_schema("shop")?;
    let schema = format!("{:?}", client.session_changes());
    client.execute("SET autocommit = 0")?;
    Ok(format!("{schema} {:?}", client.session_changes()))
}

fn sessions() -> Vec<Session> {
    let hello = |plugin: &str| greeting("8.0.36", MYSQL_8, plugin);
    let native = || hello("mysql_native_password");
    let with = |capabilities: u32| greeting("8.0.36", capabilities, "mysql_native_password");
    let result = [packet(1, &[1]), packet(2, COLUMN), packet(3, ROW), packet(4, END)].concat();
    let eof_result =
        [packet(1, &[1]), packet(2, COLUMN), packet(3, EOF), packet(4, ROW), packet(5, EOF)].concat();
    let prepare =
        [packet(1, &[0, 7, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]), packet(2, COLUMN), packet(3, COLUMN)].concat();
    let binary = [packet(1, &[1]), packet(2, COLUMN), packet(3, b"\0\0\x04abcd"), packet(4, END)].concat();
    let tracked = packet(1, b"\0\0\0\x02\x40\0\0\0\x07\x01\x05\x04shop");
    let variable = packet(1, b"\0\0\0\x02\x40\0\0\0\x11\x00\x0f\x0aautocommit\x03OFF");
    let key = packet(4, &[b"\x01", KEY.as_bytes()].concat());
    let full = packet(2, b"\x01\x04");
    let small = [vec![result.len() as u8, 0, 0, 0, 0, 0, 0], result.clone()].concat();
    let session = |name, sends, run: fn(&mut Client) -> _| Session {
        name,
        sends,
        compression: Vec::new(),
        sees: "abcd",
        run,
    };
    vec![
        session("text", vec![native(), ok(2), result.clone()], text),
        session(
            "a result that ends in EOF packets",
            vec![with(MYSQL_8 & !(1 << 24)), ok(2), eof_result],
            text,
        ),
        session("a prepared statement", vec![native(), ok(2), prepare, binary], prepared),
        session("a switch of authentication", vec![native(), packet(2, SWITCH), ok(4), result.clone()], text),
        session(
            "the long way through caching_sha2_password",
            vec![hello("caching_sha2_password"), full, ok(4), result.clone()],
            text,
        ),
        session(
            "sha256_password by the server's key",
            vec![native(), packet(2, b"\xfesha256_password\0ABCDEFGHIJKLMNOPQRST\0"), key, ok(6), result],
            text,
        ),
        Session {
            sees: r#"[Schema("shop")] [Variable { name: "autocommit", value: "OFF" }]"#,
            ..session(
                "changes of the session",
                vec![with(MYSQL_8 | 1 << 23), ok(2), tracked, variable],
                changing,
            )
        },
        Session {
            compression: vec![Compression::Zlib],
            ..session("compressed frames", vec![with(MYSQL_8 | 0x20), ok(2), small], text)
        },
    ]
}

const ROW: &[u8] = b"\x04abcd";

/// Plays a session; the error that it ends in, if it does.
fn play(session: &Session, sends: &[Vec<u8>], patience: Duration) -> Result<String, WireError> {
    let acts = sends.iter().flat_map(|send| [Act::Send(send.clone()), Act::Read]);
    let fake = Fake::new(acts.collect());
    let mut options = options(&fake, session);
    options.connect_timeout = patience;
    options.read_timeout = Some(patience);
    (session.run)(&mut Client::connect(&options)?)
}

fn options(fake: &Fake, session: &Session) -> ConnectOptions {
    let mut options = fake.options();
    options.password = Some("secret".into());
    options.compression.clone_from(&session.compression);
    options.server_key = ServerKey::Ask;
    options
}

#[test]
fn every_session_holds_as_it_is() {
    for session in sessions() {
        let seen =
            play(&session, &session.sends, PATIENCE).unwrap_or_else(|e| panic!("{}: {e}", session.name));
        assert_eq!(seen, session.sees, "{}", session.name);
    }
}

#[test]
fn every_session_cut_or_changed_at_any_byte_ends_in_time_and_within_100_mb() {
    alone("cut::all_cuts_and_changes_in_one_process");
}

#[test]
#[ignore = "run by every_session_cut_or_changed_at_any_byte_ends_in_time_and_within_100_mb"]
fn all_cuts_and_changes_in_one_process() {
    cut_every_session_at_any_byte();
    change_every_session_at_any_byte();
    println!("{} kB", peak_kb());
    assert!(peak_kb() < LIMIT_KB, "{} kB", peak_kb());
}

fn cut_every_session_at_any_byte() {
    for session in sessions() {
        for at in 0..session.sends.len() {
            for cut in 0..session.sends[at].len() {
                let mut sends = session.sends[..=at].to_vec();
                sends[at].truncate(cut);
                // The connection closes after the remaining bytes.
                let last = sends.pop().unwrap();
                let acts = sends.iter().flat_map(|send| [Act::Send(send.clone()), Act::Read]);
                let fake = Fake::new(acts.chain([Act::Send(last)]).collect());
                let ended = Client::connect(&options(&fake, &session))
                    .and_then(|mut client| (session.run)(&mut client));
                let error = ended.expect_err(session.name);
                let closed = matches!(error, WireError::Closed { .. } | WireError::Io { .. });
                assert!(closed, "{}: packet {at} cut at {cut}: {error}", session.name);
            }
        }
    }
}

fn change_every_session_at_any_byte() {
    let patience = Duration::from_millis(60);
    for session in sessions() {
        for at in 0..session.sends.len() {
            for byte in 0..session.sends[at].len() {
                for change in [0xFF, 0x01] {
                    let mut sends = session.sends.clone();
                    sends[at][byte] ^= change;
                    let start = Instant::now();
                    // Some changes have no effect, such as those in names and scrambles; none may hang or panic. The
                    // timeouts end those that keep waiting.
                    let _ = play(&session, &sends, patience);
                    let took = start.elapsed();
                    assert!(took < PATIENCE, "{}: byte {byte} of packet {at}: {took:?}", session.name);
                }
            }
        }
    }
}
