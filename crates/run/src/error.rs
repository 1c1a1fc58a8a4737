//! Errors of a run.

use std::path::PathBuf;

use mydyno_facts::FactsError;
use mydyno_host::HostError;
use mydyno_levers::LeverError;
use mydyno_load::LoadError;
use mydyno_model::DocumentError;
use mydyno_sandbox::SandboxError;
use mydyno_settings::SettingsError;
use mydyno_tables::prepare::PrepareError;
use mydyno_wire::WireError;
use mydyno_workload::tpcc::lint::NamesError;
use thiserror::Error;

/// The reason why a run could not start, or ended early.
#[derive(Debug, Error)]
pub enum RunError {
    /// The guard refuses the run: all reasons.
    #[error("{}", .0.join("\n"))]
    Guarded(Vec<String>),
    /// A file or folder of the record.
    #[error("{doing} {path}: {source}{}", remedy(.source))]
    File {
        /// As in `writing`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// A document of a run folder could not be read.
    #[error("{path}: {source}")]
    Document {
        /// The file.
        path: PathBuf,
        /// The error in the document.
        source: DocumentError,
    },
    /// A folder without a run in it.
    #[error("{path} is not a run folder: it has no {missing}")]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The file that is missing.
        missing: &'static str,
    },
    /// A folder with neither a recorded watch nor a run in it.
    #[error(
        "{path} is no recorded watch and no run: it has neither watch.json nor manifest.json; `mydyno watch --record DIR` makes one"
    )]
    NotAWatch {
        /// The folder.
        path: PathBuf,
    },
    /// A statement or the connection failed.
    #[error("{doing}: {source}")]
    Wire {
        /// The operation, as in `connecting`.
        doing: &'static str,
        /// The client's error.
        source: Box<WireError>,
    },
    /// A statement that asks for rows was answered as one that changes them.
    #[error(
        "{doing}: the server answered a query without rows or columns, as no MySQL or MariaDB server does"
    )]
    NoColumns {
        /// The operation, as in `reading the tables`.
        doing: &'static str,
    },
    /// The server of an audit could not be reached.
    #[error("{0}; without a server, `mydyno audit --host-only` examines this host only")]
    NoServer(Box<WireError>),
    /// The server of an audit accepted the connection and answered no statement.
    #[error(
        "no fact of the server could be read, so it cannot be judged: {why}; without a server, `mydyno audit --host-only` examines this host only"
    )]
    NoAnswer {
        /// The cause.
        why: String,
    },
    /// The user interrupted before all facts of an audit were read.
    #[error("interrupted before all facts were read: nothing is judged")]
    Interrupted,
    /// A folder that no black box was kept in.
    #[error("{path}: no black box is kept there: `mydyno watch --black-box={path}` begins one")]
    NotABlackBox {
        /// The folder.
        path: PathBuf,
    },
    /// A profile could not be taken.
    #[error(transparent)]
    Profile(#[from] mydyno_profile::ProfileError),
    /// The process that is to be profiled is not known.
    #[error("the server's process cannot be profiled: {0}")]
    NoProcess(String),
    /// Facts, a bundle or another host.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The embedded table of server options.
    #[error(transparent)]
    Knobs(#[from] SettingsError),
    /// The option file of `--config`.
    #[error("--config {path}: {source}")]
    OptionFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The embedded rules of the diagnosis and of stacks.
    #[error(transparent)]
    Rules(#[from] mydyno_judge::JudgeError),
    /// Levers of a load, on a command that runs none.
    #[error(transparent)]
    Lever(#[from] LeverError),
    /// A private server.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The state folder or the journal.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A statement of the lever `schema.statement` failed.
    #[error("--lever schema.statement={statement}: {source}")]
    Schema {
        /// The statement.
        statement: String,
        /// The server's answer.
        source: Box<WireError>,
    },
    /// The work failed, and the private server could not be ended.
    #[error("{error}\n{left}")]
    AndServerLeft {
        /// The error of the work.
        error: Box<RunError>,
        /// The error of ending the server.
        left: Box<SandboxError>,
    },
    /// Tables and rows.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// Tables of TPC-C do not exist.
    #[error(transparent)]
    TpccTables(#[from] NamesError),
    /// The load.
    #[error(transparent)]
    Load(#[from] LoadError),
}

fn remedy(error: &std::io::Error) -> &'static str {
    match error.kind() {
        std::io::ErrorKind::StorageFull => {
            ": free some space, or write elsewhere: a run with --out DIR, a page with -o FILE"
        }
        std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
            ": write elsewhere: a run with --out DIR, a page with -o FILE"
        }
        std::io::ErrorKind::AlreadyExists => ": name a folder that does not exist yet",
        _ => "",
    }
}

impl RunError {
    /// A file that could not be read or written.
    pub(crate) fn file(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { doing, path, source }
    }

    /// A statement or connection that failed.
    pub(crate) fn wire(doing: &'static str) -> impl FnOnce(WireError) -> Self {
        move |source| Self::Wire { doing, source: Box::new(source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_remedy_of_a_failed_write_names_the_options_of_runs_and_of_pages() {
        for kind in [std::io::ErrorKind::StorageFull, std::io::ErrorKind::PermissionDenied] {
            let error = RunError::file("writing", "/full/report.html")(kind.into()).to_string();
            assert!(
                error.contains("a run with --out DIR") && error.contains("a page with -o FILE"),
                "{error}"
            );
        }
    }
}
