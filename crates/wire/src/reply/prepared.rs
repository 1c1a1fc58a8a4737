//! The answer to COM_STMT_PREPARE, packet by packet.

use crate::capability::Capabilities;
use crate::column::Column;
use crate::error::WireError;
use crate::packet::{Reader, parse_error};
use crate::session::Session;

const STATE: &str = "waiting for the answer to a prepare";

/// Most memory for the definitions of one statement.
const MAX_DEFINITION_BYTES: usize = 16 << 20;

/// A prepared statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The server's id of the statement, within its connection.
    pub id: u32,
    /// Its parameters. Servers know little more of them than their number.
    pub params: Vec<Column>,
    /// Its columns; empty where it gives no rows.
    pub columns: Vec<Column>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Header,
    Params { left: usize },
    ParamsEnd,
    Columns { left: usize },
    ColumnsEnd,
}

/// Decodes the packets of one answer.
#[derive(Debug)]
pub struct PrepareReader {
    capabilities: Capabilities,
    stage: Stage,
    id: u32,
    /// Column definitions that are announced.
    count: usize,
    params: Vec<Column>,
    columns: Vec<Column>,
    definition_bytes: usize,
    /// Whether the server sends definitions.
    pub sends_definitions: bool,
}

impl PrepareReader {
    /// A reader for one answer.
    pub fn new(session: &Session) -> Self {
        Self {
            capabilities: session.capabilities,
            stage: Stage::Header,
            id: 0,
            count: 0,
            params: Vec::new(),
            columns: Vec::new(),
            definition_bytes: 0,
            sends_definitions: true,
        }
    }

    /// Decodes the next packet. `Some` when the answer is complete.
    ///
    /// # Errors
    /// The server's error, which ends the answer, or a packet that is cut short or not valid.
    pub fn packet(&mut self, payload: &[u8]) -> Result<Option<Prepared>, WireError> {
        if payload.first() == Some(&0xFF) {
            return Err(WireError::Server(parse_error(payload, STATE)?));
        }
        match self.stage {
            Stage::Header => self.header(payload)?,
            Stage::Params { left } => {
                let param = self.definition(payload)?;
                self.params.push(param);
                self.stage = if left > 1 { Stage::Params { left: left - 1 } } else { Stage::ParamsEnd };
            }
            Stage::Columns { left } => {
                let column = self.definition(payload)?;
                self.columns.push(column);
                self.stage = if left > 1 { Stage::Columns { left: left - 1 } } else { Stage::ColumnsEnd };
            }
            Stage::ParamsEnd | Stage::ColumnsEnd => {
                if payload.first() != Some(&0xFE) || payload.len() >= 9 {
                    return Err(WireError::protocol(
                        "EOF",
                        STATE,
                        "definitions do not end where they should",
                    ));
                }
                return Ok(self.next_list());
            }
        }
        let at_end = matches!(self.stage, Stage::ParamsEnd | Stage::ColumnsEnd);
        let has_eof = !self.capabilities.has(Capabilities::DEPRECATE_EOF);
        if at_end && !has_eof { Ok(self.next_list()) } else { Ok(self.finished()) }
    }

    fn header(&mut self, payload: &[u8]) -> Result<(), WireError> {
        let mut r = Reader::new(payload, "prepare OK", STATE);
        let header = r.u8("header")?;
        if header != 0 {
            return Err(r.error(format!("it begins with {header:#04x}")));
        }
        self.id = r.u32("statement id")?;
        self.count = usize::from(r.u16("number of columns")?);
        let params = usize::from(r.u16("number of parameters")?);
        if self.capabilities.has(Capabilities::OPTIONAL_METADATA) && r.remaining() >= 4 {
            r.u8("filler")?;
            r.u16("warnings")?;
            self.sends_definitions = r.u8("whether column definitions follow")? != 0;
        }
        self.stage = match (self.sends_definitions, params, self.count) {
            (false, ..) => {
                self.params = vec![Column::unknown(); params];
                self.columns = vec![Column::unknown(); self.count];
                Stage::Header
            }
            (true, 0, 0) => Stage::Header,
            (true, 0, columns) => Stage::Columns { left: columns },
            (true, params, _) => Stage::Params { left: params },
        };
        Ok(())
    }

    fn definition(&mut self, payload: &[u8]) -> Result<Column, WireError> {
        self.definition_bytes += payload.len() + size_of::<Column>();
        if self.definition_bytes > MAX_DEFINITION_BYTES {
            return Err(WireError::TooLarge {
                what: "the column definitions of a statement",
                limit_bytes: MAX_DEFINITION_BYTES,
                remedy: "ask for fewer columns",
            });
        }
        Column::parse(payload, self.capabilities, STATE)
    }

    /// Goes on behind a list of definitions.
    fn next_list(&mut self) -> Option<Prepared> {
        self.stage = match self.stage {
            Stage::ParamsEnd if self.count > 0 => Stage::Columns { left: self.count },
            _ => Stage::Header,
        };
        self.finished()
    }

    /// The statement, once nothing is left to read.
    fn finished(&mut self) -> Option<Prepared> {
        (self.stage == Stage::Header).then(|| Prepared {
            id: self.id,
            params: std::mem::take(&mut self.params),
            columns: std::mem::take(&mut self.columns),
        })
    }
}
