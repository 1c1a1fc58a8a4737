//! Session changes of a statement, which servers report behind the counts of an OK packet (CLIENT_SESSION_TRACK:
//! MySQL 5.7, MariaDB 10.2 and newer).
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_ok_packet.html>

use crate::capability::status;
use crate::error::WireError;
use crate::packet::Reader;
use mydyno_model::text::of_bytes;

/// Most bytes of changes that one command may report.
const MAX_BYTES: usize = 1 << 20;

/// Most changes that one command may report.
const MAX_CHANGES: usize = 4096;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionChange {
    /// A variable of `session_track_system_variables` has another value.
    Variable {
        /// Its name.
        name: String,
        /// Its value.
        value: String,
    },
    /// Another schema is in use; empty for none.
    Schema(String),
    /// Something of the session changed (`session_track_state_change`).
    State,
    /// Global transaction ids (`session_track_gtids`).
    Gtids(String),
    /// Statements that start a transaction like the one under way (`session_track_transaction_info`).
    TransactionCharacteristics(String),
    /// Eight letters about the transaction under way (`session_track_transaction_info`).
    TransactionState(String),
    /// A kind that this client does not know.
    Unknown(u8),
}

/// Reads what stands behind the counts of an OK packet, of a session that has CLIENT_SESSION_TRACK.
///
/// # Errors
/// It is cut short, or larger than 1 MiB.
pub fn parse(ok: &[u8], state: &'static str) -> Result<Vec<SessionChange>, WireError> {
    let mut r = Reader::new(ok, "OK", state);
    r.u8("header")?;
    r.lenenc_int("affected rows")?;
    r.lenenc_int("last insert id")?;
    let flags = r.u16("status flags")?;
    r.u16("warnings")?;
    if flags & status::SESSION_STATE_CHANGED == 0 {
        return Ok(Vec::new());
    }
    r.lenenc_bytes("text")?;
    let block = r.lenenc_bytes("changes of session state")?;
    if block.len() > MAX_BYTES {
        return Err(WireError::TooLarge {
            what: "the changes of session state that one statement reports",
            limit_bytes: MAX_BYTES,
            remedy: "track fewer (session_track_system_variables, session_track_gtids)",
        });
    }
    let mut changes = Vec::new();
    let mut r = Reader::new(block, "session state change", state);
    while !r.is_empty() {
        let kind = r.u8("kind")?;
        let data = r.lenenc_bytes("change")?;
        change(kind, Reader::new(data, "session state change", state), &mut changes)?;
        if changes.len() > MAX_CHANGES {
            return Err(r.error(format!("more than {MAX_CHANGES} changes")));
        }
    }
    Ok(changes)
}

fn change(kind: u8, mut r: Reader<'_>, changes: &mut Vec<SessionChange>) -> Result<(), WireError> {
    let mut text = |field| r.lenenc_bytes(field).map(of_bytes);
    let change = match kind {
        1 => SessionChange::Schema(text("schema")?),
        4 => SessionChange::TransactionCharacteristics(text("transaction characteristics")?),
        5 => SessionChange::TransactionState(text("transaction state")?),
        2 => SessionChange::State,
        3 => {
            r.u8("encoding of global transaction ids")?;
            SessionChange::Gtids(of_bytes(r.lenenc_bytes("global transaction ids")?))
        }
        0 => {
            // One entry may hold several variables.
            while !r.is_empty() {
                let name = of_bytes(r.lenenc_bytes("variable")?);
                let value = of_bytes(r.lenenc_bytes("value")?);
                changes.push(SessionChange::Variable { name, value });
            }
            return Ok(());
        }
        other => SessionChange::Unknown(other),
    };
    changes.push(change);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATE: &str = "testing";

    fn ok(flags: u16, behind: &[u8]) -> Vec<u8> {
        [&[0, 0, 0][..], &flags.to_le_bytes(), &[0, 0], behind].concat()
    }

    #[test]
    fn every_kind_of_change_is_read_in_order() {
        let changes = b"\x00\x0f\x0aautocommit\x03OFF\x01\x05\x04shop\x02\x02\x011\x03\x06\x00\x041-10\x05\x09\x08T_______\x09\x00";
        let packet = ok(0x4002, &[&[0, changes.len() as u8][..], changes].concat());
        let variable = SessionChange::Variable { name: "autocommit".into(), value: "OFF".into() };
        let expected = [
            variable,
            SessionChange::Schema("shop".into()),
            SessionChange::State,
            SessionChange::Gtids("1-10".into()),
            SessionChange::TransactionState("T_______".into()),
            SessionChange::Unknown(9),
        ];
        assert_eq!(parse(&packet, STATE).unwrap(), expected);
        for cut in 7..packet.len() {
            assert!(parse(&packet[..cut], STATE).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn a_packet_without_the_flag_holds_none_whatever_is_behind() {
        assert_eq!(parse(&ok(2, b"\x05Rows matched"), STATE).unwrap(), []);
    }
}
