//! `mydyno audit`: facts, claims, findings, remedies.

mod look;
mod options;
mod remedies;

use std::path::PathBuf;

use clap::ValueEnum;
use mydyno_judge::{Claims, Fragment, accept, audit_shown, diff};
use mydyno_model::Document;
use mydyno_model::claim::Severity;
use mydyno_model::facts::FactSet;
use mydyno_model::finding::{Findings, State};
use mydyno_report::findings::{Page, html, markdown, sarif, terminal};
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::secrets::Password;
use crate::target::TargetArgs;
use crate::ui::Ui;
use crate::verbs::claims;

/// What to type first.
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
    /// Judge the facts of this bundle instead of looking.
    #[arg(long, value_name = "BUNDLE", conflicts_with_all = ["ssh", "host_only", "sandbox"])]
    pub from: Option<PathBuf>,
    /// Keep the facts in this file, which only you can read.
    #[arg(long, value_name = "BUNDLE")]
    pub save: Option<PathBuf>,
    /// Replace names that you chose (hosts, paths, tables) by tokens, in the bundle and in the findings.
    #[arg(long)]
    pub redact: bool,
    /// Judge this option file and what it includes, and nothing else; needs --for.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "save", "redact", "ssh", "host_only", "sandbox", "diff", "fix"])]
    pub config: Option<PathBuf>,
    /// Judge options for this release instead of the server's own, as in mysql-9.7, mysql-8.0.36 or mariadb-11.8.
    #[arg(long = "for", value_name = "RELEASE")]
    pub release: Option<mydyno_judge::knobs::Target>,
    /// Look at another host and its server through the system's ssh; mydyno sends itself there and removes itself.
    #[arg(long, value_name = "[USER@]HOST", conflicts_with_all = ["host_only", "sandbox"])]
    pub ssh: Option<String>,
    /// Look at the host only; connect to no server.
    #[arg(long)]
    pub host_only: bool,
    /// Print the facts as JSON and judge nothing.
    #[arg(long, conflicts_with_all = ["fix", "md", "sarif", "diff"])]
    pub facts: bool,
    /// How far apart the two readings of counters are, for rates.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub window: String,
    /// Judge only these claims.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub only: Vec<String>,
    /// Leave these claims out.
    #[arg(long, value_name = "ID,…", value_delimiter = ',')]
    pub skip: Vec<String>,
    /// Judge only claims of these areas.
    #[arg(long, value_name = "AREA,…", value_delimiter = ',')]
    pub area: Vec<String>,
    /// Exit with status 1 when a claim of this severity or a higher one is violated.
    #[arg(long, value_name = "SEVERITY", value_enum)]
    pub fail_on: Option<FailOn>,
    /// List of findings that are accepted [default: mydyno.toml of this folder, if there is one].
    #[arg(long, value_name = "FILE")]
    pub accept: Option<PathBuf>,
    /// Folder with claims of your own, which take the place of those of the same id.
    #[arg(long, value_name = "DIR")]
    pub claims: Option<PathBuf>,
    /// Say what has changed since an earlier audit, by its bundle.
    #[arg(long, value_name = "BUNDLE")]
    pub diff: Option<PathBuf>,
    /// Write the remedies and their undo into this folder, which is made; nothing is applied.
    #[arg(long, value_name = "DIR")]
    pub fix: Option<PathBuf>,
    /// List claims that hold or do not apply, too.
    #[arg(long)]
    pub all: bool,
    /// One HTML file that needs nothing else, on standard output.
    #[arg(long, conflicts_with_all = ["md", "sarif"])]
    pub html: bool,
    /// Markdown on standard output.
    #[arg(long, conflicts_with = "sarif")]
    pub md: bool,
    /// SARIF 2.1.0 on standard output.
    #[arg(long)]
    pub sarif: bool,
    /// File to write instead of standard output.
    #[arg(long, short = 'o', value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Server.
    #[command(flatten)]
    pub target: TargetArgs,
    /// This text.
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

/// `--fail-on`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Worth knowing.
    Info,
    /// Costs little, or seldom.
    Low,
    /// Costs noticeably.
    Medium,
    /// Costs much, or will hurt on a bad day.
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

