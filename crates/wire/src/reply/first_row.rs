//! The first row of a reply.

use crate::error::WireError;
use crate::packet::OkPacket;
use crate::reply::{ResultSink, Row};
use crate::value::Value;

/// Keeps the first row of a reply's first result.
#[derive(Debug, Default)]
pub struct FirstRow {
    row: Option<Vec<Value>>,
    is_complete: bool,
}

impl FirstRow {
    /// The row, once the reply is complete; `None` where the first result has none.
    pub fn into_row(self) -> Option<Vec<Value>> {
        self.row
    }
}

impl ResultSink for FirstRow {
    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        self.row = Some(row.values()?);
        self.is_complete = true;
        Ok(())
    }

    fn end(&mut self, _: &OkPacket) {
        self.is_complete = true;
    }

    fn wants_more(&self) -> bool {
        !self.is_complete
    }

    fn wants_names(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::Capabilities;
    use std::sync::Arc;

    use crate::column::{Column, kind};
    use crate::packet::Assembler;
    use crate::reply::{Expect, ResultReader};
    use crate::server::ServerVersion;
    use crate::session::Session;

    fn session(capabilities: Capabilities) -> Session {
        Session::new(ServerVersion::parse("8.0.36", 1, capabilities), capabilities)
    }

    /// Feeds the reply in pieces of `size` bytes.
    fn first(
        capabilities: Capabilities,
        expect: Expect,
        known: Arc<[Column]>,
        reply: &[u8],
        size: usize,
    ) -> Option<Vec<Value>> {
        let mut reader = ResultReader::new(&session(capabilities), expect, known);
        let (mut packets, mut first) = (Assembler::new(1 << 20), FirstRow::default());
        for bytes in reply.chunks(size) {
            packets.extend(bytes);
            while let Some(packet) = packets.next("testing").unwrap() {
                match reader.packet(packet.payload, &mut first) {
                    Err(WireError::Server(_)) => {}
                    read => read.unwrap(),
                }
            }
        }
        assert!(reader.is_done());
        first.into_row()
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
            let row = first(both, Expect::Prepared, [number()].into(), ROWS, size);
            assert_eq!(row, Some(vec![Value::Int(7)]), "in pieces of {size}");
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
        let row = first(Capabilities::default(), Expect::Text, [].into(), &reply, 1000);
        assert_eq!(row, Some(vec![Value::Bytes(b"x".to_vec())]));
    }

    #[test]
    fn replies_without_rows_have_none() {
        for reply in [&b"\x07\0\0\x01\0\0\0\x02\0\0\0"[..], b"\x09\0\0\x01\xff\x7a\x04#42S02"] {
            assert_eq!(first(Capabilities::DEPRECATE_EOF, Expect::Text, [].into(), reply, 1000), None);
        }
    }
}
