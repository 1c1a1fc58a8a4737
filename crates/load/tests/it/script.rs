//! A server that follows a script: it lets everybody in, prepares everything, and answers executions as told.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

/// How executions are answered.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// OK.
    Whole,
    /// OK so many times on a connection, then half of an OK and a close at once.
    HalfThenClose {
        /// Whole answers before.
        after: usize,
    },
    /// An error.
    Error,
}

/// The server; its threads end when their connections do.
pub struct Script {
    folder: tempfile::TempDir,
}

const OK: &[u8] = &[0, 0, 0, 2, 0, 0, 0];

impl Script {
    pub fn start(answer: Answer) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("s")).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                std::thread::spawn(move || serve(stream, answer));
            }
        });
        Self { folder }
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

fn serve(mut stream: UnixStream, answer: Answer) -> Option<()> {
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
                stream.write_all(&framed(1, &[0, 1, 0, 0, 0, 0, 0, params, 0, 0, 0, 0])).ok()?;
                for n in 0..params {
                    let mut definition = vec![3];
                    definition.extend_from_slice(b"def\0\0\0\x01?\0\x0c\x3f\0\0\0\0\0\x08\0\0\0\0\0");
                    stream.write_all(&framed(2 + n, &definition)).ok()?;
                }
                if params > 0 {
                    stream.write_all(&framed(2 + params, &[0xFE, 0, 0, 2, 0])).ok()?;
                }
            }
            0x17 => {
                match answer {
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
            }
            0x01 => return None,
            _ => stream.write_all(&framed(1, OK)).ok()?,
        }
    }
}
