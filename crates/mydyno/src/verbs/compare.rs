//! `mydyno compare`: two variants of a private server under the same load, in turns, and a verdict.

use std::path::PathBuf;

use mydyno_model::Document;
use mydyno_model::experiment::{Asks, Finding, LeverLevel, Verdict};
use mydyno_model::units::{parse_duration, parse_share};
use mydyno_prove::alternate::Progress;
use mydyno_prove::budget::{START_S, Times};
use mydyno_prove::comparison::{Comparison, Wanted};
use mydyno_prove::{ProveError, side};
use mydyno_run::request::Machine;
use mydyno_run::{PlanError, Request, Resolved, request};
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;
use crate::workload_args::ComparedWorkloadArgs;
use crate::{private, signals};

/// What to type first.
const EXAMPLES: &str = "\
Examples:
  mydyno compare oltp_read_write --baseline sync_binlog=1 --treatment sync_binlog=0 --both log_bin=on
  mydyno compare oltp_point_select --baseline mariadb-10.11 --treatment /opt/mariadb-11.4
  mydyno compare oltp_read_only --baseline server.allocator=glibc --treatment server.allocator=jemalloc --budget 10m

A side is LEVER=VALUE (`mydyno host levers` lists them; a bare name is a server variable), an option file, the base
directory of a server, or an engine. Guide: docs/guides/compare.md";

/// Seed where none is given: comparisons repeat unless asked otherwise.
const DEFAULT_SEED: u64 = 1;

/// Options of `mydyno compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Workload, or the TOML file of a mix; `mydyno workloads` lists them.
    pub workload: String,
    /// What the baseline has; may be given several times. Without it: the server as it is.
    #[arg(long, value_name = "SIDE")]
    pub baseline: Vec<String>,
    /// What the treatment has; may be given several times.
    #[arg(long, value_name = "SIDE", required = true)]
    pub treatment: Vec<String>,
    /// What both have; may be given several times.
    #[arg(long, value_name = "SIDE")]
    pub both: Vec<String>,
    /// Time for the whole comparison.
    #[arg(long, value_name = "DURATION", default_value = "5m")]
    pub budget: String,
    /// The smallest effect that matters.
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub delta: String,
    /// Starts of the servers, each with memory and data of its own [default: 5, or 3 in a short budget].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(3..=100))]
    pub starts: Option<u16>,
    /// Length of a slice of load on one server.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub slice: String,
    /// What is cut from the beginning of each slice.
    #[arg(long, value_name = "DURATION", default_value = "250ms")]
    pub settle: String,
    /// Load on each server after its start.
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    pub warmup: String,
    /// Connections that carry load [default: 16].
    #[arg(long, value_name = "N")]
    pub connections: Option<String>,
    /// Threads of the load generator [default: as `mydyno bench`].
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// Seed of rows, operations and the order of slices [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print what would be done, how long it takes and what it can show; do nothing.
    #[arg(long)]
    pub plan: bool,
    /// Exit status 1 where the treatment is worse.
    #[arg(long)]
    pub fail_if_worse: bool,
    /// Folder for design, slices and verdict [default: one of its own in the state folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    #[command(flatten)]
    pub options: ComparedWorkloadArgs,
}

/// Compares, or prints what it would do.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let now = OffsetDateTime::now_utc();
    let wanted = wanted(args)?;
    let resolve = |levers: &[(String, String)]| resolve(args, levers);
    let comparison = Comparison::plan(&wanted, &resolve, now).map_err(usage)?;
    for price in comparison.design.arms.iter().flat_map(|arm| &arm.prices) {
        ui.note(&format!("Price: {price}"));
    }
    if args.plan {
        show_plan(&comparison, ui);
        return Ok(Status::Fine);
    }
    ui.note(&comparison.design.question);
    ui.note(&format!("It takes at most {}; Ctrl-C keeps what was measured.", minutes(comparison.takes_s)));
    let stop = signals::stop_flag()?;
    let host = private::open_host("compare")?;
    let folder = match &args.out {
        Some(folder) => folder.clone(),
        None => host.state.runs().join(folder_name(&comparison.design.experiment, now)),
    };
    let mut watch = |progress: Progress<'_>| show(&progress, ui);
    let verdict = comparison.run(&host, None, folder.clone(), &stop, &mut watch).map_err(failure)?;
    if ui.json {
        ui.out(&verdict.to_json());
    } else {
        ui.out(&mydyno_report::verdict::terminal(&verdict, ui.color));
        ui.note(&format!("Kept in {}", folder.display()));
    }
    Ok(status(&verdict, args.fail_if_worse))
}

