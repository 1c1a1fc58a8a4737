//! `mydyno checkup`: an audit, then tests of its advice on this host, one by one and together.

mod audited;

use std::path::{Path, PathBuf};
use std::time::Instant;

use mydyno_model::checkup::{Advice, Checkup, Joint, Outcome};
use mydyno_model::experiment::Verdict;
use mydyno_model::experiment::definition::LoadDefinition;
use mydyno_model::{Document, Header};
use mydyno_prove::budget::Times;
use mydyno_prove::checkup::advice::{Candidate, Change, Sorted, sort};
use mydyno_prove::checkup::shape::{TABLES, scaled, shape};
use mydyno_prove::checkup::{Common, JOINT, Shares, TIMES, conclude, cut, experiment, least_s};
use mydyno_prove::comparison::Comparison;
use mydyno_run::Cancel;
use serde_json::{Map, Value};
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::private;
use crate::proving::{self, Measuring, ProvingArgs, folder_name, host_lines, minutes, seconds, share, usage};
use crate::secrets::Password;
use crate::signals;
use crate::target::TargetArgs;
use crate::ui::Ui;

/// Examples for the verb's help.
const EXAMPLES: &str = "\
Examples:
  mydyno checkup -h db1 -u root -p                 audit db1, prove its advice in private servers here
  mydyno checkup --dsn mysql://root@localhost/ --budget 30m --out checkup
  mydyno checkup -S /run/mysqld/mysqld.sock --plan  the advice that would be measured, and how long it takes
  mydyno checkup --sandbox --set innodb_buffer_pool_size=16M

The audited server is only read. Guide: docs/guides/checkup.md";

/// Options of `mydyno checkup`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct Args {
    /// Time for all experiments together.
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    pub budget: String,
    /// The smallest effect that matters.
    #[arg(long, value_name = "PERCENT", default_value = "2%")]
    pub delta: String,
    /// Workload for measuring the advice; one that makes its own tables.
    #[arg(long, value_name = "WORKLOAD", default_value = "oltp_read_write")]
    pub workload: String,
    /// Connections that carry load.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub connections: u32,
    /// Measure only the advice of these claims.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Exclude the advice of these claims.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Length of a slice of load on one server [default: 1s].
    #[arg(long, value_name = "DURATION")]
    pub slice: Option<String>,
    /// Load on each server after its start [default: 3s].
    #[arg(long, value_name = "DURATION")]
    pub warmup: Option<String>,
    /// Seed of rows, operations and the order of slices [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the plan and its duration; measure nothing.
    #[arg(long)]
    pub plan: bool,
    /// Folder for checkup.json, checkup.html, checkup.md and the experiments [default: a new one in the state folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print help.
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    pub help: Option<bool>,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// The numeric options.
struct Limits {
    budget_s: f64,
    delta: f64,
    times: Times,
}

/// Audits, measures, concludes and writes.
pub fn run(args: &Args, password: Password, ui: &Ui) -> Result<Status, Failure> {
    let limits = limits(args)?;
    check_claims(args)?;
    let folder = folder(args)?;
    let stop = signals::stop_flag()?;
    let checked = check(args, &limits, &folder, password, &stop, ui);
    checked.map_err(|failure| private::or_interrupted(failure, &stop))
}

fn check(
    args: &Args,
    limits: &Limits,
    folder: &Path,
    password: Password,
    stop: &Cancel,
    ui: &Ui,
) -> Result<Status, Failure> {
    let began = Instant::now();
    let audited = audited::audit(args, folder, password, stop, ui)?;
    let shaped = shape(&audited.facts.open);
    let mut sorted = sort(&audited.findings, &audited.facts.open);
    sorted.candidates.retain(|candidate| is_chosen(args, &candidate.advice.claim));
    for candidate in &mut sorted.candidates {
        smaller(candidate, shaped.shape.scale);
    }
    let changes: Vec<&Change> = sorted.candidates.iter().map(|candidate| &candidate.change).collect();
    let shares = cut(limits.budget_s, &changes, &limits.times);
    let room = shares.each_s.len();
    let late = sorted.candidates.split_off(room);
    sorted.others.extend(late.into_iter().map(|candidate| Advice {
        why: Some(format!("The budget has room for {room} experiments: a longer --budget, or --only.")),
        ..candidate.advice
    }));
    let load = LoadDefinition {
        probe: None,
        workload: args.workload.clone(),
        options: load_options(&args.workload, shaped.rows),
        connections: Some(args.connections),
        workers: None,
        rate: None,
        database: None,
        seed: args.seed,
    };
    let common = Common {
        load: load.clone(),
        set_up: shaped.set_up.clone(),
        delta: limits.delta,
        times: limits.times,
        seed: args.seed,
    };
    if args.plan {
        plan(&sorted, &shaped.shape.notes, &shares, ui);
        return Ok(Status::Fine);
    }
    make(folder)?;
    shaped.shape.notes.iter().for_each(|note| ui.note(note));
    let proving = Proving { common: &common, folder, stop, ui };
    let mut advice = sorted.others.clone();
    let all = sorted.candidates.len();
    for (place, (candidate, each_s)) in sorted.candidates.iter().zip(&shares.each_s).enumerate() {
        let claim = &candidate.advice.claim;
        ui.note(&format!("{} of {all}: {claim} ({})", place + 1, candidate.advice.changes.join(", ")));
        advice.push(proving.one(candidate, *each_s)?);
    }
    let joint = proving.joint(&advice, &sorted.candidates, shares.joint_s)?;
    let advice = conclude::in_order(advice);
    let violated = audited.findings.counts.get("violated").copied().unwrap_or_default();
    let document = Checkup {
        header: Header::of::<Checkup>(OffsetDateTime::now_utc()),
        answer: conclude::answer(&advice, joint.as_ref(), violated),
        scope: audited.findings.scope,
        host: host_lines(),
        load: load_text(&load, args.connections),
        delta: limits.delta,
        budget_s: limits.budget_s,
        took_s: began.elapsed().as_secs_f64(),
        shape: shaped.shape,
        violated,
        minimal: conclude::minimal(&advice),
        advice,
        joint,
        extra: Map::new(),
    };
    write(folder, &document, ui)?;
    Ok(Status::Fine)
}

