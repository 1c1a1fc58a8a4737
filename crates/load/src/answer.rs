//! Decoders of the answer to one command, fed with its bytes as they arrive.

use mydyno_wire::{Column, WireError};
use std::cell::RefCell;
use std::io;
use std::sync::Arc;

use mydyno_wire::envelope::Envelope;
use mydyno_wire::packet::{Assembler, misnumbered};
use mydyno_wire::reply::{PrepareReader, Prepared, Progress, Reply, ReplyParser, ResultReader, ResultSink};
use mydyno_workload::Fault;
use mydyno_workload::session::Answer;

const STATE: &str = "waiting for an answer";

/// Largest packet of which a decoder keeps a part that has arrived.
const MAX_PACKET_BYTES: usize = 16 << 20;

/// Decodes received bytes, out of their envelope where there is one; none mean that the server has closed the
/// connection. `wrapped` is a buffer.
///
/// # Errors
/// They are not valid, or the connection is closed.
#[inline]
pub fn take<D: Decode>(
    wrapped: &RefCell<Vec<u8>>,
    parser: &mut ReplyParser,
    decoder: &mut D,
    envelope: &mut Option<Box<Envelope>>,
    received: &[u8],
) -> Result<Option<D::Output>, Fault> {
    if received.is_empty() {
        return Err(lost(STATE, io::ErrorKind::UnexpectedEof.into()));
    }
    let fed = match envelope {
        None => decoder.feed(parser, received),
        Some(envelope) => {
            let mut wrapped = wrapped.borrow_mut();
            let mut received = received;
            loop {
                wrapped.clear();
                let fed = envelope.open(received, &mut wrapped).and_then(|()| decoder.feed(parser, &wrapped));
                if !matches!(fed, Ok(None)) || !envelope.has_more() {
                    break fed;
                }
                // Compressed frames that arrived together are opened one after the other.
                received = &[];
            }
        }
    };
    fed.map_err(|e| Fault::Lost(Box::new(e)))
}

/// A failure of the connection.
pub fn lost(during: &'static str, source: io::Error) -> Fault {
    Fault::Lost(Box::new(WireError::Io { during, source }))
}

/// Decodes the answer to one command.
pub trait Decode {
    /// The type that the bytes are decoded to.
    type Output;
    /// The type that the session returns.
    type Answer;

    /// Decodes bytes. `Some` when the answer is complete.
    ///
    /// # Errors
    /// They are not valid; the connection cannot be used any more.
    fn feed(&mut self, parser: &mut ReplyParser, bytes: &[u8]) -> Result<Option<Self::Output>, WireError>;

    /// Makes the session's answer; `record` records a reply and turns the server's error into a fault.
    ///
    /// # Errors
    /// The server's error.
    fn finish(
        output: Self::Output,
        record: impl FnOnce(Reply) -> Result<Answer, Fault>,
    ) -> Result<Self::Answer, Fault>;
}

impl<D: Decode> Decode for &mut D {
    type Output = D::Output;
    type Answer = D::Answer;

    fn feed(&mut self, parser: &mut ReplyParser, bytes: &[u8]) -> Result<Option<Self::Output>, WireError> {
        (**self).feed(parser, bytes)
    }

    fn finish(
        output: Self::Output,
        record: impl FnOnce(Reply) -> Result<Answer, Fault>,
    ) -> Result<Self::Answer, Fault> {
        D::finish(output, record)
    }
}

/// Counts rows and drops them.
pub struct Counted;

impl Decode for Counted {
    type Output = Reply;
    type Answer = Answer;

    #[inline]
    fn feed(&mut self, parser: &mut ReplyParser, bytes: &[u8]) -> Result<Option<Reply>, WireError> {
        Ok(match parser.feed(bytes)? {
            Progress::Done(reply) => Some(reply),
            Progress::More => None,
        })
    }

