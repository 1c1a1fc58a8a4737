//! Ending a look early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Waits of a look read the flag this often.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Reason for facts that were not read because the look was ended early.
pub(crate) const INTERRUPTED: &str = "the look was interrupted before it was read";

/// A flag that another thread or a signal handler sets to end a look early. The default has none: such a look runs to its
/// end.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Option<Arc<AtomicBool>>);

impl Cancellation {
    /// A look that ends when `flag` is set.
    pub fn by(flag: &Arc<AtomicBool>) -> Self {
        Self(Some(Arc::clone(flag)))
    }

    /// Whether the flag is set.
    pub fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Sleeps until `until` or until the flag is set.
    pub(crate) fn sleep_until(&self, until: Instant) {
        while let Some(slice) = self.slice(until) {
            std::thread::sleep(slice);
        }
    }

    /// How long a wait until `until` may block before the flag is read again; `None` once it is set or the instant has passed.
    pub(crate) fn slice(&self, until: Instant) -> Option<Duration> {
        let left = until.saturating_duration_since(Instant::now());
        (!self.is_set() && !left.is_zero()).then(|| left.min(POLL_INTERVAL))
    }
}

impl PartialEq for Cancellation {
    /// Whether both have the same flag.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            (a, b) => a.is_none() && b.is_none(),
        }
    }
}

impl Eq for Cancellation {}
