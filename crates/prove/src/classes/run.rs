//! Measures the classes: starts of the servers, plans, rounds in random order, until the budget is over.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use mydyno_model::experiment::Role;
use mydyno_model::experiment::classes::{ClassComparison, ClassFigures, ClassRound, ClassStatement};
use mydyno_model::server::ServerInfo;
use mydyno_run::{LoadSite, RunError, make_tables};
use mydyno_sandbox::{Site, Spec};
use mydyno_stats::rng::Rng;
use mydyno_wire::{Client, ConnectOptions};

use super::folder::{DOCUMENT, ROUNDS, write};
use super::plan::{Class, Planned};
use super::turn::{self, Turn};
use super::{analyse, explain};
use crate::comparison::put_back_what_a_kill_left;
use crate::error::ProveError;
use crate::lines::{LineWriter, make_folder};
use crate::maker::{server_error, with_log_tail};
use crate::run_options::RunOptions;

/// Label of the random stream of the order of classes and servers.
const ORDER: u64 = u64::from_be_bytes(*b"classord");

/// Progress of an experiment.
#[derive(Debug)]
pub enum Progress {
    /// Progress of a server's start.
    Server(Role, mydyno_sandbox::Progress),
    /// The tables of a server are made.
    Tables(Role),
    /// A round begins: its number, and how many there are at most.
    Round(usize, usize),
    /// A message that is shown even with `--quiet`.
    Loud(String),
}

/// A class with one number of clients: numbers of the class and of the number of clients.
type Cell = (usize, usize);

/// A server of a start.
struct Up {
    role: Role,
    name: String,
    info: ServerInfo,
    target: ConnectOptions,
}

/// An execution.
struct Execution<'a> {
    planned: &'a Planned,
    options: &'a RunOptions<'a>,
    ends: Instant,
    document: ClassComparison,
    lines: LineWriter,
    rounds: Vec<ClassRound>,
    /// How often each client executes a class in a measurement, by number of the class.
    times: Vec<u32>,
    watch: &'a mut dyn FnMut(Progress),
}

impl Planned {
    /// Executes the experiment. Its folder has a line of `rounds.jsonl` for each round, and `classes.json` with the plans from
    /// the first start on and with the results at the end.
    ///
    /// # Errors
    /// Levers of the host that are not permitted, a folder that cannot be written, a server that does not start or whose tables
    /// cannot be made, or the user interrupted; what was measured is in the folder then.
    pub fn run(
        &self,
        options: &RunOptions<'_>,
        watch: &mut dyn FnMut(Progress),
    ) -> Result<ClassComparison, ProveError> {
        if !self.of_the_host.is_empty() && options.allow_host_change.is_none() {
            return Err(ProveError::NotAllowed { levers: self.of_the_host.join(", ") });
        }
        let lines = match options.resume {
            true => {
                put_back_what_a_kill_left(options.host, &mut |text| watch(Progress::Loud(text)))?;
                LineWriter::open(options.folder.join(ROUNDS))?
            }
            false => {
                make_folder(&options.folder, &[DOCUMENT, ROUNDS])?;
                LineWriter::create(options.folder.join(ROUNDS))?
            }
        };
        let mut document = self.document.clone();
        document.command.clone_from(&options.command);
        let fresh = options.set_up.iter().filter(|line| !self.document.set_up.contains(line));
        document.set_up.extend(fresh.cloned());
        let mut execution = Execution {
            planned: self,
            options,
            ends: Instant::now() + Duration::from_secs_f64(self.document.budget_s),
            document,
            lines,
            rounds: self.before.clone(),
            times: Vec::new(),
            watch,
        };
        let mut ended = Ok(());
        for start in self.remaining_starts() {
            ended = execution.start(start);
            if ended.is_err() || execution.is_over() {
                break;
            }
        }
        let document = analyse::conclude(&execution.document, &execution.rounds);
        write(&options.folder, &document)?;
        ended.map(|()| document)
    }
}

impl Planned {
    /// Numbers of the starts to be made: those that have no round yet, and one more for each that has only some.
    fn remaining_starts(&self) -> Range<usize> {
        let all = self.classes.len() * self.document.connections.len() * self.document.rounds as usize;
        let of = |start: usize| self.before.iter().filter(|round| round.start == start).count();
        let begun = self.before.iter().map(|round| round.start + 1).max().unwrap_or(0);
        let complete = (0..begun).filter(|start| of(*start) >= all).count();
        begun..begun + self.document.starts.saturating_sub(complete)
    }
}

