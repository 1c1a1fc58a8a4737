//! A bench from the guard to the summary.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use mydyno_facts::Source;
use mydyno_host::emulated::Pace;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet};
use mydyno_model::plan::StepPlan;
use mydyno_model::record::{End, EventKind, Interval, Manifest, Phase};
use mydyno_model::summary::{Fingerprint, Summary};
use mydyno_samples::Sampler;
use mydyno_wire::{Client, Compression, ConnectOptions, Session};
use mydyno_workload::mark::DataMark;
use mydyno_workload::prepare::{self, Prepared};
use time::OffsetDateTime;

use crate::course::{self, How};
use crate::error::RunError;
use crate::guard::{self, Found, Needs};
use crate::recording::Recording;
use crate::request::Resolved;
use crate::sampling;
use crate::steps::Work;
use crate::summarise::summarise;
use crate::users_sql;
use crate::warnings;
use crate::writer::{self, Writer};

/// How long the last questions of a run may take.
const DOUBTS: std::time::Duration = std::time::Duration::from_secs(10);

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
        /// Rows that an earlier prepare has left.
        found: u64,
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
    /// A step is about to begin.
    Step {
        /// Number of the step, from 0.
        number: usize,
        /// Step.
        step: &'a StepPlan,
        /// How many steps came before it.
        before: usize,
        /// How many there are in all; `None` while a search may add some.
        of: Option<usize>,
    },
    /// A step of a search is over.
    Tried {
        /// Step.
        step: &'a StepPlan,
        /// What did not hold; empty when everything did.
        broken: &'a [String],
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
    /// Whether it broke off because of the server's answers: nothing succeeded, or an error that was to end it.
    pub answered_badly: bool,
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
    let mut client = control(target)?;
    work.tables.claim(&mut client)?;
    guard_tables(resolved, work, &mut client)?;
    fill(work, target, stop, watch)
}

/// Checks the rows against the mark.
///
/// # Errors
/// Every table that is not as it should be, or why that could not be found out.
pub fn check(work: &Work, target: &ConnectOptions) -> Result<DataMark, Vec<RunError>> {
    let mut client = control(target).map_err(|e| vec![e])?;
    work.tables.check(&mut client).map_err(|errors| errors.into_iter().map(RunError::from).collect())
}

/// Drops the database that mydyno made; whether there was one.
///
/// # Errors
/// It is somebody's or in use, or what the server said.
pub fn cleanup(work: &Work, target: &ConnectOptions) -> Result<bool, RunError> {
    let mut client = control(target)?;
    work.tables.claim(&mut client)?;
    Ok(work.tables.cleanup(&mut client)?)
}

/// What a server may have set otherwise and control statements rest on. The lock on the database lasts as long as this
/// connection, which is idle while the load runs.
const CONTROL_SESSION: &str = "SET SESSION autocommit = 1, sql_mode = '', wait_timeout = 604800";

/// A connection for control statements, some of which take long.
pub(crate) fn control(target: &ConnectOptions) -> Result<Client, RunError> {
    let mut client = Client::connect(&target.for_long_statements()).map_err(RunError::wire("connecting"))?;
    client.execute(CONTROL_SESSION).map_err(RunError::wire("setting up the session"))?;
    Ok(client)
}

/// Refuses what the guard does not let through.
fn guard_tables(resolved: &Resolved, work: &Work, client: &mut Client) -> Result<Found, RunError> {
    let missing = work.tables.existing(client)?.is_none();
    let heap_bytes = if missing { work.tables.heap_bytes() } else { Vec::new() };
    let needs = Needs {
        statements: work.statements(),
        writes: work.writes() || missing,
        disk_bytes: if missing { work.tables.disk_bytes() } else { 0 },
        heap_bytes: heap_bytes.iter().copied().max().unwrap_or(0),
        memory_bytes: heap_bytes.iter().sum(),
        engine: resolved.options.values().get("storage-engine").and_then(|v| v.as_str()).filter(|_| missing),
        query_bytes: work.longest_query_bytes() as u64,
    };
    let found = guard::look(client).map_err(RunError::wire("looking at the server"))?;
    let mut reasons = guard::judge(&resolved.plan, &needs, &found);
    if let Err(why) = mydyno_load::available(resolved.plan.wait.backend) {
        reasons.push(format!("--backend {}: {why}", resolved.plan.wait.backend));
    }
    let plan = &resolved.plan;
    let place = users_sql::Place {
        database: &plan.database,
        ours: work.tables.is_ours(client)?,
        read_only: work.only_reads_users_tables(),
    };
    reasons.extend(users_sql::unpermitted(work.asked(), place, plan.allow.write));
    reasons.extend(users_sql::unwatched(client.server(), place, plan.allow.write));
    if reasons.is_empty() { Ok(found) } else { Err(RunError::Guarded(reasons)) }
}

