//! An event loop on io_uring: answers arrive in buffers that the kernel fills by itself, and the statements of a wake-up
//! go out with the wait for the next answers, in one system call.
//!
//! Needs Linux 6.1: one thread submits, and completions are worked off only when it asks for them, so that answers
//! do not interrupt it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::types::{BufRingEntry, Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use mydyno_linux::calls::mapping::Mapping;

use crate::clock::{Clock, MonotonicClock};

/// Size of the submission queue: more statements take several system calls.
const SUBMISSIONS: u32 = 512;
/// Size of the completion queue; the kernel keeps further completions in its overflow list.
const MOST_COMPLETIONS: usize = 16_384;
/// Bytes of one buffer: most answers of point queries fit; longer ones come in several.
const BUFFER_BYTES: usize = 2048;
/// Buffers of a worker. They are used round-robin, so more of them than outstanding answers would only cost cache.
const BUFFERS: std::ops::RangeInclusive<usize> = 64..=4096;
/// Buffers that the kernel gets at first. It gets more when it lacks some: a thousand connections that think most of the time never need
/// them, and memory that was never written costs nothing.
const FIRST_BUFFERS: usize = 256;
/// The one group of buffers.
const GROUP: u16 = 0;

/// Data that arrived for a task and that it has not read yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrived {
    /// So many bytes in a buffer.
    Bytes { buffer: u16, length: usize },
    /// The other side has closed.
    End,
    /// Receiving or sending failed with this number of the operating system.
    Failed(i32),
}

/// The subject of a completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Receive = 1,
    Send = 2,
    Output = 3,
    Opened = 4,
}

/// A task's side of the ring.
#[derive(Debug, Default)]
struct Line {
    fd: RawFd,
    /// Connections that the task has had: completions of earlier ones are not its own.
    generation: u32,
    arrived: VecDeque<Arrived>,
    /// The statement on its way: the kernel reads it when it is submitted, or later where the socket is full. It stays
    /// until the task's next statement, which comes after its answer.
    outgoing: Vec<u8>,
    /// It is not submitted yet: what has arrived is not an answer to it, and its memory must stay as it is.
    posted: bool,
    sent_ns: u64,
}

/// The ring of one worker.
pub struct Ring {
    // Dropped before the memory that the kernel writes to.
    io: RefCell<IoUring>,
    buffers: Buffers,
    lines: RefCell<Vec<Line>>,
    /// Tasks whose statements are not submitted yet.
    posted: RefCell<Vec<usize>>,
    /// Tasks with data that arrived before their statement was submitted: they are polled after the submission.
    again: RefCell<Vec<usize>>,
    opened: Cell<RawFd>,
    /// The error of a failed submission; the next wait returns it.
    failed: RefCell<Option<io::Error>>,
    clock: MonotonicClock,
    /// Whether the kernel can wait for a minimum time (Linux 6.12).
    waits_at_least: bool,
    /// More completions than can come together: waiting for so many is waiting for the time.
    completions: usize,
}

impl Ring {
    /// A ring for so many connections. Must be made by the thread that uses it.
    ///
    /// # Errors
    /// The kernel is too old, or io_uring is not permitted here.
    pub fn new(connections: usize, clock: MonotonicClock) -> io::Result<Self> {
        let completions = (connections * 4).clamp(1024, MOST_COMPLETIONS).next_power_of_two();
        let io = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(completions as u32)
            .build(SUBMISSIONS)?;
        let count = (connections * 2).clamp(*BUFFERS.start(), *BUFFERS.end()).next_power_of_two();
        let buffers = Buffers::new(count)?;
        // SAFETY: the entries are page-aligned, of this number, and outlive the ring.
        unsafe {
            io.submitter().register_buf_ring_with_flags(buffers.entries_address(), count as u16, GROUP, 0)?
        };
        let waits_at_least = io.params().is_feature_min_timeout();
        Ok(Self {
            io: RefCell::new(io),
            buffers,
            lines: RefCell::default(),
            posted: RefCell::default(),
            again: RefCell::default(),
            opened: Cell::new(-1),
            failed: RefCell::default(),
            clock,
            waits_at_least,
            completions,
        })
    }

