//! `mydyno audit`: facts, claims, findings, remedies.

mod look;
mod remedies;

use std::path::PathBuf;

use clap::ValueEnum;
use mydyno_judge::{Claims, Fragment, accept};
use mydyno_linux::calls::scheduler;
use mydyno_model::Document;
use mydyno_model::claim::Severity;
use mydyno_model::finding::{Findings, State};
use mydyno_report::findings::{Details, Page, html, markdown, sarif, terminal};
use mydyno_run::audit::Judging;
use mydyno_run::audit::lint::is_check;
use mydyno_run::{AuditPlan, Audited};

use crate::failure::{Failure, Status};
use crate::private;
use crate::progress::ProgressDisplay;
use crate::secrets::Password;
use crate::signals;
use crate::target::TargetArgs;
use crate::ui::Ui;
use crate::verbs::claims;

/// Examples for the verb's help.
/// Time for reading definitions of very many tables, unless another is asked for: [`mydyno_facts::Options::TABLES_WITHIN`].
const TABLES_WITHIN: &str = "7s";

const EXAMPLES: &str = "\
Examples:
  mydyno audit -S /run/mysqld/mysqld.sock        the server behind a socket, and its host
  mydyno audit --save today.json                 keep the facts, in a file that only you can read
  mydyno audit --from today.json --fail-on high  judge kept facts again; exit status 1 from severity high on
  mydyno audit --from today.json --diff june.json
                                                 what has changed since
  mydyno audit --config /etc/my.cnf --for mysql-9.7
                                                 an option file before an upgrade, without a server
  mydyno audit --html -o audit.html              a page to pass on: one file that asks for nothing
  mydyno audit --fix remedies/                   write the remedies as files; nothing is applied

It only reads: SELECT and SHOW on the server, files on the host. Guide: docs/guides/audit.md";

/// Options of `mydyno audit`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct Args {
    /// Judge the facts of this bundle instead of a live server.
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["ssh", "host_only", "sandbox"])]
    pub from: Option<PathBuf>,
    /// Write the facts to this file, which only you can read.
    #[arg(long, value_name = "BUNDLE")]
    pub save: Option<PathBuf>,
    /// Replace names that you chose (hosts, paths, tables) by tokens, in the bundle and in the findings.
    #[arg(long)]
    pub redact: bool,
    /// Judge only this option file and the files that it includes; needs --for.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "save", "redact", "ssh", "host_only", "sandbox", "diff", "fix"])]
    pub config: Option<PathBuf>,
    /// Check options for this release instead of the server's own, as in mysql-9.7, mysql-8.0.36 or mariadb-11.8.
    #[arg(long = "for", value_name = "RELEASE")]
    pub release: Option<mydyno_judge::knobs::Target>,
    /// Audit another host and its server through the system's ssh; mydyno copies itself there and removes itself.
    #[arg(long, value_name = "[USER@]HOST", conflicts_with_all = ["host_only", "sandbox"])]
    pub ssh: Option<String>,
    /// Audit only the host; connect to no server.
    #[arg(long)]
    pub host_only: bool,
    /// Print the facts as JSON and judge no claims.
    #[arg(long, conflicts_with_all = ["fix", "markdown", "sarif", "diff"])]
    pub facts: bool,
    /// Time between the two readings of counters, for rates.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub window: String,
    /// Time for reading definitions of tables where there are more than 5,000; two thirds of it are pauses.
    #[arg(long, value_name = "DURATION", default_value = TABLES_WITHIN)]
    pub tables_within: String,
    /// Judge only these claims.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave these claims out.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Judge only claims in these areas.
    #[arg(long, value_name = "AREA,…", value_delimiter = ',')]
    pub area: Vec<String>,
    /// Exit with status 1 when a claim of this severity or a higher one is violated.
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub fail_on: Option<FailOn>,
    /// Exit with status 1 also when a claim of the severity of --fail-on or higher is unknown.
    #[arg(long)]
    pub fail_on_unknown: bool,
    /// List of accepted findings [default: mydyno.toml of this folder, if it exists].
    #[arg(long, value_name = "FILE")]
    pub accept: Option<PathBuf>,
    /// Folder with your own claims, which replace those with the same id.
    #[arg(long, value_name = "DIR")]
    pub claims: Option<PathBuf>,
    /// Show changes since an earlier audit, given by its bundle.
    #[arg(long, value_name = "BUNDLE")]
    pub diff: Option<PathBuf>,
    /// Write the remedies and their undo into this new folder; nothing is applied.
    #[arg(long, value_name = "DIR")]
    pub fix: Option<PathBuf>,
    /// Print the details of every violated claim; without it, those of the worst three.
    #[arg(long)]
    pub details: bool,
    /// Print only the details of these claims, in any state.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub explain: Vec<String>,
    /// Also list claims that hold or do not apply, with the reason.
    #[arg(long)]
    pub all: bool,
    /// Format of the findings.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    pub format: Format,
    /// Short for --format html: one self-contained file.
    #[arg(long, conflicts_with_all = ["format", "markdown", "sarif"])]
    pub html: bool,
    /// Short for --format markdown.
    #[arg(long, visible_alias = "md", conflicts_with_all = ["format", "sarif"])]
    pub markdown: bool,
    /// Short for --format sarif: SARIF 2.1.0.
    #[arg(long, conflicts_with = "format")]
    pub sarif: bool,
    /// File to write instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Server.
    #[command(flatten)]
    pub target: TargetArgs,
    /// Print help.
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// Formats of the findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One self-contained page.
    Html,
    /// Markdown.
    Markdown,
    /// Text for a terminal.
    Terminal,
    /// The document of the findings.
    Json,
    /// SARIF 2.1.0.
    Sarif,
}

