//! The first row of a reply, kept while [`super::ReplyParser`] counts.

use std::sync::Arc;

use crate::capability::Capabilities;
use crate::column::Column;
use crate::error::WireError;
use crate::packet::{Assembler, MAX_FRAME, Reader};
use crate::reply::{Expect, HeaderForm};
use crate::session::Session;
use crate::value::{Value, read_binary_row};

const STATE: &str = "keeping the first row";

/// Largest row that is kept, and most memory of its columns' definitions.
const MAX_BYTES: usize = 16 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Columns { left: u32 },
    ColumnsEnd,
    Row,
    Done,
}

/// Keeps the first row of a reply's first result. It is fed the bytes that the parser is fed, and leaves it to the
/// parser to find what is wrong with a reply.
#[derive(Debug)]
pub struct FirstRow {
    capabilities: Capabilities,
    binary: bool,
    stage: Stage,
    packets: Assembler,
    /// Columns as the server last sent them, for replies that come without.
    known: Arc<[Column]>,
    columns: Vec<Column>,
    /// Columns of the result.
    count: u32,
    definition_bytes: usize,
    row: Option<Vec<Value>>,
}

impl FirstRow {
    /// For the reply to a command of this kind. `known` are the columns that the statement was prepared with.
    pub fn new(session: &Session, expect: Expect, known: Arc<[Column]>) -> Self {
        Self {
            capabilities: session.capabilities,
            binary: expect == Expect::Prepared,
            stage: Stage::Header,
            packets: Assembler::new(MAX_BYTES),
            known,
            columns: Vec::new(),
            count: 0,
            definition_bytes: 0,
            row: None,
        }
    }

    /// Takes in bytes of the reply.
    ///
    /// # Errors
    /// A definition or the row is cut short or not valid.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        if self.stage == Stage::Done {
            return Ok(());
        }
        self.packets.extend(bytes);
        while self.stage != Stage::Done {
            let Some(packet) = self.packets.next(STATE)? else { return Ok(()) };
            let payload = packet.payload;
            let eof = Capabilities::DEPRECATE_EOF;
            match self.stage {
                Stage::Header => {
                    let form = HeaderForm::of(self.capabilities);
                    let no_rows = matches!(payload.first(), None | Some(0x00 | 0xFB | 0xFF));
                    self.stage = if no_rows {
                        Stage::Done
                    } else {
                        let (count, follow) = form.read(payload, STATE)?;
                        self.count = count;
                        match (count, follow) {
                            (left, true) => Stage::Columns { left },
                            (_, false) if self.capabilities.has(eof) => Stage::Row,
                            (_, false) => Stage::ColumnsEnd,
                        }
                    };
                }
                Stage::Columns { left } => {
                    let column = Column::parse(payload, self.capabilities, STATE)?;
                    self.definition_bytes += column.size_bytes();
                    if self.definition_bytes > MAX_BYTES {
                        return Err(WireError::TooLarge {
                            what: "the column definitions of a result",
                            limit_bytes: MAX_BYTES,
                            way_out: "ask for fewer columns",
                        });
                    }
                    self.columns.push(column);
                    self.stage = match left {
                        0 | 1 if self.capabilities.has(eof) => Stage::Row,
                        0 | 1 => Stage::ColumnsEnd,
                        _ => Stage::Columns { left: left - 1 },
                    };
                }
                Stage::ColumnsEnd => self.stage = Stage::Row,
                Stage::Row => {
                    let ends = match payload.first() {
                        Some(0xFE) if self.capabilities.has(eof) => payload.len() < MAX_FRAME,
                        Some(0xFE) => payload.len() < 9,
                        first => matches!(first, None | Some(0xFF)),
                    };
                    if !ends {
                        let columns = if self.columns.is_empty() { &*self.known } else { &*self.columns };
                        self.row = Some(match self.binary {
                            true => read_binary_row(payload, columns, STATE)?,
                            false => text_row(payload, self.count)?,
                        });
                    }
                    self.stage = Stage::Done;
                }
                Stage::Done => {}
            }
        }
        Ok(())
    }

    /// The row, once the reply is complete; `None` where there was none.
    pub fn into_row(self) -> Option<Vec<Value>> {
        self.row
    }
}

/// The cells of a text row, as bytes.
fn text_row(payload: &[u8], count: u32) -> Result<Vec<Value>, WireError> {
    let mut r = Reader::new(payload, "text row", STATE);
    let mut row = Vec::new();
    for _ in 0..count {
        row.push(r.cell("a cell")?.map_or(Value::Null, |cell| Value::Bytes(cell.to_vec())));
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::kind;
    use crate::server::ServerVersion;

    fn session(capabilities: Capabilities) -> Session {
        Session::new(ServerVersion::parse("8.0.36", 1, capabilities), capabilities)
    }

    fn number() -> Column {
        Column { kind: kind::LONG, ..Column::unknown() }
    }

    /// Two rows of one number, without definitions.
    const ROWS: &[u8] = b"\x02\0\0\x01\x01\x00\x06\0\0\x02\0\0\x07\0\0\0\x06\0\0\x03\0\0\x09\0\0\0\x07\0\0\x04\xfe\0\0\x02\0\0\0";

    #[test]
    fn the_first_row_is_kept_however_its_bytes_arrive() {
        let both = Capabilities::DEPRECATE_EOF | Capabilities::MARIADB_CACHE_METADATA;
        for size in 1..=ROWS.len() {
            let mut first = FirstRow::new(&session(both), Expect::Prepared, [number()].into());
            for bytes in ROWS.chunks(size) {
                first.feed(bytes).unwrap();
            }
            assert_eq!(first.into_row(), Some(vec![Value::Int(7)]), "in pieces of {size}");
        }
    }

    #[test]
    fn a_text_row_is_bytes_and_nulls_behind_its_definitions() {
        // One definition with its EOF packet, as old servers send them, then a row of a text.
        let definition = b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x0b\0\0\0\xfd\0\0\0\0\0";
        let mut reply = b"\x01\0\0\x01\x01".to_vec();
        reply.extend_from_slice(&[definition.len() as u8, 0, 0, 2]);
        reply.extend_from_slice(definition);
        reply.extend_from_slice(b"\x05\0\0\x03\xfe\0\0\x02\0\x02\0\0\x04\x01x\x05\0\0\x05\xfe\0\0\x02\0");
        let mut first = FirstRow::new(&session(Capabilities::default()), Expect::Text, [].into());
        first.feed(&reply).unwrap();
        assert_eq!(first.into_row(), Some(vec![Value::Bytes(b"x".to_vec())]));
    }

    #[test]
    fn replies_without_rows_have_none() {
        for reply in [&b"\x07\0\0\x01\0\0\0\x02\0\0\0"[..], b"\x09\0\0\x01\xff\x7a\x04#42S02"] {
            let mut first = FirstRow::new(&session(Capabilities::DEPRECATE_EOF), Expect::Text, [].into());
            first.feed(reply).unwrap();
            assert_eq!(first.into_row(), None);
        }
    }
}
