//! A trial: a plan, a server and a workload, from the guard to the summary.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, PoisonError};

use mydyno_facts::Source;
use mydyno_host::emulated::Pace;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::Header;
use mydyno_model::facts::{Fact, FactSet};
use mydyno_model::plan::Plan;
use mydyno_model::record::{End, EventKind, Manifest};
use mydyno_model::summary::{Fingerprint, Summary};
use mydyno_samples::{Sampler, ServerPid, Stop};
use mydyno_tables::mark::DataMark;
use mydyno_tables::prepare::Prepared;
use mydyno_wire::{Client, Compression, ConnectOptions, Session};
use time::OffsetDateTime;

use crate::beside;
use crate::control::control;
use crate::course::{self, CourseEnd};
use crate::error::RunError;
use crate::guard::room_for_samplers;
use crate::progress::{Progress, Watch};
use crate::recording::Recording;
use crate::request::Resolved;
use crate::sampling::{self, Beside, Counted, Notes};
use crate::server::RealServer;
use crate::stacks::Stacks;
use crate::step::EarlyEnd;
use crate::steps::Work;
use crate::summarise::summarise;
use crate::tables::{LoadSite, check_tables, drop_tables, fill, guard_tables, make_tables};
use crate::target::{Cancel, Target, with_target};
use crate::users_sql;
use crate::warnings;
use crate::writer::{self, Writer};

/// Deadline of the statements at the end of a run.
const LAST_READS: std::time::Duration = std::time::Duration::from_secs(10);

/// The plan of a trial.
pub struct TrialPlan {
    /// The plan without its server.
    pub resolved: Resolved,
    /// Its workload.
    pub work: Work,
    /// The server.
    pub target: Target,
    /// Whether tables are made when they are missing.
    pub prepare: bool,
    /// Where the record goes.
    pub record: RecordPlan,
}

/// The record of a trial.
#[derive(Debug, Clone)]
pub struct RecordPlan {
    /// Name of the run.
    pub run: String,
    /// Folder, which is made.
    pub folder: PathBuf,
    /// The command that repeats the run, without secrets.
    pub argv: Vec<String>,
}

/// A trial that ran, completely or not.
#[derive(Debug)]
pub struct Ended {
    /// Its plan.
    pub plan: Plan,
    /// Its summary.
    pub summary: Summary,
    /// The error that ended it early, apart from the plan and the user.
    pub broke_off: Option<String>,
    /// Whether the server's answers ended it: nothing succeeded, or an error that ends the run.
    pub answered_badly: bool,
    /// Whether the user ended it.
    pub interrupted: bool,
}

/// Runs a trial: makes the server if it is a private one, guards, makes the tables, loads, records and summarises.
///
/// # Errors
/// [`RunError`] when nothing was measured, or the record could not be written. A server that is lost during the run is no
/// error here: the record is kept, and [`Ended::broke_off`] says why.
pub fn trial(trial: &TrialPlan, stop: &Cancel, watch: &mut Watch<'_>) -> Result<Ended, RunError> {
    with_target(&trial.target, stop, watch, |up, watch| {
        let plan = trial.resolved.draft.on(up.plan(), OffsetDateTime::now_utc());
        let place = LoadSite {
            plan: &plan,
            options: &trial.resolved.options,
            work: &trial.work,
            connect: up.connect,
        };
        let statements = trial.target.schema_statements();
        if !statements.is_empty() {
            make_tables(place, stop, watch)?;
            change_schema(statements, up.connect, watch)?;
        }
        measure(trial, place, stop, watch)
    })
}

/// Makes the tables of a trial, without load.
///
/// # Errors
/// [`RunError`]; tables that are half made are marked as such.
pub fn prepare(trial: &TrialPlan, stop: &Cancel, watch: &mut Watch<'_>) -> Result<Prepared, RunError> {
    with_target(&trial.target, stop, watch, |up, watch| {
        let plan = trial.resolved.draft.on(up.plan(), OffsetDateTime::now_utc());
        let place = LoadSite {
            plan: &plan,
            options: &trial.resolved.options,
            work: &trial.work,
            connect: up.connect,
        };
        make_tables(place, stop, watch)
    })
}

/// Checks the rows of a trial's tables against their mark.
///
/// # Errors
/// Every table that differs, or the reason why that is unknown.
pub fn check(trial: &TrialPlan, stop: &Cancel) -> Result<DataMark, Vec<RunError>> {
    let checked =
        with_target(&trial.target, stop, &mut |_| (), |up, _| Ok(check_tables(&trial.work, up.connect)));
    checked.unwrap_or_else(|error| Err(vec![error]))
}

