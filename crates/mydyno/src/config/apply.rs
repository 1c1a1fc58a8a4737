//! Defaults in a command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

use super::{Entry, TARGET};
use crate::workload_args;

/// Options that select a server, or another source: with one of them a command line takes no default of [`TARGET`].
const NAMES_A_SERVER: &[&str] = &[
    "dsn",
    "host",
    "port",
    "socket",
    "defaults_file",
    "defaults_extra_file",
    "defaults_group_suffix",
    "no_defaults",
    "login_path",
    "sandbox",
    "from",
    "config",
    "ssh",
    "host_only",
    "replay",
];

/// Options that make a verb connect to the user's server; a verb that has one takes defaults of [`TARGET`] only with
/// it.
const CONNECTS: &str = "on_server";

/// The arguments, with the applicable defaults inserted behind the verb, and these defaults. A typed option has no
/// default, nor has one that conflicts with a typed one, nor one that the typed workload does not have.
pub fn apply<'a>(
    entries: &'a [Entry],
    args: Vec<OsString>,
    command: &Command,
) -> (Vec<OsString>, Vec<&'a Entry>) {
    let Some((at, path)) = verb_of(&args, command) else { return (args, Vec::new()) };
    let name = path.iter().map(|verb| verb.get_name()).collect::<Vec<_>>().join(" ");
    let Some(verb) = path.last().filter(|verb| !verb.is_hide_set()) else { return (args, Vec::new()) };
    let found = typed_matches(&args, command, path.len());
    let typed = found.as_ref().map(typed).unwrap_or_default();
    let workload = found.as_ref().and_then(|found| workload_args::workload_of(&name, found));
    let foreign = |entry: &Entry| workload.is_some_and(|of| workload_args::lacks(&name, of, &entry.key));
    let is_typed = |id: &str| typed.iter().any(|typed| typed == id);
    let arg_of = |entry: &Entry| verb.get_arguments().find(|arg| arg.get_long() == Some(&entry.key));
    let fits = |arg: &Arg| {
        let ids = |arg: &Arg| -> Vec<String> {
            verb.get_arg_conflicts_with(arg).iter().map(|other| other.get_id().to_string()).collect()
        };
        !is_typed(arg.get_id().as_str())
            && !ids(arg).iter().any(|id| is_typed(id))
            && !verb.get_arguments().any(|other| {
                is_typed(other.get_id().as_str()) && ids(other).iter().any(|id| arg.get_id() == id)
            })
    };
    let connects = verb.get_arguments().all(|arg| arg.get_id() != CONNECTS) || is_typed(CONNECTS);
    let elsewhere = NAMES_A_SERVER.iter().any(|id| is_typed(id)) || !connects;
    let of_verb = |table: &str| if table == TARGET { !elsewhere } else { table == name };
    let taken = entries.iter().filter(|entry| entry.table.as_deref().is_some_and(of_verb));
    // A default of the verb takes precedence over one of the target.
    let shadowed = |entry: &Entry| {
        entry.table.as_deref() == Some(TARGET)
            && entries.iter().any(|other| other.table.as_deref() == Some(&name) && other.key == entry.key)
    };
    let added: Vec<&Entry> = taken
        .filter(|entry| !shadowed(entry) && !foreign(entry) && arg_of(entry).is_some_and(fits))
        .collect();
    let mut args = args;
    args.splice(at..at, added.iter().flat_map(|entry| entry.typed()).map(OsString::from));
    (args, added)
}

impl Entry {
    /// The entry as arguments.
    pub(super) fn typed(&self) -> Vec<String> {
        match self.values.as_slice() {
            [] => vec![format!("--{}", self.key)],
            values => values.iter().map(|value| format!("--{}={value}", self.key)).collect(),
        }
    }
}

/// The verbs that the arguments name, outermost first, and the index behind the last of them.
pub fn verb_of<'a>(args: &[OsString], command: &'a Command) -> Option<(usize, Vec<&'a Command>)> {
    let mut path: Vec<&Command> = Vec::new();
    let mut end = 0;
    for (at, arg) in args.iter().enumerate().skip(1) {
        if arg == "--" {
            break;
        }
        if arg.as_bytes().starts_with(b"-") {
            continue;
        }
        match path.last().copied().unwrap_or(command).find_subcommand(arg) {
            Some(verb) => {
                path.push(verb);
                end = at + 1;
            }
            // The value of --log, before the verb.
            None if path.is_empty() => {}
            None => break,
        }
    }
    (!path.is_empty()).then_some((end, path))
}

