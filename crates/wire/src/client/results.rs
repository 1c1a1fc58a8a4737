//! Reading answers.

use std::sync::Arc;

use super::{Client, Done, Prepared};
use crate::capability::{Capabilities, status};
use crate::column::Column;
use crate::error::WireError;
use crate::packet::{MAX_FRAME, OkPacket, Reader, parse_error};
use crate::reply::{Expect, HeaderForm, PrepareReader, ResultReader, ResultSink, Row};
use crate::rows::Rows;
use crate::session_change::{self, SessionChange};
use crate::value::read_binary_row;

const FIRST: &str = "waiting for the first packet of a result";
const COLUMNS: &str = "reading column definitions";
const ROWS: &str = "reading rows";
const PREPARE: &str = "waiting for the answer to a prepare";
/// Limit of the results of one text.
const MAX_RESULTS: usize = 10_000;
/// Limit of the memory of column definitions: of one result, and of all prepared statements.
const MAX_DEFINITION_BYTES: usize = 16 << 20;
/// Memory of a cell in addition to its bytes: its entry in the row, and the allocator's overhead for a few bytes.
const CELL_BYTES: usize = size_of::<Option<Vec<u8>>>() + 32;
/// Memory of a row in addition to its cells: its entry in the list of rows, half of which a growing list may leave
/// unused, and the allocator's overhead.
const ROW_BYTES: usize = 2 * size_of::<Vec<u8>>() + 16;

/// Kind of a packet within rows.
enum Ending {
    Row,
    End(OkPacket),
}

impl Client {
    /// Reads every result of the command, keeping the rows.
    pub(super) fn results(&mut self, statement: Option<u32>) -> Result<(Vec<Rows>, Done), WireError> {
        let mut kept = Vec::new();
        let mut budget = self.max_result_bytes;
        let done = self.guarded(|client| client.read_all(statement, Some((&mut kept, &mut budget))))?;
        Ok((kept, done))
    }

    /// Reads every result of the command, dropping the rows.
    pub(super) fn skim(&mut self) -> Result<Done, WireError> {
        self.guarded(|client| client.read_all(None, None))
    }

