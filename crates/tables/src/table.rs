//! Data sets: tables whose rows depend on a seed, described so that they can be filled on many connections, resumed,
//! and verified independently of their purpose.

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::condition::Condition;
use crate::digits::push_number;
use crate::engine::Engine;
use crate::fingerprint;

/// Receives the columns of one row, from the first to the last.
pub trait Fields {
    /// A whole number.
    fn int(&mut self, value: i64);
    /// A text or bytes.
    fn bytes(&mut self, value: &[u8]);
    /// NULL.
    fn null(&mut self);
}

/// An index that is created after the rows are inserted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateIndex {
    /// Its name.
    pub name: String,
    /// The statement that creates it; the database is selected.
    pub sql: String,
}

/// One table. Rows have the numbers 1 to [`Self::rows`], and a row depends on the data set's seed, the table and its
/// number only. The first column is that number, or the first columns are a key that ascends with it, see
/// [`Self::key_columns`].
pub trait Table: Send + Sync + fmt::Debug {
    /// Its name.
    fn name(&self) -> &str;

    /// The statement that creates it; the database is selected.
    fn create(&self) -> String;

    /// Its columns, separated by commas, in the order of [`Self::row`]; those of the key come first.
    fn columns(&self) -> &str;

    /// Number of leading columns that are the rows' key. With 1 the first column is the row's number. With more they
    /// are unique whole numbers from 1 on that ascend, column after column, with the row's number. An index on them
    /// makes resuming and verifying quick.
    fn key_columns(&self) -> usize {
        1
    }

    /// Number of its columns.
    fn column_count(&self) -> usize {
        self.columns().split(',').count()
    }

    /// Number of its rows.
    fn rows(&self) -> u64;

    /// Passes the columns of row `id`. Texts have no trailing spaces, which servers do not keep.
    fn row(&self, id: u64, fields: &mut dyn Fields);

    /// Approximate bytes of a row and its share of indexes on disk.
    fn row_bytes(&self) -> u64;

    /// Maximum bytes of a row in an INSERT.
    fn sql_bytes(&self) -> usize;

    /// The same table with the rows of another seed.
    fn reseeded(&self, seed: u64) -> Arc<dyn Table>;

    /// Whether all its texts are ASCII, which has the same encoding in every character set.
    fn is_ascii(&self) -> bool {
        false
    }

    /// Whether a column, by its position, is part of digests: the server must return it as it was sent.
    fn is_digested(&self, _column: usize) -> bool {
        true
    }

    /// The digested columns, separated by commas.
    fn digest_columns(&self) -> String {
        self.columns().to_owned()
    }

    /// Whether its first column is AUTO_INCREMENT.
    fn is_auto_increment(&self) -> bool {
        false
    }

    /// Indexes that are created after the rows are inserted.
    fn late_indexes(&self) -> Vec<LateIndex> {
        Vec::new()
    }
}

/// A stored procedure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Routine {
    /// Its name.
    pub name: String,
    /// The statement that makes it; the database is chosen.
    pub sql: String,
}

/// The tables of a workload.
#[derive(Debug, Clone)]
pub struct DataSet {
    /// Key in the mark: data sets of one family replace each other in a database, those of several coexist.
    pub family: &'static str,
    /// A regular expression that matches the names of all tables that the family can have, and of no other.
    pub names: String,
    /// Everything except seed and engine that determines the rows and tables.
    pub shape: Map<String, Value>,
    /// Seed of the rows.
    pub seed: u64,
    /// Storage engine of the tables.
    pub engine: Engine,
    /// Tables.
    pub tables: Vec<Arc<dyn Table>>,
    /// Conditions that must hold at any time, also after runs.
    pub conditions: Vec<Condition>,
    /// Stored procedures that runs call.
    pub routines: Vec<Routine>,
}

impl DataSet {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows()).sum()
    }

    /// Approximate bytes of the tables.
    pub fn size_bytes(&self) -> u64 {
        self.table_bytes().sum()
    }

    /// Approximate bytes of each table.
    pub fn table_bytes(&self) -> impl Iterator<Item = u64> {
        self.tables.iter().map(|t| t.rows().saturating_mul(t.row_bytes()))
    }

    /// Bytes of the longest row as SQL.
    pub fn longest_row_bytes(&self) -> usize {
        self.tables.iter().map(|t| t.sql_bytes()).max().unwrap_or(0)
    }

    /// The shape as the mark stores it.
    pub fn shape(&self) -> Value {
        let mut shape = self.shape.clone();
        shape.insert("storage-engine".to_owned(), json!(self.engine.name()));
        Value::Object(shape)
    }

    /// The tables with the rows of another seed.
    pub fn reseeded(&self, seed: u64) -> Vec<Arc<dyn Table>> {
        self.tables.iter().map(|table| table.reseeded(seed)).collect()
    }

    /// Fingerprint of fresh rows.
    pub fn fingerprint(&self) -> String {
        fingerprint::data(&self.shape(), self.seed)
    }
}

/// Passes a row to two receivers.
pub struct Both<'a>(pub &'a mut dyn Fields, pub &'a mut dyn Fields);

impl Fields for Both<'_> {
    fn int(&mut self, value: i64) {
        self.0.int(value);
        self.1.int(value);
    }

    fn bytes(&mut self, value: &[u8]) {
        self.0.bytes(value);
        self.1.bytes(value);
    }

    fn null(&mut self) {
        self.0.null();
        self.1.null();
    }
}