fn wanted(args: &Args) -> Result<Wanted, Failure> {
    let mut problems: Vec<String> = Vec::new();
    let mut sides = |texts: &[String]| -> Vec<LeverLevel> {
        let parsed: Vec<Result<LeverLevel, ProveError>> =
            texts.iter().map(|text| side::parse(text)).collect();
        parsed.into_iter().filter_map(|side| side.map_err(|e| problems.push(e.to_string())).ok()).collect()
    };
    let (baseline, treatment, set_up) = (sides(&args.baseline), sides(&args.treatment), sides(&args.both));
    let mut seconds = |option: &str, text: &str, fewest_s: f64| {
        let parsed = parse_duration(text).map(|time| time.as_secs_f64());
        match parsed {
            Ok(time_s) if time_s >= fewest_s => time_s,
            Ok(_) => {
                problems.push(format!("--{option}: at least {fewest_s} s"));
                fewest_s
            }
            Err(error) => {
                problems.push(format!("--{option}: {error}"));
                fewest_s
            }
        }
    };
    let budget_s = seconds("budget", &args.budget, 1.0);
    let times = Times {
        slice_s: seconds("slice", &args.slice, 0.2),
        settle_s: seconds("settle", &args.settle, 0.0),
        warmup_s: seconds("warmup", &args.warmup, 0.0),
        start_s: START_S,
    };
    let delta = parse_share(&args.delta).unwrap_or_else(|error| {
        problems.push(format!("--delta: {error}"));
        0.0
    });
    if !problems.is_empty() {
        return Err(Failure { status: Status::Usage, problems });
    }
    Ok(Wanted {
        workload: args.workload.clone(),
        baseline,
        treatment,
        set_up,
        asks: Asks::Differs,
        delta,
        budget_s,
        starts: args.starts.map(usize::from),
        times,
        // The default of the load, so that one seed stands for the whole comparison.
        seed: args.seed.unwrap_or(DEFAULT_SEED),
    })
}

/// The load of an arm: one step whose window is a slice.
fn resolve(args: &Args, levers: &[(String, String)]) -> Result<Resolved, Vec<PlanError>> {
    let request = Request {
        workload: args.workload.clone(),
        options: [args.options.0.as_slice(), levers].concat(),
        connections: args.connections.clone(),
        workers: args.workers.clone(),
        warmup: Some("0s".to_owned()),
        seed: args.seed,
        no_observe: true,
        ..Request::default()
    };
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let machine = Machine { cpus, backend: mydyno_load::cheapest_backend(), session_groups: false };
    let resolved = request::resolve(&request, machine)?;
    if resolved.draft.steps.len() != 1 {
        let problem = "one number: a comparison measures one point".to_owned();
        return Err(vec![PlanError::Value { option: "connections", problem }]);
    }
    Ok(resolved)
}

fn show_plan(comparison: &Comparison, ui: &Ui) {
    if ui.json {
        ui.out(&comparison.design.to_json());
        return;
    }
    let design = &comparison.design;
    ui.out(&design.question);
    for arm in &design.arms {
        ui.out(&format!("  {:<10} {}", arm.role.name(), arm.label()));
    }
    ui.out(&format!(
        "Three private servers at a time, started {} times; {} blocks each, with a slice of {} s for each server.",
        comparison.shape.starts, comparison.shape.blocks_per_start, design.slice_s
    ));
    ui.out(&format!("It takes at most {}. Nothing of this host is changed.", minutes(comparison.takes_s)));
}

fn show(progress: &Progress<'_>, ui: &Ui) {
    match progress {
        Progress::Starting { start, of } => ui.note(&format!("Start {} of {of}: three servers", start + 1)),
        Progress::Server { what, role } => {
            if !matches!(what, mydyno_sandbox::Progress::Found { .. })
                || *role != mydyno_model::experiment::Role::Again
            {
                private::note(ui, what);
            }
        }
        Progress::Slice { slice, done, of } => {
            if let Some(why) = &slice.failed {
                ui.note(&format!("Slice {done} of {of} ({}) failed: {why}", slice.row.arm.name()));
            } else if done % 30 == 0 {
                ui.note(&format!("Slice {done} of {of}"));
            }
        }
        Progress::Loud(text) => private::loud(ui, text),
    }
}

/// 0: the verdict stands. 1: it is undecided, or the treatment is worse and the user wants to hear of it so.
fn status(verdict: &Verdict, fail_if_worse: bool) -> Status {
    let worse = verdict.responses.first().is_some_and(|response| response.effect_ratio.value < 1.0);
    match verdict.verdict {
        Finding::Undecided => Status::Bad,
        Finding::Supported if worse && fail_if_worse => Status::Bad,
        _ => Status::Fine,
    }
}

fn usage(errors: Vec<ProveError>) -> Failure {
    Failure { status: Status::Usage, problems: errors.iter().map(ToString::to_string).collect() }
}

fn failure(error: ProveError) -> Failure {
    let status = match &error {
        ProveError::Interrupted { .. } => Status::Interrupted,
        ProveError::Server { source, .. }
            if matches!(**source, mydyno_sandbox::SandboxError::Interrupted) =>
        {
            Status::Interrupted
        }
        _ => Status::Environment,
    };
    Failure { status, problems: error.to_string().lines().map(str::to_owned).collect() }
}

fn minutes(time_s: f64) -> String {
    if time_s < 90.0 { format!("{time_s:.0} s") } else { format!("{:.1} min", time_s / 60.0) }
}

/// As in `20261121-204403-compare-oltp_read_write`.
fn folder_name(experiment: &str, now: OffsetDateTime) -> String {
    let stamp = time::macros::format_description!("[year][month][day]-[hour][minute][second]");
    let clean: String = experiment
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .collect();
    format!("{}-{clean}", now.format(stamp).unwrap_or_default())
}
