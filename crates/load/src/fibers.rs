//! Code that blocks, on an event loop: fibers with stacks of their own. A fiber that waits for its server, for a time or
//! for work in another thread lets the other fibers of its thread go on, whatever calls lie between: an interpreter, a
//! library. Outside of a fiber the same functions block the thread.

mod line;
mod pool;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use corosensei::stack::{DefaultStack, Stack as _};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use mydyno_model::plan::Backend;

use crate::clock::{Clock, MonotonicClock};
use crate::net::EventLoop;
use crate::sys::{self, EventFd};
use crate::transport::OPENED;
use crate::waiting::Timers;

pub use line::Line;

/// Memory that is set aside for the stack of a fiber; pages that it has not touched take none.
const STACK_BYTES: usize = 256 << 10;

/// Fibers that go on between two looks at the kernel, so that answers are received before too many statements wait.
const BATCH: usize = 64;

/// Longest wait for events, in nanoseconds; the wait ends by itself when there is work.
const LONGEST_WAIT_NS: u64 = 10_000_000_000;

/// The handle by which a fiber's stack is switched.
type Switch = Yielder<(), ()>;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Worker>>> = const { RefCell::new(None) };
}

/// Fibers that other threads have woken.
#[derive(Debug)]
struct Mailbox {
    woken: Mutex<Vec<usize>>,
    signal: EventFd,
}

impl Mailbox {
    fn wake(&self, fiber: usize) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(fiber);
        self.signal.notify();
    }
}

/// The event loop of a thread and what its fibers wait for.
struct Worker {
    event_loop: EventLoop,
    clock: MonotonicClock,
    /// By the number of a line: what is known of it.
    lines: RefCell<Vec<line::State>>,
    /// Numbers of lines that are closed.
    unused: RefCell<Vec<usize>>,
    ready: RefCell<VecDeque<usize>>,
    timers: Timers,
    mailbox: Arc<Mailbox>,
    /// The fiber at work, and its switch.
    at_work: Cell<usize>,
    switch: Cell<*const Switch>,
    /// Fibers that have come to the meeting point.
    met: RefCell<Vec<usize>>,
    /// By fiber: the lowest address of its stack.
    limits: RefCell<Vec<usize>>,
}

impl Worker {
    /// Lets others go on until something makes this fiber ready.
    fn wait(&self) {
        let (fiber, switch) = (self.at_work.get(), self.switch.get());
        // SAFETY: `switch` was set by the fiber at work, which is the caller: its reference lives as long as the fiber's stack.
        unsafe { (*switch).suspend(()) };
        self.at_work.set(fiber);
        self.switch.set(switch);
    }
}

/// The worker of this thread while one of its fibers is at work.
fn current() -> Option<Rc<Worker>> {
    CURRENT.with_borrow(Option::clone)
}

/// Whether the caller runs in a fiber.
pub fn inside() -> bool {
    CURRENT.with_borrow(Option::is_some)
}

/// Runs fibers in this thread until all have ended. When each has come to [`meet`] or ended, `met` is called once, and those that met go
/// on after it.
///
/// # Errors
/// Out of descriptors or memory, or the kernel refuses the event loop. Fibers that are under way are left as they are.
pub fn run(backend: Backend, bodies: Vec<Box<dyn FnOnce()>>, met: impl FnOnce()) -> io::Result<()> {
    let clock = MonotonicClock::start();
    let event_loop = EventLoop::new(backend, bodies.len(), clock)?;
    let mailbox = Arc::new(Mailbox { woken: Mutex::default(), signal: EventFd::new()? });
    event_loop.watch(mailbox.signal.fd(), OPENED)?;
    let worker = Rc::new(Worker {
        event_loop,
        clock,
        lines: RefCell::default(),
        unused: RefCell::default(),
        ready: RefCell::new((0..bodies.len()).collect()),
        timers: Timers::default(),
        mailbox,
        at_work: Cell::new(0),
        switch: Cell::new(std::ptr::null()),
        met: RefCell::default(),
        limits: RefCell::default(),
    });
    let mut fibers = Vec::with_capacity(bodies.len());
    for (number, body) in bodies.into_iter().enumerate() {
        let of_fiber = Rc::clone(&worker);
        let run = move |switch: &Switch, ()| {
            of_fiber.at_work.set(number);
            of_fiber.switch.set(switch);
            body();
        };
        let stack = DefaultStack::new(STACK_BYTES)?;
        worker.limits.borrow_mut().push(stack.limit().get());
        fibers.push(Some(Coroutine::with_stack(stack, run)));
    }
    let ended = drive(&worker, &mut fibers, met);
    // A fiber that is under way stands in the middle of calls that nothing may unwind.
    fibers.into_iter().flatten().for_each(std::mem::forget);
    ended
}

type Fiber = Coroutine<(), (), ()>;

