//! Measures the rows of an experiment with several factors, with a line in the folder for each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use mydyno_levers::InPlace;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::Document;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::factorial::{Factorial, FactorialRow, FactorialRun};
use mydyno_model::experiment::{Role, Row, Slice};
use mydyno_model::server::ServerInfo;
use mydyno_sandbox::Site;
use mydyno_wire::ConnectOptions;
use serde_json::Map;

use super::design::Planned;
use crate::arm::ServerArm;
use crate::error::ProveError;
use crate::lines::{LineWriter, make_folder, read_file, read_lines, replace, write_synced};
use crate::maker::{Made, Maker, is_interrupted, server_error, with_log_tail};
use crate::slice::{self, Load, Measured};

pub use crate::run_options::RunOptions;

const DOCUMENT: &str = "factorial.json";
const RUNS: &str = "runs.jsonl";

/// Progress of an experiment.
#[derive(Debug)]
pub enum Progress<'a> {
    /// Progress of a server's start.
    Server(mydyno_sandbox::Progress),
    /// A row ended.
    Row {
        /// The row that ended.
        run: &'a FactorialRun,
        /// Rows so far.
        done: usize,
    },
    /// A message that concerns other users as well, shown even with `--quiet`.
    Loud(String),
}

/// The folder of an experiment: `factorial.json` before the first row and again at the end, a line of `runs.jsonl` a row.
#[derive(Debug)]
pub(crate) struct RowStore {
    folder: PathBuf,
    rows: LineWriter,
}

impl RowStore {
    /// Makes the folder and writes the design.
    pub(crate) fn create(folder: &Path, document: &Factorial) -> Result<Self, ProveError> {
        make_folder(folder, &[RUNS, DOCUMENT])?;
        write_synced(&folder.join(DOCUMENT), &document.to_json())?;
        Ok(Self { folder: folder.to_owned(), rows: LineWriter::create(folder.join(RUNS))? })
    }

    /// Opens the folder of an interrupted experiment to add rows. An incomplete last line is removed.
    pub(crate) fn open(folder: &Path) -> Result<Self, ProveError> {
        Ok(Self { folder: folder.to_owned(), rows: LineWriter::open(folder.join(RUNS))? })
    }

    fn row(&self, run: &FactorialRun) -> Result<(), ProveError> {
        self.rows.push(run)
    }

    /// Writes the document with its results atomically.
    pub(crate) fn document(&self, document: &Factorial) -> Result<(), ProveError> {
        replace(&self.folder.join(DOCUMENT), &document.to_json())
    }
}

/// Reads an experiment: its design, and all rows with complete lines.
///
/// # Errors
/// There is none, or a file is damaged before its last line.
pub(crate) fn read(folder: &Path) -> Result<(Factorial, Vec<FactorialRun>), ProveError> {
    let path = folder.join(DOCUMENT);
    let document =
        Factorial::from_json(&read_file(&path)?).map_err(|source| ProveError::Document { path, source })?;
    Ok((document, read_lines(&folder.join(RUNS))?))
}

/// Whether a folder holds an experiment with several factors.
pub fn holds_factors(folder: &Path) -> bool {
    folder.join(DOCUMENT).is_file()
}

/// Measures the remaining rows. Returns the rows so far, and the error that ended the execution early.
pub(crate) fn run(
    planned: &Planned,
    options: &RunOptions<'_>,
    store: &RowStore,
    watch: &mut dyn FnMut(Progress<'_>),
) -> (Vec<FactorialRun>, Result<(), ProveError>) {
    let mut table = Table {
        planned,
        options,
        store,
        watch,
        clock: MonotonicClock::start(),
        runs: planned.before.clone(),
    };
    let ended = match planned.document.mode {
        Mode::InPlace => table.in_place(),
        Mode::Alternate | Mode::Rows | Mode::Duet => table.rows(),
    };
    (table.runs, ended)
}

/// The state of an execution.
struct Table<'a, 's> {
    planned: &'a Planned,
    options: &'a RunOptions<'a>,
    store: &'s RowStore,
    watch: &'s mut dyn FnMut(Progress<'_>),
    clock: MonotonicClock,
    runs: Vec<FactorialRun>,
}

