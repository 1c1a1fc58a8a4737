//! Cost of reading a reply and of patching a statement, in nanoseconds: `cargo run --release --example reply_cost`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use mydyno_wire::capability::Capabilities;
use mydyno_wire::execute::{ExecuteTemplate, Param};
use mydyno_wire::reply::{Expect, Progress, ReplyParser};
use mydyno_wire::{ServerVersion, Session};

fn measure(what: &str, mut work: impl FnMut()) {
    const TURNS: u32 = 2_000_000;
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = Instant::now();
        for _ in 0..TURNS {
            work();
        }
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(TURNS));
    }
    println!("{what}: {best:.1} ns");
}

fn packet(out: &mut Vec<u8>, sequence: u8, payload: &[u8]) {
    mydyno_wire::packet::put_packet(out, sequence, &[payload]);
}

/// A prepared result with `rows` rows of one CHAR(120).
fn result(rows: u8, follow: Option<bool>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut next = 1;
    let mut put = |payload: &[u8]| {
        packet(&mut out, next, payload);
        next += 1;
    };
    match follow {
        None => put(&[1]),
        Some(follow) => put(&[1, u8::from(follow)]),
    }
    if follow != Some(false) {
        put(b"\x03def\x06sbtest\x07sbtest1\x07sbtest1\x01c\x01c\x0c\x2d\0\xe0\x01\0\0\xfe\x01\0\0\0\0");
    }
    for _ in 0..rows {
        put(&[&[0, 0, 120][..], &[b'x'; 120]].concat());
    }
    put(&[0xFE, 0, 0, 2, 0, 0, 0]);
    out
}

fn main() {
    let all = Capabilities::DEPRECATE_EOF | Capabilities::MARIADB_CACHE_METADATA;
    let session = |c| Session::new(ServerVersion::parse("8.0.36", 1, c), c);
    println!("parser: {} bytes", size_of::<ReplyParser>());
    let cases = [
        ("point select, cached metadata", all, result(1, Some(false))),
        ("point select, metadata sent", Capabilities::DEPRECATE_EOF, result(1, None)),
        ("range of 100 rows, cached metadata", all, result(100, Some(false))),
        ("OK", all, b"\x07\0\0\x01\0\x01\0\x02\0\0\0".to_vec()),
    ];
    for (what, capabilities, bytes) in &cases {
        let mut parser = ReplyParser::new(&session(*capabilities));
        measure(what, || {
            parser.start(Expect::Prepared);
            match parser.feed(black_box(bytes)) {
                Ok(Progress::Done(reply)) => assert!(black_box(reply).error.is_none()),
                _ => panic!("not done"),
            }
        });
    }
    let mut parsers: Vec<ReplyParser> = (0..10_000).map(|_| ReplyParser::new(&session(all))).collect();
    let mut turn = 0;
    measure("point select, cached metadata, 10,000 connections in turn", || {
        let parser = &mut parsers[turn];
        turn = (turn + 7919) % 10_000;
        parser.start(Expect::Prepared);
        match parser.feed(black_box(&cases[0].2)) {
            Ok(Progress::Done(reply)) => assert!(black_box(reply).error.is_none()),
            _ => panic!("not done"),
        }
    });
    let halves = cases[0].2.split_at(40);
    let mut parser = ReplyParser::new(&session(all));
    measure("point select, cached metadata, in two pieces", || {
        parser.start(Expect::Prepared);
        assert!(matches!(parser.feed(black_box(halves.0)), Ok(Progress::More)));
        assert!(matches!(parser.feed(black_box(halves.1)), Ok(Progress::Done(_))));
    });
    let mut template = ExecuteTemplate::new(7, &[Param::Int, Param::Bytes(120), Param::Bytes(60)]);
    let (c, pad) = ([b'c'; 120], [b'p'; 60]);
    measure("patch one integer and two strings", || {
        template.set_i64(0, black_box(77));
        template.set_bytes(1, black_box(&c));
        template.set_bytes(2, black_box(&pad));
        black_box(template.packet());
    });
    measure("patch one integer", || {
        template.set_i64(0, black_box(77));
        black_box(template.packet());
    });
}
