//! The parts that `compare` and `prove` share: progress, the plan in words, the verdict, exit statuses.

use std::path::{Path, PathBuf};

use mydyno_host::StateDir;
use mydyno_host::setting::AllowHostChange;
use mydyno_linux::Root;
use mydyno_model::Document;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::proved::Proved;
use mydyno_model::experiment::{Finding, Role, Verdict};
use mydyno_model::finding::Findings;
use mydyno_model::units::{parse_duration, parse_share, show_bytes};
use mydyno_prove::ProveError;
use mydyno_prove::comparison::{Comparison, RunOptions};
use mydyno_prove::execute::Progress;
use mydyno_prove::ledger;
use mydyno_run::Cancel;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::ui::Ui;
use crate::{private, signals};

/// Options of the execution, for `compare` and `prove`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ProvingArgs {
    /// Seed of rows, operations and the order of slices [default: 1].
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Print the plan, its duration and the smallest detectable effect; do nothing else.
    #[arg(long)]
    pub plan: bool,
    /// Exit status 1 where the treatment is worse.
    #[arg(long)]
    pub fail_if_worse: bool,
    /// Folder for design, slices and verdict [default: one of its own in the state folder].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Permit levers of the whole host; each change is journalled first and restored.
    #[arg(long)]
    pub allow_host_change: bool,
    /// Permission to change variables of the user's server, an option of `prove` only.
    #[arg(skip)]
    pub allow_change: bool,
}

/// How arms share machine and time, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModeArg {
    /// Servers of all arms run together and are loaded alternately.
    Alternate,
    /// One server; levers that take effect while it runs are swapped between slices.
    InPlace,
    /// One server at a time, with a start and fresh data for each row.
    Rows,
}

impl From<ModeArg> for Mode {
    fn from(mode: ModeArg) -> Self {
        match mode {
            ModeArg::Alternate => Self::Alternate,
            ModeArg::InPlace => Self::InPlace,
            ModeArg::Rows => Self::Rows,
        }
    }
}

/// Parses an option that is a duration; a mistake is added to `problems`.
pub fn seconds(option: &str, text: &str, fewest_s: f64, problems: &mut Vec<String>) -> f64 {
    match parse_duration(text).map(|time| time.as_secs_f64()) {
        Ok(time_s) if time_s >= fewest_s => return time_s,
        Ok(_) => problems.push(format!("--{option}: at least {fewest_s} s")),
        Err(error) => problems.push(format!("--{option}: {error}")),
    }
    fewest_s
}

/// Parses an option that is a share; a mistake is added to `problems`.
pub fn share(option: &str, text: &str, problems: &mut Vec<String>) -> f64 {
    parse_share(text).map_err(|error| problems.push(format!("--{option}: {error}"))).unwrap_or(0.0)
}

/// Prints the plan and, unless only the plan is requested, runs the experiment and prints the verdict.
///
/// # Errors
/// As [`Comparison::run`].
pub fn carry_out(
    comparison: &Comparison,
    args: &ProvingArgs,
    resume: Option<&PathBuf>,
    ui: &Ui,
) -> Result<Status, Failure> {
    for price in
        comparison.design.arms.iter().filter(|arm| arm.role != Role::Again).flat_map(|arm| &arm.prices)
    {
        ui.note(&format!("Price: {price}"));
    }
    if args.plan {
        match ui.json {
            true => ui.out(&comparison.design.to_json()),
            false => plan(comparison, args).iter().for_each(|line| ui.out(line)),
        }
        return Ok(Status::Fine);
    }
    plan(comparison, args).iter().for_each(|line| ui.note(line));
    if !comparison.of_the_host.is_empty() && args.allow_host_change {
        let levers = comparison.of_the_host.join(", ");
        ui.always(&format!("Changing the whole host until this command ends: {levers}"));
    }
    let stop = signals::stop_flag()?;
    let folder = match resume.or(args.out.as_ref()) {
        Some(folder) => folder.clone(),
        None => {
            let state = StateDir::default_path().map_err(private::environment)?;
            state.join("runs").join(folder_name(&comparison.design.experiment, OffsetDateTime::now_utc()))
        }
    };
    let how = Measuring { folder: &folder, resume: resume.is_some(), stop: &stop, purpose: "prove" };
    let verdict = measure(comparison, args, &how, ui)?;
    tell(&verdict, ui);
    ui.note(&format!("Kept in {}", folder.display()));
    Ok(status(&verdict, args.fail_if_worse))
}

