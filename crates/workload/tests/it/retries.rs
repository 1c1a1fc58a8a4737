//! A transaction that fails anywhere and is drawn again sends the same parameters, and leaves those of all later
//! transactions as they were.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mydyno_stats::rng::Rng;
use mydyno_wire::ServerError;
use mydyno_workload::hot_row::{self, HotRow};
use mydyno_workload::mix::Mix;
use mydyno_workload::registry::Visitor;
use mydyno_workload::session::{Answer, Kept};
use mydyno_workload::slap::{self, Slap};
use mydyno_workload::sql::{self, Sql};
use mydyno_workload::transcript::SentStatement;
use mydyno_workload::{Fault, Options, Param, Session, Statement, TransactionStream as _, Workload};

use crate::behaviour::{ALL, built};

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
        Ok(Kept { answer, row: None })
    }

    async fn query(&mut self, operation: usize, sql: &[u8]) -> Result<Answer, Fault> {
        self.record(&SentStatement { operation, sql, params: &[] })
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

fn options(specs: &[mydyno_workload::options::OptionSpec], given: &[(&str, &str)]) -> Options {
    let given: Vec<(String, String)> =
        given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    Options::resolve("w", specs, &given).unwrap()
}

#[test]
fn retries_of_sysbenchs_workloads_send_the_same_parameters() {
    struct Same(&'static str);
    impl Visitor for Same {
        type Output = ();

        fn visit<W: Workload>(self, workload: &W) {
            same(self.0, workload);
        }
    }
    for name in ALL {
        let given: &[(&str, &str)] = match name {
            "bulk_insert" => &[("bulk-bytes", "200")],
            "oltp_insert" => &[("tables", "3"), ("auto-inc", "off")],
            "oltp_read_write" => &[("tables", "3"), ("distribution", "gaussian")],
            _ => &[("tables", "3")],
        };
        built(name, given).visit(0, Same(name));
    }
}

#[test]
fn retries_of_the_other_workloads_send_the_same_parameters() {
    let given = [("insert-order", "on"), ("statements", "select-for-update"), ("rows", "10")];
    same("hot_row", &HotRow::new(&options(hot_row::OPTIONS, &given), 1).unwrap());
    let given = [("auto-generate-sql-execute-number", "3")];
    same("slap", &Slap::new(&options(slap::OPTIONS, &given), 1).unwrap());
    let given = [("sql", "2: SELECT 1"), ("sql", "3: SELECT 2"), ("sql-protocol", "text")];
    same("sql", &Sql::new(&options(sql::OPTIONS, &given), 1).unwrap());
    for (name, file) in [
        ("shop", include_str!("../../../../workloads/shop.toml")),
        ("queue", include_str!("../../../../workloads/queue.toml")),
        ("timeline", include_str!("../../../../workloads/timeline.toml")),
    ] {
        same(name, &Mix::parse(name, file, 1).unwrap());
    }
}
