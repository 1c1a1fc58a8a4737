//! A bench from the guard to the summary.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mydyno_load::{End, Phases, StepEvent, clock::Clock};
use mydyno_model::facts::FactSet;
use mydyno_model::plan::{Plan, StepPlan, Warmup};
use mydyno_model::record::{EventKind, Interval, Manifest, Phase};
use mydyno_model::sample::Sample;
use mydyno_model::summary::{Fingerprint, Summary};
use mydyno_model::{Header, Warning};
use mydyno_observe::{Sampler, Source};
use mydyno_wire::{Client, ConnectOptions};
use mydyno_workload::prepare::{self, Prepared};
use time::OffsetDateTime;

use crate::error::RunError;
use crate::guard::{self, Needs};
use crate::request::Resolved;
use crate::sampling;
use crate::steps::Work;
use crate::summarise::summarise;
use crate::writer::Writer;

/// Connections that fill tables at the same time, when there are as many tables.
const FILLERS: usize = 4;

/// A bench to be run.
pub struct Bench<'a> {
    /// The plan.
    pub resolved: &'a Resolved,
    /// Its workload.
    pub work: &'a Work,
    /// How to reach the server, without a database.
    pub target: &'a ConnectOptions,
    /// The command that repeats it, secrets removed.
    pub argv: Vec<String>,
    /// Name of the run.
    pub run: String,
    /// Folder of the record.
    pub folder: PathBuf,
    /// Whether tables are made when they are missing.
    pub prepare: bool,
}

/// What a bench is doing.
#[derive(Debug)]
pub enum Progress<'a> {
    /// So many rows are in.
    Preparing {
        /// Rows.
        rows: u64,
        /// In the end.
        of: u64,
    },
    /// The tables were made or found.
    Ready(Prepared),
    /// So many connections are open.
    Connecting {
        /// Step.
        step: &'a StepPlan,
        /// Open.
        done: usize,
        /// In the end.
        of: usize,
    },
    /// A phase of a step began.
    Phase {
        /// Number of the step, from 0.
        number: usize,
        /// Step.
        step: &'a StepPlan,
        /// Phase.
        phase: Phase,
    },
    /// A second is over.
    Interval {
        /// Step.
        step: &'a StepPlan,
        /// What it brought.
        interval: &'a Interval,
    },
}

