//! An option file for a private server, as far as it can apply. The server program parses it, so groups, includes and
//! quotes follow the rules of that release.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::deadline::run;
use crate::error::SandboxError;
use crate::find::Install;
use crate::settings::{Setting, bare_name, parse_set};

/// Time limit for reading a file, which takes milliseconds, but seconds on a cold network file system.
const PATIENCE: Duration = Duration::from_secs(20);
/// The line before the options (`my_print_default_files` and `my_load_defaults` of mysys/my_default.c).
const MARKER: &str = "would have been started with the following arguments:";
/// The text that servers show in place of a secret.
const MASKED: &str = "*****";
/// Options for files that a server writes and that may be in its data directory: only the last component of their paths
/// is used.
const WRITTEN: [&str; 6] =
    ["log_bin", "log_bin_index", "relay_log", "relay_log_index", "slow_query_log_file", "general_log_file"];

/// Options of an option file that apply to a private server.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct OptionFile {
    /// In the order of the file; the last of a name counts.
    pub(crate) settings: Vec<Setting>,
    /// Options that are left out, as written: those that a private server sets itself, and paths outside its folder.
    pub(crate) left_out: Vec<String>,
}

/// Reads an option file with a server program.
///
/// # Errors
/// The program cannot be run, or does not read the file.
pub(crate) fn read(install: &Install, path: &Path) -> Result<OptionFile, SandboxError> {
    let program = &install.program;
    let mut command = Command::new(program);
    command.arg(format!("--defaults-file={}", path.display())).arg("--print-defaults");
    let answer = run(&mut command, PATIENCE).map_err(|e| SandboxError::io("run", program, e))?;
    let answer = answer.ok_or_else(|| SandboxError::TooSlow {
        program: program.clone(),
        doing: "to read an option file",
        waited: PATIENCE,
    })?;
    parse(&answer.stdout).ok_or_else(|| SandboxError::OptionFile {
        path: path.to_owned(),
        reported: format!("{} {}", answer.stderr.trim(), answer.stdout.trim()).trim().replace('\n', " "),
    })
}

/// Parses the output of `--print-defaults`. A value that contains ` --` is taken for two options, each of which is
/// checked.
fn parse(reported: &str) -> Option<OptionFile> {
    let (_, options) = reported.split_once(MARKER)?;
    let mut file = OptionFile::default();
    for option in format!(" {}", options.trim()).split(" --").skip(1) {
        let (name, value) = option.split_once('=').unwrap_or((option, "1"));
        let value = match value.rsplit_once('/') {
            Some((_, last)) if WRITTEN.contains(&bare_name(name).as_str()) => last,
            _ => value,
        };
        match parse_set(&format!("{name}={value}")) {
            Ok(setting) if value != MASKED => file.settings.push(setting),
            _ => file.left_out.push(option.to_owned()),
        }
    }
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_private_server_sets_itself_is_left_out_of_a_file_and_named() {
        let reported = "mariadbd would have been started with the following arguments:\n\
                    --datadir=/var/lib/mysql --Max_Connections=5 --skip-name-resolve --sql_mode=ANSI, TRADITIONAL \
                    --log-bin=/var/log/mysql/bin.log --innodb-undo-directory=/fast --password=***** \n";
        let file = parse(reported).unwrap();
        let settings: Vec<String> = file.settings.iter().map(|s| format!("{}={}", s.name, s.value)).collect();
        let taken =
            ["max_connections=5", "skip_name_resolve=1", "sql_mode=ANSI, TRADITIONAL", "log_bin=bin.log"];
        assert_eq!(settings, taken);
        assert_eq!(
            file.left_out,
            ["datadir=/var/lib/mysql", "innodb-undo-directory=/fast", "password=*****"]
        );
    }

    #[test]
    fn a_file_without_options_has_none_and_one_that_was_not_read_says_so() {
        let reported = "mysqld would have been started with the following arguments:\n\n";
        assert_eq!(parse(reported).unwrap(), OptionFile::default());
        assert_eq!(parse("error: Found option without preceding group in config file"), None);
    }
}
