//! A twin's events on the connections of the load engine, and their failures in the words of the script.

use std::io::Write as _;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;
use mydyno_workload::session::Answer;
use mydyno_workload::{Fault, Param, Session, StatementSpec, TransactionStream, Workload};

use super::super::engine::Engine;
use super::super::stats::Count;
use super::random::{fill, permuted};
use super::script::bundled;
use super::target::{Target, message};
use super::twin::{C, Kind, PAD, Step, Twin};

/// A latch that is released when the test begins.
#[derive(Debug, Default)]
pub(super) struct Latch {
    is_released: Mutex<bool>,
    released: Condvar,
}

impl Latch {
    pub(super) fn release(&self) {
        *self.is_released.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.released.notify_all();
    }

    fn wait(&self) {
        let mut is_released = self.is_released.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_released {
            is_released = self.released.wait(is_released).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// A twin at work.
pub(super) struct TwinLoad {
    pub(super) twin: Arc<Twin>,
    pub(super) engine: Arc<Engine>,
    pub(super) target: Arc<Target>,
    pub(super) latch: Arc<Latch>,
    /// Told when the last connection has no more events.
    pub(super) ended: Sender<()>,
    operations: [OperationInfo; 1],
}

impl TwinLoad {
    pub(super) fn new(
        twin: Arc<Twin>,
        engine: Arc<Engine>,
        target: Arc<Target>,
        latch: Arc<Latch>,
        ended: Sender<()>,
    ) -> Self {
        let (name, kind) = (twin.module.to_owned(), OperationKind::Transaction);
        let operations = [OperationInfo { name, kind, sql: String::new() }];
        Self { twin, engine, target, latch, ended, operations }
    }
}

/// The events of one connection.
pub(super) struct Stream {
    engine: Arc<Engine>,
    latch: Arc<Latch>,
    ended: Sender<()>,
    thread: usize,
    /// When the event at work began.
    event_began: Option<Instant>,
    rng: Rng,
    /// A statement as text, for the server and for messages.
    sql: Vec<u8>,
    /// The last statement: its kind and its number, or its text.
    kind: Kind,
    statement: usize,
    in_text: bool,
    begun: bool,
    over: bool,
}

impl Stream {
    fn end(&mut self) {
        self.over = true;
        if self.engine.thread_has_ended() == 0 {
            // Without a receiver the program is at its end by force.
            let _ = self.ended.send(());
        }
    }
}

impl TransactionStream for Stream {
    fn begin(&mut self) {
        if self.over {
            return;
        }
        if !std::mem::replace(&mut self.begun, true) {
            self.latch.wait();
        }
        self.event_began = self.engine.next_event(self.thread);
        if self.event_began.is_none() {
            self.end();
        }
    }

    fn redraw(&mut self) {}

    fn is_over(&self) -> bool {
        self.over
    }
}

impl Workload for TwinLoad {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        if self.twin.as_texts { &[] } else { &self.twin.statements }
    }

    fn stream(&self, connection: u64) -> Stream {
        Stream {
            engine: Arc::clone(&self.engine),
            latch: Arc::clone(&self.latch),
            ended: self.ended.clone(),
            event_began: None,
            thread: connection as usize,
            rng: self.engine.rng(connection),
            sql: Vec::new(),
            kind: Kind::Begin,
            statement: 0,
            in_text: false,
            begun: false,
            over: false,
        }
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        true
    }

    /// One event. All errors are dealt with here, as the scripts do it, so that the load engine sees none.
    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        while let Err(fault) = self.event(stream, session).await {
            if !self.begins_again(stream, session, &fault).await {
                self.engine.event_given_up(stream.thread);
                stream.end();
                return Ok(());
            }
        }
        if let Some(began) = stream.event_began {
            self.engine.event_ended(stream.thread, began);
        }
        Ok(())
    }
}

impl TwinLoad {
    async fn event<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        for step in &self.twin.steps {
            match *step {
                Step::Plain(kind) => self.send(stream, session, kind, 0, &[]).await?,
                Step::Repeat(kind, times) => self.repeat(stream, session, kind, times).await?,
                Step::DeleteInserts(pairs) => self.delete_inserts(stream, session, pairs).await?,
                Step::InsertText { with_id } => self.insert_text(stream, session, with_id).await?,
            }
        }
        Ok(())
    }