/// Parameters that all experiments of a check-up share.
struct Proving<'a> {
    common: &'a Common,
    folder: &'a Path,
    stop: &'a Cancel,
    ui: &'a Ui,
}

impl Proving<'_> {
    /// Measures one piece of advice; an experiment that cannot run is a result too.
    fn one(&self, candidate: &Candidate, budget_s: f64) -> Result<Advice, Failure> {
        let Candidate { advice, change } = candidate;
        match self.measure(&advice.claim, change, budget_s) {
            Ok((verdict, folder)) => {
                self.ui.note(&format!("  {}", verdict.answer));
                Ok(conclude::with_result(advice.clone(), &verdict, &folder))
            }
            Err(failure) if failure.status == Status::Interrupted => Err(failure),
            Err(failure) => {
                let why = failure.problems.join("; ");
                self.ui.note(&format!("  Not measured: {why}"));
                Ok(Advice { why: Some(why), ..advice.clone() })
            }
        }
    }

    /// All gains together against the audited settings, if there are several.
    fn joint(&self, advice: &[Advice], of: &[Candidate], budget_s: f64) -> Result<Option<Joint>, Failure> {
        let gains = conclude::gains(advice);
        if gains.len() < 2 {
            return Ok(None);
        }
        let gained = |candidate: &&Candidate| gains.iter().any(|gain| gain.claim == candidate.advice.claim);
        let change = Change::all(of.iter().filter(gained).map(|candidate| &candidate.change));
        let claims: Vec<String> = gains.iter().map(|advice| advice.claim.clone()).collect();
        self.ui.note(&format!("All {} gains together: {}", claims.len(), claims.join(", ")));
        match self.measure(JOINT, &change, budget_s) {
            Ok((verdict, folder)) => Ok(Some(Joint {
                claims,
                outcome: conclude::outcome(&verdict),
                effect_ratio: verdict.responses.first().map(|response| response.effect_ratio.clone()),
                answer: verdict.answer,
                folder,
            })),
            Err(failure) if failure.status == Status::Interrupted => Err(failure),
            Err(failure) => Ok(Some(Joint {
                claims,
                outcome: Outcome::NotMeasured,
                effect_ratio: None,
                answer: failure.problems.join("; "),
                folder: String::new(),
            })),
        }
    }

    fn measure(&self, name: &str, change: &Change, budget_s: f64) -> Result<(Verdict, String), Failure> {
        let wanted = experiment(self.common, name, change, budget_s);
        let comparison = Comparison::plan(&wanted, OffsetDateTime::now_utc()).map_err(usage)?;
        let folder = self.folder.join(name);
        let how = Measuring { folder: &folder, resume: false, stop: self.stop, purpose: "checkup" };
        let verdict = proving::measure(&comparison, &ProvingArgs::default(), &how, self.ui)?;
        Ok((verdict, folder.display().to_string()))
    }
}

fn limits(args: &Args) -> Result<Limits, Failure> {
    let mut problems = Vec::new();
    let mut times = TIMES;
    if let Some(slice) = &args.slice {
        times.slice_s = seconds("slice", slice, 0.2, &mut problems);
    }
    if let Some(warmup) = &args.warmup {
        times.warmup_s = seconds("warmup", warmup, 0.0, &mut problems);
    }
    // An experiment, and the one on all gains together.
    let budget_s = seconds("budget", &args.budget, 2.0 * least_s(true, &times), &mut problems);
    let delta = share("delta", &args.delta, &mut problems);
    if let Err(error) = mydyno_workload::find(&args.workload) {
        problems.push(format!("--workload: {error}"));
    }
    if problems.is_empty() {
        Ok(Limits { budget_s, delta, times })
    } else {
        Err(Failure { status: Status::Usage, problems })
    }
}