/// The words behind the innermost of `depth` verbs as clap reads them, up to the first mistake.
pub fn typed_matches(args: &[OsString], command: &Command, depth: usize) -> Option<ArgMatches> {
    let mut matches = command.clone().ignore_errors(true).try_get_matches_from(args).ok()?;
    for _ in 0..depth {
        (_, matches) = matches.remove_subcommand()?;
    }
    Some(matches)
}

/// Identifiers of the typed options.
fn typed(matches: &ArgMatches) -> Vec<String> {
    let typed = |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
    matches.ids().filter(typed).map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;
    use crate::config::read;

    const FILE: &str = "[target]\nhost = \"db1\"\nuser = \"dba\"\n[bench]\ntime = \"60s\"\nuser = \"load\"\n\
        [report]\nformat = \"html\"\n[\"server up\"]\nset = [\"a=1\", \"b=2\"]\n[audit]\ndetails = true\n";

    fn applied(line: &str) -> String {
        let command = Cli::command();
        let entries = read::entries(FILE, &command).unwrap();
        let args = line.split(' ').map(OsString::from).collect();
        let (args, _) = apply(&entries, args, &command);
        args.iter().map(|arg| arg.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn defaults_stand_behind_the_verb_unless_they_are_typed() {
        for (line, with) in [
            ("mydyno bench w", "mydyno bench --host=db1 --time=60s --user=load w"),
            ("mydyno --quiet bench w --time 5s", "mydyno --quiet bench --host=db1 --user=load w --time 5s"),
            ("mydyno bench w -u root", "mydyno bench --host=db1 --time=60s w -u root"),
            ("mydyno report 1", "mydyno report --format=html 1"),
            ("mydyno server up mariadb", "mydyno server up --set=a=1 --set=b=2 mariadb"),
            ("mydyno host status", "mydyno host status"),
            ("mydyno", "mydyno"),
            ("mydyno --help", "mydyno --help"),
        ] {
            assert_eq!(applied(line), with);
        }
    }

    #[test]
    fn a_line_that_names_a_server_gets_nothing_of_the_target() {
        for line in [
            "mydyno audit --socket /s",
            "mydyno audit -h db2",
            "mydyno audit --sandbox",
            "mydyno audit --from b",
        ] {
            let rest = line.strip_prefix("mydyno audit ").unwrap();
            assert_eq!(applied(line), format!("mydyno audit --details {rest}"));
        }
        // Only an experiment on the user's server connects to it.
        assert_eq!(applied("mydyno prove swappiness"), "mydyno prove swappiness");
        assert_eq!(applied("mydyno prove x --on-server"), "mydyno prove --host=db1 --user=dba x --on-server");
    }

    #[test]
    fn a_default_that_the_workload_does_not_have_is_left_out() {
        let of = |line: &str| {
            let command = Cli::command();
            let text = "[bench]\ntables = 1\ntime = \"60s\"\n[compare]\ntables = 1\ndelta = \"2%\"\n";
            let entries = read::entries(text, &command).unwrap();
            let (_, added) = apply(&entries, line.split(' ').map(OsString::from).collect(), &command);
            added.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(of("mydyno bench oltp_read_only --sandbox"), "tables time");
        assert_eq!(of("mydyno bench tpcc --sandbox"), "time");
        assert_eq!(of("mydyno bench --connections 4 tpcc"), "time");
        assert_eq!(of("mydyno bench --schema tpcc oltp_read_only"), "tables time");
        assert_eq!(of("mydyno bench mine.toml"), "time");
        assert_eq!(of("mydyno compare tpcc --treatment a=1"), "delta");
        // Without a workload, or with a name that is none, the verb finds the mistake itself.
        assert_eq!(of("mydyno bench"), "tables time");
        assert_eq!(of("mydyno bench nosuch"), "tables time");
    }

    #[test]
    fn a_default_that_conflicts_with_a_typed_option_is_left_out() {
        assert_eq!(applied("mydyno report --html 1"), "mydyno report --html 1");
    }
}
