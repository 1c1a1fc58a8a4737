//! The command line.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser};

use crate::advice::advise;
use crate::config::Added;
use crate::failure::{Failure, Status};
use crate::log::Filter;
use crate::secrets::{WORD_AFTER, without_passwords};
use crate::ui::Ui;
use crate::verbs::compat::program_of;
use crate::verbs::{Verb, on_demand};
use crate::workload_args;

/// Load, audit, compare and watch MySQL and MariaDB, on your own server or a private one.
#[derive(Debug, Parser)]
#[command(name = "mydyno", version = version(), disable_help_subcommand = true, propagate_version = true)]
#[command(
    after_help = "Exit status: 0 fine · 1 the answer is bad · 2 usage · 3 environment · 130 interrupted."
)]
pub struct Cli {
    /// The verb.
    #[command(subcommand)]
    pub verb: Verb,
    /// Options of every verb.
    #[command(flatten)]
    pub common: Common,
    /// File of defaults, before the verb: options by verb as TOML [default: ~/.config/mydyno.toml; env: MYDYNO_CONFIG].
    #[arg(long, value_name = "FILE")]
    pub config: Option<std::path::PathBuf>,
}

/// Options of every verb.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Print the result as a JSON document on standard output; progress stays on standard error.
    #[arg(long, global = true)]
    pub json: bool,
    /// Print no notes and no progress.
    #[arg(long, global = true)]
    pub quiet: bool,
    /// Diagnostics on standard error: a level (`debug`), or levels by crate (`wire=trace,info`).
    #[arg(long, global = true, value_name = "LEVEL|FILTER", env = "MYDYNO_LOG", hide_env_values = true)]
    pub log: Option<Filter>,
}

fn version() -> String {
    let writer = mydyno_model::Writer::current();
    format!("{} ({})", writer.version, writer.commit)
}

/// The command line for these arguments: of the verbs that are not among them, it has the names and summaries alone.
pub fn command_of(args: &[OsString]) -> Command {
    on_demand::only(args, Cli::command)
}

/// Parses the command line by `command` and prints help, version and mistakes. A mistake that would repeat `hidden`, a word that may
/// be a password, is replaced by the remedy. `added` are options of the file of defaults; a note about them follows a mistake.
///
/// # Errors
/// The exit status after help and version (0, or 3 when they cannot be written) or a mistake (2).
pub fn parse(
    command: Command,
    args: Vec<OsString>,
    hidden: Option<&str>,
    added: &Added,
) -> Result<(Cli, Ui), ExitCode> {
    let mut command = workload_args::for_one_workload(command, &args);
    let found = command.try_get_matches_from_mut(&args);
    match found.and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => {
            let ui = Ui::detect(cli.common.json, cli.common.quiet);
            Ok((cli, ui))
        }
        Err(mut error) => {
            advise(&mut error, &command, &args);
            if hidden.is_some_and(|word| error.use_stderr() && error.to_string().contains(word)) {
                Ui::detect(false, false).failure(&Failure::usage(WORD_AFTER));
                return Err(Status::Usage.into());
            }
            let written = print(&error);
            if error.use_stderr() {
                if let Some(note) = added.note() {
                    Ui::detect(false, false).note(&note);
                }
                return Err(Status::Usage.into());
            }
            // A reader that has seen enough (`| head`) is no failure.
            match written {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                    Ui::detect(false, false).failure(&Failure::environment(format!(
                        "the result could not be written to standard output: {e}"
                    )));
                    Err(Status::Environment.into())
                }
                _ => Err(Status::Fine.into()),
            }
        }
    }
}

/// Prints a mistake or help. A mistake repeats words of the command line, which scripts take from elsewhere: where these hold
/// characters that steer a terminal, or a password, the text is printed visibly, without the password and without colours.
fn print(error: &clap::Error) -> io::Result<()> {
    if error.use_stderr() {
        let plain = error.to_string();
        let open = without_passwords(&plain);
        let visible = mydyno_model::text::visible(&open);
        if *visible != plain {
            return write!(io::stderr(), "{visible}");
        }
    }
    error.print()?;
    io::stdout().flush()
}

/// Verbs for which `help` is a word of their own: the name of a run, a server's option.
const HELP_IS_A_WORD: [&str; 2] = ["report", "knobs"];

/// `help VERB` and `VERB help` as `VERB --help`.
pub fn with_help(mut args: Vec<OsString>) -> Vec<OsString> {
    let is_help = |args: &[OsString], at: usize| args.get(at).is_some_and(|word| word == "help");
    let before = args.len();
    while is_help(&args, 1) {
        args.remove(1);
    }
    let of_verb = args.get(1).and_then(|verb| verb.to_str());
    let helps = of_verb.is_some_and(|verb| !verb.starts_with('-') && !HELP_IS_A_WORD.contains(&verb));
    // sysbench and mysqlslap read their own words.
    if helps && is_help(&args, 2) && program_of(&args).is_none() {
        args.remove(2);
    }
    if args.len() < before {
        args.push("--help".into());
    }
    args
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn help_of_a_verb_is_its_help() {
        let line = |words: &[&str]| super::with_help(words.iter().map(|w| w.into()).collect());
        assert_eq!(line(&["mydyno", "help", "server", "up"]), ["mydyno", "server", "up", "--help"]);
        assert_eq!(line(&["mydyno", "help"]), ["mydyno", "--help"]);
        assert_eq!(line(&["mydyno", "help", "help"]), ["mydyno", "--help"]);
        assert_eq!(line(&["mydyno", "bench", "help"]), ["mydyno", "bench", "--help"]);
        assert_eq!(line(&["mydyno", "server", "help", "up"]), ["mydyno", "server", "up", "--help"]);
        // A run and an option of servers can have this name.
        for words in [
            ["mydyno", "report", "help"],
            ["mydyno", "knobs", "help"],
            ["mydyno", "sysbench", "help"],
            ["/usr/bin/sysbench", "oltp_read_only", "help"],
        ] {
            assert_eq!(line(&words), words);
        }
    }

    #[test]
    fn a_command_line_of_some_verbs_speaks_of_all_as_the_whole_one() {
        let whole = super::Cli::command();
        let verbs = whole.get_subcommands().map(|verb| verb.get_name().to_owned());
        let lines =
            verbs.map(|verb| vec!["mydyno".to_owned(), "--quiet".to_owned(), verb, "--help".to_owned()]);
        let others = ["mydyno --help", "mydyno benhc", "mydyno --connections 4 bench", "mydyno"];
        for line in lines.chain(others.map(|line| line.split(' ').map(str::to_owned).collect())) {
            let args: Vec<std::ffi::OsString> = line.iter().map(Into::into).collect();
            // The verbs that take another program's place take all words.
            let said =
                |command: clap::Command| command.try_get_matches_from(&args).map_err(|e| e.to_string()).err();
            assert_eq!(said(super::command_of(&args)), said(whole.clone()), "{line:?}");
        }
        let some = super::command_of(&["mydyno".into(), "report".into()]);
        let options = |name: &str| some.find_subcommand(name).unwrap().get_arguments().count();
        assert!(options("report") > 0 && options("bench") == 0);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
