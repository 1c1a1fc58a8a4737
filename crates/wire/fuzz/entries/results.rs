//! Replies in any fragmentation: the parser says the same of the whole and of its pieces; rows, columns and changes of
//! sessions of any bytes are read or refused.

use mydyno_wire::reply::{Expect, Progress, Reply, ReplyParser};
use mydyno_wire::value::read_binary_row;
use mydyno_wire::{Capabilities, Column, ServerVersion, Session, session_change};

/// The parser's outcome: a reply and how much was left, an error, or that more is needed.
fn parse(
    bytes: &[u8],
    step: usize,
    capabilities: Capabilities,
    expect: Expect,
) -> Option<Result<Reply, String>> {
    let version = ServerVersion::parse("8.0.36", 1, capabilities);
    let mut parser = ReplyParser::new(&Session::new(version, capabilities));
    parser.start(expect);
    let mut done = None;
    for piece in bytes.chunks(step) {
        if done.is_some() {
            // Bytes behind the end are an error however they come.
            return Some(Err("behind the end".to_owned()));
        }
        match parser.feed(piece) {
            Ok(Progress::More) => {}
            Ok(Progress::Done(reply)) => done = Some(reply),
            Err(error) => return Some(Err(error.to_string())),
        }
    }
    done.map(Ok)
}

pub fn run(data: &[u8]) -> String {
    let [choice, step, bytes @ ..] = data else { return String::new() };
    let mut capabilities = Capabilities::PROTOCOL_41;
    for (bit, capability) in [
        (1, Capabilities::DEPRECATE_EOF),
        (2, Capabilities::MARIADB_CACHE_METADATA),
        (8, Capabilities::OPTIONAL_METADATA),
        (16, Capabilities::MARIADB_EXTENDED_METADATA),
    ] {
        if choice & bit != 0 {
            capabilities = capabilities | capability;
        }
    }
    let expect = if choice & 4 != 0 { Expect::Prepared } else { Expect::Text };
    let whole = parse(bytes, bytes.len().max(1), capabilities, expect);
    let pieces = parse(bytes, usize::from(*step).max(1), capabilities, expect);
    // A frame that is not valid may be refused from its first bytes, or only once it is whole.
    if let (Some(whole), Some(pieces)) = (&whole, &pieces) {
        assert_eq!(whole.as_ref().ok(), pieces.as_ref().ok());
    }
    if let Some(Ok(_)) = whole {
        assert_eq!(pieces, whole);
    }
    let columns: Vec<Column> = bytes
        .chunks(40)
        .take(8)
        .filter_map(|chunk| Column::parse(chunk, capabilities, "fuzzing").ok())
        .collect();
    let mut outcome = format!("{whole:?} {}", columns.len());
    match read_binary_row(bytes, &columns, "fuzzing") {
        Ok(row) => {
            for (value, column) in row.iter().zip(&columns) {
                outcome.push(if value.to_text(column).is_some() { 'x' } else { '-' });
            }
        }
        Err(error) => outcome += &error.to_string(),
    }
    match session_change::parse(bytes, "fuzzing") {
        Ok(changes) => outcome += &format!("{}", changes.len().min(3)),
        Err(error) => outcome += &error.to_string(),
    }
    outcome
}
