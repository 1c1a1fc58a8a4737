//! `mydyno compare`: two variants of a private server under the same alternating load, and a verdict; or several
//! factors; or kept runs of two sides.

mod runs;

use mydyno_model::experiment::definition::{LoadDefinition, Mode};
use mydyno_model::experiment::{Asks, LeverLevel};
use mydyno_prove::budget::{START_S, Times};
use mydyno_prove::comparison::{Comparison, ComparisonRequest};
use mydyno_prove::experiment::{DEFAULT_SEED, of_options};
use mydyno_prove::factorial::design as factorial;
use mydyno_prove::side;
use mydyno_stats::two_level::Family;
use time::OffsetDateTime;

use crate::factors::{self, FactorArgs};
use crate::failure::{Failure, Status};
use crate::proving::{ModeArg, ProvingArgs, carry_out, seconds, share, usage};
use crate::ui::Ui;
use crate::workload_args::ComparedWorkloadArgs;

/// Load of two sides that are named without one.
const DEFAULT_WORKLOAD: &str = "oltp_read_write";

/// Defaults of the times.
const BUDGET: &str = "5m";
const SLICE: &str = "1s";
const SETTLE: &str = "250ms";
const WARMUP: &str = "3s";

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Examples:
  mydyno compare oltp_read_write --baseline sync_binlog=1 --treatment sync_binlog=0 --both log_bin=on
  mydyno compare oltp_point_select --baseline mariadb-10.11 --treatment /opt/mariadb-11.4
  mydyno compare oltp_read_only --baseline server.allocator=glibc --treatment server.allocator=jemalloc --budget 10m
  mydyno compare oltp_read_only --factor variable.sort_buffer_size=256K,2M --factor variable.join_buffer_size=256K,2M
  mydyno compare mariadb-10.11 mariadb-11.4      two sides, with oltp_read_write
  mydyno compare RUN-A1 RUN-B1 RUN-A2 RUN-B2     kept runs of two sides, measured in turns

A side is LEVER=VALUE (`mydyno host levers` lists them; a bare name is a server variable), an option file, the base
directory of a server, or an engine. Guide: docs/guides/compare.md";

/// Options of `mydyno compare`.
#[derive(Debug, Clone, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Workload, or the TOML file of a mix; `mydyno workloads` lists them. Or the first of two sides, or of kept runs.
    pub workload: String,
    /// The second side; or the other runs: the first is of the baseline, the next of the treatment, and so on in turns.
    #[arg(value_name = "OTHER", conflicts_with_all = ["baseline", "treatment", "factor"])]
    pub others: Vec<String>,
    /// A setting, option file or server of the baseline; repeatable [default: the server with its defaults].
    #[arg(long, value_name = "SIDE")]
    pub baseline: Vec<String>,
    /// A setting, option file or server of the treatment; repeatable.
    #[arg(long, value_name = "SIDE", required_unless_present_any = ["factor", "others"])]
    pub treatment: Vec<String>,
    #[command(flatten)]
    pub several: FactorArgs,
    /// A setting, option file or server of both sides, or of all runs; repeatable.
    #[arg(long, value_name = "SIDE")]
    pub both: Vec<String>,
    /// Time for the whole comparison.
    #[arg(long, value_name = "DURATION", default_value = BUDGET)]
    pub budget: String,
    /// The smallest effect that matters.
    #[arg(long, value_name = "PERCENT", default_value = "1%")]
    pub delta: String,
    /// Starts of the servers, each with its own memory and data [default: 5, or 3 in a short budget].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(3..=100))]
    pub starts: Option<u16>,
    /// Length of a slice of load on one server.
    #[arg(long, value_name = "DURATION", default_value = SLICE)]
    pub slice: String,
    /// Time cut from the beginning of each slice.
    #[arg(long, value_name = "DURATION", default_value = SETTLE)]
    pub settle: String,
    /// Load on each server after its start.
    #[arg(long, value_name = "DURATION", default_value = WARMUP)]
    pub warmup: String,
    /// Connections that carry load [default: 16].
    #[arg(long, value_name = "N")]
    pub connections: Option<String>,
    /// Transactions a second that arrive, whether answered or not (an open loop): the mean response time, with the wait in
    /// the backlog, then decides in place of throughput [default: a closed loop].
    #[arg(long, value_name = "PER_SECOND", conflicts_with = "factor")]
    pub rate: Option<String>,
    /// Threads of the load generator [default: as `mydyno bench`].
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// How the arms share machine and time [default: alternate; with --factor: in-place where all levers permit it, else rows].
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// Load two arms at the same time, each on half of the CPUs: less noise on a busy host, but it answers another
    /// question. The verdict is labelled "under mutual load".
    #[arg(long, conflicts_with_all = ["mode", "factor"])]
    pub duet: bool,
    #[command(flatten)]
    pub proving: ProvingArgs,
    #[command(flatten)]
    pub options: ComparedWorkloadArgs,
}

