//! A connection of a script: it waits as its thread or fiber does, and keeps no buffer of its own while it is idle.

use std::sync::Arc;

use mydyno_load::fibers::{Line, elsewhere};
use mydyno_wire::command;
use mydyno_wire::envelope::Envelope;
use mydyno_wire::execute;
use mydyno_wire::packet::{Assembler, answer_sequence, misnumbered};
use mydyno_wire::reply::{Expect, PrepareReader, Prepared, ResultReader, ResultSink};
use mydyno_wire::{Client, Column, ConnectOptions, Session, Value, WireError};

const ANSWER: &str = "reading the answer to a statement";
/// Buffers that grew beyond this are given back.
const KEPT_BYTES: usize = 64 << 10;

/// A statement that the server has prepared.
pub(super) struct Statement {
    pub(super) id: u32,
    pub(super) params: usize,
    /// Columns as the server last sent them.
    columns: Arc<[Column]>,
}

/// An authenticated connection.
pub(super) struct ScriptClient {
    line: Line,
    session: Session,
    envelope: Option<Box<Envelope>>,
    assembler: Assembler,
    out: Vec<u8>,
    /// Number that the next packet of an answer must have.
    sequence: u8,
    lost: bool,
}

impl ScriptClient {
    /// Connects and authenticates.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(super) fn open(options: &ConnectOptions) -> Result<Self, WireError> {
        let of_thread = options.clone();
        let opened = elsewhere(move || Client::connect(&of_thread)?.into_enveloped_parts());
        let failed = |source| WireError::Io { during: "connecting", source };
        let (socket, session, envelope) =
            opened.ok_or_else(|| failed(std::io::ErrorKind::OutOfMemory.into()))??;
        let line = Line::new(socket).map_err(failed)?;
        let assembler = Assembler::new(options.max_packet_bytes);
        Ok(Self { line, session, envelope, assembler, out: Vec::new(), sequence: 0, lost: false })
    }

    fn send(&mut self, answered: bool) -> Result<(), WireError> {
        if self.lost {
            return Err(WireError::Closed { state: ANSWER, remedy: "connect again" });
        }
        self.sequence = answer_sequence(&self.out);
        let sealed = match &mut self.envelope {
            None => None,
            Some(envelope) => {
                let mut sealed = Vec::new();
                envelope.seal(&self.out, &mut sealed)?;
                Some(sealed)
            }
        };
        let sent = self.line.send(sealed.as_ref().unwrap_or(&self.out), answered);
        self.out.clear();
        self.out.shrink_to(KEPT_BYTES);
        sent.map_err(|source| {
            self.lost = true;
            WireError::Io { during: "sending a statement", source }
        })
    }

    /// Passes the packets of an answer to `take` until it says that the answer is complete.
    fn answer<T>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<Option<T>, WireError>,
    ) -> Result<T, WireError> {
        let mut is_first = true;
        let answered = loop {
            match self.assembler.next(ANSWER) {
                Ok(Some(packet)) => {
                    let first_byte = packet.payload.first().copied();
                    let odd = misnumbered(packet.first_sequence(), self.sequence, is_first, first_byte);
                    if let Err(detail) = odd {
                        break Err(WireError::protocol("out of sequence", ANSWER, detail));
                    }
                    (self.sequence, is_first) = (packet.sequence.wrapping_add(1), false);
                    match take(packet.payload) {
                        Ok(Some(answer)) => break Ok(answer),
                        Ok(None) => continue,
                        Err(error) => break Err(error),
                    }
                }
                Ok(None) => {}
                Err(error) => break Err(error),
            }
            if let Err(error) = self.receive() {
                break Err(error);
            }
        };
        self.assembler.shrink();
        // Errors of the server leave a connection usable; all others do not.
        self.lost |= matches!(&answered, Err(error) if error.server_error().is_none());
        answered
    }

    fn receive(&mut self) -> Result<(), WireError> {
        let Self { line, envelope, assembler, .. } = self;
        let received = line.receive(|bytes| {
            if bytes.is_empty() {
                return Err(WireError::Closed { state: ANSWER, remedy: "see the server's error log" });
            }
            let Some(envelope) = envelope else {
                assembler.extend(bytes);
                return Ok(());
            };
            let mut opened = Vec::new();
            envelope.open(bytes, &mut opened)?;
            while envelope.has_more() {
                envelope.open(&[], &mut opened)?;
            }
            assembler.extend(&opened);
            Ok(())
        });
        received.map_err(|source| WireError::Io { during: ANSWER, source })?
    }

    /// Runs a text and passes its results to `sink`.
    ///
    /// # Errors
    /// The server's, or the connection's.
    pub(super) fn query(&mut self, sql: &[u8], sink: &mut impl ResultSink) -> Result<(), WireError> {
        command::query(&mut self.out, sql);
        self.send(true)?;
        let mut reader = ResultReader::new(&self.session, Expect::Text, Arc::default());
        self.answer(|payload| {
            reader.packet(payload, sink)?;
            Ok(reader.is_done().then_some(()))
        })
    }

    /// Prepares a statement.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub(super) fn prepare(&mut self, sql: &[u8]) -> Result<Statement, WireError> {
        command::stmt_prepare(&mut self.out, sql);
        self.send(true)?;
        let mut reader = PrepareReader::new(&self.session);
        let Prepared { id, params, columns } = self.answer(|payload| reader.packet(payload))?;
        Ok(Statement { id, params: params.len(), columns: columns.into() })
    }

    /// Runs a prepared statement and passes its results to `sink`.
    ///
    /// # Errors
    /// As [`Self::query`]; also when there are not as many values as parameters.
    pub(super) fn execute(
        &mut self,
        statement: &mut Statement,
        values: &[Value],
        sink: &mut impl ResultSink,
    ) -> Result<(), WireError> {
        if values.len() != statement.params {
            return Err(WireError::Unsupported(format!(
                "the statement has {} parameters, {} are bound",
                statement.params,
                values.len()
            )));
        }
        execute::execute(&mut self.out, statement.id, values);
        self.send(true)?;
        let mut reader = ResultReader::new(&self.session, Expect::Prepared, Arc::clone(&statement.columns));
        self.answer(|payload| {
            reader.packet(payload, sink)?;
            Ok(reader.is_done().then_some(()))
        })?;
        if let Some(columns) = reader.redefined_columns() {
            statement.columns = columns;
        }
        Ok(())
    }

    /// Has the server forget a statement.
    pub(super) fn close_statement(&mut self, id: u32) {
        command::stmt_close(&mut self.out, id);
        // A connection that is gone has forgotten it.
        let _ = self.send(false);
    }
}

impl Drop for ScriptClient {
    fn drop(&mut self) {
        if self.lost {
            return;
        }
        let mut last = Vec::new();
        command::quit(&mut last);
        if let Some(envelope) = &mut self.envelope {
            let packets = std::mem::take(&mut last);
            if envelope.seal(&packets, &mut last).is_err() {
                return;
            }
            envelope.close(&mut last);
        }
        self.line.send_last(&last);
    }
}
