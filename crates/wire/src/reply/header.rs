//! The first packet of a result with rows: how many columns, and whether their definitions follow.

use crate::capability::Capabilities;
use crate::error::WireError;
use crate::packet::Reader;

/// More columns than any server gives a result.
const MAX_COLUMNS: u64 = 65_535;

/// How results of a session begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderForm {
    /// A number of columns, whose definitions follow.
    Plain,
    /// MariaDB with cached metadata: the number, and behind it whether definitions follow.
    FlagBehind,
    /// MySQL with optional metadata: whether definitions follow, and behind that the number.
    FlagBefore,
}

impl HeaderForm {
    /// More bytes than a header of any form has and fewer than any OK packet: with [`Self::FlagBefore`] both may begin
    /// with 0.
    pub const BELOW: usize = 7;

    /// That of a session's capabilities.
    pub fn of(capabilities: Capabilities) -> Self {
        if capabilities.has(Capabilities::MARIADB_CACHE_METADATA) {
            Self::FlagBehind
        } else if capabilities.has(Capabilities::OPTIONAL_METADATA) {
            Self::FlagBefore
        } else {
            Self::Plain
        }
    }

    /// Whether a packet of `length` bytes that begins with 0 is an OK packet.
    #[inline]
    pub fn is_ok(self, length: usize) -> bool {
        self != Self::FlagBefore || length >= Self::BELOW
    }

    /// Reads the number of columns and whether their definitions follow.
    ///
    /// # Errors
    /// It is cut short, a number that no result has, or a request for a local file.
    pub fn read(self, payload: &[u8], state: &'static str) -> Result<(u32, bool), WireError> {
        if payload.first() == Some(&0xFB) {
            return Err(WireError::protocol("local file request", state, "local files are never sent"));
        }
        let mut r = Reader::new(payload, "result header", state);
        let before = self != Self::FlagBefore || r.u8("whether column definitions follow")? != 0;
        let columns = r.lenenc_int("number of columns")?;
        if columns == 0 || columns > MAX_COLUMNS {
            return Err(r.error(format!("it announces {columns} columns")));
        }
        let behind = self != Self::FlagBehind || r.u8("whether column definitions follow")? != 0;
        Ok((columns as u32, before && behind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_says_columns_and_whether_definitions_follow() {
        let read = |form: HeaderForm, bytes: &[u8]| form.read(bytes, "testing").ok();
        assert_eq!(read(HeaderForm::Plain, &[3]), Some((3, true)));
        assert_eq!(read(HeaderForm::FlagBehind, &[3, 1]), Some((3, true)));
        assert_eq!(read(HeaderForm::FlagBehind, &[0xFC, 0, 1, 0]), Some((256, false)));
        assert_eq!(read(HeaderForm::FlagBefore, &[1, 3]), Some((3, true)));
        assert_eq!(read(HeaderForm::FlagBefore, &[0, 0xFC, 0, 1]), Some((256, false)));
        assert_eq!(read(HeaderForm::FlagBefore, &[0, 0]), None);
        assert_eq!(read(HeaderForm::FlagBefore, &[0]), None);
        assert!(!HeaderForm::FlagBefore.is_ok(2) && HeaderForm::FlagBefore.is_ok(7));
        assert!(HeaderForm::Plain.is_ok(2));
    }
}