    fn table(&self, stream: &mut Stream) -> u64 {
        stream.rng.below(self.twin.tables)
    }

    fn key(&self, stream: &mut Stream) -> i64 {
        self.twin.keys.draw(&mut stream.rng) as i64
    }

    async fn repeat<S: Session>(
        &self,
        stream: &mut Stream,
        session: &mut S,
        kind: Kind,
        times: u64,
    ) -> Result<(), Fault> {
        let table = self.table(stream);
        for _ in 0..times {
            match kind {
                Kind::Simple | Kind::Sum | Kind::Order | Kind::Distinct => {
                    let id = self.key(stream);
                    let to = id.saturating_add(self.twin.range_size).saturating_sub(1);
                    self.send(stream, session, kind, table, &[Param::Int(id), Param::Int(to)]).await?;
                }
                Kind::NonIndexUpdate => {
                    let mut c = *C;
                    fill(&mut c, &mut stream.rng);
                    let id = self.key(stream);
                    self.send(stream, session, kind, table, &[Param::Bytes(&c), Param::Int(id)]).await?;
                }
                _ => {
                    let id = self.key(stream);
                    self.send(stream, session, kind, table, &[Param::Int(id)]).await?;
                }
            }
        }
        Ok(())
    }

    async fn delete_inserts<S: Session>(
        &self,
        stream: &mut Stream,
        session: &mut S,
        pairs: u64,
    ) -> Result<(), Fault> {
        let table = self.table(stream);
        for _ in 0..pairs {
            let (id, k) = (self.key(stream), self.key(stream));
            let (mut c, mut pad) = (*C, *PAD);
            fill(&mut c, &mut stream.rng);
            fill(&mut pad, &mut stream.rng);
            self.send(stream, session, Kind::Delete, table, &[Param::Int(id)]).await?;
            let row = [Param::Int(id), Param::Int(k), Param::Bytes(&c), Param::Bytes(&pad)];
            self.send(stream, session, Kind::Insert, table, &row).await?;
        }
        Ok(())
    }

    async fn insert_text<S: Session>(
        &self,
        stream: &mut Stream,
        session: &mut S,
        with_id: bool,
    ) -> Result<(), Fault> {
        let table = self.table(stream) + 1;
        let k = self.key(stream);
        let (mut c, mut pad) = (*C, *PAD);
        fill(&mut c, &mut stream.rng);
        fill(&mut pad, &mut stream.rng);
        let (c, pad) = (std::str::from_utf8(&c).unwrap_or(""), std::str::from_utf8(&pad).unwrap_or(""));
        stream.sql.clear();
        stream.kind = Kind::Insert;
        // Writing to memory does not fail.
        let _ = if with_id {
            let id = i64::from(permuted(self.twin.unique.fetch_add(1, Relaxed) as u32)) - (1 << 31);
            write!(stream.sql, "INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({id}, {k}, '{c}', '{pad}')")
        } else {
            write!(stream.sql, "INSERT INTO sbtest{table} (k, c, pad) VALUES ({k}, '{c}', '{pad}')")
        };
        stream.in_text = true;
        let answer = session.query(0, &stream.sql).await?;
        self.count(stream, false, answer);
        Ok(())
    }

