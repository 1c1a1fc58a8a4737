//! `mydyno bench`: load with a complete record.

use std::path::PathBuf;

use clap::ValueEnum;
use mydyno_model::work::TablesReport;
use mydyno_model::{Document, Header};
use mydyno_run::request::Machine;
use mydyno_run::steps::Work;
use mydyno_run::{
    Cancel, PrivateServer, RecordPlan, Request, Resolved, RunError, Target, TrialPlan, Verdict, request,
};
use mydyno_tables::prepare::{PrepareError, Prepared, Tuning};
use time::OffsetDateTime;
use time::macros::format_description;

use crate::failure::{Failure, Status};
use crate::load_args::LoadArgs;
use crate::progress::ProgressDisplay;
use crate::secrets::Password;
use crate::target::{self, TargetArgs};
use crate::ui::Ui;
use crate::workload_args::WorkloadArgs;
use crate::{own_session, private, signals, writing};

/// Examples for the verb's help.
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
    /// Only one step; without it missing tables are made and the load runs.
    #[arg(value_enum)]
    pub step: Option<Step>,
    /// Seed of rows, operations and order [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Database for the tables, made and marked by mydyno [default: mydyno].
    #[arg(long, value_name = "NAME")]
    pub schema: Option<String>,
    /// Connections that fill tables, several per table [default: one per CPU].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub prepare_threads: Option<u16>,
    /// Limit of rows a second while tables are filled [default: no limit].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub prepare_rate: Option<u64>,
    /// Do not sample host and server.
    #[arg(long)]
    pub no_observe: bool,
    /// Do not capture stacks of the server: the record then lacks where the time of statements goes.
    #[arg(long)]
    pub no_profile: bool,
    /// Permit load on a server that others use.
    #[arg(long)]
    pub allow_load: bool,
    /// Permit statements of `sql` and of mixes to write to tables that mydyno did not make.
    #[arg(long)]
    pub allow_write: bool,
    /// Folder for the record [default: a new one in the state folder].
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
    /// Run the load on existing tables.
    Run,
    /// Check the tables' rows.
    Check,
    /// Drop the database that mydyno made.
    Cleanup,
}

/// Runs a bench, or one of its steps.
pub fn run(args: &Args, password: Password, argv: Vec<String>, ui: &Ui) -> Result<Status, Failure> {
    let (target, resolved) = match private::wanted(&args.target, private_name(), ui)? {
        None => {
            let resolved = resolve(args, &[]);
            // All mistakes at once, those of the options and of the plan, before a password is requested.
            let password = match (password, &resolved) {
                (Password::Ask, Err(_)) => Password::NotGiven,
                (password, _) => password,
            };
            let (connect, resolved) = both(target::resolve(&args.target.server, password, ui), resolved)?;
            let resolved =
                if connect.endpoint.is_local() { in_session(args, resolved, ui) } else { resolved };
            (Target::Server(Box::new(connect)), resolved)
        }
        Some((spec, lever_set)) => {
            let data = args.target.data.clone();
            let private = PrivateServer { command: "bench".to_owned(), spec, lever_set, data };
            let target = Target::Private(Box::new(private));
            let resolved = in_session(args, resolve(args, target.workload_options())?, ui);
            if matches!(args.step, Some(step) if step != Step::Run) {
                return Err(Failure::usage(
                    "a private server of --sandbox ends with this command, so single steps make no sense on it: leave the step out, or make a lasting one with `mydyno server up NAME`",
                ));
            }
            (target, resolved)
        }
    };
    // After the session, which starts a process: a process that relays signals must not handle them itself.
    let stop = signals::stop_flag()?;
    let work = work(args, &resolved)?;
    let record = record(args, resolved.spec.name, argv)?;
    let trial = TrialPlan { resolved, work, target, prepare: args.step != Some(Step::Run), record };
    let ended = match args.step {
        None | Some(Step::Run) => load(&trial, &stop, ui),
        Some(Step::Prepare) => prepare(&trial, &stop, ui),
        Some(Step::Check) => check(&trial, &stop, ui),
        Some(Step::Cleanup) => cleanup(&trial, &stop, ui),
    };
    ended.map_err(|failure| private::or_interrupted(failure, &stop))
}

/// A unique name for a private server of one command. The pid alone would not do: in containers it is often 1.
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

/// The plan of a load on this host, in a separate session where that saves wake-ups of the server.
fn in_session(args: &Args, resolved: Resolved, ui: &Ui) -> Resolved {
    let loads = matches!(args.step, None | Some(Step::Run));
    if !(loads && own_session::is_scheduled_as_group()) {
        return resolved;
    }
    let resolved = resolved.in_own_session();
    let Some(nice) = resolved.draft.wait.session_nice else { return resolved };
    match own_session::enter(nice) {
        Ok(()) => resolved,
        Err(why) => {
            ui.note(&format!("the load has no scheduling group of its own, so it takes more CPU: {why}"));
            resolved.without_session()
        }
    }
}