/// A row as `(1,2,'text')` for INSERT, appended to a text.
pub struct Tuple<'a> {
    sql: &'a mut Vec<u8>,
    first: bool,
}

impl<'a> Tuple<'a> {
    /// Opens a tuple at the end of a text.
    pub fn open(sql: &'a mut Vec<u8>) -> Self {
        sql.push(b'(');
        Self { sql, first: true }
    }

    /// Closes it.
    pub fn close(self) {
        self.sql.push(b')');
    }

    fn comma(&mut self) {
        if !std::mem::replace(&mut self.first, false) {
            self.sql.push(b',');
        }
    }
}

impl Fields for Tuple<'_> {
    fn int(&mut self, value: i64) {
        self.comma();
        push_int(value, self.sql);
    }

    /// Quoted, where that has the same meaning in every `sql_mode` and character set.
    fn bytes(&mut self, value: &[u8]) {
        self.comma();
        if value.iter().all(|b| (b' '..0x7f).contains(b) && !matches!(b, b'\'' | b'\\')) {
            self.sql.push(b'\'');
            self.sql.extend_from_slice(value);
            self.sql.push(b'\'');
        } else {
            push_hexadecimal(value, self.sql);
        }
    }

    fn null(&mut self) {
        self.comma();
        self.sql.extend_from_slice(b"NULL");
    }
}

/// Appends a text in hexadecimal. It stays a text: without its character set the literal would be binary, which JSON
/// does not accept.
fn push_hexadecimal(value: &[u8], sql: &mut Vec<u8>) {
    let is_text = std::str::from_utf8(value).is_ok();
    sql.extend_from_slice(if is_text { b"_utf8mb4 x'" } else { b"x'" });
    for byte in value {
        let digit = |n: u8| b"0123456789abcdef"[usize::from(n)];
        sql.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    sql.push(b'\'');
}

/// The CRC-32 of `CONCAT_WS(',', columns…)`, as servers compute it: without NULLs, and of the digested columns.
pub struct RowDigest<'a> {
    table: &'a dyn Table,
    column: usize,
    crc: crc32fast::Hasher,
    number: Vec<u8>,
    begun: bool,
}

impl<'a> RowDigest<'a> {
    /// A digest of no column.
    pub fn new(table: &'a dyn Table) -> Self {
        Self { table, column: 0, crc: crc32fast::Hasher::new(), number: Vec::new(), begun: false }
    }

    /// Digest of row `id` of a table.
    pub fn of(table: &'a dyn Table, id: u64) -> u32 {
        let mut digest = Self::new(table);
        table.row(id, &mut digest);
        digest.finish()
    }

    /// The digest of the columns so far.
    pub fn finish(self) -> u32 {
        self.crc.finalize()
    }

    /// Whether the next column is digested, with the comma before it.
    fn begin(&mut self) -> bool {
        let digested = self.table.is_digested(self.column);
        self.column += 1;
        if digested && std::mem::replace(&mut self.begun, true) {
            self.crc.update(b",");
        }
        digested
    }
}

impl Fields for RowDigest<'_> {
    fn int(&mut self, value: i64) {
        if !self.begin() {
            return;
        }
        self.number.clear();
        push_int(value, &mut self.number);
        self.crc.update(&self.number);
    }

    fn bytes(&mut self, value: &[u8]) {
        if self.begin() {
            self.crc.update(value);
        }
    }

    fn null(&mut self) {
        self.column += 1;
    }
}

/// Appends a number in decimal digits.
pub fn push_int(value: i64, out: &mut Vec<u8>) {
    if value < 0 {
        out.push(b'-');
    }
    push_number(value.unsigned_abs(), out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[derive(Debug)]
    struct Odd;

    impl Table for Odd {
        fn name(&self) -> &str {
            "odd"
        }
        fn create(&self) -> String {
            String::new()
        }
        fn columns(&self) -> &str {
            "id,a,b,c"
        }
        fn rows(&self) -> u64 {
            1
        }
        fn row(&self, id: u64, fields: &mut dyn Fields) {
            fields.int(-(id as i64));
            fields.null();
            fields.bytes(b"it's");
            fields.bytes(b"plain text");
        }
        fn row_bytes(&self) -> u64 {
            10
        }
        fn sql_bytes(&self) -> usize {
            40
        }
        fn reseeded(&self, _: u64) -> Arc<dyn Table> {
            Arc::new(Self)
        }
    }

    #[test]
    fn a_row_reads_the_same_in_every_sql_mode() {
        let mut sql = Vec::new();
        let mut tuple = Tuple::open(&mut sql);
        Odd.row(7, &mut tuple);
        tuple.close();
        assert_eq!(String::from_utf8(sql).unwrap(), "(-7,NULL,_utf8mb4 x'69742773','plain text')");
    }

    #[test]
    fn a_row_s_digest_is_that_of_its_columns_with_commas_and_without_nulls() {
        assert_eq!(RowDigest::of(&Odd, 7), crc32fast::hash(b"-7,it's,plain text"));
        // The check value of CRC-32 (123456789).
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    proptest! {
        #[test]
        fn numbers_are_written_as_the_standard_library_does(n: i64) {
            let mut out = Vec::new();
            push_int(n, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