impl Args {
    /// The requested format.
    fn form(&self, ui: &Ui) -> Format {
        match (ui.json, self.html, self.markdown, self.sarif) {
            (true, ..) => Format::Json,
            (_, true, ..) => Format::Html,
            (_, _, true, _) => Format::Markdown,
            (_, _, _, true) => Format::Sarif,
            _ => self.format,
        }
    }
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Worth knowing.
    Info,
    /// Costs little, or rarely.
    Low,
    /// Costs noticeably.
    Medium,
    /// Costs much, or causes an outage under load.
    High,
    /// Data are at risk.
    Critical,
}

impl From<FailOn> for Severity {
    fn from(level: FailOn) -> Self {
        match level {
            FailOn::Info => Self::Info,
            FailOn::Low => Self::Low,
            FailOn::Medium => Self::Medium,
            FailOn::High => Self::High,
            FailOn::Critical => Self::Critical,
        }
    }
}

/// Nice value of an audit: a third of the weight that other threads have, so that a tenth of a second of work takes little from them and
/// still ends soon on a busy host.
const NICE: i32 = 5;

/// Lets other threads of the session run first, or of the host where the kernel does not schedule sessions as groups.
fn give_way() {
    let this = std::process::id();
    // Who has started it with a higher value keeps that. Where the kernel refuses, the work takes its usual share.
    if scheduler::nice(this).is_ok_and(|now| now < NICE) {
        let _ = scheduler::set_nice(this, NICE);
    }
}

/// Collects, judges and shows.
pub fn run(args: &Args, password: Password, ui: &Ui) -> Result<Status, Failure> {
    // A private server would inherit the priority.
    if args.target.sandbox.is_none() {
        give_way();
    }
    // Mistakes of the command are reported before any password is requested.
    let claims = claims::load(args.claims.as_deref())?;
    let wanted = wanted(args, &claims)?;
    let accepted = accepted(args)?;
    let before = args.diff.as_deref().map(look::bundle).transpose()?;
    if let Some(folder) = args.fix.as_ref().filter(|folder| folder.exists()) {
        return Err(Failure::usage(format!(
            "--fix {}: it exists already, and nothing is overwritten; name a new folder",
            folder.display()
        )));
    }
    let lint = args.area.is_empty() || args.area.iter().any(|area| area == mydyno_judge::lint::AREA);
    let plan = AuditPlan {
        source: look::source(args, password, ui)?,
        options: look::options(args)?,
        redact: args.redact,
        judging: Judging {
            claims: &claims,
            wanted,
            only: args.only.clone(),
            skip: args.skip.clone(),
            lint,
            release: args.release.clone(),
            accepted,
            before,
        },
    };
    let stop = signals::stop_flag()?;
    let mut shower = ProgressDisplay::new(ui, "");
    let looked = mydyno_run::audit::look(&plan, &stop, &mut |progress| shower.show(&progress));
    drop(shower);
    let facts = looked.map_err(|e| private::or_interrupted(private::run_failure(e), &stop))?;
    if let Some(path) = &args.save {
        mydyno_facts::bundle::save(facts.shown(), path).map_err(|e| Failure::environment(e.to_string()))?;
        ui.note(&format!("Facts kept in {}", path.display()));
    }
    if args.facts {
        show(args, &facts.shown().to_json(), ui)?;
        return Ok(Status::Fine);
    }
    let Audited { facts, mut findings, changes, notes } =
        mydyno_run::audit::judge(&plan.judging, facts).map_err(private::run_failure)?;
    notes.iter().for_each(|note| ui.note(note));
    if args.ssh.is_none() && args.from.is_none() && !args.redact {
        crate::proving::beside(&mut findings, ui);
    }
    let before = &plan.judging.before;
    if let Some(folder) = &args.fix {
        let fragment = if args.redact { Fragment::NotSeen } else { Fragment::of(&facts.open) };
        remedies::write(folder, &findings, &fragment, ui)?;
    }
    let mut text = page(args, &findings, ui);
    if let (Some(changes), Some(before), false) = (&changes, before, args.form(ui) != Format::Terminal) {
        text = changed(changes, &before.header.created) + &text;
    }
    show(args, &text, ui)?;
    if args.release.is_some() && facts.open.value("server.options.set").is_none() {
        return Err(Failure::environment(
            "--for: the server's option files are not visible from here; run mydyno on its host as root, or name a file with --config",
        ));
    }
    Ok(status(&findings, args.fail_on, args.fail_on_unknown))
}

