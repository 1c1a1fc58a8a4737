//! `mydyno host`: changes of this host by mydyno.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};
use mydyno_host::{Host, Machine, restore};
use mydyno_model::change::{ChangeInfo, HostStatus, LeaseState, RestoreOutcome, RestoreReport, RestoreState};
use mydyno_model::lever::{LeverInfo, LeverList, LeverScope};
use mydyno_model::{Document, Header};
use mydyno_sandbox::users_server;
use mydyno_sandbox::variable::PrivateServers;
use serde_json::Map;
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::private::{environment, find_host};
use crate::ui::Ui;

/// Options of `mydyno host`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    step: Step,
}

#[derive(Debug, Subcommand)]
enum Step {
    /// Show the changes of this host that are not restored yet.
    Status,
    /// Restore the changes of commands that were killed. Can be repeated after an interruption.
    Restore(RestoreArgs),
    /// List the levers of this host and of private servers, and prerequisites that this machine lacks.
    Levers,
    /// Disks with the timing of rotating or solid-state drives, whose power can be cut.
    Disk(super::disk::Args),
}

#[derive(Debug, ClapArgs)]
struct RestoreArgs {
    /// Also restore changes that are kept on purpose (private servers), and those of machines and containers that are
    /// not visible here.
    #[arg(long)]
    all: bool,
    /// File with the password for variables of your own server [default: MYSQL_PWD and the option files].
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Shows or restores.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    match &args.step {
        Step::Status => status(ui),
        Step::Restore(args) => put_back(args, ui),
        Step::Levers => levers(ui),
        Step::Disk(args) => super::disk::run(args, ui),
    }
}

fn status(ui: &Ui) -> Result<Status, Failure> {
    let host = find_host("host status")?;
    let changes = match &host {
        Some(host) => {
            let mut changes = restore::status(&host.journal, host.machine()).map_err(environment)?;
            let unknown = mydyno_sandbox::unknown_to_journal(host);
            changes.extend(unknown.map_err(|e| Failure::environment(e.to_string()))?);
            changes
        }
        None => vec![],
    };
    let damaged = damaged_lines(host.as_ref())?;
    if ui.json {
        let header = Header::of::<HostStatus>(OffsetDateTime::now_utc());
        ui.out(&HostStatus { header, changes, extra: damage_document(&damaged) }.to_json());
    } else if changes.is_empty() && damaged.is_empty() {
        ui.out("Nothing is changed on this host.");
    } else {
        ui.prose(&changes.iter().map(describe).collect::<Vec<_>>().join("\n"));
    }
    if only_nul(host.as_ref())? {
        return Err(lost_journal("Run `mydyno host restore`"));
    }
    damage(&damaged)?;
    Ok(Status::Fine)
}

fn levers(ui: &Ui) -> Result<Status, Failure> {
    let levers = mydyno_levers::list(&Machine::real().map_err(environment)?);
    if ui.json {
        let header = Header::of::<LeverList>(OffsetDateTime::now_utc());
        ui.out(&LeverList { header, levers, extra: Map::new() }.to_json());
    } else {
        ui.prose(&levers.iter().map(lever).collect::<Vec<_>>().join("\n"));
    }
    Ok(Status::Fine)
}

/// As in `vm.swappiness  [host]  a setting of the kernel: a whole number from 0 to 200; now 60`.
fn lever(lever: &LeverInfo) -> String {
    let scope = match lever.scope {
        LeverScope::Host => "host",
        LeverScope::ServerStart => "server start",
        LeverScope::ServerRunning => "server running",
        LeverScope::Load => "load",
    };
    let mut line = format!("{:<32} [{scope}] {}: {}", lever.id, lever.what, lever.takes);
    if let Some(now) = &lever.now {
        line.push_str(&format!("; now {now}"));
    }
    if let Some(price) = &lever.ledger {
        line.push_str(&format!("\n{:33}price: {price}", ""));
    }
    if let Some(lack) = &lever.lacks {
        line.push_str(&format!("\n{:33}not here: {lack}", ""));
    }
    for value in &lever.values {
        let says = value.lacks.as_ref().map_or_else(|| "here".to_owned(), |lack| format!("not here: {lack}"));
        line.push_str(&format!("\n{:33}{}: {says}", "", value.value));
        if let Some(price) = &value.ledger {
            line.push_str(&format!("; price: {price}"));
        }
    }
    line
}

