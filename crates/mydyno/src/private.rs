//! A private server for the length of one command.

use std::sync::atomic::Ordering;

use mydyno_host::{Host, HostError};
use mydyno_levers::{LeverError, Turns};
use mydyno_load::LoadError;
use mydyno_model::units::show_bytes;
use mydyno_run::{Cancel, RunError};
use mydyno_sandbox::{Progress, SandboxError, Spec};
use mydyno_tables::prepare::PrepareError;
use mydyno_wire::WireError;

use crate::failure::{Failure, Status};
use crate::target::TargetArgs;
use crate::ui::Ui;

/// The private server of `--sandbox`, for the length of a command, and the levers of its load; `None` without `--sandbox`.
///
/// # Errors
/// As [`PrivateArgs::turns`](crate::private_args::PrivateArgs::turns).
pub fn wanted(target: &TargetArgs, name: String, ui: &Ui) -> Result<Option<(Spec, Turns)>, Failure> {
    let Some(engine) = &target.sandbox else { return Ok(None) };
    let turns = target.private.turns("until this command ends", ui)?;
    turns.check_no_client().map_err(|error| Failure::usage(error.to_string()))?;
    let spec = target.private.spec(name, Some(engine), &turns);
    Ok(Some((spec, turns)))
}

/// Refuses levers of tables and workloads, for commands that run no load.
///
/// # Errors
/// There is such a lever.
pub fn check_no_load(turns: &Turns) -> Result<(), Failure> {
    turns.check_no_load().map_err(|error: LeverError| Failure::usage(error.to_string()))
}

/// The user's state folder, its journal and a lease of this command; the folder is made if it is not there.
///
/// # Errors
/// The folder cannot be made or is open to others.
pub fn open_host(command: &str) -> Result<Host, Failure> {
    Host::open(command).map_err(environment)
}

/// The same if there is a state folder: looking makes none.
///
/// # Errors
/// The folder is open to others.
pub fn find_host(command: &str) -> Result<Option<Host>, Failure> {
    Host::find(command).map_err(environment)
}

/// How a command ends that the host does not let do its work.
pub fn environment(error: impl Into<HostError>) -> Failure {
    Failure::environment(error.into().to_string())
}

/// Says what is going on while a server comes up.
pub fn note(ui: &Ui, progress: &Progress) {
    match progress {
        Progress::Found { engine, program } => {
            ui.note(&format!("Using {engine} ({}) from {}", engine.text, program.display()));
        }
        Progress::OptionFile { path, taken, left_out, ledger } => {
            ui.note(&format!("Taking {taken} options of {}", path.display()));
            if !left_out.is_empty() {
                ui.note(&format!("Left out of it, since a private server keeps to itself: {}", left_out.join(" ")));
            }
            ledger.iter().for_each(|price| ui.note(price));
        }
        Progress::Became { name, given, shown } => {
            ui.note(&format!("The server changed {name}={given} to {shown}"));
        }
        Progress::BuildingTemplate => ui.note("Making its system tables, once for this version and options"),
        Progress::NoDirectIo => ui.note(
            "The file system below cannot do direct I/O: the server's own disk also goes through this host's page cache",
        ),
        Progress::Copying => {}
        Progress::ShuttingDown => ui.note("Shutting the server down in good order"),
        Progress::DataDisk { file_system, bytes } => ui.note(&format!(
            "The file system here cannot share blocks: keeping the data on an {file_system} disk of their own ({} in a file)",
            show_bytes(*bytes as f64)
        )),
        Progress::NoSharing { why } => {
            ui.note(&format!("Every server that starts from these data gets a copy: {why}"));
        }
        Progress::Restored { files, shared, bytes, took } => {
            let how = match shared {
                0 => "copied".to_owned(),
                shared if shared == files => "their blocks shared, nothing copied".to_owned(),
                shared => format!("blocks of {shared} shared"),
            };
            ui.note(&format!(
                "Brought back {files} files ({}) in {:.1} ms: {how}",
                show_bytes(*bytes as f64),
                took.as_secs_f64() * 1000.0
            ));
        }
        Progress::Loading { commits } => ui.note(&format!("Loading it until {commits} commits were acknowledged")),
        Progress::Crashing => ui.note("Making it crash, and starting it again"),
        Progress::Starting { port } => ui.note(&format!("Starting it on 127.0.0.1:{port}")),
    }
}

/// How a command ends whose trial or audit failed.
pub fn run_failure(error: RunError) -> Failure {
    Failure { status: status_of(&error), problems: error.to_string().lines().map(str::to_owned).collect() }
}

/// The failure of a command whose user may have ended it: a signal ends calls of the connection wherever they are, and what fails
/// then was interrupted.
pub fn or_interrupted(failure: Failure, stop: &Cancel) -> Failure {
    match failure.status {
        Status::Environment if stop.load(Ordering::Relaxed) => {
            Failure { status: Status::Interrupted, ..failure }
        }
        _ => failure,
    }
}

fn status_of(error: &RunError) -> Status {
    match error {
        RunError::Interrupted
        | RunError::Prepare(PrepareError::Interrupted)
        | RunError::Load(LoadError::Interrupted) => Status::Interrupted,
        RunError::Sandbox(error) => status_of_sandbox(error),
        RunError::Lever(_) | RunError::OptionFile { .. } => Status::Usage,
        RunError::AndServerLeft { error, .. } => status_of(error),
        RunError::Schema { source, .. } if matches!(**source, WireError::Server(_)) => Status::Usage,
        _ => Status::Environment,
    }
}

/// How a command ends that could not make or end a private server.
pub fn failure(error: SandboxError) -> Failure {
    Failure { status: status_of_sandbox(&error), problems: vec![error.to_string()] }
}

fn status_of_sandbox(error: &SandboxError) -> Status {
    match error {
        SandboxError::Name { .. }
        | SandboxError::Setting { .. }
        | SandboxError::EngineName { .. }
        | SandboxError::NameTaken { .. }
        | SandboxError::LeverValue { .. }
        | SandboxError::TooManyCommits { .. }
        | SandboxError::NoSuchData { .. }
        | SandboxError::DataNameTaken { .. }
        | SandboxError::NoSuchServer { .. } => Status::Usage,
        SandboxError::Interrupted => Status::Interrupted,
        _ => Status::Environment,
    }
}
