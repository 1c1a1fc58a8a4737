//! The compressed protocol: frames of compressed packets, each with the lengths after and before compression.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression_packet.html>

use std::fmt;
use std::io::Write;

use flate2::{Decompress, FlushDecompress, Status};

use crate::error::WireError;
use crate::options::Compression;
use crate::packet::MAX_FRAME;

/// Length, sequence number, length before compression.
const HEADER: usize = 7;
/// Shorter ones are not compressed, as in the server (`MIN_COMPRESS_LENGTH`).
const MIN_BYTES: usize = 50;
/// Level of zstd, which the handshake requests from the server.
pub(crate) const ZSTD_LEVEL: u8 = 3;
const STATE: &str = "decompressing an answer";
/// Output of one call of [`Codec::decode`] after which further frames wait for the next call: 500 bytes can expand to
/// 16 MiB, and many frames may arrive together.
const CALL_BYTES: usize = 1 << 20;

/// Compresses what is sent and decompresses what is received.
pub struct Codec {
    algorithm: Compression,
    sequence: u8,
    /// Frames that wait, or are incomplete.
    partial: Vec<u8>,
    /// A complete frame waits.
    more: bool,
}

impl fmt::Debug for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Codec").field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

impl Codec {
    /// A codec of a new connection.
    pub fn new(algorithm: Compression) -> Self {
        Self { algorithm, sequence: 0, partial: Vec::new(), more: false }
    }

    /// Appends whole packets as compressed frames. Packets that begin with number 0 are a command, which begins the
    /// count of frames anew.
    pub(super) fn encode(&mut self, packets: &[u8], out: &mut Vec<u8>) -> Result<(), WireError> {
        if packets.get(3) == Some(&0) {
            self.sequence = 0;
        }
        for chunk in packets.chunks(MAX_FRAME) {
            let start = out.len();
            out.extend_from_slice(&[0; HEADER]);
            let compressed = chunk.len() >= MIN_BYTES && self.compress(chunk, out)? && {
                // If compression gains nothing, the frame is sent uncompressed, with 0 as its length before
                // compression.
                out.len() - start - HEADER < chunk.len()
            };
            if !compressed {
                out.truncate(start + HEADER);
                out.extend_from_slice(chunk);
            }
            let length = out.len() - start - HEADER;
            let before = if compressed { chunk.len() } else { 0 };
            out[start..start + 3].copy_from_slice(&(length as u32).to_le_bytes()[..3]);
            out[start + 3] = self.sequence;
            out[start + 4..start + HEADER].copy_from_slice(&(before as u32).to_le_bytes()[..3]);
            self.sequence = self.sequence.wrapping_add(1);
        }
        Ok(())
    }

    fn compress(&self, chunk: &[u8], out: &mut Vec<u8>) -> Result<bool, WireError> {
        let failed = |source| WireError::Io { during: "compressing a command", source };
        match self.algorithm {
            Compression::Zlib => {
                let mut encoder = flate2::write::ZlibEncoder::new(out, flate2::Compression::default());
                encoder.write_all(chunk).and_then(|()| encoder.finish().map(drop)).map_err(failed)?;
            }
            Compression::Zstd => {
                let packed = zstd::bulk::compress(chunk, ZSTD_LEVEL.into()).map_err(failed)?;
                out.extend_from_slice(&packed);
            }
        }
        Ok(true)
    }

    /// Appends the packets of received frames: at most [`CALL_BYTES`] plus one frame, which never expands beyond its
    /// announced size of at most 16 MiB − 1. [`Self::has_more`] tells whether more wait.
    pub(super) fn decode(&mut self, received: &[u8], packets: &mut Vec<u8>) -> Result<(), WireError> {
        self.partial.extend_from_slice(received);
        let begin = packets.len();
        let mut at = 0;
        self.more = false;
        while let Some((frame, before)) = frame(&self.partial[at..]) {
            if packets.len() - begin >= CALL_BYTES {
                self.more = true;
                break;
            }
            match (self.algorithm, before) {
                (_, 0) => packets.extend_from_slice(frame),
                (Compression::Zlib, _) => inflate(frame, before, packets)?,
                (Compression::Zstd, _) => unpack(frame, before, packets)?,
            }
            self.sequence = self.partial[at + 3].wrapping_add(1);
            at += HEADER + frame.len();
        }
        self.partial.drain(..at);
        if self.partial.is_empty() && self.partial.capacity() > 1 << 20 {
            self.partial = Vec::new();
        }
        Ok(())
    }

    /// Whether whole frames wait for another call of [`Self::decode`].
    pub(super) fn has_more(&self) -> bool {
        self.more
    }
}

