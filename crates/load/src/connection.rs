//! One connection under load: sends a statement, waits for its answer, times both.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::pin::Pin;
use std::task::{Context, Poll};

use mydyno_wire::WireError;
use mydyno_wire::envelope::Envelope;
use mydyno_wire::reply::{Expect, FirstRow, Progress, Reply, ReplyParser};
use mydyno_workload::session::{Answer, Kept};
use mydyno_workload::{Fault, Param, Session, Statement};

use crate::clock::Clock;
use crate::error::LoadError;
use crate::net::Net;
use crate::opening::{Keeping, Opened, Ready};
use crate::outbox::{self, Outbox};
use crate::packets::{self, AS_TEXT, Packets};
use crate::recorder::{FirstError, Recorder};
use crate::sys::{self, ThreadUse};
use crate::waiting::{Arrivals, Timers};

/// Bytes of the read buffer that all connections of a worker share: answers are parsed as they come and not kept.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// In place of a statement's number: it was not prepared.
const TEXT: usize = usize::MAX;

/// What the tasks of one worker share. One thread owns it, so cells are enough.
pub struct Shared<'w> {
    /// Number of the worker.
    pub worker: usize,
    pub clock: &'w Clock,
    pub net: Net,
    pub packets: RefCell<Packets>,
    pub recorder: RefCell<Recorder>,
    /// Codes of errors that were seen in this step.
    pub seen_errors: RefCell<BTreeSet<u16>>,
    /// First errors since the last hand-over.
    pub first_errors: RefCell<Vec<FirstError>>,
    /// A transaction has succeeded here.
    pub succeeded: Cell<bool>,
    /// No new transactions.
    pub stopping: Cell<bool>,
    /// Connections that were lost for good, those that are being opened again, and why the last one was lost.
    pub lost: Cell<usize>,
    pub down: Cell<usize>,
    pub last_loss: RefCell<Option<String>>,
    /// What is due before it is counted and not timed: the warm-up's backlog, once the measurement has begun.
    pub timed_from_ns: Cell<u64>,
    /// Arrivals of an open loop.
    pub arrivals: RefCell<Option<Arrivals>>,
    pub timers: Timers,
    /// What was opened for tasks that have not yet seen it.
    pub arrived: RefCell<BTreeMap<usize, Opened>>,
    /// What opening connections cost since the last hand-over.
    pub opening_use: Cell<ThreadUse>,
    buffer: RefCell<Box<[u8]>>,
    /// What goes into and comes out of an envelope; empty while connections have none.
    wrapped: RefCell<Vec<u8>>,
    outbox: RefCell<Outbox>,
    /// All answers at hand have been received: now statements are sent.
    sending: Cell<bool>,
}

impl<'w> Shared<'w> {
    pub fn new(worker: usize, clock: &'w Clock, net: Net, packets: Packets, operations: usize) -> Self {
        Self {
            worker,
            clock,
            net,
            packets: RefCell::new(packets),
            recorder: RefCell::new(Recorder::new(operations)),
            seen_errors: RefCell::default(),
            first_errors: RefCell::default(),
            succeeded: Cell::new(false),
            stopping: Cell::new(false),
            lost: Cell::new(0),
            down: Cell::new(0),
            last_loss: RefCell::default(),
            timed_from_ns: Cell::new(0),
            arrivals: RefCell::default(),
            timers: Timers::default(),
            arrived: RefCell::default(),
            opening_use: Cell::default(),
            buffer: RefCell::new(vec![0; READ_BUFFER_BYTES].into_boxed_slice()),
            wrapped: RefCell::default(),
            outbox: RefCell::default(),
            sending: Cell::new(false),
        }
    }

    /// Lets every task that has something to send go on, by `poll`.
    pub fn send_all(&self, mut poll: impl FnMut(usize)) {
        self.sending.set(true);
        loop {
            let Some(task) = self.outbox.borrow_mut().next() else { break };
            poll(task);
        }
        self.sending.set(false);
    }

