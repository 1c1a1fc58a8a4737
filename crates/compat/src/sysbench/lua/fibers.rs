//! Starts a script's threads as fibers on the event loops of few threads: each has its own Lua state as a thread has, and
//! one that waits lets others go on.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier};
use std::thread;

use mydyno_linux::calls::scheduler;
use mydyno_load::fibers;

use super::super::engine::Engine;
use super::super::log::Level;
use super::super::runner::{Started, Test as _};
use super::test::ScriptTest;

/// State that the threads of a start share.
#[derive(Clone)]
struct Start {
    test: Arc<ScriptTest>,
    engine: Arc<Engine>,
    ready: Arc<Barrier>,
    begun: Arc<Barrier>,
    unusable: Arc<AtomicBool>,
    ended: Sender<()>,
}

/// Event loops that run scripts, at most.
const MOST_WORKERS: usize = 16;

/// Connects all, and waits with the first event. `None` after a failure, which is printed.
pub(super) fn start(test: &Arc<ScriptTest>, engine: &Arc<Engine>) -> Option<Started> {
    let count = engine.settings.threads;
    // The script itself runs in the workers, so it may use the CPUs as sysbench's threads do.
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let workers = cpus.min(MOST_WORKERS).min(count);
    let (sender, ended) = channel();
    let start = Start {
        test: Arc::clone(test),
        engine: Arc::clone(engine),
        ready: Arc::new(Barrier::new(workers + 1)),
        begun: Arc::new(Barrier::new(workers + 1)),
        unusable: Arc::default(),
        ended: sender,
    };
    for worker in 0..workers {
        let of_thread = start.clone();
        let ids = (worker..count).step_by(workers);
        let work = move || run(&of_thread, ids.collect());
        if thread::Builder::new().name(format!("sb-{worker}")).spawn(work).is_err() {
            engine.log.fatal("the system permits no more threads");
            return None;
        }
    }
    start.ready.wait();
    if start.unusable.load(Relaxed) {
        engine.log.fatal("Thread initialization failed!");
        return None;
    }
    let begin = Box::new(move || {
        start.begun.wait();
    });
    Some(Started { begin, ended, workers: count, rest: None })
}

/// One thread with its fibers.
fn run(start: &Start, ids: Vec<usize>) {
    // Woken by an answer it waits for its turn, so that more answers come together. Without it, it only costs more.
    let _ = scheduler::schedule_as_batch();
    let left = Rc::new(Cell::new(ids.len()));
    let met = Cell::new(false);
    let meet = || {
        met.set(true);
        start.ready.wait();
        start.begun.wait();
    };
    let bodies = ids.into_iter().map(|id| {
        let (start, left) = (start.clone(), Rc::clone(&left));
        let body: Box<dyn FnOnce()> = Box::new(move || {
            one(&start, id);
            left.set(left.get() - 1);
        });
        body
    });
    let ran = fibers::run(mydyno_load::cheapest_backend(), bodies.collect(), meet);
    if let Err(error) = ran {
        start.engine.log.fatal(&format!("the event loop failed: {error}"));
        start.engine.fail();
        start.unusable.store(true, Relaxed);
        if !met.get() {
            start.ready.wait();
            start.begun.wait();
        }
        (0..left.get()).for_each(|_| {
            let _ = start.ended.send(());
        });
    }
}

/// One fiber: what a thread of the test does.
fn one(start: &Start, id: usize) {
    let Start { test, engine, unusable, .. } = start;
    engine.log.line(Level::Debug, &format!("Worker thread (#{id}) started"));
    let worker = test.worker(engine, id);
    match &worker {
        Some(_) => engine.log.line(Level::Debug, &format!("Worker thread (#{id}) initialized")),
        None => unusable.store(true, Relaxed),
    }
    fibers::meet();
    if let Some(mut worker) = worker.filter(|_| !unusable.load(Relaxed)) {
        if !worker.run(engine) {
            engine.fail();
        }
        worker.done();
    }
    engine.thread_has_ended();
    let _ = start.ended.send(());
}