    /// Receives on `fd` for a task from now on.
    pub fn add(&self, fd: RawFd, task: usize) {
        let mut lines = self.lines.borrow_mut();
        if lines.len() <= task {
            lines.resize_with(task + 1, Line::default);
        }
        let line = &mut lines[task];
        line.fd = fd;
        let entry = receive(line, task);
        drop(lines);
        self.push(&entry);
    }

    /// Watches the descriptor that signals connections opened by other threads; its completions carry a number that no task has.
    pub fn watch_opened(&self, fd: RawFd) {
        self.opened.set(fd);
        self.push(&poll_opened(fd));
    }

    /// Ends the receives of a task's connection: data that still arrives belongs to no task. Its socket is shut down next, or the kernel goes
    /// on receiving. Entries name sockets by numbers that the next connection may get, so none may be left over.
    pub fn remove(&self, task: usize) {
        let _ = self.submit();
        let mut lines = self.lines.borrow_mut();
        let Some(line) = lines.get_mut(task) else { return };
        line.generation += 1;
        for arrived in line.arrived.drain(..) {
            if let Arrived::Bytes { buffer, .. } = arrived {
                self.buffers.give_back(buffer);
            }
        }
    }

    /// Tells the task once when its socket has room.
    pub fn watch_output(&self, task: usize) {
        let lines = self.lines.borrow();
        let line = &lines[task];
        let entry = opcode::PollAdd::new(Fd(line.fd), libc::POLLOUT as u32).build();
        self.push(&entry.user_data(about(About::Output, line.generation, task)));
    }

    /// Keeps a statement, and has it sent with the next submission.
    #[inline]
    pub fn post(&self, task: usize, packet: &[u8]) {
        let mut lines = self.lines.borrow_mut();
        let line = &mut lines[task];
        line.posted = true;
        line.outgoing.clear();
        line.outgoing.extend_from_slice(packet);
        // All of it or a failure: a socket whose other side has answered everything has room for a short statement, and
        // where memory is short the kernel waits for room.
        let flags = libc::MSG_NOSIGNAL | libc::MSG_WAITALL;
        let entry = opcode::Send::new(Fd(line.fd), line.outgoing.as_ptr(), line.outgoing.len() as u32)
            .flags(flags)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(about(About::Send, line.generation, task));
        drop(lines);
        self.push(&entry);
        self.posted.borrow_mut().push(task);
    }

    /// When a task's last statement was submitted.
    #[inline]
    pub fn sent_ns(&self, task: usize) -> u64 {
        self.lines.borrow()[task].sent_ns
    }

    /// Submits what was posted.
    ///
    /// # Errors
    /// Only what would be a defect of this program.
    pub fn submit(&self) -> io::Result<()> {
        self.stamp();
        match self.io.borrow().submit() {
            Err(e) if !passes(&e) => Err(e),
            _ => Ok(()),
        }
    }

    /// Submits what was posted and waits for completions up to `timeout_ns`, and at least `gather_ns`;
    /// adds the tasks that can go on to `ready`, `opened` for the opened.
    ///
    /// # Errors
    /// Only what would be a defect of this program.
    pub fn wait(
        &self,
        ready: &mut Vec<usize>,
        timeout_ns: u64,
        gather_ns: u64,
        opened: usize,
    ) -> io::Result<()> {
        self.stamp();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        ready.append(&mut self.again.borrow_mut());
        let timeout_ns = if ready.is_empty() { timeout_ns } else { 0 };
        let gather_ns = gather_ns.min(timeout_ns);
        let mut wait = |want, timeout_ns, at_least_ns: u64| {
            let timeout = Timespec::from(std::time::Duration::from_nanos(timeout_ns));
            let arguments = SubmitArgs::new().min_wait_usec((at_least_ns / 1000) as u32).timespec(&timeout);
            let submitted = self.io.borrow().submitter().submit_with_args(want, &arguments);
            match submitted {
                Err(e) if !passes(&e) => Err(e),
                _ => {
                    self.collect(ready, opened);
                    Ok(())
                }
            }
        };
        if gather_ns == 0 {
            return wait(1, timeout_ns, 0);
        }
        if self.waits_at_least {
            return wait(self.completions, timeout_ns, gather_ns);
        }
        // Before Linux 6.12: the time, and if nothing came in it, the first that comes.
        wait(self.completions, gather_ns, 0)?;
        if ready.is_empty() { self.wait(ready, timeout_ns - gather_ns, 0, opened) } else { Ok(()) }
    }