    /// Waits until an instant has come, or until no new transactions are wanted.
    pub async fn sleep_until(&self, at_ns: u64, task: usize) {
        if self.clock.now_ns() < at_ns {
            self.timers.set(at_ns, task);
        }
        poll_fn(|_| {
            let over = self.stopping.get() || self.clock.now_ns() >= at_ns;
            if over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Waits for what was opened for a task; `None` when no new transactions are wanted.
    pub async fn opened(&self, task: usize) -> Option<Opened> {
        poll_fn(|_| match self.arrived.borrow_mut().remove(&task) {
            None if !self.stopping.get() => Poll::Pending,
            opened => Poll::Ready(opened),
        })
        .await
    }
}

/// What one exchange asks for next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Turn {
    /// The statement lies in the outbox.
    Queued(Range<usize>),
    /// The statement has just been sent: waiting without asking the kernel, which would have nothing.
    Sent,
    /// The same, by the ring's next submission.
    Posted,
    /// An event may have come.
    Awaiting,
}

/// One connection.
pub struct Connection<'w> {
    shared: &'w Shared<'w>,
    /// Absent while it is being opened again.
    socket: Option<OwnedFd>,
    fd: RawFd,
    /// Its number among all of the step.
    pub number: usize,
    /// Number of its task: the token of its events.
    token: usize,
    parser: ReplyParser,
    /// TLS and compression, where the connection has them.
    envelope: Option<Box<Envelope>>,
    /// Statement ids of the server, by statement.
    ids: Box<[u32]>,
    /// The statement under way; [`TEXT`] where it was not prepared.
    statement: usize,
    /// What is needed to keep rows, and the row that is being kept.
    keeping: Option<Box<Keeping>>,
    first_row: Option<Box<FirstRow>>,
    turn: Turn,
    /// The ring sends the statement under way, and knows when it did.
    by_ring: bool,
    /// Whether the answer under way is timed as an operation.
    operation: Option<usize>,
    /// What the socket has not taken yet; nearly always empty.
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

impl<'w> Connection<'w> {
    pub fn new(shared: &'w Shared<'w>, token: usize, number: usize, ready: Ready) -> Self {
        Self {
            shared,
            fd: ready.socket.as_raw_fd(),
            socket: Some(ready.socket),
            number,
            token,
            parser: ready.parser,
            envelope: ready.envelope,
            ids: ready.ids,
            statement: TEXT,
            keeping: ready.keeping,
            first_row: None,
            turn: Turn::Sent,
            by_ring: false,
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

    pub fn fd(&self) -> RawFd {
        self.fd
    }

    /// Number of its task.
    pub fn task(&self) -> usize {
        self.token
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

    /// Closes the socket; nothing may be asked until [`Connection::renew`].
    pub fn close(&mut self) {
        if self.socket.is_some() {
            self.shared.net.remove(self.fd, self.token);
        }
        self.socket = None;
        self.fd = -1;
    }

    /// Goes on with a new connection.
    ///
    /// # Errors
    /// The event loop cannot watch it.
    pub fn renew(&mut self, ready: Ready) -> Result<(), LoadError> {
        let fd = ready.socket.as_raw_fd();
        self.shared
            .net
            .add(fd, self.token)
            .map_err(|source| LoadError::System { what: "watching a connection".to_owned(), source })?;
        (self.socket, self.fd) = (Some(ready.socket), fd);
        (self.parser, self.envelope, self.ids) = (ready.parser, ready.envelope, ready.ids);
        (self.keeping, self.first_row) = (ready.keeping, None);
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
        async move { Exchange { connection: self }.await.map(|_| ()) }
    }

    /// Says goodbye, so that the server does not log an aborted connection. Best effort: the socket closes next.
    pub fn quit(&mut self) {
        let shared = self.shared;
        let packets = shared.packets.borrow();
        self.send(packets.quit());
    }

    /// Has a packet sent as soon as the answers at hand have been received.
    fn post(&mut self, packet: &[u8], operation: Option<usize>) {
        self.operation = operation;
        self.by_ring = false;
        if packet.len() > outbox::LONGEST_BYTES {
            self.send(packet);
        } else if let (Net::Ring(ring), None) = (&self.shared.net, &self.envelope) {
            ring.post(self.token, packet);
            (self.turn, self.by_ring) = (Turn::Posted, true);
        } else {
            self.turn = Turn::Queued(self.shared.outbox.borrow_mut().put(self.token, packet));
        }
    }

    fn send(&mut self, packet: &[u8]) {
        self.turn = Turn::Sent;
        self.sent_ns = self.shared.clock.now_ns();
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
        match sys::send(self.fd, packet) {
            Ok(n) if n == packet.len() => {}
            Ok(n) => self.keep_unsent(&packet[n..]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.keep_unsent(packet),
            Err(e) => {
                self.broken = Some(Box::new(WireError::Io { during: "sending a statement", source: e }))
            }
        }
    }

    #[cold]
    fn keep_unsent(&mut self, rest: &[u8]) {
        self.unsent.extend_from_slice(rest);
        self.await_room();
    }

    #[cold]
    fn await_room(&mut self) {
        if let Err(e) = self.shared.net.watch_output(self.fd(), self.token, true) {
            self.broken = Some(Box::new(WireError::Io { during: "waiting to send a statement", source: e }));
        }
    }

    #[cold]
    fn send_rest(&mut self) {
        while !self.unsent.is_empty() {
            match sys::send(self.fd, &self.unsent) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return self.await_room(),
                Err(e) => {
                    self.broken = Some(Box::new(WireError::Io { during: "sending a statement", source: e }));
                    return;
                }
            }
        }
        self.unsent.shrink_to_fit();
        if let Err(e) = self.shared.net.watch_output(self.fd(), self.token, false) {
            self.broken = Some(Box::new(WireError::Io { during: "waiting for an answer", source: e }));
        }
    }

    /// Takes what has arrived. Under epoll the socket is edge-triggered: it must be read until nothing is left, or until
    /// the answer is complete, behind which a server sends nothing. A short read is not the end: a close that came with
    /// the last bytes has no event of its own.
    fn receive(&mut self) -> Poll<Result<Reply, Fault>> {
        let shared = self.shared;
        loop {
            let taken = match &shared.net {
                Net::Epoll(..) => {
                    let mut buffer = shared.buffer.borrow_mut();
                    sys::recv(self.fd, &mut buffer).map(|n| Some(self.take(&buffer[..n])))
                }
                Net::Ring(ring) => ring.receive(self.token, |bytes| self.take(bytes)),
            };
            match taken {
                Ok(Some(Ok(Progress::Done(reply)))) => return Poll::Ready(Ok(reply)),
                Ok(Some(Ok(Progress::More))) => {}
                Ok(Some(Err(fault))) => return Poll::Ready(Err(fault)),
                Ok(None) => return Poll::Pending,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Poll::Ready(Err(lost("waiting for an answer", e))),
            }
        }
    }

    /// Takes received bytes in; none mean that the other side has closed.
    #[inline]
    fn take(&mut self, received: &[u8]) -> Result<Progress, Fault> {
        if received.is_empty() {
            return Err(lost("waiting for an answer", io::ErrorKind::UnexpectedEof.into()));
        }
        let fed = match &mut self.envelope {
            None => feed(&mut self.parser, &mut self.first_row, received),
            Some(envelope) => {
                let mut wrapped = self.shared.wrapped.borrow_mut();
                let mut received = received;
                loop {
                    wrapped.clear();
                    let fed = envelope
                        .open(received, &mut wrapped)
                        .and_then(|()| feed(&mut self.parser, &mut self.first_row, &wrapped));
                    if !matches!(fed, Ok(Progress::More)) || !envelope.has_more() {
                        break fed;
                    }
                    // Compressed frames that came together are opened one after the other.
                    received = &[];
                }
            }
        };
        fed.map_err(|e| Fault::Lost(Box::new(e)))
    }

    /// How the rows of a statement's answer come.
    #[inline]
    fn expected(&self, statement: usize) -> Expect {
        if self.ids[statement] == AS_TEXT { Expect::Text } else { Expect::Prepared }
    }

    /// The ring sends after the task has had its turn, and keeps the instant.
    fn take_send_time(&mut self) {
        if let Net::Ring(ring) = &self.shared.net {
            self.sent_ns = ring.sent_ns(self.token);
            if self.first_sent_ns == 0 {
                self.first_sent_ns = self.sent_ns;
            }
        }
    }

    fn finish(&mut self, reply: Reply) -> Result<Answer, Fault> {
        self.done_ns = self.shared.clock.now_ns();
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

/// Has the parser, and the row that is being kept if any, take in received bytes.
#[inline]
fn feed(
    parser: &mut ReplyParser,
    first_row: &mut Option<Box<FirstRow>>,
    bytes: &[u8],
) -> Result<Progress, WireError> {
    if let Some(first_row) = first_row {
        first_row.feed(bytes)?;
    }
    parser.feed(bytes)
}

fn lost(doing: &'static str, error: io::Error) -> Fault {
    Fault::Lost(Box::new(WireError::Io { during: doing, source: error }))
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

impl Session for Connection<'_> {
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
        Exchange { connection: self }
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        let index = statement.0 as usize;
        let expect = self.expected(index);
        self.first_row = self
            .keeping
            .as_ref()
            .map(|keeping| Box::new(FirstRow::new(&keeping.session, expect, keeping.columns[index].clone())));
        let answer = self.execute(statement, params).await;
        let row = self.first_row.take().and_then(|first| first.into_row());
        Ok(Kept { answer: answer?, row })
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
        Exchange { connection: self }
    }
}

/// The wait for an answer.
struct Exchange<'c, 'w> {
    connection: &'c mut Connection<'w>,
}

impl Future for Exchange<'_, '_> {
    type Output = Result<Answer, Fault>;

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        let connection = &mut *self.get_mut().connection;
        let shared = connection.shared;
        if let Turn::Queued(place) = &connection.turn {
            if !shared.sending.get() {
                return Poll::Pending;
            }
            let place = place.clone();
            connection.send(shared.outbox.borrow().packet(place));
        }
        if matches!(connection.turn, Turn::Sent | Turn::Posted) && connection.broken.is_none() {
            connection.turn = Turn::Awaiting;
            return Poll::Pending;
        }
        if !connection.unsent.is_empty() {
            connection.send_rest();
        }
        if let Some(error) = connection.broken.take() {
            return Poll::Ready(Err(Fault::Lost(error)));
        }
        let Poll::Ready(received) = connection.receive() else { return Poll::Pending };
        if connection.by_ring {
            connection.take_send_time();
        }
        Poll::Ready(received.and_then(|reply| connection.finish(reply)))
    }
}
