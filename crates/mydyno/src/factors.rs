//! Several factors in one experiment: the options of `compare` for them, the plan in words, progress, the result.

use std::path::{Path, PathBuf};

use mydyno_host::setting::AllowHostChange;
use mydyno_model::Document;
use mydyno_model::experiment::Finding;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::factorial::Factorial;
use mydyno_model::experiment::proved::Proved;
use mydyno_model::units::show_bytes;
use mydyno_prove::factorial::analyse;
use mydyno_prove::factorial::design::{self, FactorLevels, FactorialRequest, Planned};
use mydyno_prove::factorial::execute::{Progress, RunOptions};
use mydyno_prove::ledger;
use mydyno_stats::two_level::Family;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::proving::{ProvingArgs, command, failure, folder_name, host_lines, minutes, usage};
use crate::ui::Ui;
use crate::{private, signals};

/// Options for several factors.
#[derive(Debug, Clone, clap::Args)]
pub struct FactorArgs {
    /// A lever with its low and its high level; repeatable: estimates the effect of each factor and of their
    /// interactions.
    #[arg(
        long,
        value_name = "LEVER=LOW,HIGH",
        conflicts_with_all = ["baseline", "treatment", "starts", "fail_if_worse"]
    )]
    pub factor: Vec<String>,
    /// The combinations of the factors' levels [default: full up to 4 factors, fractional up to 11, else screening].
    #[arg(long, value_enum, requires = "factor")]
    pub design: Option<DesignArg>,
    /// Runs of a fractional or screening design in each block [default: fractional: fewest with resolution IV; screening: fewest].
    #[arg(long, value_name = "N", requires = "factor")]
    pub runs: Option<u16>,
}

/// The kind of design, as typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum DesignArg {
    /// All combinations: 2^k runs.
    Full,
    /// A regular fraction of them: 2^(k-p) runs; each effect is aliased with others.
    Fractional,
    /// Plackett-Burman, 12, 20 or 24 runs: main effects only, aliased in part with interactions.
    Screening,
}

impl From<DesignArg> for Family {
    fn from(design: DesignArg) -> Self {
        match design {
            DesignArg::Full => Self::Full,
            DesignArg::Fractional => Self::Fractional,
            DesignArg::Screening => Self::Screening,
        }
    }
}

impl FactorArgs {
    /// The factors; mistakes go to `problems`.
    pub fn factors(&self, problems: &mut Vec<String>) -> Vec<FactorLevels> {
        if self.factor.len() == 1 {
            problems
                .push("--factor: give two or more; for one lever use --baseline and --treatment".to_owned());
        }
        let parsed = self.factor.iter().map(|text| design::parse(text));
        parsed.filter_map(|factor| factor.map_err(|e| problems.push(e.to_string())).ok()).collect()
    }
}

/// Prints the plan and, unless only the plan is requested, runs the experiment and prints its result.
///
/// # Errors
/// Mistakes of the plan; as [`Planned::run`].
pub fn carry_out(wanted: &FactorialRequest, args: &ProvingArgs, ui: &Ui) -> Result<Status, Failure> {
    let planned = Planned::plan(wanted, OffsetDateTime::now_utc()).map_err(usage)?;
    measure(&planned, args, None, ui)
}

/// Resumes the interrupted experiment of a folder.
///
/// # Errors
/// As [`carry_out`].
pub fn resume(folder: &PathBuf, args: &ProvingArgs, ui: &Ui) -> Result<Status, Failure> {
    let planned = Planned::resume(folder, OffsetDateTime::now_utc()).map_err(usage)?;
    measure(&planned, args, Some(folder), ui)
}

fn measure(
    planned: &Planned,
    args: &ProvingArgs,
    resume: Option<&PathBuf>,
    ui: &Ui,
) -> Result<Status, Failure> {
    let now = OffsetDateTime::now_utc();
    let document = &planned.document;
    for (price, level) in document.factors.iter().flat_map(analyse::prices) {
        ui.note(&format!("Price of {level}: {price}"));
    }
    if args.plan {
        match ui.json {
            true => ui.out(&document.to_json()),
            false => plan(planned).iter().for_each(|line| ui.out(line)),
        }
        return Ok(Status::Fine);
    }
    plan(planned).iter().for_each(|line| ui.note(line));
    if !planned.of_the_host.is_empty() && args.allow_host_change {
        let levers = planned.of_the_host.join(", ");
        ui.always(&format!("Changing the whole host until this command ends: {levers}"));
    }
    let stop = signals::stop_flag()?;
    let host = private::open_host("prove")?;
    let folder = resume.or(args.out.as_ref()).cloned();
    let folder = folder.unwrap_or_else(|| host.state.runs().join(folder_name(&document.experiment, now)));
    let options = RunOptions {
        host: &host,
        allow_host_change: args.allow_host_change.then(AllowHostChange::by_the_user),
        folder: folder.clone(),
        resume: resume.is_some(),
        command: Some(command()),
        set_up: host_lines(),
        stop: &stop,
    };
    let mut watch = |progress: Progress<'_>| show(&progress, planned, ui);
    let result = planned.run(&options, &mut watch).map_err(|error| failure(error, Some(&folder), &stop))?;
    keep(&result, &folder, &host, ui);
    match ui.json {
        true => ui.out(&result.to_json()),
        false => ui.out(&mydyno_report::factorial::terminal(&result, ui.color)),
    }
    ui.note(&format!("Kept in {}", folder.display()));
    Ok(status(&result))
}

