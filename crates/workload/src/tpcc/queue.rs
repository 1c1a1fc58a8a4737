//! Deliveries that terminals have queued and that other connections execute (clause 2.7.2).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use super::inputs::Delivery;

/// A delivery that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Queued {
    /// Its input.
    pub delivery: Delivery,
    /// When its terminal was to queue it, in nanoseconds since the run began.
    pub at_ns: u64,
}

/// The queue, which all connections of a run share.
#[derive(Debug, Clone, Default)]
pub struct Queue(Arc<Mutex<VecDeque<Queued>>>);

impl Queue {
    /// Adds a delivery behind the others.
    pub fn push(&self, queued: Queued) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(queued);
    }

    /// Takes the oldest one.
    pub fn pop(&self) -> Option<Queued> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_delivery_is_taken_first() {
        let queue = Queue::default();
        let queued = |at_ns| Queued { delivery: Delivery { warehouse: at_ns, carrier: 1 }, at_ns };
        (1..=3).for_each(|n| queue.clone().push(queued(n)));
        assert_eq!([queue.pop(), queue.pop()], [Some(queued(1)), Some(queued(2))]);
        queue.push(queued(4));
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some(queued(3)), Some(queued(4)), None]);
    }
}
