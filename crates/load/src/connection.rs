//! One connection under load: sends a statement, waits for its answer, times both.

use std::future::Future;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use mydyno_wire::envelope::Envelope;
use mydyno_wire::packet::answer_sequence;
use mydyno_wire::reply::{Expect, FirstRow, PrepareReader, Reply, ReplyParser, ResultReader, ResultSink};
use mydyno_wire::{Column, WireError, command};
use mydyno_workload::session::{Answer, Kept, unknown_statement};
use mydyno_workload::{Command, Fault, Handle, Param, Session, Statement, StatementSpec};

use crate::answer::{Counted, Decode, Preparing, Streamed, lost, take};
use crate::error::LoadError;
use crate::late_statements::LateStatements;
use crate::opening::{Keeping, Ready};
use crate::packets::{self, AS_TEXT};
use crate::send_queue;
use crate::shared::Shared;
use crate::transport::Transport;

/// In place of a statement's number: it was not prepared.
const TEXT: usize = usize::MAX;

/// State of the exchange under way.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ExchangeState {
    /// The statement is in the send queue, at this place.
    Queued(Range<usize>),
    /// The statement has just been sent or enqueued. Nothing can have arrived, so the next poll does not receive.
    Sent,
    /// Each poll receives.
    Awaiting,
}

/// One connection.
pub struct Connection<'w, T: Transport> {
    shared: &'w Shared<T>,
    /// Absent while the connection is being opened again.
    socket: Option<T::Socket>,
    /// Its number among all of the step.
    pub number: usize,
    /// Number of its task, under which its events are reported.
    task: usize,
    parser: ReplyParser,
    /// TLS and compression, where the connection has them.
    envelope: Option<Box<Envelope>>,
    /// Statement ids of the server, by statement.
    ids: Box<[u32]>,
    /// The statement under way; [`TEXT`] where it was not prepared.
    statement: usize,
    /// Data with which rows are decoded.
    keeping: Box<Keeping>,
    /// Statements that were prepared while running.
    late: LateStatements,
    turn: ExchangeState,
    /// The transport submits the statement under way, and knows when.
    enqueued: bool,
    /// The operation under which the answer under way is timed.
    operation: Option<usize>,
    /// Bytes that the socket has not taken; nearly always empty.
    unsent: Vec<u8>,
    broken: Option<Box<WireError>>,
    /// When the statement under way should have been sent.
    pub intended_ns: u64,
    /// When the transaction under way was due.
    due_ns: u64,
    /// When the first statement of the transaction was sent; 0 before.
    pub first_sent_ns: u64,
    sent_ns: u64,
    /// When the last answer was complete.
    pub done_ns: u64,
    /// Operation of the last statement, for error messages.
    pub last_operation: usize,
}

impl<'w, T: Transport> Connection<'w, T> {
    pub fn new(shared: &'w Shared<T>, task: usize, number: usize, ready: Ready<T::Socket>) -> Self {
        Self {
            shared,
            socket: Some(ready.socket),
            number,
            task,
            parser: ready.parser,
            envelope: ready.envelope,
            ids: ready.ids,
            statement: TEXT,
            keeping: ready.keeping,
            late: LateStatements::default(),
            turn: ExchangeState::Sent,
            enqueued: false,
            operation: None,
            unsent: Vec::new(),
            broken: None,
            intended_ns: 0,
            due_ns: 0,
            first_sent_ns: 0,
            sent_ns: 0,
            done_ns: 0,
            last_operation: 0,
        }
    }

    /// Has the transport report the connection's events.
    ///
    /// # Errors
    /// Out of memory or watches.
    pub fn watch(&self) -> io::Result<()> {
        self.socket.as_ref().map_or(Ok(()), |socket| self.shared.transport.watch(socket, self.task))
    }

    /// Number of its task.
    pub fn task(&self) -> usize {
        self.task
    }

    /// Begins a transaction that was due at this instant.
    pub fn begin(&mut self, intended_ns: u64) {
        (self.due_ns, self.intended_ns, self.first_sent_ns) = (intended_ns, intended_ns, 0);
    }

