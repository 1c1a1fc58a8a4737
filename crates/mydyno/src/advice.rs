//! Advice on mistakes of the command line: options and commands of other programs, and their equivalents here.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::config::verb_of;

/// The equivalent of an option of another program.
#[derive(Debug, Clone, Copy)]
enum Here {
    /// Options, for verbs that have all of them.
    Options(&'static str),
    /// An explanation, for the verb `bench`.
    Bench(&'static str),
    /// An explanation, for verbs that connect to a server.
    Server(&'static str),
}

use Here::{Bench, Options, Server};

/// Options of sysbench, mysqlslap and the mysql client, and of other verbs, with their equivalents: the first that a verb has.
const FOREIGN: &[(&[&str], &[Here])] = &[
    (
        &["--threads", "--num-threads", "--concurrency", "-c", "--clients"],
        &[Options("--connections N"), Options("--threads LIST")],
    ),
    (
        &["--report-interval"],
        &[Options("--interval DURATION"), Bench("nothing: every second is shown and recorded")],
    ),
    (
        &["--report-checkpoints"],
        &[Bench("nothing: every second is recorded, and `mydyno report` shows the run again")],
    ),
    (&["--warmup-time"], &[Options("--warmup DURATION")]),
    (
        &["--events", "--max-requests", "--number-of-queries"],
        &[
            Options("--time DURATION: a run ends by its window"),
            Options("--budget DURATION"),
            Options("--count N"),
        ],
    ),
    (
        &["--time", "--max-time", "--duration"],
        &[Options("--time DURATION"), Options("--duration DURATION"), Options("--budget DURATION")],
    ),
    (&["--tx-rate"], &[Options("--rate RATE")]),
    (&["--iterations"], &[Options("--repeat N")]),
    (
        &["--forced-shutdown"],
        &[Bench("nothing: a load ends with its window, at the latest after --read-timeout")],
    ),
    (
        &["--thread-stack-size", "--thread-init-timeout"],
        &[Bench("nothing: connections are no threads; --connect-timeout DURATION")],
    ),
    (&["--debug", "--db-debug", "--mysql-debug", "--verbosity"], &[Options("--log LEVEL")]),
    (&["--validate"], &[Bench("the step `check`, as in `mydyno bench WORKLOAD check`")]),
    (&["--config-file"], &[Options("--defaults-file FILE for the target")]),
    (&["--percentile"], &[Options("--percentiles LIST")]),
    (&["--histogram"], &[Bench("nothing: histograms of every second are in the record")]),
    (&["--rand-seed"], &[Options("--seed N")]),
    (&["--rand-type"], &[Options("--distribution NAME")]),
    (&["--db-driver", "--luajit-cmd"], &[Bench("nothing: there is one driver, and no Lua")]),
    (
        &["--db-ps-mode"],
        &[Bench("nothing: statements are prepared; the workload `sql` has --sql-protocol text")],
    ),
    (&["--mysql-host"], &[Options("-h HOST")]),
    (&["--mysql-port"], &[Options("-P PORT")]),
    (&["--mysql-socket"], &[Options("-S PATH")]),
    (&["--mysql-user"], &[Options("-u USER")]),
    (&["--mysql-password"], &[Options("-p, --password-file FILE or MYSQL_PWD")]),
    (&["--mysql-db", "--create-schema", "--database", "-D"], &[Options("--schema NAME")]),
    (&["--mysql-storage-engine", "--engine"], &[Options("--storage-engine NAME")]),
    (&["--mysql-ssl", "--mysql-ssl-cipher"], &[Options("--ssl-mode MODE")]),
    (&["--mysql-ssl-key"], &[Options("--ssl-key FILE")]),
    (&["--mysql-ssl-ca"], &[Options("--ssl-ca FILE")]),
    (&["--mysql-ssl-cert"], &[Options("--ssl-cert FILE")]),
    (&["--mysql-compression"], &[Options("--compress")]),
    (&["--mysql-compression-algorithms"], &[Options("--compression-algorithms LIST")]),
    (&["--mysql-ignore-errors"], &[Options("--ignore-errors LIST")]),
    (&["--mysql-dry-run"], &[Bench("nothing: `mydyno workloads NAME` shows the statements")]),
    (&["--auto-generate-sql", "-a"], &[Bench("the workload `slap`")]),
    (&["-e", "--execute"], &[Bench("the workload `sql`, as in `mydyno bench sql --sql 'SELECT 1'`")]),
    (&["--jobs", "-j"], &[Options("--workers N")]),
    (
        &["--query", "-q"],
        &[Bench(
            "the workload `sql` with --sql 'SELECT 1'; `mydyno slap` takes mysqlslap's files of statements",
        )],
    ),
    (&["-q"], &[Options("--quiet")]),
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
        &[Bench("`mydyno slap`, which takes mysqlslap's whole command line")],
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
        &[Server(
            "for the client program alone, as in `mydyno server cli NAME -- OPTIONS` for a private server",
        )],
    ),
    (&["--silent", "-s"], &[Options("--quiet")]),
    (&["--verbose", "-v"], &[Options("--log LEVEL")]),
    (&["--ssl", "--skip-ssl", "--ssl-verify-server-cert"], &[Options("--ssl-mode MODE")]),
    (
        &["--ssl-cipher", "--tls-version"],
        &[Server("nothing: TLS 1.3, else 1.2, with the ciphers of the library")],
    ),
    (&["--plugin-dir", "--default-auth"], &[Server("nothing: the methods of authentication are built in")]),
];

/// Steps of a bench, as sysbench names them.
const STEPS: [&str; 4] = ["prepare", "run", "check", "cleanup"];

/// The verb that the arguments name.
struct Verb<'a> {
    /// The names that lead to it, as in `server up`.
    name: String,
    command: &'a Command,
}

impl Verb<'_> {
    /// Whether the verb accepts a long option, or a short one with a value.
    fn has(&self, option: &str) -> bool {
        let is = |arg: &Arg| match option.strip_prefix("--") {
            Some(long) => arg.get_long() == Some(long),
            None => {
                let short =
                    arg.get_short().is_some_and(|short| option.strip_prefix('-') == Some(&short.to_string()));
                short && arg.get_action().takes_values()
            }
        };
        // Options of every verb reach it only when clap parses one.
        self.command.get_arguments().any(is) || ["--json", "--quiet", "--log"].contains(&option)
    }

