//! Replies in any fragmentation: the parser says the same of the whole and of its pieces; rows and columns of any
//! bytes are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mydyno_wire::reply::{Expect, Progress, Reply, ReplyParser};
use mydyno_wire::value::read_binary_row;
use mydyno_wire::{Capabilities, Column, ServerVersion, Session};

/// What the parser says: a reply and how much was left, an error, or that more is needed.
fn parse(bytes: &[u8], step: usize, capabilities: Capabilities, expect: Expect) -> Option<Result<Reply, ()>> {
    let version = ServerVersion::parse("8.0.36", 1, capabilities);
    let mut parser = ReplyParser::new(&Session::new(version, capabilities));
    parser.start(expect);
    let mut done = None;
    for piece in bytes.chunks(step) {
        if done.is_some() {
            // Bytes behind the end are an error however they come.
            return Some(Err(()));
        }
        match parser.feed(piece) {
            Ok(Progress::More) => {}
            Ok(Progress::Done(reply)) => done = Some(reply),
            Err(_) => return Some(Err(())),
        }
    }
    done.map(Ok)
}

fuzz_target!(|data: &[u8]| {
    let [choice, step, bytes @ ..] = data else { return };
    let mut capabilities = Capabilities::PROTOCOL_41;
    if choice & 1 != 0 {
        capabilities = capabilities | Capabilities::DEPRECATE_EOF;
    }
    if choice & 2 != 0 {
        capabilities = capabilities | Capabilities::MARIADB_CACHE_METADATA;
    }
    let expect = if choice & 4 != 0 { Expect::Prepared } else { Expect::Text };
    let whole = parse(bytes, bytes.len().max(1), capabilities, expect);
    let pieces = parse(bytes, usize::from(*step).max(1), capabilities, expect);
    // A frame that is not valid may be refused from its first bytes, or only once it is whole.
    if whole.is_some() && pieces.is_some() {
        assert_eq!(whole, pieces);
    }
    if let Some(Ok(_)) = whole {
        assert_eq!(pieces, whole);
    }
    let columns: Vec<Column> = bytes
        .chunks(40)
        .take(8)
        .filter_map(|chunk| Column::parse(chunk, capabilities, "fuzzing").ok())
        .collect();
    if let Ok(row) = read_binary_row(bytes, &columns, "fuzzing") {
        for (value, column) in row.iter().zip(&columns) {
            let _ = value.to_text(column);
        }
    }
});
