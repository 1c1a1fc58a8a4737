//! Parses a file of defaults and validates each entry against the command line.

use std::ops::Range;

use clap::{Arg, Command};
use mydyno_settings::nearest;
use mydyno_wire::target::check_dsn;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Entry, TARGET};
use crate::target::server_options;

/// The key of the state folder.
pub const STATE: &str = "state";
/// The key of the entries in a list of accepted findings, which may have the same file name.
const ACCEPT: &str = "accept";

/// Parses the entries.
///
/// # Errors
/// All mistakes, each with its line; no value is repeated in them.
pub fn entries(text: &str, command: &Command) -> Result<Vec<Entry>, Vec<String>> {
    let mut reader = Reader { text, command, entries: Vec::new(), problems: Vec::new() };
    match DeTable::parse(text) {
        Ok(document) => reader.document(document.get_ref()),
        Err(e) => {
            let at = e.span().map_or(0, |span| span.start);
            reader.problem(at, e.message().to_owned());
        }
    }
    if reader.problems.is_empty() { Ok(reader.entries) } else { Err(reader.problems) }
}

struct Reader<'a> {
    text: &'a str,
    command: &'a Command,
    entries: Vec<Entry>,
    problems: Vec<String>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }

    fn problem(&mut self, at: usize, what: String) {
        let line = self.line(at);
        self.problems.push(format!("{line}: {what}"));
    }

    fn document(&mut self, document: &DeTable<'_>) {
        for (key, value) in document {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            match value.get_ref() {
                DeValue::Table(table) => self.table(name, at, table),
                DeValue::String(path) if name == STATE => self.state(at, path),
                _ if name == ACCEPT => self.problem(
                    at,
                    "accept: this is a list of accepted findings, which `mydyno audit --accept FILE` reads, and no file of defaults"
                        .into(),
                ),
                _ if name == STATE => self.problem(at, "state: the path of a folder, as in \"/data/mydyno\"".into()),
                _ => self.problem(
                    at,
                    format!("{name}: only `{STATE}` stands outside a table; the tables are {TARGET} and the verbs, as in [bench]"),
                ),
            }
        }
    }

    fn state(&mut self, at: usize, path: &str) {
        if !path.starts_with('/') {
            return self.problem(at, "state: an absolute path, as in \"/data/mydyno\"".into());
        }
        let line = self.line(at);
        self.entries.push(Entry { table: None, key: STATE.into(), values: vec![path.to_owned()], line });
    }

    fn table(&mut self, name: &str, at: usize, table: &DeTable<'_>) {
        let options = match (name == TARGET, verb(self.command, name)) {
            (true, _) => target_options(self.command),
            (false, Some(verb)) => verb.get_arguments().cloned().collect(),
            (false, None) => {
                let verbs: Vec<&str> = self.command.get_subcommands().map(Command::get_name).collect();
                let meant = nearest(name, verbs.iter().copied().chain([TARGET]));
                let meant = meant.map_or(String::new(), |meant| format!(": [{meant}]?"));
                return self.problem(at, format!("[{name}] is no verb of mydyno and not [{TARGET}]{meant}"));
            }
        };
        for (key, value) in table {
            self.entry(name, &options, (key.get_ref(), key.span()), value);
        }
    }

    fn entry(
        &mut self,
        table: &str,
        options: &[Arg],
        key: (&str, Range<usize>),
        value: &Spanned<DeValue<'_>>,
    ) {
        let (name, at) = (key.0.replace('_', "-"), key.1.start);
        if name == "password" {
            return self.problem(at, "password: no secret stands in this file; `password-file` names one that holds it, and option files of MySQL are read".into());
        }
        if name.starts_with("allow-") {
            return self
                .problem(at, format!("{name}: a permission is given for one command, on its command line"));
        }
        let taken = options.iter().find(|arg| arg.get_long() == Some(&name));
        let Some(arg) =
            taken.filter(|arg| !arg.is_global_set() && !matches!(arg.get_action(), clap::ArgAction::Help))
        else {
            let known = options.iter().filter_map(Arg::get_long).filter(|long| *long != "help");
            let meant = nearest(&name, known).map_or(String::new(), |meant| format!(": `{meant}`?"));
            return self.problem(at, format!("[{table}] has no option `{name}`{meant}"));
        };
        let switch = !arg.get_action().takes_values();
        let items: Vec<&DeValue<'_>> = match value.get_ref() {
            DeValue::Array(items) => items.iter().map(Spanned::get_ref).collect(),
            one => vec![one],
        };
        if items.is_empty() {
            return self.problem(at, format!("{name}: an empty list: give a value, or take the line away"));
        }
        let values: Option<Vec<String>> = items.iter().map(|item| typed(item, switch)).collect();
        match values {
            None if switch => self.problem(at, format!("{name}: true or false")),
            None => self.problem(at, format!("{name}: a text, a number, true or false, or a list of them")),
            // A switch that is off is the program's default.
            Some(values) if switch && values == ["off"] => {}
            Some(values) => {
                if name == "dsn" {
                    let wrong = values.iter().filter_map(|dsn| check_dsn(dsn).err()).flatten();
                    wrong.for_each(|e| self.problem(at, format!("{e}")));
                }
                let values = if switch { Vec::new() } else { values };
                let line = self.line(at);
                self.entries.push(Entry { table: Some(table.to_owned()), key: name, values, line });
            }
        }
    }
}

