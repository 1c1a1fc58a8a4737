//! The transport on sockets: a worker waits by epoll or by io_uring.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use mydyno_model::plan::Backend;

use crate::clock::MonotonicClock;
use crate::opener_pool::OpenerPool;
use crate::ring::Ring;
use crate::sys::{self, Epoll, Events, NO_EVENT};
use crate::transport::{OPENED, Opened, Transport};
use crate::usage::ThreadUse;

/// Bytes of the read buffer that all connections of an epoll worker share: answers are parsed as they arrive and not
/// kept.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// Sockets and event loop of one worker.
pub struct Net<'a> {
    worker: usize,
    clock: MonotonicClock,
    event_loop: EventLoop,
    opener_pool: Option<&'a OpenerPool>,
}

pub(crate) enum EventLoop {
    /// Reports which sockets have input.
    Epoll { epoll: Epoll, events: Box<RefCell<Events>>, buffer: RefCell<Box<[u8]>> },
    /// Delivers received bytes.
    Ring(Box<Ring>),
}

/// Whether this host permits event loops of this kind, tried by making one.
///
/// # Errors
/// The refusal and what would permit it.
pub fn available(backend: Backend) -> Result<(), String> {
    let takes = match backend {
        Backend::Epoll => "free file descriptors and memory",
        Backend::IoUring => {
            "Linux 6.1, the sysctl kernel.io_uring_disabled at 0, and a container that permits it"
        }
    };
    EventLoop::new(backend, 1, MonotonicClock::start())
        .map(drop)
        .map_err(|why| format!("{why}; it takes {takes}"))
}

/// The event loop that costs least of those that this host permits: io_uring where it has it. Figures:
/// docs/journal/load-engine.md.
pub fn cheapest() -> Backend {
    if available(Backend::IoUring).is_ok() { Backend::IoUring } else { Backend::Epoll }
}

/// The default number of worker threads. One worker drives what eight CPUs of a server can answer, so more would only
/// take CPU time from the server. Where CPUs and connections are few, one costs less than two: more answers come with
/// each of its wake-ups. Two answer more queries from hundreds of connections on, and with io_uring for a few connections
/// unless the kernel schedules sessions as groups (`session_groups`). Figures: docs/journal/load-engine.md.
pub fn default_workers(cpus: usize, connections: usize, backend: Backend, session_groups: bool) -> usize {
    let one = match backend {
        Backend::Epoll => connections <= 64,
        Backend::IoUring if session_groups => connections <= 511,
        Backend::IoUring => (32..=511).contains(&connections),
    };
    if one && cpus <= 4 { 1 } else { (cpus / 8).clamp(2, 16).min(cpus.max(1)) }
}

impl EventLoop {
    pub(crate) fn new(backend: Backend, connections: usize, clock: MonotonicClock) -> io::Result<Self> {
        Ok(match backend {
            Backend::Epoll => Self::Epoll {
                epoll: Epoll::new()?,
                events: Box::new(RefCell::new([NO_EVENT; 512])),
                buffer: RefCell::new(vec![0; READ_BUFFER_BYTES].into_boxed_slice()),
            },
            Backend::IoUring => Self::Ring(Box::new(Ring::new(connections, clock)?)),
        })
    }

    /// Reports input on `fd` as events of `task`.
    pub(crate) fn watch(&self, fd: RawFd, task: usize) -> io::Result<()> {
        match self {
            Self::Epoll { epoll, .. } => epoll.add_input(fd, task),
            Self::Ring(ring) if task == OPENED => {
                ring.watch_opened(fd);
                Ok(())
            }
            Self::Ring(ring) => {
                ring.add(fd, task);
                Ok(())
            }
        }
    }

    /// Starts or stops reporting room for output; a ring reports it once for each request.
    pub(crate) fn watch_output(&self, fd: RawFd, task: usize, output: bool) -> io::Result<()> {
        match self {
            Self::Epoll { epoll, .. } => epoll.watch_output(fd, task, output),
            Self::Ring(ring) => {
                if output {
                    ring.watch_output(task);
                }
                Ok(())
            }
        }
    }

    /// As [`Transport::wait`].
    pub(crate) fn wait(&self, ready: &mut Vec<usize>, timeout_ns: u64, gather_ns: u64) -> io::Result<()> {
        ready.clear();
        match self {
            Self::Epoll { epoll, events, .. } => {
                let gather_ns = gather_ns.min(timeout_ns);
                if gather_ns > 0 {
                    sys::sleep(gather_ns);
                }
                let mut events = events.borrow_mut();
                let events = epoll.wait(&mut events, timeout_ns - gather_ns)?;
                ready.extend(events.iter().map(|event| event.u64 as usize));
                Ok(())
            }
            Self::Ring(ring) => ring.wait(ready, timeout_ns, gather_ns, OPENED),
        }
    }

