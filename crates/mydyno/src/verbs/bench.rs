//! `mydyno bench`: load with an honest record.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::ValueEnum;
use mydyno_model::plan::TargetKind;
use mydyno_model::summary::{CapacityTrial, StepSummary};
use mydyno_run::request::Machine;
use mydyno_run::steps::Work;
use mydyno_run::{Bench, Ended, Request, Resolved, RunError, request};
use mydyno_wire::{Client, ConnectOptions, WireError};
use mydyno_workload::prepare::{PrepareError, Prepared, Tuning};
use serde_json::json;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::failure::{Failure, Status};
use crate::load_args::LoadArgs;
use crate::progress::Shower;
use crate::secrets::Password;
use crate::target::{self, TargetArgs};
use crate::ui::Ui;
use crate::workload_args::WorkloadArgs;
use crate::{private, signals, writing};

/// What to type first.
const EXAMPLES: &str = "\
Examples:
  mydyno bench oltp_read_write --sandbox --connections 1,4,16,64      how it scales, on a private server
  mydyno bench oltp_point_select -h db1 -u bench -p --rate 2000       response times at 2,000 transactions/s
  mydyno bench oltp_read_write … --find-capacity 'p99<10ms,errors<0.1%'
                                                                      the highest rate that keeps these bounds
  mydyno bench oltp_read_write … --repeat 5 --connections 16,64       differences that outlast five repeats
  mydyno bench oltp_read_write … cleanup                              drop the database that mydyno made

Durations: 250ms, 10s, 2m, 1h; a bare number is seconds. Rates: 200, 200/s, 90/m, 0.5. Guide: docs/guides/bench.md";

/// Options of `mydyno bench`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct Args {
    /// Workload, or the TOML file of a mix; `mydyno workloads` lists them.
    pub workload: String,
    /// One step only; without it tables are made when they are missing, and the load runs.
    #[arg(value_enum)]
    pub step: Option<Step>,
    /// Seed of rows, operations and order [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Database for the tables; mydyno makes and marks it [default: mydyno].
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,
    /// Connections that fill tables, also within one [default: one for each CPU].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub prepare_threads: Option<u16>,
    /// Rows a second at the most while tables are filled [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub prepare_rate: Option<u64>,
    /// Do not sample host and server.
    #[arg(long)]
    pub no_observe: bool,
    /// Load a server that others use.
    #[arg(long)]
    pub allow_load: bool,
    /// Let statements of `sql` and of mixes write where mydyno did not make the tables.
    #[arg(long)]
    pub allow_write: bool,
    /// Folder for the record [default: one of its own in the state folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print help.
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    pub help: Option<bool>,
    #[command(flatten)]
    pub load: LoadArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub options: WorkloadArgs,
}

/// Steps of a bench.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Step {
    /// Make the tables.
    Prepare,
    /// Run the load on tables that are there.
    Run,
    /// Check the tables' rows.
    Check,
    /// Drop the database that mydyno made.
    Cleanup,
}

/// Runs a bench, or one of its steps.
pub fn run(args: &Args, password: Password, argv: Vec<String>, ui: &Ui) -> Result<Status, Failure> {
    let stop = signals::stop_flag()?;
    match private::wanted(&args.target, private_name(), ui)? {
        None => {
            let resolved = resolve(args, TargetKind::Server, &[]);
            // All errors at once: those of the options and those of the plan, before anybody types a password.
            let password = match (password, &resolved) {
                (Password::Ask, Err(_)) => Password::NotGiven,
                (password, _) => password,
            };
            let target = target::resolve(&args.target, password, ui);
            let (mut target, mut resolved) = both(target, resolved)?;
            target.cancel = Some(Arc::clone(&stop));
            resolved.plan.target = target::plan(&target, TargetKind::Server);
            step(args, &resolved, &target, argv, &stop, ui)
        }
        Some((spec, turns)) => {
            let mut resolved = resolve(args, TargetKind::Sandbox, &turns.workload)?;
            if matches!(args.step, Some(step) if step != Step::Run) {
                return Err(Failure::usage(
                    "a private server of --sandbox ends with this command, so single steps make no sense on it: leave the step out, or make a lasting one with `mydyno server up NAME`",
                ));
            }
            private::with_server("bench", &spec, args.target.data.as_deref(), &stop, ui, |server| {
                let mut target = mydyno_sandbox::connect_options(server).map_err(private::failure)?;
                target.cancel = Some(Arc::clone(&stop));
                resolved.plan.target = target::plan(&target, TargetKind::Sandbox);
                if !turns.schema.is_empty() {
                    make_tables(&resolved, &work(args, &resolved)?, &target, &stop, ui)?;
                    change_schema(&turns.schema, &target, ui)?;
                }
                load(args, &resolved, &target, argv, true, &stop, ui)
            })
        }
    }
}

