//! The sessions that sampling itself has on the server, which are no part of what is observed.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Sessions of the samplers of one server, shared between them.
#[derive(Debug, Clone, Default)]
pub struct OwnSessions(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    ids: Mutex<BTreeSet<String>>,
    busy: AtomicU32,
    sent: AtomicU64,
}

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
