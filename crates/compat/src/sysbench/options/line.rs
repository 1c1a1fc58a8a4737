//! The command line of sysbench: `[options]... [testname] [command]`.

use std::path::Path;

use super::file;
use super::table;
use super::value::{Kind, Options, Rejected};

/// A command line that was read.
#[derive(Debug, Clone, Default)]
pub(crate) struct CommandLine {
    pub(crate) options: Options,
    /// Built-in test, script or module; none for a script from the input.
    pub(crate) test: Option<String>,
    pub(crate) command: Option<String>,
    /// Options that no general definition covers: those of a test or script.
    pub(crate) others: Vec<Other>,
    /// Lines for the error stream: warnings that do not end the program.
    pub(crate) warnings: Vec<String>,
}

/// An option that is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Other {
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    /// From the command line; an option file may hold options of other tests.
    pub(crate) from_line: bool,
}

impl Other {
    /// The option as it was written.
    pub(crate) fn written(&self) -> String {
        match &self.value {
            Some(value) => format!("--{}={value}", self.name),
            None => format!("--{}", self.name),
        }
    }
}

/// Why a command line was refused: a line for the error stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineError {
    pub(crate) warnings: Vec<String>,
    pub(crate) message: String,
}

/// Reads a command line.
///
/// # Errors
/// A word too many, or a value that is no number.
pub(crate) fn read(args: &[String]) -> Result<CommandLine, LineError> {
    let mut line = CommandLine::default();
    for group in [table::GENERAL, table::RANDOM, table::LOG, table::DATABASE, table::MYSQL, table::PGSQL] {
        line.options.define(&group.definitions());
    }
    line.options.define(&table::additions());
    match read_words(&mut line, args) {
        Ok(()) => Ok(line),
        Err(message) => Err(LineError { warnings: line.warnings, message }),
    }
}

fn read_words(line: &mut CommandLine, args: &[String]) -> Result<(), String> {
    for arg in args {
        let Some(option) = arg.strip_prefix("--") else {
            let place = match (&line.test, &line.command) {
                (None, _) => &mut line.test,
                (Some(_), None) => &mut line.command,
                _ => return Err(format!("Unrecognized command line argument: {arg}")),
            };
            *place = Some(arg.clone());
            continue;
        };
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        if name == "test" {
            if let Some(test) = value {
                line.warnings.push(
                    "WARNING: the --test option is deprecated. You can pass a script name or path on the \
                     command line without any options."
                        .to_owned(),
                );
                line.test = Some(test.to_owned()).filter(|test| !test.is_empty());
            }
            continue;
        }
        set(line, name, value, true)?;
        if line.options.kind(name) == Some(Kind::File) {
            read_file(line, value)?;
        }
    }
    Ok(())
}

fn set(line: &mut CommandLine, name: &str, value: Option<&str>, from_line: bool) -> Result<(), String> {
    match line.options.set(name, value) {
        Ok(()) => Ok(()),
        Err(Rejected::NotANumber) => Err(format!(
            "Invalid value for the '{}' option: '{}'",
            name.replace('_', "-"),
            value.unwrap_or_default()
        )),
        Err(Rejected::Unknown) => {
            line.others.push(Other { name: name.to_owned(), value: value.map(str::to_owned), from_line });
            Ok(())
        }
    }
}

/// Most bytes of a file of options that are read.
const LARGEST_FILE: u64 = 1 << 20;

fn read_file(line: &mut CommandLine, path: Option<&str>) -> Result<(), String> {
    let Some(path) = path.filter(|path| !path.is_empty()) else { return Ok(()) };
    match mydyno_facts::read_regular(Path::new(path), LARGEST_FILE) {
        Ok(text) => {
            for (name, value) in file::options(&text) {
                set(line, &name, value.as_deref(), false)?;
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            line.warnings.push(format!("{path}: No such file or directory"));
        }
        Err(error) => line.warnings.push(format!("{path}: {error}")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn options_may_stand_anywhere_and_both_signs_are_equal() {
        let line = read(&words("cpu --threads=4 run --report_interval=2 --foo=3")).unwrap();
        assert_eq!(line.test.as_deref(), Some("cpu"));
        assert_eq!(line.command.as_deref(), Some("run"));
        assert_eq!((line.options.int("threads"), line.options.int("report-interval")), (4, 2));
        assert_eq!(line.others[0].written(), "--foo=3");
    }

    #[test]
    fn a_third_word_and_a_number_that_is_none_are_refused() {
        let message = |text: &str| read(&words(text)).unwrap_err().message;
        assert_eq!(message("--table_size 100 cpu run"), "Unrecognized command line argument: run");
        assert_eq!(message("cpu --percentile=99.9 run"), "Invalid value for the 'percentile' option: '99.9'");
    }

    #[test]
    fn the_old_test_option_names_the_test_with_a_warning() {
        let line = read(&words("--test=a/oltp.lua --max-time=3 run")).unwrap();
        assert_eq!((line.test.as_deref(), line.command.as_deref()), (Some("a/oltp.lua"), Some("run")));
        assert!(line.warnings[0].starts_with("WARNING: the --test option is deprecated."));
        assert!(read(&words("--test=cpu memory run")).is_err());
    }
}
