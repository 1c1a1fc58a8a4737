//! The test `threads`: threads that take a lock, yield the CPU and give the lock back.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::engine::Engine;
use super::super::options::{Definition, Kind};
use super::super::runner::{Reporter, Test, Worker};
use super::{BuiltIn, Ready, run_events};

pub(crate) const TEST: BuiltIn = BuiltIn {
    name: "threads",
    summary: "the scheduler: threads that yield and wait for locks",
    options: || {
        vec![
            Definition::new("thread-yields", Kind::Int, Some("1000"), "yields of an event"),
            Definition::new("thread-locks", Kind::Int, Some("8"), "locks that threads share"),
        ]
    },
    prepare: |options, _| {
        let locks = options.int("thread-locks");
        let count = usize::try_from(locks)
            .ok()
            .filter(|count| (1..=1_000_000).contains(count))
            .ok_or_else(|| format!("Invalid value for --thread-locks: {locks}."))?;
        let shared = Arc::new(Shared {
            yields: u64::try_from(options.int("thread-yields")).unwrap_or(0),
            locks: (0..count).map(|_| Mutex::new(())).collect(),
            next: AtomicUsize::new(0),
        });
        Ok(Ready { test: Arc::new(Threads { shared }), main: Box::new(Plain), print_mode: Box::new(|_| ()) })
    },
    commands: &[],
};

struct Shared {
    yields: u64,
    locks: Vec<Mutex<()>>,
    /// Number of the next event, which chooses its lock.
    next: AtomicUsize,
}

struct Threads {
    shared: Arc<Shared>,
}

struct ThreadsWorker {
    thread: usize,
    shared: Arc<Shared>,
}

/// Reports without a part of the test's own.
pub(super) struct Plain;

impl Reporter for Plain {}

impl Test for Threads {
    fn worker(&self, _: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>> {
        Some(Box::new(ThreadsWorker { thread, shared: Arc::clone(&self.shared) }))
    }

    fn reporter(&self, _: &Arc<Engine>) -> Option<Box<dyn Reporter>> {
        Some(Box::new(Plain))
    }
}

impl Worker for ThreadsWorker {
    fn run(&mut self, engine: &Engine) -> bool {
        let shared = &self.shared;
        run_events(engine, self.thread, || {
            let lock = &shared.locks[shared.next.fetch_add(1, Relaxed) % shared.locks.len()];
            for _ in 0..shared.yields {
                let held = lock.lock().unwrap_or_else(PoisonError::into_inner);
                std::thread::yield_now();
                drop(held);
            }
            true
        })
    }
}
