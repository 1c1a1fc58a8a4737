//! The gate: workers wait behind it until all are ready, and none waits for ever.

use std::sync::{Condvar, Mutex, PoisonError};

/// Opened once, with the instant at which the load starts, or without one when it does not.
#[derive(Debug, Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Shut,
    Open(Option<u64>),
}

impl Gate {
    /// Lets everybody through; a second call changes nothing.
    pub fn open(&self, start_ns: Option<u64>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Shut) {
            *state = State::Open(start_ns);
        }
        self.changed.notify_all();
    }

    /// Waits until the gate opens; when the load starts, if it does.
    pub fn wait(&self) -> Option<u64> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                State::Open(start_ns) => return start_ns,
                State::Shut => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

/// Opens the gate without a start when it goes out of scope: however its holder leaves, nobody is left waiting.
pub struct Keeper<'a>(pub &'a Gate);

impl Drop for Keeper<'_> {
    fn drop(&mut self) {
        self.0.open(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_opening_counts_and_a_leaving_keeper_lets_everybody_go() {
        let gate = Gate::default();
        gate.open(Some(7));
        drop(Keeper(&gate));
        assert_eq!(gate.wait(), Some(7));
        let gate = Gate::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait());
            drop(Keeper(&gate));
            assert_eq!(waiting.join().unwrap(), None);
        });
    }
}
