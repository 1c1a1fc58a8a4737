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
#[derive(Debug, Clone, PartialEq, Eq)]
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
}

impl Column {
    /// Memory that it takes, for limits.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<Self>() + self.schema.len() + self.table.len() + self.name.len()
    }

    /// Reads a column definition.
    ///
    /// # Errors
    /// It is cut short.
    pub fn parse(payload: &[u8], capabilities: Capabilities, state: &'static str) -> Result<Self, WireError> {
        let mut r = Reader::new(payload, "column definition", state);
        r.lenenc_bytes("catalog")?;
        let schema = text(r.lenenc_bytes("schema")?);
        let table = text(r.lenenc_bytes("table")?);
        r.lenenc_bytes("original table")?;
        let name = text(r.lenenc_bytes("name")?);
        r.lenenc_bytes("original name")?;
        if capabilities.has(Capabilities::MARIADB_EXTENDED_METADATA) {
            r.lenenc_bytes("extended type")?;
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
        })
    }

    /// Whether its numbers are unsigned.
    pub fn is_unsigned(&self) -> bool {
        self.flags & flag::UNSIGNED != 0
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