/// Writes the page beside the document, and the line of the ledger.
fn keep(result: &Factorial, folder: &Path, host: &mydyno_host::Host, ui: &Ui) {
    let page = folder.join("factorial.html");
    if let Err(error) = std::fs::write(&page, mydyno_report::factorial::html(result)) {
        ui.note(&format!("{}: {error}", page.display()));
    }
    let server = result.set_up.first().cloned().unwrap_or_default();
    let proved = Proved::of_factors(
        result,
        verdict(result),
        host_lines().join("; "),
        server,
        folder.display().to_string(),
    );
    let proved = Proved { fingerprint: Some(ledger::fingerprint()), ..proved };
    if let Err(error) = ledger::append(host.state.path(), &proved) {
        ui.always(&format!("The verdict is not in the ledger: {error}"));
    }
}

/// Supported: a main effect acts. Refuted: none does. Undecided: one may.
fn verdict(result: &Factorial) -> Finding {
    let effects = result.responses.iter().take(1).flat_map(|response| &response.effects);
    let main: Vec<Finding> =
        effects.filter(|effect| effect.effect.len() == 1).map(|effect| effect.finding).collect();
    match main.as_slice() {
        all if all.contains(&Finding::Supported) => Finding::Supported,
        [] => Finding::Undecided,
        all if all.iter().all(|finding| *finding == Finding::Refuted) => Finding::Refuted,
        _ => Finding::Undecided,
    }
}

/// The plan in words: design, alias table, servers, duration, disk space, smallest effect, changes of the host.
fn plan(planned: &Planned) -> Vec<String> {
    let document = &planned.document;
    let mut lines = vec![document.question.clone()];
    lines.extend(mydyno_report::factorial::design(document));
    let (runs, rows, slice_s) = (document.runs.len(), document.rows.len(), document.slice_s);
    let blocks =
        format!("{} blocks of {runs} runs in random order, {slice_s} s measured in each", document.blocks);
    lines.push(match document.mode {
        Mode::InPlace => format!("One private server; {blocks}, levers swapped between."),
        Mode::Alternate | Mode::Rows | Mode::Duet => {
            format!("{rows} server starts, one at a time; {blocks}.")
        }
    });
    let disk = show_bytes(planned.disk_bytes() as f64);
    lines.push(format!("It takes about {}, and {disk} of disk.", minutes(planned.takes_s)));
    lines.push(format!(
        "The smallest effect that it can show is about {:.1} %, if equal rows differ by about 5 % as usual.",
        document.smallest_effect * 100.0
    ));
    if planned.crashes() {
        let what = "a server with the levels that have a price crashes, to count the acknowledged commits that are lost";
        lines.push(format!("After the measurement {what}."));
    }
    lines.push(match planned.of_the_host.as_slice() {
        [] => "Nothing of this host is changed.".to_owned(),
        levers => format!("It changes the whole host and puts it back: {}", levers.join(", ")),
    });
    lines
}

fn show(progress: &Progress<'_>, planned: &Planned, ui: &Ui) {
    let of = planned.document.rows.len();
    match progress {
        Progress::Server(what) => private::note(ui, what),
        Progress::Row { run, done } => {
            let signs = planned.document.runs.get(run.row.run).map_or("", String::as_str);
            if let Some(why) = &run.failed {
                ui.note(&format!("Row {done} of {of} (run {signs}) failed: {why}"));
            } else if done % 30 == 0 || planned.document.mode != Mode::InPlace {
                let left_s = planned.takes_s * (1.0 - *done as f64 / of.max(1) as f64);
                ui.note(&format!("Row {done} of {of} (run {signs}); about {} left", minutes(left_s)));
            }
        }
        Progress::Loud(text) => ui.always(text),
    }
}

/// 0: a main effect is decided, in either direction. 1: all are undecided.
fn status(result: &Factorial) -> Status {
    let main = result.responses.iter().take(1).flat_map(|response| &response.effects);
    let decided = |finding: Finding| finding != Finding::Undecided;
    match main.into_iter().any(|effect| effect.effect.len() == 1 && decided(effect.finding)) {
        true => Status::Fine,
        false => Status::Bad,
    }
}
