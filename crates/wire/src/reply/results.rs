//! The results of a reply, row by row, without keeping them.

use std::sync::Arc;

use crate::capability::{Capabilities, status};
use crate::column::Column;
use crate::error::WireError;
use crate::packet::{MAX_FRAME, OkPacket, Reader, parse_error};
use crate::reply::{Expect, HeaderForm};
use crate::session::Session;
use crate::value::{Value, binary_texts, read_binary_row};

const STATE: &str = "reading results";

/// Most memory for the column definitions of one result.
const MAX_DEFINITION_BYTES: usize = 16 << 20;

/// A row of a result, in the server's encoding.
#[derive(Debug, Clone, Copy)]
pub struct Row<'a> {
    payload: &'a [u8],
    columns: &'a [Column],
    binary: bool,
}

impl Row<'_> {
    /// Columns of the result.
    pub fn columns(&self) -> &[Column] {
        self.columns
    }

    /// The cells. Those of a text result are [`Value::Bytes`] or [`Value::Null`].
    ///
    /// # Errors
    /// The row is cut short, or a cell is not valid.
    pub fn values(&self) -> Result<Vec<Value>, WireError> {
        if self.binary {
            return read_binary_row(self.payload, self.columns, STATE);
        }
        let mut values = Vec::with_capacity(self.columns.len());
        self.text_cells(|cell| values.push(cell.map_or(Value::Null, |bytes| Value::Bytes(bytes.to_vec()))))?;
        Ok(values)
    }

    /// Passes the cells as text to `take`, in order; `None` is NULL. Cells of a text result are not copied.
    ///
    /// # Errors
    /// As [`Self::values`].
    pub fn texts(&self, take: impl FnMut(Option<&[u8]>)) -> Result<(), WireError> {
        if !self.binary {
            return self.text_cells(take);
        }
        binary_texts(self.payload, self.columns, STATE, take)
    }

    fn text_cells(&self, mut take: impl FnMut(Option<&[u8]>)) -> Result<(), WireError> {
        let mut r = Reader::new(self.payload, "text row", STATE);
        for _ in self.columns {
            take(r.cell("a cell")?);
        }
        if !r.is_empty() {
            return Err(r.error(format!("{} bytes follow its last cell", r.remaining())));
        }
        Ok(())
    }
}

/// Receives the results of one command as they arrive. A command has several results when its text holds several
/// statements, or when it calls a procedure.
pub trait ResultSink {
    /// A result with columns begins.
    fn columns(&mut self, columns: &[Column]) {
        let _ = columns;
    }

    /// The next row of the result that began last. An error ends the connection.
    ///
    /// # Errors
    /// A cell that cannot be decoded.
    fn row(&mut self, row: Row<'_>) -> Result<(), WireError>;

    /// Whether the names of columns are needed: of their schema, table, type and format, too. After `false` those of text
    /// results may be empty.
    fn wants_names(&self) -> bool {
        true
    }

    /// The current result is complete: its affected rows, first AUTO_INCREMENT value, warnings and status flags.
    fn end(&mut self, end: &OkPacket) {
        let _ = end;
    }

    /// Whether anything further is needed. After `false` the rest of the reply is read and dropped.
    fn wants_more(&self) -> bool {
        true
    }
}

/// Drops all results.
impl ResultSink for () {
    fn row(&mut self, _: Row<'_>) -> Result<(), WireError> {
        Ok(())
    }

    fn wants_more(&self) -> bool {
        false
    }

    fn wants_names(&self) -> bool {
        false
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Columns { left: u32 },
    ColumnsEnd,
    Rows,
    Done,
}

/// Decodes the packets of one reply and passes them to a [`ResultSink`]. It keeps the columns of the current result and
/// no rows.
#[derive(Debug)]
pub struct ResultReader {
    capabilities: Capabilities,
    binary: bool,
    stage: Stage,
    /// Columns as the server last sent them for this statement, for replies without definitions.
    known: Arc<[Column]>,
    /// Whether this reply had definitions, and others than those that were known.
    redefined: bool,
    /// The columns of the current result are `known` and not `columns`.
    uses_known: bool,
    columns: Vec<Column>,
    definition_bytes: usize,
}

impl ResultReader {
    /// A reader for the reply to a command of this kind. `known` are the columns of the statement: those of its
    /// preparation or, after an execution, of [`Self::redefined_columns`].
    pub fn new(session: &Session, expect: Expect, known: Arc<[Column]>) -> Self {
        Self {
            capabilities: session.capabilities,
            binary: expect == Expect::Prepared,
            stage: Stage::Header,
            known,
            redefined: false,
            uses_known: false,
            columns: Vec::new(),
            definition_bytes: 0,
        }
    }

