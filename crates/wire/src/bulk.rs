//! COM_STMT_BULK_EXECUTE: a prepared statement, executed once for each of many rows in one exchange.
//!
//! MariaDB 10.2 and newer,
//! <https://mariadb.com/docs/server/reference/clientserver-protocol/3-binary-protocol-prepared-statements/com_stmt_bulk_execute>.

use crate::command::STMT_BULK_EXECUTE;
use crate::packet::put_lenenc_bytes;
use crate::value::Value;

const SEND_TYPES: u16 = 128;
const IS_VALUE: u8 = 0;
const IS_NULL: u8 = 1;

/// Offset of the statement's id, and of the types behind the flags.
const STATEMENT: usize = 1;
const TYPES: usize = STATEMENT + 4 + 2;

/// Rows for one exchange, encoded value by value into a reusable buffer.
#[derive(Debug, Clone)]
pub struct BulkRows {
    payload: Vec<u8>,
    columns: usize,
    values: usize,
    of_one_type: bool,
}

impl BulkRows {
    /// No rows yet, of this many columns. A column's type is that of its first value that is not NULL.
    pub fn new(columns: usize) -> Self {
        let mut rows = Self { payload: vec![STMT_BULK_EXECUTE], columns, values: 0, of_one_type: true };
        rows.payload.extend_from_slice(&[0; 4]);
        rows.payload.extend_from_slice(&SEND_TYPES.to_le_bytes());
        for _ in 0..columns {
            rows.payload.extend_from_slice(&Value::Null.parameter_type());
        }
        rows
    }

    /// Removes the rows; the columns keep their types.
    pub fn clear(&mut self) {
        self.payload.truncate(TYPES + 2 * self.columns);
        self.values = 0;
        self.of_one_type = true;
    }

    /// Appends the next value of a row.
    pub fn value(&mut self, value: &Value) {
        if *value == Value::Null {
            return self.null();
        }
        self.begin(value.parameter_type());
        value.put(&mut self.payload);
    }

    /// Appends a whole number.
    #[inline]
    pub fn int(&mut self, value: i64) {
        self.begin(Value::Int(0).parameter_type());
        self.payload.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a text or bytes.
    #[inline]
    pub fn bytes(&mut self, value: &[u8]) {
        self.begin(Value::Bytes(Vec::new()).parameter_type());
        put_lenenc_bytes(&mut self.payload, value);
    }

    /// Appends NULL.
    #[inline]
    pub fn null(&mut self) {
        self.values += 1;
        self.payload.push(IS_NULL);
    }

    /// Bytes of the exchange so far.
    pub fn size_bytes(&self) -> usize {
        self.payload.len()
    }

    #[inline]
    fn begin(&mut self, kind: [u8; 2]) {
        if self.columns == 0 {
            self.of_one_type = false;
            return;
        }
        let at = TYPES + 2 * (self.values % self.columns);
        let known = &mut self.payload[at..at + 2];
        if known == Value::Null.parameter_type() {
            known.copy_from_slice(&kind);
        }
        self.of_one_type &= known == kind;
        self.values += 1;
        self.payload.push(IS_VALUE);
    }

    /// Whether these are complete rows for a statement of this many parameters, with one type a column, as one exchange
    /// requires.
    pub(crate) fn fit(&self, parameters: usize) -> bool {
        let whole = self.columns > 0 && self.values > 0 && self.values.is_multiple_of(self.columns);
        self.of_one_type && whole && self.columns == parameters
    }

    /// Appends the whole packet.
    pub(crate) fn packet(&self, out: &mut Vec<u8>, statement_id: u32) {
        let (command, rest) = self.payload.split_at(STATEMENT);
        crate::packet::put_packet(out, 0, &[command, &statement_id.to_le_bytes(), &rest[4..]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(rows: &BulkRows, parameters: usize) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        rows.packet(&mut out, 0x0102_0304);
        rows.fit(parameters).then_some(out)
    }

    #[test]
    fn rows_have_the_layout_of_the_protocol() {
        let mut rows = BulkRows::new(2);
        rows.null();
        rows.bytes(b"ab");
        rows.int(-2);
        rows.null();
        let expected = b"\x1a\0\0\0\xfa\x04\x03\x02\x01\x80\0\x08\0\xfd\0\x01\0\x02ab\0\xfe\xff\xff\xff\xff\xff\xff\xff\x01";
        assert_eq!(packet(&rows, 2).unwrap(), expected);
        rows.clear();
        assert_eq!(packet(&rows, 2), None);
        rows.value(&Value::Int(1));
        rows.value(&Value::Null);
        assert_eq!(
            packet(&rows, 2).unwrap()[4..],
            *b"\xfa\x04\x03\x02\x01\x80\0\x08\0\xfd\0\0\x01\0\0\0\0\0\0\0\x01"
        );
    }

    #[test]
    fn half_a_row_another_type_and_another_number_of_parameters_do_not_fit() {
        let mut rows = BulkRows::new(2);
        rows.int(1);
        assert_eq!(packet(&rows, 2), None);
        rows.int(2);
        assert!(packet(&rows, 2).is_some());
        assert_eq!(packet(&rows, 1), None);
        rows.int(3);
        rows.bytes(b"x");
        assert_eq!(packet(&rows, 2), None);
        assert_eq!(packet(&BulkRows::new(0), 0), None);
    }
}
