//! Values of the binary protocol.

use std::fmt::Write as _;

use crate::column::{Column, flag, kind};
use crate::error::WireError;
use crate::packet::{Reader, put_lenenc_bytes};

/// A value of a prepared statement: a parameter, or a cell of a binary row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// FLOAT.
    Float(f32),
    /// DOUBLE.
    Double(f64),
    /// Text, bytes, decimals, JSON.
    Bytes(Vec<u8>),
    /// DATE, DATETIME and TIMESTAMP.
    DateTime {
        /// Year.
        year: u16,
        /// Month, from 1; 0 in MySQL's zero dates.
        month: u8,
        /// Day of the month.
        day: u8,
        /// Hour.
        hour: u8,
        /// Minute.
        minute: u8,
        /// Second.
        second: u8,
        /// Microsecond.
        micros: u32,
    },
    /// TIME: a span, up to ± 838:59:59.
    Time {
        /// Before zero.
        negative: bool,
        /// Whole days.
        days: u32,
        /// Hours beyond the days.
        hours: u8,
        /// Minutes.
        minutes: u8,
        /// Seconds.
        seconds: u8,
        /// Microseconds.
        micros: u32,
    },
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::UInt(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Double(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Bytes(value.as_bytes().to_vec())
    }
}

impl Value {
    /// The type number of a parameter, and its unsigned flag.
    pub(crate) fn parameter_type(&self) -> [u8; 2] {
        match self {
            Self::Null => [kind::NULL, 0],
            Self::Int(_) => [kind::LONGLONG, 0],
            Self::UInt(_) => [kind::LONGLONG, 0x80],
            Self::Float(_) => [kind::FLOAT, 0],
            Self::Double(_) => [kind::DOUBLE, 0],
            Self::Bytes(_) => [kind::VAR_STRING, 0],
            Self::DateTime { .. } => [kind::DATETIME, 0],
            Self::Time { .. } => [kind::TIME, 0],
        }
    }

    /// Appends the value as a parameter; NULL has no bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Int(v) => out.extend_from_slice(&v.to_le_bytes()),
            Self::UInt(v) => out.extend_from_slice(&v.to_le_bytes()),
            Self::Float(v) => out.extend_from_slice(&v.to_le_bytes()),
            Self::Double(v) => out.extend_from_slice(&v.to_le_bytes()),
            Self::Bytes(v) => put_lenenc_bytes(out, v),
            Self::DateTime { year, month, day, hour, minute, second, micros } => {
                out.push(11);
                out.extend_from_slice(&year.to_le_bytes());
                out.extend_from_slice(&[*month, *day, *hour, *minute, *second]);
                out.extend_from_slice(&micros.to_le_bytes());
            }
            Self::Time { negative, days, hours, minutes, seconds, micros } => {
                out.extend_from_slice(&[12, u8::from(*negative)]);
                out.extend_from_slice(&days.to_le_bytes());
                out.extend_from_slice(&[*hours, *minutes, *seconds]);
                out.extend_from_slice(&micros.to_le_bytes());
            }
        }
    }

    fn read_date_time(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let length = r.u8("length of a date")?;
        if !matches!(length, 0 | 4 | 7 | 11) {
            return Err(r.error(format!("a date of {length} bytes")));
        }
        let (mut year, mut parts, mut micros) = (0, [0; 5], 0);
        if length >= 4 {
            year = r.u16("year")?;
            parts[..2].copy_from_slice(r.bytes(2, "date")?);
        }
        if length >= 7 {
            parts[2..].copy_from_slice(r.bytes(3, "time of day")?);
        }
        if length == 11 {
            micros = r.u32("microseconds")?;
        }
        let [month, day, hour, minute, second] = parts;
        Ok(Self::DateTime { year, month, day, hour, minute, second, micros })
    }

    fn read_time(r: &mut Reader<'_>) -> Result<Self, WireError> {
        let length = r.u8("length of a time")?;
        if !matches!(length, 0 | 8 | 12) {
            return Err(r.error(format!("a time of {length} bytes")));
        }
        let (mut negative, mut days, mut parts, mut micros) = (false, 0, [0; 3], 0);
        if length >= 8 {
            negative = r.u8("sign")? != 0;
            days = r.u32("days")?;
            parts.copy_from_slice(r.bytes(3, "time")?);
        }
        if length == 12 {
            micros = r.u32("microseconds")?;
        }
        let [hours, minutes, seconds] = parts;
        Ok(Self::Time { negative, days, hours, minutes, seconds, micros })
    }

    /// The value as the text protocol sends it for a column of this type; `None` is NULL. A FLOAT is given with all
    /// the digits that tell it from its neighbours, where servers round to six.
    pub fn into_text(self, column: &Column) -> Option<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            other => other.to_text(column),
        }
    }

    /// [`Self::into_text`] of a copy.
    pub fn to_text(&self, column: &Column) -> Option<Vec<u8>> {
        let mut text = String::new();
        match self {
            Self::Null => None,
            Self::Bytes(bytes) => Some(bytes.clone()),
            other => {
                other.write_text(column, &mut text);
                Some(text.into_bytes())
            }
        }
    }

    /// Appends the text of a number or a time; NULL and bytes have none here.
    fn write_text(&self, column: &Column, text: &mut String) {
        // Writing to a String cannot fail.
        let _ = match self {
            Self::Null | Self::Bytes(_) => Ok(()),
            Self::Int(v) if column.kind == kind::YEAR => write!(text, "{v:04}"),
            Self::Int(v) => write!(text, "{v}"),
            Self::UInt(v) if column.kind == kind::YEAR => write!(text, "{v:04}"),
            Self::UInt(v) if column.flags & flag::ZEROFILL != 0 => {
                write!(text, "{v:0width$}", width = (column.length as usize).min(255))
            }
            Self::UInt(v) => write!(text, "{v}"),
            Self::Float(v) if column.decimals < 31 => {
                write!(text, "{v:.digits$}", digits = column.decimals.into())
            }
            Self::Float(v) if is_plain(f64::from(*v)) => write!(text, "{v}"),
            Self::Float(v) => write!(text, "{v:e}"),
            Self::Double(v) if column.decimals < 31 => {
                write!(text, "{v:.digits$}", digits = column.decimals.into())
            }
            Self::Double(v) if is_plain(*v) => write!(text, "{v}"),
            Self::Double(v) => write!(text, "{v:e}"),
            Self::DateTime { year, month, day, hour, minute, second, micros } => {
                let _ = write!(text, "{year:04}-{month:02}-{day:02}");
                if column.kind != kind::DATE {
                    let _ = write!(text, " {hour:02}:{minute:02}:{second:02}");
                    put_fraction(text, *micros, column.decimals);
                }
                Ok(())
            }
            Self::Time { negative, days, hours, minutes, seconds, micros } => {
                let sign = if *negative { "-" } else { "" };
                let hours = u64::from(*days) * 24 + u64::from(*hours);
                let _ = write!(text, "{sign}{hours:02}:{minutes:02}:{seconds:02}");
                put_fraction(text, *micros, column.decimals);
                Ok(())
            }
        };
    }
}