    async fn send<S: Session>(
        &self,
        stream: &mut Stream,
        session: &mut S,
        kind: Kind,
        table: u64,
        params: &[Param<'_>],
    ) -> Result<(), Fault> {
        let statement = self.twin.statement(kind, table);
        (stream.kind, stream.in_text) = (kind, self.twin.as_texts);
        stream.statement = statement.0 as usize;
        let answer = if self.twin.as_texts {
            stream.sql.clear();
            with_params(&self.twin.statements[stream.statement].sql, params, &mut stream.sql);
            session.query(0, &stream.sql).await?
        } else {
            session.execute(statement, params).await?
        };
        self.count(stream, kind.reads(), answer);
        Ok(())
    }

    fn count(&self, stream: &Stream, reads: bool, answer: Answer) {
        let count = match (reads, answer.affected_rows) {
            (true, _) => Count::Read,
            (false, 1..) => Count::Write,
            _ => Count::Other,
        };
        self.engine.count(stream.thread, count);
    }

    /// Prepares an event for its next attempt, as the hook of the scripts does; `false` when there is to be none.
    async fn begins_again<S: Session>(&self, stream: &mut Stream, session: &mut S, fault: &Fault) -> bool {
        let code = match fault {
            Fault::Server(error) if self.target.ignores(error.code) => error.code,
            _ => {
                self.fail(stream, fault);
                return false;
            }
        };
        self.engine.count_error(stream.thread, code);
        if self.twin.rolls_back && code != DEADLOCK {
            stream.sql.clear();
            stream.sql.extend_from_slice(b"ROLLBACK");
            stream.in_text = true;
            match session.query(0, &stream.sql).await {
                Ok(answer) => self.count(stream, false, answer),
                Err(fault) => {
                    self.fail(stream, &fault);
                    return false;
                }
            }
        }
        !self.engine.should_end()
    }

    /// Prints a failure that ends the test, in the words of the script.
    fn fail(&self, stream: &Stream, fault: &Fault) {
        let (code, state, text) = match fault {
            Fault::Server(error) => (error.code, error.sqlstate.as_str(), error.message.clone()),
            Fault::Lost(error) => (error.code(), "HY000", message(error)),
        };
        let log = &self.engine.log;
        let (name, sql) = match stream.in_text {
            true => ("mysql_drv_query()", String::from_utf8_lossy(&stream.sql).into_owned()),
            false => ("mysql_stmt_execute()", self.twin.statements[stream.statement].sql.clone()),
        };
        log.fatal(&format!("{name} returned error {code} ({text}) for query '{sql}'"));
        let place = self.place(stream);
        log.fatal(&format!(
            "`thread_run' function failed: {place}: SQL error, errno = {code}, state = '{state}': {text}"
        ));
        self.engine.fail();
    }

    /// File and line of the script from which the last statement comes.
    fn place(&self, stream: &Stream) -> String {
        let rolling_back = stream.in_text && stream.sql == b"ROLLBACK";
        let own = matches!(self.twin.module, "oltp_insert" | "oltp_delete");
        let (file, module) = match own && !rolling_back {
            true => (self.twin.path.as_str(), self.twin.module),
            false => ("oltp_common.lua", "oltp_common"),
        };
        let mark = match stream.kind {
            _ if rolling_back => "con:query(\"ROLLBACK\")",
            Kind::Insert if stream.sql.windows(4).any(|part| part == b"(id,") && own => "(id, k, c, pad)",
            Kind::Insert if own => "(k, c, pad)",
            Kind::Point => "stmt[i].point_selects:execute()",
            Kind::Simple | Kind::Sum | Kind::Order | Kind::Distinct => "stmt[i][key]:execute()",
            Kind::IndexUpdate => "stmt[i].index_updates:execute()",
            Kind::NonIndexUpdate => "stmt[i].non_index_updates:execute()",
            Kind::Delete => "stmt[i].deletes:execute()",
            Kind::Insert => "stmt[i].inserts:execute()",
            Kind::Begin => "stmt.begin:execute()",
            Kind::Commit => "stmt.commit:execute()",
        };
        let text = bundled(module).unwrap_or_default();
        let line = text.lines().position(|line| line.contains(mark)).map_or(0, |line| line + 1);
        format!("{file}:{line}")
    }
}

/// ER_LOCK_DEADLOCK, after which the server has rolled back.
const DEADLOCK: u16 = 1213;

/// Writes a statement with its parameters as literals; its text has question marks for parameters only.
fn with_params(text: &str, params: &[Param<'_>], sql: &mut Vec<u8>) {
    let mut params = params.iter();
    for (number, part) in text.split('?').enumerate() {
        if number > 0 {
            match params.next() {
                Some(Param::Int(value)) => drop(write!(sql, "{value}")),
                // Digits and dashes need no escapes.
                Some(Param::Bytes(bytes)) => {
                    sql.push(b'\'');
                    sql.extend_from_slice(bytes);
                    sql.push(b'\'');
                }
                _ => sql.extend_from_slice(b"NULL"),
            }
        }
        sql.extend_from_slice(part.as_bytes());
    }
}
