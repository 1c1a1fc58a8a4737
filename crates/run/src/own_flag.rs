//! A cancellation flag of the run that follows the user's flag and that the run may also set itself: only the user's
//! signal sets the user's flag.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// Longest delay between the user's flag and the run's.
const EVERY: Duration = Duration::from_millis(20);

/// Runs `work` with a flag that is set as soon as `user` is, and that `work` may set itself.
pub(crate) fn with_own_flag<T>(user: &AtomicBool, work: impl FnOnce(&AtomicBool) -> T) -> T {
    let own = AtomicBool::new(user.load(Ordering::Relaxed));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let relay = scope.spawn(|| {
            while !over.load(Ordering::Acquire) {
                if user.load(Ordering::Relaxed) {
                    own.store(true, Ordering::Relaxed);
                }
                std::thread::park_timeout(EVERY);
            }
        });
        // Also when `work` panics: the scope waits for the relay.
        let _end = EndRelay { over: &over, relay: relay.thread() };
        work(&own)
    })
}

struct EndRelay<'a> {
    over: &'a AtomicBool,
    relay: &'a Thread,
}

impl Drop for EndRelay<'_> {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Release);
        self.relay.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_flag_reaches_the_work_and_the_works_own_does_not_reach_the_user() {
        let user = AtomicBool::new(false);
        with_own_flag(&user, |own| own.store(true, Ordering::Relaxed));
        assert!(!user.load(Ordering::Relaxed));
        with_own_flag(&user, |own| {
            assert!(!own.load(Ordering::Relaxed));
            user.store(true, Ordering::Relaxed);
            while !own.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        });
        assert!(with_own_flag(&user, |own| own.load(Ordering::Relaxed)));
    }
}