    #[inline]
    fn finish(reply: Reply, record: impl FnOnce(Reply) -> Result<Answer, Fault>) -> Result<Answer, Fault> {
        record(reply)
    }
}

/// Counts rows and passes them to a sink.
pub struct Streamed<'s, S> {
    packets: Assembler,
    reader: ResultReader,
    sink: &'s mut S,
}

impl<'s, S: ResultSink> Streamed<'s, S> {
    pub fn new(reader: ResultReader, sink: &'s mut S) -> Self {
        Self { packets: Assembler::new(MAX_PACKET_BYTES), reader, sink }
    }

    /// As [`ResultReader::redefined_columns`].
    pub fn redefined_columns(self) -> Option<Arc<[Column]>> {
        self.reader.redefined_columns()
    }

    fn read(&mut self, bytes: &[u8]) -> Result<(), WireError> {
        self.packets.extend(bytes);
        while !self.reader.is_done() {
            let Some(packet) = self.packets.next(STATE)? else { break };
            match self.reader.packet(packet.payload, self.sink) {
                // The parser finds it too, and reports it.
                Err(WireError::Server(_)) => {}
                read => read?,
            }
        }
        Ok(())
    }
}

impl<S: ResultSink> Decode for Streamed<'_, S> {
    type Output = Reply;
    type Answer = Answer;

    fn feed(&mut self, parser: &mut ReplyParser, bytes: &[u8]) -> Result<Option<Reply>, WireError> {
        if !self.reader.is_done() {
            self.read(bytes)?;
        }
        Counted.feed(parser, bytes)
    }

    fn finish(reply: Reply, record: impl FnOnce(Reply) -> Result<Answer, Fault>) -> Result<Answer, Fault> {
        record(reply)
    }
}

/// Reads the answer to COM_STMT_PREPARE.
pub struct Preparing {
    packets: Assembler,
    reader: PrepareReader,
    /// Number that the next packet must have.
    sequence: u8,
    is_first: bool,
    misnumbered: bool,
}

impl Preparing {
    pub fn new(reader: PrepareReader, sequence: u8) -> Self {
        let packets = Assembler::new(MAX_PACKET_BYTES);
        Self { packets, reader, sequence, is_first: true, misnumbered: false }
    }

    /// Whether an answer whose first packet had a wrong sequence number was accepted.
    pub fn is_misnumbered(&self) -> bool {
        self.misnumbered
    }

    fn next(&mut self) -> Result<Option<Prepared>, WireError> {
        while let Some(packet) = self.packets.next(STATE)? {
            let is_first = std::mem::replace(&mut self.is_first, false);
            let first_byte = packet.payload.first().copied();
            let odd = misnumbered(packet.first_sequence(), self.sequence, is_first, first_byte);
            self.misnumbered |=
                odd.map_err(|detail| WireError::protocol("out of sequence", STATE, detail))?;
            self.sequence = packet.sequence.wrapping_add(1);
            if let Some(prepared) = self.reader.packet(packet.payload)? {
                return Ok(Some(prepared));
            }
        }
        Ok(None)
    }
}

impl Decode for Preparing {
    type Output = Result<Prepared, Fault>;
    type Answer = Prepared;

    fn feed(&mut self, _: &mut ReplyParser, bytes: &[u8]) -> Result<Option<Self::Output>, WireError> {
        self.packets.extend(bytes);
        match self.next() {
            Err(WireError::Server(error)) => Ok(Some(Err(Fault::Server(Box::new(error))))),
            Err(error) => Err(error),
            Ok(None) => Ok(None),
            Ok(Some(_)) if self.packets.pending() > 0 => {
                Err(WireError::protocol("unexpected", STATE, "bytes follow the end of the answer"))
            }
            Ok(Some(prepared)) => Ok(Some(Ok(prepared))),
        }
    }

    fn finish(
        output: Self::Output,
        _: impl FnOnce(Reply) -> Result<Answer, Fault>,
    ) -> Result<Prepared, Fault> {
        output
    }
}