/// A name for a private server of one command. In containers the pid is often 1, so it alone is no name.
fn private_name() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("bench-{}-{:x}", std::process::id(), since.as_nanos() & 0xff_ffff_ffff)
}

fn both<A, B>(a: Result<A, Failure>, b: Result<B, Failure>) -> Result<(A, B), Failure> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => Err(failure),
        (Err(mut first), Err(second)) => {
            first.problems.extend(second.problems);
            Err(first)
        }
    }
}

/// Statements of the lever `schema.statement`, each with what the server warns of: some change less than they say.
fn change_schema(statements: &[String], target: &ConnectOptions, ui: &Ui) -> Result<(), Failure> {
    let mut client = Client::connect(target).map_err(|e| Failure::environment(e.to_string()))?;
    for sql in statements {
        let failed = |e: WireError| Failure::usage(format!("--lever schema.statement={sql}: {e}"));
        client.query(sql).map_err(failed)?;
        let warnings = client.query("SHOW WARNINGS").map_err(failed)?;
        for row in 0..warnings.len() {
            let said = warnings.text(row, 2).unwrap_or_default();
            private::loud(ui, &format!("schema.statement={sql}: the server says: {said}"));
        }
    }
    Ok(())
}

/// The plan, with options of the workload that levers give beside those of the command line.
fn resolve(args: &Args, kind: TargetKind, levers: &[(String, String)]) -> Result<Resolved, Failure> {
    let request = Request {
        workload: args.workload.clone(),
        options: [args.options.0.as_slice(), levers].concat(),
        seed: args.seed,
        database: args.schema.clone(),
        no_observe: args.no_observe,
        allow_load: args.allow_load,
        allow_write: args.allow_write,
        ..args.load.request()
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = Machine { cpus, backend: mydyno_load::cheapest_backend() };
    let unknown = target::unknown(kind);
    request::resolve(&request, unknown, machine, OffsetDateTime::now_utc()).map_err(|errors| Failure {
        status: Status::Usage,
        problems: errors.iter().map(ToString::to_string).collect(),
    })
}

fn step(
    args: &Args,
    resolved: &Resolved,
    target: &ConnectOptions,
    argv: Vec<String>,
    stop: &AtomicBool,
    ui: &Ui,
) -> Result<Status, Failure> {
    let ended = match args.step {
        None => load(args, resolved, target, argv, true, stop, ui),
        Some(Step::Run) => load(args, resolved, target, argv, false, stop, ui),
        Some(Step::Prepare) => prepare(args, resolved, target, stop, ui),
        Some(Step::Check) => check(args, resolved, target, ui),
        Some(Step::Cleanup) => cleanup(args, resolved, target, ui),
    };
    // A signal ends calls of the connection wherever they are; what fails then was interrupted.
    ended.map_err(|failure| match failure.status {
        Status::Environment if stop.load(Ordering::Relaxed) => {
            Failure { status: Status::Interrupted, ..failure }
        }
        _ => failure,
    })
}

fn work(args: &Args, resolved: &Resolved) -> Result<Work, Failure> {
    let mut work = Work::new(resolved).map_err(|errors| Failure {
        status: Status::Usage,
        problems: errors.iter().map(ToString::to_string).collect(),
    })?;
    work.fillers = args.prepare_threads.map_or(work.fillers, usize::from);
    let rows_per_s = args.prepare_rate.map(|rate| rate as f64);
    work.tables = work.tables.tuned(Tuning { rows_per_s, ..Tuning::default() });
    Ok(work)
}

fn load(
    args: &Args,
    resolved: &Resolved,
    target: &ConnectOptions,
    argv: Vec<String>,
    prepare: bool,
    stop: &AtomicBool,
    ui: &Ui,
) -> Result<Status, Failure> {
    let work = work(args, resolved)?;
    let run = run_name(resolved.spec.name);
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => default_folder(&run)?,
    };
    let bench = Bench { resolved, work: &work, target, argv, run, folder: folder.clone(), prepare };
    let mut shower = Shower::new(ui, work.operations().first().map_or("", |o| o.name.as_str()));
    let ended = mydyno_run::bench(&bench, stop, &mut |progress| shower.show(&progress)).map_err(failure)?;
    drop(shower);
    writing::show(&folder, &ended.summary, ui)?;
    verdict(resolved, &ended, &folder)
}

