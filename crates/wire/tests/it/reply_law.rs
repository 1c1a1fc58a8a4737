//! Properties of the reply parser: fragmentation has no effect, and a truncated reply is never complete.

use mydyno_wire::capability::Capabilities;
use mydyno_wire::packet::put_lenenc_int;
use mydyno_wire::reply::{Expect, Progress, Reply, ReplyParser};
use mydyno_wire::{ServerVersion, Session};
use proptest::prelude::*;

use crate::fake::packet;
use crate::server::session_of;

/// A generated result.
#[derive(Debug, Clone)]
enum Part {
    Ok { affected: u64, id: u64, warnings: u16, info: usize },
    Rows { columns: u64, follow: bool, rows: Vec<(u8, usize)>, warnings: u16 },
}

#[derive(Debug, Clone)]
struct Case {
    deprecate_eof: bool,
    cache_metadata: bool,
    expect: Expect,
    parts: Vec<Part>,
    error: Option<String>,
}

impl Case {
    fn capabilities(&self) -> Capabilities {
        let mut all = Capabilities::PROTOCOL_41;
        if self.deprecate_eof {
            all = all | Capabilities::DEPRECATE_EOF;
        }
        if self.cache_metadata {
            all = all | Capabilities::MARIADB_CACHE_METADATA;
        }
        all
    }

    /// The bytes of the reply, and what the parser must say of them.
    fn bytes(&self) -> (Vec<u8>, Reply) {
        let mut payloads = Vec::new();
        let mut reply = Reply::default();
        let last = self.parts.len() - 1;
        for (i, part) in self.parts.iter().enumerate() {
            let more = if i < last || self.error.is_some() { 8 } else { 0 };
            self.part(part, 2 | more, &mut payloads, &mut reply);
        }
        if let Some(text) = &self.error {
            payloads.push([&b"\xff\xbd\x04#40001"[..], text.as_bytes()].concat());
            reply.error = Some(Box::new(mydyno_wire::ServerError {
                code: 1213,
                sqlstate: "40001".into(),
                message: text.clone(),
            }));
        }
        let mut out = Vec::new();
        for (i, payload) in payloads.iter().enumerate() {
            out.extend(packet((i + 1) as u8, payload));
        }
        (out, reply)
    }

    fn part(&self, part: &Part, status: u16, payloads: &mut Vec<Vec<u8>>, reply: &mut Reply) {
        match part {
            Part::Ok { affected, id, warnings, info } => {
                payloads.push(ok(0, *affected, *id, status, *warnings, *info));
                reply.affected_rows += affected;
                (reply.last_insert_id, reply.warnings, reply.status) = (*id, *warnings, status);
            }
            Part::Rows { columns, follow, rows, warnings } => {
                let mut head = Vec::new();
                put_lenenc_int(&mut head, *columns);
                if self.cache_metadata {
                    head.push(u8::from(*follow));
                }
                payloads.push(head);
                if *follow || !self.cache_metadata {
                    for _ in 0..*columns {
                        payloads.push(b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0".to_vec());
                    }
                }
                let eof =
                    |warnings: u16| [&[0xFE][..], &warnings.to_le_bytes(), &status.to_le_bytes()].concat();
                if !self.deprecate_eof {
                    payloads.push(eof(0));
                }
                for (first, length) in rows {
                    let first = if self.expect == Expect::Prepared { 0 } else { *first };
                    payloads.push([vec![first], vec![0xFE; *length]].concat());
                }
                payloads.push(if self.deprecate_eof {
                    ok(0xFE, 0, 0, status, *warnings, 0)
                } else {
                    eof(*warnings)
                });
                reply.rows += rows.len() as u64;
                (reply.last_insert_id, reply.warnings, reply.status) = (0, *warnings, status);
            }
        }
    }
}

fn ok(header: u8, affected: u64, id: u64, status: u16, warnings: u16, info: usize) -> Vec<u8> {
    let mut out = vec![header];
    put_lenenc_int(&mut out, affected);
    put_lenenc_int(&mut out, id);
    out.extend_from_slice(&status.to_le_bytes());
    out.extend_from_slice(&warnings.to_le_bytes());
    out.resize(out.len() + info, b'i');
    out
}

fn parts() -> impl Strategy<Value = Part> {
    let number = prop_oneof![0u64..300, any::<u64>().prop_map(|n| n >> 20)];
    let ok = (number.clone(), number, any::<u16>(), 0usize..80)
        .prop_map(|(affected, id, warnings, info)| Part::Ok { affected, id, warnings, info });
    let row = (0u8..0xFC, prop_oneof![0usize..40, 200usize..5000]);
    let rows = (1u64..300, any::<bool>(), prop::collection::vec(row, 0..20), any::<u16>())
        .prop_map(|(columns, follow, rows, warnings)| Part::Rows { columns, follow, rows, warnings });
    prop_oneof![ok, rows]
}

fn cases() -> impl Strategy<Value = Case> {
    (
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(Expect::Text), Just(Expect::Prepared)],
        prop::collection::vec(parts(), 1..4),
        prop::option::of("[a-z]{0,600}"),
    )
        .prop_map(|(deprecate_eof, cache_metadata, expect, parts, error)| Case {
            deprecate_eof,
            cache_metadata,
            expect,
            parts,
            error,
        })
}