    /// Whether the reply is complete, or the sink wants no more of it.
    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Columns of a prepared statement whose definitions this reply had. The server leaves them out of later replies
    /// until they change (MariaDB), also where they differ from those of the preparation.
    pub fn redefined_columns(self) -> Option<Arc<[Column]>> {
        (self.binary && self.redefined).then_some(self.known)
    }

    /// Decodes the next packet.
    ///
    /// # Errors
    /// The server's error, which ends the reply; a packet that is cut short or not valid, and the sink's error.
    pub fn packet(&mut self, payload: &[u8], sink: &mut impl ResultSink) -> Result<(), WireError> {
        if self.stage == Stage::Done {
            return Ok(());
        }
        if payload.first() == Some(&0xFF) {
            self.stage = Stage::Done;
            return Err(WireError::Server(parse_error(payload, STATE)?));
        }
        match self.stage {
            Stage::Header => self.header(payload, sink)?,
            Stage::Columns { left } => self.column(payload, left, sink)?,
            Stage::ColumnsEnd => self.begin_rows(sink),
            Stage::Rows => match self.end_of_rows(payload)? {
                Some(end) => self.end_result(&end, sink),
                None => {
                    let columns = self.current();
                    sink.row(Row { payload, columns, binary: self.binary })?;
                }
            },
            Stage::Done => {}
        }
        // Definitions are read in any case: see `redefined_columns`.
        if matches!(self.stage, Stage::Rows | Stage::Header) && !sink.wants_more() {
            self.stage = Stage::Done;
        }
        Ok(())
    }

    fn has_no_eof(&self) -> bool {
        self.capabilities.has(Capabilities::DEPRECATE_EOF)
    }

    fn header(&mut self, payload: &[u8], sink: &mut impl ResultSink) -> Result<(), WireError> {
        if payload.first() == Some(&0x00) {
            let end = OkPacket::parse(payload, STATE)?;
            self.end_result(&end, sink);
            return Ok(());
        }
        let (count, follow) = HeaderForm::of(self.capabilities).read(payload, STATE)?;
        self.columns.clear();
        self.definition_bytes = 0;
        self.uses_known = false;
        if follow {
            self.stage = Stage::Columns { left: count };
            return Ok(());
        }
        if self.known.len() == count as usize {
            self.uses_known = true;
        } else if self.binary {
            let detail = format!("it leaves out {count} column definitions that were never sent");
            return Err(WireError::protocol("result header", STATE, detail));
        } else {
            // Text rows can be read without definitions.
            self.columns.resize(count as usize, Column::unknown());
        }
        match self.has_no_eof() {
            true => self.begin_rows(sink),
            false => self.stage = Stage::ColumnsEnd,
        }
        Ok(())
    }

    fn column(&mut self, payload: &[u8], left: u32, sink: &mut impl ResultSink) -> Result<(), WireError> {
        // Those of a prepared statement are kept for later results, whose sink may want names.
        let column = if self.binary || sink.wants_names() {
            Column::parse(payload, self.capabilities, STATE)?
        } else {
            Column::parse_unnamed(payload, self.capabilities, STATE)?
        };
        self.definition_bytes += column.size_bytes();
        if self.definition_bytes > MAX_DEFINITION_BYTES {
            return Err(WireError::TooLarge {
                what: "the column definitions of a result",
                limit_bytes: MAX_DEFINITION_BYTES,
                remedy: "ask for fewer columns",
            });
        }
        self.columns.push(column);
        if left <= 1 && self.binary && *self.known != *self.columns {
            self.known = self.columns.as_slice().into();
            self.redefined = true;
        }
        match left {
            0 | 1 if self.has_no_eof() => self.begin_rows(sink),
            0 | 1 => self.stage = Stage::ColumnsEnd,
            _ => self.stage = Stage::Columns { left: left - 1 },
        }
        Ok(())
    }

    fn begin_rows(&mut self, sink: &mut impl ResultSink) {
        self.stage = Stage::Rows;
        sink.columns(self.current());
    }

    /// The columns of the current result.
    fn current(&self) -> &[Column] {
        if self.uses_known { &self.known } else { &self.columns }
    }

