//! Waiting for an event that nothing announces: the one place where tests poll.

use std::time::{Duration, Instant};

/// Time after which the event will not come; a busy machine stands still for seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Time between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks until there is something, and returns it. `what` names it for the case that it does not come.
#[track_caller]
pub fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(PAUSE);
    }
}

/// Looks until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    found(what, || holds().then_some(()));
}
