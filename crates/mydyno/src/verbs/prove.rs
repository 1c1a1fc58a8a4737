//! `mydyno prove`: a controlled experiment of the catalogue, of a claim, or of a file.

use std::path::{Path, PathBuf};

use mydyno_host::Machine;
use mydyno_judge::Claims;
use mydyno_model::experiment::definition::{Definition, Mode};
use mydyno_prove::classes::holds_classes;
use mydyno_prove::comparison::{Comparison, ComparisonRequest};
use mydyno_prove::experiment::{Experiment, of_claim, unmet};
use mydyno_prove::factorial::execute::holds_factors;
use mydyno_prove::users_server::OnServer;
use mydyno_prove::verdict::not_testable_here;
use mydyno_sandbox::users_server::UsersServer;
use time::OffsetDateTime;

use super::{builds, experiments};
use crate::factors;
use crate::failure::{Failure, Status};
use crate::proving::{ModeArg, ProvingArgs, carry_out, seconds, share, tell, usage};
use crate::secrets::Password;
use crate::target::{self, ServerArgs, server_options};
use crate::ui::Ui;

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Examples:
  mydyno prove sync-delay --quick
  mydyno prove sort-buffer-size --plan
  mydyno prove sync-binlog-mariadb
  mydyno prove my-experiment.toml --budget 10m --out results
  mydyno prove row-buffer --on-server -h db1 -u root -p --plan        what it would change on your server
  mydyno prove row-buffer --on-server -h db1 -u root -p --allow-change

`mydyno experiments` lists the experiments. Guide: docs/guides/prove.md";

