//! A server that follows a script: for what real ones cannot be made to do.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mydyno_wire::{ConnectOptions, Endpoint};
use tempfile::TempDir;

/// Longer than a machine stands still: a wait of this length is a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// One thing that the fake server does.
#[derive(Debug, Clone)]
pub enum Act {
    /// Sends bytes as they are.
    Send(Vec<u8>),
    /// Sends bytes one at a time.
    Trickle(Vec<u8>),
    /// Sends the same bytes over and over, one every ten milliseconds, until the client goes away.
    Drip(Vec<u8>),
    /// Reads one whole packet of the client.
    Read,
    /// Sends the same bytes until the client goes away.
    Repeat(Vec<u8>),
    /// Sends full frames of one packet without an end.
    EndlessFrames,
    /// Sends nothing until the client goes away.
    Hang,
    /// Neither sends nor reads for this long.
    Freeze(Duration),
}

/// A fake server for one connection. It closes when its script is over.
pub struct Fake {
    folder: TempDir,
    hangs: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Vec<u8>>>>,
}

impl Fake {
    /// Listens, and plays the script to the first client.
    pub fn new(script: Vec<Act>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let hangs = Arc::new(AtomicBool::new(false));
        let hung = Arc::clone(&hangs);
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            play(stream, script, &hung)
        });
        Self { folder, hangs, thread: Some(thread) }
    }

    /// Whether it has come to an act that lasts until the client goes away.
    pub fn hangs(&self) -> bool {
        self.hangs.load(Ordering::Relaxed)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// Options with timeouts that do not matter; tests of timeouts set shorter ones.
    pub fn options(&self) -> ConnectOptions {
        let mut options = ConnectOptions::new(Endpoint::Unix(self.socket()), "app");
        options.connect_timeout = PATIENCE;
        options.read_timeout = Some(PATIENCE);
        options
    }

    /// The packets that the client sent, once both sides are done.
    pub fn received(mut self) -> Vec<Vec<u8>> {
        self.thread.take().unwrap().join().unwrap()
    }
}

fn play(mut stream: UnixStream, script: Vec<Act>, hangs: &AtomicBool) -> Vec<Vec<u8>> {
    let mut received = Vec::new();
    for act in script {
        hangs.store(matches!(act, Act::Hang | Act::Drip(_)), Ordering::Relaxed);
        // A client that went away ends the script; that is what many tests are about.
        let result = match act {
            Act::Send(bytes) => stream.write_all(&bytes),
            Act::Trickle(bytes) => bytes.chunks(1).try_for_each(|byte| stream.write_all(byte)),
            Act::Read => read_packet(&mut stream).map(|packet| received.push(packet)),
            Act::Repeat(bytes) => loop {
                if let Err(e) = stream.write_all(&bytes) {
                    break Err(e);
                }
            },
            Act::Drip(bytes) => bytes.iter().cycle().try_for_each(|byte| {
                std::thread::sleep(Duration::from_millis(10));
                stream.write_all(&[*byte])
            }),
            Act::EndlessFrames => endless_frames(&mut stream),
            Act::Freeze(time) => {
                std::thread::sleep(time);
                Ok(())
            }
            Act::Hang => stream.read_to_end(&mut Vec::new()).map(drop),
        };
        if result.is_err() {
            break;
        }
    }
    received
}

fn endless_frames(stream: &mut UnixStream) -> std::io::Result<()> {
    let block = [b'x'; 4095];
    let mut number = 1u8;
    loop {
        stream.write_all(&[0xFF, 0xFF, 0xFF, number])?;
        for _ in 0..0xFF_FFFF / block.len() {
            stream.write_all(&block)?;
        }
        stream.write_all(&block[..0xFF_FFFF % block.len()])?;
        number = number.wrapping_add(1);
    }
}

fn read_packet(stream: &mut UnixStream) -> std::io::Result<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header)?;
    let length = u64::from(u32::from_le_bytes([header[0], header[1], header[2], 0]));
    // What a compressed frame says of its length, read as a packet's, is not a reason for so much memory.
    let mut payload = Vec::new();
    if stream.take(length).read_to_end(&mut payload)? as u64 == length {
        Ok(payload)
    } else {
        Err(std::io::ErrorKind::UnexpectedEof.into())
    }
}

/// A packet.
pub fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    mydyno_wire::packet::put_packet(&mut out, sequence, &[payload]);
    out
}

/// Capabilities of a MySQL 8 without those that this client never takes.
pub const MYSQL_8: u32 = 0x01FF_F7DF;

/// A greeting packet.
pub fn greeting(version: &str, capabilities: u32, plugin: &str) -> Vec<u8> {
    let mut p = vec![10];
    p.extend_from_slice(version.as_bytes());
    p.push(0);
    p.extend_from_slice(&77u32.to_le_bytes());
    p.extend_from_slice(b"abcdefgh\0");
    p.extend_from_slice(&capabilities.to_le_bytes()[..2]);
    p.extend_from_slice(&[45, 2, 0]);
    p.extend_from_slice(&capabilities.to_le_bytes()[2..]);
    p.push(21);
    p.extend_from_slice(&[0; 10]);
    p.extend_from_slice(b"ijklmnopqrst\0");
    p.extend_from_slice(plugin.as_bytes());
    p.push(0);
    packet(0, &p)
}

/// An OK packet.
pub fn ok(sequence: u8) -> Vec<u8> {
    packet(sequence, &[0, 0, 0, 2, 0, 0, 0])
}

/// An error packet.
pub fn error(sequence: u8, code: u16, text: &str) -> Vec<u8> {
    let mut payload = vec![0xFF];
    payload.extend_from_slice(&code.to_le_bytes());
    payload.extend_from_slice(text.as_bytes());
    packet(sequence, &payload)
}

/// A script that accepts every login, and continues with `then`.
pub fn welcome(then: Vec<Act>) -> Vec<Act> {
    let mut script =
        vec![Act::Send(greeting("8.0.36", MYSQL_8, "mysql_native_password")), Act::Read, Act::Send(ok(2))];
    script.extend(then);
    script
}
