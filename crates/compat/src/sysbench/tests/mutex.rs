//! The test `mutex`: one event a thread, of many short holds of locks drawn at random with empty loops between them.

use std::hint::black_box;
use std::sync::{Arc, Mutex, PoisonError};

use mydyno_stats::rng::Rng;

use super::super::engine::Engine;
use super::super::options::{Definition, Kind, Options};
use super::super::runner::{Reporter, Test, Worker};
use super::threads::Plain;
use super::{BuiltIn, Ready, run_events};

pub(crate) const TEST: BuiltIn = BuiltIn {
    name: "mutex",
    summary: "locks: many short holds",
    options: || {
        vec![
            Definition::new("mutex-num", Kind::Int, Some("4096"), "locks"),
            Definition::new("mutex-locks", Kind::Int, Some("50000"), "times that each thread takes a lock"),
            Definition::new(
                "mutex-loops",
                Kind::Int,
                Some("10000"),
                "turns of an empty loop between two locks",
            ),
        ]
    },
    prepare,
    commands: &[],
};

fn prepare(options: &Options, _: usize) -> Result<Ready, String> {
    let number = |name: &str, min: i64| {
        let value = options.int(name);
        match u64::try_from(value).ok().filter(|_| value >= min) {
            Some(number) => Ok(number),
            None => Err(format!("Invalid value for --{name}: {value}.")),
        }
    };
    let locks = (0..number("mutex-num", 1)?).map(|_| Mutex::new(0)).collect();
    let test = Mutexes { locks, holds: number("mutex-locks", 0)?, loops: number("mutex-loops", 0)? };
    Ok(Ready { test: Arc::new(Arc::new(test)), main: Box::new(Plain), print_mode: Box::new(|_| ()) })
}

struct Mutexes {
    locks: Vec<Mutex<u64>>,
    holds: u64,
    loops: u64,
}

struct MutexWorker {
    thread: usize,
    test: Arc<Mutexes>,
    rng: Rng,
}

impl Test for Arc<Mutexes> {
    fn worker(&self, engine: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>> {
        Some(Box::new(MutexWorker { thread, test: Self::clone(self), rng: engine.rng(thread as u64) }))
    }

    fn reporter(&self, _: &Arc<Engine>) -> Option<Box<dyn Reporter>> {
        Some(Box::new(Plain))
    }
}

impl Worker for MutexWorker {
    fn run(&mut self, engine: &Engine) -> bool {
        let mut done = false;
        run_events(engine, self.thread, || {
            if std::mem::replace(&mut done, true) {
                return false;
            }
            for _ in 0..self.test.holds {
                for turn in 0..self.test.loops {
                    black_box(turn);
                }
                let lock = &self.test.locks[self.rng.below(self.test.locks.len() as u64) as usize];
                *lock.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            }
            true
        })
    }
}