/// The exit status of a bench that ran.
fn verdict(resolved: &Resolved, ended: &Ended, folder: &Path) -> Result<Status, Failure> {
    if ended.interrupted {
        return Ok(Status::Interrupted);
    }
    if let Some(why) = &ended.broke_off {
        let record = format!("what was measured is kept in {}", folder.display());
        let status = if ended.answered_badly { Status::Bad } else { Status::Environment };
        return Err(Failure { status, problems: vec![why.clone(), record] });
    }
    // A search goes where the bounds break; they are asked of the rate that it claims.
    let asked = |s: &&StepSummary| {
        ended.summary.capacity.as_ref().is_none_or(|capacity| {
            let held = |t: &CapacityTrial| t.step == s.step && t.broken.is_empty();
            capacity.rate_per_s.is_some() && s.rate == capacity.rate_per_s && capacity.trials.iter().any(held)
        })
    };
    let steps: Vec<&StepSummary> = ended.summary.steps.iter().filter(asked).collect();
    let mut problems: Vec<String> =
        resolved.bounds.iter().flat_map(|b| steps.iter().filter_map(|s| b.broken_by(s))).collect();
    if let Some(capacity) = &ended.summary.capacity
        && capacity.rate_per_s.is_none()
    {
        problems.push(format!("no rate holds {}: {}", capacity.holds.join(","), capacity.end));
    }
    for step in steps.iter().filter(|s| s.transactions == 0) {
        problems.push(format!("no transaction completed with {} connections", step.connections));
    }
    let measured = |number: &usize| ended.summary.steps.iter().any(|s| s.step == *number);
    for number in (0..resolved.plan.steps.len()).filter(|number| !measured(number)) {
        problems.push(format!("step {} of the plan has no measured window", number + 1));
    }
    if problems.is_empty() { Ok(Status::Fine) } else { Err(Failure { status: Status::Bad, problems }) }
}

fn prepare(
    args: &Args,
    resolved: &Resolved,
    target: &ConnectOptions,
    stop: &AtomicBool,
    ui: &Ui,
) -> Result<Status, Failure> {
    let prepared = make_tables(resolved, &work(args, resolved)?, target, stop, ui)?;
    if ui.json {
        let made = prepared == Prepared::Made;
        ui.out(&json!({"database": resolved.plan.database, "made": made}).to_string());
    }
    ui.note(match prepared {
        Prepared::Made => "The tables are ready.",
        Prepared::Reused => "The tables were there already.",
    });
    Ok(Status::Fine)
}

fn make_tables(
    resolved: &Resolved,
    work: &Work,
    target: &ConnectOptions,
    stop: &AtomicBool,
    ui: &Ui,
) -> Result<Prepared, Failure> {
    let mut shower = Shower::new(ui, "");
    mydyno_run::prepare(resolved, work, target, stop, &mut |progress| shower.show(&progress)).map_err(failure)
}

fn check(args: &Args, resolved: &Resolved, target: &ConnectOptions, ui: &Ui) -> Result<Status, Failure> {
    let work = work(args, resolved)?;
    let database = &resolved.plan.database;
    match mydyno_run::check(&work, target) {
        Ok(data) if ui.json => {
            ui.out(&json!({"database": database, "consistent": true, "used": data.used}).to_string());
            Ok(Status::Fine)
        }
        Ok(data) => {
            let what = work.tables.shown_by_check(data.used);
            ui.out(&format!("{database}: {what}"));
            Ok(Status::Fine)
        }
        Err(errors) => {
            let inconsistent =
                errors.iter().any(|e| matches!(e, RunError::Prepare(PrepareError::Inconsistent { .. })));
            Err(Failure {
                status: if inconsistent { Status::Bad } else { Status::Environment },
                problems: errors.iter().map(ToString::to_string).collect(),
            })
        }
    }
}

fn cleanup(args: &Args, resolved: &Resolved, target: &ConnectOptions, ui: &Ui) -> Result<Status, Failure> {
    let dropped = mydyno_run::cleanup(&work(args, resolved)?, target).map_err(failure)?;
    let database = &resolved.plan.database;
    if ui.json {
        ui.out(&json!({"database": database, "dropped": dropped}).to_string());
    }
    ui.note(&if dropped {
        format!("Database {database} is gone.")
    } else {
        format!("There is no database {database}.")
    });
    Ok(Status::Fine)
}

fn failure(error: RunError) -> Failure {
    let status = match &error {
        RunError::Prepare(PrepareError::Interrupted)
        | RunError::Load(mydyno_load::LoadError::Interrupted) => Status::Interrupted,
        _ => Status::Environment,
    };
    Failure { status, problems: error.to_string().lines().map(str::to_owned).collect() }
}

/// As in `20261121-204403-oltp_read_write`.
fn run_name(workload: &str) -> String {
    let stamp = format_description!("[year][month][day]-[hour][minute][second]");
    let now = OffsetDateTime::now_utc().format(stamp).unwrap_or_default();
    format!("{now}-{workload}")
}

fn default_folder(run: &str) -> Result<PathBuf, Failure> {
    let runs = crate::private::open_host("bench")?.state.runs();
    // Two runs of one workload in one second are told apart.
    let names = std::iter::once(run.to_owned()).chain((2..1000).map(|n| format!("{run}-{n}")));
    let free = names.map(|name| runs.join(name)).find(|folder| !folder.exists());
    Ok(free.unwrap_or_else(|| runs.join(run)))
}
