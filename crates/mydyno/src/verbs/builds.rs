//! Experiments that compare two builds of a server by classes of statements, for `mydyno prove`.

use std::path::Path;
use std::time::Duration;

use mydyno_host::setting::AllowHostChange;
use mydyno_model::Document;
use mydyno_model::experiment::LeverLevel;
use mydyno_model::units::show_bytes;
use mydyno_prove::classes::{ClassesRequest, Planned, Progress, RunOptions};
use mydyno_prove::experiment::{DEFAULT_SEED, Experiment};
use mydyno_prove::side;
use time::OffsetDateTime;

use super::prove::{Args, missing};
use crate::failure::{Failure, Status};
use crate::proving::{ProvingArgs, command, failure, folder_name, host_lines, minutes, seconds, usage};
use crate::ui::Ui;
use crate::{private, signals};

/// The pages beside the document.
const PAGES: [&str; 2] = ["classes.md", "classes.html"];

/// Prints the plan and, unless only the plan is requested, runs the experiment and prints its result.
///
/// # Errors
/// Mistakes of the sides and of the plan; as [`Planned::run`].
pub fn carry_out(
    experiment: &Experiment,
    args: &Args,
    proving: &ProvingArgs,
    ui: &Ui,
) -> Result<Status, Failure> {
    let planned = Planned::plan(&wanted(experiment, args)?, OffsetDateTime::now_utc()).map_err(usage)?;
    if proving.plan {
        match ui.json {
            true => ui.out(&planned.document.to_json()),
            false => plan(&planned).iter().for_each(|line| ui.out(line)),
        }
        return Ok(Status::Fine);
    }
    measure(&planned, proving, None, ui)
}

/// Goes on with the interrupted experiment of a folder.
///
/// # Errors
/// As [`carry_out`].
pub fn resume(folder: &Path, proving: &ProvingArgs, ui: &Ui) -> Result<Status, Failure> {
    let planned = Planned::resume(folder, OffsetDateTime::now_utc()).map_err(usage)?;
    measure(&planned, proving, Some(folder), ui)
}

fn measure(
    planned: &Planned,
    proving: &ProvingArgs,
    resume: Option<&Path>,
    ui: &Ui,
) -> Result<Status, Failure> {
    let now = OffsetDateTime::now_utc();
    let lacks = missing(&planned.document.definition)?;
    if !lacks.is_empty() {
        ui.out(&format!("{}: not testable here: {}", planned.document.experiment, lacks.join("; ")));
        return Ok(Status::Fine);
    }
    plan(planned).iter().for_each(|line| ui.note(line));
    if !planned.of_the_host.is_empty() && proving.allow_host_change {
        let levers = planned.of_the_host.join(", ");
        ui.always(&format!("Changing the whole host until this command ends: {levers}"));
    }
    let stop = signals::stop_flag()?;
    let host = private::open_host("prove")?;
    let folder = resume.map(Path::to_owned).or(proving.out.clone());
    let folder =
        folder.unwrap_or_else(|| host.state.runs().join(folder_name(&planned.document.experiment, now)));
    let options = RunOptions {
        host: &host,
        allow_host_change: proving.allow_host_change.then(AllowHostChange::by_the_user),
        folder: folder.clone(),
        resume: resume.is_some(),
        command: Some(command()),
        set_up: host_lines(),
        stop: &stop,
    };
    let mut watch = |progress: Progress| show(&progress, ui);
    let result = planned.run(&options, &mut watch).map_err(|error| failure(error, Some(&folder), &stop))?;
    let texts = [mydyno_report::classes::markdown(&result), mydyno_report::classes::html(&result)];
    for (page, text) in PAGES.iter().zip(texts) {
        let page = folder.join(page);
        if let Err(error) = std::fs::write(&page, text) {
            ui.note(&format!("{}: {error}", page.display()));
        }
    }
    match ui.json {
        true => ui.out(&result.to_json()),
        false => ui.out(&mydyno_report::classes::terminal(&result, ui.color)),
    }
    ui.note(&format!("Kept in {}", folder.display()));
    let measured =
        result.classes.iter().any(|class| class.points.iter().any(|point| point.gain.low.is_some()));
    Ok(if measured { Status::Fine } else { Status::Bad })
}

