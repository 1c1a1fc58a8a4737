//! The packets that end a reply or a result: OK, EOF and error.

use super::Reader;
use crate::error::{ServerError, WireError};
use mydyno_model::text;

/// An OK packet, or an EOF packet, which has no counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OkPacket {
    /// Rows that the statement changed.
    pub affected_rows: u64,
    /// First value of AUTO_INCREMENT that it made.
    pub last_insert_id: u64,
    /// Status flags, see [`crate::capability::status`].
    pub status: u16,
    /// Warnings.
    pub warnings: u16,
}

impl OkPacket {
    /// Bytes that are read of an OK packet: header, two integers, status and warnings.
    pub const PREFIX: usize = 1 + 9 + 9 + 2 + 2;

    /// Parses an OK packet headed 0x00 or 0xFE, up to the warnings.
    ///
    /// # Errors
    /// It ends too early.
    #[inline]
    pub fn parse(payload: &[u8], state: &'static str) -> Result<Self, WireError> {
        match *payload {
            // Nearly all: integers of one byte.
            [_, affected @ 0..0xFB, id @ 0..0xFB, s0, s1, w0, w1, ..] => Ok(Self {
                affected_rows: affected.into(),
                last_insert_id: id.into(),
                status: u16::from_le_bytes([s0, s1]),
                warnings: u16::from_le_bytes([w0, w1]),
            }),
            _ => Self::parse_any(payload, state),
        }
    }

    #[cold]
    fn parse_any(payload: &[u8], state: &'static str) -> Result<Self, WireError> {
        let mut r = Reader::new(payload, "OK", state);
        r.u8("header")?;
        Ok(Self {
            affected_rows: r.lenenc_int("affected rows")?,
            last_insert_id: r.lenenc_int("last insert id")?,
            status: r.u16("status flags")?,
            warnings: r.u16("warnings")?,
        })
    }

    /// Reads an EOF packet.
    ///
    /// # Errors
    /// It ends too early.
    pub fn parse_eof(payload: &[u8], state: &'static str) -> Result<Self, WireError> {
        let mut r = Reader::new(payload, "EOF", state);
        r.u8("header")?;
        let warnings = r.u16("warnings")?;
        let status = r.u16("status flags")?;
        Ok(Self { status, warnings, ..Self::default() })
    }
}

/// Reads an error packet headed 0xFF. Before authentication servers leave out the SQLSTATE.
///
/// # Errors
/// It is too short to hold a number.
pub fn parse_error(payload: &[u8], state: &'static str) -> Result<ServerError, WireError> {
    let mut r = Reader::new(payload, "error", state);
    r.u8("header")?;
    let code = r.u16("number")?;
    let mut sqlstate = "HY000".to_owned();
    if r.peek() == Some(b'#') && r.remaining() >= 6 {
        r.u8("marker")?;
        let bytes = r.bytes(5, "SQLSTATE")?;
        if bytes.iter().all(u8::is_ascii_alphanumeric) {
            sqlstate = String::from_utf8_lossy(bytes).into_owned();
        }
    }
    Ok(ServerError { code, sqlstate, message: text::message(r.rest()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_cannot_steer_a_terminal() {
        let error = parse_error(b"\xff\x15\x04#\x1b[31m\x1b]0;owned\x07\nnear 'x'", "testing").unwrap();
        assert_eq!(error.code, 1045);
        assert!(!error.to_string().contains(['\x1b', '\x07']), "{error:?}");
        assert!(error.message.ends_with(" near 'x'"), "it stays on one line");
        assert_eq!(error.sqlstate, "HY000");
    }
}
