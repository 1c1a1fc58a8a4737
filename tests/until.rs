//! Waiting for an event that nothing announces: the one place where tests poll.

use std::time::{Duration, Instant};

/// Time after which the event will not come; a busy machine stands still for seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// Shortest and longest time between two looks.
const PAUSE: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(200)];

/// Times that a pause is as long as the look before it, so that a look which starts a program leaves the CPUs to others.
const REST: u32 = 8;

/// Looks until there is something, and returns it. `what` names it for the case that it does not come.
#[track_caller]
pub fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let begin = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "in vain: {what}");
        let [shortest, longest] = PAUSE;
        std::thread::sleep((REST * begin.elapsed()).clamp(shortest, longest));
    }
}

/// Looks until something holds.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    found(what, || holds().then_some(()));
}
