//! A private server for the duration of one command.

use std::sync::atomic::Ordering;

use mydyno_host::{Host, HostError};
use mydyno_levers::{LeverError, LeverSet};
use mydyno_load::LoadError;
use mydyno_model::units::show_bytes;
use mydyno_run::{Cancel, RunError};
use mydyno_sandbox::{Progress, SandboxError, Spec};
use mydyno_tables::prepare::PrepareError;
use mydyno_wire::WireError;

use crate::failure::{Failure, Status};
use crate::target::TargetArgs;
use crate::ui::Ui;

/// The private server of `--sandbox`, for the duration of a command, and the levers of its load; `None` without
/// `--sandbox`.
///
/// # Errors
/// As [`PrivateArgs::lever_set`](crate::private_args::PrivateArgs::lever_set).
pub fn wanted(target: &TargetArgs, name: String, ui: &Ui) -> Result<Option<(Spec, LeverSet)>, Failure> {
    let Some(engine) = &target.sandbox else { return Ok(None) };
    let lever_set = target.private.lever_set("until this command ends", ui)?;
    lever_set.check_no_client().map_err(|error| Failure::usage(error.to_string()))?;
    let spec = target.private.spec(name, Some(engine), &lever_set);
    Ok(Some((spec, lever_set)))
}

/// Refuses levers of tables and workloads, for commands that run no load.
///
/// # Errors
/// There is such a lever.
pub fn check_no_load(lever_set: &LeverSet) -> Result<(), Failure> {
    lever_set.check_no_load().map_err(|error: LeverError| Failure::usage(error.to_string()))
}

/// The user's state folder, its journal and a lease of this command; the folder is made if it does not exist.
///
/// # Errors
/// The folder cannot be made or others can access it.
pub fn open_host(command: &str) -> Result<Host, Failure> {
    Host::open(command).map_err(environment)
}

/// As [`open_host`], if there is a state folder: reading does not make one.
///
/// # Errors
/// Others can access the folder.
pub fn find_host(command: &str) -> Result<Option<Host>, Failure> {
    Host::find(command).map_err(environment)
}

/// The failure of a command that the host prevents.
pub fn environment(error: impl Into<HostError>) -> Failure {
    Failure::environment(error.into().to_string())
}

/// Prints the progress of a server's start.
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

/// The failure of a trial or an audit.
pub fn run_failure(error: RunError) -> Failure {
    Failure { status: status_of(&error), problems: error.to_string().lines().map(str::to_owned).collect() }
}

/// The failure of a command that the user may have ended: a signal ends pending calls of connections, and their errors
/// then mean an interruption.
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

/// The failure of making or ending a private server.
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