/// Drops the database that mydyno made for a trial; whether there was one.
///
/// # Errors
/// The database is not mydyno's or is in use, or the server refuses.
pub fn cleanup(trial: &TrialPlan, stop: &Cancel) -> Result<bool, RunError> {
    with_target(&trial.target, stop, &mut |_| (), |up, _| drop_tables(&trial.work, up.connect))
}

/// Runs the statements of the lever `schema.statement` and reports the server's warnings: some statements change less
/// than they say.
///
/// # Errors
/// The server refuses one of them, or cannot be reached.
pub fn change_schema(
    statements: &[String],
    connect: &ConnectOptions,
    watch: &mut Watch<'_>,
) -> Result<(), RunError> {
    let mut client = Client::connect(connect).map_err(RunError::wire("connecting"))?;
    for statement in statements {
        let failed = |source| RunError::Schema { statement: statement.clone(), source: Box::new(source) };
        client.query(statement).map_err(failed)?;
        let warnings = client.query("SHOW WARNINGS").map_err(failed)?;
        for row in 0..warnings.len() {
            let reported = warnings.text(row, 2).unwrap_or_default();
            watch(Progress::SchemaWarning { statement, reported: &reported });
        }
    }
    Ok(())
}

/// Measures on a running server, with a record.
fn measure(
    trial: &TrialPlan,
    place: LoadSite<'_>,
    stop: &AtomicBool,
    watch: &mut Watch<'_>,
) -> Result<Ended, RunError> {
    // Before any statement is sent: tables need not be filled if the record cannot be written.
    let claim = writer::claim(&trial.record.folder)?;
    let tables = &trial.work.tables;
    let mut client = control(place.connect)?;
    tables.claim(&mut client)?;
    let found = guard_tables(place, &mut client)?;
    if trial.prepare {
        fill(place, stop, watch)?;
    }
    let data = tables.require(&mut client)?;
    users_sql::try_out(&mut client, trial.work.user_statements(), &place.plan.database)?;
    let facts = collect(&mut client);
    let clock = MonotonicClock::start();
    let manifest = manifest(trial, place.plan, &facts, &clock, &data.fingerprint, data.used);
    let mut writer = Writer::create(claim, &manifest, &facts)?;
    for warning in
        [warnings::of_emulated_disk(&found), warnings::of_delayed_syncs(&found)].into_iter().flatten()
    {
        writer.event(clock.now_s(), EventKind::Warning(warning))?;
    }
    let room = room_for_samplers(place.plan, &found, sampling::CONNECTIONS);
    let pace = Pace::of(found.emulated_disks);
    let observed = Observed { server_pid: client.peer_pid(), room };
    let noted = if trial.work.writes() { tables.note_use(&mut client, &data) } else { Ok(()) };
    let how = noted
        .map_err(RunError::from)
        .and_then(|()| observed_steps(place, &manifest, &clock, &mut writer, observed, stop, watch));
    // The loss of the server has already ended the run, and a server that hangs must not delay the end of the record.
    client.set_read_timeout(Some(LAST_READS));
    for warning in tables.doubts(&mut client).unwrap_or_default().into_iter().chain(pace.warning()) {
        writer.event(clock.now_s(), EventKind::Warning(warning))?;
    }
    drop(client);
    let folder = &trial.record.folder;
    match how {
        Ok(how) => finish(folder, writer, &clock, how, place.plan),
        // Whatever the user's signal cut short, the signal is the reason.
        Err(_) if stop.load(Ordering::Relaxed) => {
            finish(folder, writer, &clock, CourseEnd::EarlyEnd(EarlyEnd::Interrupted), place.plan)
        }
        Err(error) => {
            // The record contains the reason of its end; if that cannot be written either, the first error is reported.
            let _ = finish(
                folder,
                writer,
                &clock,
                CourseEnd::EarlyEnd(EarlyEnd::BrokeOff(error.to_string())),
                place.plan,
            );
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

/// Properties that the handshake negotiated. The connections of the load have the same options.
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

fn manifest(
    trial: &TrialPlan,
    plan: &Plan,
    facts: &FactSet,
    clock: &MonotonicClock,
    data: &str,
    used: bool,
) -> Manifest {
    let source = facts.text("host.clock.source").map(str::to_owned);
    Manifest {
        header: Header::of::<Manifest>(OffsetDateTime::now_utc()),
        run: trial.record.run.clone(),
        plan: plan.clone(),
        argv: trial.record.argv.clone(),
        facts_digest: mydyno_facts::digest(facts),
        clock: clock.describe(source),
        fingerprint: Fingerprint {
            // Rows that a run has changed no longer follow from the seed.
            data: if used { format!("{data}-used") } else { data.to_owned() },
            operations: trial.work.fingerprint(),
        },
        operations: trial.work.operations().to_vec(),
        extra: serde_json::Map::new(),
    }
}

/// The server's properties that the samplers need.
#[derive(Clone, Copy)]
struct Observed {
    /// Its process, where it is visible.
    server_pid: Option<u32>,
    /// Whether it permits one connection more than the load needs.
    room: u64,
}

fn observed_steps(
    place: LoadSite<'_>,
    manifest: &Manifest,
    clock: &MonotonicClock,
    writer: &mut Writer,
    Observed { server_pid, room }: Observed,
    stop: &AtomicBool,
    watch: &mut Watch<'_>,
) -> Result<CourseEnd, RunError> {
    let stop_sampling = Stop::new();
    let (to_writer, samples) = channel();
    let notes = Notes::default();
    let counted = match (place.plan.observe, room) {
        (true, 0) => {
            notes.add(clock.now_s(), "Not sampled: the server's counters: max_connections leaves no room");
            None
        }
        (true, room) => Counted::connect(place.connect, clock, room, &notes),
        (false, _) => None,
    };
    let cancel = counted.as_ref().map(Counted::cancel);
    let no_captures = Arc::new(AtomicBool::new(false));
    let stacks = match (place.plan.profile, server_pid) {
        (true, Some(pid)) => {
            let (heard, clock) = (notes.clone(), *clock);
            let note = move |why| heard.add(clock.now_s(), why);
            Some(Stacks::new(ServerPid::new(Some(pid)), &no_captures, note)?)
        }
        _ => None,
    };
    let all_stacks = stacks.as_ref().map(Stacks::all);
    std::thread::scope(|scope| {
        if place.plan.observe {
            let source = Source::live();
            let mut sampler = Sampler::new(&source, server_pid, &sampling::disks(&source));
            let stop_sampling = &stop_sampling;
            scope.spawn(move || {
                let beside = Beside { server_pid, counted, stacks };
                sampling::sample_until(stop_sampling, clock, &mut sampler, beside, &to_writer);
            });
        } else {
            drop(to_writer);
        }
        let server = RealServer { clock };
        let mut recording = Recording::new(place, manifest, &server, &mut *writer, &samples, watch);
        let how = course::run(&mut recording, stop);
        stop_sampling.set();
        no_captures.store(true, Ordering::Relaxed);
        if let Some(cancel) = cancel {
            cancel.store(true, Ordering::Relaxed);
        }
        // The last sample comes after the last interval; then the sampler closes the channel.
        for sample in &samples {
            writer.sample(sample)?;
        }
        writer.notes(&notes.take());
        if let Some(all) = all_stacks {
            writer.stacks(&all.lock().unwrap_or_else(PoisonError::into_inner));
        }
        how
    })
}

/// Ends the record and derives the summary from it.
pub(crate) fn finish(
    folder: &Path,
    mut writer: Writer,
    clock: &dyn Clock,
    how: CourseEnd,
    plan: &Plan,
) -> Result<Ended, RunError> {
    let interrupted = matches!(how, CourseEnd::EarlyEnd(EarlyEnd::Interrupted));
    let answered_badly = matches!(how, CourseEnd::EarlyEnd(EarlyEnd::AnsweredBadly(_)));
    let broke_off = match how {
        CourseEnd::Complete | CourseEnd::EarlyEnd(EarlyEnd::Interrupted) => None,
        CourseEnd::EarlyEnd(EarlyEnd::AnsweredBadly(why) | EarlyEnd::BrokeOff(why)) => Some(why),
    };
    let end = match &broke_off {
        Some(why) => End::BrokeOff(why.clone()),
        None if interrupted => End::Interrupted,
        None => End::Complete,
    };
    writer.end(clock.now_s(), end)?;
    // The summary is derived from the written record, as by every reader of it.
    let record = crate::folder::read(folder)?;
    let summary = summarise(&record, OffsetDateTime::now_utc());
    writer.summary(&summary)?;
    if let Some(diagnosis) = beside::diagnose_run(&record, OffsetDateTime::now_utc()) {
        writer.diagnosis(&diagnosis)?;
    }
    Ok(Ended { plan: plan.clone(), summary, broke_off, answered_badly, interrupted })
}