impl<'a> Table<'a, '_> {
    fn maker(&self) -> Maker<'a> {
        Maker {
            host: self.options.host,
            allow_host_change: self.options.allow_host_change,
            stop: self.options.stop,
            warmup: Duration::from_secs_f64(self.planned.document.warmup_s),
        }
    }

    /// Seconds since the experiment began, times between executions left out.
    fn at_s(&self) -> f64 {
        let ends = self.planned.before.iter().map(|run| run.at_s + run.measured_s);
        ends.fold(0.0, f64::max) + self.clock.now_s()
    }

    fn name(order: usize) -> String {
        format!("prove-{}-{order}-run", std::process::id())
    }

    /// One server, whose levers are swapped between rows; each change is journalled first.
    fn in_place(&mut self) -> Result<(), ProveError> {
        let (planned, host) = (self.planned, self.options.host);
        let purpose = format!("experiment {} {}", planned.document.experiment, std::process::id());
        let levers = InPlace::new(Site::new(host), purpose, self.options.allow_host_change);
        let name = Self::name(0);
        let first = &planned.arms[0];
        let made = Made::of("the server", first, &first.load, &planned.shared, &name);
        let maker = self.maker();
        let watch = &mut *self.watch;
        let (info, target) =
            maker.make(&made, None, &self.clock, &mut |what| watch(Progress::Server(what)))?;
        let mut measured = Ok(());
        for row in planned.left() {
            measured = self.swap_and_measure(row, &levers, &info, &target);
            if measured.is_err() {
                break;
            }
        }
        let back = self.put_back(&levers);
        let ended = self.end(&name);
        measured.and(back).and(ended)
    }

    fn swap_and_measure(
        &mut self,
        row: FactorialRow,
        levers: &InPlace<'_>,
        info: &ServerInfo,
        target: &ConnectOptions,
    ) -> Result<(), ProveError> {
        self.put_back(levers)?;
        let arm = &self.planned.arms[row.run];
        match levers.apply(&arm.own, Some(info)) {
            Ok(()) => self.measure(row, arm, info, target),
            Err(error) => self.failed(row, &error.to_string()),
        }
    }

    fn put_back(&mut self, levers: &InPlace<'_>) -> Result<(), ProveError> {
        let left_alone = levers
            .put_back()
            .map_err(|source| ProveError::Lever { arm: "levers".to_owned(), source: Box::new(source) })?;
        left_alone.into_iter().for_each(|what| (self.watch)(Progress::Loud(what)));
        Ok(())
    }

    /// A server start for each row. A failed start is a result of its row.
    fn rows(&mut self) -> Result<(), ProveError> {
        let (planned, maker) = (self.planned, self.maker());
        for row in planned.left() {
            let (arm, name) = (&planned.arms[row.run], Self::name(row.order));
            let who = format!("run {}", planned.document.runs[row.run]);
            let made = Made::of(&who, arm, &arm.load, &arm.lever_set, &name);
            let watch = &mut *self.watch;
            let up = maker.make(&made, None, &self.clock, &mut |what| watch(Progress::Server(what)));
            match up {
                Ok((info, target)) => {
                    let measured = self.measure(row, arm, &info, &target);
                    let ended = self.end(&name);
                    measured.and(ended)?;
                }
                Err(error) if is_interrupted(&error) => return Err(error),
                Err(error) => self.failed(row, &error.to_string())?,
            }
        }
        Ok(())
    }

    fn end(&mut self, name: &str) -> Result<(), ProveError> {
        let left_alone = mydyno_sandbox::down(&Site::new(self.options.host), name)
            .map_err(|source| server_error("the server", source))?;
        left_alone.into_iter().for_each(|what| (self.watch)(Progress::Loud(what)));
        Ok(())
    }

    fn measure(
        &mut self,
        row: FactorialRow,
        arm: &ServerArm,
        info: &ServerInfo,
        target: &ConnectOptions,
    ) -> Result<(), ProveError> {
        let settle = Duration::from_secs_f64(self.planned.document.settle_s);
        let load = Load {
            plan: &arm.load.plan,
            work: &arm.load.work,
            target,
            client: arm.lever_set.client.clone(),
            settle,
            server: None,
        };
        let at_s = self.at_s();
        let place = Row { order: row.order, start: 0, block: row.block, arm: Role::Treatment };
        match slice::measure(&load, place, &self.clock, self.options.stop) {
            Measured::Interrupted => Err(ProveError::Interrupted { folder: self.store.folder.clone() }),
            Measured::Slice(slice) => {
                let mut run = of_slice(row, at_s, &slice);
                run.failed = run.failed.map(|why| with_log_tail(info, why));
                self.keep(run)
            }
        }
    }

    fn failed(&mut self, row: FactorialRow, why: &str) -> Result<(), ProveError> {
        let run = FactorialRun {
            row,
            at_s: self.at_s(),
            measured_s: 0.0,
            transactions: 0,
            errors: 0,
            mean_us: None,
            p95_us: None,
            client_cpu_us: 0,
            workers: 0,
            failed: Some(why.to_owned()),
            extra: Map::new(),
        };
        self.keep(run)
    }

    fn keep(&mut self, run: FactorialRun) -> Result<(), ProveError> {
        self.store.row(&run)?;
        (self.watch)(Progress::Row { run: &run, done: self.runs.len() + 1 });
        self.runs.push(run);
        Ok(())
    }
}

fn of_slice(row: FactorialRow, at_s: f64, slice: &Slice) -> FactorialRun {
    FactorialRun {
        row,
        at_s,
        measured_s: slice.measured_s,
        transactions: slice.transactions,
        errors: slice.errors,
        mean_us: slice.mean_us,
        p95_us: slice.p95_us,
        client_cpu_us: slice.client_cpu_us,
        workers: slice.workers,
        failed: slice.failed.clone(),
        extra: Map::new(),
    }
}
