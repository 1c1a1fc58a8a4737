//! Threads for work that blocks. They are made when all others are busy, up to a limit, and stay.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Most threads; more work than that waits.
const MOST: usize = 64;

type Job = Box<dyn FnOnce() + Send>;

struct Pool {
    state: Mutex<State>,
    more: Condvar,
}

struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static POOL: Pool =
    Pool { state: Mutex::new(State { jobs: VecDeque::new(), threads: 0, idle: 0 }), more: Condvar::new() };

impl Pool {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                // A job that panics has told its fiber so by what it drops.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
                state = self.state();
            } else {
                state.idle += 1;
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

/// Has a job done by a thread; `false` where there is none and none can be started.
pub(super) fn run(job: Job) -> bool {
    let mut state = POOL.state();
    if state.idle <= state.jobs.len() && state.threads < MOST {
        let started = std::thread::Builder::new().name("blocking".to_owned()).spawn(|| POOL.work());
        state.threads += usize::from(started.is_ok());
    }
    if state.threads == 0 {
        return false;
    }
    state.jobs.push_back(job);
    POOL.more.notify_one();
    true
}
