//! The parser behind [`super`].

use super::stash::{Head, keep_error};
use super::{Expect, HeaderForm, Progress, Reply};
use crate::capability::{Capabilities, status};
use crate::error::WireError;
use crate::packet::{HEADER, MAX_FRAME, OkPacket, misnumbered, parse_error};
use crate::session::Session;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No command is in progress.
    Idle,
    /// The first packet of a result.
    First,
    /// Column definitions.
    Columns,
    /// The EOF packet behind them, where the session still sends it.
    ColumnsEnd,
    /// Rows.
    Rows,
}

impl State {
    fn name(self) -> &'static str {
        match self {
            Self::Idle => "no command is under way",
            Self::First => "waiting for the first packet of a result",
            Self::Columns => "reading column definitions",
            Self::ColumnsEnd => "waiting for the end of the column definitions",
            Self::Rows => "reading rows",
        }
    }
}

/// Parses replies of one connection from bytes in any fragmentation. Small, since there may be ten thousand.
#[derive(Debug)]
pub struct ReplyParser {
    state: State,
    deprecate_eof: bool,
    header: HeaderForm,
    /// Rows are binary.
    binary: bool,
    /// Number that the next frame must have.
    sequence: u8,
    /// The next frame continues a packet.
    continued: bool,
    /// The reply ends with the packet under way.
    ending: bool,
    /// A packet with a wrong number was accepted.
    misnumbered: bool,
    head: Head,
    /// Remaining payload bytes of the current frame.
    skip: u32,
    /// Remaining column definitions.
    columns: u32,
    rows: u64,
    affected_rows: u64,
    ok: OkPacket,
    /// The error packet under way.
    error: Option<Vec<u8>>,
}

impl ReplyParser {
    /// A parser for a session's replies.
    pub fn new(session: &Session) -> Self {
        Self {
            state: State::Idle,
            deprecate_eof: session.capabilities.has(Capabilities::DEPRECATE_EOF),
            header: HeaderForm::of(session.capabilities),
            binary: false,
            sequence: 0,
            continued: false,
            ending: false,
            misnumbered: false,
            head: Head::new(),
            skip: 0,
            columns: 0,
            rows: 0,
            affected_rows: 0,
            ok: OkPacket::default(),
            error: None,
        }
    }

    /// Expects the reply to a command that was, or is about to be, sent.
    #[inline]
    pub fn start(&mut self, expect: Expect) {
        self.state = State::First;
        self.binary = expect == Expect::Prepared;
        self.sequence = 1;
        self.continued = false;
        self.ending = false;
        self.misnumbered = false;
        self.head.clear();
        self.skip = 0;
        self.rows = 0;
        self.affected_rows = 0;
        self.ok = OkPacket::default();
        self.error = None;
    }

    /// [`Self::start`] for a command of 16 MiB or more, see [`crate::packet::answer_sequence`].
    pub fn start_at(&mut self, expect: Expect, sequence: u8) {
        self.start(expect);
        self.sequence = sequence;
    }

    /// Whether a reply is expected and not complete.
    #[inline]
    pub fn is_waiting(&self) -> bool {
        self.state != State::Idle
    }