/// The environment of an experiment.
pub struct Measuring<'a> {
    /// Folder of its documents.
    pub folder: &'a Path,
    /// Whether the folder contains the beginning of the experiment.
    pub resume: bool,
    /// The user's stop flag.
    pub stop: &'a Cancel,
    /// The command that its journal entries name.
    pub purpose: &'a str,
}

/// Runs an experiment, writes its folder and page, and appends the verdict to the ledger.
///
/// # Errors
/// As [`Comparison::run`].
pub fn measure(
    comparison: &Comparison,
    args: &ProvingArgs,
    how: &Measuring<'_>,
    ui: &Ui,
) -> Result<Verdict, Failure> {
    let host = private::open_host(how.purpose)?;
    let folder = how.folder;
    let options = RunOptions {
        host: &host,
        allow_host_change: args.allow_host_change.then(AllowHostChange::by_the_user),
        allow_change: args.allow_change,
        folder: folder.to_owned(),
        resume: how.resume,
        command: Some(command()),
        set_up: host_lines(),
        stop: how.stop,
    };
    let mut watch = |progress: Progress<'_>| show(&progress, comparison, ui);
    let verdict =
        comparison.run(&options, &mut watch).map_err(|error| failure(error, Some(folder), how.stop))?;
    // The server is the first line of the set-up.
    let server = verdict.set_up.first().cloned().unwrap_or_default();
    let proved = Proved::of(&verdict, host_lines().join("; "), server, folder.display().to_string());
    let proved = Proved { fingerprint: Some(ledger::fingerprint()), ..proved };
    if let Err(error) = ledger::append(host.state.path(), &proved) {
        ui.always(&format!("The verdict is not in the ledger: {error}"));
    }
    let page = folder.join("verdict.html");
    if let Err(error) = std::fs::write(&page, mydyno_report::verdict::html(&verdict)) {
        ui.note(&format!("{}: {error}", page.display()));
    }
    Ok(verdict)
}

/// Adds to the findings of an audit of this host the verdicts found here.
pub fn beside(findings: &mut Findings, ui: &Ui) {
    let Ok(Some(state)) = StateDir::default_path().and_then(|path| StateDir::find(&path)) else { return };
    match ledger::read(state.path()) {
        Ok((verdicts, _)) => {
            let server = findings.scope.server.clone();
            ledger::beside(&mut findings.findings, &verdicts, &ledger::fingerprint(), &server);
        }
        Err(error) => ui.note(&format!("The ledger of verdicts is not shown: {error}")),
    }
}

/// Prints a verdict.
pub fn tell(verdict: &Verdict, ui: &Ui) {
    match ui.json {
        true => ui.out(&verdict.to_json()),
        false => ui.out(&mydyno_report::verdict::terminal(verdict, ui.color)),
    }
}

