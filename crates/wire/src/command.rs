//! Commands, written into a caller's buffer as whole packets (sequence number 0).

use crate::packet::put_packet;

const QUIT: u8 = 0x01;
const INIT_DB: u8 = 0x02;
const QUERY: u8 = 0x03;
const PING: u8 = 0x0E;
const STMT_PREPARE: u8 = 0x16;
pub(crate) const STMT_EXECUTE: u8 = 0x17;
pub(crate) const STMT_BULK_EXECUTE: u8 = 0xFA;
const STMT_CLOSE: u8 = 0x19;
const RESET_CONNECTION: u8 = 0x1F;

/// COM_QUERY: statements as text. Answered by a reply.
pub fn query(out: &mut Vec<u8>, sql: &[u8]) {
    put_packet(out, 0, &[&[QUERY], sql]);
}

/// COM_STMT_PREPARE. Answered by a statement's id and its columns.
pub fn stmt_prepare(out: &mut Vec<u8>, sql: &[u8]) {
    put_packet(out, 0, &[&[STMT_PREPARE], sql]);
}

/// COM_STMT_CLOSE. Not answered.
pub fn stmt_close(out: &mut Vec<u8>, statement_id: u32) {
    put_packet(out, 0, &[&[STMT_CLOSE], &statement_id.to_le_bytes()]);
}

/// COM_INIT_DB: another schema. Answered by OK.
pub fn init_db(out: &mut Vec<u8>, schema: &[u8]) {
    put_packet(out, 0, &[&[INIT_DB], schema]);
}

/// COM_PING. Answered by OK.
pub fn ping(out: &mut Vec<u8>) {
    put_packet(out, 0, &[&[PING]]);
}

/// COM_RESET_CONNECTION, since MySQL 5.7.3 and MariaDB 10.2.4. Answered by OK.
pub fn reset_connection(out: &mut Vec<u8>) {
    put_packet(out, 0, &[&[RESET_CONNECTION]]);
}

/// COM_QUIT. Answered by closing.
pub fn quit(out: &mut Vec<u8>) {
    put_packet(out, 0, &[&[QUIT]]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_one_packet_of_sequence_0() {
        let mut out = Vec::new();
        query(&mut out, b"SELECT 1");
        assert_eq!(out, b"\x09\0\0\0\x03SELECT 1");
    }
}
