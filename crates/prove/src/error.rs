//! Errors of experiments.

use std::path::PathBuf;

use mydyno_levers::LeverError;
use mydyno_model::DocumentError;
use mydyno_run::RunError;
use mydyno_sandbox::SandboxError;
use thiserror::Error;

use crate::experiment::Mistake;

/// The reason why an experiment cannot be run.
#[derive(Debug, Error)]
pub enum ProveError {
    /// A side of a comparison in none of the accepted forms.
    #[error(
        "{side:?} is not a side of a comparison: {why}; a side is LEVER=VALUE (`mydyno host levers` lists them), an option file, the base directory of a server, or an engine like mariadb-10.11"
    )]
    Side {
        /// As typed.
        side: String,
        /// The reason.
        why: String,
    },
    /// A kept run that does not fit the others of a comparison.
    #[error("{run}: {why}")]
    Runs {
        /// Its name.
        run: String,
        /// The reason.
        why: String,
    },
    /// An experiment without classes of statements.
    #[error("{name} has no classes of statements: its arms are in its file")]
    NoClasses {
        /// Its name.
        name: String,
    },
    /// The arms do not differ.
    #[error("baseline and treatment are the same ({label}): give the treatment a lever of its own")]
    SameArms {
        /// The label of both.
        label: String,
    },
    /// Files of experiments contain mistakes.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Experiments(Vec<Mistake>),
    /// There is no experiment with this name.
    #[error(
        "no experiment is called {name:?}{}; `mydyno experiments` lists them",
        near.as_ref().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
    )]
    NoSuchExperiment {
        /// As typed.
        name: String,
        /// The most similar name.
        near: Option<String>,
    },
    /// The host lacks what the experiment needs.
    #[error("this host cannot show it: {lacks}")]
    NotHere {
        /// The unmet requirements.
        lacks: String,
    },
    /// The levels of a curve do not fit.
    #[error("a curve: {why}")]
    Curve {
        /// The reason.
        why: String,
    },
    /// A probe in a mode that needs servers.
    #[error(
        "a probe needs no server, and so no start of one: its arms are swapped between slices (--mode in-place)"
    )]
    ProbeMode,
    /// Levers of the whole host without the user's permission.
    #[error(
        "{levers} concern the whole host: give --allow-host-change; they are journalled first and put back at the end"
    )]
    NotAllowed {
        /// The levers.
        levers: String,
    },
    /// Two servers cannot be loaded at the same time.
    #[error("--duet: {why}")]
    Duet {
        /// The reason.
        why: String,
    },
    /// A lever or job that is not permitted on a user's server.
    #[error("--on-server: {why}")]
    NotOnServer {
        /// The reason.
        why: String,
    },
    /// Variables of the user's server without permission.
    #[error(
        "variables of the server at {address} would be changed ({changes}): give --allow-change; each old value is in the journal first, and is put back at the end"
    )]
    ChangeNotAllowed {
        /// The server.
        address: String,
        /// The variables.
        changes: String,
    },
    /// The experiment of a folder ran on the user's server, and the command names none.
    #[error(
        "it was carried out on the server at {address}: give --on-server --allow-change, and how to connect"
    )]
    WasOnServer {
        /// The server.
        address: String,
    },
    /// A lever cannot be swapped while the server runs.
    #[error("{lever} takes effect at the start of a server: use --mode alternate or --mode rows")]
    NotInPlace {
        /// The lever.
        lever: String,
    },
    /// A lever that is swapped between slices cannot be set or restored.
    #[error("{arm}: {source}")]
    Lever {
        /// The arm.
        arm: String,
        /// The cause.
        source: Box<LeverError>,
    },
    /// The budget is too short for the smallest experiment.
    #[error(
        "{budget_s:.0} s are too short: {starts} starts with {blocks} blocks each take about {needed_s:.0} s; give --budget {needed_s:.0}s or more"
    )]
    Budget {
        /// The given budget, in seconds.
        budget_s: f64,
        /// Starts of the smallest experiment.
        starts: usize,
        /// Blocks of each.
        blocks: usize,
        /// The smallest sufficient budget, in seconds.
        needed_s: f64,
    },
    /// A factor that is not a lever with two levels.
    #[error(
        "--factor {factor:?}: {why}; a factor is LEVER=LOW,HIGH, as in `sync_binlog=1,0` (levels that hold a comma are separated by |)"
    )]
    Factor {
        /// As typed.
        factor: String,
        /// The reason.
        why: String,
    },
    /// There is no such design.
    #[error("--design: {0}")]
    TwoLevel(mydyno_stats::Error),
    /// Several factors need one of two modes.
    #[error(
        "--mode alternate keeps the servers of all runs up at the same time, which several factors do not: use in-place or rows"
    )]
    FactorMode,
    /// The budget is too short for the smallest experiment with several factors.
    #[error(
        "{budget_s:.0} s are too short: {blocks} blocks of {runs} runs take about {needed_s:.0} s; give --budget {needed_s:.0}s or more, or a --design with fewer runs"
    )]
    FactorBudget {
        /// The given budget, in seconds.
        budget_s: f64,
        /// Fewest blocks.
        blocks: usize,
        /// Runs of each.
        runs: usize,
        /// The smallest sufficient budget, in seconds.
        needed_s: f64,
    },
    /// A value that is out of range.
    #[error("--{option}: {problem}")]
    Value {
        /// The option.
        option: &'static str,
        /// Reason why its value is refused.
        problem: String,
    },
    /// Levers of the whole host, which two simultaneous servers cannot have at different values.
    #[error(
        "{levers} concern the whole host, so two servers that are up together cannot differ in them: give --mode rows, which starts one server at a time, or --mode in-place, which swaps them between slices"
    )]
    WholeHost {
        /// The levers.
        levers: String,
    },
    /// Another command changes a setting of the host.
    #[error(transparent)]
    Host(#[from] mydyno_host::HostError),
    /// A server cannot be made or ended.
    #[error("{arm}: {source}")]
    Server {
        /// The arm.
        arm: String,
        /// The cause.
        source: Box<SandboxError>,
    },
    /// The load cannot be run.
    #[error("{arm}: {source}")]
    Load {
        /// The arm.
        arm: String,
        /// The cause.
        source: Box<RunError>,
    },
    /// The load of an arm is invalid.
    #[error("{arm}: {why}")]
    Plan {
        /// The arm.
        arm: String,
        /// The cause.
        why: String,
    },
    /// A server started and cannot be loaded.
    #[error("{arm} ({label}) cannot be loaded: {why}{}", log_tail(.log))]
    Warmup {
        /// The arm.
        arm: String,
        /// Its levers.
        label: String,
        /// The cause.
        why: String,
        /// The last lines of the server's error log.
        log: String,
    },
    /// A file of the experiment's folder could not be accessed.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The operation, as in `write`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A document of the folder cannot be read.
    #[error("{path}: {source}")]
    Document {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: DocumentError,
    },
    /// The folder contains something else.
    #[error("{path}: {why}")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The reason why it is not used.
        why: String,
    },
    /// No row of its table is left.
    #[error(
        "{folder}: its table is complete, and its looks have spent their error: `mydyno prove --again {folder}` carries it out once more and pools both"
    )]
    Complete {
        /// Folder of the experiment.
        folder: PathBuf,
    },
    /// On the user's server all slices of a block failed.
    #[error(
        "all slices of a block failed, so the experiment ended: {why}; what was measured is kept in {folder}: `mydyno prove --resume {folder}` with --on-server --allow-change, and how to connect, goes on"
    )]
    Unanswered {
        /// The reason of the last slice.
        why: String,
        /// Folder of the experiment.
        folder: PathBuf,
    },
    /// The user ended it.
    #[error("interrupted; what was measured is kept in {folder}")]
    Interrupted {
        /// Folder of the experiment.
        folder: PathBuf,
    },
}

fn log_tail(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("; the server's log ends with:\n{log}") }
}

impl ProveError {
    /// For `map_err` of operations on a file.
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