/// Options of `mydyno prove`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES, mut_args(only_on_server))]
pub struct Args {
    /// Experiment, claim, or the TOML file of an experiment.
    #[arg(required_unless_present_any = ["resume", "extend", "again"])]
    pub what: Option<String>,
    /// For an experiment that compares two builds, such as build-compare: the baseline, as LEVER=VALUE, an option file, a base
    /// directory or an engine. Repeatable.
    #[arg(long, value_name = "SIDE")]
    pub baseline: Vec<String>,
    /// The treatment, likewise.
    #[arg(long, value_name = "SIDE")]
    pub treatment: Vec<String>,
    /// Resume the interrupted experiment of a folder, or of a name or number of `mydyno runs`, with the next block of its table.
    #[arg(long, value_name = "RUN", conflicts_with = "what")]
    pub resume: Option<PathBuf>,
    /// Measure the rest of the table of an experiment that was decided early, which narrows its interval.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["what", "resume"])]
    pub extend: Option<PathBuf>,
    /// Repeat the experiment of a folder, in a new folder, and pool both.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["what", "resume", "extend"])]
    pub again: Option<PathBuf>,
    /// The short extent of the experiment, a minute or two (default).
    #[arg(long, conflicts_with = "full")]
    pub quick: bool,
    /// The long extent of the experiment.
    #[arg(long)]
    pub full: bool,
    /// Time for the whole experiment [default: as its file says].
    #[arg(long, value_name = "DURATION")]
    pub budget: Option<String>,
    /// The smallest effect that matters [default: as its file says].
    #[arg(long, value_name = "PERCENT")]
    pub delta: Option<String>,
    /// Starts of the servers [default: as its file says].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub starts: Option<u16>,
    /// Length of the measured part of a slice or row [default: as its file says].
    #[arg(long, value_name = "DURATION")]
    pub slice: Option<String>,
    /// Time cut from the beginning of each slice or row [default: as its file says].
    #[arg(long, value_name = "DURATION")]
    pub settle: Option<String>,
    /// Load on each server after its start [default: as its file says].
    #[arg(long, value_name = "DURATION")]
    pub warmup: Option<String>,
    /// How the arms share machine and time [default: as its file says].
    #[arg(long, value_enum)]
    pub mode: Option<ModeArg>,
    /// One server at a time, with a start and fresh data for each row: short for --mode rows.
    #[arg(long, conflicts_with = "mode")]
    pub rows: bool,
    /// Folder with your own experiments, which replace those with the same name.
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
    /// Load two arms at the same time, each on half of the CPUs: less noise on a busy host, but it answers another
    /// question. The verdict is labelled "under mutual load".
    #[arg(long, conflicts_with_all = ["mode", "rows", "on_server", "resume", "extend", "again"])]
    pub duet: bool,
    /// Run on your own server instead of private ones: its dynamic variables are swapped between slices and restored.
    /// Without --allow-change it only shows the changes.
    #[arg(long, conflicts_with_all = ["starts", "mode", "rows", "extend"])]
    pub on_server: bool,
    /// Permit changes of your server's variables; each old value is journalled first.
    #[arg(long, requires = "on_server")]
    pub allow_change: bool,
    /// Permit load on a server that others use.
    #[arg(long, requires = "on_server")]
    pub allow_load: bool,
    /// Database of your server in which the load makes its tables [default: the experiment's, which is mydyno].
    #[arg(long, value_name = "NAME", requires = "on_server", conflicts_with_all = ["resume", "again"])]
    pub schema: Option<String>,
    /// Print help.
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    pub help: Option<bool>,
    #[command(flatten)]
    pub proving: ProvingArgs,
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Refuses options of the server for an experiment on private ones.
fn only_on_server(arg: clap::Arg) -> clap::Arg {
    let of_server = server_options().iter().any(|option| arg.get_id() == option.as_str());
    if of_server { arg.requires("on_server") } else { arg }
}

/// Runs an experiment, or prints the plan.
pub fn run(args: &Args, password: Password, ui: &Ui) -> Result<Status, Failure> {
    let proving = ProvingArgs { allow_change: args.allow_change, ..args.proving.clone() };
    let now = OffsetDateTime::now_utc();
    let kept = |run: &Option<PathBuf>| run.as_deref().map(super::runs::found).transpose();
    let resume = kept(&args.resume)?;
    if let Some(folder) = resume.as_ref().filter(|folder| holds_factors(folder)) {
        return factors::resume(folder, &proving, ui);
    }
    if let Some(folder) = resume.as_ref().filter(|folder| holds_classes(folder)) {
        return builds::resume(folder, &proving, ui);
    }
    if let Some(folder) = &resume {
        let comparison = place(Comparison::resume(folder, now).map_err(usage)?, args, password, ui)?;
        return carry_out(&comparison, &proving, Some(folder), ui);
    }
    if let Some(folder) = &kept(&args.extend)? {
        let comparison = Comparison::extend(folder, now).map_err(usage)?;
        return carry_out(&comparison, &proving, Some(folder), ui);
    }
    if let Some(folder) = &kept(&args.again)? {
        let comparison = place(Comparison::again(folder, now).map_err(usage)?, args, password, ui)?;
        return carry_out(&comparison, &proving, None, ui);
    }
    let what = args.what.as_deref().unwrap_or_default();
    let experiment = find(what, args)?;
    let definition = &experiment.definition;
    if definition.classes.is_some() {
        return builds::carry_out(&experiment, args, &proving, ui);
    }
    if !args.baseline.is_empty() || !args.treatment.is_empty() {
        let name = &definition.name;
        let problem = format!(
            "--baseline, --treatment: the arms of {name} are in its file; `mydyno compare` takes sides"
        );
        return Err(Failure::usage(problem));
    }
    if !definition.factors.is_empty() {
        return several(&experiment, args, &proving, ui);
    }
    let wanted = wanted(&experiment, args)?;
    let comparison = place(Comparison::plan(&wanted, now).map_err(usage)?, args, password, ui)?;
    let missing = if args.on_server { Vec::new() } else { missing(definition)? };
    if !missing.is_empty() && !args.proving.plan {
        tell(&not_testable_here(&comparison.design, &missing, now), ui);
        return Ok(Status::Fine);
    }
    missing.iter().for_each(|lack| ui.note(&format!("Not testable here: {lack}")));
    carry_out(&comparison, &proving, None, ui)
}

/// Runs an experiment of several factors.
fn several(experiment: &Experiment, args: &Args, proving: &ProvingArgs, ui: &Ui) -> Result<Status, Failure> {
    let definition = &experiment.definition;
    let refused =
        [("--on-server", args.on_server), ("--duet", args.duet), ("--starts", args.starts.is_some())];
    if let Some((option, _)) = refused.iter().find(|(_, given)| *given) {
        let name = &definition.name;
        return Err(Failure::usage(format!(
            "{option}: {name} has several factors, which take no such option"
        )));
    }
    let lacks = missing(definition)?;
    if !lacks.is_empty() && !proving.plan {
        ui.out(&format!("{}: not testable here: {}", definition.name, lacks.join("; ")));
        return Ok(Status::Fine);
    }
    let extent = if args.full { &definition.full } else { &definition.quick };
    let Some(mut wanted) = experiment.factorial(extent) else { return Ok(Status::Fine) };
    let changed = self::wanted(experiment, args)?;
    (wanted.budget_s, wanted.times, wanted.delta) = (changed.budget_s, changed.times, changed.delta);
    (wanted.seed, wanted.load.seed) = (changed.seed, changed.load.seed);
    definition
        .stand_in
        .iter()
        .for_each(|why| ui.note(&format!("A stand-in for the published set-up: {why}")));
    for p in &definition.published {
        ui.note(&format!("Published: {} {} ({}; {})", p.figure, p.unit, p.source, p.conditions));
    }
    factors::carry_out(&wanted, proving, ui)
}

/// The experiment on the user's server, if requested; it connects and changes nothing.
fn place(comparison: Comparison, args: &Args, password: Password, ui: &Ui) -> Result<Comparison, Failure> {
    if !args.on_server {
        return Ok(comparison);
    }
    let connect = target::resolve(&args.server, password, ui)?;
    let unreachable = |error: &dyn std::fmt::Display| Failure::environment(error.to_string());
    let server = UsersServer::new(&connect, target::reach(&args.server, &connect))
        .map_err(|error| unreachable(&error))?;
    let version = server.version().map_err(|error| unreachable(&error))?;
    let on = OnServer { server, connect, version, allow_load: args.allow_load };
    comparison.on_server(on).map_err(usage)
}

/// The experiment of a name or of a file.
fn find(what: &str, args: &Args) -> Result<Experiment, Failure> {
    let path = Path::new(what);
    if what.ends_with(".toml") || path.is_file() {
        let text = mydyno_facts::read_regular(path, experiments::LARGEST_FILE)
            .map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        return Experiment::read(what, &text).map_err(|mistakes| Failure {
            status: Status::Usage,
            problems: mistakes.iter().map(ToString::to_string).collect(),
        });
    }
    let all = experiments::load(args.experiments.as_deref())?;
    let error = match all.find(what) {
        Ok(experiment) => return Ok(experiment.clone()),
        Err(error) => error.to_string(),
    };
    let claims = Claims::embedded().map_err(|e| Failure::environment(e.to_string()))?;
    let Ok(claim) = claims.find(what) else { return Err(Failure::usage(error)) };
    match of_claim(claim, &all) {
        Ok(mut experiment) => {
            experiment.definition.claims = vec![what.to_owned()];
            Ok(experiment)
        }
        Err(why) => Err(Failure::usage(format!("the claim {what} cannot be proved here: {why}"))),
    }
}

/// The experiment with the changes of the command line.
fn wanted(experiment: &Experiment, args: &Args) -> Result<ComparisonRequest, Failure> {
    let definition = &experiment.definition;
    let extent = if args.full { &definition.full } else { &definition.quick };
    let mut wanted = experiment.wanted(extent);
    let mut problems = Vec::new();
    let mut change = |option: &str, text: &Option<String>, fewest_s: f64, value: &mut f64| {
        if let Some(text) = text {
            *value = seconds(option, text, fewest_s, &mut problems);
        }
    };
    change("budget", &args.budget, 1.0, &mut wanted.budget_s);
    change("slice", &args.slice, 0.2, &mut wanted.times.slice_s);
    change("settle", &args.settle, 0.0, &mut wanted.times.settle_s);
    change("warmup", &args.warmup, 0.0, &mut wanted.times.warmup_s);
    if let Some(delta) = &args.delta {
        wanted.delta = share("delta", delta, &mut problems);
    }
    wanted.starts = args.starts.map(usize::from).or(wanted.starts).filter(|_| !args.on_server);
    wanted.mode = match args.rows {
        true => Mode::Rows,
        false if args.on_server => Mode::InPlace,
        false if args.duet => Mode::Duet,
        false => args.mode.map_or(wanted.mode, Mode::from),
    };
    if let Some(seed) = args.proving.seed {
        wanted.seed = seed;
        wanted.load.seed = Some(seed);
    }
    if let Some(schema) = &args.schema {
        wanted.load.database = Some(schema.clone());
    }
    if problems.is_empty() { Ok(wanted) } else { Err(Failure { status: Status::Usage, problems }) }
}

/// Requirements of an experiment that this host does not meet. The servers' data are in the state folder, which may not
/// exist yet.
pub fn missing(definition: &Definition) -> Result<Vec<String>, Failure> {
    let machine = Machine::real().map_err(|e| Failure::environment(e.to_string()))?;
    let state = mydyno_host::StateDir::default_path().map_err(|e| Failure::environment(e.to_string()))?;
    let folder = state.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    Ok(unmet(&definition.needs, &machine, folder))
}