    fn takes(&self, here: &Here) -> Option<&'static str> {
        let (text, fits) = match here {
            Options(text) => (text, options(text).all(|option| self.has(option))),
            Bench(text) => (text, self.name == "bench"),
            Server(text) => (text, self.has("--host")),
        };
        fits.then_some(*text)
    }

    /// The equivalent of an option.
    fn instead_of(&self, given: &str) -> Option<&'static str> {
        let entries = FOREIGN.iter().filter(|(names, _)| names.contains(&given));
        entries.flat_map(|(_, here)| *here).find_map(|here| self.takes(here))
    }

    /// The usage of the verb, without an option.
    fn usage(&self) -> clap::builder::StyledStr {
        self.command.clone().bin_name(format!("mydyno {}", self.name)).render_usage()
    }
}

/// The options that a text names, outside of code.
fn options(text: &str) -> impl Iterator<Item = &str> {
    let outside = text.split('`').step_by(2);
    let words = outside.flat_map(|part| part.split([' ', ',', ';', ':']));
    words.filter(|word| word.strip_prefix('-').is_some_and(|rest| !rest.trim_start_matches('-').is_empty()))
}

/// Replaces clap's suggestion where the user typed an option or a command of another program, and the usage where clap guesses one.
/// `command` has parsed `args`.
pub fn advise(error: &mut clap::Error, command: &Command, args: &[OsString]) {
    if error.kind() == ErrorKind::InvalidSubcommand {
        return advise_on_command(error, args);
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else { return };
    let given = given.clone();
    // `-h` without a value is an attempt to get help: with a target it means the host, as in the mysql client.
    let without_value =
        matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(value)) if value.is_empty());
    if error.kind() == ErrorKind::InvalidValue && without_value && given.starts_with("--host") {
        return suggest(error, "-h is the host here, as in the mysql client; --help or -? shows the options");
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let path = verb_of(args, command).map(|(_, path)| path).unwrap_or_default();
    let name = path.iter().map(|verb| verb.get_name()).collect::<Vec<_>>().join(" ");
    let verb = path.last().map(|command| Verb { name, command });
    if let Some(verb) = &verb {
        error.insert(ContextKind::Usage, ContextValue::StyledStr(verb.usage()));
    }
    if given == "--config" {
        return suggest(error, "--config stands before the verb, as in `mydyno --config FILE bench`");
    }
    if given == "-?" {
        return suggest(error, "--help shows the options");
    }
    let Some(verb) = verb else { return };
    if given.contains("://") && verb.has("--dsn") {
        return suggest(error, "a URL follows --dsn");
    }
    // sysbench accepts both spellings.
    let given = given.split('=').next().unwrap_or_default().replace('_', "-");
    if !FOREIGN.iter().any(|(names, _)| names.contains(&given.as_str())) {
        return;
    }
    let Some(here) = verb.instead_of(&given) else {
        // What is spelled like an option of another program is none that means the same.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Suggested);
        return;
    };
    let whose = if given == "--time" { "commands" } else { "programs" };
    suggest(error, &format!("{given} of other {whose} is here {here}"));
}

