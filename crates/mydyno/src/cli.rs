//! The command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser};

use crate::failure::{Failure, Status};
use crate::log::Filter;
use crate::secrets::WORD_AFTER;
use crate::ui::Ui;
use crate::verbs::Verb;
use crate::workload_args;

/// The dynamometer for MySQL and MariaDB: load with an honest record, on your own server or a private one.
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
    /// Diagnostics on standard error: a level (`debug`), or levels by crate (`wire=trace,info`).
    #[arg(long, global = true, value_name = "LEVEL|FILTER", env = "MYDYNO_LOG", hide_env_values = true)]
    pub log: Option<Filter>,
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
    let args: Vec<OsString> = args.collect();
    let command = workload_args::for_one_workload(Cli::command(), &args);
    match command.try_get_matches_from(args).and_then(|found| Cli::from_arg_matches(&found)) {
        Ok(cli) => {
            let ui = Ui::detect(cli.common.json, cli.common.quiet);
            Ok((cli, ui))
        }
        Err(mut error) => {
            advise(&mut error);
            if hidden.is_some_and(|word| error.use_stderr() && error.to_string().contains(word)) {
                Ui::detect(false, false).failure(&Failure::usage(WORD_AFTER));
                return Err(Status::Usage.into());
            }
            let _ = error.print();
            Err(if error.use_stderr() { Status::Usage } else { Status::Fine }.into())
        }
    }
}

/// `help VERB` as `VERB --help`.
pub fn with_help(mut args: Vec<OsString>) -> Vec<OsString> {
    if args.get(1).is_some_and(|first| first == "help") {
        args.remove(1);
        args.push("--help".into());
    }
    args
}

/// Options of sysbench, mysqlslap and the mysql client, and what does the same here.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["--threads", "--num-threads", "--concurrency", "-c", "--clients"], "--connections N"),
    (&["--report-interval"], "nothing: every second is shown and recorded"),
    (&["--warmup-time"], "--warmup DURATION"),
    (&["--events", "--max-requests", "--number-of-queries"], "--time DURATION: a run ends by its window"),
    (&["--max-time", "--duration"], "--time DURATION"),
    (&["--tx-rate"], "--rate RATE"),
    (&["--iterations"], "--repeat N"),
    (&["--histogram"], "nothing: histograms of every second are in the record"),
    (&["--db-driver"], "nothing: there is one driver"),
    (&["--mysql-host"], "-h HOST"),
    (&["--mysql-port"], "-P PORT"),
    (&["--mysql-socket"], "-S PATH"),
    (&["--mysql-user"], "-u USER"),
    (&["--mysql-password"], "-p, --password-file FILE or MYSQL_PWD"),
    (&["--mysql-db", "--create-schema", "--database", "-D"], "--schema NAME"),
    (&["--mysql-storage-engine", "--engine"], "--storage-engine NAME"),
    (&["--mysql-ssl"], "--ssl-mode MODE"),
    (&["--auto-generate-sql", "-a"], "the workload `slap`"),
    (&["-e", "--execute"], "the workload `sql`, as in `mydyno bench sql --query 'SELECT 1'`"),
    (&["--jobs", "-j"], "--workers N"),
    (&["--rand-seed"], "--seed N"),
];

/// Replaces clap's guess by the option that does the same, where the user typed one of another program.
fn advise(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    // `-h` alone, for help: where there is a target it is the host, as in the mysql client.
    let without_value =
        matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty());
    if error.kind() == ErrorKind::InvalidValue && without_value && given.starts_with("--host") {
        let tip = "-h is the host here, as in the mysql client; --help or -? shows the options";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return;
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let given = given.split('=').next().unwrap_or_default().to_owned();
    let Some((_, here)) = FOREIGN.iter().find(|(names, _)| names.contains(&given.as_str())) else { return };
    let tip = ContextValue::StyledStrs(vec![format!("{given} of other programs is here {here}").into()]);
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, tip);
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    #[test]
    fn options_of_other_programs_have_a_tip_of_their_own() {
        for (line, tip) in [
            ("mydyno bench w --threads=4", "--connections N"),
            ("mydyno bench w --report-interval 1", "every second"),
            ("mydyno bench w -e 'SELECT 1'", "the workload `sql`"),
            ("mydyno bench w --mysql-password=secret", "--password-file FILE"),
        ] {
            let mut error = super::Cli::try_parse_from(line.split(' ')).unwrap_err();
            super::advise(&mut error);
            let text = error.to_string();
            assert!(text.contains(tip) && !text.contains("similar") && !text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn a_host_without_its_name_says_how_to_get_help() {
        let mut error = super::Cli::try_parse_from(["mydyno", "bench", "-h"]).unwrap_err();
        super::advise(&mut error);
        assert!(error.to_string().contains("-h is the host here"), "{error}");
    }

    #[test]
    fn help_of_a_verb_is_its_help() {
        let line = |words: &[&str]| super::with_help(words.iter().map(|w| w.into()).collect());
        assert_eq!(line(&["mydyno", "help", "server", "up"]), ["mydyno", "server", "up", "--help"]);
        assert_eq!(line(&["mydyno", "help"]), ["mydyno", "--help"]);
        assert_eq!(line(&["mydyno", "bench", "help"]), ["mydyno", "bench", "help"]);
    }

    #[test]
    fn the_command_line_is_well_formed() {
        super::Cli::command().debug_assert();
    }
}
