//! A server that follows a script: it accepts every login, prepares everything, and answers executions as scripted.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How executions are answered.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// OK.
    Whole,
    /// OK with a wrong sequence number; so is the first packet of the answer to a prepare.
    Misnumbered,
    /// OK; the definitions of a prepared statement do not follow its first packet in their numbers.
    Scattered,
    /// OK this many times on a connection, then half of an OK and a close at once.
    HalfThenClose {
        /// Whole answers before.
        after: usize,
    },
    /// An error.
    Error,
    /// OK after a while.
    After(Duration),
    /// OK, except for a period without any answers.
    Stall {
        /// From the first execution to its start.
        from: Duration,
        /// Its length.
        length: Duration,
    },
    /// OK this many times in total, then all connections are closed and none accepted for a while, as when a server
    /// restarts.
    Restart {
        /// Whole answers before.
        after: usize,
        /// How long it is away at the least.
        away: Duration,
        /// It is away until this many were closed and one was refused, however slow this machine is.
        connections: usize,
    },
}

/// The server; its threads end when their connections do.
pub struct Script {
    folder: tempfile::TempDir,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    accepted: AtomicUsize,
    executed: AtomicUsize,
    /// Connections that found the server gone.
    thrown: AtomicUsize,
    /// Refused connections.
    refused: AtomicUsize,
    first: Mutex<Option<Instant>>,
    gone: Mutex<Option<Instant>>,
}

impl State {
    fn since_first(&self) -> Duration {
        self.first.lock().unwrap().get_or_insert_with(Instant::now).elapsed()
    }

    /// Whether the server is away.
    fn is_away(&self, answer: Answer) -> bool {
        let Answer::Restart { after, away, connections } = answer else { return false };
        let mut gone = self.gone.lock().unwrap();
        if gone.is_none() && self.executed.load(Ordering::SeqCst) >= after {
            *gone = Some(Instant::now());
        }
        let noticed =
            || self.thrown.load(Ordering::SeqCst) >= connections && self.refused.load(Ordering::SeqCst) > 0;
        gone.is_some_and(|since| since.elapsed() < away || !noticed())
    }
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

impl Script {
    pub fn start(answer: Answer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        let state = Arc::new(State::default());
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                state.accepted.fetch_add(1, Ordering::SeqCst);
                std::thread::spawn(move || serve(stream, answer, &state));
            }
        });
        Self { folder, state }
    }

    /// Connections that were accepted.
    pub fn accepted(&self) -> usize {
        self.state.accepted.load(Ordering::SeqCst)
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }
}

fn framed(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    packet.push(sequence);
    packet.extend_from_slice(payload);
    packet
}

fn greeting() -> Vec<u8> {
    let mut payload = vec![10];
    payload.extend_from_slice(b"5.5.5-10.11.0-MariaDB\0");
    payload.extend_from_slice(&7u32.to_le_bytes());
    payload.extend_from_slice(b"12345678\0");
    // Protocol 4.1, secure connection, plugin authentication; no DEPRECATE_EOF.
    let capabilities: u32 = 0x0000_0001 | 0x0000_0200 | 0x0000_2000 | 0x0000_8000 | 0x0008_0000;
    payload.extend_from_slice(&capabilities.to_le_bytes()[..2]);
    payload.extend_from_slice(&[8, 2, 0]);
    payload.extend_from_slice(&capabilities.to_le_bytes()[2..]);
    payload.push(21);
    payload.extend_from_slice(&[0; 10]);
    payload.extend_from_slice(b"123456789012\0mysql_native_password\0");
    framed(0, &payload)
}

fn read_packet(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut header = [0; 4];
    stream.read_exact(&mut header).ok()?;
    let mut payload = vec![0; u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize];
    stream.read_exact(&mut payload).ok()?;
    Some(payload)
}

fn serve(mut stream: UnixStream, answer: Answer, state: &State) -> Option<()> {
    if state.is_away(answer) {
        state.refused.fetch_add(1, Ordering::SeqCst);
        return None;
    }
    stream.write_all(&greeting()).ok()?;
    read_packet(&mut stream)?;
    stream.write_all(&framed(2, OK)).ok()?;
    let mut executed = 0;
    loop {
        let command = read_packet(&mut stream)?;
        match command.first()? {
            // COM_STMT_PREPARE: statement 1, no columns, as many parameters as there are question marks.
            0x16 => {
                let params = command.iter().filter(|b| **b == b'?').count() as u8;
                let first = if matches!(answer, Answer::Misnumbered) { 7 } else { 1 };
                let next = if matches!(answer, Answer::Scattered) { 9 } else { first + 1 };
                stream.write_all(&framed(first, &[0, 1, 0, 0, 0, 0, 0, params, 0, 0, 0, 0])).ok()?;
                for n in 0..params {
                    let mut definition = vec![3];
                    definition.extend_from_slice(b"def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\x08\0\0\0\0\0");
                    stream.write_all(&framed(next + n, &definition)).ok()?;
                }
                if params > 0 {
                    stream.write_all(&framed(next + params, &[0xFE, 0, 0, 2, 0])).ok()?;
                }
            }
            0x17 => {
                match answer {
                    Answer::After(pause) => std::thread::sleep(pause),
                    Answer::Stall { from, length } => {
                        let now = state.since_first();
                        if now >= from && now < from + length {
                            std::thread::sleep(from + length - now);
                        }
                    }
                    Answer::Restart { .. } if state.is_away(answer) => {
                        state.thrown.fetch_add(1, Ordering::SeqCst);
                        return None;
                    }
                    _ => {}
                }
                match answer {
                    Answer::Misnumbered => stream.write_all(&framed(7, OK)).ok()?,
                    Answer::Error => stream.write_all(&framed(1, b"\xff\x7a\x04#42S02no such table")).ok()?,
                    Answer::HalfThenClose { after } if executed == after => {
                        let whole = framed(1, OK);
                        // The close follows before the client has had a chance to read.
                        stream.write_all(&whole[..whole.len() / 2]).ok()?;
                        return None;
                    }
                    _ => stream.write_all(&framed(1, OK)).ok()?,
                }
                executed += 1;
                state.executed.fetch_add(1, Ordering::SeqCst);
            }
            0x01 => return None,
            _ => stream.write_all(&framed(1, OK)).ok()?,
        }
    }
}