fn page(args: &Args, findings: &Findings, ui: &Ui) -> String {
    match args.form(ui) {
        Format::Json => findings.to_json(),
        Format::Html => html(findings),
        Format::Markdown => markdown(findings),
        Format::Sarif => sarif(findings),
        Format::Terminal => {
            let color = ui.color && args.output.is_none();
            let details = match args.explain.as_slice() {
                [] if args.details => Details::Every,
                [] => Details::Worst,
                claims => Details::Of(claims),
            };
            let cut = args.output.is_none() && ui.is_terminal();
            terminal(findings, Page { color, width: ui.width(), cut, all: args.all, details })
        }
    }
}

fn show(args: &Args, text: &str, ui: &Ui) -> Result<(), Failure> {
    match &args.output {
        None => ui.out(text),
        Some(path) => {
            mydyno_run::writer::write_output(path, text).map_err(|e| Failure::environment(e.to_string()))?;
            ui.note(&format!("Written to {}", path.display()));
        }
    }
    Ok(())
}

/// Bad when a claim that is not accepted is violated at the given severity or above; with `unknown` also when it is
/// unknown, at any severity unless one is given.
fn status(findings: &Findings, fail_on: Option<FailOn>, unknown: bool) -> Status {
    let level = match (fail_on, unknown) {
        (None, false) => return Status::Fine,
        (level, _) => Severity::from(level.unwrap_or(FailOn::Info)),
    };
    let bad = |f: &mydyno_model::finding::Finding| {
        let counts = match f.state {
            State::Violated => fail_on.is_some(),
            State::Unknown => unknown,
            State::Holds | State::NotApplicable => false,
        };
        counts && f.accepted.is_none() && f.severity >= level
    };
    if findings.findings.iter().any(bad) { Status::Bad } else { Status::Fine }
}

fn changed(changes: &[mydyno_judge::Change], since: &str) -> String {
    let mut text = format!("Since {since}: ");
    if changes.is_empty() {
        text.push_str("nothing has changed.\n\n");
        return text;
    }
    text.push_str(&format!("{} changed\n", changes.len()));
    for change in changes {
        let name = |state: Option<State>| state.map_or("not judged", State::name);
        text.push_str(&format!("  {}: {}, now {}\n", change.claim, name(change.before), name(change.after)));
    }
    text.push('\n');
    text
}

/// Ids of the claims that `--only`, `--skip` and `--area` select.
fn wanted(args: &Args, claims: &Claims) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for id in args.only.iter().chain(&args.skip).chain(&args.explain) {
        if is_check(id) {
            continue;
        }
        if let Err(error) = claims.find(id) {
            problems.push(error.to_string());
        }
    }
    let areas = claims.areas();
    for area in &args.area {
        if !areas.contains(&area.as_str()) && area != mydyno_judge::lint::AREA {
            problems.push(format!("there is no area {area:?}; the areas are {}", areas.join(", ")));
        }
    }
    if !problems.is_empty() {
        return Err(Failure { status: Status::Usage, problems });
    }
    let is_wanted = |claim: &&mydyno_judge::Claim| {
        let id = &claim.document.id;
        (args.only.is_empty() || args.only.contains(id))
            && !args.skip.contains(id)
            && (args.area.is_empty() || args.area.contains(&claim.area))
    };
    Ok(claims.iter().filter(is_wanted).map(|c| c.document.id.clone()).collect())
}

/// Largest list of accepted findings that is read, in bytes.
const LARGEST_LIST: u64 = 1 << 20;

/// The list of accepted findings.
fn accepted(args: &Args) -> Result<Vec<accept::Entry>, Failure> {
    let path = match &args.accept {
        Some(path) => path.clone(),
        None => PathBuf::from("mydyno.toml"),
    };
    let text = match mydyno_facts::read_regular(&path, LARGEST_LIST) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && args.accept.is_none() => return Ok(vec![]),
        Err(e) => return Err(Failure::usage(format!("{}: {e}", path.display()))),
    };
    accept::read(&path.display().to_string(), &text).map_err(|problems| {
        let absolute = std::path::absolute(&path).unwrap_or(path);
        let which = format!(
            "{} is read as the list of accepted findings, whose entries are [[accept]] with claim, reason and until; a file of defaults of \
             that name belongs into ~/.config, and this command into another folder, or name the list with --accept FILE",
            absolute.display()
        );
        Failure {
            status: Status::Usage,
            problems: problems.iter().map(ToString::to_string).chain([which]).collect(),
        }
    })
}
