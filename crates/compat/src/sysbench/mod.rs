//! The command line of sysbench 1.0.20.

mod engine;
mod help;
pub(crate) mod histogram;
mod log;
mod lua;
mod options;
mod queue;
mod record;
mod report;
mod runner;
mod settings;
mod stats;
mod tests;
mod wanted;

use std::sync::Arc;

use engine::Engine;
use log::Log;
use mydyno_load::session;
use options::{CommandLine, Other, print_options};
use settings::Settings;
use tests::{BuiltIn, Ready};

use crate::streams::Streams;

pub use wanted::password_at;

/// Hosts that are this one.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The release whose interface this is.
const RELEASE: &str = "sysbench 1.0.20";

/// Runs `sysbench` with the arguments that follow its name; the exit status: 0 fine, 1 a failure, 2 an end by force.
pub fn run(args: &[String], streams: Streams) -> u8 {
    let line = match options::read(args) {
        Ok(line) => line,
        Err(error) => {
            for text in error.warnings.iter().chain([&error.message]) {
                streams.errors(format!("{text}\n").as_bytes());
            }
            return 1;
        }
    };
    for warning in &line.warnings {
        streams.errors(format!("{warning}\n").as_bytes());
    }
    if line.options.is_on("help") {
        streams.output(help::text().as_bytes());
        return 0;
    }
    if line.options.is_on("help-mydyno") {
        streams.output(help::own_text().as_bytes());
        return 0;
    }
    if line.options.is_on("version") {
        streams.output(format!("{RELEASE}\n").as_bytes());
        return 0;
    }
    run_line(line, args, streams)
}

fn run_line(mut line: CommandLine, args: &[String], streams: Streams) -> u8 {
    let level = match settings::verbosity(&line.options) {
        Ok(level) => level,
        Err(text) => {
            streams.output(format!("{text}\n").as_bytes());
            return 1;
        }
    };
    let log = Arc::new(Log::new(streams, level));
    settings::apply_old_names(&mut line.options, &log);
    let settings = match Settings::new(&line.options) {
        Ok(settings) => Settings { record: wanted::Wanted::of(&line, args), ..settings },
        Err(text) => {
            log.fatal(&text);
            return 1;
        }
    };
    log.notice(&format!("{RELEASE} (mydyno {})\n", env!("CARGO_PKG_VERSION")));
    let name = line.test.clone().unwrap_or_default();
    match tests::find(&name) {
        Some(test) => run_built_in(test, line, settings, log),
        None => lua::run_script(line, args, settings, log),
    }
}

fn run_built_in(test: &BuiltIn, mut line: CommandLine, settings: Settings, log: Arc<Log>) -> u8 {
    let errors = |text: String| {
        log.streams().errors(format!("{text}\n").as_bytes());
        1
    };
    let name = test.name;
    let Some(command) = line.command.take() else {
        return errors(format!("The '{name}' test requires a command argument. See 'sysbench {name} help'"));
    };
    let definitions = (test.options)();
    line.options.define(&definitions);
    if let Some(unknown) = take_options(&mut line) {
        return errors(format!("invalid option: {}", unknown.written()));
    }
    if let Some((_, run)) = test.commands.iter().find(|(name, _)| *name == command) {
        return run(&line.options, &log);
    }
    match command.as_str() {
        "help" => {
            log.text(&format!("{name} options:\n{}\n", print_options(&definitions)));
            0
        }
        "run" => match (test.prepare)(&line.options, settings.threads) {
            Ok(ready) => run_ready(ready, settings, log),
            Err(text) => {
                log.fatal(&text);
                1
            }
        },
        "prepare" | "cleanup" => errors(format!("'{name}' test does not implement the '{command}' command.")),
        _ => errors(format!("Unknown command: {command}")),
    }
}

fn run_ready(mut ready: Ready, settings: Settings, log: Arc<Log>) -> u8 {
    let engine = Arc::new(Engine::new(settings, Arc::clone(&log)));
    runner::print_header(&engine);
    (ready.print_mode)(&log);
    runner::run(&engine, &ready.test, ready.main.as_mut())
}

/// Sets the options that were unknown before the test defined its own; the first one of the command line that still is.
/// Option files may hold options of other tests.
fn take_options(line: &mut CommandLine) -> Option<Other> {
    let options = &mut line.options;
    let mut unknown =
        |other: &Other| options.set(&other.name, other.value.as_deref()).is_err() && other.from_line;
    std::mem::take(&mut line.others).into_iter().find(|other| unknown(other))
}

/// Fewest threads with which the bundled scripts gain from a session of low priority: with 16 it saves up to a third of the client's
/// CPU, at 0.95 to 1.05 of the rate (docs/journal/compat.md).
const FEWEST_THREADS: usize = 16;

/// The nice value of a session of its own in which a command line runs best, on a host that schedules sessions as groups.
/// `None` where it does not load a server of this host by the load engine, or gains nothing.
pub fn session_nice(args: &[String]) -> Option<u8> {
    let line = options::read(args).ok()?;
    let options = &line.options;
    let local = options.list("mysql-host").iter().all(|host| LOCAL.contains(&host.as_str()));
    let threads = options.int(if options.given("num-threads") { "num-threads" } else { "threads" });
    let gains = usize::try_from(threads).is_ok_and(|threads| session::gains(threads, FEWEST_THREADS));
    (local && gains && lua::may_have_twin(&line)).then_some(session::NICE)
}

#[cfg(test)]
mod run_tests;
