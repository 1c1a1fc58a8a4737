//! `mydyno sysbench`, `mydyno slap` and `mydyno compat`: programs whose place this binary takes. They read their own command lines, so the words after the
//! verb do not go through this program's parser.

use std::ffi::{OsStr, OsString};
use std::io::{LineWriter, stderr, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::ExitCode;

use mydyno_compat::{Program, Streams, links};
use mydyno_model::work::LinksReport;
use mydyno_model::{Document, Header};
use time::OffsetDateTime;

use crate::failure::{Failure, Status};
use crate::own_session;
use crate::secrets;
use crate::target;
use crate::ui::Ui;

/// The words of another program's command line.
#[derive(Debug, clap::Args)]
pub struct Words {
    /// The words after the verb, as the other program takes them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "WORD")]
    words: Vec<OsString>,
}

/// Options of `mydyno compat`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The action.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make links named sysbench, mysqlslap and mariadb-slap that lead to this program.
    Install {
        /// The folder, which must exist; one of PATH before that of the originals.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// Take the links away again.
        #[arg(long)]
        remove: bool,
    },
}

/// Makes the links, or takes them away.
///
/// # Errors
/// A name is taken, or the folder cannot be written.
pub fn links(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    let Action::Install { folder, remove } = &args.action;
    let binary = std::env::current_exe()
        .map_err(|error| Failure::environment(format!("this program's own path is not known: {error}")))?;
    let changed = if *remove { links::remove(folder, &binary) } else { links::install(folder, &binary) };
    let changed = changed.map_err(|error| Failure::environment(error.to_string()))?;
    let paths: Vec<String> = changed.iter().map(|path| path.display().to_string()).collect();
    match ui.json {
        true => {
            let header = Header::of::<LinksReport>(OffsetDateTime::now_utc());
            let extra = serde_json::Map::new();
            ui.out(&LinksReport { header, removed: *remove, links: paths, extra }.to_json());
        }
        false => paths.iter().for_each(|path| ui.out(path)),
    }
    Ok(Status::Fine)
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
    for arg in &mut args {
        let Some(joint) = program.password_joint(arg.as_bytes()) else { continue };
        match target::ask() {
            Ok(word) => *arg = format!("{arg}{joint}{}", String::from_utf8_lossy(word.expose())),
            Err(failure) => {
                eprintln!("{}", failure.problems.join("; "));
                return 3;
            }
        }
        secrets::forbid_core_dumps();
    }
    if let Some(nice) = program.session_nice(&args).filter(|_| own_session::is_scheduled_as_group()) {
        // Without it the load takes more CPU, which is no failure; the other program's output has no place for a note.
        let _ = own_session::enter(nice);
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
