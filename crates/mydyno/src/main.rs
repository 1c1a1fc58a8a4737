//! mydyno: the dynamometer for MySQL and MariaDB. This crate parses the command line, wires the rooms together,
//! prints and exits; nothing below it does.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod cli;
mod failure;
mod load_args;
mod private;
mod progress;
mod secrets;
mod signals;
mod sparkline;
mod target;
mod ui;
mod verbs;
mod workload_args;
mod writing;

use std::process::ExitCode;

fn main() -> ExitCode {
    let (args, password) = secrets::take_password(std::env::args_os().collect());
    let argv = secrets::shown(&args);
    let (cli, ui) = match cli::parse(args.into_iter()) {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    match verbs::run(cli, password, argv, &ui) {
        Ok(_) if ui.lost_output() => {
            let failure = failure::Failure::environment("the result could not be written to standard output");
            ui.failure(&failure);
            failure.status.into()
        }
        Ok(status) => status.into(),
        Err(failure) => {
            ui.failure(&failure);
            failure.status.into()
        }
    }
}
