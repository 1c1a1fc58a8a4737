//! The transport of a simulation.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;

use mydyno_wire::capability::Capabilities;
use mydyno_wire::reply::ReplyParser;
use mydyno_wire::server::ServerVersion;
use mydyno_wire::session::Session;

use super::network::{Arrived, Network, Served};
use crate::clock::Clock;
use crate::opening::{Keeping, Ready};
use crate::transport::{Opened, Transport};
use crate::usage::ThreadUse;

/// A clock that [`World::advance`] sets.
#[derive(Debug, Clone, Default)]
pub struct VirtualClock(Rc<Cell<u64>>);

impl Clock for VirtualClock {
    fn now_ns(&self) -> u64 {
        self.0.get()
    }
}

/// The network and the clock that all workers share.
pub struct World {
    clock: VirtualClock,
    network: Rc<RefCell<Network>>,
}

impl World {
    pub fn new(clock: VirtualClock, network: Network) -> Self {
        Self { clock, network: Rc::new(RefCell::new(network)) }
    }

    pub fn transport(&self, worker: usize) -> SimulatedTransport {
        SimulatedTransport { worker, clock: self.clock.clone(), network: Rc::clone(&self.network) }
    }

    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    pub fn next_event_ns(&self) -> u64 {
        self.network.borrow().next_event_ns()
    }

    /// Advances the clock and delivers the events until then.
    pub fn advance(&self, to_ns: u64) {
        let mut network = self.network.borrow_mut();
        network.advance(to_ns);
        self.clock.0.set(network.now_ns());
    }

    /// An open connection with its statements prepared.
    pub fn open(&self, worker: usize, task: usize) -> Ready<SimulatedSocket> {
        let mut network = self.network.borrow_mut();
        let link = network.open(worker, task);
        ready(link, network.statements)
    }

    pub fn served(&self) -> Served {
        self.network.borrow().served
    }
}

fn ready(link: usize, statements: usize) -> Ready<SimulatedSocket> {
    let capabilities = Capabilities::PROTOCOL_41;
    let session = Session::new(ServerVersion::parse("8.0.36", 1, capabilities), capabilities);
    Ready {
        socket: SimulatedSocket(link),
        parser: ReplyParser::new(&session),
        envelope: None,
        ids: (1..=statements as u32).collect(),
        keeping: Box::new(Keeping { session, columns: Box::default() }),
    }
}

/// One side of a connection.
#[derive(Debug)]
pub struct SimulatedSocket(usize);

/// One worker's transport.
pub struct SimulatedTransport {
    worker: usize,
    clock: VirtualClock,
    network: Rc<RefCell<Network>>,
}

impl Transport for SimulatedTransport {
    type Clock = VirtualClock;
    type Socket = SimulatedSocket;

    fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    fn watch(&self, _: &SimulatedSocket, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn forget(&self, socket: &SimulatedSocket, _: usize) {
        self.network.borrow_mut().forget(socket.0);
    }

    fn watch_output(&self, _: &SimulatedSocket, _: usize, _: bool) -> io::Result<()> {
        // The network reports room after every short send.
        Ok(())
    }

    fn wait(&self, ready: &mut Vec<usize>, _: u64, _: u64) -> io::Result<()> {
        ready.clear();
        self.network.borrow_mut().take_ready(self.worker, ready);
        Ok(())
    }

    fn submit(&self) -> io::Result<()> {
        Ok(())
    }

    fn enqueue(&self, _: usize, _: &[u8]) -> bool {
        false
    }

    fn submitted_ns(&self, _: usize) -> u64 {
        0
    }

    fn send(&self, socket: &SimulatedSocket, bytes: &[u8]) -> io::Result<usize> {
        self.network.borrow_mut().send(socket.0, bytes)
    }

    fn receive<R>(
        &self,
        socket: &SimulatedSocket,
        _: usize,
        take: impl FnOnce(&[u8]) -> R,
    ) -> io::Result<Option<R>> {
        let arrived = self.network.borrow_mut().receive(socket.0);
        Ok(arrived.map(|arrived| match arrived {
            Arrived::Bytes(bytes) => take(&bytes),
            Arrived::End => take(&[]),
        }))
    }

    fn opens_connections(&self) -> bool {
        true
    }

    fn request_connection(&self, task: usize, _: usize) {
        self.network.borrow_mut().request_connection(self.worker, task);
    }

    fn opened(&self) -> Vec<Opened<SimulatedSocket>> {
        let mut network = self.network.borrow_mut();
        let statements = network.statements;
        let answered = network.take_opened(self.worker);
        answered
            .into_iter()
            .map(|answered| Opened {
                task: answered.task,
                result: answered.result.map(|link| ready(link, statements)),
                took_ns: answered.took_ns,
                usage: ThreadUse::default(),
            })
            .collect()
    }

    fn usage(&self) -> ThreadUse {
        ThreadUse::default()
    }
}
