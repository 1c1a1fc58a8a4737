//! Column definitions.

use crate::capability::Capabilities;
use crate::error::WireError;
use crate::packet::Reader;

/// Type numbers of columns and parameters.
pub mod kind {
    #![allow(missing_docs)]
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const BIT: u8 = 16;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
}

/// Column flags.
pub mod flag {
    #![allow(missing_docs)]
    pub const UNSIGNED: u16 = 0x0020;
    pub const ZEROFILL: u16 = 0x0040;
}

/// A column of a result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Column {
    /// Schema of its table; empty for an expression.
    pub schema: String,
    /// Its table, by the alias that the statement uses.
    pub table: String,
    /// Its name or alias.
    pub name: String,
    /// Number of its type, see [`kind`].
    pub kind: u8,
    /// Flags, see [`flag`].
    pub flags: u16,
    /// Number of its collation; 63 is binary.
    pub collation: u16,
    /// Greatest width in bytes.
    pub length: u32,
    /// Digits behind the decimal point; 31 where they are not fixed.
    pub decimals: u8,
    /// The type behind `kind`, as in `uuid`, `inet6` and `point`, where a MariaDB (10.5 and newer) sends it.
    pub type_name: String,
    /// The format of its text, as in `json`, where a MariaDB (10.5 and newer) sends it.
    pub format: String,
}

impl Column {
    /// Memory that it uses, for limits.
    pub(crate) fn size_bytes(&self) -> usize {
        let texts = [&self.schema, &self.table, &self.name, &self.type_name, &self.format];
        size_of::<Self>() + texts.iter().map(|text| text.len()).sum::<usize>()
    }

    /// A column whose definition the server left out.
    pub(crate) fn unknown() -> Self {
        Self {
            schema: String::new(),
            table: String::new(),
            name: String::new(),
            kind: kind::VAR_STRING,
            flags: 0,
            collation: 0,
            length: 0,
            decimals: 0,
            type_name: String::new(),
            format: String::new(),
        }
    }

    /// Reads a column definition.
    ///
    /// # Errors
    /// It is cut short.
    pub fn parse(payload: &[u8], capabilities: Capabilities, state: &'static str) -> Result<Self, WireError> {
        Self::parse_texts(payload, capabilities, state, |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// As [`Self::parse`] without names of any kind, which is much cheaper: they are most of the memory to allocate.
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub(crate) fn parse_unnamed(
        payload: &[u8],
        capabilities: Capabilities,
        state: &'static str,
    ) -> Result<Self, WireError> {
        Self::parse_texts(payload, capabilities, state, |_| String::new())
    }

    #[inline]
    fn parse_texts(
        payload: &[u8],
        capabilities: Capabilities,
        state: &'static str,
        text: impl Fn(&[u8]) -> String,
    ) -> Result<Self, WireError> {
        let mut r = Reader::new(payload, "column definition", state);
        r.lenenc_bytes("catalog")?;
        let schema = text(r.lenenc_bytes("schema")?);
        let table = text(r.lenenc_bytes("table")?);
        r.lenenc_bytes("original table")?;
        let name = text(r.lenenc_bytes("name")?);
        r.lenenc_bytes("original name")?;
        let (mut type_name, mut format) = (String::new(), String::new());
        if capabilities.has(Capabilities::MARIADB_EXTENDED_METADATA) {
            let extended = r.lenenc_bytes("extended metadata")?;
            let mut extended = Reader::new(extended, "extended metadata of a column", state);
            while !extended.is_empty() {
                let field = extended.u8("kind")?;
                let value = extended.lenenc_bytes("value")?;
                match field {
                    0 => type_name = text(value),
                    1 => format = text(value),
                    _ => {}
                }
            }
        }
        r.lenenc_int("length of the fixed fields")?;
        Ok(Self {
            schema,
            table,
            name,
            collation: r.u16("collation")?,
            length: r.u32("width")?,
            kind: r.u8("type")?,
            flags: r.u16("flags")?,
            decimals: r.u8("decimals")?,
            type_name,
            format,
        })
    }

    /// Whether its numbers are unsigned.
    pub fn is_unsigned(&self) -> bool {
        self.flags & flag::UNSIGNED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUT: &[u8] = b"\x03def\0\0\0\x01c\0";
    const FIXED: &[u8] = b"\x0c\x2d\0\xff\0\0\0\xfe\0\0\0";

    #[test]
    fn extended_metadata_name_the_type_and_the_format() {
        let with = Capabilities::MARIADB_EXTENDED_METADATA;
        let column = |extended: &[u8]| {
            let payload = [CUT, &[extended.len() as u8], extended, FIXED].concat();
            Column::parse(&payload, with, "testing")
        };
        let both = column(b"\x00\x04uuid\x07\x01?\x01\x04json").unwrap();
        assert_eq!(
            (both.type_name.as_str(), both.format.as_str(), both.kind),
            ("uuid", "json", kind::STRING)
        );
        assert_eq!(column(b"").unwrap().type_name, "");
        assert!(column(b"\x00\x04uui").unwrap_err().to_string().contains("extended metadata of a column"));
        let without = Column::parse(&[CUT, FIXED].concat(), Capabilities::default(), "testing").unwrap();
        assert_eq!((without.name.as_str(), without.type_name.as_str()), ("c", ""));
    }
}
