//! The executor: tasks of one concrete type, polled by the events that concern them.
//!
//! There is no queue and no waker: the worker, which receives events and timers, polls tasks by their numbers. Futures are stored one by one and never moved, without dynamic dispatch.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// The tasks of one worker.
pub struct Tasks<F> {
    slots: Vec<Option<Pin<Box<F>>>>,
    live: usize,
}

impl<F: Future<Output = ()>> Tasks<F> {
    /// These tasks, none of them polled yet. A task's number is its place.
    pub fn new(futures: impl Iterator<Item = F>) -> Self {
        let slots: Vec<_> = futures.map(|future| Some(Box::pin(future))).collect();
        let live = slots.len();
        Self { slots, live }
    }

    /// Number of tasks that have not ended.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Polls every task that has not ended.
    pub fn poll_all(&mut self) {
        for number in 0..self.slots.len() {
            self.poll(number);
        }
    }

    /// Polls a task. Ended and unknown tasks are ignored: the kernel may report a socket that has just been closed.
    #[inline]
    pub fn poll(&mut self, number: usize) {
        let Some(slot) = self.slots.get_mut(number) else { return };
        let Some(task) = slot else { return };
        if let Poll::Ready(()) = task.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            *slot = None;
            self.live -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::future::poll_fn;

    #[test]
    fn a_task_goes_on_only_when_it_is_polled_and_ends_once() {
        let polls = [Cell::new(0), Cell::new(0)];
        let mut tasks = Tasks::new(polls.iter().map(|count| {
            poll_fn(move |_| {
                count.set(count.get() + 1);
                if count.get() == 2 { Poll::Ready(()) } else { Poll::Pending }
            })
        }));
        tasks.poll(1);
        assert_eq!((polls[0].get(), polls[1].get(), tasks.live()), (0, 1, 2));
        tasks.poll(1);
        tasks.poll(1);
        tasks.poll(7);
        assert_eq!((polls[0].get(), polls[1].get(), tasks.live()), (0, 2, 1));
    }
}
