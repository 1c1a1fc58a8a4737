//! A transaction that fails anywhere and is drawn again sends the same parameters, and leaves those of all later
//! transactions as they were.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mydyno_stats::rng::Rng;
use mydyno_wire::reply::ResultSink;
use mydyno_wire::{ServerError, Value};
use mydyno_workload::catalogue;
use mydyno_workload::registry::Visitor;
use mydyno_workload::session::{Answer, Kept, unknown_statement};
use mydyno_workload::transcript::SentStatement;
use mydyno_workload::{Command, Fault, Param, Session, Statement, TransactionStream as _, Workload};

use crate::behaviour::{QUEUE, TIMELINE, built, example};

/// Transactions of each comparison.
const TRANSACTIONS: usize = 60;

/// Records statements; each of them fails with probability `failing`, as by a deadlock.
struct Recorder<'a, W> {
    workload: &'a W,
    chance: Rng,
    failing: f64,
    attempt: Vec<String>,
}

impl<W: Workload> Recorder<'_, W> {
    fn record(&mut self, asked: &SentStatement<'_>) -> Result<Answer, Fault> {
        if self.chance.f64() < self.failing {
            let (sqlstate, message) = ("40001".to_owned(), "deadlock".to_owned());
            return Err(Fault::Server(Box::new(ServerError { code: 1213, sqlstate, message })));
        }
        self.attempt.push(asked.to_string());
        Ok(Answer { rows: 1, affected_rows: 1 })
    }
}

impl<W: Workload> Session for Recorder<'_, W> {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        let spec = &self.workload.statements()[statement.0 as usize];
        self.record(&SentStatement { operation: spec.operation, sql: spec.sql.as_bytes(), params })
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        let answer = self.execute(statement, params).await?;
        Ok(Kept { answer, row: Some((1..=32).map(Value::Int).collect()) })
    }

    async fn query(&mut self, operation: usize, sql: &[u8]) -> Result<Answer, Fault> {
        self.record(&SentStatement { operation, sql, params: &[] })
    }

    /// A result without columns: the rows are unknown.
    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, _: &mut S) -> Result<Answer, Fault> {
        match command {
            Command::Prepared(statement, params) => self.execute(statement, params).await,
            Command::Text(operation, sql) => self.query(operation, sql).await,
            Command::Handle(..) => Err(unknown_statement()),
        }
    }
}

/// The statements of the successful attempts, and the number of failed ones.
fn sent<W: Workload>(workload: &W, failing: f64) -> (Vec<String>, u64) {
    let mut stream = workload.stream(1);
    let mut session = Recorder { workload, chance: Rng::from_seed(7), failing, attempt: Vec::new() };
    let (mut statements, mut failures) = (Vec::new(), 0);
    for _ in 0..TRANSACTIONS {
        stream.begin();
        loop {
            let done = {
                let transaction = pin!(workload.transaction(&mut stream, &mut session));
                transaction.poll(&mut Context::from_waker(Waker::noop()))
            };
            let attempt = std::mem::take(&mut session.attempt);
            match done {
                Poll::Ready(Ok(())) => break statements.extend(attempt),
                Poll::Ready(Err(Fault::Server(_))) => failures += 1,
                other => panic!("{other:?}"),
            }
            stream.redraw();
        }
    }
    (statements, failures)
}

fn same<W: Workload>(name: &str, workload: &W) {
    let (undisturbed, _) = sent(workload, 0.0);
    let (retried, failures) = sent(workload, 0.05);
    assert!(failures > 0, "{name}: nothing was retried");
    assert_eq!(retried, undisturbed, "{name} after {failures} retries");
}

struct Same(&'static str);

impl Visitor for Same {
    type Output = ();

    fn visit<W: Workload>(self, workload: &W) {
        same(self.0, workload);
    }
}

#[test]
fn retries_of_every_workload_send_the_same_parameters() {
    for spec in catalogue::all() {
        built(spec.name, &example(spec.name)).visit(0, Same(spec.name));
    }
}

#[test]
fn retries_of_uncommon_options_send_the_same_parameters() {
    for (name, given) in [
        ("oltp_insert", &[("tables", "3"), ("auto-inc", "off")][..]),
        ("oltp_read_write", &[("tables", "3"), ("distribution", "gaussian")]),
        ("hot_row", &[("insert-order", "on"), ("statements", "select-for-update"), ("rows", "10")]),
        ("slap", &[("auto-generate-sql-execute-number", "3")]),
        ("sql", &[("sql", "2: SELECT 1"), ("sql", "3: SELECT 2"), ("sql-protocol", "text")]),
        ("mix", &[("mix-file", QUEUE)]),
        ("mix", &[("mix-file", TIMELINE)]),
    ] {
        built(name, given).visit(0, Same(name));
    }
}