/// Compares, or prints the plan.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    if !args.others.is_empty() {
        return of_two(args, ui);
    }
    if !args.several.factor.is_empty() {
        return factors::carry_out(&of_factors(args)?, &args.proving, ui);
    }
    let comparison = Comparison::plan(&wanted(args)?, OffsetDateTime::now_utc()).map_err(usage)?;
    carry_out(&comparison, &args.proving, None, ui)
}

/// Compares two sides that are named in place of a workload, with [`DEFAULT_WORKLOAD`]; or kept runs.
fn of_two(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let words: Vec<&str> =
        [args.workload.as_str()].into_iter().chain(args.others.iter().map(String::as_str)).collect();
    if let Some(folders) = runs::folders(&words)? {
        let mut problems = without_meaning_for_runs(args);
        let delta = usable(share("delta", &args.delta, &mut problems), problems)?;
        return runs::run(&folders, delta, args.proving.fail_if_worse, ui);
    }
    let [other] = args.others.as_slice() else {
        return Err(Failure::usage(format!(
            "{} words: two are sides, and more are kept runs, of which none is there (`mydyno runs` lists them)",
            words.len()
        )));
    };
    let (baseline, treatment) = (vec![args.workload.clone()], vec![other.clone()]);
    let args = Args {
        workload: DEFAULT_WORKLOAD.to_owned(),
        others: Vec::new(),
        baseline,
        treatment,
        ..args.clone()
    };
    run(&args, ui)
}

/// A problem for each option that says how to measure, which kept runs have done.
fn without_meaning_for_runs(args: &Args) -> Vec<String> {
    let proving = &args.proving;
    let given = [
        ("both", !args.both.is_empty()),
        ("budget", args.budget != BUDGET),
        ("slice", args.slice != SLICE),
        ("settle", args.settle != SETTLE),
        ("warmup", args.warmup != WARMUP),
        ("starts", args.starts.is_some()),
        ("connections", args.connections.is_some()),
        ("rate", args.rate.is_some()),
        ("workers", args.workers.is_some()),
        ("mode", args.mode.is_some()),
        ("duet", args.duet),
        ("plan", proving.plan),
        ("out", proving.out.is_some()),
        ("seed", proving.seed.is_some()),
        ("allow-host-change", proving.allow_host_change),
    ];
    let options = args.options.0.iter().map(|(name, _)| name.as_str());
    let given = given.into_iter().filter_map(|(name, given)| given.then_some(name)).chain(options);
    given.map(|name| format!("--{name}: kept runs are measured already; leave it out")).collect()
}

/// The options that comparisons of two sides and of several factors share.
struct Shared {
    load: LoadDefinition,
    set_up: Vec<LeverLevel>,
    times: Times,
    budget_s: f64,
    delta: f64,
    /// The default seed of the load, so that one seed determines the whole comparison.
    seed: u64,
}