/// The plan in words: changes, duration, disk space, and the smallest detectable effect.
fn plan(comparison: &Comparison, args: &ProvingArgs) -> Vec<String> {
    let (design, shape) = (&comparison.design, comparison.shape);
    let mut lines = vec![design.question.clone()];
    let arms = design.arms.iter().filter(|arm| [Role::Baseline, Role::Treatment].contains(&arm.role));
    lines.extend(arms.map(|arm| format!("  {:<10} {}", arm.role.name(), arm.label())));
    if let Some(curve) = &design.curve {
        let values: Vec<&str> = curve.levels.iter().map(|level| level.value.as_str()).collect();
        lines.push(format!("  {:<10} {}={}", "curve", curve.lever, values.join(", ")));
    }
    let slice_s = design.slice_s;
    lines.push(match design.mode {
        Mode::Alternate => format!(
            "Three private servers at a time, started {} times; {} blocks each, with a slice of {slice_s} s for each server.",
            shape.starts, shape.blocks_per_start
        ),
        Mode::Duet => format!(
            "Three private servers at a time, started {} times; {} blocks each, in each of which two servers are loaded at the same \
             time for {slice_s} s: the effect is one under mutual load.",
            shape.starts, shape.blocks_per_start
        ),
        Mode::InPlace if design.request.probe.is_some() => format!(
            "No server; {} blocks, with a slice of {slice_s} s for each arm, levers swapped between.",
            shape.starts * shape.blocks_per_start
        ),
        Mode::InPlace if design.on_server.is_some() => format!(
            "Your server; {} blocks, with a slice of {slice_s} s for each arm, levers swapped between.",
            shape.starts * shape.blocks_per_start
        ),
        Mode::InPlace => format!(
            "One private server; {} blocks, with a slice of {slice_s} s for each arm, levers swapped between.",
            shape.starts * shape.blocks_per_start
        ),
        Mode::Rows => format!(
            "One private server at a time; {} blocks of {} rows, each with a start of its own and {slice_s} s measured.",
            shape.starts,
            design.arms.len()
        ),
    });
    let disk = show_bytes(comparison.disk_bytes() as f64);
    lines.push(format!("It takes at most {}, and about {disk} of disk.", minutes(comparison.takes_s)));
    if let Some((effect, sd)) = comparison.smallest_effect() {
        let unit = if design.mode == Mode::InPlace { "blocks" } else { "starts" };
        let (effect, sd) = (effect * 100.0, sd * 100.0);
        lines.push(format!(
            "The smallest effect that it can show is about {effect:.1} %, if {unit} differ by {sd:.0} % as usual."
        ));
    }
    if comparison.crashes() {
        let how = if args.allow_host_change {
            "by kill -9 and by a power cut of an emulated disk"
        } else {
            "by kill -9; with --allow-host-change also by a power cut of an emulated disk"
        };
        lines.push(format!(
            "After the measurement a server of the treatment crashes, {how}, to count the acknowledged commits that are lost."
        ));
    }
    if let Some(address) = &design.on_server {
        let changed = match comparison.of_the_server.as_slice() {
            [] => format!("No variable of the server at {address} is changed."),
            changes => format!(
                "It changes variables of the server at {address}, for all its new sessions, and puts them back: {}",
                changes.join("; ")
            ),
        };
        lines.extend([changed, "Tables that it makes there are dropped at the end.".to_owned()]);
        return lines;
    }
    lines.push(match comparison.of_the_host.as_slice() {
        [] => "Nothing of this host is changed.".to_owned(),
        levers => format!("It changes the whole host and puts it back: {}", levers.join(", ")),
    });
    lines
}

fn show(progress: &Progress<'_>, comparison: &Comparison, ui: &Ui) {
    match progress {
        Progress::Starting { start, of } => {
            let probe = comparison.design.request.probe.as_ref().map(|probe| format!("the probe {probe}"));
            let servers =
                match (comparison.design.on_server.as_ref().or(probe.as_ref()), comparison.design.mode) {
                    (Some(place), _) => place,
                    (None, Mode::InPlace) => "one server",
                    (None, Mode::Alternate | Mode::Rows | Mode::Duet) => "three servers",
                };
            ui.note(&format!("Start {} of {of}: {servers}", start + 1));
        }
        Progress::Server { what, role } => {
            if !matches!(what, mydyno_sandbox::Progress::Found { .. }) || *role == Role::Baseline {
                private::note(ui, what);
            }
        }
        Progress::Slice { slice, slices, of } => {
            let done = slices.len();
            if let Some(why) = &slice.failed {
                ui.note(&format!("Slice {done} of {of} ({}) failed: {why}", slice.row.arm.name()));
            } else if done % 30 == 0 || (comparison.design.mode == Mode::Rows && done % 3 == 0) {
                let so_far = mydyno_prove::verdict::effect_so_far(&comparison.design, slices);
                let so_far = so_far.map_or_else(String::new, |ratio| {
                    format!("; effect so far {:+.1} %", (ratio - 1.0) * 100.0)
                });
                let left_s = comparison.takes_s * (1.0 - done as f64 / (*of).max(1) as f64);
                ui.note(&format!("Slice {done} of {of}{so_far}; at most {} left", minutes(left_s)));
            }
        }
        Progress::Loud(text) => ui.always(text),
    }
}