impl Execution<'_> {
    fn is_over(&self) -> bool {
        Instant::now() >= self.ends
    }

    fn check_stop(&self) -> Result<(), ProveError> {
        match self.options.stop.load(Ordering::Relaxed) {
            true => Err(ProveError::Interrupted { folder: self.options.folder.clone() }),
            false => Ok(()),
        }
    }

    /// One start: the three servers with their tables, plans at the first one, rounds; the servers are ended however it ends.
    fn start(&mut self, start: usize) -> Result<(), ProveError> {
        let mut up = Vec::new();
        let mut measured = Ok(());
        for number in 0..Role::ALL.len() {
            match self.bring_up(start, number) {
                Ok(server) => up.push(server),
                Err(error) => {
                    measured = Err(error);
                    break;
                }
            }
        }
        if measured.is_ok() {
            measured = self.measure(start, &up);
        }
        let mut ended = Ok(());
        for server in &up {
            match mydyno_sandbox::down(&Site::new(self.options.host), &server.name) {
                Ok(left_alone) => left_alone.into_iter().for_each(|what| (self.watch)(Progress::Loud(what))),
                Err(source) => ended = Err(server_error(server.role.name(), source)),
            }
        }
        measured.and(ended)
    }

    fn bring_up(&mut self, start: usize, number: usize) -> Result<Up, ProveError> {
        let role = Role::ALL[number];
        let name = format!("prove-{}-{start}-{}", std::process::id(), role.name());
        let Some(arm) = self.planned.arms.first().and_then(|arms| arms.get(number)) else {
            return Err(ProveError::NoClasses { name: self.document.experiment.clone() });
        };
        let spec = Spec {
            name: name.clone(),
            lever_set: arm.lever_set.server.clone(),
            allow_host_change: self.options.allow_host_change,
            ..Spec::default()
        };
        let site = Site::new(self.options.host).cancelled_by(self.options.stop);
        let watch = &mut *self.watch;
        let info = mydyno_sandbox::up(&site, &spec, &mut |what| watch(Progress::Server(role, what)))
            .map_err(|source| server_error(role.name(), source))?;
        (self.watch)(Progress::Tables(role));
        match self.tables(number, &info) {
            Ok(target) => Ok(Up { role, name, info, target }),
            Err(error) => {
                // The server must not outlive an arm that cannot use it; the first error is the one to report.
                let _ = mydyno_sandbox::down(&Site::new(self.options.host), &name);
                Err(error)
            }
        }
    }

    /// Makes the tables of all storage engines.
    fn tables(&self, number: usize, info: &ServerInfo) -> Result<ConnectOptions, ProveError> {
        let role = Role::ALL[number];
        let mut target = mydyno_sandbox::connect_options(info).map_err(|e| server_error(role.name(), e))?;
        target.cancel = Some(Arc::clone(self.options.stop));
        for arms in &self.planned.arms {
            let Some(arm) = arms.get(number) else { continue };
            let (plan, work) = (&arm.load.plan, &arm.load.work);
            let place = LoadSite { plan, options: &arm.load.resolved.options, work, connect: &target };
            make_tables(place, self.options.stop, &mut |_| {}).map_err(|source: RunError| {
                ProveError::Load { arm: role.name().to_owned(), source: Box::new(source) }
            })?;
        }
        Ok(target)
    }

    fn measure(&mut self, start: usize, up: &[Up]) -> Result<(), ProveError> {
        if self.document.servers.is_empty() {
            let two = up.iter().filter(|server| server.role != Role::Again);
            self.document.servers = two.map(|server| server.info.version.clone()).collect();
            self.plans(up);
            write(&self.options.folder, &self.document)?;
        }
        self.warm_up(up)?;
        let mut order = Rng::stream(self.document.seed, &[ORDER, start as u64]);
        let most = self.document.rounds as usize;
        for round in 0..most {
            (self.watch)(Progress::Round(round, most));
            for cell in self.cells(&mut order) {
                self.check_stop()?;
                if self.is_over() {
                    return Ok(());
                }
                self.round(start, cell, up, &mut order)?;
            }
        }
        Ok(())
    }

    /// The plans of each class on both servers.
    fn plans(&mut self, up: &[Up]) {
        let planned = self.planned;
        for (class, result) in planned.classes.iter().zip(&mut self.document.classes) {
            let plan = |role: Role, sql: &str| {
                let server = up.iter().find(|server| server.role == role);
                let client = server.map(|server| Client::connect(&of_class(server, class)));
                match client {
                    Some(Ok(mut client)) => explain::plan(&mut client, sql),
                    Some(Err(error)) => explain::unknown(error.to_string()),
                    None => explain::unknown("the server is not up".to_owned()),
                }
            };
            result.statements = class
                .statements
                .iter()
                .map(|(name, sql)| ClassStatement {
                    name: name.clone(),
                    sql: sql.clone(),
                    baseline: plan(Role::Baseline, sql),
                    treatment: plan(Role::Treatment, sql),
                })
                .collect();
            let differ: Vec<Option<bool>> =
                result.statements.iter().map(|s| s.baseline.differs(&s.treatment)).collect();
            result.plans_differ = match differ.contains(&Some(true)) {
                true => Some(true),
                false => differ.into_iter().collect::<Option<Vec<bool>>>().map(|_| false),
            };
        }
    }

    /// Executes each class on each server by one client until the warm-up is over, and determines how often a measurement
    /// repeats it: at the first start, from the baseline's time.
    fn warm_up(&mut self, up: &[Up]) -> Result<(), ProveError> {
        let planned = self.planned;
        for (number, class) in planned.classes.iter().enumerate() {
            let mut once_s = 0.0;
            for server in up {
                let begin = Instant::now();
                let target = of_class(server, class);
                loop {
                    self.check_stop()?;
                    let turn = Turn {
                        target: &target,
                        pid: pid(server),
                        statements: &class.statements,
                        clients: 1,
                        times: 1,
                    };
                    match turn.measure() {
                        Ok(figures) if server.role == Role::Baseline => once_s = figures.time_s,
                        Ok(_) => {}
                        Err(why) => {
                            self.note(
                                number,
                                &format!("{}: {}", server.role.name(), with_log_tail(&server.info, why)),
                            );
                            break;
                        }
                    }
                    if begin.elapsed() >= planned.times.warmup || self.is_over() {
                        break;
                    }
                }
            }
            if self.times.len() <= number {
                self.times.push(turn::times(planned.times.turn, Duration::from_secs_f64(once_s)));
            }
        }
        Ok(())
    }

    /// All cells in random order.
    fn cells(&self, order: &mut Rng) -> Vec<Cell> {
        let clients = 0..self.document.connections.len();
        let mut cells: Vec<Cell> = (0..self.planned.classes.len())
            .flat_map(|class| clients.clone().map(move |number| (class, number)))
            .collect();
        order.shuffle(&mut cells);
        cells
    }

    /// One round of a cell: each server once, in random order.
    fn round(&mut self, start: usize, cell: Cell, up: &[Up], order: &mut Rng) -> Result<(), ProveError> {
        let planned = self.planned;
        let (class, clients) = (&planned.classes[cell.0], self.document.connections[cell.1]);
        // Many clients are more work: the measurement need not be longer for them.
        let times = (self.times[cell.0] / clients).max(1);
        let mut turns: Vec<usize> = (0..up.len()).collect();
        order.shuffle(&mut turns);
        let mut figures = [ClassFigures::default(); Role::ALL.len()];
        for number in turns {
            thread::sleep(planned.times.pause);
            let server = &up[number];
            let target = of_class(server, class);
            let turn =
                Turn { target: &target, pid: pid(server), statements: &class.statements, clients, times };
            match turn.measure() {
                Ok(found) => figures[number] = found,
                Err(why) => {
                    let why = with_log_tail(&server.info, why);
                    self.note(cell.0, &format!("{clients} clients, {}: {why}", server.role.name()));
                    return Ok(());
                }
            }
        }
        let [baseline, treatment, again] = figures;
        let round =
            ClassRound { start, class: cell.0, connections: clients, times, baseline, treatment, again };
        self.lines.push(&round)?;
        self.rounds.push(round);
        Ok(())
    }

    /// Keeps what went wrong in a class, each message once.
    fn note(&mut self, class: usize, what: &str) {
        if let Some(result) = self.document.classes.get_mut(class)
            && !result.not_measured.iter().any(|known| known == what)
        {
            result.not_measured.push(what.to_owned());
        }
    }
}

/// The server with the database of a class.
fn of_class(server: &Up, class: &Class) -> ConnectOptions {
    let mut target = server.target.clone();
    target.database = Some(class.database.clone());
    target
}

/// The server's process; 0, which has no figures, where it is unknown.
fn pid(server: &Up) -> u32 {
    server.info.pid.unwrap_or(0)
}
