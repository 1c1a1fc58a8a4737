//! The seam between the load engine and the outside world. Everything above it (connections, tasks, windows) takes time,
//! bytes and events from here, so the same code runs on sockets and in a simulation.

use std::io;

use crate::clock::Clock;
use crate::error::LoadError;
use crate::opening::Ready;
use crate::usage::ThreadUse;

/// The task number under which [`Transport::wait`] reports that connections have been opened.
pub const OPENED: usize = usize::MAX;

/// Result of one request for a connection.
pub struct Opened<S> {
    /// The task that requested it.
    pub task: usize,
    pub result: Result<Ready<S>, LoadError>,
    /// From the first packet to the last answer, in nanoseconds.
    pub took_ns: u64,
    /// CPU time and context switches that opening cost this process.
    pub usage: ThreadUse,
}

/// One worker's clock, sockets and event loop. Implementations are chosen at compile time.
pub trait Transport {
    type Clock: Clock;
    /// One open connection to a server; dropping it closes the connection.
    type Socket;

    fn clock(&self) -> &Self::Clock;

    /// Reports input on `socket` as events of `task` from this call on.
    ///
    /// # Errors
    /// Out of memory or watches.
    fn watch(&self, socket: &Self::Socket, task: usize) -> io::Result<()>;

    /// Ends what [`Self::watch`] began. The caller drops the socket next.
    fn forget(&self, socket: &Self::Socket, task: usize);

    /// Starts or stops reporting that the task's socket has room for output.
    ///
    /// # Errors
    /// The socket is not watched.
    fn watch_output(&self, socket: &Self::Socket, task: usize, output: bool) -> io::Result<()>;

    /// Waits up to `timeout_ns`, and at least `gather_ns` so that answers accumulate, and fills `ready` with the tasks
    /// that have events.
    ///
    /// # Errors
    /// Only those that a defect of this program causes.
    fn wait(&self, ready: &mut Vec<usize>, timeout_ns: u64, gather_ns: u64) -> io::Result<()>;

    /// Submits enqueued packets without waiting.
    ///
    /// # Errors
    /// Only those that a defect of this program causes.
    fn submit(&self) -> io::Result<()>;

    /// Enqueues a packet for the next submission and returns true, or returns false where the transport has no
    /// submission queue; the caller then calls [`Self::send`].
    fn enqueue(&self, task: usize, packet: &[u8]) -> bool;

    /// When the task's last enqueued packet was submitted.
    fn submitted_ns(&self, task: usize) -> u64;

    /// Sends as many bytes as the socket takes without waiting, and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` when it takes none, else the connection's failure.
    fn send(&self, socket: &Self::Socket, bytes: &[u8]) -> io::Result<usize>;

    /// Passes the next received bytes of a task to `take`: no bytes when the server has closed the connection. `None`
    /// when nothing has arrived.
    ///
    /// # Errors
    /// The connection's failure.
    fn receive<R>(
        &self,
        socket: &Self::Socket,
        task: usize,
        take: impl FnOnce(&[u8]) -> R,
    ) -> io::Result<Option<R>>;

    /// Whether [`Self::request_connection`] may be called.
    fn opens_connections(&self) -> bool;

    /// Requests connection `number` (from 0, of the step) for a task. [`OPENED`] is reported when it is open or refused.
    fn request_connection(&self, task: usize, number: usize);

    /// Results of requests since the last call.
    fn opened(&self) -> Vec<Opened<Self::Socket>>;

    /// CPU time and context switches of the calling thread so far.
    fn usage(&self) -> ThreadUse;
}
