//! The command `run`: threads begin together, reports are printed meanwhile, and the report of the whole at the end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use mydyno_model::record::End;
use mydyno_run::RunError;

use super::engine::{Engine, Mark};
use super::log::Level;
use super::record::Record;
use super::report;
use super::stats::Stat;

/// The work of a test's threads.
pub(crate) trait Test: Send + Sync {
    /// Makes ready what all threads need, before they start. `false` after a failure, which is printed.
    fn begin(&self, engine: &Engine) -> bool {
        let _ = engine;
        true
    }

    /// Makes the worker of a thread, in this thread. `None` when it cannot be made, which has been printed.
    fn worker(&self, engine: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>>;

    /// Starts all threads of the test together, by other means than a thread of the system each. `None` where the test
    /// has none, or where they cannot start and a thread each may; `Some(None)` after a failure, which is printed.
    fn start_together(self: Arc<Self>, engine: &Arc<Engine>) -> Option<Option<Started>> {
        let _ = engine;
        None
    }

    /// Makes what prints reports in a thread of its own.
    fn reporter(&self, engine: &Arc<Engine>) -> Option<Box<dyn Reporter>>;
}

/// Threads that wait for the beginning of the test.
pub(crate) struct Started {
    /// Lets the threads begin.
    pub(crate) begin: Box<dyn FnOnce() + Send>,
    /// Gets one message of each worker that has ended.
    pub(crate) ended: mpsc::Receiver<()>,
    /// Messages until the test is over.
    pub(crate) workers: usize,
    /// Work that remains after the last message.
    pub(crate) rest: Option<thread::JoinHandle<()>>,
}

/// The work of one thread.
pub(crate) trait Worker {
    /// Works until the engine has no more events. `false` after a failure, which has been printed.
    fn run(&mut self, engine: &Engine) -> bool;

    /// Ends the thread's work.
    fn done(&mut self) {}
}

/// Prints reports.
pub(crate) trait Reporter {
    fn intermediate(&mut self, engine: &Engine, stat: &Stat) {
        print_intermediate(engine, stat, false);
    }

    fn cumulative(&mut self, engine: &Engine, stat: &Stat) {
        print_general(engine, stat);
    }