fn wanted(experiment: &Experiment, args: &Args) -> Result<ClassesRequest, Failure> {
    let mut problems = Vec::new();
    let refused = [
        ("--on-server", args.on_server),
        ("--duet", args.duet),
        ("--mode", args.mode.is_some() || args.rows),
        (
            "--slice, --settle, --warmup",
            args.slice.is_some() || args.settle.is_some() || args.warmup.is_some(),
        ),
        ("--delta", args.delta.is_some()),
    ];
    let name = &experiment.definition.name;
    for (option, _) in refused.iter().filter(|(_, given)| *given) {
        problems.push(format!("{option}: {name} times classes of statements, which takes no such option"));
    }
    if args.treatment.is_empty() && args.baseline.is_empty() {
        problems.push(format!("{name} compares two builds: give --baseline SIDE and --treatment SIDE, as in --baseline /usr --treatment mysql-8.0"));
    }
    let mut sides = |texts: &[String]| -> Vec<LeverLevel> {
        let parsed = texts.iter().map(|text| side::parse(text));
        parsed.filter_map(|side| side.map_err(|e| problems.push(e.to_string())).ok()).collect()
    };
    let (baseline, treatment) = (sides(&args.baseline), sides(&args.treatment));
    let budget = args.budget.as_ref().map(|text| seconds("budget", text, 1.0, &mut problems));
    if !problems.is_empty() {
        return Err(Failure { status: Status::Usage, problems });
    }
    Ok(ClassesRequest {
        definition: experiment.definition.clone(),
        full: args.full,
        baseline,
        treatment,
        budget: budget.map(Duration::from_secs_f64),
        starts: args.starts.map(usize::from),
        seed: args.proving.seed.unwrap_or(DEFAULT_SEED),
    })
}

/// The plan in words: sides, classes, duration, disk space, changes of the host.
fn plan(planned: &Planned) -> Vec<String> {
    let document = &planned.document;
    let side = |levels: &[LeverLevel]| match levels {
        [] => "the server as it is".to_owned(),
        levels => levels.iter().map(|l| format!("{}={}", l.lever, l.value)).collect::<Vec<_>>().join(" "),
    };
    let clients: Vec<String> = document.connections.iter().map(ToString::to_string).collect();
    let classes: Vec<&str> = document.classes.iter().map(|class| class.name.as_str()).collect();
    let (starts, rounds) = (document.starts, document.rounds);
    let starts = if starts == 1 { "one start".to_owned() } else { format!("{starts} starts") };
    let mut lines = vec![
        document.question.clone(),
        format!("  baseline   {}", side(&document.baseline)),
        format!("  treatment  {}", side(&document.treatment)),
        format!("  classes    {}", classes.join(", ")),
        format!(
            "Each with {} clients, in {starts} of three private servers, at most {rounds} rounds each.",
            clients.join(", ")
        ),
        format!(
            "It takes about {}, as many rounds as fit, and {} of disk.",
            minutes(document.budget_s),
            show_bytes(planned.disk_bytes() as f64)
        ),
    ];
    lines.push(match planned.of_the_host.as_slice() {
        [] => "Nothing of this host is changed.".to_owned(),
        levers => format!("It changes the whole host and puts it back: {}", levers.join(", ")),
    });
    lines
}

fn show(progress: &Progress, ui: &Ui) {
    match progress {
        Progress::Server(_, what) => private::note(ui, what),
        Progress::Tables(role) => ui.note(&format!("Making the tables of the {} server", role.name())),
        Progress::Round(number, of) => {
            ui.note(&format!("Round {} of at most {of} in this start", number + 1))
        }
        Progress::Loud(text) => ui.always(text),
    }
}
