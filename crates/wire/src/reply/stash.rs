//! Buffer for the first bytes of a frame that arrives in pieces.

use crate::packet::{HEADER, OkPacket};

/// Most bytes of an error packet that are kept; servers send up to 512 and some. The rest is skipped.
const MAX_ERROR: usize = 4096;

/// The header and the first bytes of a frame, which suffice to classify it.
#[derive(Debug)]
pub(super) struct Head {
    bytes: [u8; HEADER + OkPacket::PREFIX],
    length: u8,
}

impl Head {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; HEADER + OkPacket::PREFIX], length: 0 }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    /// Takes the needed bytes from the front of `bytes` and returns their number.
    pub(super) fn take(&mut self, bytes: &[u8]) -> usize {
        let mut taken = 0;
        while taken < bytes.len() && usize::from(self.length) < self.wanted() {
            let have = usize::from(self.length);
            let count = (self.wanted() - have).min(bytes.len() - taken);
            self.bytes[have..have + count].copy_from_slice(&bytes[taken..taken + count]);
            taken += count;
            self.length += count as u8;
        }
        taken
    }

    /// Whether all bytes that can be needed of this frame have arrived.
    pub(super) fn is_complete(&self) -> bool {
        usize::from(self.length) >= HEADER && usize::from(self.length) == self.wanted()
    }

    /// The header as a number and the first bytes of the payload.
    pub(super) fn parts(&self) -> (u32, &[u8]) {
        let [a, b, c, d, ..] = self.bytes;
        (u32::from_le_bytes([a, b, c, d]), &self.bytes[HEADER..usize::from(self.length)])
    }

    fn wanted(&self) -> usize {
        if usize::from(self.length) < HEADER {
            return HEADER;
        }
        let [a, b, c, ..] = self.bytes;
        HEADER + (u32::from_le_bytes([a, b, c, 0]) as usize).min(OkPacket::PREFIX)
    }
}

/// Appends to the kept part of an error packet.
pub(super) fn keep_error(kept: &mut Vec<u8>, bytes: &[u8]) {
    let room = MAX_ERROR.saturating_sub(kept.len());
    kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
}
