//! The tables of a workload: guarded, made, checked and dropped. Each operation can be called alone, on a running
//! server.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_model::plan::{Plan, TargetKind};
use mydyno_tables::mark::{DataMark, literal, quoted};
use mydyno_tables::prepare::{self, Prepared};
use mydyno_wire::{Client, ConnectOptions};
use mydyno_workload::Options;

use crate::control::{connect, control};
use crate::error::RunError;
use crate::guard::{self, Found, Needs};
use crate::progress::{Progress, Watch};
use crate::steps::Work;
use crate::users_sql;

/// A workload on a running server.
#[derive(Clone, Copy)]
pub struct LoadSite<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The workload's options.
    pub options: &'a Options,
    /// Its behaviour and tables.
    pub work: &'a Work,
    /// How to reach the server, without a database.
    pub connect: &'a ConnectOptions,
}

/// Guards and makes the tables, without load.
///
/// # Errors
/// [`RunError`]; tables that are half made are marked as such.
pub fn make_tables(
    place: LoadSite<'_>,
    stop: &AtomicBool,
    watch: &mut Watch<'_>,
) -> Result<Prepared, RunError> {
    let mut client = control(place.connect)?;
    place.work.tables.claim(&mut client)?;
    guard_tables(place, &mut client)?;
    fill(place, stop, watch)
}

/// Checks the rows against the mark.
///
/// # Errors
/// Every table that differs, or the reason why that is unknown.
pub fn check_tables(work: &Work, target: &ConnectOptions) -> Result<DataMark, Vec<RunError>> {
    let mut client = control(target).map_err(|e| vec![e])?;
    work.tables.check(&mut client).map_err(|errors| errors.into_iter().map(RunError::from).collect())
}

/// Reads all rows of the tables of a database, so that a server that has just started has them in memory as far as they fit.
///
/// # Errors
/// The server refuses, or `target.cancel` was set.
pub fn read_tables(database: &str, target: &ConnectOptions) -> Result<(), RunError> {
    let mut client = control(target)?;
    let failed = |e| RunError::wire("reading the tables")(e);
    let name = literal(database);
    let all = format!(
        "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_TYPE = 'BASE TABLE' AND TABLE_SCHEMA = {name}"
    );
    let tables = client.query(&all).map_err(failed)?;
    for table in (0..tables.len()).filter_map(|row| tables.text(row, 0)) {
        let whole = format!("CHECKSUM TABLE {}.{}", quoted(database), quoted(&table));
        client.query(&whole).map_err(failed)?;
    }
    Ok(())
}

/// Drops the database that mydyno made; whether there was one.
///
/// # Errors
/// The database is not mydyno's or is in use, or the server refuses.
pub fn drop_tables(work: &Work, target: &ConnectOptions) -> Result<bool, RunError> {
    let mut client = control(target)?;
    work.tables.claim(&mut client)?;
    Ok(work.tables.cleanup(&mut client)?)
}

/// Applies the guard.
pub(crate) fn guard_tables(place: LoadSite<'_>, client: &mut Client) -> Result<Found, RunError> {
    let LoadSite { plan, options, work, .. } = place;
    let missing = work.tables.existing(client)?.is_none();
    let heap_bytes = if missing { work.tables.heap_bytes() } else { Vec::new() };
    let needs = Needs {
        statements: work.statements(),
        writes: work.writes() || missing,
        disk_bytes: if missing { work.tables.disk_bytes() } else { 0 },
        heap_bytes: heap_bytes.iter().copied().max().unwrap_or(0),
        memory_bytes: heap_bytes.iter().sum(),
        engine: options.values().get("storage-engine").and_then(|v| v.as_str()).filter(|_| missing),
        query_bytes: work.longest_query_bytes() as u64,
    };
    let others_matter = plan.target.kind == TargetKind::Server && !plan.allow.load;
    let watch = if others_matter { guard::WATCH } else { Duration::ZERO };
    let found = guard::look(client, watch).map_err(RunError::wire("looking at the server"))?;
    let mut reasons = guard::judge(plan, &needs, &found);
    if let Err(why) = mydyno_load::available(plan.wait.backend) {
        reasons.push(format!("--backend {}: {why}", plan.wait.backend));
    }
    let users = users_sql::Scope {
        database: &plan.database,
        ours: work.tables.is_ours(client)?,
        read_only: work.only_reads_users_tables(),
    };
    reasons.extend(users_sql::unpermitted(work.user_statements(), users, plan.allow.write));
    reasons.extend(users_sql::unwatched(client.server(), users, plan.allow.write));
    if reasons.is_empty() { Ok(found) } else { Err(RunError::Guarded(reasons)) }
}

pub(crate) fn fill(
    place: LoadSite<'_>,
    stop: &AtomicBool,
    watch: &mut Watch<'_>,
) -> Result<Prepared, RunError> {
    let _span = tracing::debug_span!("prepare", fillers = place.work.fillers).entered();
    let open = || connect(place.connect);
    let mut progress =
        |p: prepare::Progress| watch(Progress::Preparing { rows: p.rows, of: p.of, found: p.found });
    let prepared = place.work.tables.prepare(&open, place.work.fillers, stop, &mut progress)?;
    watch(Progress::Ready(prepared));
    Ok(prepared)
}
