//! The command line.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, Write as _};
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory, FromArgMatches, Parser};

use crate::config::Added;
use crate::failure::{Failure, Status};
use crate::log::Filter;
use crate::secrets::WORD_AFTER;
use crate::ui::Ui;
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
/// The exit status after help, version (0) or a mistake (2).
pub fn parse(
    command: Command,
    args: Vec<OsString>,
    hidden: Option<&str>,
    added: &Added,
) -> Result<(Cli, Ui), ExitCode> {
    let command = workload_args::for_one_workload(command, &args);
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
            print(&error);
            if let Some(note) = added.note().filter(|_| error.use_stderr()) {
                Ui::detect(false, false).note(&note);
            }
            Err(if error.use_stderr() { Status::Usage } else { Status::Fine }.into())
        }
    }
}

/// Prints a mistake or help. A mistake repeats words of the command line, which scripts take from elsewhere: where these hold
/// characters that steer a terminal, the text is printed visibly and without colours.
fn print(error: &clap::Error) {
    let plain = error.to_string();
    match mydyno_model::text::visible(&plain) {
        // A terminal that has gone leaves nobody to tell.
        Cow::Owned(visible) if error.use_stderr() => drop(write!(io::stderr(), "{visible}")),
        _ => drop(error.print()),
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

/// Options of sysbench, mysqlslap and the mysql client, and the corresponding ones here.
const FOREIGN: &[(&[&str], &str)] = &[
    (&["--threads", "--num-threads", "--concurrency", "-c", "--clients"], "--connections N"),
    (&["--report-interval"], "nothing: every second is shown and recorded"),
    (&["--report-checkpoints"], "nothing: every second is recorded, and `mydyno report` shows the run again"),
    (&["--warmup-time"], "--warmup DURATION"),
    (&["--events", "--max-requests", "--number-of-queries"], "--time DURATION: a run ends by its window"),
    (&["--max-time", "--duration"], "--time DURATION"),
    (&["--tx-rate"], "--rate RATE"),
    (&["--iterations"], "--repeat N"),
    (&["--forced-shutdown"], "nothing: a load ends with its window, at the latest after --read-timeout"),
    (
        &["--thread-stack-size", "--thread-init-timeout"],
        "nothing: connections are no threads; --connect-timeout DURATION",
    ),
    (&["--debug", "--db-debug", "--mysql-debug", "--verbosity"], "--log LEVEL"),
    (&["--validate"], "the step `check`, as in `mydyno bench WORKLOAD check`"),
    (&["--config-file"], "--defaults-file FILE for the target"),
    (&["--percentile"], "--percentiles LIST"),
    (&["--histogram"], "nothing: histograms of every second are in the record"),
    (&["--rand-seed"], "--seed N"),
    (&["--rand-type"], "--distribution NAME"),
    (&["--db-driver", "--luajit-cmd"], "nothing: there is one driver, and no Lua"),
    (&["--db-ps-mode"], "nothing: statements are prepared; the workload `sql` has --sql-protocol text"),
    (&["--mysql-host"], "-h HOST"),
    (&["--mysql-port"], "-P PORT"),
    (&["--mysql-socket"], "-S PATH"),
    (&["--mysql-user"], "-u USER"),
    (&["--mysql-password"], "-p, --password-file FILE or MYSQL_PWD"),
    (&["--mysql-db", "--create-schema", "--database", "-D"], "--schema NAME"),
    (&["--mysql-storage-engine", "--engine"], "--storage-engine NAME"),
    (&["--mysql-ssl", "--mysql-ssl-cipher"], "--ssl-mode MODE"),
    (&["--mysql-ssl-key"], "--ssl-key FILE"),
    (&["--mysql-ssl-ca"], "--ssl-ca FILE"),
    (&["--mysql-ssl-cert"], "--ssl-cert FILE"),
    (&["--mysql-compression"], "--compress"),
    (&["--mysql-compression-algorithms"], "--compression-algorithms LIST"),
    (&["--mysql-ignore-errors"], "--ignore-errors LIST"),
    (&["--mysql-dry-run"], "nothing: `mydyno workloads NAME` shows the statements"),
    (&["--auto-generate-sql", "-a"], "the workload `slap`"),
    (&["-e", "--execute"], "the workload `sql`, as in `mydyno bench sql --sql 'SELECT 1'`"),
    (&["--jobs", "-j"], "--workers N"),
    (
        &["--query", "-q"],
        "the workload `sql` with --sql 'SELECT 1'; `mydyno slap` takes mysqlslap's files of statements",
    ),
    (
        &[
            "--commit",
            "--create",
            "--csv",
            "--delimiter",
            "--detach",
            "--no-drop",
            "--only-print",
            "--post-query",
            "--post-system",
            "--pre-query",
            "--pre-system",
        ],
        "`mydyno slap`, which takes mysqlslap's whole command line",
    ),
    (
        &[
            "--table",
            "-t",
            "--batch",
            "-B",
            "--skip-column-names",
            "-N",
            "--vertical",
            "-E",
            "--safe-updates",
            "--force",
            "-f",
            "--init-command",
        ],
        "for the client program alone, as in `mydyno server cli NAME -- OPTIONS` for a private server",
    ),
    (&["--silent", "-s"], "--quiet"),
    (&["--verbose", "-v"], "--log LEVEL"),
    (&["--ssl", "--skip-ssl", "--ssl-verify-server-cert"], "--ssl-mode MODE"),
    (&["--ssl-cipher", "--tls-version"], "nothing: TLS 1.3, else 1.2, with the ciphers of the library"),
    (&["--plugin-dir", "--default-auth"], "nothing: the methods of authentication are built in"),
];

/// Replaces clap's suggestion by the corresponding option when the user typed one of another program.
fn advise(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    // `-h` without a value is an attempt to get help: with a target it means the host, as in the mysql client.
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
    if given == "--config" {
        let tip = "--config stands before the verb, as in `mydyno --config FILE bench`";
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        return;
    }
    // sysbench accepts both spellings.
    let given = given.split('=').next().unwrap_or_default().replace('_', "-");
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
            ("mydyno bench w --delimiter=;", "`mydyno slap`"),
            ("mydyno bench w -q x", "--sql 'SELECT 1'"),
            ("mydyno audit -t", "`mydyno server cli NAME -- OPTIONS`"),
            ("mydyno audit --silent", "--quiet"),
            ("mydyno bench w --skip-ssl", "--ssl-mode MODE"),
        ] {
            let mut error = super::Cli::try_parse_from(line.split(' ')).unwrap_err();
            super::advise(&mut error);
            let text = error.to_string();
            assert!(text.contains(tip) && !text.contains("similar") && !text.contains("secret"), "{text}");
        }
    }

    /// Options of sysbench 1.0.20 and of its development branch that are not those of a test or script, and of its OLTP scripts.
    const OF_SYSBENCH: &str = "threads=4 events=0 time=10 forced-shutdown=off thread-stack-size=64K thread-init-timeout=30 rate=100
        report-interval=1 report-checkpoints=1,2 debug=on validate=on config-file=f tx-rate=0 max-requests=0 max-time=0 num-threads=1
        warmup-time=5 luajit-cmd=off rand-type=special rand-spec-iter=12 rand-spec-pct=1 rand-spec-res=75 rand-seed=1
        rand-pareto-h=0.2 rand-zipfian-exp=0.8 verbosity=3 percentile=95 histogram=on db-driver=mysql db-ps-mode=disable
        db-debug=on mysql-host=h mysql-port=1 mysql-socket=s mysql-user=u mysql-password=p mysql-db=d mysql-ssl=on
        mysql-ssl-cipher=c mysql-ssl-key=k mysql-ssl-ca=c mysql-ssl-cert=c mysql-compression=on
        mysql-compression-algorithms=zlib mysql-debug=on mysql-ignore-errors=1213 mysql-dry-run=on auto-inc=on
        create-secondary=on delete-inserts=1 distinct-ranges=1 index-updates=1 mysql-storage-engine=innodb non-index-updates=1
        order-ranges=1 point-selects=10 range-selects=on range-size=100 secondary=off simple-ranges=1 skip-trx=off sum-ranges=1
        table-size=1 tables=1";

    #[test]
    fn every_option_of_sysbench_works_or_is_refused_with_the_name_here() {
        for option in OF_SYSBENCH.split_ascii_whitespace() {
            let (name, value) = option.split_once('=').unwrap();
            let spellings = [format!("--{option}"), format!("--{}={value}", name.replace('-', "_"))];
            for (nth, typed) in spellings.into_iter().enumerate() {
                match super::Cli::try_parse_from(["mydyno", "bench", "w", &typed]) {
                    Ok(_) => assert_eq!(
                        nth,
                        usize::from(!name.contains('-')) * nth,
                        "{typed} is not a spelling of mydyno"
                    ),
                    Err(mut error) => {
                        super::advise(&mut error);
                        let text = error.to_string();
                        let tip = text.contains("of other programs is here");
                        let similar = nth == 1 && text.contains(&format!("'--{name}'"));
                        assert!(tip || similar, "{typed}: {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_tips_name_options_that_exist() {
        let command = super::Cli::command();
        let bench = command.find_subcommand("bench").unwrap();
        let long: Vec<&str> =
            bench.get_arguments().filter_map(|arg| arg.get_long()).chain(["log", "quiet"]).collect();
        for (_, here) in super::FOREIGN {
            for word in here
                .split([' ', ',', ';'])
                .filter_map(|word| word.strip_prefix("--").filter(|w| !w.is_empty()))
            {
                assert!(long.contains(&word), "{here}");
            }
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
