//! mydyno: load generator, audit, experiments and observation for MySQL and MariaDB. This crate parses the command
//! line, calls the crates below, prints and exits; no other crate does.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::exit)]

mod advice;
mod cli;
mod completion;
mod config;
#[cfg(test)]
mod documented;
mod factors;
mod failure;
mod load_args;
mod log;
mod own_session;
mod private;
mod private_args;
mod progress;
mod prose;
mod proving;
mod secrets;
mod signals;
mod sparkline;
mod target;
mod ui;
mod verbs;
mod workload_args;
mod writing;

use std::process::ExitCode;

use clap::CommandFactory;

fn main() -> ExitCode {
    mydyno_model::Writer::set_commit(env!("MYDYNO_COMMIT"));
    if completion::answer() {
        return ExitCode::SUCCESS;
    }
    mydyno_linux::calls::own_memory::give_large_allocations_back();
    let mut args = cli::with_help(std::env::args_os().collect());
    if let Some((program, words)) = verbs::compat::program_of(&args) {
        return verbs::compat::run_program(program, &words);
    }
    signals::accept_interrupts();
    let file = config::take_file(&mut args);
    let command = cli::command_of(&args);
    let line = secrets::take_password(args, &command);
    let config = config::Config::find(file, cli::Cli::command);
    let (args, added) = match &config {
        Ok(config) => config.apply(line.args, &command),
        Err(_) => (line.args, config::Added::default()),
    };
    let argv = secrets::shown(&args);
    let (cli, ui) = match cli::parse(command, args, line.word_after.as_deref(), &added) {
        Ok(parsed) => parsed,
        Err(status) => return status,
    };
    let config = match config {
        Ok(config) => config,
        // After parsing, so that help is printed in any case.
        Err(failure) => {
            ui.failure(&failure);
            return failure.status.into();
        }
    };
    if let Some(state) = config.state() {
        mydyno_host::StateDir::configure(state.into());
    }
    log::start(cli.common.log.as_ref());
    let ended = verbs::run(cli, line.password, argv, &config, &ui);
    signals::wait_for_cleanup();
    let mut failure = match ended {
        Ok(_) if ui.lost_output() => {
            failure::Failure::environment("the result could not be written to standard output")
        }
        Ok(status) => return status.into(),
        Err(failure) => failure,
    };
    if let Some(word) = line.word_after.filter(|word| !workload_args::is_workload(word)) {
        failure.hide(&word, secrets::WORD_AFTER);
    }
    added.explain(&mut failure);
    ui.failure(&failure);
    failure.status.into()
}
