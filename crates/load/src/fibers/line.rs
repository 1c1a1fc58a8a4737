//! A connected socket of a fiber or of a thread.

use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::rc::Rc;

use super::{Worker, current};
use crate::net::EventLoop;
use crate::sys;

/// Bytes that one call receives outside of a fiber.
const BUFFER_BYTES: usize = 16 << 10;

thread_local! {
    /// Made on first use; connections of a thread share it, since what arrives is taken at once.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A worker's state of a line.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The fiber that waits for it.
    waiting: Option<usize>,
    /// Something may have arrived that was not received.
    arrived: bool,
}

impl State {
    /// Notes an event; the fiber that waited for it.
    pub(super) fn event(&mut self) -> Option<usize> {
        self.arrived = true;
        self.waiting.take()
    }
}

/// A connected socket; calls wait for it as their caller does, a fiber or a thread. To be used where it was made.
pub struct Line {
    socket: OwnedFd,
    /// The worker that watches it, and its number there.
    place: Option<(Rc<Worker>, usize)>,
    /// Something was sent since bytes were received last.
    asked: Cell<bool>,
}

impl Line {
    /// Takes a socket; in a fiber its thread's event loop watches it from now on.
    ///
    /// # Errors
    /// Out of memory or watches.
    pub fn new(socket: OwnedFd) -> io::Result<Self> {
        let Some(worker) = current() else {
            return Ok(Self { socket, place: None, asked: Cell::new(false) });
        };
        let number = worker.unused.borrow_mut().pop().unwrap_or_else(|| {
            worker.lines.borrow_mut().push(State::default());
            worker.lines.borrow().len() - 1
        });
        worker.event_loop.watch(socket.as_raw_fd(), number)?;
        Ok(Self { socket, place: Some((worker, number)), asked: Cell::new(false) })
    }

    /// Sends all bytes. `answered` says that the server answers them, and that nothing is sent before its answer.
    ///
    /// # Errors
    /// The connection's end.
    pub fn send(&self, mut bytes: &[u8], answered: bool) -> io::Result<()> {
        self.asked.set(true);
        if let Some((worker, number)) = &self.place
            && let EventLoop::Ring(ring) = &worker.event_loop
            && answered
        {
            ring.post(*number, bytes);
            return Ok(());
        }
        while !bytes.is_empty() {
            match sys::send(self.socket.as_raw_fd(), bytes) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.wait_for_room()?,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    fn wait_for_room(&self) -> io::Result<()> {
        match &self.place {
            Some((worker, number)) if matches!(worker.event_loop, EventLoop::Epoll { .. }) => {
                worker.event_loop.watch_output(self.socket.as_raw_fd(), *number, true)?;
                self.wait(worker, *number);
                worker.event_loop.watch_output(self.socket.as_raw_fd(), *number, false)
            }
            _ => sys::wait_for_room(self.socket.as_raw_fd()),
        }
    }

    fn wait(&self, worker: &Worker, number: usize) {
        worker.lines.borrow_mut()[number].waiting = Some(worker.at_work.get());
        worker.wait();
    }

    /// Waits for bytes and passes them to `take`: none when the server has closed the connection.
    ///
    /// # Errors
    /// The connection's failure.
    pub fn receive<R>(&self, take: impl FnOnce(&[u8]) -> R) -> io::Result<R> {
        let fd = self.socket.as_raw_fd();
        let Some((worker, number)) = &self.place else {
            return BUFFER.with_borrow_mut(|buffer| {
                buffer.resize(BUFFER_BYTES, 0);
                sys::recv_waiting(fd, buffer).map(|length| take(&buffer[..length]))
            });
        };
        // The event that told of the last bytes may have told of the connection's end too, and does so once.
        if !self.asked.replace(false) {
            worker.lines.borrow_mut()[*number].arrived = true;
        }
        let mut take = Some(take);
        loop {
            if std::mem::take(&mut worker.lines.borrow_mut()[*number].arrived) {
                let (received, drained) =
                    worker.event_loop.receive(fd, *number, |bytes| take.take().map(|take| take(bytes)))?;
                worker.lines.borrow_mut()[*number].arrived = !drained;
                if let Some(Some(result)) = received {
                    return Ok(result);
                }
            } else {
                self.wait(worker, *number);
            }
        }
    }

    /// Sends a last packet, which nothing answers, if the socket takes it at once.
    pub fn send_last(&self, bytes: &[u8]) {
        // The connection ends in any case.
        let _ = sys::send(self.socket.as_raw_fd(), bytes);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some((worker, number)) = &self.place {
            if let EventLoop::Ring(ring) = &worker.event_loop {
                ring.remove(*number);
                sys::shut_down(self.socket.as_raw_fd());
            }
            worker.lines.borrow_mut()[*number] = State::default();
            worker.unused.borrow_mut().push(*number);
        }
    }
}
