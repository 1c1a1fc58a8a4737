//! The packets of a workload's statements, laid out once a worker and patched for each send.

use mydyno_wire::execute::{self, ExecuteTemplate};
use mydyno_wire::packet::answer_sequence;
use mydyno_wire::{Prepared, WireError, command};
use mydyno_workload::session::ParamType;
use mydyno_workload::{Param, StatementSpec};

/// Bit of a connection's statement id that says that this server session knows the parameters' types, which then are
/// not sent again. Servers number statements from 1 per session (MySQL) or server (MariaDB) and stay far below it.
const TYPES_KNOWN: u32 = 1 << 31;

/// Notes that the server has executed the statement once, and so knows its types.
#[inline]
pub fn types_are_known(id: &mut u32) {
    if *id != AS_TEXT {
        *id |= TYPES_KNOWN;
    }
}

/// Bytes for which a parameter of variable length is laid out at most.
const SHORT_BYTES: usize = 64;

/// In place of a statement id: the server does not prepare the statement, as MySQL does not prepare BEGIN, so it is
/// sent as text. Servers number from 1.
pub const AS_TEXT: u32 = 0;

/// The server's error for a statement that cannot be prepared (ER_UNSUPPORTED_PS).
const NOT_PREPARABLE: u16 = 1295;

/// The id of a statement that was or was not prepared.
///
/// # Errors
/// Any error but that of a statement without parameters that the server does not prepare.
pub fn id_of(prepared: Result<Prepared, WireError>, statement: &StatementSpec) -> Result<u32, WireError> {
    match prepared {
        Err(e) if e.code() == NOT_PREPARABLE && statement.params.is_empty() => Ok(AS_TEXT),
        other => other.map(|p| p.id),
    }
}

/// The packet that executes a statement with such parameters.
pub fn template(id: u32, params: &[ParamType]) -> ExecuteTemplate {
    let params: Vec<execute::Param> = params
        .iter()
        .map(|param| match param {
            ParamType::Int => execute::Param::Int,
            ParamType::Double => execute::Param::Double,
            ParamType::Fixed(length) => execute::Param::Bytes(*length),
            // Laid out for short ones, which most are; longer ones make room for themselves.
            ParamType::Bytes(most) => execute::Param::Bytes((*most).min(SHORT_BYTES)),
        })
        .collect();
    ExecuteTemplate::new(id, &params)
}