/// Looks, judges and shows.
pub fn run(args: &Args, password: Password, ui: &Ui) -> Result<Status, Failure> {
    // What can be wrong with the command is said before anything is asked.
    let claims = claims::load(args.claims.as_deref())?;
    let wanted = wanted(args, &claims)?;
    let accepted = accepted(args)?;
    let before = args.diff.as_deref().map(look::bundle).transpose()?;
    if let Some(folder) = args.fix.as_ref().filter(|folder| folder.exists()) {
        return Err(Failure::usage(format!(
            "--fix {}: it is there already, and nothing is written over; name a folder that is not",
            folder.display()
        )));
    }
    let open = match &args.config {
        Some(path) => options::facts(path, args)?,
        None => look::facts(args, password, ui)?,
    };
    let redacted = match args.redact {
        true => Some(mydyno_facts::redact(&open).map_err(|e| Failure::environment(e.to_string()))?),
        false => None,
    };
    let facts = redacted.as_ref().unwrap_or(&open);
    if let Some(path) = &args.save {
        mydyno_facts::bundle::save(facts, path).map_err(|e| Failure::environment(e.to_string()))?;
        ui.note(&format!("Facts kept in {}", path.display()));
    }
    if args.facts {
        show(args, &facts.to_json(), ui)?;
        return Ok(Status::Fine);
    }
    let judge = |open: &FactSet, shown: &FactSet| {
        let digest = mydyno_facts::digest(shown);
        // Of a file alone no claim can be told.
        let wanted = wanted.iter().filter(|_| args.config.is_none()).filter_map(|id| claims.find(id).ok());
        let mut findings = audit_shown(wanted, open, shown, &digest, OffsetDateTime::now_utc());
        if args.config.is_some() {
            findings.scope = options::scope(open);
        }
        options::add(&mut findings, open, args)?;
        Ok::<Findings, Failure>(findings)
    };
    // What the lint says names files and values, which a redacted audit hides; that it says something counts.
    let withheld = |findings: Findings| if args.redact { options::withhold(findings) } else { findings };
    // The open facts decide: a token is not the option that a claim looks for.
    let mut findings = judge(&open, facts)?;
    for note in accept::apply(&mut findings, &accepted, OffsetDateTime::now_utc().date()) {
        ui.note(&note);
    }
    let mut findings = withheld(findings);
    let before_findings = before.as_ref().map(|before| judge(before, before)).transpose()?;
    let changes = before_findings.map(|before| diff(&withheld(before), &findings));
    if let Some(changes) = &changes {
        findings.extra.insert("diff".to_owned(), serde_json::to_value(changes).unwrap_or_default());
    }
    if let Some(folder) = &args.fix {
        let fragment = if args.redact { Fragment::NotSeen } else { Fragment::of(facts) };
        remedies::write(folder, &findings, &fragment, ui)?;
    }
    let mut text = page(args, &findings, ui);
    if let (Some(changes), Some(before), false) =
        (&changes, &before, ui.json || args.html || args.md || args.sarif)
    {
        text = changed(changes, &before.header.created) + &text;
    }
    show(args, &text, ui)?;
    if args.release.is_some() && open.value("server.options.set").is_none() {
        return Err(Failure::environment(
            "--for: the server's option files were not seen, so nothing can be said of them; run mydyno on its host as root, or name one with --config",
        ));
    }
    Ok(status(&findings, args.fail_on))
}

fn page(args: &Args, findings: &Findings, ui: &Ui) -> String {
    if ui.json {
        findings.to_json()
    } else if args.html {
        html(findings)
    } else if args.md {
        markdown(findings)
    } else if args.sarif {
        sarif(findings)
    } else {
        let color = ui.color && args.output.is_none();
        terminal(findings, Page { color, width: ui.width(), all: args.all })
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

/// Bad when a claim that is not accepted is violated at the level that was named, or above.
fn status(findings: &Findings, fail_on: Option<FailOn>) -> Status {
    let Some(level) = fail_on.map(Severity::from) else { return Status::Fine };
    let bad = |f: &mydyno_model::finding::Finding| {
        f.state == State::Violated && f.accepted.is_none() && f.severity >= level
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

/// Ids of the claims that `--only`, `--skip` and `--area` leave.
fn wanted(args: &Args, claims: &Claims) -> Result<Vec<String>, Failure> {
    let mut problems = Vec::new();
    for id in args.only.iter().chain(&args.skip) {
        if options::is_check(id) {
            continue;
        }
        if let Err(error) = claims.find(id) {
            problems.push(error.to_string());
        }
    }
    let areas = claims.areas();
    for area in &args.area {
        if !areas.contains(&area.as_str()) && area != mydyno_judge::lint::AREA {
            problems.push(format!("no area is called {area:?}; there are {}", areas.join(", ")));
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

/// The list of accepted findings.
fn accepted(args: &Args) -> Result<Vec<accept::Entry>, Failure> {
    let path = match &args.accept {
        Some(path) => path.clone(),
        None => PathBuf::from("mydyno.toml"),
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound && args.accept.is_none() => return Ok(vec![]),
        Err(e) => return Err(Failure::usage(format!("{}: {e}", path.display()))),
    };
    accept::read(&path.display().to_string(), &text).map_err(|problems| Failure {
        status: Status::Usage,
        problems: problems.iter().map(ToString::to_string).collect(),
    })
}
