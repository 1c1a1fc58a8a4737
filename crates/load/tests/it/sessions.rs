//! Statements prepared while running and rows streamed to the workload, on a real server.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::clock::MonotonicClock;
use mydyno_load::{End, StepEvent, StepSpec, Warmup, run_step};
use mydyno_model::plan::{Arrivals, ConnectionPlan, WaitPlan};
use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_wire::packet::OkPacket;
use mydyno_wire::reply::{ResultSink, Row};
use mydyno_wire::{Client, WireError};
use mydyno_workload::draws::Draws;
use mydyno_workload::session::ParamType;
use mydyno_workload::{Command, Fault, Handle, Param, Session, StatementSpec, Workload};

use crate::backend;
use crate::server::shared;

/// Writes rows and ends of results down.
#[derive(Default)]
struct Notes(String);

impl ResultSink for Notes {
    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        row.texts(|cell| {
            self.0.push_str(&cell.map_or("NULL".into(), String::from_utf8_lossy));
            self.0.push(' ');
        })
    }

    fn end(&mut self, end: &OkPacket) {
        self.0.push_str(&format!("({}) ", end.affected_rows));
    }
}

/// Uses everything that a session offers while running.
struct Everything {
    operations: Vec<OperationInfo>,
    notes: Mutex<Vec<String>>,
}

/// The statement that is prepared, while its connection lasts.
type Stream = Draws<Option<Handle>>;

impl Everything {
    async fn all<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<String, Fault> {
        let mut notes = Notes::default();
        let prepared = match stream.current {
            Some(handle) if handle.generation == session.generation() => handle,
            _ => {
                let spec = StatementSpec {
                    sql: "SELECT ?, ?, ? + 1".to_owned(),
                    params: vec![ParamType::Bytes(100), ParamType::Double, ParamType::Int],
                    operation: 1,
                    keeps_row: true,
                };
                session.prepare(&spec).await?
            }
        };
        stream.current = Some(prepared);
        for number in [1, 2] {
            let params = [Param::Bytes(b"text"), Param::Double(0.5), Param::Int(number)];
            session.stream(Command::Handle(prepared, &params), &mut notes).await?;
        }
        session.stream(Command::Handle(prepared, &[Param::Null; 3]), &mut notes).await?;
        let text = b"SELECT 1 UNION SELECT 2; DO 1; CALL sessions.two(); SELECT 3";
        let answer = session.stream(Command::Text(2, text), &mut notes).await?;
        notes.0.push_str(&format!("{} rows", answer.rows));
        // No row is decoded, and the connection stays usable.
        session.stream(Command::Text(2, b"SELECT 4; SELECT 5"), &mut ()).await?;
        let other =
            session.prepare(&StatementSpec { sql: "DO 2".to_owned(), ..StatementSpec::default() }).await?;
        session.close(other);
        match session.stream(Command::Handle(other, &[]), &mut notes).await {
            Err(Fault::Server(error)) if error.code == 1243 => {}
            other => panic!("a closed statement was executed: {other:?}"),
        }
        let wrong = StatementSpec { sql: "SELECT * FROM no.such".to_owned(), ..StatementSpec::default() };
        match session.prepare(&wrong).await {
            Err(Fault::Server(error)) if error.code == 1146 => {}
            other => panic!("a statement without a table was prepared: {other:?}"),
        }
        Ok(notes.0)
    }
}

impl Workload for Everything {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &[]
    }

    fn stream(&self, _: u64) -> Stream {
        Draws::new(None)
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        false
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let notes = self.all(stream, session).await?;
        let mut all = self.notes.lock().unwrap();
        if all.last() != Some(&notes) {
            all.push(notes);
        }
        Ok(())
    }
}

#[test]
fn a_session_prepares_and_streams_while_running_and_after_each_reconnect() {
    let server = shared();
    for sql in [
        "CREATE DATABASE IF NOT EXISTS sessions",
        "CREATE OR REPLACE PROCEDURE sessions.two() BEGIN SELECT 7, 8; SELECT 9; END",
    ] {
        server.client().execute(sql).unwrap();
    }
    let operation = |name: &str, kind| OperationInfo { name: name.to_owned(), kind, sql: String::new() };
    let statement = OperationKind::Statement;
    let workload = Everything {
        operations: vec![
            operation("transaction", OperationKind::Transaction),
            operation("prepared", statement),
            operation("text", statement),
        ],
        notes: Mutex::default(),
    };
    let connect = || {
        let mut options = server.options();
        options.multi_statements = true;
        Client::connect(&options)
    };
    let keep = ConnectionPlan { reconnect_every: Some(5), ..ConnectionPlan::default() };
    let spec = StepSpec {
        number: 0,
        workload: &workload,
        connections: 3,
        workers: 2,
        arrivals: &Arrivals::CLOSED,
        seed: 1,
        warmup: Warmup::Fixed(Duration::ZERO),
        measure: Duration::from_millis(500),
        keep: &keep,
        wait: &WaitPlan { backend: backend(), ..WaitPlan::default() },
        stop_on_error: None,
        connect: &connect,
    };
    let (mut transactions, mut errors) = (0, Vec::new());
    let end = run_step(&MonotonicClock::start(), &spec, &AtomicBool::new(false), &mut |event| match event {
        StepEvent::Interval(interval) => transactions += interval.transactions,
        StepEvent::Error(error, _) => errors.push(error),
        _ => {}
    });
    assert!(errors.is_empty(), "{errors:?}");
    assert!(matches!(end, Ok(End::Complete(shortfalls)) if shortfalls.lost == 0), "{end:?}");
    assert!(transactions > 15, "{transactions} transactions");
    let notes = workload.notes.into_inner().unwrap();
    let expected = "text 0.5 2 (0) text 0.5 3 (0) NULL NULL NULL (0) \
                    1 2 (0) (0) 7 8 (0) 9 (0) (0) 3 (0) 5 rows";
    assert_eq!(notes, [expected]);
}