fn drive(worker: &Rc<Worker>, fibers: &mut [Option<Fiber>], met: impl FnOnce()) -> io::Result<()> {
    let mut met = Some(met);
    let mut live = fibers.len();
    let mut tokens = Vec::new();
    loop {
        for _ in 0..BATCH {
            let Some(number) = worker.ready.borrow_mut().pop_front() else { break };
            live -= usize::from(resume(worker, fibers, number));
        }
        if worker.met.borrow().len() == live
            && let Some(met) = met.take()
        {
            met();
            worker.ready.borrow_mut().append(&mut worker.met.take().into());
        }
        if live == 0 {
            return Ok(());
        }
        let wait_ns = match worker.ready.borrow().is_empty() {
            true => worker.timers.next_ns().map_or(LONGEST_WAIT_NS, |at_ns| {
                at_ns.saturating_sub(worker.clock.now_ns()).min(LONGEST_WAIT_NS)
            }),
            false => 0,
        };
        worker.event_loop.wait(&mut tokens, wait_ns, 0)?;
        for token in tokens.drain(..) {
            if token == OPENED {
                worker.mailbox.signal.reset();
                let woken =
                    std::mem::take(&mut *worker.mailbox.woken.lock().unwrap_or_else(PoisonError::into_inner));
                worker.ready.borrow_mut().extend(woken);
            } else if let Some(state) = worker.lines.borrow_mut().get_mut(token) {
                worker.ready.borrow_mut().extend(state.event());
            }
        }
        let now_ns = worker.clock.now_ns();
        while let Some(fiber) = worker.timers.next_task(now_ns) {
            worker.ready.borrow_mut().push_back(fiber);
        }
    }
}

/// Lets a fiber go on; whether it has ended.
fn resume(worker: &Rc<Worker>, fibers: &mut [Option<Fiber>], number: usize) -> bool {
    let Some(fiber) = &mut fibers[number] else { return false };
    CURRENT.set(Some(Rc::clone(worker)));
    let result = fiber.resume(());
    CURRENT.set(None);
    let ended = matches!(result, CoroutineResult::Return(()));
    if ended {
        fibers[number] = None;
    }
    ended
}

/// Waits until all fibers of this thread have come here or ended, and what [`run`] was given to call then has returned.
pub fn meet() {
    if let Some(worker) = current() {
        worker.met.borrow_mut().push(worker.at_work.get());
        worker.wait();
    }
}

/// Gives back the memory of the stack that deeper calls have used before; outside of a fiber it does nothing. For fibers that wait
/// long, or are many, after work that goes deep.
pub fn trim_stack() {
    let Some(worker) = current() else { return };
    let Some(limit) = worker.limits.borrow().get(worker.at_work.get()).copied() else { return };
    let here = 0_u8;
    let below = std::ptr::from_ref(&here).addr() - CALL_BYTES;
    // SAFETY: the stack is that of the fiber at work, the caller. It grows downward, and what lies that far below this call is in
    // use by nobody but for the call itself, which needs less.
    unsafe { sys::discard(limit, below) };
}

/// More than a system call needs of a stack.
const CALL_BYTES: usize = 2 << 10;

/// Waits so long.
pub fn sleep(time: Duration) {
    let Some(worker) = current() else {
        std::thread::sleep(time);
        return;
    };
    let ns = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    worker.timers.set(worker.clock.now_ns().saturating_add(ns), worker.at_work.get());
    worker.wait();
}

/// Wakes a fiber that parks, from any thread.
#[derive(Debug)]
pub struct Waker {
    mailbox: Arc<Mailbox>,
    fiber: usize,
}

impl Waker {
    /// Lets the fiber go on.
    pub fn wake(self) {
        self.mailbox.wake(self.fiber);
    }
}

/// The waker of the running fiber; `None` outside of a fiber.
pub fn waker() -> Option<Waker> {
    let worker = current()?;
    Some(Waker { mailbox: Arc::clone(&worker.mailbox), fiber: worker.at_work.get() })
}

/// Waits for the one [`Waker`] that was made before; outside of a fiber it returns at once.
pub fn park() {
    if let Some(worker) = current() {
        worker.wait();
    }
}

/// Does what blocks in another thread while other fibers go on; outside of a fiber, in this thread. `None` where no thread can
/// be had or the work panics.
pub fn elsewhere<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let Some(worker) = current() else { return Some(work()) };
    let (sender, receiver) = std::sync::mpsc::channel();
    let (mailbox, fiber) = (Arc::clone(&worker.mailbox), worker.at_work.get());
    /// Wakes the fiber, after a panic too.
    struct Wake(Arc<Mailbox>, usize);
    impl Drop for Wake {
        fn drop(&mut self) {
            self.0.wake(self.1);
        }
    }
    let wake = Wake(mailbox, fiber);
    let started = pool::run(Box::new(move || {
        let _wake = wake;
        // The fiber waits for it.
        let _ = sender.send(work());
    }));
    if started {
        worker.wait();
    }
    receiver.recv().ok()
}

#[cfg(test)]
mod tests;