fn put_back(args: &RestoreArgs, ui: &Ui) -> Result<Status, Failure> {
    if let Some(file) = &args.password_file {
        users_server::take_password_from(file);
    }
    let host = find_host("host restore")?;
    let mut outcomes = vec![];
    let (mut damaged, mut only_nul) = (vec![], false);
    if let Some(host) = &host {
        only_nul = host.journal.empty_if_lost().map_err(environment)?;
        outcomes =
            restore::restore(&host.journal, &host.lease, args.all, &PrivateServers).map_err(environment)?;
        let lost = mydyno_sandbox::put_back_lost(host, args.all);
        outcomes.extend(lost.map_err(|e| Failure::environment(e.to_string()))?);
        damaged = if only_nul { vec![1] } else { damaged_lines(Some(host))? };
    }
    let failed = outcomes.iter().any(|o| o.outcome == RestoreState::Failed);
    if ui.json {
        let header = Header::of::<RestoreReport>(OffsetDateTime::now_utc());
        ui.out(&RestoreReport { header, outcomes, extra: damage_document(&damaged) }.to_json());
    } else if outcomes.is_empty() {
        ui.out(match damaged.is_empty() {
            true => "Nothing to restore: nothing is changed on this host.",
            false => "Nothing was found that could be restored.",
        });
    } else {
        ui.out(&outcomes.iter().map(outcome).collect::<Vec<_>>().join("\n"));
    }
    if only_nul {
        return Err(lost_journal("It is emptied"));
    }
    damage(&damaged)?;
    Ok(if failed { Status::Bad } else { Status::Fine })
}

/// Unreadable lines of the journal: their changes are neither shown nor restored.
fn damaged_lines(host: Option<&Host>) -> Result<Vec<usize>, Failure> {
    match host {
        Some(host) => Ok(host.journal.read().map_err(environment)?.damaged_lines),
        None => Ok(vec![]),
    }
}

fn only_nul(host: Option<&Host>) -> Result<bool, Failure> {
    match host {
        Some(host) => Ok(host.journal.read().map_err(environment)?.only_nul),
        None => Ok(false),
    }
}

/// The failure for a journal of NUL bytes; `then` names the consequence or the remedy.
fn lost_journal(then: &str) -> Failure {
    let problem = format!(
        "journal.jsonl in the state folder held only NUL bytes, so what it said is lost. {then}. `host restore` finds private servers and disks by their marks, with their mounts, loop devices, swap files and control groups; kernel settings carry no mark: compare `mydyno host levers` with what you expect, or reboot"
    );
    Failure { status: Status::Bad, problems: vec![problem] }
}

fn damage_document(lines: &[usize]) -> Map<String, serde_json::Value> {
    let entry = (!lines.is_empty()).then(|| ("damaged_lines".to_owned(), serde_json::json!(lines)));
    entry.into_iter().collect()
}

/// # Errors
/// The journal is damaged, so "nothing is changed" would be a guess.
fn damage(lines: &[usize]) -> Result<(), Failure> {
    if lines.is_empty() {
        return Ok(());
    }
    let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let problem = format!(
        "line(s) {} of journal.jsonl in the state folder cannot be read, so there may be changes that are not shown here: look at the file, put back by hand what the lines say, and delete them",
        numbers.join(", ")
    );
    Err(Failure { status: Status::Bad, problems: vec![problem] })
}

fn outcome(done: &RestoreOutcome) -> String {
    let word = match done.outcome {
        RestoreState::Restored => "restored  ",
        RestoreState::LeftAlone => "left alone",
        RestoreState::Failed => "FAILED    ",
    };
    format!("{word}  {}: {}", done.change.what, done.why)
}

fn describe(change: &ChangeInfo) -> String {
    let who = match &change.lease {
        LeaseState::Held { pid, command } => format!("held by `mydyno {command}` (pid {pid})"),
        LeaseState::Abandoned { pid, command } => {
            format!("left by `mydyno {command}` (pid {pid}), which died: `mydyno host restore` puts it back")
        }
        LeaseState::Kept { until } => format!("kept until `{until}`"),
    };
    let (was, now) = (plain(&change.was), plain(&change.now));
    format!("{}: was {was}, now {now}, since {}; {who}", change.what, change.since)
}

fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
