//! One slice: load on one server, from connecting to the last answer.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_host::task::on_cpus;
use mydyno_levers::Client;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_load::{End, LoadError, StepEvent, Warmup};
use mydyno_model::experiment::{Row, Slice};
use mydyno_model::plan::Plan;
use mydyno_model::record::{Interval, Phase};
use mydyno_run::steps::{NumberedStep, Work};
use mydyno_stats::{Distribution, Histogram};
use mydyno_wire::{Client as Session, ConnectOptions};
use serde_json::Map;

use crate::server_cpu::{self, ServerCpu};

/// Session variables that the meaning of a transaction depends on; all others keep the server's values.
const SESSION: &str = "SET SESSION autocommit = 1";

/// The load of a slice.
pub struct Load<'a> {
    /// Its plan; the length of the window is that of the slice.
    pub plan: &'a Plan,
    /// Its workload.
    pub work: &'a Work,
    /// The server, with the database.
    pub target: &'a ConnectOptions,
    /// Levers of the load generator.
    pub client: Client,
    /// Part that is cut from the beginning.
    pub settle: Duration,
    /// Process of the server, where its CPU time is a figure: a server of our own.
    pub server: Option<u32>,
}

/// The result of a slice.
pub enum Measured {
    /// With figures, or with the reason why there are none.
    Slice(Box<Slice>),
    /// The user interrupted.
    Interrupted,
}

/// Loads a server for one row of the table. A slice without an answer has failed.
pub fn measure(load: &Load<'_>, row: Row, clock: &MonotonicClock, stop: &AtomicBool) -> Measured {
    let mut measured = warm_up(load, row, clock, stop);
    if let Measured::Slice(slice) = &mut measured
        && slice.failed.is_none()
        && slice.transactions == 0
    {
        slice.failed = Some("no transaction was answered".to_owned());
    }
    measured
}

/// Loads a server as [`measure`] does, where a transaction may take longer than the load.
pub fn warm_up(load: &Load<'_>, row: Row, clock: &MonotonicClock, stop: &AtomicBool) -> Measured {
    let at_s = clock.now_s();
    let mut intervals: Vec<Interval> = Vec::new();
    let mut server = load.server.and_then(ServerCpu::of);
    let mut sink = |event| {
        if let StepEvent::Interval(interval) = event {
            if let Some(server) = &mut server {
                server.at_end_of(interval.phase);
            }
            if interval.phase == Phase::Measure {
                intervals.push(*interval);
            }
        }
    };
    let ended = match &load.client.cpus {
        None => run(load, row, clock, stop, &mut sink),
        // The threads of the load inherit the CPUs of their parent.
        Some(cpus) => on_cpus(cpus, || run(load, row, clock, stop, &mut sink))
            .unwrap_or_else(|error| Err(LoadError::Worker(format!("client.cpus: {error}")))),
    };
    let mut slice = summary(load, row, at_s, &intervals);
    let server_us = server.and_then(|server| server.per_transaction_us(slice.transactions));
    slice.figures.extend(server_us.map(|us| (server_cpu::NAME.to_owned(), us)));
    slice.failed = match ended {
        Ok(End::Interrupted) | Err(LoadError::Interrupted) => return Measured::Interrupted,
        Ok(End::Complete(_)) => None,
        Ok(End::Forbidden { why } | End::Failed { why }) => Some(why),
        Ok(End::AllLost { why }) => Some(format!("every connection was lost: {why}")),
        Ok(End::Hopeless { why }) => Some(format!("no transaction succeeded: {why}")),
        Err(error) => Some(error.to_string()),
    };
    Measured::Slice(Box::new(slice))
}

fn run(
    load: &Load<'_>,
    row: Row,
    clock: &MonotonicClock,
    stop: &AtomicBool,
    sink: &mut dyn FnMut(StepEvent),
) -> Result<End, LoadError> {
    let Some(step) = load.plan.steps.first() else {
        return Err(LoadError::Worker("the plan of the load has no step".to_owned()));
    };
    let connect = || {
        let mut client = Session::connect(load.target)?;
        client.execute(SESSION)?;
        if let Some(name) = &load.client.character_set {
            client.execute(&format!("SET NAMES {name}"))?;
        }
        Ok(client)
    };
    let warmup = Warmup::Fixed(load.settle);
    let step = NumberedStep { number: row.order, plan: step, whole: load.plan, warmup };
    load.work.run(clock, &step, &connect, stop, sink)
}

fn summary(load: &Load<'_>, row: Row, at_s: f64, intervals: &[Interval]) -> Slice {
    let total = |of: fn(&Interval) -> u64| intervals.iter().map(of).sum::<u64>();
    let mut times = Histogram::new();
    let transaction = load.work.operations().first().map_or("", |operation| operation.name.as_str());
    for operation in intervals.iter().filter_map(|interval| interval.operations.get(transaction)) {
        // A histogram that does not decode would be a defect of the load engine; the counts show the gap.
        let _ = times.merge_data(&operation.response);
    }
    let us = |ns: f64| ns / 1e3;
    Slice {
        measured_s: intervals.iter().map(|interval| interval.width_s).sum(),
        transactions: total(|i| i.transactions),
        queries: total(|i| i.queries),
        errors: total(|i| i.errors.values().sum()),
        retries: total(|i| i.retries),
        p95_us: times.quantile_ns(0.95).map(us),
        mean_us: times.mean_ns().map(us),
        client_cpu_us: total(|i| i.client.user_us + i.client.system_us),
        workers: load.plan.steps.first().map_or(1, |step| step.workers),
        ..empty(row, at_s)
    }
}

/// A slice without figures.
pub(crate) fn empty(row: Row, at_s: f64) -> Slice {
    Slice {
        row,
        at_s,
        measured_s: 0.0,
        transactions: 0,
        queries: 0,
        errors: 0,
        retries: 0,
        p95_us: None,
        mean_us: None,
        client_cpu_us: 0,
        workers: 0,
        figures: BTreeMap::new(),
        failed: None,
        extra: Map::new(),
    }
}
