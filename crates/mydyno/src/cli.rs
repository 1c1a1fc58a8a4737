//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, Parser};

use crate::failure::{Failure, Status};
use crate::secrets::WORD_AFTER;
use crate::ui::Ui;
use crate::verbs::Verb;

/// The dynamometer for MySQL and MariaDB: load with an honest record, on your own server or a private one.
#[derive(Debug, Parser)]
#[command(name = "mydyno", version = version(), disable_help_subcommand = true, propagate_version = true)]
#[command(
    after_help = "Exit status: 0 fine · 1 the answer is bad · 2 usage · 3 environment · 130 interrupted."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// Options of every verb.
    #[command(flatten)]
    pub common: Common,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Print the result as a JSON document on standard output; progress stays on standard error.
    #[arg(long, global = true)]
    pub json: bool,
    /// No notes and no progress.
    #[arg(long, global = true)]
    pub quiet: bool,
}

fn version() -> String {
    let writer = mydyno_model::Writer::current();
    format!("{} ({})", writer.version, writer.commit)
}

/// Reads the command line and prints help, version and mistakes. A mistake that would repeat `hidden`, a word that may be a
/// password, is replaced by what to do about it.
///
/// # Errors
/// The exit status after help, version (0) or a mistake (2).
pub fn parse(args: impl Iterator<Item = OsString>, hidden: Option<&str>) -> Result<(Cli, Ui), ExitCode> {
    match Cli::try_parse_from(args) {
        Ok(cli) => {
            let ui = Ui::detect(cli.common.json, cli.common.quiet);
            Ok((cli, ui))
        }
        Err(error) => {
            if hidden.is_some_and(|word| error.use_stderr() && error.to_string().contains(word)) {
                Ui::detect(false, false).failure(&Failure::usage(WORD_AFTER));
                return Err(Status::Usage.into());
            }
            let _ = error.print();
            Err(if error.use_stderr() { Status::Usage } else { Status::Fine }.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
