//! Arrivals of the schedule and timers, for which tasks wait besides answers.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::schedule::Schedule;

/// A worker's arrivals of an open loop. The backlog is not a list but the distance between two positions in one schedule:
/// that of the clock and that of the connections.
#[derive(Debug)]
pub struct Arrivals {
    /// Position of the clock.
    due: Schedule,
    /// Position of the connections.
    untaken: Schedule,
    intended: u64,
    taken: u64,
    /// Tasks without a transaction.
    free: VecDeque<usize>,
}

/// Counts of the arrivals of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Intended since the last count.
    pub intended: u64,
    /// Due and not taken.
    pub queued: u64,
}

impl Arrivals {
    pub fn new(schedule: Schedule) -> Self {
        Self { due: schedule.clone(), untaken: schedule, intended: 0, taken: 0, free: VecDeque::new() }
    }

    /// When the next arrival that no task has taken is intended.
    #[inline]
    pub fn next_ns(&self) -> u64 {
        self.untaken.next_ns()
    }

    /// Whether a free task waits for it.
    pub fn is_awaited(&self) -> bool {
        !self.free.is_empty()
    }

    /// Takes the oldest that is due.
    #[inline]
    pub fn take(&mut self, now_ns: u64) -> Option<u64> {
        let intended_ns = self.untaken.next_ns();
        if intended_ns > now_ns {
            return None;
        }
        self.untaken.advance();
        self.taken += 1;
        Some(intended_ns)
    }

    /// The task that has waited longest, if an arrival is due.
    #[inline]
    pub fn next_task(&mut self, now_ns: u64) -> Option<usize> {
        if self.untaken.next_ns() > now_ns { None } else { self.free.pop_front() }
    }

    /// Adds a task that waits for an arrival.
    pub fn wait(&mut self, task: usize) {
        self.free.push_back(task);
    }

    /// Counts up to an instant.
    pub fn count(&mut self, until_ns: u64) -> Counted {
        let before = self.intended;
        if self.untaken.next_ns() > until_ns {
            // No backlog: the connections have taken all that was due.
            (self.due, self.intended) = (self.untaken.clone(), self.taken);
        }
        while self.due.next_ns() <= until_ns {
            self.due.advance();
            self.intended += 1;
        }
        // A worker that counts late has already taken arrivals of the time after.
        while self.intended < self.taken {
            self.due.advance();
            self.intended += 1;
        }
        Counted { intended: self.intended - before, queued: self.intended - self.taken }
    }

    /// Switches to another schedule and drops the backlog. To be called after [`Arrivals::count`].
    pub fn change(&mut self, schedule: Schedule) {
        (self.due, self.untaken) = (schedule.clone(), schedule);
        (self.intended, self.taken) = (0, 0);
    }
}

/// Timers of tasks.
#[derive(Debug, Default)]
pub struct Timers(RefCell<BinaryHeap<Reverse<(u64, usize)>>>);

impl Timers {
    /// Adds a timer of a task.
    pub fn set(&self, at_ns: u64, task: usize) {
        self.0.borrow_mut().push(Reverse((at_ns, task)));
    }

    /// The earliest timer.
    pub fn next_ns(&self) -> Option<u64> {
        self.0.borrow().peek().map(|Reverse((at_ns, _))| *at_ns)
    }

    /// Removes the earliest timer that has expired, and returns its task.
    pub fn next_task(&self, now_ns: u64) -> Option<usize> {
        let mut timers = self.0.borrow_mut();
        if timers.peek()?.0.0 > now_ns {
            return None;
        }
        timers.pop().map(|Reverse((_, task))| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Deal;
    use mydyno_model::plan::{Arrivals as Plan, Spacing};

    /// Ten a second: 50 ms, 150 ms, …
    fn ten_a_second() -> Schedule {
        let deal = Deal { worker: 0, workers: 1, connections: 1 };
        Schedule::warmup(&Plan::open(10.0, Spacing::Constant), deal, 1, 0).unwrap()
    }

    const MS: u64 = 1_000_000;

    #[test]
    fn the_backlog_is_what_is_due_and_not_taken() {
        let mut arrivals = Arrivals::new(ten_a_second());
        assert_eq!(arrivals.take(49 * MS), None);
        assert_eq!(arrivals.take(50 * MS), Some(50 * MS));
        assert_eq!(arrivals.count(1_000 * MS), Counted { intended: 10, queued: 9 });
        assert_eq!(arrivals.take(1_001 * MS), Some(150 * MS));
        assert_eq!(arrivals.count(1_100 * MS), Counted { intended: 1, queued: 9 });
    }

    #[test]
    fn what_a_late_count_finds_taken_was_intended() {
        let mut arrivals = Arrivals::new(ten_a_second());
        while arrivals.take(260 * MS).is_some() {}
        assert_eq!(arrivals.count(100 * MS), Counted { intended: 3, queued: 0 });
        assert_eq!(arrivals.count(350 * MS), Counted { intended: 1, queued: 1 });
    }

    #[test]
    fn waiting_tasks_take_turns_and_only_when_an_arrival_is_due() {
        let mut arrivals = Arrivals::new(ten_a_second());
        arrivals.wait(3);
        arrivals.wait(5);
        assert_eq!(arrivals.next_task(49 * MS), None);
        assert_eq!((arrivals.next_task(50 * MS), arrivals.take(50 * MS)), (Some(3), Some(50 * MS)));
        assert_eq!(arrivals.next_task(50 * MS), None);
        assert_eq!(arrivals.next_task(150 * MS), Some(5));
    }

    #[test]
    fn timers_expire_in_the_order_of_their_instants() {
        let timers = Timers::default();
        timers.set(30, 1);
        timers.set(10, 2);
        timers.set(20, 3);
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(
            (timers.next_task(9), timers.next_task(20), timers.next_task(20), timers.next_task(20)),
            (None, Some(2), Some(3), None)
        );
    }
}
