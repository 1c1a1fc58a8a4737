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
    /// The number, and behind it whether definitions follow: MariaDB with cached metadata, MySQL with optional metadata.
    /// MySQL's documentation has the two the other way round; 8.0.12 and 9.7 send them so.
    Flagged,
}

impl HeaderForm {
    /// That of a session's capabilities.
    pub fn of(capabilities: Capabilities) -> Self {
        let flagged = [Capabilities::MARIADB_CACHE_METADATA, Capabilities::OPTIONAL_METADATA];
        if flagged.into_iter().any(|flag| capabilities.has(flag)) { Self::Flagged } else { Self::Plain }
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
        let columns = r.lenenc_int("number of columns")?;
        if columns == 0 || columns > MAX_COLUMNS {
            return Err(r.error(format!("it announces {columns} columns")));
        }
        let follow = self == Self::Plain || r.u8("whether column definitions follow")? != 0;
        Ok((columns as u32, follow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_says_columns_and_whether_definitions_follow() {
        let read = |form: HeaderForm, bytes: &[u8]| form.read(bytes, "testing").ok();
        assert_eq!(read(HeaderForm::Plain, &[3]), Some((3, true)));
        assert_eq!(read(HeaderForm::Flagged, &[3, 1]), Some((3, true)));
        assert_eq!(read(HeaderForm::Flagged, &[0xFC, 0, 1, 0]), Some((256, false)));
        assert_eq!(read(HeaderForm::Flagged, &[3]), None);
        assert_eq!(read(HeaderForm::Plain, &[0]), None);
    }
}