    /// Whether the times of the transaction under way belong to the phase.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.due_ns >= self.shared.timed_from_ns.get()
    }

    /// Closes the socket; no statement may be sent until [`Connection::renew`].
    pub fn close(&mut self) {
        if let Some(socket) = self.socket.take() {
            self.shared.transport.forget(&socket, self.task);
        }
    }

    /// Continues on a new connection.
    ///
    /// # Errors
    /// The event loop cannot watch it.
    pub fn renew(&mut self, ready: Ready<T::Socket>) -> Result<(), LoadError> {
        self.shared
            .transport
            .watch(&ready.socket, self.task)
            .map_err(|source| LoadError::System { what: "watching a connection".to_owned(), source })?;
        self.socket = Some(ready.socket);
        (self.parser, self.envelope, self.ids) = (ready.parser, ready.envelope, ready.ids);
        self.keeping = ready.keeping;
        self.late.renew();
        self.unsent = Vec::new();
        self.broken = None;
        Ok(())
    }

    /// Sends ROLLBACK and waits for the answer. It is not counted as a statement of the workload.
    pub fn rollback(&mut self) -> impl Future<Output = Result<(), Fault>> {
        let shared = self.shared;
        let packets = shared.packets.borrow();
        self.parser.start(Expect::Text);
        self.post(packets.rollback(), None);
        drop(packets);
        async move { Exchange { connection: self, decoder: Counted }.await.map(|_| ()) }
    }

    /// Sends COM_QUIT, so that the server does not log an aborted connection. Best effort: the socket closes next.
    pub fn quit(&mut self) {
        let shared = self.shared;
        let packets = shared.packets.borrow();
        self.send(packets.quit());
    }

    /// Has a packet sent when all available answers have been received.
    fn post(&mut self, packet: &[u8], operation: Option<usize>) {
        self.operation = operation;
        self.enqueued = false;
        if packet.len() > send_queue::LONGEST_BYTES {
            self.send(packet);
        } else if self.envelope.is_none() && self.shared.transport.enqueue(self.task, packet) {
            (self.turn, self.enqueued) = (ExchangeState::Sent, true);
        } else {
            self.turn = ExchangeState::Queued(self.shared.send_queue.borrow_mut().put(self.task, packet));
        }
    }

    fn send(&mut self, packet: &[u8]) {
        self.turn = ExchangeState::Sent;
        self.sent_ns = self.shared.now_ns();
        if self.first_sent_ns == 0 {
            self.first_sent_ns = self.sent_ns;
        }
        if self.envelope.is_some() {
            return self.send_wrapped(packet);
        }
        self.send_bytes(packet);
    }

    fn send_wrapped(&mut self, packet: &[u8]) {
        let shared = self.shared;
        let mut wrapped = shared.wrapped.borrow_mut();
        wrapped.clear();
        let sealed = self.envelope.as_mut().map(|envelope| envelope.seal(packet, &mut wrapped));
        match sealed {
            Some(Err(e)) => self.broken = Some(Box::new(e)),
            _ => self.send_bytes(&wrapped),
        }
    }

    fn send_bytes(&mut self, packet: &[u8]) {
        match self.send_some(packet) {
            Ok(n) if n == packet.len() => {}
            Ok(n) => self.keep_unsent(&packet[n..]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.keep_unsent(packet),
            Err(e) => {
                self.broken = Some(Box::new(WireError::Io { during: "sending a statement", source: e }))
            }
        }
    }

    #[inline]
    fn send_some(&self, bytes: &[u8]) -> io::Result<usize> {
        match &self.socket {
            Some(socket) => self.shared.transport.send(socket, bytes),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    #[cold]
    fn keep_unsent(&mut self, rest: &[u8]) {
        self.unsent.extend_from_slice(rest);
        self.watch_output(true);
    }

    #[cold]
    fn watch_output(&mut self, output: bool) {
        let Some(socket) = &self.socket else { return };
        if let Err(e) = self.shared.transport.watch_output(socket, self.task, output) {
            let during = if output { "waiting to send a statement" } else { "waiting for an answer" };
            self.broken = Some(Box::new(WireError::Io { during, source: e }));
        }
    }

    #[cold]
    fn send_rest(&mut self) {
        while !self.unsent.is_empty() {
            match self.send_some(&self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return self.watch_output(true),
                Err(e) => {
                    self.broken = Some(Box::new(WireError::Io { during: "sending a statement", source: e }));
                    return;
                }
            }
        }
        self.unsent.shrink_to_fit();
        self.watch_output(false);
    }

    /// Receives until nothing is left, as edge-triggered epoll requires, or until the answer is complete, after which a
    /// server sends nothing. A short read is not the end: a close that came with the last bytes has no event of its own.
    fn receive<D: Decode>(&mut self, decoder: &mut D) -> Poll<Result<D::Output, Fault>> {
        let Self { shared, socket, task, parser, envelope, .. } = self;
        let Some(socket) = socket else {
            return Poll::Ready(Err(lost("waiting for an answer", io::ErrorKind::NotConnected.into())));
        };
        loop {
            let take = |bytes: &[u8]| take(&shared.wrapped, parser, decoder, envelope, bytes);
            match shared.transport.receive(socket, *task, take) {
                Ok(Some(Ok(Some(output)))) => return Poll::Ready(Ok(output)),
                Ok(Some(Ok(None))) => {}
                Ok(Some(Err(fault))) => return Poll::Ready(Err(fault)),
                Ok(None) => return Poll::Pending,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Poll::Ready(Err(lost("waiting for an answer", e))),
            }
        }
    }

    /// Encoding of the rows of a statement's answer.
    #[inline]
    fn expected(&self, statement: usize) -> Expect {
        if self.ids[statement] == AS_TEXT { Expect::Text } else { Expect::Prepared }
    }

    /// Enqueued packets are submitted after the task's poll; the transport has the instant.
    fn take_submission_time(&mut self) {
        self.sent_ns = self.shared.transport.submitted_ns(self.task);
        if self.first_sent_ns == 0 {
            self.first_sent_ns = self.sent_ns;
        }
    }

    fn finish(&mut self, reply: Reply) -> Result<Answer, Fault> {
        self.done_ns = self.shared.now_ns();
        if reply.misnumbered {
            self.shared.recorder.borrow_mut().misnumbered += 1;
        }
        if let Some(error) = reply.error {
            return Err(Fault::Server(error));
        }
        if let Some(operation) = self.operation {
            if let Some(id) = self.ids.get_mut(self.statement) {
                packets::types_are_known(id);
            }
            let mut recorder = self.shared.recorder.borrow_mut();
            if self.is_timed() {
                recorder.statement(operation, self.done_ns - self.intended_ns, self.done_ns - self.sent_ns);
            } else {
                recorder.queries += 1;
            }
            drop(recorder);
            self.intended_ns = self.done_ns;
        }
        Ok(Answer { rows: reply.rows, affected_rows: reply.affected_rows })
    }
}

impl<T: Transport> Drop for Connection<'_, T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T: Transport> Session for Connection<'_, T> {
    fn execute(
        &mut self,
        statement: Statement,
        params: &[Param<'_>],
    ) -> impl Future<Output = Result<Answer, Fault>> {
        let shared = self.shared;
        let index = statement.0 as usize;
        let mut packets = shared.packets.borrow_mut();
        let operation = packets.operation(index);
        self.last_operation = operation;
        self.parser.start(self.expected(index));
        self.statement = index;
        let packet = packets.execute(index, self.ids[index], params);
        self.post(packet, Some(operation));
        drop(packets);
        Exchange { connection: self, decoder: Counted }
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        let mut first = FirstRow::default();
        let answer = self.stream(Command::Prepared(statement, params), &mut first).await?;
        Ok(Kept { answer, row: first.into_row() })
    }

    fn query(&mut self, operation: usize, sql: &[u8]) -> impl Future<Output = Result<Answer, Fault>> {
        let shared = self.shared;
        let mut packets = shared.packets.borrow_mut();
        self.last_operation = operation;
        let (packet, sequence) = packets.query(sql);
        self.parser.start_at(Expect::Text, sequence);
        self.statement = TEXT;
        self.post(packet, Some(operation));
        drop(packets);
        Exchange { connection: self, decoder: Counted }
    }

    fn generation(&self) -> u64 {
        self.late.generation()
    }

    async fn prepare(&mut self, spec: &StatementSpec) -> Result<Handle, Fault> {
        let mut packet = Vec::new();
        command::stmt_prepare(&mut packet, spec.sql.as_bytes());
        let sequence = answer_sequence(&packet);
        self.last_operation = spec.operation;
        self.statement = TEXT;
        self.post(&packet, None);
        let reader = PrepareReader::new(&self.keeping.session);
        let mut decoder = Preparing::new(reader, sequence);
        let prepared = Exchange { connection: &mut *self, decoder: &mut decoder }.await;
        self.shared.recorder.borrow_mut().misnumbered += u64::from(decoder.is_misnumbered());
        self.late.add(prepared, spec)
    }

    fn close(&mut self, handle: Handle) {
        if let Some(id) = self.late.remove(handle) {
            let mut packet = Vec::new();
            command::stmt_close(&mut packet, id);
            self.send(&packet);
        }
    }

    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, sink: &mut S) -> Result<Answer, Fault> {
        let (expect, known): (Expect, Arc<[Column]>) = match command {
            Command::Prepared(statement, params) => {
                let index = statement.0 as usize;
                drop(self.execute(statement, params));
                let known = self.keeping.columns.get(index).cloned().unwrap_or_default();
                (self.expected(index), known)
            }
            Command::Text(operation, sql) => {
                drop(self.query(operation, sql));
                (Expect::Text, Arc::default())
            }
            Command::Handle(handle, params) => {
                let late = self.late.get(handle).ok_or_else(unknown_statement)?;
                let (expect, operation) = (late.expect(), late.operation);
                let known = Arc::clone(&late.columns);
                let packet = late.packet(params).to_vec();
                self.last_operation = operation;
                self.parser.start_at(expect, answer_sequence(&packet));
                self.statement = TEXT;
                self.post(&packet, Some(operation));
                (expect, known)
            }
        };
        let reader = ResultReader::new(&self.keeping.session, expect, known);
        let mut decoder = Streamed::new(reader, sink);
        let answer = Exchange { connection: &mut *self, decoder: &mut decoder }.await;
        let redefined = decoder.redefined_columns().map(|columns| self.shared.columns.share(columns));
        match command {
            Command::Handle(handle, _) if answer.is_ok() => self.late.executed(handle, redefined),
            Command::Prepared(statement, _) => {
                let columns = self.keeping.columns.get_mut(statement.0 as usize);
                if let (Some(columns), Some(redefined)) = (columns, redefined) {
                    *columns = redefined;
                }
            }
            _ => {}
        }
        answer
    }
}

/// The wait for an answer.
struct Exchange<'c, 'w, T: Transport, D> {
    connection: &'c mut Connection<'w, T>,
    decoder: D,
}

impl<T: Transport, D: Decode + Unpin> Future for Exchange<'_, '_, T, D> {
    type Output = Result<D::Answer, Fault>;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { connection, decoder } = self.get_mut();
        let shared = connection.shared;
        if let ExchangeState::Queued(place) = &connection.turn {
            if !shared.sending.get() {
                return Poll::Pending;
            }
            let place = place.clone();
            connection.send(shared.send_queue.borrow().packet(place));
        }
        if connection.turn == ExchangeState::Sent && connection.broken.is_none() {
            connection.turn = ExchangeState::Awaiting;
            return Poll::Pending;
        }
        if !connection.unsent.is_empty() {
            connection.send_rest();
        }
        if let Some(error) = connection.broken.take() {
            return Poll::Ready(Err(Fault::Lost(error)));
        }
        let Poll::Ready(received) = connection.receive(decoder) else { return Poll::Pending };
        if connection.enqueued {
            connection.take_submission_time();
        }
        Poll::Ready(received.and_then(|output| D::finish(output, |reply| connection.finish(reply))))
    }
}