/// A workload or a step in the place of the verb, as for sysbench.
fn advise_on_command(error: &mut clap::Error, args: &[OsString]) {
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let is_step = |word: &str| STEPS.contains(&word);
    let tip = match mydyno_workload::find(given) {
        Ok(_) => {
            let words = args.iter().filter_map(|word| word.to_str());
            let step = words.skip_while(|word| word != given).find(|word| is_step(word));
            let step = step.map_or_else(|| " [STEP]".to_owned(), |step| format!(" {step}"));
            format!("the workload is a word of bench: `mydyno bench {given}{step}`")
        }
        Err(_) if is_step(given) => {
            format!(
                "the step is a word of bench: `mydyno bench WORKLOAD {given}`, as in `mydyno bench oltp_read_write {given}`"
            )
        }
        Err(_) => return,
    };
    error.remove(ContextKind::SuggestedSubcommand);
    suggest(error, &tip);
}

/// Replaces the suggestion.
fn suggest(error: &mut clap::Error, tip: &str) {
    error.remove(ContextKind::SuggestedArg);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.to_owned().into()]));
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::{Cli, command_of};

    /// The error of a command line, with its advice.
    fn said(line: &[&str]) -> Option<String> {
        let args: Vec<OsString> = line.iter().map(Into::into).collect();
        let mut command = command_of(&args);
        let mut error = command.try_get_matches_from_mut(&args).err()?;
        advise(&mut error, &command, &args);
        Some(error.to_string())
    }

    fn said_of(line: &str) -> String {
        said(&line.split(' ').collect::<Vec<_>>()).unwrap()
    }

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
            let text = said_of(line);
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
                match said(&["mydyno", "bench", "w", &typed]) {
                    None => assert_eq!(
                        nth,
                        usize::from(!name.contains('-')) * nth,
                        "{typed} is not a spelling of mydyno"
                    ),
                    Some(text) => {
                        let tip = text.contains("of other programs is here");
                        let similar = nth == 1 && text.contains(&format!("'--{name}'"));
                        assert!(tip || similar, "{typed}: {text}");
                    }
                }
            }
        }
    }

    /// The verbs of a command and those below them, with the words that lead to them.
    fn verbs<'a>(command: &'a Command, path: &[&'a str]) -> Vec<(Vec<&'a str>, &'a Command)> {
        let below = command.get_subcommands().filter(|verb| !["sysbench", "slap"].contains(&verb.get_name()));
        below
            .flat_map(|verb| {
                let path: Vec<&str> = path.iter().copied().chain([verb.get_name()]).collect();
                let mut found = verbs(verb, &path);
                found.push((path, verb));
                found
            })
            .collect()
    }

    #[test]
    fn a_tip_names_only_options_of_the_verb() {
        let command = Cli::command();
        for (path, verb) in verbs(&command, &[]) {
            let long: Vec<&str> =
                verb.get_arguments().filter_map(|arg| arg.get_long()).chain(["log", "quiet"]).collect();
            let named = Verb { name: path.join(" "), command: verb };
            for name in FOREIGN.iter().flat_map(|(names, _)| *names) {
                let Some(tip) = named.instead_of(name) else { continue };
                for option in options(tip).filter_map(|word| word.strip_prefix("--")) {
                    assert!(long.contains(&option), "{path:?} {name}: {tip}");
                }
            }
        }
    }

    #[test]
    fn every_equivalent_is_one_of_some_verb() {
        let command = Cli::command();
        let all: Vec<Verb> = verbs(&command, &[])
            .into_iter()
            .map(|(path, command)| Verb { name: path.join(" "), command })
            .collect();
        for here in FOREIGN.iter().flat_map(|(_, here)| *here) {
            assert!(all.iter().any(|verb| verb.takes(here).is_some()), "{here:?}");
        }
    }

    #[test]
    fn the_tip_is_that_of_the_verb() {
        for (line, tip) in [
            ("mydyno compare w --time 60", Some("--budget DURATION")),
            ("mydyno compare w --duration 60", Some("--budget DURATION")),
            ("mydyno checkup --time 60", Some("--budget DURATION")),
            ("mydyno watch --time 60", Some("--duration DURATION")),
            ("mydyno watch --report-interval 1", Some("--interval DURATION")),
            ("mydyno tpcc-lint -D x", Some("--schema NAME")),
            ("mydyno runs -q", Some("--quiet")),
            ("mydyno compare w -?", Some("--help shows the options")),
            ("mydyno audit mysql://root@db1/", Some("--dsn")),
            ("mydyno audit --threads 4", None),
            ("mydyno probe fsync --threads 4", None),
            ("mydyno demo --threads 4", None),
            ("mydyno audit -D x", None),
            ("mydyno report --percentile 99", None),
            ("mydyno compat install --force", None),
            ("mydyno server list -a", None),
            ("mydyno prove --iterations 3", None),
        ] {
            let text = said_of(line);
            match tip {
                Some(tip) => assert!(text.contains(tip) && !text.contains("similar"), "{line}: {text}"),
                None => assert!(!text.contains("tip:"), "{line}: {text}"),
            }
        }
    }

    #[test]
    fn the_usage_is_that_of_the_verb_and_guesses_no_option() {
        for (line, usage) in [
            ("mydyno bench w --mysql-host=x", "Usage: mydyno bench [OPTIONS] <WORKLOAD> [STEP]\n"),
            ("mydyno audit --threads", "Usage: mydyno audit [OPTIONS]\n"),
            ("mydyno host status --verbose", "Usage: mydyno host status [OPTIONS]\n"),
            ("mydyno server down --verbose", "Usage: mydyno server down [OPTIONS]"),
        ] {
            let text = said_of(line);
            assert!(text.contains(usage), "{line}: {text}");
        }
    }

    #[test]
    fn a_workload_or_a_step_without_a_verb_leads_to_bench() {
        for (line, tip) in [
            ("mydyno oltp_read_write run", "`mydyno bench oltp_read_write run`"),
            ("mydyno oltp_read_write --threads=4 prepare", "`mydyno bench oltp_read_write prepare`"),
            ("mydyno tpcc", "`mydyno bench tpcc [STEP]`"),
            ("mydyno prepare", "`mydyno bench WORKLOAD prepare`"),
            ("mydyno run", "`mydyno bench WORKLOAD run`"),
        ] {
            let text = said_of(line);
            assert!(text.contains(tip) && !text.contains("similar"), "{line}: {text}");
        }
        assert!(said_of("mydyno benhc").contains("'bench'"));
    }

    #[test]
    fn a_host_without_its_name_says_how_to_get_help() {
        for (path, verb) in verbs(&Cli::command(), &[]) {
            if verb.get_arguments().any(|arg| arg.get_short() == Some('h') && arg.get_id() == "host") {
                let with = |option| said(&[&["mydyno"], path.as_slice(), &[option]].concat()).unwrap();
                assert!(with("-h").contains("-h is the host here"), "{path:?}: {}", with("-h"));
                assert!(
                    with("-?").contains("Usage: mydyno") && !with("-?").contains("unexpected"),
                    "{path:?}"
                );
            }
        }
    }
}
