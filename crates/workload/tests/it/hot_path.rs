//! Transactions allocate nothing: buffers are made before the load, or once a connection.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mydyno_wire::reply::ResultSink;
use mydyno_workload::catalogue;
use mydyno_workload::registry::Visitor;
use mydyno_workload::session::{Answer, Kept};
use mydyno_workload::{Command, Fault, Param, Session, Statement, TransactionStream as _, Workload};

use crate::behaviour::{QUEUE, TIMELINE, built, example};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, counted for each thread.
struct Counting;

// SAFETY: every call goes to the system's allocator as it came; the count allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are the system allocator's conditions.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Answers at once, with a row that has no columns where one is to be kept.
struct Nowhere(u64);

const FOUND: Answer = Answer { rows: 1, affected_rows: 1 };

impl Session for Nowhere {
    async fn execute(&mut self, _: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        self.0 += params.len() as u64;
        Ok(FOUND)
    }

    async fn execute_keeping(&mut self, _: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        self.0 += params.len() as u64;
        Ok(Kept { answer: FOUND, row: Some(Vec::new()) })
    }

    async fn query(&mut self, _: usize, sql: &[u8]) -> Result<Answer, Fault> {
        self.0 += sql.len() as u64;
        Ok(FOUND)
    }

    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, _: &mut S) -> Result<Answer, Fault> {
        if let Command::Prepared(_, params) = command {
            self.0 += params.len() as u64;
        }
        Ok(FOUND)
    }
}

/// Allocations of this many transactions, each of them tried twice.
fn allocations<W: Workload>(workload: &W, transactions: usize) -> u64 {
    let mut stream = workload.stream(0);
    let mut session = Nowhere(0);
    let mut run = |transactions| {
        let before = ALLOCATIONS.with(Cell::get);
        for _ in 0..transactions {
            stream.begin();
            for _ in 0..2 {
                {
                    let sent = pin!(workload.transaction(&mut stream, &mut session));
                    let done = sent.poll(&mut Context::from_waker(Waker::noop()));
                    assert!(matches!(done, Poll::Ready(Ok(()))));
                }
                stream.redraw();
            }
        }
        ALLOCATIONS.with(Cell::get) - before
    };
    // Room for texts grows to its size at first.
    run(1_000);
    run(transactions)
}

struct Counted(usize);

impl Visitor for Counted {
    type Output = u64;

    fn visit<W: Workload>(self, workload: &W) -> u64 {
        allocations(workload, self.0)
    }
}

#[test]
fn an_allocation_is_counted() {
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1);
}

#[test]
fn transactions_of_every_workload_allocate_nothing() {
    for spec in catalogue::all() {
        let counted = built(spec.name, &example(spec.name)).visit(0, Counted(1_000));
        // Its statements are up to a packet long: a buffer for each connection would cost more than one for each statement.
        let buffers = if spec.name == "bulk_insert" { 2 * 1_000 } else { 0 };
        assert_eq!(counted, buffers, "{}", spec.name);
    }
}

#[test]
fn transactions_of_mixes_and_uncommon_options_allocate_nothing() {
    for (name, given) in [
        ("mix", &[("mix-file", QUEUE)][..]),
        ("mix", &[("mix-file", TIMELINE)]),
        ("hot_row", &[("insert-order", "on")]),
        ("sql", &[("sql", "SELECT 1"), ("sql", "SELECT 2"), ("sql-protocol", "text")]),
    ] {
        assert_eq!(built(name, given).visit(0, Counted(5_000)), 0, "{name} {given:?}");
    }
}
