//! Transactions allocate nothing: what they need is laid out before the load, or once a connection.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mydyno_workload::hot_row::{self, HotRow};
use mydyno_workload::mix::Mix;
use mydyno_workload::session::{Answer, Kept};
use mydyno_workload::slap::{self, Slap};
use mydyno_workload::sql::{self, Sql};
use mydyno_workload::{Fault, Options, Param, Session, Statement, TransactionStream as _, Workload};

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

fn options(specs: &[mydyno_workload::options::OptionSpec], given: &[(&str, &str)]) -> Options {
    let given: Vec<(String, String)> =
        given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Options::resolve("w", specs, &given).unwrap()
}

#[test]
fn an_allocation_is_counted() {
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1);
}

#[test]
fn transactions_of_mixes_allocate_nothing() {
    for file in [
        include_str!("../../../../workloads/shop.toml"),
        include_str!("../../../../workloads/queue.toml"),
        include_str!("../../../../workloads/timeline.toml"),
    ] {
        assert_eq!(allocations(&Mix::parse("m.toml", file, 1).unwrap(), 5_000), 0);
    }
}

#[test]
fn transactions_of_hot_row_slap_and_sql_allocate_nothing() {
    let hot_row = HotRow::new(&options(hot_row::OPTIONS, &[("insert-order", "on")]), 1).unwrap();
    assert_eq!(allocations(&hot_row, 1_000), 0);
    assert_eq!(allocations(&Slap::new(&options(slap::OPTIONS, &[]), 1).unwrap(), 1_000), 0);
    let given = [("sql", "SELECT 1"), ("sql", "SELECT 2"), ("sql-protocol", "text")];
    assert_eq!(allocations(&Sql::new(&options(sql::OPTIONS, &given), 1).unwrap(), 1_000), 0);
}
