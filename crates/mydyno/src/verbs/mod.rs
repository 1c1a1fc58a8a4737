//! The verbs, one file each.

mod workloads;

use clap::Subcommand;

use crate::cli::Cli;
use crate::failure::{Failure, Status};
use crate::ui::Ui;

/// What mydyno can do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the workloads, or explain one.
    Workloads(workloads::Args),
}

/// Does what the command line asks for.
///
/// # Errors
/// What could not be done, with its exit status.
pub fn run(cli: Cli, ui: &Ui) -> Result<Status, Failure> {
    match cli.verb {
        Verb::Workloads(args) => workloads::run(&args, ui),
    }
}
