//! A driver that answers at once: what the load generator itself costs, all bookkeeping on.

use mydyno_stats::Histogram;
use mydyno_wire::packet::OkPacket;
use mydyno_wire::reply::{Prepared, ResultSink};
use mydyno_workload::session::{Answer, Kept, unknown_statement};
use mydyno_workload::{
    Command, Fault, Handle, Param, Session, Statement, StatementSpec, TransactionStream as _, Workload,
};

use crate::clock::{Clock, MonotonicClock};
use crate::executor::Tasks;
use crate::late_statements::LateStatements;
use crate::packets::{self, Packets};
use crate::recorder::Recorder;

/// Result of a run of the null driver.
#[derive(Debug, Clone, PartialEq)]
pub struct NullRun {
    /// Statements.
    pub queries: u64,
    /// Seconds.
    pub elapsed_s: f64,
    /// Service times.
    pub service: Histogram,
}

/// One connection to nowhere. It suspends once a statement, as a real one does.
struct Nowhere<'a> {
    shared: &'a NullShared<'a>,
    ids: Box<[u32]>,
    /// Statements that were prepared while running, and the id of the next.
    late: LateStatements,
    late_id: u32,
    intended_ns: u64,
    first_sent_ns: u64,
}

struct NullShared<'a> {
    clock: &'a MonotonicClock,
    packets: std::cell::RefCell<Packets>,
    recorder: std::cell::RefCell<Recorder>,
    stopping: std::cell::Cell<bool>,
}

impl Nowhere<'_> {
    async fn exchange(&mut self, operation: usize) -> Answer {
        let sent_ns = self.shared.clock.now_ns();
        if self.first_sent_ns == 0 {
            self.first_sent_ns = sent_ns;
        }
        suspend_once().await;
        let done_ns = self.shared.clock.now_ns();
        let mut recorder = self.shared.recorder.borrow_mut();
        recorder.statement(operation, done_ns - self.intended_ns, done_ns - sent_ns);
        self.intended_ns = done_ns;
        Answer { rows: 1, affected_rows: 0 }
    }
}

impl Session for Nowhere<'_> {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        let index = statement.0 as usize;
        let operation = {
            let mut packets = self.shared.packets.borrow_mut();
            std::hint::black_box(packets.execute(index, self.ids[index], params));
            packets::types_are_known(&mut self.ids[index]);
            packets.operation(index)
        };
        Ok(self.exchange(operation).await)
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        let answer = self.execute(statement, params).await?;
        Ok(Kept { answer, row: None })
    }

    async fn query(&mut self, operation: usize, sql: &[u8]) -> Result<Answer, Fault> {
        std::hint::black_box(self.shared.packets.borrow_mut().query(sql));
        Ok(self.exchange(operation).await)
    }

    async fn prepare(&mut self, spec: &StatementSpec) -> Result<Handle, Fault> {
        suspend_once().await;
        let prepared = Prepared { id: self.late_id, params: Vec::new(), columns: Vec::new() };
        self.late_id += 1;
        self.late.add(Ok(prepared), spec)
    }

    fn close(&mut self, handle: Handle) {
        self.late.remove(handle);
    }

    /// One result without columns.
    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, sink: &mut S) -> Result<Answer, Fault> {
        let answer = match command {
            Command::Prepared(statement, params) => self.execute(statement, params).await?,
            Command::Text(operation, sql) => self.query(operation, sql).await?,
            Command::Handle(handle, params) => {
                let late = self.late.get(handle).ok_or_else(unknown_statement)?;
                std::hint::black_box(late.packet(params));
                let operation = late.operation;
                self.late.executed(handle, None);
                self.exchange(operation).await
            }
        };
        sink.end(&OkPacket::default());
        Ok(answer)
    }
}

fn suspend_once() -> impl Future<Output = ()> {
    let mut suspended = false;
    std::future::poll_fn(move |_| {
        if std::mem::replace(&mut suspended, true) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
}

/// Runs `queries` statements or more of a workload on one thread over `connections` connections to nowhere.
pub fn run<W: Workload>(workload: &W, connections: usize, queries: u64) -> NullRun {
    let clock = MonotonicClock::start();
    let shared = NullShared {
        clock: &clock,
        packets: Packets::new(workload.statements()).into(),
        recorder: Recorder::new(workload.operations().len()).into(),
        stopping: false.into(),
    };
    let ids: Box<[u32]> = (1..=workload.statements().len() as u32).collect();
    let start_ns = clock.now_ns();
    let mut tasks = Tasks::new((0..connections).map(|number| {
        let connection = Nowhere {
            shared: &shared,
            ids: ids.clone(),
            late: LateStatements::default(),
            late_id: ids.len() as u32 + 1,
            intended_ns: 0,
            first_sent_ns: 0,
        };
        drive(workload, connection, number as u64)
    }));
    while tasks.live() > 0 {
        tasks.poll_all();
        if shared.recorder.borrow().queries >= queries {
            shared.stopping.set(true);
        }
    }
    drop(tasks);
    let elapsed_s = (clock.now_ns() - start_ns) as f64 / 1e9;
    let recorder = shared.recorder.into_inner();
    let mut service = Histogram::new();
    for times in &recorder.times {
        service.merge(&times.service);
    }
    NullRun { queries: recorder.queries, elapsed_s, service }
}

async fn drive<W: Workload>(workload: &W, mut connection: Nowhere<'_>, number: u64) {
    let shared = connection.shared;
    let mut stream = workload.stream(number);
    connection.intended_ns = shared.clock.now_ns();
    while !shared.stopping.get() {
        let intended_ns = connection.intended_ns;
        connection.first_sent_ns = 0;
        stream.begin();
        if workload.transaction(&mut stream, &mut connection).await.is_ok() {
            let mut recorder = shared.recorder.borrow_mut();
            recorder.transactions += 1;
            recorder.lateness.record(connection.first_sent_ns - intended_ns);
        }
    }
}