fn shared(args: &Args, problems: &mut Vec<String>) -> Shared {
    let set_up = sides(&args.both, problems);
    let times = Times {
        slice_s: seconds("slice", &args.slice, 0.2, problems),
        settle_s: seconds("settle", &args.settle, 0.0, problems),
        warmup_s: seconds("warmup", &args.warmup, 0.0, problems),
        start_s: START_S,
        set_up_s: 0.0,
        further_arms: 0,
    };
    let budget_s = seconds("budget", &args.budget, 1.0, problems);
    let delta = share("delta", &args.delta, problems);
    let mut number = |option: &str, text: &Option<String>| {
        let number = text.as_ref()?.trim().parse::<u32>();
        let problem = format!("--{option}: one number: a comparison measures one point");
        number.map_err(|_| problems.push(problem)).ok()
    };
    let (connections, workers) = (number("connections", &args.connections), number("workers", &args.workers));
    let load = LoadDefinition {
        probe: None,
        workload: args.workload.clone(),
        options: of_options(&args.options.0),
        connections,
        workers,
        rate: args.rate.as_ref().and_then(|rate| per_second(rate, problems)),
        database: None,
        seed: args.proving.seed,
    };
    Shared { load, set_up, times, budget_s, delta, seed: args.proving.seed.unwrap_or(DEFAULT_SEED) }
}

/// Arrivals a second: a number above 0.
fn per_second(text: &str, problems: &mut Vec<String>) -> Option<f64> {
    let rate = text.trim().parse().ok().filter(|rate: &f64| rate.is_finite() && *rate > 0.0);
    if rate.is_none() {
        problems.push(format!("--rate: {text} is no number of transactions a second above 0"));
    }
    rate
}

fn sides(texts: &[String], problems: &mut Vec<String>) -> Vec<LeverLevel> {
    let parsed = texts.iter().map(|text| side::parse(text));
    parsed.filter_map(|side| side.map_err(|e| problems.push(e.to_string())).ok()).collect()
}

fn usable<T>(wanted: T, problems: Vec<String>) -> Result<T, Failure> {
    if problems.is_empty() { Ok(wanted) } else { Err(Failure { status: Status::Usage, problems }) }
}

fn wanted(args: &Args) -> Result<ComparisonRequest, Failure> {
    let mut problems: Vec<String> = Vec::new();
    let (baseline, treatment) = (sides(&args.baseline, &mut problems), sides(&args.treatment, &mut problems));
    let Shared { load, set_up, times, budget_s, delta, seed } = shared(args, &mut problems);
    let wanted = ComparisonRequest {
        name: format!("compare-{}", args.workload),
        question: None,
        claim: None,
        load,
        jobs: Vec::new(),
        baseline,
        treatment,
        set_up,
        curve: None,
        equal_arms: false,
        mode: match args.duet {
            true => Mode::Duet,
            false => Mode::from(args.mode.unwrap_or(ModeArg::Alternate)),
        },
        // The throughput of an open loop is the rate.
        response: if args.rate.is_some() { "response_mean" } else { "" }.to_owned(),
        asks: Asks::Differs,
        delta,
        budget_s,
        starts: args.starts.map(usize::from),
        times,
        seed,
        published: Vec::new(),
        stand_in: None,
    };
    usable(wanted, problems)
}

fn of_factors(args: &Args) -> Result<factorial::FactorialRequest, Failure> {
    let mut problems: Vec<String> = Vec::new();
    let Shared { load, set_up, times, budget_s, delta, seed } = shared(args, &mut problems);
    let factors = args.several.factors(&mut problems);
    let wanted = factorial::FactorialRequest {
        name: format!("compare-{}", args.workload),
        load,
        factors,
        both: set_up,
        family: args.several.design.map(Family::from),
        runs: args.several.runs.map(usize::from),
        mode: args.mode.map(Mode::from),
        delta,
        budget_s,
        times,
        seed,
    };
    usable(wanted, problems)
}
