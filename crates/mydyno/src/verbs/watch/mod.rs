//! `mydyno watch`: what a server and its host do, every second.

mod black_box;
mod csv;
mod profile;
mod screen;
mod text;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

use mydyno_model::diagnosis::Diagnosis;
use mydyno_model::document::Document as _;
use mydyno_model::units::parse_duration;
use mydyno_model::watch::{WatchInterval, WatchManifest};
use mydyno_run::watch::{self, ProfilePlan, Seen, WatchPlan};
use mydyno_samples::Interval;

use crate::failure::{Failure, Status};
use crate::secrets::Password;
use crate::target::{self, ServerArgs};
use crate::ui::Ui;
use crate::{private, signals};

const EXAMPLES: &str = "Examples:
  mydyno watch             the server of the option files: a screen on a terminal, else a block of lines every second
  mydyno watch -h db1 -u monitor --once
                           one interval, then the end
  mydyno watch --json --interval 10s --duration 1h
                           a JSON document per line and interval
  mydyno watch --record /var/tmp/night --duration 8h --quiet > /dev/null
  mydyno watch --replay /var/tmp/night --csv
                           a night of raw counters, and its intervals again
  mydyno watch --budget --duration 1m
                           with stacks captured now and then: where the time goes
  mydyno watch --black-box /var/lib/mydyno/box --budget --quiet > /dev/null
                           keep the latest minutes, and those around each spike
  mydyno watch --profile=30s
                           a whole profile: also which functions run

Ctrl-C ends the watch with exit status 130. It only reads; the account needs no privilege, and shows more with PROCESS.
Guide: docs/guides/watch.md";

/// Options of `mydyno watch`.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true, after_help = EXAMPLES)]
pub struct Args {
    /// Time between samples, from 100ms to 10min.
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    interval: String,
    /// End after this many intervals.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// End after this time.
    #[arg(long, value_name = "DURATION", conflicts_with = "count")]
    duration: Option<String>,
    /// One interval, then the end.
    #[arg(long, conflicts_with_all = ["count", "duration"])]
    once: bool,
    /// Comma-separated values, a line per interval.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Lines on a terminal, too, where a screen is shown otherwise.
    #[arg(long)]
    plain: bool,
    /// Watch this host without a server.
    #[arg(long)]
    host_only: bool,
    /// Capture the server's stacks for half a second every 5 s, and say where the time of its statements goes.
    #[arg(long, conflicts_with = "host_only")]
    budget: bool,
    /// Keep the raw samples in this folder, which must not exist yet or be empty.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Show a recorded watch again, or the samples of a bench (folder, name or number of `mydyno runs`), in any form.
    #[arg(long, value_name = "RUN", conflicts_with_all = ["record", "openmetrics", "host_only", "interval", "count", "duration", "once", "budget"])]
    replay: Option<PathBuf>,
    /// Write each sample as OpenMetrics text to this file, as in node_exporter's textfile folder (FILE.prom).
    #[arg(long, value_name = "FILE")]
    openmetrics: Option<PathBuf>,
    /// Profile.
    #[command(flatten)]
    profile: profile::ProfileArgs,
    /// Black box.
    #[command(flatten)]
    black_box: black_box::BlackBoxArgs,
    /// Server.
    #[command(flatten)]
    server: ServerArgs,
    /// Print help.
    #[arg(long, short = '?', action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// Watches and prints each interval.
pub fn run(args: &Args, password: Password, argv: Vec<String>, ui: &Ui) -> Result<Status, Failure> {
    if let Some(folder) = &args.black_box.mark {
        return black_box::mark(folder, &args.black_box.text, ui);
    }
    if args.black_box.unit {
        args.black_box.plan()?;
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("mydyno"));
        ui.out(&black_box::unit(&program, &argv));
        return Ok(Status::Fine);
    }
    if let Some(window) = &args.profile.profile {
        let window = duration("--profile", window)?;
        let plan = match args.profile.pid {
            Some(pid) => ProfilePlan::Process(pid, window),
            None => ProfilePlan::Server(Box::new(target::resolve(&args.server, password, ui)?), window),
        };
        return profile::run(&args.profile, &plan, ui);
    }
    let mut printer = Printer { form: form(args, ui), once: args.once, ui, csv: csv::Table::default() };
    let mut see = |seen: Seen<'_>| match seen {
        Seen::Begins(manifest) => printer.begin(manifest),
        Seen::Interval(interval) => printer.interval(interval),
        Seen::Stacks(_) => {}
        Seen::Note(text) => ui.note(&text),
        Seen::Ends(diagnosis) => printer.end(diagnosis),
    };
    let (ended, stop) = match &args.replay {
        Some(folder) => {
            let folder = super::runs::found(folder)?;
            let stop = signals::stop_flag()?;
            (watch::replay(&folder, &stop, &mut see), stop)
        }
        None => {
            let plan = plan(args, password, argv, ui)?;
            let stop = signals::stop_flag()?;
            if is_for_screen(args, ui) {
                let (ended, diagnosis) = screen::run(&plan, ui.color, &stop)?;
                if let Some(diagnosis) = diagnosis {
                    ui.out(&text::diagnosis(&diagnosis, ui.width()));
                }
                // Keys end a screen; that is its end, and no interruption.
                let all = plan.intervals.is_none_or(|all| ended.intervals >= all);
                return Ok(if all { Status::Fine } else { Status::Interrupted });
            }
            (watch::watch(&plan, &stop, &mut see), stop)
        }
    };
    let ended = ended.map_err(|e| private::or_interrupted(private::run_failure(e), &stop))?;
    Ok(if ended.interrupted { Status::Interrupted } else { Status::Fine })
}