    /// The packet that ends the rows; `None` for a row.
    fn end_of_rows(&self, payload: &[u8]) -> Result<Option<OkPacket>, WireError> {
        match payload.first() {
            None => Err(WireError::protocol("row", STATE, "it is empty")),
            Some(0xFE) if self.has_no_eof() && payload.len() < MAX_FRAME => {
                OkPacket::parse(payload, STATE).map(Some)
            }
            Some(0xFE) if !self.has_no_eof() && payload.len() < 9 => {
                OkPacket::parse_eof(payload, STATE).map(Some)
            }
            Some(_) => Ok(None),
        }
    }

    fn end_result(&mut self, end: &OkPacket, sink: &mut impl ResultSink) {
        sink.end(end);
        self.stage = if end.status & status::MORE_RESULTS == 0 { Stage::Done } else { Stage::Header };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Assembler;
    use crate::server::ServerVersion;

    /// Records its input, and stops after some rows.
    #[derive(Default)]
    struct Notes {
        text: String,
        rows: usize,
        limit: Option<usize>,
    }

    impl ResultSink for Notes {
        fn columns(&mut self, columns: &[Column]) {
            let names: Vec<&str> = columns.iter().map(|c| c.name.as_str()).collect();
            self.text.push_str(&format!("[{}]", names.join(",")));
        }

        fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
            self.rows += 1;
            row.texts(|cell| {
                self.text.push_str(&cell.map_or("NULL".into(), String::from_utf8_lossy));
                self.text.push(' ');
            })
        }

        fn end(&mut self, end: &OkPacket) {
            self.text.push_str(&format!("({})", end.affected_rows));
        }

        fn wants_more(&self) -> bool {
            self.limit.is_none_or(|limit| self.rows < limit)
        }
    }

    fn read(reply: &[u8], size: usize, limit: Option<usize>) -> (String, Option<WireError>, bool) {
        let capabilities = Capabilities::DEPRECATE_EOF;
        let session = Session::new(ServerVersion::parse("8.0.36", 1, capabilities), capabilities);
        let mut reader = ResultReader::new(&session, Expect::Text, Arc::default());
        let (mut packets, mut notes) = (Assembler::new(1 << 20), Notes { limit, ..Notes::default() });
        for bytes in reply.chunks(size) {
            packets.extend(bytes);
            while let Some(packet) = packets.next("testing").unwrap() {
                if let Err(error) = reader.packet(packet.payload, &mut notes) {
                    return (notes.text, Some(error), reader.is_done());
                }
            }
        }
        (notes.text, None, reader.is_done())
    }

    fn packets(payloads: &[&[u8]]) -> Vec<u8> {
        let mut reply = Vec::new();
        for (number, payload) in payloads.iter().enumerate() {
            reply.extend_from_slice(&[payload.len() as u8, 0, 0, number as u8 + 1]);
            reply.extend_from_slice(payload);
        }
        reply
    }

    const DEFINITION: &[u8] = b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x0b\0\0\0\xfd\0\0\0\0\0";
    /// The end of rows with MORE_RESULTS, an OK packet of three affected rows, an error.
    const MORE: &[u8] = b"\xfe\0\0\x0a\0\0\0";
    const OK: &[u8] = b"\0\x03\0\x02\0\0\0";
    const ERROR: &[u8] = b"\xff\x7a\x04#42S02gone";

    #[test]
    fn several_results_are_passed_on_however_their_bytes_arrive() {
        let reply = packets(&[b"\x01", DEFINITION, b"\x01a", b"\xfb", MORE, OK]);
        for size in 1..=reply.len() {
            let (text, error, done) = read(&reply, size, None);
            assert_eq!((text.as_str(), error.is_none(), done), ("[n]a NULL (0)(3)", true, true), "{size}");
        }
    }

    #[test]
    fn an_error_behind_rows_comes_after_the_rows() {
        let (text, error, done) = read(&packets(&[b"\x01", DEFINITION, b"\x01a", ERROR]), 3, None);
        assert_eq!((text.as_str(), done), ("[n]a ", true));
        assert_eq!(error.unwrap().code(), 1146);
    }

    #[test]
    fn a_sink_that_wants_no_more_gets_no_more() {
        let reply = packets(&[b"\x01", DEFINITION, b"\x01a", b"\x01b", MORE, OK]);
        assert_eq!(read(&reply, 1000, Some(1)).0, "[n]a ");
    }

    #[test]
    fn a_row_of_the_wrong_length_is_an_error() {
        let (_, error, _) = read(&packets(&[b"\x01", DEFINITION, b"\x01ab"]), 1000, None);
        let error = error.unwrap().to_string();
        assert!(error.contains("1 bytes follow its last cell"), "{error}");
    }
}
