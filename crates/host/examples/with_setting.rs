//! Runs a command with a kernel setting changed, and puts it back: `with_setting NAME=VALUE -- COMMAND ARG…`.
//!
//! For benchmarks whose figures a setting of the host decides. The change goes through the journal: when this program is
//! killed, `mydyno host restore` puts the setting back. Where the setting cannot be changed the command runs all the
//! same, and that is said.
#![allow(clippy::print_stderr)]

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mydyno_host::setting::{self, AllowHostChange};
use mydyno_host::{HostError, Lease, Machine, StateDir, restore};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (name, value, command) = match args.split_first().map(|(s, rest)| (s.split_once('='), rest)) {
        Some((Some((name, value)), [dashes, command @ ..])) if dashes == "--" && !command.is_empty() => {
            (name, value, command)
        }
        _ => {
            eprintln!("usage: with_setting NAME=VALUE -- COMMAND ARG…");
            return ExitCode::from(2);
        }
    };
    // The command gets Ctrl-C too and ends; this program stays to put the setting back.
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        if let Err(e) = signal_hook::flag::register(signal, Arc::clone(&interrupted)) {
            eprintln!("cannot watch for signals: {e}");
            return ExitCode::from(3);
        }
    }
    match with_setting(name, value, command) {
        Ok(status) => status,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(3)
        }
    }
}

fn with_setting(name: &str, value: &str, command: &[String]) -> Result<ExitCode, HostError> {
    let state = StateDir::open(&StateDir::default_path()?)?;
    let (journal, machine) = (state.journal(), Machine::real()?);
    let lease = Lease::take(&machine, "bench")?;
    // The user permits the change by naming the setting on the command line.
    let changed = setting::set(&journal, &lease, "bench", name, value, AllowHostChange::by_the_user());
    let changed = match changed {
        Ok(Some(id)) => {
            eprintln!("{name} is {value} while this runs, and is put back after it");
            Some(id)
        }
        Ok(None) => None,
        Err(e) => {
            eprintln!("measured without {name}={value}: {e}");
            None
        }
    };
    let status = Command::new(&command[0]).args(&command[1..]).status();
    if let Some(id) = changed {
        let ours: Vec<_> = journal.read()?.open.into_iter().filter(|open| open.entry.id == id).collect();
        for (_, outcome) in restore::put_back(&journal, &machine, &ours, &restore::NoHooks)? {
            eprintln!("{name}: {}", outcome.why);
        }
    }
    Ok(match status {
        Ok(status) => ExitCode::from(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1)),
        Err(e) => {
            eprintln!("{}: {e}", command[0]);
            ExitCode::from(3)
        }
    })
}
