//! Executes the run table: servers running, load on one arm at a time, a line in the folder for each slice.
//!
//! A disturbance of the host that lasts longer than a block affects all arms of the block alike.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::{Client, LeverSet};
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::{Design, Role, Row, Slice};
use mydyno_run::Cancel;

use crate::arm::{ArmLoad, ArmPlan};
use crate::design::rows_of_block;
use crate::duet::{self, Parts};
use crate::error::ProveError;
use crate::jobs::{Surroundings, beside};
use crate::probing::{Place, Probing};
use crate::servers::{Servers, Up};
use crate::slice::{self, Load, Measured};
use crate::store::Store;
use crate::templates::Templates;
use crate::users_server::{OnServer, Swap};

/// Progress of an experiment.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The servers of a start are being started.
    Starting {
        /// Number, from 0.
        start: usize,
        /// Number of starts, at most.
        of: usize,
    },
    /// Progress of a server's start.
    Server {
        /// Its arm.
        role: Role,
        /// The progress.
        what: mydyno_sandbox::Progress,
    },
    /// A slice ended.
    Slice {
        /// The slice that ended.
        slice: &'a Slice,
        /// All slices so far.
        slices: &'a [Slice],
        /// Slices of the whole table.
        of: usize,
    },
    /// A message that concerns other users as well, shown even with `--quiet`.
    Loud(String),
}

/// Everything that executing a table needs.
pub struct Execution<'a> {
    /// The table.
    pub design: &'a Design,
    /// The arms, in the order of [`Role::ALL`], those of further levels last.
    pub arms: &'a [ArmPlan],
    /// The levers that all arms share, for a server whose other levers are swapped in place.
    pub shared: &'a LeverSet,
    /// The state folder, its journal and a lease.
    pub host: &'a Host,
    /// The user's permission to change the host.
    pub allow_host_change: Option<AllowHostChange>,
    /// Set by the user to end the experiment.
    pub stop: &'a Cancel,
    /// The user's server, where the experiment runs there.
    pub on_server: Option<&'a OnServer>,
    /// Slices of an earlier execution of the same table; its complete blocks are not measured again.
    pub before: Vec<Slice>,
}

/// Callbacks of an execution.
pub struct Observer<'a> {
    /// Whether the slices so far decide the question. Asked after each start; in place after each block.
    pub decided: &'a mut dyn FnMut(&[Slice]) -> bool,
    /// Called with the progress.
    pub watch: &'a mut dyn FnMut(Progress<'_>),
}

/// Executes the remaining rows. Returns all slices, those of an earlier execution included.
///
/// # Errors
/// The baseline cannot be started, the folder cannot be written, a lever cannot be restored, or the user interrupted.
/// The slices so far are in the folder.
pub fn run(
    execution: &Execution<'_>,
    store: &Store,
    observer: &mut Observer<'_>,
) -> Result<Vec<Slice>, ProveError> {
    let templates = Templates::default();
    let measured = carry_out(execution, &templates, store, observer);
    let removed = templates.give_back(execution.host);
    measured.and_then(|slices| removed.map(|()| slices))
}

fn carry_out<'a>(
    execution: &'a Execution<'a>,
    templates: &'a Templates,
    store: &Store,
    observer: &mut Observer<'_>,
) -> Result<Vec<Slice>, ProveError> {
    let begin_s = execution.before.iter().map(|slice| slice.at_s + slice.measured_s).fold(0.0, f64::max);
    let slices = execution.before.clone();
    let mut table = Table { execution, store, clock: MonotonicClock::start(), begin_s, slices, templates };
    let design = execution.design;
    let complete = complete_blocks(&table.slices, design);
    for start in 0..design.starts {
        let left = |row: &&Row| row.start == start && !complete.contains_key(&(row.start, row.block));
        let rows: Vec<Row> = design.rows.iter().filter(left).copied().collect();
        if rows.is_empty() {
            continue;
        }
        (observer.watch)(Progress::Starting { start, of: design.starts });
        let decided = match design.mode {
            Mode::Alternate => table.alternate(start, &rows, observer)?,
            Mode::InPlace => table.in_place(start, &rows, observer)?,
            Mode::Rows => table.rows(&rows, observer)?,
            Mode::Duet => table.duets(start, &rows, observer)?,
        };
        if decided || (observer.decided)(&table.slices) {
            break;
        }
    }
    Ok(table.slices)
}

