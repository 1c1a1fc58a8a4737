//! Fast alternation: for each start, the servers of all arms are up at the same time, each with data of its own, and the load goes
//! to one of them at a time in slices of about a second. What disturbs the host for longer than a slice hits all arms alike.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::Turns;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::experiment::{Arm, Design, Role, Row, Slice};
use mydyno_model::plan::Plan;
use mydyno_model::server::ServerInfo;
use mydyno_run::steps::Work;
use mydyno_run::{Cancel, Place, Resolved, RunError, change_schema, make_tables};
use mydyno_sandbox::{SandboxError, Site, Spec};
use mydyno_wire::ConnectOptions;
use serde_json::Map;

use crate::design;
use crate::error::ProveError;
use crate::slice::{self, Load, Measured};
use crate::store::Store;

/// An arm that can be started: its levers read, its load resolved.
pub struct ArmPlan {
    /// As the design names it.
    pub arm: Arm,
    /// Its levers.
    pub turns: Turns,
    /// Its load: options of the workload may be levers.
    pub resolved: Resolved,
    /// Its plan for one slice; it names no server.
    pub plan: Plan,
    /// The workload.
    pub work: Work,
}

/// What an experiment is doing.
#[derive(Debug)]
pub enum Progress<'a> {
    /// The servers of a start come up.
    Starting {
        /// Number, from 0.
        start: usize,
        /// Starts at most.
        of: usize,
    },
    /// A server says something.
    Server {
        /// Its arm.
        role: Role,
        /// What.
        what: mydyno_sandbox::Progress,
    },
    /// A slice ended.
    Slice {
        /// What it measured.
        slice: &'a Slice,
        /// Slices that were measured.
        done: usize,
        /// Slices of the whole table.
        of: usize,
    },
    /// Something that concerns others than this command, which not even a quiet user should miss.
    Loud(String),
}

/// Everything that the execution of a table needs.
pub struct Alternation<'a> {
    /// The table.
    pub design: &'a Design,
    /// The arms, in the order of [`Role::ALL`].
    pub arms: &'a [ArmPlan],
    /// The state folder, its journal and a lease.
    pub host: &'a Host,
    /// The user's permission to change the host.
    pub allow_host_change: Option<AllowHostChange>,
    /// Set by the user to end the experiment.
    pub stop: &'a Cancel,
}