/// The plan, with options of the workload from levers in addition to those of the command line.
fn resolve(args: &Args, levers: &[(String, String)]) -> Result<Resolved, Failure> {
    let request = Request {
        workload: args.workload.clone(),
        options: [args.options.0.as_slice(), levers].concat(),
        seed: args.seed,
        database: args.schema.clone(),
        no_observe: args.no_observe,
        no_profile: args.no_profile,
        allow_load: args.allow_load,
        allow_write: args.allow_write,
        ..args.load.request()
    };
    request::resolve(&request, Machine::here()).map_err(|errors| Failure {
        status: Status::Usage,
        problems: errors.iter().map(ToString::to_string).collect(),
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

/// The folder of the record: a new one in the state folder unless `--out` names one.
fn record(args: &Args, workload: &str, argv: Vec<String>) -> Result<RecordPlan, Failure> {
    let run = run_name(workload);
    let loads = matches!(args.step, None | Some(Step::Run));
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None if loads => default_folder(&run)?,
        None => PathBuf::new(),
    };
    Ok(RecordPlan { run, folder, argv })
}

fn load(trial: &TrialPlan, stop: &Cancel, ui: &Ui) -> Result<Status, Failure> {
    let mut shower =
        ProgressDisplay::new(ui, trial.work.operations().first().map_or("", |o| o.name.as_str()));
    let ended = mydyno_run::trial(trial, stop, &mut |progress| shower.show(&progress))
        .map_err(private::run_failure)?;
    drop(shower);
    let folder = &trial.record.folder;
    writing::show(folder, &ended.summary, ui)?;
    match ended.verdict() {
        Verdict::Fine => Ok(Status::Fine),
        Verdict::Bad(problems) => Err(Failure { status: Status::Bad, problems }),
        Verdict::Interrupted => Ok(Status::Interrupted),
        Verdict::BrokeOff { why, by_answers } => {
            let record = format!("the record of what was measured is in {}", folder.display());
            let status = if by_answers { Status::Bad } else { Status::Environment };
            Err(Failure { status, problems: vec![why, record] })
        }
    }
}

fn prepare(trial: &TrialPlan, stop: &Cancel, ui: &Ui) -> Result<Status, Failure> {
    let mut shower = ProgressDisplay::new(ui, "");
    let prepared = mydyno_run::prepare(trial, stop, &mut |progress| shower.show(&progress))
        .map_err(private::run_failure)?;
    drop(shower);
    if ui.json {
        let made = Some(prepared == Prepared::Made);
        ui.out(&TablesReport { made, ..tables_report(trial) }.to_json());
    }
    ui.note(match prepared {
        Prepared::Made => "The tables are ready.",
        Prepared::Reused => "The tables were there already.",
    });
    Ok(Status::Fine)
}

fn check(trial: &TrialPlan, stop: &Cancel, ui: &Ui) -> Result<Status, Failure> {
    let database = &trial.resolved.draft.database;
    match mydyno_run::check(trial, stop) {
        Ok(data) if ui.json => {
            let (consistent, used) = (Some(true), Some(data.used));
            ui.out(&TablesReport { consistent, used, ..tables_report(trial) }.to_json());
            Ok(Status::Fine)
        }
        Ok(data) => {
            let what = trial.work.tables.shown_by_check(data.used);
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

fn tables_report(trial: &TrialPlan) -> TablesReport {
    let header = Header::of::<TablesReport>(OffsetDateTime::now_utc());
    TablesReport::on(header, &trial.resolved.draft.database)
}

fn cleanup(trial: &TrialPlan, stop: &Cancel, ui: &Ui) -> Result<Status, Failure> {
    let dropped = mydyno_run::cleanup(trial, stop).map_err(private::run_failure)?;
    let database = &trial.resolved.draft.database;
    if ui.json {
        ui.out(&TablesReport { dropped: Some(dropped), ..tables_report(trial) }.to_json());
    }
    ui.note(&if dropped {
        format!("Database {database} is gone.")
    } else {
        format!("There is no database {database}.")
    });
    Ok(Status::Fine)
}

/// As in `20261121-204403-oltp_read_write`.
fn run_name(workload: &str) -> String {
    let stamp = format_description!("[year][month][day]-[hour][minute][second]");
    let now = OffsetDateTime::now_utc().format(stamp).unwrap_or_default();
    format!("{now}-{workload}")
}

fn default_folder(run: &str) -> Result<PathBuf, Failure> {
    let runs = crate::private::open_host("bench")?.state.runs();
    // Two runs of one workload in the same second get different names.
    let names = std::iter::once(run.to_owned()).chain((2..1000).map(|n| format!("{run}-{n}")));
    let free = names.map(|name| runs.join(name)).find(|folder| !folder.exists());
    Ok(free.unwrap_or_else(|| runs.join(run)))
}