/// The folder of the results; a folder with files is refused.
fn folder(args: &Args) -> Result<PathBuf, Failure> {
    let Some(folder) = &args.out else {
        let state = mydyno_host::StateDir::default_path().map_err(private::environment)?;
        return Ok(state.join("runs").join(folder_name("checkup", OffsetDateTime::now_utc())));
    };
    let used = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
    if used {
        let folder = folder.display();
        return Err(Failure::usage(format!("--out {folder}: it is not empty; name a new folder")));
    }
    Ok(folder.clone())
}

fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).map_err(|e| Failure::environment(format!("{}: {e}", folder.display())))
}

/// Refuses names in `--only` and `--skip` that are no claims.
fn check_claims(args: &Args) -> Result<(), Failure> {
    let claims = super::claims::load(None)?;
    let wrong = args.only.iter().chain(&args.skip).filter_map(|id| claims.find(id).err());
    let problems: Vec<String> = wrong.map(|error| error.to_string()).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure { status: Status::Usage, problems }) }
}

/// Whether `--only` and `--skip` select a claim.
fn is_chosen(args: &Args, claim: &String) -> bool {
    (args.only.is_empty() || args.only.contains(claim)) && !args.skip.contains(claim)
}

/// The change, scaled to the private servers.
fn smaller(candidate: &mut Candidate, scale: f64) {
    for change in &mut candidate.change.levels {
        let name = change.lever.strip_prefix("option.").unwrap_or(&change.lever);
        change.value = scaled(name, &change.value, scale);
    }
    candidate.advice.changes =
        candidate.change.levels.iter().map(|c| format!("{}={}", c.lever, c.value)).collect();
}

/// Options of the workload for the data's size, as far as it has them.
fn load_options(workload: &str, rows: u64) -> indexmap::IndexMap<String, Value> {
    let Ok(spec) = mydyno_workload::find(workload) else { return indexmap::IndexMap::new() };
    let wanted = [("tables", TABLES), ("table-size", rows)];
    let known = |name: &str| spec.options.iter().any(|option| option.name == name);
    wanted.into_iter().filter(|(name, _)| known(name)).map(|(name, n)| (name.to_owned(), n.into())).collect()
}

fn load_text(load: &LoadDefinition, connections: u32) -> String {
    let options: Vec<String> = load.options.iter().map(|(name, value)| format!("{name} {value}")).collect();
    [vec![load.workload.clone(), format!("{connections} connections")], options].concat().join(", ")
}

/// The planned measurements, in words.
fn plan(sorted: &Sorted, notes: &[String], shares: &Shares, ui: &Ui) {
    let mut lines = vec![format!(
        "{} would be measured, and all gains together, at most {}:",
        pieces(sorted.candidates.len()),
        minutes(shares.joint_s)
    )];
    lines.extend(sorted.candidates.iter().zip(&shares.each_s).map(|(candidate, each_s)| {
        let Advice { claim, changes, .. } = &candidate.advice;
        let how = if candidate.change.live.is_some() { "swapped in one server" } else { "servers in turns" };
        format!("  {claim:<26} {}; {how}, at most {}", changes.join(", "), minutes(*each_s))
    }));
    if !sorted.others.is_empty() {
        lines.push("Not measured:".to_owned());
        let why = |advice: &Advice| advice.why.clone().unwrap_or_default();
        lines.extend(sorted.others.iter().map(|advice| format!("  {:<26} {}", advice.claim, why(advice))));
    }
    lines.extend(notes.iter().cloned());
    lines.push("The audited server is only read; private servers are made and taken away here.".to_owned());
    lines.iter().for_each(|line| ui.out(line));
}

fn pieces(n: usize) -> String {
    if n == 1 { "1 piece of advice".to_owned() } else { format!("{n} pieces of advice") }
}

fn write(folder: &Path, document: &Checkup, ui: &Ui) -> Result<(), Failure> {
    for (name, text) in [
        ("checkup.json", document.to_json()),
        ("checkup.html", mydyno_report::checkup::html(document)),
        ("checkup.md", mydyno_report::checkup::markdown(document)),
    ] {
        let path = folder.join(name);
        mydyno_run::writer::write_output(&path, &text).map_err(|e| Failure::environment(e.to_string()))?;
    }
    ui.out(&match ui.json {
        true => document.to_json(),
        false => mydyno_report::checkup::terminal(document, ui.color),
    });
    ui.note(&format!("Kept in {}: checkup.html is the page", folder.display()));
    Ok(())
}
