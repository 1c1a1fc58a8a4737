//! mydyno: the dynamometer for MySQL and MariaDB. This crate parses the command line, wires the rooms together,
//! prints and exits; nothing below it does.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod cli;
mod failure;
mod ui;
mod verbs;

use std::process::ExitCode;

fn main() -> ExitCode {
    let (cli, ui) = match cli::parse(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    match verbs::run(cli, &ui) {
        Ok(status) => status.into(),
        Err(failure) => {
            ui.failure(&failure);
            failure.status.into()
        }
    }
}
