//! The sessions that sampling itself has on the server, which are no part of what is observed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Sessions of the samplers of one server, shared between them.
#[derive(Debug, Clone, Default)]
pub struct OwnSessions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ids: Mutex<BTreeSet<String>>,
    busy: AtomicU32,
    sent: AtomicU64,
    /// Whether the counters are being read, which others let go first.
    counters: AtomicBool,
}

/// How long others wait for the counters, and how often they look.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
const LOOK: Duration = Duration::from_millis(10);

impl OwnSessions {
    /// Adds the session with this number of the server's.
    pub(crate) fn add(&self, id: String) {
        self.ids().insert(id);
    }

    /// Removes one whose connection ended.
    pub(crate) fn remove(&self, id: &str) {
        self.ids().remove(id);
    }

    /// Whether a number is that of an own session.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.ids().contains(id)
    }

    /// Number of sessions.
    pub(crate) fn count(&self) -> usize {
        self.ids().len()
    }

    /// Counts statements that were sent.
    pub(crate) fn count_sent(&self, statements: u32) {
        self.0.sent.fetch_add(u64::from(statements), Ordering::Relaxed);
    }

    /// Statements that were sent over all sessions so far.
    pub(crate) fn sent(&self) -> u64 {
        self.0.sent.load(Ordering::Relaxed)
    }

    /// Says that a session executes statements, until the value is dropped.
    pub(crate) fn busy(&self) -> Busy<'_> {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Busy(&self.0.busy)
    }

    /// Says whether the counters are being read.
    pub(crate) fn reads_counters(&self, reads: bool) {
        self.0.counters.store(reads, Ordering::Relaxed);
    }

    /// Waits a moment for the counters, which are due at the same instants: neither is to slow down the other.
    pub(crate) fn let_counters_go_first(&self) {
        let until = Instant::now() + LONGEST_WAIT;
        thread::sleep(LOOK);
        while self.0.counters.load(Ordering::Relaxed) && Instant::now() < until {
            thread::sleep(LOOK);
        }
    }

    /// Sessions that execute statements now.
    pub(crate) fn busy_now(&self) -> u32 {
        self.0.busy.load(Ordering::Relaxed)
    }

    fn ids(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session that executes statements.
pub(crate) struct Busy<'a>(&'a AtomicU32);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