/// Blocks that have a slice of each of their arms.
pub fn complete_blocks(slices: &[Slice], design: &Design) -> BTreeMap<(usize, usize), usize> {
    let mut arms: BTreeMap<(usize, usize), Vec<Role>> = BTreeMap::new();
    for slice in slices {
        let arms = arms.entry((slice.row.start, slice.row.block)).or_default();
        if !arms.contains(&slice.row.arm) {
            arms.push(slice.row.arm);
        }
    }
    arms.into_iter()
        .map(|(block, arms)| (block, arms.len()))
        .filter(|(_, n)| *n == rows_of_block(design))
        .collect()
}

/// The state of an execution.
struct Table<'a, 's> {
    execution: &'a Execution<'a>,
    store: &'s Store,
    clock: MonotonicClock,
    /// Start of this execution, in seconds since the first one, without the times between executions.
    begin_s: f64,
    slices: Vec<Slice>,
    templates: &'a Templates,
}

impl<'a> Table<'a, '_> {
    /// One start of the servers of all arms, which run together.
    fn alternate(
        &mut self,
        start: usize,
        rows: &[Row],
        observer: &mut Observer<'_>,
    ) -> Result<bool, ProveError> {
        let mut servers = Servers::new(self.execution, self.templates, start);
        let measured = servers
            .bring_up(self.execution.arms, &self.clock, observer.watch)
            .and_then(|()| rows.iter().try_for_each(|row| self.measure(*row, servers.of(row.arm), observer)));
        let ended = servers.end(observer.watch);
        measured.and(ended).map(|()| false)
    }

    /// One start of the servers of all arms, two of which are loaded at the same time.
    fn duets(&mut self, start: usize, rows: &[Row], observer: &mut Observer<'_>) -> Result<bool, ProveError> {
        let execution = self.execution;
        let purpose = format!("duet {} {}", execution.design.experiment, std::process::id());
        let parts = Parts::new(execution.host, purpose)?;
        let mut servers = Servers::new(execution, self.templates, start);
        let measured = servers
            .bring_up(execution.arms, &self.clock, observer.watch)
            .and_then(|()| rows.chunks(2).try_for_each(|pair| self.duet(pair, &parts, &servers, observer)));
        let back = parts.put_back();
        let ended = servers.end(observer.watch);
        measured.and(back).and(ended).map(|()| false)
    }

    /// Measures two rows at the same time, each server and its load on a part of the CPUs.
    fn duet(
        &mut self,
        pair: &[Row],
        parts: &Parts<'_>,
        servers: &Servers<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<(), ProveError> {
        let execution = self.execution;
        let settle = Duration::from_secs_f64(execution.design.settle_s);
        let at_s = self.at_s();
        let mut loaded = Vec::new();
        for (row, part) in pair.iter().zip(parts.cpus()) {
            let arm = execution.arms.iter().find(|arm| arm.arm.role == row.arm);
            let (Some(arm), Some(Up { info: Some(info), target: Ok(target), .. })) =
                (arm, servers.of(row.arm))
            else {
                continue;
            };
            let Some(workload) = arm.loaded() else { continue };
            let client = Client { cpus: Some(part.clone()), ..arm.lever_set.client.clone() };
            loaded.push((
                *row,
                info,
                part,
                Load { plan: &workload.plan, work: &workload.work, target, client, settle, server: info.pid },
            ));
        }
        if loaded.len() < pair.len() {
            let missing = pair.iter().find_map(|row| servers.of(row.arm)?.target.as_ref().err());
            let why = missing.map_or("a server of the duet is not there", String::as_str);
            return pair.iter().try_for_each(|row| self.keep(failed(*row, at_s, why), observer));
        }
        parts.confine(loaded.iter().map(|(_, info, part, _)| (*info, part.as_slice())))?;
        let loads = loaded.iter().map(|(row, _, _, load)| (*row, load)).collect();
        for measured in duet::measure(loads, &self.clock, execution.stop) {
            match measured {
                Measured::Interrupted => return Err(interrupted(self.store.folder())),
                Measured::Slice(slice) => {
                    let up = servers.of(slice.row.arm);
                    let failed =
                        slice.failed.clone().map(|why| up.map_or(why.clone(), |up| up.with_log_tail(why)));
                    self.keep(Slice { at_s, failed, ..*slice }, observer)?;
                }
            }
        }
        Ok(())
    }

    /// One server, whose levers are swapped between slices.
    fn in_place(
        &mut self,
        start: usize,
        rows: &[Row],
        observer: &mut Observer<'_>,
    ) -> Result<bool, ProveError> {
        let execution = self.execution;
        let purpose = format!("experiment {} {}", execution.design.experiment, std::process::id());
        let levers = Swap::new(execution.host, purpose, execution.allow_host_change, execution.on_server);
        let mut servers = Servers::new(execution, self.templates, start);
        let measured = servers
            .bring_up_shared(&self.clock, observer.watch)
            .and_then(|()| self.swap_and_measure(rows, &levers, &servers, observer));
        let back = put_back(&levers, Role::Baseline, observer.watch);
        let ended = servers.end(observer.watch);
        let decided = measured?;
        back.and(ended).map(|()| decided)
    }

    fn swap_and_measure(
        &mut self,
        rows: &[Row],
        levers: &Swap<'_>,
        servers: &Servers<'_>,
        observer: &mut Observer<'_>,
    ) -> Result<bool, ProveError> {
        let mut set: Option<Role> = None;
        for (number, row) in rows.iter().enumerate() {
            let same = |a: Role, b: Role| a == b || (a.is_baseline() && b.is_baseline());
            let up = servers.of(Role::Baseline);
            let mut refused = None;
            if !set.is_some_and(|set| same(set, row.arm)) {
                put_back(levers, row.arm, observer.watch)?;
                let arm = self.execution.arms.iter().find(|arm| arm.arm.role == row.arm);
                set = Some(row.arm);
                let info = up.and_then(|up| up.info.as_ref());
                if let Some(Err(error)) = arm.map(|arm| levers.apply(&arm.lever_set, &arm.own, info)) {
                    // A value that the user's server refuses ends the experiment.
                    if row.arm.is_baseline() || self.execution.on_server.is_some() {
                        return Err(lever_error(row.arm, error));
                    }
                    set = None;
                    refused = Some(error.to_string());
                }
            }
            match refused {
                Some(why) => self.keep(failed(*row, self.at_s(), &why), observer)?,
                None => self.measure(*row, up, observer)?,
            }
            let block_ended = rows.get(number + 1).is_none_or(|next| next.block != row.block);
            if block_ended {
                self.check_answers(*row)?;
                if (observer.decided)(&self.slices) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Ends an experiment on the user's server where no arm of a block has a result: it answers nobody, and is not loaded further.
    fn check_answers(&self, last: Row) -> Result<(), ProveError> {
        let of_block = |slice: &&Slice| slice.row.start == last.start && slice.row.block == last.block;
        let reasons: Option<Vec<&String>> =
            self.slices.iter().filter(of_block).map(|slice| slice.failed.as_ref()).collect();
        match reasons.as_deref() {
            Some([.., why]) if self.execution.on_server.is_some() => {
                Err(ProveError::Unanswered { why: (*why).clone(), folder: self.store.folder().to_owned() })
            }
            _ => Ok(()),
        }
    }

    /// A separate start for each row, one server at a time.
    fn rows(&mut self, rows: &[Row], observer: &mut Observer<'_>) -> Result<bool, ProveError> {
        for row in rows {
            let mut servers = Servers::new(self.execution, self.templates, row.start);
            let arms = self.execution.arms.iter().filter(|arm| arm.arm.role == row.arm);
            let measured = servers
                .bring_up(arms, &self.clock, observer.watch)
                .and_then(|()| self.measure(*row, servers.of(row.arm), observer));
            let ended = servers.end(observer.watch);
            measured.and(ended)?;
        }
        Ok(false)
    }

    fn at_s(&self) -> f64 {
        self.begin_s + self.clock.now_s()
    }

    /// Measures one row on a server, if it runs.
    fn measure(&mut self, row: Row, up: Option<&Up>, observer: &mut Observer<'_>) -> Result<(), ProveError> {
        let execution = self.execution;
        let settle = Duration::from_secs_f64(execution.design.settle_s);
        let arm = execution.arms.iter().find(|arm| arm.arm.role == row.arm);
        let at_s = self.at_s();
        let pid = up.and_then(|up| up.info.as_ref()?.pid);
        let around = |target| Surroundings { target, server: pid, folder: self.store.folder(), settle };
        let slice = match (arm.map(|arm| (arm, &arm.load)), up) {
            (Some((arm, ArmLoad::Workload(loaded))), Some(server @ Up { target: Ok(target), .. })) => {
                let client = arm.lever_set.client.clone();
                let load =
                    Load { plan: &loaded.plan, work: &loaded.work, target, client, settle, server: pid };
                let measure = || slice::measure(&load, row, &self.clock, execution.stop);
                let measured = beside(&execution.design.jobs, row.arm, &around(Some(target)), measure);
                let mut slice = self.complete(measured)?;
                slice.failed = slice.failed.map(|why| server.with_log_tail(why));
                slice.figures.extend(server.figures(execution.design));
                slice
            }
            (Some((arm, ArmLoad::Probe(probing))), _) => {
                let measure = || self.probe(probing, &arm.lever_set.client, row);
                self.complete(beside(&execution.design.jobs, row.arm, &around(None), measure))?
            }
            (Some(_), Some(server @ Up { target: Err(why), .. })) => {
                Slice { figures: server.figures(execution.design), ..failed(row, at_s, why) }
            }
            _ => failed(row, at_s, "the experiment has no such arm"),
        };
        self.keep(Slice { at_s, ..slice }, observer)
    }

    /// One row of a probe.
    fn probe(&self, probing: &Probing, client: &Client, row: Row) -> Measured {
        let Execution { design, host, stop, .. } = self.execution;
        let place = Place {
            host,
            folder: self.store.folder(),
            client,
            slice: Duration::from_secs_f64(design.slice_s),
            settle: Duration::from_secs_f64(design.settle_s),
            seed: design.seed,
            stop,
        };
        probing.slice(&place, row, &self.clock)
    }

    /// The slice with the first failure of its jobs: without them it would answer another question.
    fn complete(&self, (measured, failures): (Measured, Vec<String>)) -> Result<Slice, ProveError> {
        match measured {
            Measured::Slice(slice) => {
                let failed = slice.failed.clone().or_else(|| failures.into_iter().next());
                Ok(Slice { failed, ..*slice })
            }
            Measured::Interrupted => Err(interrupted(self.store.folder())),
        }
    }

    fn keep(&mut self, slice: Slice, observer: &mut Observer<'_>) -> Result<(), ProveError> {
        self.store.slice(&slice)?;
        self.slices.push(slice);
        if let Some(slice) = self.slices.last() {
            let of = self.execution.design.rows.len();
            (observer.watch)(Progress::Slice { slice, slices: &self.slices, of });
        }
        Ok(())
    }
}

fn put_back(levers: &Swap<'_>, arm: Role, watch: &mut dyn FnMut(Progress<'_>)) -> Result<(), ProveError> {
    let left_alone = levers.put_back().map_err(|error| lever_error(arm, error))?;
    left_alone.into_iter().for_each(|what| watch(Progress::Loud(what)));
    Ok(())
}

fn lever_error(arm: Role, source: mydyno_levers::LeverError) -> ProveError {
    ProveError::Lever { arm: arm.name().to_owned(), source: Box::new(source) }
}

fn interrupted(folder: &Path) -> ProveError {
    ProveError::Interrupted { folder: folder.to_owned() }
}

fn failed(row: Row, at_s: f64, why: &str) -> Slice {
    Slice { failed: Some(why.to_owned()), ..slice::empty(row, at_s) }
}
