//! Runs one step on a server: connect, warm up, measure, drain.

use std::sync::atomic::AtomicBool;

use mydyno_linux::calls::{limits, own_memory};
use mydyno_model::plan::ConnectionPlan;
use mydyno_model::record::Phase;
use mydyno_workload::Workload;

use crate::barrier::{ReleaseOnDrop, StartBarrier};
use crate::clock::{Clock, MonotonicClock};
use crate::context::StepContext;
use crate::error::LoadError;
use crate::event::{End, StepEvent, StepSpec};
use crate::opener_pool::{CloseOnDrop, OpenerPool};
use crate::pool::{Environment, WorkerPool, spawn};

/// File descriptors beside those of the connections: standard streams, epoll, files of the record, the server's
/// files that are sampled.
const OTHER_FILES: u64 = 128;

/// Runs one step. `stop` ends it early and keeps what was measured.
///
/// # Errors
/// [`LoadError`] when the load could not start; nothing was measured then.
pub fn run_step<W: Workload>(
    clock: &MonotonicClock,
    spec: &StepSpec<'_, W>,
    stop: &AtomicBool,
    sink: &mut dyn FnMut(StepEvent),
) -> Result<End, LoadError> {
    // What preparations and the making of tables have left.
    own_memory::give_back();
    allow_open_files((spec.connections + spec.keep.idle) as u64)?;
    sink(StepEvent::Phase(Phase::Connect, clock.now_s()));
    let context = StepContext::new(spec);
    let openers = opener_threads(spec.keep, spec.connections, spec.workers);
    let opener_pool =
        if openers > 0 { Some(OpenerPool::new(spec.workers).map_err(no_eventfd)?) } else { None };
    let barrier = StartBarrier::default();
    let environment = Environment {
        spec,
        context: &context,
        clock,
        barrier: &barrier,
        opener_pool: opener_pool.as_ref(),
        stop,
    };
    let ended = std::thread::scope(|scope| {
        // Every way out of this scope ends the workers and the openers.
        let _release = ReleaseOnDrop(&barrier);
        let _close = CloseOnDrop(environment.opener_pool);
        let workers = WorkerPool::start(scope, environment)?;
        if let Some(pool) = environment.opener_pool {
            for number in 0..openers {
                let serve =
                    || pool.serve(spec.workload, spec.connect, &context.columns, spec.connections, clock);
                spawn(scope, format!("open-{number}"), serve)?;
            }
        }
        let idle = workers.connect(sink)?;
        let end = workers.run(sink);
        for client in idle {
            // Best effort: the server closes them anyway.
            let _ = client.quit();
        }
        Ok(end)
    });
    // What the connections have left, before the record is read for its summary.
    own_memory::give_back();
    ended
}

fn allow_open_files(connections: u64) -> Result<(), LoadError> {
    let needed = connections + OTHER_FILES;
    limits::allow_open_files(needed).map_err(|limit| LoadError::System {
        what: format!(
            "{connections} connections need {needed} open files and this process may have {limit}: raise the limit with `ulimit -n {needed}` or ask for fewer connections"
        ),
        source: std::io::Error::from_raw_os_error(libc::EMFILE),
    })
}

fn no_eventfd(source: std::io::Error) -> LoadError {
    LoadError::System { what: "making an event file (eventfd)".to_owned(), source }
}

/// Number of threads that open connections while the load runs; each handles one request at a time.
fn opener_threads(keep: &ConnectionPlan, connections: usize, workers: usize) -> usize {
    match keep.reconnect_every {
        Some(_) => connections.min(8 * workers),
        None if keep.reconnect => workers,
        None => 0,
    }
}
