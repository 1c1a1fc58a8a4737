//! State of a stream that can return to the start of the current transaction.

use crate::session::TransactionStream;

/// State from which transactions are drawn (a random generator, counters), and a copy of it from the start of the
/// current transaction. With the copy a retry sends the same parameters again.
#[derive(Debug)]
pub struct Draws<S> {
    /// The state that the next draw uses.
    pub current: S,
    start: S,
}

impl<S: Clone> Draws<S> {
    /// A stream before its first transaction.
    pub fn new(state: S) -> Self {
        Self { current: state.clone(), start: state }
    }
}

impl<S: Clone> TransactionStream for Draws<S> {
    #[inline]
    fn begin(&mut self) {
        self.start.clone_from(&self.current);
    }

    #[inline]
    fn redraw(&mut self) {
        self.current.clone_from(&self.start);
    }
}
