//! `mydyno compare`: two variants of a private server under the same load, in turns, and a verdict.

use mydyno_model::experiment::definition::{LoadDefinition, Mode};
use mydyno_model::experiment::{Asks, LeverLevel};
use mydyno_prove::budget::{START_S, Times};
use mydyno_prove::comparison::{Comparison, Wanted};
use mydyno_prove::experiment::{DEFAULT_SEED, of_options};
use mydyno_prove::{ProveError, side};
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::proving::{ModeArg, ProvingArgs, carry_out, seconds, share, usage};
use crate::ui::Ui;
use crate::workload_args::ComparedWorkloadArgs;

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Examples:
  mydyno compare oltp_read_write --baseline sync_binlog=1 --treatment sync_binlog=0 --both log_bin=on
  mydyno compare oltp_point_select --baseline mariadb-10.11 --treatment /opt/mariadb-11.4
  mydyno compare oltp_read_only --baseline server.allocator=glibc --treatment server.allocator=jemalloc --budget 10m

A side is LEVER=VALUE (`mydyno host levers` lists them; a bare name is a server variable), an option file, the base
directory of a server, or an engine. Guide: docs/guides/compare.md";

/// Options of `mydyno compare`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Workload, or the TOML file of a mix; `mydyno workloads` lists them.
    pub workload: String,
    /// A setting, option file or server of the baseline; repeatable. Without it: the server as it is.
    #[arg(long, value_name = "SIDE")]
    pub baseline: Vec<String>,
    /// A setting, option file or server of the treatment; repeatable.
    #[arg(long, value_name = "SIDE", required = true)]
    pub treatment: Vec<String>,
    /// A setting, option file or server of both sides; repeatable.
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
    /// Time that is cut from the beginning of each slice.
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
    /// How the arms share machine and time.
    #[arg(long, value_enum, default_value = "alternate")]
    pub mode: ModeArg,
    #[command(flatten)]
    pub proving: ProvingArgs,
    #[command(flatten)]
    pub options: ComparedWorkloadArgs,
}

/// Compares, or prints what it would do.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let comparison = Comparison::plan(&wanted(args)?, OffsetDateTime::now_utc()).map_err(usage)?;
    carry_out(&comparison, &args.proving, None, ui)
}

fn wanted(args: &Args) -> Result<Wanted, Failure> {
    let mut problems: Vec<String> = Vec::new();
    let mut sides = |texts: &[String]| -> Vec<LeverLevel> {
        let parsed: Vec<Result<LeverLevel, ProveError>> =
            texts.iter().map(|text| side::parse(text)).collect();
        parsed.into_iter().filter_map(|side| side.map_err(|e| problems.push(e.to_string())).ok()).collect()
    };
    let (baseline, treatment, set_up) = (sides(&args.baseline), sides(&args.treatment), sides(&args.both));
    let budget_s = seconds("budget", &args.budget, 1.0, &mut problems);
    let times = Times {
        slice_s: seconds("slice", &args.slice, 0.2, &mut problems),
        settle_s: seconds("settle", &args.settle, 0.0, &mut problems),
        warmup_s: seconds("warmup", &args.warmup, 0.0, &mut problems),
        start_s: START_S,
    };
    let delta = share("delta", &args.delta, &mut problems);
    let mut number = |option: &str, text: &Option<String>| {
        let number = text.as_ref()?.trim().parse::<u32>();
        let problem = format!("--{option}: one number: a comparison measures one point");
        number.map_err(|_| problems.push(problem)).ok()
    };
    let load = LoadDefinition {
        workload: args.workload.clone(),
        options: of_options(&args.options.0),
        connections: number("connections", &args.connections),
        workers: number("workers", &args.workers),
        rate: None,
        database: None,
        seed: args.proving.seed,
    };
    if !problems.is_empty() {
        return Err(Failure { status: Status::Usage, problems });
    }
    Ok(Wanted {
        name: format!("compare-{}", args.workload),
        question: None,
        claim: None,
        load,
        jobs: Vec::new(),
        baseline,
        treatment,
        set_up,
        equal_arms: false,
        mode: Mode::from(args.mode),
        response: String::new(),
        asks: Asks::Differs,
        delta,
        budget_s,
        starts: args.starts.map(usize::from),
        times,
        // The default of the load, so that one seed stands for the whole comparison.
        seed: args.proving.seed.unwrap_or(DEFAULT_SEED),
        published: Vec::new(),
        stand_in: None,
    })
}
