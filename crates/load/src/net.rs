//! How a worker waits for its connections: by epoll, or by io_uring.

use std::cell::RefCell;
use std::io;
use std::os::fd::RawFd;

use mydyno_model::plan::Backend;

use crate::clock::Clock;
use crate::ring::Ring;
use crate::sys::{self, Epoll, Events, NO_EVENT};

/// Token of the bell that tells of opened connections.
pub const BELL: usize = usize::MAX;

/// The event loop of one worker.
pub enum Net {
    /// Told what has input; bytes are asked for.
    Epoll(Epoll, Box<RefCell<Events>>),
    /// Told with the bytes.
    Ring(Box<Ring>),
}

/// Whether event loops of this kind can be had on this host, tried by making one.
///
/// # Errors
/// Why not, and what it takes.
pub fn available(backend: Backend) -> Result<(), String> {
    let takes = match backend {
        Backend::Epoll => "free file descriptors and memory",
        Backend::IoUring => {
            "Linux 6.1, the sysctl kernel.io_uring_disabled at 0, and a container that permits it"
        }
    };
    Net::new(backend, 1, Clock::start()).map(drop).map_err(|why| format!("{why}; it takes {takes}"))
}

/// The event loop that costs least of those that this host permits: io_uring where it has it. Figures:
/// docs/journal/load-engine.md.
pub fn cheapest() -> Backend {
    if available(Backend::IoUring).is_ok() { Backend::IoUring } else { Backend::Epoll }
}

impl Net {
    /// The one that the plan names, for so many connections.
    ///
    /// # Errors
    /// Out of file descriptors or memory, or the kernel has no such thing.
    pub fn new(backend: Backend, connections: usize, clock: Clock) -> io::Result<Self> {
        Ok(match backend {
            Backend::Epoll => Self::Epoll(Epoll::new()?, Box::new(RefCell::new([NO_EVENT; 512]))),
            Backend::IoUring => Self::Ring(Box::new(Ring::new(connections, clock)?)),
        })
    }

    /// Watches a task's connection.
    ///
    /// # Errors
    /// Out of memory or watches.
    pub fn add(&self, fd: RawFd, task: usize) -> io::Result<()> {
        match self {
            Self::Epoll(epoll, _) => epoll.add_input(fd, task),
            Self::Ring(ring) => {
                ring.add(fd, task);
                Ok(())
            }
        }
    }

    /// Watches for opened connections.
    ///
    /// # Errors
    /// Out of memory or watches.
    pub fn add_bell(&self, fd: RawFd) -> io::Result<()> {
        match self {
            Self::Epoll(epoll, _) => epoll.add_input(fd, BELL),
            Self::Ring(ring) => {
                ring.add_bell(fd);
                Ok(())
            }
        }
    }

    /// Lets a task's connection go, which is closed next.
    pub fn remove(&self, fd: RawFd, task: usize) {
        if let Self::Ring(ring) = self {
            ring.remove(task);
            sys::shut_down(fd);
        }
    }

    /// Tells, or no longer tells, when the task's socket has room.
    ///
    /// # Errors
    /// The descriptor is not watched.
    pub fn watch_output(&self, fd: RawFd, task: usize, output: bool) -> io::Result<()> {
        match self {
            Self::Epoll(epoll, _) => epoll.watch_output(fd, task, output),
            Self::Ring(ring) => {
                if output {
                    ring.watch_output(task);
                }
                Ok(())
            }
        }
    }

    /// Waits up to `timeout_ns`, and at least `gather_ns` so that answers gather, and adds the tasks that can go on.
    ///
    /// # Errors
    /// Only what would be a defect of this program.
    pub fn wait(&self, ready: &mut Vec<usize>, timeout_ns: u64, gather_ns: u64) -> io::Result<()> {
        ready.clear();
        match self {
            Self::Epoll(epoll, events) => {
                let gather_ns = gather_ns.min(timeout_ns);
                if gather_ns > 0 {
                    sys::sleep(gather_ns);
                }
                let mut events = events.borrow_mut();
                let events = epoll.wait(&mut events, timeout_ns - gather_ns)?;
                ready.extend(events.iter().map(|event| event.u64 as usize));
                Ok(())
            }
            Self::Ring(ring) => ring.wait(ready, timeout_ns, gather_ns, BELL),
        }
    }

    /// Hands over what was posted, without waiting.
    ///
    /// # Errors
    /// Only what would be a defect of this program.
    pub fn submit(&self) -> io::Result<()> {
        match self {
            Self::Epoll(..) => Ok(()),
            Self::Ring(ring) => ring.submit(),
        }
    }
}
