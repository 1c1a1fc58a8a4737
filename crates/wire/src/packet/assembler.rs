//! Assembles complete packets from received bytes.

use super::{HEADER, MAX_FRAME};
use crate::error::WireError;

/// Buffers beyond this size grow linearly instead of doubling.
const LARGE: usize = 4 << 20;
/// Largest error packet. Servers send up to 512 bytes and some; nothing else begins with 0xFF.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// A whole packet, continuations joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Sequence number of its last frame.
    pub sequence: u8,
    /// Payload.
    pub payload: &'a [u8],
}

impl Packet<'_> {
    /// Sequence number of its first frame.
    pub fn first_sequence(&self) -> u8 {
        self.sequence.wrapping_sub((self.payload.len() / MAX_FRAME) as u8)
    }
}

/// Collects received bytes and returns complete packets. It stores at most one packet of the given size and the bytes
/// received behind it, whatever size a packet claims.
#[derive(Debug)]
pub struct Assembler {
    buffer: Vec<u8>,
    /// Offset of the next packet.
    start: usize,
    max_packet_bytes: usize,
}

impl Assembler {
    /// An assembler that refuses packets of more than `max_packet_bytes`.
    pub fn new(max_packet_bytes: usize) -> Self {
        Self { buffer: Vec::new(), start: 0, max_packet_bytes }
    }

    /// Sets another limit.
    pub fn set_max_packet_bytes(&mut self, max_packet_bytes: usize) {
        self.max_packet_bytes = max_packet_bytes;
    }

    /// Takes in received bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
        let needed = self.buffer.len() + bytes.len();
        if needed > self.buffer.capacity() && needed > LARGE {
            // Doubling would take twice the memory of a large packet.
            self.buffer.reserve_exact(bytes.len().max(LARGE));
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that were received and not given out.
    pub fn pending(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Removes and returns all pending bytes.
    pub fn take_pending(&mut self) -> Vec<u8> {
        let rest = self.buffer.split_off(self.start);
        self.buffer.clear();
        self.start = 0;
        rest
    }

    /// Releases memory after a large packet.
    pub fn shrink(&mut self) {
        if self.pending() == 0 && self.buffer.capacity() > 1 << 20 {
            self.buffer = Vec::new();
            self.start = 0;
        }
    }

    /// The next packet, or `None` until more bytes are there.
    ///
    /// # Errors
    /// The packet is larger than the limit, or its frames do not follow each other; `state` is named.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self, state: &'static str) -> Result<Option<Packet<'_>>, WireError> {
        let Some(Whole { end, length, frames, sequence }) = self.measure(state)? else { return Ok(None) };
        let begin = self.start + HEADER;
        if frames > 1 {
            // Closes the gaps of the later frames' headers, from the first to the last.
            let mut to = begin + MAX_FRAME;
            let mut from = to;
            while from < end {
                let header = &self.buffer[from..from + HEADER];
                let frame = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
                self.buffer.copy_within(from + HEADER..from + HEADER + frame, to);
                to += frame;
                from += HEADER + frame;
            }
        }
        self.start = end;
        Ok(Some(Packet { sequence, payload: &self.buffer[begin..begin + length] }))
    }

    /// Whether [`Self::next`] would give a packet.
    ///
    /// # Errors
    /// As [`Self::next`].
    pub fn is_ready(&self, state: &'static str) -> Result<bool, WireError> {
        Ok(self.measure(state)?.is_some())
    }

    /// The extent of the next packet, once all of it is here.
    fn measure(&self, state: &'static str) -> Result<Option<Whole>, WireError> {
        let mut whole = Whole { end: self.start, length: 0, frames: 0, sequence: 0 };
        loop {
            let Some(&[a, b, c, sequence]) = self.buffer.get(whole.end..).and_then(|rest| rest.first_chunk())
            else {
                return Ok(None);
            };
            let frame = u32::from_le_bytes([a, b, c, 0]) as usize;
            if whole.frames > 0 && sequence != whole.sequence.wrapping_add(1) {
                return Err(WireError::protocol(
                    "continued",
                    state,
                    format!("a frame of number {sequence} goes on after one of {}", whole.sequence),
                ));
            }
            whole.length += frame;
            let is_error = whole.frames == 0 && self.buffer.get(whole.end + HEADER) == Some(&0xFF);
            if is_error && frame > MAX_ERROR_BYTES {
                return Err(WireError::TooLarge {
                    what: "an error packet of the server",
                    limit_bytes: MAX_ERROR_BYTES,
                    remedy: "no MySQL or MariaDB sends such a one: see what listens there",
                });
            }
            if whole.length > self.max_packet_bytes {
                return Err(WireError::TooLarge {
                    what: "a packet of the server",
                    limit_bytes: self.max_packet_bytes,
                    remedy: "ask for less at a time",
                });
            }
            whole.frames += 1;
            whole.sequence = sequence;
            whole.end += HEADER + frame;
            if whole.end > self.buffer.len() {
                return Ok(None);
            }
            if frame < MAX_FRAME {
                return Ok(Some(whole));
            }
        }
    }
}

/// The extent of a packet in the buffer.
struct Whole {
    /// Offset of the packet after it.
    end: usize,
    /// Length of its payload, without the headers of later frames.
    length: usize,
    frames: usize,
    /// Of its last frame.
    sequence: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_whole_however_their_bytes_come_in() {
        let bytes = [3, 0, 0, 1, b'a', b'b', b'c', 0, 0, 0, 2, 1, 0, 0, 3, b'z'];
        let mut assembler = Assembler::new(100);
        let mut seen = Vec::new();
        for byte in bytes {
            assembler.extend(&[byte]);
            while let Some(packet) = assembler.next("testing").unwrap() {
                seen.push((packet.sequence, packet.payload.to_vec()));
            }
        }
        assert_eq!(seen, [(1, b"abc".to_vec()), (2, Vec::new()), (3, b"z".to_vec())]);
        assert_eq!(assembler.pending(), 0);
    }

    #[test]
    fn a_claim_beyond_the_limit_is_refused_from_its_header_alone() {
        let mut assembler = Assembler::new(1 << 20);
        assembler.extend(&[0xFF, 0xFF, 0xFF, 0]);
        assert!(matches!(assembler.next("testing"), Err(WireError::TooLarge { limit_bytes: 1_048_576, .. })));
    }
}