    /// Parses `bytes`.
    ///
    /// # Errors
    /// They are invalid here, request a local file, or continue behind the end of the reply. The connection is then
    /// unusable. Bytes that answer no command are an error too: the server's own, if it sends one before it closes.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<Progress, WireError> {
        let mut rest = bytes;
        if !self.head.is_empty() || self.skip > 0 {
            match self.resume(rest)? {
                (left, true) => return self.finish(left),
                (left, false) => rest = left,
            }
        }
        while let Some(header) = rest.first_chunk::<HEADER>() {
            let header = u32::from_le_bytes(*header);
            let length = (header & 0xFF_FF_FF) as usize;
            let Some(payload) = rest.get(HEADER..HEADER + length) else { break };
            rest = &rest[HEADER + length..];
            // Most frames of most replies: a row, whole.
            if self.state == State::Rows
                && (header >> 24) as u8 == self.sequence
                && !self.continued
                && length < MAX_FRAME
                && payload.first().is_some_and(|first| *first < if self.binary { 1 } else { 0xFE })
            {
                self.sequence = self.sequence.wrapping_add(1);
                self.rows += 1;
                continue;
            }
            self.begin(header, payload)?;
            if length < MAX_FRAME && self.ending {
                return self.finish(rest);
            }
        }
        if !rest.is_empty() {
            // A frame in pieces: store its first bytes, skip the others as they arrive.
            match self.resume(rest)? {
                (left, true) => return self.finish(left),
                (left, false) => debug_assert!(left.is_empty(), "a frame in pieces takes all bytes"),
            }
        }
        Ok(Progress::More)
    }

    /// Continues a frame in pieces. Returns the bytes behind it, and whether it ended the reply.
    #[cold]
    fn resume<'a>(&mut self, bytes: &'a [u8]) -> Result<(&'a [u8], bool), WireError> {
        let mut rest = bytes;
        if self.skip == 0 {
            rest = &rest[self.head.take(rest)..];
            if !self.head.is_complete() {
                return Ok((rest, false));
            }
            let head = std::mem::replace(&mut self.head, Head::new());
            let (header, prefix) = head.parts();
            self.begin(header, prefix)?;
            self.skip = (header & 0xFF_FF_FF) - prefix.len() as u32;
            if self.skip == 0 {
                return Ok((rest, self.ending && !self.continued));
            }
        }
        let now = (self.skip as usize).min(rest.len());
        if let Some(kept) = &mut self.error {
            keep_error(kept, &rest[..now]);
        }
        self.skip -= now as u32;
        rest = &rest[now..];
        Ok((rest, self.skip == 0 && self.ending && !self.continued))
    }

    /// Classifies a frame by its header and at least the first [`OkPacket::PREFIX`] bytes of its payload.
    #[inline]
    fn begin(&mut self, header: u32, prefix: &[u8]) -> Result<(), WireError> {
        let length = (header & 0xFF_FF_FF) as usize;
        let number = (header >> 24) as u8;
        let continues = self.continued;
        self.continued = length == MAX_FRAME;
        if number != self.sequence {
            self.out_of_sequence(number, prefix)?;
        }
        self.sequence = number.wrapping_add(1);
        if continues {
            if let Some(kept) = &mut self.error {
                keep_error(kept, prefix);
            }
            return Ok(());
        }
        let Some(&first) = prefix.first() else {
            return Err(self.invalid("empty", "it has no payload"));
        };
        if first == 0xFF {
            let mut kept = Vec::with_capacity(prefix.len().max(64));
            keep_error(&mut kept, prefix);
            self.error = Some(kept);
            self.ending = true;
            return Ok(());
        }
        match self.state {
            State::First if first == 0x00 => self.end_of_result(OkPacket::parse(prefix, self.state.name())?),
            State::First => self.result_header(prefix)?,
            State::Columns => {
                self.columns -= 1;
                if self.columns == 0 {
                    self.state = if self.deprecate_eof { State::Rows } else { State::ColumnsEnd };
                }
            }
            State::ColumnsEnd if first == 0xFE && length < 9 => self.state = State::Rows,
            State::Rows if first == 0xFE && self.deprecate_eof && length < MAX_FRAME => {
                self.end_of_result(OkPacket::parse(prefix, self.state.name())?);
            }
            State::Rows if first == 0xFE && length < 9 => {
                self.end_of_result(OkPacket::parse_eof(prefix, self.state.name())?);
            }
            State::Rows if !self.binary || first == 0x00 => self.rows += 1,
            State::Idle | State::ColumnsEnd | State::Rows => {
                return Err(self.invalid("unexpected", &format!("it begins with {first:#04x}")));
            }
        }
        Ok(())
    }

    #[inline]
    fn result_header(&mut self, prefix: &[u8]) -> Result<(), WireError> {
        let (columns, follow) = match (prefix, self.header) {
            // Nearly all: fewer than 251 columns.
            ([columns @ 1..0xFB], HeaderForm::Plain) => (u32::from(*columns), true),
            ([columns @ 1..0xFB, follow], HeaderForm::Flagged) => (u32::from(*columns), *follow != 0),
            _ => self.any_result_header(prefix)?,
        };
        self.columns = columns;
        self.state = match (follow, self.deprecate_eof) {
            (true, _) => State::Columns,
            (false, true) => State::Rows,
            (false, false) => State::ColumnsEnd,
        };
        Ok(())
    }

    #[cold]
    fn any_result_header(&self, prefix: &[u8]) -> Result<(u32, bool), WireError> {
        self.header.read(prefix, State::First.name())
    }

    #[inline]
    fn end_of_result(&mut self, ok: OkPacket) {
        // A server may announce any count in any result, so the sum is only as meaningful.
        self.affected_rows = self.affected_rows.saturating_add(ok.affected_rows);
        self.ok = ok;
        if ok.status & status::MORE_RESULTS != 0 {
            self.state = State::First;
        } else {
            self.ending = true;
        }
    }

    /// The reply ended; nothing may follow.
    #[inline]
    fn finish(&mut self, rest: &[u8]) -> Result<Progress, WireError> {
        let state = std::mem::replace(&mut self.state, State::Idle);
        let error = match self.error.take() {
            None => None,
            Some(packet) => Some(Box::new(parse_error(&packet, state.name())?)),
        };
        if let (State::Idle, Some(error)) = (state, error.as_ref()) {
            return Err(WireError::Server((**error).clone()));
        }
        if !rest.is_empty() {
            return Err(
                self.invalid("unexpected", &format!("{} bytes follow the end of the reply", rest.len()))
            );
        }
        Ok(Progress::Done(Reply {
            rows: self.rows,
            affected_rows: self.affected_rows,
            last_insert_id: self.ok.last_insert_id,
            warnings: self.ok.warnings,
            status: self.ok.status,
            misnumbered: self.misnumbered,
            error,
        }))
    }

    /// As [`misnumbered`] has it; whether the frame begins an answer is known by the state.
    #[cold]
    fn out_of_sequence(&mut self, number: u8, prefix: &[u8]) -> Result<(), WireError> {
        let is_first = self.state == State::First;
        let odd = misnumbered(number, self.sequence, is_first, prefix.first().copied());
        self.misnumbered |= odd.map_err(|detail| self.invalid("out of sequence", &detail))?;
        Ok(())
    }

    #[cold]
    fn invalid(&self, packet: &'static str, detail: &str) -> WireError {
        WireError::protocol(packet, self.state.name(), detail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerVersion;

    fn session(capabilities: Capabilities) -> Session {
        Session::new(ServerVersion::parse("8.0.36", 1, capabilities), capabilities)
    }

    fn parser(capabilities: Capabilities, expect: Expect) -> ReplyParser {
        let mut parser = ReplyParser::new(&session(capabilities));
        parser.start(expect);
        parser
    }

    const POINT_SELECT: &[u8] = b"\x02\0\0\x01\x01\x00\x07\0\0\x02\0\0\x04abcd\x07\0\0\x03\xfe\0\0\x02\0\0\0";

    #[test]
    fn a_parser_is_small() {
        assert!(size_of::<ReplyParser>() <= 128, "{} bytes", size_of::<ReplyParser>());
    }

    #[test]
    fn a_prepared_point_select_with_cached_metadata_is_one_row() {
        let both = Capabilities::DEPRECATE_EOF | Capabilities::MARIADB_CACHE_METADATA;
        let mut p = parser(both, Expect::Prepared);
        let Progress::Done(reply) = p.feed(POINT_SELECT).unwrap() else { panic!("not done") };
        assert_eq!(reply, Reply { rows: 1, status: 2, ..Reply::default() });
        assert!(!p.is_waiting());
    }

    #[test]
    fn a_result_of_optional_metadata_says_that_definitions_are_left_out() {
        let both = Capabilities::DEPRECATE_EOF | Capabilities::OPTIONAL_METADATA;
        for step in [1, 3, POINT_SELECT.len()] {
            let mut p = parser(both, Expect::Prepared);
            let mut last = Progress::More;
            for piece in POINT_SELECT.chunks(step) {
                last = p.feed(piece).unwrap();
            }
            assert_eq!(last, Progress::Done(Reply { rows: 1, status: 2, ..Reply::default() }), "step {step}");
        }
    }

    #[test]
    fn bytes_behind_a_reply_are_an_error() {
        let mut p = parser(Capabilities::DEPRECATE_EOF, Expect::Text);
        let error = p.feed(b"\x07\0\0\x01\0\0\0\x02\0\0\0\x01").unwrap_err().to_string();
        assert!(error.contains("1 bytes follow the end"), "{error}");
    }

    #[test]
    fn a_request_for_a_local_file_is_refused() {
        let mut p = parser(Capabilities::DEPRECATE_EOF, Expect::Text);
        let error = p.feed(b"\x0c\0\0\x01\xfb/etc/passwd").unwrap_err().to_string();
        assert!(error.contains("local files are never sent"), "{error}");
    }

    #[test]
    fn a_server_that_closes_an_idle_connection_is_quoted() {
        let mut p = ReplyParser::new(&session(Capabilities::DEPRECATE_EOF));
        let error = p.feed(b"\x0f\0\0\0\xff\xbf\x0f#HY000timeout").unwrap_err();
        assert_eq!(error.server_error().unwrap().code, 4031);
        assert!(p.feed(b"\x07\0\0\x01\0\0\0\x02\0\0\0").is_err());
    }

    #[test]
    fn a_frame_out_of_sequence_is_an_error() {
        let mut p = parser(Capabilities::DEPRECATE_EOF, Expect::Text);
        let error = p.feed(b"\x01\0\0\x01\x01\x01\0\0\x03\x03").unwrap_err().to_string();
        assert!(error.contains("number 3 instead of 2"), "{error}");
        let mut p = parser(Capabilities::DEPRECATE_EOF, Expect::Text);
        let error = p.feed(b"\x05\0\0\x07\xfb/etc").unwrap_err().to_string();
        assert!(error.contains("number 7 instead of 1"), "{error}");
    }

    #[test]
    fn rows_may_be_numbered_from_any_start() {
        let mut p = parser(Capabilities::DEPRECATE_EOF, Expect::Text);
        let column = b"\x01\0\0\x08x";
        let rows = b"\x02\0\0\x09\x01a\x07\0\0\x0a\xfe\0\0\x02\0\0\0";
        let answer = [b"\x01\0\0\x07\x01".as_slice(), column, rows].concat();
        let Progress::Done(reply) = p.feed(&answer).unwrap() else { panic!("it is complete") };
        assert_eq!((reply.rows, reply.misnumbered), (1, true));
    }

    #[test]
    fn an_ok_packet_of_any_number_ends_a_reply() {
        let mut p = parser(Capabilities::DEPRECATE_EOF, Expect::Text);
        let ended = p.feed(b"\x07\0\0\x02\0\x03\0\x02\0\0\0").unwrap();
        assert_eq!(
            ended,
            Progress::Done(Reply { affected_rows: 3, status: 2, misnumbered: true, ..Reply::default() })
        );
    }
}