/// Whether servers write a number without an exponent.
fn is_plain(v: f64) -> bool {
    v == 0.0 || (1e-15..1e15).contains(&v.abs())
}

fn put_fraction(text: &mut String, micros: u32, decimals: u8) {
    let digits = match decimals {
        0..=6 => decimals.into(),
        _ if micros == 0 => 0,
        _ => 6,
    };
    if digits > 0 {
        let all = format!("{:06}", micros % 1_000_000);
        text.push('.');
        text.push_str(&all[..digits]);
    }
}

/// Reads a binary row: the payload of a packet headed 0x00.
///
/// # Errors
/// It is cut short, or a cell is not valid.
pub fn read_binary_row(
    payload: &[u8],
    columns: &[Column],
    state: &'static str,
) -> Result<Vec<Value>, WireError> {
    let mut row = Vec::with_capacity(columns.len());
    binary_cells(payload, columns, state, |_, cell| {
        row.push(match cell {
            Cell::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Cell::Other(value) => value,
        });
    })?;
    Ok(row)
}

/// Passes the cells of a binary row as text to `take`, in order; `None` is NULL. Strings are not copied.
///
/// # Errors
/// As [`read_binary_row`].
pub(crate) fn binary_texts(
    payload: &[u8],
    columns: &[Column],
    state: &'static str,
    mut take: impl FnMut(Option<&[u8]>),
) -> Result<(), WireError> {
    let mut text = String::new();
    binary_cells(payload, columns, state, |column, cell| match cell {
        Cell::Bytes(bytes) => take(Some(bytes)),
        Cell::Other(Value::Null) => take(None),
        Cell::Other(value) => {
            text.clear();
            value.write_text(column, &mut text);
            take(Some(text.as_bytes()));
        }
    })
}

/// A cell of a binary row.
enum Cell<'a> {
    /// A string, in the packet.
    Bytes(&'a [u8]),
    /// Anything but a string.
    Other(Value),
}