fn fill(
    work: &Work,
    target: &ConnectOptions,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Prepared, RunError> {
    let target = target.for_long_statements();
    let connect = || {
        let mut client = Client::connect(&target)?;
        client.execute(CONTROL_SESSION)?;
        Ok(client)
    };
    let mut progress =
        |p: prepare::Progress| watch(Progress::Preparing { rows: p.rows, of: p.of, found: p.found });
    let prepared = work.tables.prepare(&connect, work.fillers, stop, &mut progress)?;
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
    // Before anything is asked of the server: a record that cannot be written is no reason to fill tables.
    let claim = writer::claim(&bench.folder)?;
    let tables = &bench.work.tables;
    let mut client = control(bench.target)?;
    tables.claim(&mut client)?;
    let found = guard_tables(bench.resolved, bench.work, &mut client)?;
    if bench.prepare {
        fill(bench.work, bench.target, stop, watch)?;
    }
    let data = tables.require(&mut client)?;
    users_sql::try_out(&mut client, bench.work.asked(), &bench.resolved.plan.database)?;
    let facts = collect(&mut client);
    let clock = MonotonicClock::start();
    let manifest = manifest(bench, &facts, &clock, &data.fingerprint, data.used);
    let mut writer = Writer::create(claim, &manifest, &facts)?;
    for warning in
        [warnings::of_emulated_disk(&found), warnings::of_delayed_syncs(&found)].into_iter().flatten()
    {
        writer.event(clock.now_s(), EventKind::Warning(warning))?;
    }
    let pace = Pace::of(found.emulated_disks);
    let server_pid = client.peer_pid();
    let noted = if bench.work.writes() { tables.note_use(&mut client, &data) } else { Ok(()) };
    let how = noted
        .map_err(RunError::from)
        .and_then(|()| observed_steps(bench, &manifest, &clock, &mut writer, server_pid, stop, watch));
    // A server that is gone has already ended the run, and one that hangs does not hold up the record's end.
    client.set_read_timeout(Some(DOUBTS));
    for warning in tables.doubts(&mut client).unwrap_or_default().into_iter().chain(pace.warning()) {
        writer.event(clock.now_s(), EventKind::Warning(warning))?;
    }
    drop(client);
    match how {
        Ok(how) => finish(&bench.folder, writer, &clock, how),
        Err(error) => {
            // The record says why it ends; if that cannot be written either, the first error is the one to tell.
            let _ = finish(&bench.folder, writer, &clock, How::BrokeOff(error.to_string()));
            Err(error)
        }
    }
}

fn collect(client: &mut Client) -> FactSet {
    let server_pid = client.peer_pid();
    let mut facts = mydyno_facts::collect(&Source::live(), Some(client), server_pid);
    facts.facts.extend(connection_facts(client.session()));
    facts
}

/// What was agreed on with the server. The connections under load are opened with the same options.
fn connection_facts(session: &Session) -> [(String, Fact); 3] {
    let compression = match session.compression {
        None => "none",
        Some(Compression::Zlib) => "zlib",
        Some(Compression::Zstd) => "zstd",
    };
    let fact = |id: &str, value: &str| (format!("connection.{id}"), Fact::ok(value, "", "handshake"));
    [
        fact("tls", session.tls.as_deref().unwrap_or("none")),
        fact("compression", compression),
        fact("authentication", session.authentication),
    ]
}

fn manifest(bench: &Bench<'_>, facts: &FactSet, clock: &MonotonicClock, data: &str, used: bool) -> Manifest {
    let source = facts.text("host.clock.source").map(str::to_owned);
    Manifest {
        header: Header::of::<Manifest>(OffsetDateTime::now_utc()),
        run: bench.run.clone(),
        plan: bench.resolved.plan.clone(),
        argv: bench.argv.clone(),
        facts_digest: mydyno_facts::digest(facts),
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

fn observed_steps(
    bench: &Bench<'_>,
    manifest: &Manifest,
    clock: &MonotonicClock,
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
        let mut recording = Recording::new(bench, manifest, clock, &mut *writer, &samples, watch);
        let how = course::run(&mut recording, stop);
        done.store(true, Ordering::Release);
        // The last sample comes after the last interval; the sampler hangs up behind it.
        for sample in &samples {
            writer.sample(sample)?;
        }
        how
    })
}

fn finish(folder: &Path, mut writer: Writer, clock: &MonotonicClock, how: How) -> Result<Ended, RunError> {
    let interrupted = matches!(how, How::Interrupted);
    let answered_badly = matches!(how, How::AnsweredBadly(_));
    let broke_off = match how {
        How::Complete | How::Interrupted => None,
        How::AnsweredBadly(why) | How::BrokeOff(why) => Some(why),
    };
    let end = match &broke_off {
        Some(why) => End::BrokeOff(why.clone()),
        None if interrupted => End::Interrupted,
        None => End::Complete,
    };
    writer.end(clock.now_s(), end)?;
    // Derived from what was written, so that it is what any reader derives.
    let record = crate::folder::read(folder)?;
    let summary = summarise(&record, OffsetDateTime::now_utc());
    writer.summary(&summary)?;
    Ok(Ended { summary, broke_off, answered_badly, interrupted })
}
