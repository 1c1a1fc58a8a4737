//! The system calls of the load engine.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// An epoll instance.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// Buffer for the events of one wait.
pub type Events = [libc::epoll_event; 512];

/// An empty event, to fill [`Events`] with.
pub const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

impl Epoll {
    /// A new instance.
    ///
    /// # Errors
    /// Out of file descriptors or memory.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made this descriptor, which has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Reports input on `fd`, edge-triggered, as `token`.
    ///
    /// # Errors
    /// Out of memory or watches.
    pub fn add_input(&self, fd: RawFd, token: usize) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, libc::EPOLLIN as u32, token)
    }

    /// Reports input, and room for output while `output` is set. Output is only watched while something waits to be
    /// sent: otherwise every drain of the socket by the server would be a wake-up.
    ///
    /// # Errors
    /// The descriptor is not watched.
    pub fn watch_output(&self, fd: RawFd, token: usize, output: bool) -> io::Result<()> {
        let output = if output { libc::EPOLLOUT as u32 } else { 0 };
        self.control(libc::EPOLL_CTL_MOD, fd, libc::EPOLLIN as u32 | output, token)
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, events: u32, token: usize) -> io::Result<()> {
        let events = events | libc::EPOLLET as u32 | libc::EPOLLRDHUP as u32;
        let mut event = libc::epoll_event { events, u64: token as u64 };
        // SAFETY: `event` is valid for the call, which copies it.
        let status = unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &raw mut event) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for events up to `timeout_ns`; a signal counts as no event.
    ///
    /// # Errors
    /// Only those that a defect of this program causes.
    pub fn wait<'a>(&self, events: &'a mut Events, timeout_ns: u64) -> io::Result<&'a [libc::epoll_event]> {
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as _,
            tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
        };
        let n = self.wait_precisely(events, &timeout);
        match usize::try_from(n) {
            Ok(n) => Ok(&events[..n]),
            Err(_) => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => Ok(&[]),
                e => Err(e),
            },
        }
    }

    /// `epoll_wait` knows milliseconds only. `epoll_pwait2` exists since Linux 5.11; before it, and where a container's
    /// filter hides it, the instance itself is polled until something is ready.
    fn wait_precisely(&self, events: &mut Events, timeout: &libc::timespec) -> libc::c_int {
        static NO_PWAIT2: AtomicBool = AtomicBool::new(false);
        let (fd, room) = (self.0.as_raw_fd(), events.len() as libc::c_int);
        if !NO_PWAIT2.load(Ordering::Relaxed) {
            // SAFETY: `events` is valid for writing `room` events, `timeout` for reading, and the set of signals may be
            // absent.
            let n = unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    fd,
                    events.as_mut_ptr(),
                    room,
                    std::ptr::from_ref(timeout),
                    std::ptr::null::<libc::sigset_t>(),
                    size_of::<libc::sigset_t>(),
                )
            };
            let missing = n < 0
                && matches!(io::Error::last_os_error().raw_os_error(), Some(libc::ENOSYS | libc::EPERM));
            if !missing {
                return n as libc::c_int;
            }
            NO_PWAIT2.store(true, Ordering::Relaxed);
        }
        let mut input = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // SAFETY: `input` is valid for reading and writing, `timeout` for reading, and the set of signals may be absent.
        let polled = unsafe { libc::ppoll(&raw mut input, 1, timeout, std::ptr::null()) };
        if polled <= 0 {
            return polled;
        }
        // SAFETY: `events` is valid for writing `room` events.
        unsafe { libc::epoll_wait(fd, events.as_mut_ptr(), room, 0) }
    }
}

/// An eventfd, written by one thread and watched by another thread's event loop.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// A new one, not readable.
    ///
    /// # Errors
    /// Out of file descriptors.
    pub fn new() -> io::Result<Self> {
        // SAFETY: takes no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just made this descriptor, which has no other owner.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The descriptor for an event loop.
    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Makes it readable.
    pub fn notify(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: eight bytes are valid for reading.
        unsafe { libc::write(self.fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Resets it to not readable.
    pub fn reset(&self) {
        let mut count = [0u8; 8];
        // SAFETY: eight bytes are valid for writing.
        unsafe { libc::read(self.fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

/// Sends as many bytes as the socket takes without waiting.
///
/// # Errors
/// `WouldBlock` when it takes nothing, or the connection's end.
#[inline]
pub fn send(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: `bytes` is valid for reading its length.
    let n = unsafe {
        libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
    };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Receives available bytes without waiting; 0 means that the server has closed the connection.
///
/// # Errors
/// `WouldBlock` when nothing is there, or the connection's end.
#[inline]
pub fn recv(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `buffer` is valid for writing its length.
    let n = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_DONTWAIT) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Receives bytes as soon as there are some; 0 means that the other side has closed the connection.
///
/// # Errors
/// The connection's end.
pub fn recv_waiting(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: `buffer` is valid for writing its length.
        let n = unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        match usize::try_from(n) {
            Ok(n) => return Ok(n),
            Err(_) => match io::Error::last_os_error() {
                e if e.kind() == io::ErrorKind::Interrupted => {}
                e => return Err(e),
            },
        }
    }
}

/// Waits until the socket takes more bytes.
///
/// # Errors
/// Only those that a defect of this program causes.
pub fn wait_for_room(fd: RawFd) -> io::Result<()> {
    let mut room = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
    // SAFETY: `room` is valid for reading and writing.
    let polled = unsafe { libc::poll(&raw mut room, 1, -1) };
    match io::Error::last_os_error() {
        e if polled < 0 && e.kind() != io::ErrorKind::Interrupted => Err(e),
        _ => Ok(()),
    }
}

/// Shuts a connection down in both directions; no effect on one that is shut down already.
pub fn shut_down(fd: RawFd) {
    // SAFETY: takes no pointers.
    unsafe { libc::shutdown(fd, libc::SHUT_RDWR) };
}

/// Sleeps for `ns` nanoseconds, or until a signal arrives.
pub fn sleep(ns: u64) {
    let time =
        libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as libc::c_long };
    // SAFETY: `time` is valid for reading, and no address is passed for the remaining time.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// Gives the memory of whole pages between two addresses back; they read as zeros from then on. The first address is one of a page.
///
/// # Safety
/// Nobody uses what lies between them.
pub unsafe fn discard(from: usize, to: usize) {
    // SAFETY: takes no pointers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let to = to & !(page - 1);
    if from < to {
        // SAFETY: as the caller says. A failure leaves the memory as it is.
        unsafe { libc::madvise(from as *mut libc::c_void, to - from, libc::MADV_DONTNEED) };
    }
}