fn plan(args: &Args, password: Password, argv: Vec<String>, ui: &Ui) -> Result<WatchPlan, Failure> {
    let every = duration("--interval", &args.interval)?;
    let interval = Interval::new(every).map_err(|e| Failure::usage(format!("--interval: {e}")))?;
    let intervals = match &args.duration {
        _ if args.once => Some(1),
        None => args.count,
        Some(text) => {
            let all = duration("--duration", text)?;
            if all < every {
                return Err(Failure::usage("--duration: it is shorter than one --interval"));
            }
            Some((all.as_secs_f64() / every.as_secs_f64()).round() as u64)
        }
    };
    let server = match args.host_only {
        true => None,
        false => Some(Box::new(target::resolve(&args.server, password, ui)?)),
    };
    let (record, openmetrics) = (args.record.clone(), args.openmetrics.clone());
    Ok(WatchPlan {
        server,
        interval,
        intervals,
        stacks: args.budget,
        record,
        black_box: args.black_box.plan()?,
        openmetrics,
        argv,
    })
}

fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    parse_duration(text).map_err(|e| Failure::usage(format!("{option}: {e}")))
}

/// Whether somebody looks at a terminal.
fn is_for_screen(args: &Args, ui: &Ui) -> bool {
    let plain = args.plain || args.once || args.csv || ui.json || ui.quiet || !ui.live;
    !plain && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Forms of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    Json,
    Csv,
}

fn form(args: &Args, ui: &Ui) -> Form {
    match (ui.json, args.csv) {
        (true, _) => Form::Json,
        (_, true) => Form::Csv,
        _ => Form::Text,
    }
}

struct Printer<'a> {
    form: Form,
    /// The interval is part of the diagnosis, and is not printed as JSON by itself.
    once: bool,
    ui: &'a Ui,
    csv: csv::Table,
}

impl Printer<'_> {
    fn begin(&self, manifest: &WatchManifest) {
        if let (Some(address), Some(version)) = (&manifest.address, &manifest.version) {
            self.ui.note(&format!("Watching {address} ({version}), every {} s", manifest.interval_s));
        }
        for gap in &manifest.gaps {
            self.ui.note(&format!("Not sampled: {gap}"));
        }
    }

    fn interval(&mut self, interval: &WatchInterval) {
        match self.form {
            Form::Text => self.ui.out(&text::block(interval, self.ui.width())),
            // Documents are plain data, so this cannot fail.
            Form::Json if self.once => {}
            Form::Json => self.ui.out(&serde_json::to_string(interval).unwrap_or_default()),
            Form::Csv => self.ui.out(&self.csv.lines(interval)),
        }
    }

    fn end(&self, diagnosis: &Diagnosis) {
        match self.form {
            Form::Text => self.ui.out(&text::diagnosis(diagnosis, self.ui.width())),
            Form::Json if self.once => self.ui.out(&diagnosis.to_json()),
            Form::Json => self.ui.out(&serde_json::to_string(diagnosis).unwrap_or_default()),
            Form::Csv => {}
        }
    }
}