    /// Passes received bytes to `take`; `None` when nothing is there. Also whether nothing is left as far as is known.
    #[inline]
    pub(crate) fn receive<R>(
        &self,
        fd: RawFd,
        task: usize,
        take: impl FnOnce(&[u8]) -> R,
    ) -> io::Result<(Option<R>, bool)> {
        match self {
            Self::Epoll { buffer, .. } => {
                let mut buffer = buffer.borrow_mut();
                match sys::recv(fd, &mut buffer) {
                    Ok(n) => Ok((Some(take(&buffer[..n])), n < READ_BUFFER_BYTES)),
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok((None, true)),
                    Err(e) => Err(e),
                }
            }
            Self::Ring(ring) => ring.receive(task, take).map(|taken| {
                let drained = taken.is_none();
                (taken, drained)
            }),
        }
    }
}

impl<'a> Net<'a> {
    /// An event loop of this kind for so many connections, which also watches the worker's results of `opener_pool`.
    /// The calling thread must be the one that uses it.
    ///
    /// # Errors
    /// Out of file descriptors or memory, or the kernel does not permit it.
    pub fn new(
        worker: usize,
        backend: Backend,
        connections: usize,
        clock: MonotonicClock,
        opener_pool: Option<&'a OpenerPool>,
    ) -> io::Result<Self> {
        let event_loop = EventLoop::new(backend, connections, clock)?;
        if let Some(pool) = opener_pool {
            event_loop.watch(pool.filled(worker).fd(), OPENED)?;
        }
        Ok(Self { worker, clock, event_loop, opener_pool })
    }
}

impl Transport for Net<'_> {
    type Clock = MonotonicClock;
    type Socket = OwnedFd;

    #[inline]
    fn clock(&self) -> &MonotonicClock {
        &self.clock
    }

    fn watch(&self, socket: &OwnedFd, task: usize) -> io::Result<()> {
        self.event_loop.watch(socket.as_raw_fd(), task)
    }

    fn forget(&self, socket: &OwnedFd, task: usize) {
        if let EventLoop::Ring(ring) = &self.event_loop {
            ring.remove(task);
            sys::shut_down(socket.as_raw_fd());
        }
    }

    fn watch_output(&self, socket: &OwnedFd, task: usize, output: bool) -> io::Result<()> {
        self.event_loop.watch_output(socket.as_raw_fd(), task, output)
    }

    fn wait(&self, ready: &mut Vec<usize>, timeout_ns: u64, gather_ns: u64) -> io::Result<()> {
        self.event_loop.wait(ready, timeout_ns, gather_ns)
    }

    fn submit(&self) -> io::Result<()> {
        match &self.event_loop {
            EventLoop::Epoll { .. } => Ok(()),
            EventLoop::Ring(ring) => ring.submit(),
        }
    }

    #[inline]
    fn enqueue(&self, task: usize, packet: &[u8]) -> bool {
        match &self.event_loop {
            EventLoop::Epoll { .. } => false,
            EventLoop::Ring(ring) => {
                ring.post(task, packet);
                true
            }
        }
    }

    #[inline]
    fn submitted_ns(&self, task: usize) -> u64 {
        match &self.event_loop {
            EventLoop::Epoll { .. } => 0,
            EventLoop::Ring(ring) => ring.sent_ns(task),
        }
    }

    #[inline]
    fn send(&self, socket: &OwnedFd, bytes: &[u8]) -> io::Result<usize> {
        sys::send(socket.as_raw_fd(), bytes)
    }

    #[inline]
    fn receive<R>(
        &self,
        socket: &OwnedFd,
        task: usize,
        take: impl FnOnce(&[u8]) -> R,
    ) -> io::Result<Option<R>> {
        self.event_loop.receive(socket.as_raw_fd(), task, take).map(|(taken, _)| taken)
    }

    fn opens_connections(&self) -> bool {
        self.opener_pool.is_some()
    }

    fn request_connection(&self, task: usize, number: usize) {
        if let Some(pool) = self.opener_pool {
            pool.request(self.worker, task, number);
        }
    }

    fn opened(&self) -> Vec<Opened<OwnedFd>> {
        self.opener_pool.map(|pool| pool.opened(self.worker)).unwrap_or_default()
    }

    fn usage(&self) -> ThreadUse {
        ThreadUse::of_this_thread()
    }
}