    /// After the last intermediate report.
    fn finish(&mut self) {}
}

/// Prints the usual line of an intermediate report.
pub(crate) fn print_intermediate(engine: &Engine, stat: &Stat, sql: bool) {
    let (percentile, with_queue) = (engine.settings.percentile, engine.settings.rate > 0.0);
    engine.log.notice(&match sql {
        true => report::intermediate_sql(stat, percentile, with_queue),
        false => report::intermediate(stat, percentile, with_queue),
    });
}

/// Prints the part of a cumulative report that every test has.
pub(crate) fn print_general(engine: &Engine, stat: &Stat) {
    engine.log.text(&report::general(stat, engine.settings.percentile, engine.settings.debug));
}

/// Prints what stands before the mode of the test.
pub(crate) fn print_header(engine: &Engine) {
    let (settings, log) = (&engine.settings, &engine.log);
    log.notice("Running the test with following options:");
    log.notice(&format!("Number of threads: {}", settings.threads));
    if settings.rate > 0.0 {
        log.notice(&format!("Target transaction rate: {}/sec", settings.rate));
    }
    if settings.report_interval != 0 {
        log.notice(&format!("Report intermediate results every {} second(s)", settings.report_interval));
    }
    if !settings.checkpoints.is_empty() {
        let list: Vec<String> = settings.checkpoints.iter().map(u64::to_string).collect();
        log.notice(&format!("Report checkpoint(s) at {} seconds", list.join(", ")));
    }
    if settings.debug {
        log.notice("Debug mode enabled.\n");
    }
    if settings.validate {
        log.notice("Validation checks: on.\n");
    }
    log.notice(&match settings.seed {
        0 => "Initializing random number generator from current time\n".to_owned(),
        seed => format!("Initializing random number generator from seed ({seed}).\n"),
    });
    if let Some(end) = settings.forced_shutdown {
        log.notice(&format!("Forcing shutdown in {} seconds", end.as_secs()));
    }
    log.text("\n");
}

/// Status after an end by force.
const FORCED: u8 = 2;

/// Runs a test and prints its reports; the exit status.
pub(crate) fn run(engine: &Arc<Engine>, test: &Arc<dyn Test>, main: &mut dyn Reporter) -> u8 {
    if !test.begin(engine) {
        return 1;
    }
    engine.log.notice("Initializing worker threads...\n");
    let record = match begin_record(engine) {
        Ok(record) => record.map(Arc::new),
        Err(error) => {
            engine.log.fatal(&format!("--record: {error}"));
            return 1;
        }
    };
    let started = match start_within(engine, test) {
        Ok(started) => started,
        Err(status) => return status,
    };
    // Before the threads begin, so that what they print follows.
    engine.log.notice("Threads started!\n");
    engine.begin();
    (started.begin)();
    let mark = engine.mark();
    let others = start_others(engine, test, &mark);
    let follower = record.clone().map(|record| {
        let engine = Arc::clone(engine);
        thread::spawn(move || record.follow(&engine))
    });
    if !wait_for_threads(engine, &started.ended, started.workers) {
        end_record(
            engine,
            record.as_deref(),
            End::BrokeOff("the time of --forced-shutdown was over".to_owned()),
        );
        return forced_end(engine, main, mark);
    }
    engine.finish();
    // It ends with the test.
    follower.map(thread::JoinHandle::join);
    let how = if engine.has_failed() { End::BrokeOff("a thread failed".to_owned()) } else { End::Complete };
    end_record(engine, record.as_deref(), how);
    let last = others.into_iter().filter_map(|other| other.join().ok().flatten()).next_back();
    if engine.has_failed() {
        return 1;
    }
    engine.log.line(Level::Info, "Done.\n");
    if engine.settings.histogram {
        let text = engine.latency().print();
        engine.log.text(&format!("Latency histogram (values are in milliseconds)\n{text} \n"));
    }
    let stat = engine.cumulative(&mut last.unwrap_or(mark));
    main.cumulative(engine, &stat);
    if let Some(rest) = started.rest {
        // It has printed its failure.
        let _ = rest.join();
    }
    0
}

/// Begins the record that the command line asks for.
fn begin_record(engine: &Engine) -> Result<Option<Record>, RunError> {
    engine.settings.record.as_ref().map(|wanted| Record::begin(wanted, &engine.settings)).transpose()
}

fn end_record(engine: &Engine, record: Option<&Record>, how: End) {
    if let Some(Err(error)) = record.map(|record| record.end(engine, how)) {
        engine.log.fatal(&format!("the record cannot be written: {error}"));
    }
}

/// Starts the threads and waits until they are ready to begin.
///
/// # Errors
/// The exit status after a failure, or after the limit was over, which is printed.
fn start_within(engine: &Arc<Engine>, test: &Arc<dyn Test>) -> Result<Started, u8> {
    let (sender, ready) = mpsc::channel();
    let (of_thread, test) = (Arc::clone(engine), Arc::clone(test));
    // A thread that waits for its server cannot be interrupted, so somebody else looks at the clock.
    thread::spawn(move || {
        let together = Arc::clone(&test).start_together(&of_thread);
        let _ = sender.send(together.unwrap_or_else(|| start_threads(&of_thread, &test)));
    });
    let answer = match engine.settings.thread_init {
        Some(limit) => ready.recv_timeout(limit),
        None => ready.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
    };
    match answer {
        Ok(started) => started.ok_or(1),
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let limit_s = engine.settings.thread_init.unwrap_or_default().as_secs();
            engine.log.fatal(&format!("Worker threads failed to initialize within {limit_s} seconds!"));
            Err(FORCED)
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => Err(1),
    }
}

/// Starts a thread of the system for each thread of the test. `None` after a failure, which is printed.
fn start_threads(engine: &Arc<Engine>, test: &Arc<dyn Test>) -> Option<Started> {
    let count = engine.settings.threads;
    let ready = Arc::new(Barrier::new(count + 1));
    let begun = Arc::new(Barrier::new(count + 1));
    let unusable = Arc::new(AtomicBool::new(false));
    let (sender, ended) = mpsc::channel();
    for id in 0..count {
        let (of_thread, test, sender) = (Arc::clone(engine), Arc::clone(test), sender.clone());
        let (ready, begun, unusable) = (Arc::clone(&ready), Arc::clone(&begun), Arc::clone(&unusable));
        let work = move || {
            let engine = of_thread;
            engine.log.line(Level::Debug, &format!("Worker thread (#{id}) started"));
            let worker = test.worker(&engine, id);
            match &worker {
                Some(_) => engine.log.line(Level::Debug, &format!("Worker thread (#{id}) initialized")),
                None => unusable.store(true, Relaxed),
            }
            ready.wait();
            begun.wait();
            if let Some(mut worker) = worker.filter(|_| !unusable.load(Relaxed)) {
                if !worker.run(&engine) {
                    engine.fail();
                }
                worker.done();
            }
            engine.thread_has_ended();
            let _ = sender.send(());
        };
        if thread::Builder::new().name(format!("sb-{id}")).spawn(work).is_err() {
            engine.log.fatal(&format!("cannot start thread #{id}: the system permits no more threads"));
            return None;
        }
    }
    ready.wait();
    if unusable.load(Relaxed) {
        engine.log.fatal("Thread initialization failed!");
        return None;
    }
    let begin = Box::new(move || {
        begun.wait();
    });
    Some(Started { begin, ended, workers: count, rest: None })
}

/// Waits for all threads; `false` when the time of a forced end comes first.
fn wait_for_threads(engine: &Engine, ended: &mpsc::Receiver<()>, count: usize) -> bool {
    let end = engine.settings.forced_shutdown.map(|after| engine.start() + after);
    for _ in 0..count {
        let received = match end {
            None => ended.recv().is_ok(),
            Some(end) => ended.recv_timeout(end.saturating_duration_since(Instant::now())).is_ok(),
        };
        if !received {
            return false;
        }
    }
    true
}

fn forced_end(engine: &Engine, main: &mut dyn Reporter, mut mark: Mark) -> u8 {
    engine.log.fatal("The --max-time limit has expired, forcing shutdown...");
    let mut stat = engine.cumulative(&mut mark);
    stat.unfinished = Some(stat.concurrency);
    main.cumulative(engine, &stat);
    FORCED
}

/// The work of a thread beside those of the test.
type Work = fn(&Arc<Engine>, &Arc<dyn Test>, Mark) -> Option<Mark>;

/// Starts the threads of arrivals, intermediate reports and checkpoints. The last one gives the state of its last report.
fn start_others(
    engine: &Arc<Engine>,
    test: &Arc<dyn Test>,
    mark: &Mark,
) -> Vec<thread::JoinHandle<Option<Mark>>> {
    let mut others = Vec::new();
    let mut start = |work: Work| {
        let (engine, test, mark) = (Arc::clone(engine), Arc::clone(test), mark.clone());
        others.push(thread::spawn(move || work(&engine, &test, mark)));
    };
    if engine.settings.rate > 0.0 {
        start(|engine, _, _| {
            engine.generate_arrivals();
            None
        });
    }
    if engine.settings.report_interval > 0 {
        start(|engine, test, mut mark| {
            let mut reporter = test.reporter(engine)?;
            let interval = Duration::from_secs(engine.settings.report_interval.unsigned_abs());
            let mut next = engine.start() + interval;
            while engine.wait_until(next) {
                reporter.intermediate(engine, &engine.intermediate(&mut mark));
                next += interval;
            }
            reporter.finish();
            None
        });
    }
    if !engine.settings.checkpoints.is_empty() {
        start(|engine, test, mut mark| {
            let mut reporter = test.reporter(engine)?;
            for second in &engine.settings.checkpoints {
                if !engine.wait_until(engine.start() + Duration::from_secs(*second)) {
                    break;
                }
                let stat = engine.cumulative(&mut mark);
                engine.log.notice(&format!("[ {:.0}s ] Checkpoint report:", stat.time_total));
                reporter.cumulative(engine, &stat);
            }
            Some(mark)
        });
    }
    others
}