    fn stamp(&self) {
        let mut posted = self.posted.borrow_mut();
        if posted.is_empty() {
            return;
        }
        let (now_ns, mut lines) = (self.clock.now_ns(), self.lines.borrow_mut());
        for task in posted.drain(..) {
            let line = &mut lines[task];
            (line.sent_ns, line.posted) = (now_ns, false);
            if !line.arrived.is_empty() {
                self.again.borrow_mut().push(task);
            }
        }
    }

    fn collect(&self, ready: &mut Vec<usize>, opened: usize) {
        let mut io = self.io.borrow_mut();
        let mut lines = self.lines.borrow_mut();
        let mut again = Vec::new();
        let mut lacks_buffers = false;
        for completion in io.completion() {
            let (what, generation, task) = read(completion.user_data());
            if what == About::Opened as u64 {
                ready.push(opened);
                if !cqueue::more(completion.flags()) {
                    again.push(poll_opened(self.opened.get()));
                }
                continue;
            }
            let (result, flags) = (completion.result(), completion.flags());
            let buffer = cqueue::buffer_select(flags);
            let Some(line) = lines.get_mut(task).filter(|line| line.generation & GENERATIONS == generation)
            else {
                if let Some(buffer) = buffer {
                    self.buffers.give_back(buffer);
                }
                continue;
            };
            if what == About::Receive as u64 {
                let arrived = match (result, buffer) {
                    (0, buffer) => {
                        // Without bytes the buffer was not used up.
                        if let Some(buffer) = buffer {
                            self.buffers.give_back(buffer);
                        }
                        Some(Arrived::End)
                    }
                    (1.., Some(buffer)) => Some(Arrived::Bytes { buffer, length: result as usize }),
                    // All buffers were in use; by the time that this is submitted some are back.
                    _ if result == -libc::ENOBUFS => {
                        lacks_buffers = true;
                        None
                    }
                    (_, buffer) => {
                        if let Some(buffer) = buffer {
                            self.buffers.give_back(buffer);
                        }
                        Some(Arrived::Failed(-result))
                    }
                };
                let over = matches!(arrived, Some(Arrived::End | Arrived::Failed(_)));
                if !cqueue::more(flags) && !over {
                    again.push(receive(line, task));
                }
                let Some(arrived) = arrived else { continue };
                line.arrived.push_back(arrived);
            } else if what == About::Send as u64 {
                // Only failures tell of themselves, and a part that was sent is one.
                line.arrived.push_back(Arrived::Failed(if result < 0 { -result } else { libc::EPIPE }));
            }
            ready.push(task);
        }
        drop((io, lines));
        if lacks_buffers {
            self.buffers.give_more();
        }
        again.iter().for_each(|entry| self.push(entry));
    }

    /// Hands the next bytes that have arrived for a task to `take`; `None` when nothing is there, zero bytes when the
    /// other side has closed.
    ///
    /// # Errors
    /// The connection failed.
    #[inline]
    pub fn receive<T>(&self, task: usize, take: impl FnOnce(&[u8]) -> T) -> io::Result<Option<T>> {
        let line = &mut self.lines.borrow_mut()[task];
        let arrived = if line.posted { None } else { line.arrived.pop_front() };
        match arrived {
            None => Ok(None),
            Some(Arrived::Bytes { buffer, length }) => {
                // SAFETY: the kernel has filled so many bytes of this buffer and leaves it alone until it is given back.
                let taken = take(unsafe { self.buffers.bytes(buffer, length) });
                self.buffers.give_back(buffer);
                Ok(Some(taken))
            }
            Some(Arrived::End) => Ok(Some(take(&[]))),
            Some(Arrived::Failed(number)) => Err(io::Error::from_raw_os_error(number)),
        }
    }