/// The first frame, if all of it is here, and its length before compression.
fn frame(bytes: &[u8]) -> Option<(&[u8], usize)> {
    let &[a, b, c, _, d, e, f] = bytes.first_chunk()?;
    let length = u32::from_le_bytes([a, b, c, 0]) as usize;
    let before = u32::from_le_bytes([d, e, f, 0]) as usize;
    Some((bytes.get(HEADER..HEADER + length)?, before))
}

/// Decompresses a zstd frame into a buffer of exactly the announced size.
fn unpack(frame: &[u8], before: usize, packets: &mut Vec<u8>) -> Result<(), WireError> {
    let start = packets.len();
    packets.reserve_exact(before);
    packets.resize(start + before, 0);
    let made =
        zstd::bulk::decompress_to_buffer(frame, &mut packets[start..]).map_err(|e| invalid(e.to_string()))?;
    if made != before {
        return Err(invalid(format!("{made} bytes came of {before}")));
    }
    Ok(())
}

fn invalid(detail: impl Into<String>) -> WireError {
    WireError::protocol("compressed", STATE, detail)
}

fn inflate(frame: &[u8], before: usize, packets: &mut Vec<u8>) -> Result<(), WireError> {
    let start = packets.len();
    packets.reserve_exact(before);
    let mut inflater = Decompress::new(true);
    // It writes only into the reserved space, which may be larger than requested.
    let mut room = std::mem::take(packets);
    room.resize(start + before, 0);
    let status = inflater.decompress(frame, &mut room[start..], FlushDecompress::Finish);
    let made = inflater.total_out() as usize;
    *packets = room;
    match status {
        Ok(Status::StreamEnd) if made == before => Ok(()),
        Ok(_) => Err(invalid(format!(
            "a frame of {} bytes does not make the {before} that it announces",
            frame.len()
        ))),
        Err(e) => Err(invalid(e.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(algorithm: Compression, packets: &[u8], step: usize) {
        let mut sender = Codec::new(algorithm);
        let mut receiver = Codec::new(algorithm);
        let (mut wire, mut back) = (Vec::new(), Vec::new());
        sender.encode(packets, &mut wire).unwrap();
        for piece in wire.chunks(step) {
            receiver.decode(piece, &mut back).unwrap();
            while receiver.has_more() {
                receiver.decode(&[], &mut back).unwrap();
            }
        }
        assert!(back == packets, "{} bytes in steps of {step}", packets.len());
    }

    #[test]
    fn what_is_compressed_comes_back_in_any_fragmentation() {
        let random: Vec<u8> =
            (0u64..5000).map(|i| (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect();
        for algorithm in [Compression::Zlib, Compression::Zstd] {
            round(algorithm, &[7; 49], 1);
            round(algorithm, &[7; 5000], 1);
            round(algorithm, &random, 3);
            round(algorithm, &vec![1; MAX_FRAME + 70], 100_000);
        }
    }

    #[test]
    fn frames_that_come_together_are_opened_one_after_the_other() {
        let packets = vec![1; MAX_FRAME];
        for algorithm in [Compression::Zlib, Compression::Zstd] {
            let mut wire = Vec::new();
            Codec::new(algorithm).encode(&packets, &mut wire).unwrap();
            let mut receiver = Codec::new(algorithm);
            let (mut back, mut total) = (Vec::new(), 0);
            receiver.decode(&wire.repeat(5), &mut back).unwrap();
            loop {
                assert_eq!(back.len(), MAX_FRAME, "one at a time");
                assert!(back.capacity() < 2 * MAX_FRAME, "{} bytes", back.capacity());
                total += back.len();
                if !receiver.has_more() {
                    break;
                }
                back.clear();
                receiver.decode(&[], &mut back).unwrap();
            }
            assert_eq!(total, 5 * MAX_FRAME);
        }
    }

    #[test]
    fn a_frame_that_makes_more_or_less_than_it_announces_is_refused() {
        for algorithm in [Compression::Zlib, Compression::Zstd] {
            let mut wire = Vec::new();
            Codec::new(algorithm).encode(&[0; 10_000], &mut wire).unwrap();
            for announced in [9_999u32, 10_001, 60] {
                let mut changed = wire.clone();
                changed[4..7].copy_from_slice(&announced.to_le_bytes()[..3]);
                assert!(Codec::new(algorithm).decode(&changed, &mut Vec::new()).is_err(), "{announced}");
            }
            let mut damaged = wire.clone();
            let last = damaged.len() - 1;
            damaged[last] ^= 0xFF;
            damaged[HEADER + 2] ^= 0xFF;
            assert!(Codec::new(algorithm).decode(&damaged, &mut Vec::new()).is_err());
        }
    }
}