/// 0: the verdict is decided. 1: it is undecided, or the treatment is worse and the user requested this status for it.
pub fn status(verdict: &Verdict, fail_if_worse: bool) -> Status {
    let worse = verdict.responses.first().is_some_and(|response| {
        mydyno_prove::measure::measure(&response.name).is_worse(response.effect_ratio.value)
    });
    match verdict.verdict {
        Finding::Undecided => Status::Bad,
        Finding::Supported if worse && fail_if_worse => Status::Bad,
        _ => Status::Fine,
    }
}

/// Mistakes of a plan.
pub fn usage(errors: Vec<ProveError>) -> Failure {
    Failure {
        status: Status::Usage,
        problems: errors
            .iter()
            .flat_map(|e| e.to_string().lines().map(str::to_owned).collect::<Vec<_>>())
            .collect(),
    }
}

/// The failure of an experiment; `stop` is set when the user ended it, which ends calls of connections too. An
/// interrupted experiment can be resumed in its `folder`, if that is given.
pub fn failure(error: ProveError, folder: Option<&Path>, stop: &Cancel) -> Failure {
    let status = match &error {
        ProveError::Interrupted { .. } => Status::Interrupted,
        ProveError::NotAllowed { .. }
        | ProveError::ChangeNotAllowed { .. }
        | ProveError::WasOnServer { .. } => Status::Usage,
        ProveError::Server { source, .. }
            if matches!(**source, mydyno_sandbox::SandboxError::Interrupted) =>
        {
            Status::Interrupted
        }
        _ => Status::Environment,
    };
    let problems = error.to_string().lines().map(str::to_owned).collect();
    let mut failure = private::or_interrupted(Failure { status, problems }, stop);
    if let (Status::Interrupted, Some(folder)) = (failure.status, folder) {
        failure.problems.push(format!("go on with it: mydyno prove --resume {}", folder.display()));
    }
    failure
}

/// A length of time for people.
pub fn minutes(time_s: f64) -> String {
    if time_s < 90.0 { format!("{time_s:.0} s") } else { format!("{:.1} min", time_s / 60.0) }
}

/// The command as typed, without the folder of its results, which is specific to this host.
pub fn command() -> String {
    let mut words = vec!["mydyno".to_owned()];
    let mut args = std::env::args().skip(1);
    while let Some(word) = args.next() {
        match word.as_str() {
            "--out" | "--resume" => drop(args.next()),
            word if word.starts_with("--out=") || word.starts_with("--resume=") => {}
            _ => words.push(word),
        }
    }
    mydyno_report::verdict::command_line(&words)
}

/// The host in short lines: kernel and CPUs, no names.
pub fn host_lines() -> Vec<String> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    vec![format!("Linux {}, {cpus} CPUs", Root::real().kernel_release())]
}

/// As in `20261121-204403-compare-oltp_read_write`.
pub fn folder_name(experiment: &str, now: OffsetDateTime) -> String {
    let stamp = time::macros::format_description!("[year][month][day]-[hour][minute][second]");
    let clean: String = experiment
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .collect();
    format!("{}-{clean}", now.format(stamp).unwrap_or_default())
}
