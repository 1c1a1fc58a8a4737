//! Starts a twin on the load engine: one thread drives many connections.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use mydyno_load::clock::MonotonicClock;
use mydyno_load::{End, LoadError, StepEvent, StepSpec, Warmup, run_step};
use mydyno_model::plan::{Arrivals, ConnectionPlan, Scheduling, WaitPlan};
use mydyno_model::record::Phase;

use super::super::engine::Engine;
use super::super::runner::Started;
use super::target::Target;
use super::twin::Twin;
use super::twin_load::{Latch, TwinLoad};

/// Longer than any test: the connections end it.
const NEVER: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Opens the connections, prepares the statements, and waits with the first event. `None` where that fails: the script
/// then tries it and says why.
pub(super) fn start(twin: &Arc<Twin>, target: &Arc<Target>, engine: &Arc<Engine>) -> Option<Started> {
    let latch = Arc::new(Latch::default());
    let (to_ended, ended) = channel();
    let (to_ready, ready) = channel();
    let load = TwinLoad::new(
        Arc::clone(twin),
        Arc::clone(engine),
        Arc::clone(target),
        Arc::clone(&latch),
        to_ended.clone(),
    );
    let of_thread = Arc::clone(engine);
    let work = move || {
        match run(&load, &to_ready) {
            Ok(End::Complete(_) | End::AllLost { .. }) => {}
            // Not begun: nobody waits for the end.
            Err(_) => return,
            Ok(end) => {
                of_thread.log.fatal(&format!("the load generator failed: {end:?}"));
                of_thread.fail();
            }
        }
        let _ = to_ended.send(());
    };
    let thread = thread::Builder::new().name("sb-load".to_owned()).spawn(work).ok()?;
    ready.recv().ok()?;
    Some(Started { begin: Box::new(move || latch.release()), ended, workers: 1, rest: Some(thread) })
}

fn run(load: &TwinLoad, ready: &Sender<()>) -> Result<End, LoadError> {
    let connections = load.engine.settings.threads;
    let backend = mydyno_load::cheapest_backend();
    let cpus = thread::available_parallelism().map_or(1, usize::from);
    let groups = mydyno_load::session::are_groups();
    let workers = mydyno_load::default_workers(cpus, connections, backend, groups);
    let wait = WaitPlan { backend, scheduling: Scheduling::Batch, ..WaitPlan::default() };
    let keep = ConnectionPlan { reconnect: false, ..ConnectionPlan::default() };
    let connect = || load.target.client();
    let spec = StepSpec {
        number: 0,
        workload: load,
        connections,
        workers: workers.min(connections),
        arrivals: &Arrivals::CLOSED,
        seed: load.engine.seed,
        warmup: Warmup::Fixed(Duration::ZERO),
        measure: NEVER,
        keep: &keep,
        wait: &wait,
        stop_on_error: None,
        connect: &connect,
    };
    run_step(&MonotonicClock::start(), &spec, &AtomicBool::new(false), &mut |event| {
        if let StepEvent::Phase(Phase::Measure, _) = event {
            // Without a receiver the program has ended.
            let _ = ready.send(());
        }
    })
}