impl<'a> Cell<'a> {
    /// Reads a cell of a binary row.
    fn read(r: &mut Reader<'a>, column: &Column) -> Result<Self, WireError> {
        let unsigned = column.is_unsigned();
        let whole = |signed: i64, bare: u64| if unsigned { Value::UInt(bare) } else { Value::Int(signed) };
        Ok(Self::Other(match column.kind {
            kind::NULL => Value::Null,
            kind::TINY => r.u8("TINYINT").map(|v| whole((v as i8).into(), v.into()))?,
            kind::SHORT | kind::YEAR => r.u16("SMALLINT").map(|v| whole((v as i16).into(), v.into()))?,
            kind::LONG | kind::INT24 => r.u32("INT").map(|v| whole((v as i32).into(), v.into()))?,
            kind::LONGLONG => r.u64("BIGINT").map(|v| whole(v as i64, v))?,
            kind::FLOAT => Value::Float(f32::from_bits(r.u32("FLOAT")?)),
            kind::DOUBLE => Value::Double(f64::from_bits(r.u64("DOUBLE")?)),
            kind::DATE | kind::DATETIME | kind::TIMESTAMP => Value::read_date_time(r)?,
            kind::TIME => Value::read_time(r)?,
            _ => return Ok(Self::Bytes(r.lenenc_bytes("a string")?)),
        }))
    }
}

fn binary_cells<'a>(
    payload: &'a [u8],
    columns: &[Column],
    state: &'static str,
    mut take: impl FnMut(&Column, Cell<'a>),
) -> Result<(), WireError> {
    let mut r = Reader::new(payload, "binary row", state);
    r.u8("header")?;
    // The bitmap's first two bits are not used in rows.
    let nulls = r.bytes((columns.len() + 9) / 8, "NULL bitmap")?;
    for (i, column) in columns.iter().enumerate() {
        let bit = i + 2;
        let is_null = nulls[bit / 8] & (1 << (bit % 8)) != 0;
        take(column, if is_null { Cell::Other(Value::Null) } else { Cell::read(&mut r, column)? });
    }
    if !r.is_empty() {
        return Err(r.error(format!("{} bytes follow its last cell", r.remaining())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(kind: u8, flags: u16, decimals: u8) -> Column {
        Column { name: "c".into(), kind, flags, collation: 63, length: 5, decimals, ..Column::unknown() }
    }

    fn text(value: &Value, column: &Column) -> String {
        String::from_utf8(value.to_text(column).unwrap()).unwrap()
    }

    #[test]
    fn values_read_as_servers_write_them() {
        let time =
            Value::Time { negative: true, days: 34, hours: 22, minutes: 59, seconds: 59, micros: 120_000 };
        assert_eq!(text(&time, &column(kind::TIME, 0, 2)), "-838:59:59.12");
        let at = Value::DateTime { year: 9, month: 1, day: 2, hour: 3, minute: 4, second: 5, micros: 6 };
        assert_eq!(text(&at, &column(kind::DATETIME, 0, 6)), "0009-01-02 03:04:05.000006");
        assert_eq!(text(&at, &column(kind::DATETIME, 0, 0)), "0009-01-02 03:04:05");
        assert_eq!(text(&at, &column(kind::DATE, 0, 0)), "0009-01-02");
        assert_eq!(text(&Value::Double(1e15), &column(kind::DOUBLE, 0, 31)), "1e15");
        assert_eq!(text(&Value::Double(0.1), &column(kind::DOUBLE, 0, 31)), "0.1");
        assert_eq!(text(&Value::Double(2.5), &column(kind::DOUBLE, 0, 2)), "2.50");
        assert_eq!(text(&Value::UInt(7), &column(kind::LONG, flag::ZEROFILL | flag::UNSIGNED, 0)), "00007");
        assert_eq!(text(&Value::Int(0), &column(kind::YEAR, 0, 0)), "0000");
    }

    #[test]
    fn a_binary_row_with_nulls_is_read() {
        let columns =
            [column(kind::LONG, 0, 0), column(kind::VAR_STRING, 0, 0), column(kind::TINY, flag::UNSIGNED, 0)];
        let row = read_binary_row(b"\0\x08\xff\xff\xff\xff\xc8", &columns, "testing").unwrap();
        assert_eq!(row, [Value::Int(-1), Value::Null, Value::UInt(200)]);
        assert!(read_binary_row(b"\0\x08\xff\xff\xff\xff", &columns, "testing").is_err());
        assert!(read_binary_row(b"\0\x08\xff\xff\xff\xff\xc8\0", &columns, "testing").is_err());
    }
}
