//! Reading answers.

use std::sync::Arc;

use super::{Client, Done, Prepared};
use crate::capability::{Capabilities, status};
use crate::column::Column;
use crate::error::WireError;
use crate::packet::{MAX_FRAME, OkPacket, Reader, parse_error};
use crate::rows::Rows;
use crate::value::read_binary_row;

const FIRST: &str = "waiting for the first packet of a result";
const COLUMNS: &str = "reading column definitions";
const ROWS: &str = "reading rows";
const PREPARE: &str = "waiting for the answer to a prepare";
const MAX_COLUMNS: u64 = 65_535;
/// Most results that one text may give.
const MAX_RESULTS: usize = 10_000;
/// What a cell costs beside its bytes: its place in the row, and what an allocator adds to a few bytes.
const CELL_BYTES: usize = size_of::<Option<Vec<u8>>>() + 32;
/// What a row costs beside its cells: its place among the rows, half of which a growing list may leave empty, and
/// what an allocator adds.
const ROW_BYTES: usize = 2 * size_of::<Vec<u8>>() + 16;

/// What a packet among rows is.
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
        let cached = capabilities.has(Capabilities::MARIADB_CACHE_METADATA);
        let payload = self.channel.next(FIRST)?.payload;
        let (count, follow) = match payload.first() {
            Some(0x00) => return OkPacket::parse(payload, FIRST),
            Some(0xFF) => return Err(WireError::Server(parse_error(payload, FIRST)?)),
            Some(0xFB) => {
                return Err(WireError::protocol("local file request", FIRST, "local files are never sent"));
            }
            _ => {
                let mut r = Reader::new(payload, "result header", FIRST);
                let count = r.lenenc_int("number of columns")?;
                if count == 0 || count > MAX_COLUMNS {
                    return Err(r.error(format!("it announces {count} columns")));
                }
                (count as usize, !cached || r.u8("whether column definitions follow")? != 0)
            }
        };
        let columns: Arc<[Column]> = if follow {
            let columns: Arc<[Column]> = self.columns(count)?.into();
            if let Some(id) = statement {
                self.columns.insert(id, Arc::clone(&columns));
            }
            columns
        } else {
            match statement.and_then(|id| self.columns.get(&id)) {
                Some(known) if known.len() == count => Arc::clone(known),
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
                way_out: "ask for fewer columns or results",
            })?;
            into.columns = columns.to_vec();
        }
        loop {
            let deprecate_eof = capabilities.has(Capabilities::DEPRECATE_EOF);
            let payload = self.channel.next(ROWS)?.payload;
            if let Ending::End(end) = ending(payload, deprecate_eof)? {
                return Ok(end);
            }
            let Some(budget) = &mut budget else { continue };
            let cost = payload.len() + count * CELL_BYTES + ROW_BYTES;
            **budget = budget.checked_sub(cost).ok_or(WireError::TooLarge {
                what: "the result of a query",
                limit_bytes: self.max_result_bytes,
                way_out: "ask for fewer rows or columns",
            })?;
            into.rows.push(match statement {
                Some(_) => {
                    let row = read_binary_row(payload, &columns, ROWS)?;
                    row.iter().zip(columns.iter()).map(|(value, column)| value.to_text(column)).collect()
                }
                None => text_row(payload, count)?,
            });
        }
    }

    fn columns(&mut self, count: usize) -> Result<Vec<Column>, WireError> {
        let capabilities = self.session.capabilities;
        let mut budget = self.max_result_bytes;
        let mut columns = Vec::new();
        for _ in 0..count {
            let payload = self.channel.next(COLUMNS)?.payload;
            if payload.first() == Some(&0xFF) {
                return Err(WireError::Server(parse_error(payload, COLUMNS)?));
            }
            let cost = payload.len() + size_of::<Column>();
            budget = budget.checked_sub(cost).ok_or(WireError::TooLarge {
                what: "the column definitions of a result",
                limit_bytes: self.max_result_bytes,
                way_out: "ask for fewer columns",
            })?;
            columns.push(Column::parse(payload, capabilities, COLUMNS)?);
        }
        Ok(columns)
    }

    /// The EOF packet behind definitions, in sessions that still have it.
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
            let payload = client.channel.next(PREPARE)?.payload;
            if payload.first() == Some(&0xFF) {
                return Err(WireError::Server(parse_error(payload, PREPARE)?));
            }
            let mut r = Reader::new(payload, "prepare OK", PREPARE);
            let header = r.u8("header")?;
            if header != 0 {
                return Err(r.error(format!("it begins with {header:#04x}")));
            }
            let id = r.u32("statement id")?;
            let columns = usize::from(r.u16("number of columns")?);
            let params = usize::from(r.u16("number of parameters")?);
            let mut read = |count: usize| {
                if count == 0 {
                    return Ok(Vec::new());
                }
                let definitions = client.columns(count)?;
                client.expect_eof(COLUMNS)?;
                Ok::<_, WireError>(definitions)
            };
            Ok(Prepared { id, params: read(params)?, columns: read(columns)? })
        })
    }
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