/// Sets the values of a packet.
#[inline]
pub fn set_params(template: &mut ExecuteTemplate, params: &[Param<'_>]) {
    for (number, param) in params.iter().enumerate() {
        match param {
            Param::Int(value) => template.set_i64(number, *value),
            Param::Bytes(bytes) => template.set_bytes(number, bytes),
            Param::Double(value) => template.set_f64(number, *value),
            Param::Null => template.set_null(number),
        }
    }
}

/// The packets of one worker.
pub struct Packets {
    statements: Vec<Laid>,
    rollback: Vec<u8>,
    quit: Vec<u8>,
    /// The last statement that was sent as text.
    text: Vec<u8>,
}

struct Laid {
    operation: usize,
    /// The statement as text, for servers that do not prepare it.
    text: Vec<u8>,
    with_types: ExecuteTemplate,
    without_types: ExecuteTemplate,
}

impl Packets {
    /// Lays out the packets of these statements.
    pub fn new(statements: &[StatementSpec]) -> Self {
        let statements = statements
            .iter()
            .map(|statement| {
                let params = &statement.params;
                let with_types = template(0, params);
                let mut without_types = with_types.clone();
                without_types.types_are_known();
                let mut text = Vec::new();
                if params.is_empty() {
                    command::query(&mut text, statement.sql.as_bytes());
                }
                Laid { operation: statement.operation, text, with_types, without_types }
            })
            .collect();
        let mut rollback = Vec::new();
        command::query(&mut rollback, b"ROLLBACK");
        let mut quit = Vec::new();
        command::quit(&mut quit);
        Self { statements, rollback, quit, text: Vec::new() }
    }

    /// The operation under which a statement is recorded.
    #[inline]
    pub fn operation(&self, statement: usize) -> usize {
        self.statements[statement].operation
    }

    /// The packet that executes a statement; `id` is the connection's id of it, [`AS_TEXT`] where it has none.
    #[inline]
    pub fn execute(&mut self, statement: usize, id: u32, params: &[Param<'_>]) -> &[u8] {
        let laid = &mut self.statements[statement];
        if id == AS_TEXT {
            return &laid.text;
        }
        let template = if id & TYPES_KNOWN != 0 { &mut laid.without_types } else { &mut laid.with_types };
        template.set_statement(id & !TYPES_KNOWN);
        set_params(template, params);
        template.packet()
    }

    /// The packet of a statement as text, and the number of its answer's first frame.
    pub fn query(&mut self, sql: &[u8]) -> (&[u8], u8) {
        self.text.clear();
        command::query(&mut self.text, sql);
        (&self.text, answer_sequence(&self.text))
    }

    /// The packet of ROLLBACK.
    pub fn rollback(&self) -> &[u8] {
        &self.rollback
    }

    /// The packet of COM_QUIT.
    pub fn quit(&self) -> &[u8] {
        &self.quit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_sent_on_the_first_execution_of_each_connection_only() {
        let spec = StatementSpec { params: vec![ParamType::Int], operation: 3, ..StatementSpec::default() };
        let mut packets = Packets::new(&[spec]);
        let (mut one, other) = (7, 9);
        let first = packets.execute(0, one, &[Param::Int(5)]).to_vec();
        types_are_known(&mut one);
        let second = packets.execute(0, one, &[Param::Int(5)]).to_vec();
        let elsewhere = packets.execute(0, other, &[Param::Int(5)]).to_vec();
        assert_eq!(first.len(), second.len() + 2);
        assert_eq!(first.len(), elsewhere.len());
        assert_eq!((first[5], second[5], elsewhere[5]), (7, 7, 9));
        assert_eq!(second[second.len() - 8..], 5i64.to_le_bytes());
        assert_eq!(packets.operation(0), 3);
    }

    #[test]
    fn texts_of_any_length_and_nulls_follow_each_other_in_one_packet() {
        let params = vec![ParamType::Bytes(1000), ParamType::Int];
        let mut packets = Packets::new(&[StatementSpec { params, ..StatementSpec::default() }]);
        let nulls = |packet: &[u8]| packet[14];
        for length in [3usize, 900, 0, 64] {
            let text = vec![b'x'; length];
            let packet = packets.execute(0, 1, &[Param::Bytes(&text), Param::Int(5)]);
            let prefix = if length < 251 { 1 } else { 3 };
            assert_eq!((packet.len(), nulls(packet)), (4 + 10 + 1 + 1 + 4 + prefix + length + 8, 0));
            assert_eq!(packet[packet.len() - 8..], 5i64.to_le_bytes());
            let packet = packets.execute(0, 1, &[Param::Null, Param::Int(6)]);
            assert_eq!((packet.len(), nulls(packet)), (4 + 10 + 1 + 1 + 4 + 8, 1));
        }
    }

    #[test]
    fn a_text_is_a_query_packet() {
        let mut packets = Packets::new(&[]);
        assert_eq!(packets.query(b"SELECT 1"), (&b"\x09\0\0\0\x03SELECT 1"[..], 1));
        assert_eq!(packets.query(b"DO 1"), (&b"\x05\0\0\0\x03DO 1"[..], 1));
    }

    #[test]
    fn a_statement_that_the_server_does_not_prepare_is_sent_as_text() {
        let spec = StatementSpec { sql: "BEGIN".into(), ..StatementSpec::default() };
        let refused = |code| {
            let (sqlstate, message) = ("HY000".into(), String::new());
            Err(WireError::Server(mydyno_wire::ServerError { code, sqlstate, message }))
        };
        let mut id = id_of(refused(NOT_PREPARABLE), &spec).unwrap();
        assert_eq!(Packets::new(std::slice::from_ref(&spec)).execute(0, id, &[]), b"\x06\0\0\0\x03BEGIN");
        types_are_known(&mut id);
        assert_eq!(id, AS_TEXT);
        assert!(id_of(refused(1064), &spec).is_err());
        let with_parameter = StatementSpec { params: vec![ParamType::Int], ..spec };
        assert!(id_of(refused(NOT_PREPARABLE), &with_parameter).is_err());
    }
}