/// A bench that ran, to its end or not.
#[derive(Debug)]
pub struct Ended {
    /// Its summary.
    pub summary: Summary,
    /// Why it broke off, when neither the plan nor the user ended it.
    pub broke_off: Option<String>,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Guards and prepares, without load.
///
/// # Errors
/// [`RunError`]; tables that are half made are marked as such.
pub fn prepare(
    resolved: &Resolved,
    work: &Work,
    target: &ConnectOptions,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Prepared, RunError> {
    let mut client = Client::connect(target).map_err(RunError::wire("connecting"))?;
    guard_tables(resolved, work, &mut client)?;
    fill(work, target, stop, watch)
}

/// Refuses what the guard does not let through.
fn guard_tables(resolved: &Resolved, work: &Work, client: &mut Client) -> Result<(), RunError> {
    let missing = work.tables.existing(client)?.is_none();
    let needs = Needs {
        statements: work.statements(),
        writes: work.writes() || missing,
        disk_bytes: if missing { work.tables.size_bytes() } else { 0 },
    };
    let found = guard::look(client).map_err(RunError::wire("looking at the server"))?;
    let reasons = guard::judge(&resolved.plan, &needs, &found);
    if reasons.is_empty() { Ok(()) } else { Err(RunError::Guarded(reasons)) }
}

fn fill(
    work: &Work,
    target: &ConnectOptions,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Prepared, RunError> {
    let connect = || Client::connect(target);
    let mut progress = |p: prepare::Progress| watch(Progress::Preparing { rows: p.rows, of: p.of });
    let prepared = work.tables.prepare(&connect, FILLERS, stop, &mut progress)?;
    watch(Progress::Ready(prepared));
    Ok(prepared)
}

/// Guards, prepares, runs, records and summarises.
///
/// # Errors
/// [`RunError`] when nothing was measured, or the record could not be written. A server that is lost in mid-run is no
/// error here: the record is kept, and [`Ended::broke_off`] says why.
pub fn bench(
    bench: &Bench<'_>,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Ended, RunError> {
    let tables = &bench.work.tables;
    let mut client = Client::connect(bench.target).map_err(RunError::wire("connecting"))?;
    guard_tables(bench.resolved, bench.work, &mut client)?;
    if bench.prepare {
        fill(bench.work, bench.target, stop, watch)?;
    }
    let data = tables.require(&mut client)?;
    let facts = collect(&mut client);
    let clock = Clock::start();
    let manifest = manifest(bench, &facts, &clock, &data.fingerprint, data.used);
    let mut writer = Writer::create(&bench.folder, &manifest, &facts)?;
    if bench.work.writes() {
        tables.note_use(&mut client, &data)?;
    }
    let server_pid = client.peer_pid();
    drop(client);
    let how = observed_steps(bench, &clock, &mut writer, server_pid, stop, watch)?;
    finish(&bench.folder, writer, &clock, how)
}

fn collect(client: &mut Client) -> FactSet {
    let server_pid = client.peer_pid();
    mydyno_observe::collect(&Source::live(), Some(client), server_pid)
}

fn manifest(bench: &Bench<'_>, facts: &FactSet, clock: &Clock, data: &str, used: bool) -> Manifest {
    let source = facts.text("host.clock.source").map(str::to_owned);
    Manifest {
        header: Header::of::<Manifest>(OffsetDateTime::now_utc()),
        run: bench.run.clone(),
        plan: bench.resolved.plan.clone(),
        argv: bench.argv.clone(),
        facts_digest: mydyno_observe::digest(facts),
        clock: clock.describe(source),
        fingerprint: Fingerprint {
            // Rows that a run has changed are no longer those of the seed.
            data: if used { format!("{data}-used") } else { data.to_owned() },
            operations: bench.work.fingerprint(),
        },
        operations: bench.work.operations().to_vec(),
        extra: serde_json::Map::new(),
    }
}

/// How the steps ended.
enum How {
    Complete,
    Interrupted,
    BrokeOff(String),
}

fn observed_steps(
    bench: &Bench<'_>,
    clock: &Clock,
    writer: &mut Writer,
    server_pid: Option<u32>,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<How, RunError> {
    let done = AtomicBool::new(false);
    let (to_writer, samples) = channel();
    std::thread::scope(|scope| {
        if bench.resolved.plan.observe {
            let source = Source::live();
            let mut sampler = Sampler::new(&source, server_pid, &sampling::disks(&source));
            let done = &done;
            scope.spawn(move || sampling::sample_until(done, clock, &mut sampler, &to_writer));
        } else {
            drop(to_writer);
        }
        let how = steps(bench, clock, writer, &samples, stop, watch);
        done.store(true, Ordering::Release);
        // The last sample comes after the last interval; the sampler hangs up behind it.
        for sample in &samples {
            writer.sample(sample)?;
        }
        how
    })
}

fn steps(
    bench: &Bench<'_>,
    clock: &Clock,
    writer: &mut Writer,
    samples: &Receiver<Sample>,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<How, RunError> {
    let plan = &bench.resolved.plan;
    let phases = phases(plan);
    let mut target = bench.target.clone();
    target.database = Some(plan.database.clone());
    let connect = || Client::connect(&target);
    for (number, step) in plan.steps.iter().enumerate() {
        let mut failure = None;
        let mut sink = |event: StepEvent| {
            let written = record(bench, number, step, event, clock, writer, samples, watch);
            if let Err(error) = written {
                failure.get_or_insert(error);
                stop.store(true, Ordering::Relaxed);
            }
        };
        let end = bench.work.run(clock, number, step, phases, &connect, stop, &mut sink);
        if let Some(error) = failure {
            return Err(error);
        }
        match end {
            Err(mydyno_load::LoadError::Interrupted) | Ok(End::Interrupted) => {
                writer.event(clock.now_s(), EventKind::Interrupted)?;
                return Ok(How::Interrupted);
            }
            // The first step that cannot start is an error of the plan or the server; later ones keep what was
            // measured.
            Err(error) if number == 0 => return Err(error.into()),
            Err(error) => return Ok(How::BrokeOff(error.to_string())),
            Ok(End::AllLost { why }) => {
                return Ok(How::BrokeOff(format!("every connection to the server was lost: {why}")));
            }
            Ok(End::Hopeless) => {
                return Ok(How::BrokeOff(
                    "one transaction after the other failed: the errors by code say why".to_owned(),
                ));
            }
            Ok(End::Complete { unanswered, lost }) => {
                for warning in after_step(unanswered, lost) {
                    writer.event(clock.now_s(), EventKind::Warning(warning.at_step(number)))?;
                }
            }
        }
    }
    Ok(How::Complete)
}

fn phases(plan: &Plan) -> Phases {
    let Warmup::Fixed { time_s: warmup_s } = plan.warmup;
    Phases { warmup: Duration::from_secs_f64(warmup_s), measure: Duration::from_secs_f64(plan.time_s) }
}

fn after_step(unanswered: usize, lost: usize) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if unanswered > 0 {
        warnings.push(Warning::new(
            "unanswered",
            format!("{unanswered} transaction(s) had no answer ten seconds after the end and are in no histogram"),
            "look for locks that are held, or a server that hangs; the true tail is longer than the shown one",
        ));
    }
    if lost > 0 {
        warnings.push(Warning::new(
            "connections-lost",
            format!("{lost} connection(s) were lost on the way and not opened again: load fell by as much"),
            "look into the server's error log, and at wait_timeout and max_allowed_packet",
        ));
    }
    warnings
}

#[allow(clippy::too_many_arguments)]
fn record(
    bench: &Bench<'_>,
    number: usize,
    step: &StepPlan,
    event: StepEvent,
    clock: &Clock,
    writer: &mut Writer,
    samples: &Receiver<Sample>,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<(), RunError> {
    while let Ok(sample) = samples.try_recv() {
        writer.sample(sample)?;
    }
    match event {
        StepEvent::Connected { done, of } => watch(Progress::Connecting { step, done, of }),
        StepEvent::Phase(phase, at_s) => {
            writer.event(at_s, EventKind::Phase { step: number, phase })?;
            watch(Progress::Phase { number, step, phase });
        }
        StepEvent::Error(error, at_s) => {
            let operation = bench.work.operations().get(error.operation).map_or("", |o| o.name.as_str());
            writer.event(
                at_s.min(clock.now_s()),
                EventKind::Error {
                    step: number,
                    code: error.code.to_string(),
                    sqlstate: error.sqlstate,
                    message: error.message,
                    operation: operation.to_owned(),
                },
            )?;
        }
        StepEvent::Interval(interval) => {
            writer.interval(&interval)?;
            watch(Progress::Interval { step, interval: &interval });
        }
    }
    Ok(())
}

fn finish(folder: &Path, mut writer: Writer, clock: &Clock, how: How) -> Result<Ended, RunError> {
    let (text, broke_off, interrupted) = match how {
        How::Complete => ("complete".to_owned(), None, false),
        How::Interrupted => ("interrupted".to_owned(), None, true),
        How::BrokeOff(why) => (why.clone(), Some(why), false),
    };
    writer.end(clock.now_s(), &text)?;
    // Derived from what was written, so that it is what any reader derives.
    let record = crate::folder::read(folder)?;
    let summary = summarise(&record, OffsetDateTime::now_utc());
    writer.summary(&summary)?;
    Ok(Ended { summary, broke_off, interrupted })
}