/// Carries out the table from its beginning. After each start `decided` is asked whether to stop early.
///
/// # Errors
/// The baseline cannot be started, the folder cannot be written, or the user interrupted. What was measured is in the folder.
pub fn run(
    alternation: &Alternation<'_>,
    store: &mut Store,
    decided: &mut dyn FnMut(&[Slice]) -> bool,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Slice>, ProveError> {
    let clock = MonotonicClock::start();
    let design = alternation.design;
    let mut slices = Vec::with_capacity(design.rows.len());
    for start in 0..design.starts {
        watch(Progress::Starting { start, of: design.starts });
        let rows: Vec<Row> = design.rows.iter().filter(|row| row.start == start).copied().collect();
        let mut servers = Servers::new(alternation, start);
        let measured = servers
            .bring_up(&clock, watch)
            .and_then(|()| measure(alternation, &servers, &rows, &clock, store, &mut slices, watch));
        let ended = servers.end(watch);
        measured?;
        ended?;
        if decided(&slices) {
            break;
        }
    }
    Ok(slices)
}

/// The slices of one start, in the order of the table.
fn measure(
    alternation: &Alternation<'_>,
    servers: &Servers<'_>,
    rows: &[Row],
    clock: &MonotonicClock,
    store: &mut Store,
    slices: &mut Vec<Slice>,
    watch: &mut dyn FnMut(Progress<'_>),
) -> Result<(), ProveError> {
    let settle = Duration::from_secs_f64(alternation.design.settle_s);
    for row in rows {
        let slice = match servers.of(row.arm) {
            Some((arm, Ok(target))) => {
                let load = Load { plan: &arm.plan, work: &arm.work, target, settle };
                match slice::measure(&load, *row, clock, alternation.stop) {
                    Measured::Slice(slice) => *slice,
                    Measured::Interrupted => return Err(interrupted(store.folder())),
                }
            }
            Some((_, Err(why))) => failed(*row, clock, why),
            None => failed(*row, clock, "the experiment has no such arm"),
        };
        store.slice(&slice)?;
        slices.push(slice);
        if let Some(slice) = slices.last() {
            let of = alternation.design.rows.len();
            watch(Progress::Slice { slice, done: slices.len(), of });
        }
    }
    Ok(())
}

fn interrupted(folder: &Path) -> ProveError {
    ProveError::Interrupted { folder: folder.to_owned() }
}

fn failed(row: Row, clock: &MonotonicClock, why: &str) -> Slice {
    Slice {
        row,
        at_s: clock.now_s(),
        measured_s: 0.0,
        transactions: 0,
        queries: 0,
        errors: 0,
        retries: 0,
        p95_us: None,
        mean_us: None,
        client_cpu_us: 0,
        workers: 0,
        failed: Some(why.to_owned()),
        extra: Map::new(),
    }
}

/// The servers of one start. Each is ended by [`Self::end`]; when the command is killed, `mydyno host restore` ends them.
struct Servers<'a> {
    alternation: &'a Alternation<'a>,
    start: usize,
    /// By arm: the server's name, and how to reach it or why it is not there.
    up: Vec<(Role, String, Result<ConnectOptions, String>)>,
}

impl<'a> Servers<'a> {
    fn new(alternation: &'a Alternation<'a>, start: usize) -> Self {
        Self { alternation, start, up: Vec::new() }
    }

    fn site(&self) -> Site<'a> {
        Site::new(self.alternation.host).cancelled_by(self.alternation.stop)
    }

    /// The arm, and how to reach its server or why that is not there.
    fn of(&self, role: Role) -> Option<(&'a ArmPlan, Result<&ConnectOptions, &str>)> {
        let arm = self.alternation.arms.iter().find(|arm| arm.arm.role == role)?;
        let (_, _, target) = self.up.iter().find(|(of, _, _)| *of == role)?;
        Some((arm, target.as_ref().map_err(String::as_str)))
    }

    /// Starts and warms up all servers. A treatment that does not start is a result; a baseline is an error.
    fn bring_up(
        &mut self,
        clock: &MonotonicClock,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ProveError> {
        let order = design::start_order(self.start, self.alternation.design.seed);
        let arms =
            order.into_iter().filter_map(|role| self.alternation.arms.iter().find(|a| a.arm.role == role));
        for arm in arms {
            let role = arm.arm.role;
            let name = format!("prove-{}-{}-{}", std::process::id(), self.start, role.name());
            let made = self.make(arm, &name, clock, watch);
            let target = match made {
                Ok(target) => Ok(target),
                Err(error @ ProveError::Server { .. }) if is_interrupted(&error) => return Err(error),
                Err(error) if role == Role::Treatment => Err(error.to_string()),
                Err(error) => {
                    self.up.push((role, name, Err(error.to_string())));
                    return Err(error);
                }
            };
            self.up.push((role, name, target));
        }
        Ok(())
    }

    fn make(
        &self,
        arm: &ArmPlan,
        name: &str,
        clock: &MonotonicClock,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<ConnectOptions, ProveError> {
        let role = arm.arm.role;
        let server = |source| ProveError::Server { arm: role.name().to_owned(), source: Box::new(source) };
        let spec = Spec {
            name: name.to_owned(),
            turns: arm.turns.server.clone(),
            allow_host_change: self.alternation.allow_host_change,
            ..Spec::default()
        };
        let info: ServerInfo =
            mydyno_sandbox::up(&self.site(), &spec, &mut |what| watch(Progress::Server { role, what }))
                .map_err(server)?;
        let prepared = self.prepare(arm, &info, clock);
        if prepared.is_err() {
            // The server must not outlive the arm that cannot use it; the first error is the one to tell.
            let _ = mydyno_sandbox::down(&Site::new(self.alternation.host), name);
        }
        prepared
    }

    /// Makes the tables and loads them until the warm-up is over.
    fn prepare(
        &self,
        arm: &ArmPlan,
        info: &ServerInfo,
        clock: &MonotonicClock,
    ) -> Result<ConnectOptions, ProveError> {
        let role = arm.arm.role;
        let server = |source: SandboxError| ProveError::Server {
            arm: role.name().to_owned(),
            source: Box::new(source),
        };
        let load =
            |source: RunError| ProveError::Load { arm: role.name().to_owned(), source: Box::new(source) };
        let mut target = mydyno_sandbox::connect_options(info).map_err(server)?;
        let stop = self.alternation.stop;
        target.cancel = Some(Arc::clone(stop));
        let options = &arm.resolved.options;
        let place = Place { plan: &arm.plan, options, work: &arm.work, connect: &target };
        make_tables(place, stop, &mut |_| {}).map_err(load)?;
        change_schema(&arm.turns.schema, &target, &mut |_| {}).map_err(load)?;
        if !arm.plan.database.is_empty() {
            target.database = Some(arm.plan.database.clone());
        }
        let warmup = Duration::from_secs_f64(self.alternation.design.warmup_s);
        let row = Row { order: 0, start: self.start, block: 0, arm: role };
        let warm = Load { plan: &arm.plan, work: &arm.work, target: &target, settle: warmup };
        match slice::measure(&warm, row, clock, stop) {
            Measured::Interrupted => Err(server(SandboxError::Interrupted)),
            Measured::Slice(slice) => match slice.failed {
                Some(why) => {
                    let log = mydyno_sandbox::tail(Path::new(&info.log), 3).unwrap_or_default().join("\n");
                    let (arm, label) = (role.name().to_owned(), arm.arm.label());
                    Err(ProveError::Warmup { arm, label, why, log })
                }
                None => Ok(target),
            },
        }
    }

    /// Ends all servers, however the slices went. The first error is told; the others are tried all the same.
    fn end(self, watch: &mut dyn FnMut(Progress<'_>)) -> Result<(), ProveError> {
        let mut first = None;
        for (role, name, target) in &self.up {
            if target.is_err() {
                continue;
            }
            match mydyno_sandbox::down(&Site::new(self.alternation.host), name) {
                Ok(left_alone) => left_alone.into_iter().for_each(|what| watch(Progress::Loud(what))),
                Err(source) => {
                    let arm = role.name().to_owned();
                    first.get_or_insert(ProveError::Server { arm, source: Box::new(source) });
                }
            }
        }
        first.map_or(Ok(()), Err)
    }
}

fn is_interrupted(error: &ProveError) -> bool {
    matches!(error, ProveError::Server { source, .. } if matches!(**source, SandboxError::Interrupted))
}
