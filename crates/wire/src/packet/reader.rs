//! Bounds-checked reading of a payload.

use crate::error::WireError;

/// Reads a payload from front to back. Every error names the packet, the state of the connection and the field.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    packet: &'static str,
    state: &'static str,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`, the payload of `packet`, received while in `state`.
    pub fn new(bytes: &'a [u8], packet: &'static str, state: &'static str) -> Self {
        Self { bytes, at: 0, packet, state }
    }

    /// A protocol error about this packet.
    pub fn error(&self, detail: impl Into<String>) -> WireError {
        WireError::protocol(self.packet, self.state, detail)
    }

    /// Bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The next byte, left unread.
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// The packet ends before; `field` is named.
    pub fn bytes(&mut self, count: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        match self.at.checked_add(count).and_then(|end| self.bytes.get(self.at..end)) {
            Some(slice) => {
                self.at += count;
                Ok(slice)
            }
            None => Err(self.error(format!(
                "{field} needs {count} bytes at offset {}, {} are left",
                self.at,
                self.remaining()
            ))),
        }
    }

    fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let mut out = [0; N];
        out.copy_from_slice(self.bytes(N, field)?);
        Ok(out)
    }

    /// One byte.
    ///
    /// # Errors
    /// As [`Self::bytes`], like all that follow.
    pub fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        Ok(self.array::<1>(field)?[0])
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, field: &'static str) -> Result<u16, WireError> {
        Ok(u16::from_le_bytes(self.array(field)?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        Ok(u32::from_le_bytes(self.array(field)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        Ok(u64::from_le_bytes(self.array(field)?))
    }

    /// A length-encoded integer.
    pub fn lenenc_int(&mut self, field: &'static str) -> Result<u64, WireError> {
        match self.u8(field)? {
            0xFC => Ok(self.u16(field)?.into()),
            0xFD => {
                let [a, b, c] = self.array(field)?;
                Ok(u32::from_le_bytes([a, b, c, 0]).into())
            }
            0xFE => self.u64(field),
            small @ 0..=0xFA => Ok(small.into()),
            other => Err(self.error(format!("{field}: {other:#x} is not a length"))),
        }
    }

    /// A string with a length-encoded length.
    pub fn lenenc_bytes(&mut self, field: &'static str) -> Result<&'a [u8], WireError> {
        let length = self.lenenc_int(field)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.bytes(length, field)
    }

    /// A cell of a text row: a string, or 0xFB for NULL.
    pub fn cell(&mut self, field: &'static str) -> Result<Option<&'a [u8]>, WireError> {
        if self.peek() == Some(0xFB) {
            self.at += 1;
            return Ok(None);
        }
        self.lenenc_bytes(field).map(Some)
    }

    /// A string up to its NUL, or up to the end where the NUL is missing (as in greetings of MySQL 5.5).
    pub fn until_nul(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        match rest.iter().position(|b| *b == 0) {
            Some(end) => {
                self.at += end + 1;
                &rest[..end]
            }
            None => self.rest(),
        }
    }

    /// The remaining bytes.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader(bytes: &[u8]) -> Reader<'_> {
        Reader::new(bytes, "test", "testing")
    }

    #[test]
    fn length_encoded_integers_of_every_width_are_read() {
        let known: [(&[u8], u64); 5] = [
            (&[0xFA], 250),
            (&[0xFC, 0xFB, 0x00], 251),
            (&[0xFD, 0x01, 0x02, 0x03], 0x03_02_01),
            (&[0xFE, 1, 0, 0, 0, 0, 0, 0, 0x80], 0x8000_0000_0000_0001),
            (&[0x00], 0),
        ];
        for (bytes, value) in known {
            assert_eq!(reader(bytes).lenenc_int("n").unwrap(), value);
        }
        assert!(reader(&[0xFB]).lenenc_int("n").is_err());
        assert!(reader(&[0xFF]).lenenc_int("n").is_err());
    }

    #[test]
    fn a_string_longer_than_its_packet_is_an_error_that_names_packet_state_and_field() {
        let error = reader(&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]).lenenc_bytes("name");
        let text = error.unwrap_err().to_string();
        for part in ["test", "testing", "name", "1 are left"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_missing_nul_ends_at_the_packet() {
        assert_eq!(reader(b"abc").until_nul(), b"abc");
        let mut r = reader(b"ab\0cd");
        assert_eq!((r.until_nul(), r.rest()), (&b"ab"[..], &b"cd"[..]));
    }
}