/// A value as it would be typed.
fn typed(value: &DeValue<'_>, switch: bool) -> Option<String> {
    match value {
        DeValue::Boolean(on) => Some(if *on { "on" } else { "off" }.to_owned()),
        _ if switch => None,
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(number.to_string()),
        DeValue::Float(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The verb of a table's name, as in `bench` or `server up`.
pub fn verb<'a>(command: &'a Command, name: &str) -> Option<&'a Command> {
    name.split(' ')
        .try_fold(command, |command, word| command.find_subcommand(word).filter(|verb| !verb.is_hide_set()))
}

/// The options that select a server, from the verb `audit`, which has all of them.
fn target_options(command: &Command) -> Vec<Arg> {
    let names = server_options();
    let of = |verb: &Command| -> Vec<Arg> {
        verb.get_arguments().filter(|arg| names.iter().any(|name| arg.get_id() == name)).cloned().collect()
    };
    command.find_subcommand("audit").map(of).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    fn read(text: &str) -> Result<Vec<Entry>, Vec<String>> {
        entries(text, &Cli::command())
    }

    fn entry(table: Option<&str>, key: &str, values: &[&str], line: usize) -> Entry {
        let values = values.iter().map(|v| (*v).to_owned()).collect();
        Entry { table: table.map(str::to_owned), key: key.to_owned(), values, line }
    }

    #[test]
    fn entries_are_options_as_they_would_be_typed() {
        let text = "state = \"/data/mydyno\"\n\n[target]\nhost = \"db1\"\nport = 3307\nno_defaults = true\ncompress = false\n\n\
            [bench]\nconnections = \"1,8\"\ntime = \"60s\"\n[\"server up\"]\nset = [\"a=1\", \"b=2\"]\n";
        assert_eq!(
            read(text).unwrap(),
            [
                entry(None, "state", &["/data/mydyno"], 1),
                entry(Some("target"), "host", &["db1"], 4),
                entry(Some("target"), "port", &["3307"], 5),
                entry(Some("target"), "no-defaults", &[], 6),
                entry(Some("bench"), "connections", &["1,8"], 10),
                entry(Some("bench"), "time", &["60s"], 11),
                entry(Some("server up"), "set", &["a=1", "b=2"], 13),
            ]
        );
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn all_mistakes_are_named_with_their_lines_and_no_secret_is_repeated() {
        let text = "host = \"a\"\nstate = \"relative\"\n[targets]\n[target]\npassword = \"hunter2\"\nallow-unverified-password = true\n\
            [bench]\nconections = 4\njson = true\ntime = 1979-05-27\nno-defaults = 3\n[audit]\ndsn = \"mysql://a:hunter2@h/\"\n";
        let problems = read(text).unwrap_err();
        let all = problems.join("\n");
        for part in [
            "1: host: only `state` stands outside a table",
            "2: state: an absolute path",
            "3: [targets] is no verb of mydyno and not [target]: [target]?",
            "5: password: no secret stands in this file",
            "6: allow-unverified-password: a permission",
            "8: [bench] has no option `conections`: `connections`?",
            "9: [bench] has no option `json`",
            "10: time: a text",
            "11: no-defaults: true or false",
            "13: --dsn holds a password",
        ] {
            assert!(problems.iter().any(|p| p.starts_with(part)), "{part} is not in\n{all}");
        }
        assert!(!all.contains("hunter2"), "{all}");
        for empty in ["[bench]\nset = []\n", "[target]\nno-defaults = []\n"] {
            assert!(
                read(empty).unwrap_err()[0].starts_with("2: ")
                    && read(empty).unwrap_err()[0].contains("empty list")
            );
        }
        let list = "[[accept]]\nclaim = \"swappiness\"\nreason = \"no swap\"\nuntil = 2027-03-31\n";
        assert!(read(list).unwrap_err()[0].contains("`mydyno audit --accept FILE`"));
        let broken = read("[bench]\ntime = \n").unwrap_err();
        assert!(broken[0].starts_with("2: "), "{broken:?}");
    }
}