fn feed_all(case: &Case, pieces: &[&[u8]]) -> Option<Reply> {
    let mut parser = ReplyParser::new(&session_of(case.capabilities()));
    parser.start(case.expect);
    let mut done = None;
    for piece in pieces {
        assert!(done.is_none(), "done before the end");
        if let Progress::Done(reply) = parser.feed(piece).unwrap() {
            done = Some(reply);
        }
    }
    done
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_fragmentation_gives_the_same_reply(
        case in cases(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (bytes, expected) = case.bytes();
        prop_assert_eq!(feed_all(&case, &[&bytes]), Some(expected.clone()));
        let singles: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(feed_all(&case, &singles), Some(expected.clone()));
        let mut cuts: Vec<usize> = cuts.iter().map(|c| c.index(bytes.len())).collect();
        cuts.sort_unstable();
        let mut pieces = Vec::new();
        let mut from = 0;
        for cut in cuts {
            pieces.push(&bytes[from..cut]);
            from = cut;
        }
        pieces.push(&bytes[from..]);
        prop_assert_eq!(feed_all(&case, &pieces), Some(expected.clone()));
    }

    #[test]
    fn what_is_cut_short_is_never_done(case in cases(), cut in any::<prop::sample::Index>()) {
        let (bytes, _) = case.bytes();
        prop_assert_eq!(feed_all(&case, &[&bytes[..cut.index(bytes.len())]]), None);
    }

    #[test]
    fn any_bytes_are_an_answer_or_an_error_but_no_panic(
        bytes in prop::collection::vec(prop_oneof![Just(0u8), Just(1), Just(0xFE), Just(0xFF), any::<u8>()], 0..200),
        case in cases(),
    ) {
        let mut parser = ReplyParser::new(&session_of(case.capabilities()));
        parser.start(case.expect);
        for piece in bytes.chunks(7) {
            if parser.feed(piece).is_err() {
                break;
            }
        }
    }
}

#[test]
fn rows_of_more_than_16_mib_are_counted_once() {
    let case = Case {
        deprecate_eof: true,
        cache_metadata: false,
        expect: Expect::Text,
        parts: vec![Part::Rows {
            columns: 1,
            follow: true,
            rows: vec![(0xFE, 17 << 20), (1, 1)],
            warnings: 0,
        }],
        error: None,
    };
    // Sequence numbers of long packets take more than one each.
    let column = b"\x03def\0\0\0\x01c\0\x0c\x2d\0\xff\0\0\0\xfd\0\0\0\0\0";
    let mut bytes = [packet(1, &[1]), packet(2, column)].concat();
    bytes.extend(packet(3, &vec![0xFE; 17 << 20]));
    bytes.extend(packet(5, &vec![0xFD; 2 * 0xFF_FFFF]));
    bytes.extend(packet(8, b"\x01x"));
    bytes.extend(packet(9, &[0xFE, 0, 0, 2, 0, 0, 0]));
    for size in [bytes.len(), 100_000, 16_777_219] {
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        assert_eq!(feed_all(&case, &pieces).unwrap().rows, 3);
    }
}

#[test]
fn a_session_is_all_that_a_parser_needs() {
    let capabilities = Capabilities::DEPRECATE_EOF;
    let session: Session = session_of(capabilities);
    assert_eq!(session.version, ServerVersion::parse("8.0.36", 1, capabilities));
    assert!(!ReplyParser::new(&session).is_waiting());
}