    /// Errors of the server leave a connection usable; all others do not.
    fn guarded<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, WireError>) -> Result<T, WireError> {
        match read(self) {
            Err(WireError::Server(error)) => Err(WireError::Server(error)),
            Err(error) => self.channel.fail(error),
            ok => ok,
        }
    }

    fn read_all(
        &mut self,
        statement: Option<u32>,
        mut keep: Option<(&mut Vec<Rows>, &mut usize)>,
    ) -> Result<Done, WireError> {
        let mut done = Done::default();
        for _ in 0..MAX_RESULTS {
            let mut result = Rows::default();
            let budget = keep.as_mut().map(|(_, budget)| &mut **budget);
            let end = self.result(statement, &mut result, budget)?;
            done.affected_rows = done.affected_rows.saturating_add(end.affected_rows);
            done.warnings = done.warnings.saturating_add(u32::from(end.warnings));
            done.last_insert_id = end.last_insert_id;
            done.status = end.status;
            self.session.status = end.status;
            result.affected_rows = end.affected_rows;
            result.warnings = end.warnings;
            if let Some((kept, _)) = &mut keep {
                kept.push(result);
            }
            if end.status & status::MORE_RESULTS == 0 {
                return Ok(done);
            }
        }
        Err(WireError::protocol("result", FIRST, format!("more than {MAX_RESULTS} results and no end")))
    }

    /// Reads one result into `into`; rows only while there is a budget to keep them.
    fn result(
        &mut self,
        statement: Option<u32>,
        into: &mut Rows,
        mut budget: Option<&mut usize>,
    ) -> Result<OkPacket, WireError> {
        let capabilities = self.session.capabilities;
        let tracked = capabilities.has(Capabilities::SESSION_TRACK);
        let form = HeaderForm::of(capabilities);
        let payload = self.channel.next(FIRST)?.payload;
        let (count, follow) = match payload.first() {
            Some(0x00) => {
                let end = OkPacket::parse(payload, FIRST)?;
                note_changes(tracked, payload, FIRST, &mut self.changes)?;
                return Ok(end);
            }
            Some(0xFF) => return Err(WireError::Server(parse_error(payload, FIRST)?)),
            _ => form.read(payload, FIRST)?,
        };
        let count = count as usize;
        let columns: Arc<[Column]> = if follow {
            let columns: Arc<[Column]> = self.columns(count)?.into();
            if let Some(id) = statement {
                self.keep_columns(id, &columns)?;
            }
            columns
        } else {
            match statement.map(|id| self.columns.get(&id)) {
                Some(Some(known)) if known.len() == count => Arc::clone(known),
                // Text can be read without definitions, and so can rows that are dropped.
                None => vec![Column::unknown(); count].into(),
                _ => {
                    return Err(WireError::protocol(
                        "result header",
                        FIRST,
                        format!("it leaves out {count} column definitions that were never sent"),
                    ));
                }
            }
        };
        self.expect_eof(COLUMNS)?;
        if let Some(budget) = &mut budget {
            let cost = columns.iter().map(Column::size_bytes).sum();
            **budget = budget.checked_sub(cost).ok_or(WireError::TooLarge {
                what: "the column definitions of a query",
                limit_bytes: self.max_result_bytes,
                remedy: "ask for fewer columns or results",
            })?;
            into.columns = columns.to_vec();
        }
        loop {
            let deprecate_eof = capabilities.has(Capabilities::DEPRECATE_EOF);
            let payload = self.channel.next(ROWS)?.payload;
            if let Ending::End(end) = ending(payload, deprecate_eof)? {
                note_changes(tracked && deprecate_eof, payload, ROWS, &mut self.changes)?;
                return Ok(end);
            }
            let Some(budget) = &mut budget else { continue };
            let cost = payload.len() + count * CELL_BYTES + ROW_BYTES;
            **budget = budget.checked_sub(cost).ok_or(WireError::TooLarge {
                what: "the result of a query",
                limit_bytes: self.max_result_bytes,
                remedy: "ask for fewer rows or columns",
            })?;
            into.rows.push(match statement {
                Some(_) => {
                    let row = read_binary_row(payload, &columns, ROWS)?;
                    row.into_iter()
                        .zip(columns.iter())
                        .map(|(value, column)| value.into_text(column))
                        .collect()
                }
                None => text_row(payload, count)?,
            });
        }
    }

    fn columns(&mut self, count: usize) -> Result<Vec<Column>, WireError> {
        let capabilities = self.session.capabilities;
        let mut budget = MAX_DEFINITION_BYTES;
        let mut columns = Vec::new();
        for _ in 0..count {
            let payload = self.channel.next(COLUMNS)?.payload;
            if payload.first() == Some(&0xFF) {
                return Err(WireError::Server(parse_error(payload, COLUMNS)?));
            }
            let cost = payload.len() + size_of::<Column>();
            budget = budget.checked_sub(cost).ok_or(WireError::TooLarge {
                what: "the column definitions of a result",
                limit_bytes: MAX_DEFINITION_BYTES,
                remedy: "ask for fewer columns",
            })?;
            columns.push(Column::parse(payload, capabilities, COLUMNS)?);
        }
        Ok(columns)
    }

    /// Keeps the columns of a prepared statement, for results that come without.
    fn keep_columns(&mut self, statement: u32, columns: &Arc<[Column]>) -> Result<(), WireError> {
        self.columns.insert(statement, Arc::clone(columns));
        let kept: usize =
            self.columns.values().flat_map(|columns| columns.iter()).map(Column::size_bytes).sum();
        if kept > MAX_DEFINITION_BYTES {
            return Err(WireError::TooLarge {
                what: "the column definitions of all prepared statements",
                limit_bytes: MAX_DEFINITION_BYTES,
                remedy: "prepare fewer statements, or some with fewer columns",
            });
        }
        Ok(())
    }

    /// The EOF packet behind definitions, in sessions that still send it.
    fn expect_eof(&mut self, state: &'static str) -> Result<(), WireError> {
        if self.has(Capabilities::DEPRECATE_EOF) {
            return Ok(());
        }
        let payload = self.channel.next(state)?.payload;
        match payload.first() {
            Some(0xFE) if payload.len() < 9 => Ok(()),
            Some(0xFF) => Err(WireError::Server(parse_error(payload, state)?)),
            _ => Err(WireError::protocol("EOF", state, "definitions do not end where they should")),
        }
    }

    /// Reads the answer to COM_STMT_PREPARE.
    pub(super) fn prepare_answer(&mut self) -> Result<Prepared, WireError> {
        self.guarded(|client| {
            let mut reader = PrepareReader::new(&client.session);
            let prepared = loop {
                if let Some(prepared) = reader.packet(client.channel.next(PREPARE)?.payload)? {
                    break prepared;
                }
            };
            if reader.sends_definitions {
                let columns: Arc<[Column]> = prepared.columns.clone().into();
                client.keep_columns(prepared.id, &columns)?;
            }
            Ok(prepared)
        })
    }

    /// Passes every result of the command to `sink`.
    pub(super) fn stream_results(
        &mut self,
        statement: Option<u32>,
        sink: &mut impl ResultSink,
    ) -> Result<(), WireError> {
        self.guarded(|client| {
            let known = statement.and_then(|id| client.columns.get(&id).cloned()).unwrap_or_default();
            let expect = if statement.is_some() { Expect::Prepared } else { Expect::Text };
            let mut reader = ResultReader::new(&client.session, expect, known);
            for _ in 0..MAX_RESULTS {
                let mut counted = Ended { sink: &mut *sink, ended: false };
                while !counted.ended {
                    reader.packet(client.channel.next(ROWS)?.payload, &mut counted)?;
                }
                if reader.is_done() {
                    if let (Some(id), Some(columns)) = (statement, reader.redefined_columns()) {
                        client.keep_columns(id, &columns)?;
                    }
                    return Ok(());
                }
            }
            Err(WireError::protocol("result", FIRST, format!("more than {MAX_RESULTS} results and no end")))
        })
    }
}

