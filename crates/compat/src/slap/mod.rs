//! The command line of MariaDB's mysqlslap 10.11.

mod generate;
mod load;
mod options;
mod report;
mod server;
mod settings;

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use generate::{Key, Query};
use load::Load;
use mydyno_wire::target::Environment;
use options::{Given, Place};
use report::Outcome;
use server::Control;
use settings::{Engine, Settings};

use crate::streams::Streams;
use crate::sysbench::histogram::Histogram;

/// Runs `mysqlslap` with the arguments that follow its name; the exit status: 0 fine, 1 a failure, 2 and 5 options that are
/// not known or lack a value.
pub fn run(args: &[String], streams: &Streams) -> u8 {
    let refuse = |message: &str| streams.errors(format!("mysqlslap: {message}\n").as_bytes());
    let environment = Environment::current();
    let given = match Given::read(args, &environment) {
        Ok(given) => given,
        Err(refused) => {
            refuse(&refused.message);
            return refused.status;
        }
    };
    if given.is_on("help") {
        streams.output(options::help().as_bytes());
        return 0;
    }
    if given.is_on("version") {
        let version = concat!("mysqlslap  Ver 1.0 Distrib 10.11-mydyno-", env!("CARGO_PKG_VERSION"), "\n");
        streams.output(version.as_bytes());
        return 0;
    }
    let settings = match Settings::new(&given, &environment) {
        Ok(settings) => Arc::new(settings),
        Err(refused) => {
            refuse(&refused.message);
            return refused.status;
        }
    };
    match run_all(&settings, streams) {
        Ok(()) => 0,
        Err(message) => {
            refuse(&message);
            1
        }
    }
}

/// Prints a step of the run with `-vv`.
fn say(settings: &Settings, streams: &Streams, step: &str) {
    if settings.verbose >= 2 {
        streams.output(format!("{step}\n").as_bytes());
    }
}

/// Every engine with every number of clients.
fn run_all(settings: &Arc<Settings>, streams: &Streams) -> Result<(), String> {
    if settings.shape.is_some() {
        say(settings, streams, "Building Create Statements for Auto");
        say(settings, streams, "Building Query Statements for Auto");
    }
    say(settings, streams, "Parsing engines to use.");
    let mut control = Control::open(settings, streams)?;
    say(settings, streams, "Starting Concurrency Test");
    for engine in &settings.engines {
        for clients in &settings.concurrency {
            let ended = run_loads(settings, streams, &mut control, engine.as_ref(), *clients);
            if settings.makes_schema() && !settings.no_drop && (ended.is_ok() || control.has_made()) {
                let dropped = control.drop_schema();
                ended?;
                dropped?;
            } else {
                ended?;
            }
        }
    }
    Ok(())
}

/// The iterations of one engine and number of clients, and their report.
fn run_loads(
    settings: &Arc<Settings>,
    streams: &Streams,
    control: &mut Control<'_>,
    engine: Option<&Engine>,
    clients: u64,
) -> Result<(), String> {
    let generated = settings.shape.map(|shape| shape.generate(engine));
    let queries: Vec<Query> = match &generated {
        Some(generated) => generated.queries.clone(),
        None => settings.queries.iter().cloned().map(Query::Text).collect(),
    };
    let limit = settings.limit(clients);
    let mut load = Load {
        settings: Arc::clone(settings),
        streams: streams.clone(),
        queries,
        keys: Vec::new(),
        limit,
        latency: Histogram::of_latency(),
    };
    let mut durations: Vec<Duration> = Vec::new();
    for _ in 0..settings.iterations {
        if settings.makes_schema() {
            say(settings, streams, "Loading Pre-data");
            if !settings.create.is_empty() && engine.is_some() {
                control.set_engine(engine);
            }
            control.make_schema(generated.as_ref())?;
        }
        if settings.shape.is_some() {
            say(settings, streams, "Generating primary key list");
        }
        load.keys = control.keys(settings.shape.map_or(Key::None, |shape| shape.key))?;
        system(settings.pre_system.as_deref(), settings)?;
        settings.pre_queries.iter().try_for_each(|text| control.send(text))?;
        let shared = Arc::new(load);
        durations.push(load::run(&shared, clients)?);
        load = Arc::into_inner(shared).ok_or("a client still runs")?;
        settings.post_queries.iter().try_for_each(|text| control.send(text))?;
        system(settings.post_system.as_deref(), settings)?;
    }
    say(settings, streams, "Generating stats");
    let of_each = match (limit, settings.shape) {
        (0, None) => settings.queries.len() as u64,
        (limit, _) => limit,
    };
    let outcome =
        Outcome { engine, clients, queries: of_each, durations: &durations, latency: &load.latency };
    report::print(&outcome, settings, streams)
}

/// Runs a command in a shell.
fn system(command: Option<&str>, settings: &Settings) -> Result<(), String> {
    let Some(text) = command.filter(|_| !settings.only_print) else { return Ok(()) };
    match Command::new("sh").args(["-c", text]).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the command '{text}' failed: {status}")),
        Err(error) => Err(format!("the command '{text}' cannot be run: {error}")),
    }
}

/// Offset of a password within an argument; `None` when the argument holds none.
pub fn password_at(arg: &[u8]) -> Option<usize> {
    match options::password_in(arg)? {
        Place::At(offset) => Some(offset),
        Place::Asked(_) => None,
    }
}

/// Text that joins a password to an argument that asks for it at the terminal; `None` when the argument does not ask.
pub fn password_joint(arg: &[u8]) -> Option<&'static str> {
    match options::password_in(arg)? {
        Place::At(_) => None,
        Place::Asked(joint) => Some(joint),
    }
}

#[cfg(test)]
mod tests {
    use super::{password_at, password_joint};

    #[test]
    fn passwords_are_found_behind_switches_and_in_long_form() {
        assert_eq!(password_at(b"-pword"), Some(2));
        assert_eq!(password_at(b"-Cpword"), Some(3));
        assert_eq!(password_at(b"--password=word"), Some(11));
        // The beginning of a name stands for the option, as in the original.
        assert_eq!(password_at(b"--passw=word"), Some(8));
        assert_eq!(password_at(b"--loose_pass=word"), Some(13));
        for other in [b"-p".as_slice(), b"-upp", b"--password", b"-P3306", b"word"] {
            assert_eq!(password_at(other), None);
        }
    }

    #[test]
    fn an_option_without_a_word_asks_and_keeps_the_switches_before_it() {
        for (given, joint) in [("-p", ""), ("-Cp", ""), ("-ap", ""), ("--password", "="), ("--pass", "=")] {
            assert_eq!(password_joint(given.as_bytes()), Some(joint), "{given}");
        }
        for other in ["-pword", "--password=", "-cp", "--p", "--plugin-dir", "word", "-"] {
            assert_eq!(password_joint(other.as_bytes()), None, "{other}");
        }
    }
}
