//! The barrier at which workers wait for the common start of the load.

use std::sync::{Condvar, Mutex, PoisonError};

/// Released once, with the instant at which the load starts, or with `None` when the load does not start.
#[derive(Debug, Default)]
pub struct StartBarrier {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Closed,
    Released(Option<u64>),
}

impl StartBarrier {
    /// Releases all waiting threads; later calls have no effect.
    pub fn release(&self, start_ns: Option<u64>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Closed) {
            *state = State::Released(start_ns);
        }
        self.changed.notify_all();
    }

    /// Blocks until the barrier is released. Returns when the load starts, on the run's clock; `None` when it does not.
    pub fn wait(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                State::Released(start_ns) => return start_ns,
                State::Closed => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Releases the barrier without a start when it goes out of scope, so that no thread waits for ever after an error or a
/// panic.
pub struct ReleaseOnDrop<'a>(pub &'a StartBarrier);

impl Drop for ReleaseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.release(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_release_counts_and_a_dropped_guard_releases_all() {
        let barrier = StartBarrier::default();
        barrier.release(Some(7));
        drop(ReleaseOnDrop(&barrier));
        assert_eq!(barrier.wait(), Some(7));
        let barrier = StartBarrier::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| barrier.wait());
            drop(ReleaseOnDrop(&barrier));
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
