//! Arrivals of `--rate`: a thread draws exponential pauses, workers take arrivals in order.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mydyno_load::fibers::{self, Waker};
use mydyno_stats::rng::Rng;

/// Longest wait before a thread looks again whether the test has ended.
const PATIENCE: Duration = Duration::from_millis(50);

/// Events that have arrived and wait for a thread or fiber. The backlog has no bound.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct State {
    arrivals: VecDeque<Instant>,
    /// Fibers that wait for an arrival.
    waiting: VecDeque<Waker>,
    /// No more events arrive.
    closed: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts arrivals into the queue until `ended` says so.
    pub(crate) fn generate(&self, start: Instant, rate: f64, mut rng: Rng, ended: impl Fn() -> bool) {
        let mut next = start;
        loop {
            next += Duration::from_secs_f64(-(1.0 - rng.f64()).ln() / rate);
            if !wait_until(next, &ended) {
                break;
            }
            let mut state = self.state();
            state.arrivals.push_back(next);
            let fiber = state.waiting.pop_front();
            drop(state);
            match fiber {
                Some(fiber) => fiber.wake(),
                None => self.arrived.notify_one(),
            }
        }
        let mut state = self.state();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// The instant of the next arrival; `None` once `ended` says so.
    pub(crate) fn take(&self, ended: impl Fn() -> bool) -> Option<Instant> {
        while !ended() {
            let mut state = self.state();
            if let Some(arrival) = state.arrivals.pop_front() {
                return Some(arrival);
            }
            if state.closed {
                break;
            }
            match fibers::waker() {
                Some(waker) => {
                    state.waiting.push_back(waker);
                    drop(state);
                    fibers::park();
                }
                None => drop(self.arrived.wait_timeout(state, PATIENCE)),
            }
        }
        None
    }

    pub(crate) fn len(&self) -> u64 {
        self.state().arrivals.len() as u64
    }
}

/// Waits until an instant; `false` where `ended` says so before.
fn wait_until(instant: Instant, ended: impl Fn() -> bool) -> bool {
    while !ended() {
        let left = instant.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(PATIENCE));
    }
    false
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    /// Arrivals that are taken before the end.
    const WANTED: usize = 300;

    /// The work of a thread: it takes until the end.
    fn work(queue: &Queue, taken: &AtomicUsize) {
        let over = || taken.load(SeqCst) >= WANTED;
        let mut last = None;
        while let Some(arrival) = queue.take(over) {
            assert!(last <= Some(arrival));
            last = Some(arrival);
            taken.fetch_add(1, SeqCst);
        }
    }

    fn generate(queue: &Arc<Queue>, taken: &Arc<AtomicUsize>) -> std::thread::JoinHandle<()> {
        let (queue, taken) = (Arc::clone(queue), Arc::clone(taken));
        std::thread::spawn(move || {
            queue.generate(Instant::now(), 5000.0, Rng::from_seed(1), || taken.load(SeqCst) >= WANTED);
        })
    }

    #[test]
    fn threads_and_fibers_take_arrivals_until_the_end_and_none_is_left_waiting() {
        let (queue, taken) = (Arc::<Queue>::default(), Arc::<AtomicUsize>::default());
        let arrivals = generate(&queue, &taken);
        std::thread::scope(|scope| {
            (0..4).for_each(|_| drop(scope.spawn(|| work(&queue, &taken))));
        });
        arrivals.join().unwrap();
        assert!(taken.load(SeqCst) >= WANTED);

        let (queue, taken) = (Arc::<Queue>::default(), Arc::<AtomicUsize>::default());
        let arrivals = generate(&queue, &taken);
        let ended = Rc::new(AtomicUsize::new(0));
        let bodies = (0..50).map(|_| {
            let (queue, taken, ended) = (Arc::clone(&queue), Arc::clone(&taken), Rc::clone(&ended));
            let body: Box<dyn FnOnce()> = Box::new(move || {
                work(&queue, &taken);
                ended.fetch_add(1, SeqCst);
            });
            body
        });
        fibers::run(mydyno_load::cheapest_backend(), bodies.collect(), || {}).unwrap();
        arrivals.join().unwrap();
        assert!(taken.load(SeqCst) >= WANTED && ended.load(SeqCst) == 50);
    }
}
