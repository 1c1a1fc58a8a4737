//! `mydyno sysbench` and `mydyno slap`: programs whose place this binary takes. They read their own command lines, so the words after the
//! verb do not go through this program's parser.

use std::ffi::{OsStr, OsString};
use std::io::{LineWriter, stderr, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::process::ExitCode;

use mydyno_compat::{Program, Streams};

use crate::failure::Status;
use crate::secrets;
use crate::target;

/// The words of another program's command line.
#[derive(Debug, clap::Args)]
pub struct Words {
    /// The words after the verb, as the other program takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

/// The program that a command line asks for, by the name of this process or its first word, and the program's words.
pub fn program_of(line: &[OsString]) -> Option<(Program, Vec<OsString>)> {
    let name = line.first()?.to_string_lossy();
    if let Some(program) = Program::of_file_name(&name) {
        return Some((program, line[1..].to_vec()));
    }
    let program = Program::of_verb(line.get(1)?.to_str()?)?;
    Some((program, line[2..].to_vec()))
}

/// Runs a program after its passwords are removed from where others see them.
pub fn run_program(program: Program, words: &[OsString]) -> ExitCode {
    ExitCode::from(start(program, words))
}

/// Runs a program whose verb stands behind options of mydyno.
pub fn run(program: Program, words: &Words) -> Status {
    match start(program, &words.words) {
        0 => Status::Fine,
        2 => Status::Usage,
        _ => Status::Bad,
    }
}

fn start(program: Program, words: &[OsString]) -> u8 {
    let at = |word: &OsStr| program.password_at(word.as_bytes());
    if words.iter().any(|word| at(word).is_some()) {
        secrets::hide_passwords(at);
    }
    let mut args: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    for arg in args.iter_mut().filter(|arg| program.asks_password(arg.as_bytes())) {
        match target::ask() {
            Ok(word) => *arg = format!("--password={}", String::from_utf8_lossy(word.expose())),
            Err(failure) => {
                eprintln!("{}", failure.problems.join("; "));
                return 3;
            }
        }
        secrets::forbid_core_dumps();
    }
    program.run(&args, Streams::new(LineWriter::new(stdout()), stderr(), stdin()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(line: &str) -> Option<Vec<OsString>> {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        program_of(&words).map(|(_, words)| words)
    }

    #[test]
    fn a_program_is_known_by_the_verb_or_by_the_name_of_the_process() {
        assert_eq!(program("mydyno sysbench cpu run"), Some(vec!["cpu".into(), "run".into()]));
        assert_eq!(program("/usr/bin/sysbench --version"), Some(vec!["--version".into()]));
        assert_eq!(program("mydyno bench sysbench"), None);
        assert_eq!(program("mydyno"), None);
    }
}