    fn push(&self, entry: &squeue::Entry) {
        // SAFETY: what entries refer to (statements, buffers) lives in this ring and longer than the kernel's side of it.
        while unsafe { self.io.borrow_mut().submission().push(entry) }.is_err() {
            // Full: hand over what is there.
            if let Err(error) = self.submit() {
                self.failed.replace(Some(error));
                return;
            }
        }
    }
}

/// Whether an error of a submission is none: time is up, a signal came, or completions must be collected first.
fn passes(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN))
}

fn poll_opened(opened: RawFd) -> squeue::Entry {
    opcode::PollAdd::new(Fd(opened), libc::POLLIN as u32).multi(true).build().user_data(about(
        About::Opened,
        0,
        0,
    ))
}

fn receive(line: &Line, task: usize) -> squeue::Entry {
    opcode::RecvMulti::new(Fd(line.fd), GROUP).build().user_data(about(About::Receive, line.generation, task))
}

/// Bits of a generation in the data of a completion.
const GENERATIONS: u32 = 0xff_ffff;

/// A completion's data: what it is about (8 bits), generation (24), task (32).
fn about(what: About, generation: u32, task: usize) -> u64 {
    (what as u64) << 56 | u64::from(generation & GENERATIONS) << 32 | task as u64 & 0xffff_ffff
}

fn read(data: u64) -> (u64, u32, usize) {
    (data >> 56, (data >> 32) as u32 & GENERATIONS, (data & 0xffff_ffff) as usize)
}

/// Memory that the kernel fills with what arrives: a ring of entries that say which buffers are free, and the buffers.
struct Buffers {
    memory: Mapping,
    count: usize,
    /// Buffers in use: the first ones.
    used: Cell<usize>,
    /// How often a buffer was given to the kernel.
    tail: Cell<u16>,
}

impl Buffers {
    /// So many buffers. A mapping has only the pages that are written to, the heap would write zeros to all of them.
    fn new(count: usize) -> io::Result<Self> {
        let memory = Mapping::anonymous(count * (size_of::<BufRingEntry>() + BUFFER_BYTES), false)?;
        let buffers = Self { memory, count, used: Cell::new(0), tail: Cell::new(0) };
        buffers.use_first(FIRST_BUFFERS);
        Ok(buffers)
    }

    /// Doubles the number of buffers in use, as far as there are some.
    fn give_more(&self) {
        self.use_first(2 * self.used.get());
    }

    /// Gives the kernel the first `wanted` buffers, where it does not have them.
    fn use_first(&self, wanted: usize) {
        let wanted = wanted.min(self.count);
        for buffer in self.used.replace(wanted)..wanted {
            self.give_back(buffer as u16);
        }
    }

    fn entries_address(&self) -> u64 {
        self.memory.address() as u64
    }

    /// Where a buffer begins.
    fn place(&self, buffer: u16) -> *mut u8 {
        let entries = self.count * size_of::<BufRingEntry>();
        // SAFETY: buffers are numbered below the count, and all lie in this memory.
        unsafe { self.memory.address().add(entries + usize::from(buffer) % self.count * BUFFER_BYTES) }
    }

    /// The content of a buffer.
    ///
    /// # Safety
    /// The kernel has filled so many bytes of it, and it has not been given back.
    unsafe fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        // SAFETY: as the caller promises; a buffer never holds more than its length.
        unsafe { std::slice::from_raw_parts(self.place(buffer), length.min(BUFFER_BYTES)) }
    }

    /// Lets the kernel fill a buffer again.
    fn give_back(&self, buffer: u16) {
        let tail = self.tail.get();
        let entries = self.memory.address().cast::<BufRingEntry>();
        let slot = usize::from(tail) & (self.count - 1);
        // SAFETY: the slot lies in the ring, which is aligned for entries and valid for as long as this; the kernel does not read a
        // slot before the tail has passed it. The tail's field is never written through `entry`.
        unsafe {
            let entry = &mut *entries.add(slot);
            entry.set_addr(self.place(buffer) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
        }
        self.tail.set(tail.wrapping_add(1));
        // SAFETY: the tail lies in the first entry, aligned for its two bytes; the kernel reads it atomically.
        let shared = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(entries).cast_mut()) };
        shared.store(self.tail.get(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests;