/// Forwards a result, and notes when it has ended. It reads all of it, whether or not its sink wants more.
struct Ended<'a, S> {
    sink: &'a mut S,
    ended: bool,
}

impl<S: ResultSink> ResultSink for Ended<'_, S> {
    fn columns(&mut self, columns: &[Column]) {
        self.sink.columns(columns);
    }

    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        if self.sink.wants_more() { self.sink.row(row) } else { Ok(()) }
    }

    fn wants_names(&self) -> bool {
        self.sink.wants_names()
    }

    fn end(&mut self, end: &OkPacket) {
        self.ended = true;
        self.sink.end(end);
    }
}

/// Stores the session changes in an OK packet.
fn note_changes(
    tracked: bool,
    ok: &[u8],
    state: &'static str,
    changes: &mut Vec<SessionChange>,
) -> Result<(), WireError> {
    if tracked {
        *changes = session_change::parse(ok, state)?;
    }
    Ok(())
}

fn ending(payload: &[u8], deprecate_eof: bool) -> Result<Ending, WireError> {
    match payload.first() {
        Some(0xFF) => Err(WireError::Server(parse_error(payload, ROWS)?)),
        Some(0xFE) if deprecate_eof && payload.len() < MAX_FRAME => {
            OkPacket::parse(payload, ROWS).map(Ending::End)
        }
        Some(0xFE) if !deprecate_eof && payload.len() < 9 => {
            OkPacket::parse_eof(payload, ROWS).map(Ending::End)
        }
        Some(_) => Ok(Ending::Row),
        None => Err(WireError::protocol("row", ROWS, "it is empty")),
    }
}

fn text_row(payload: &[u8], columns: usize) -> Result<Vec<Option<Vec<u8>>>, WireError> {
    let mut r = Reader::new(payload, "text row", ROWS);
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        row.push(r.cell("a cell")?.map(<[u8]>::to_vec));
    }
    if !r.is_empty() {
        return Err(r.error(format!("{} bytes follow its last cell", r.remaining())));
    }
    Ok(row)
}
