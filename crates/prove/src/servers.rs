//! The private servers of one start: made, filled, warmed up, ended.

use std::collections::BTreeMap;
use std::time::Duration;

use mydyno_load::clock::MonotonicClock;
use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::{Design, Role};
use mydyno_model::server::ServerInfo;
use mydyno_run::drop_tables;
use mydyno_sandbox::Site;
use mydyno_tables::prepare::Prepared;
use mydyno_wire::ConnectOptions;

use crate::arm::{ArmPlan, Loaded};
use crate::design;
use crate::error::ProveError;
use crate::execute::{Execution, Progress};
use crate::maker::{Made, Maker, is_interrupted, runs, server_error, with_log_tail};
use crate::server_memory;
use crate::survival;
use crate::templates::Templates;
use crate::users_server::OnServer;

/// A server of a start.
pub(crate) struct Up {
    role: Role,
    name: String,
    /// Its description; absent if it did not start.
    pub(crate) info: Option<ServerInfo>,
    /// How to reach it, or the reason why it does not run.
    pub(crate) target: Result<ConnectOptions, String>,
    /// Whether it started and ended before it could be loaded.
    ended_early: bool,
}

/// The servers of one start. [`Self::end`] ends each of them; after a kill of the command `mydyno host restore` does.
pub(crate) struct Servers<'a> {
    execution: &'a Execution<'a>,
    templates: &'a Templates,
    start: usize,
    up: Vec<Up>,
    /// Tables that this command made on the user's server: their arm, and a connection to drop them with.
    made_on: Option<(&'a Loaded, ConnectOptions)>,
}

impl Up {
    /// Figures of a private server at the end of a slice: its memory, or whether it ran.
    pub(crate) fn figures(&self, design: &Design) -> BTreeMap<String, f64> {
        let runs = self.info.as_ref().is_some_and(runs);
        if survival::decides(design) && (self.info.is_some() || self.ended_early) {
            return BTreeMap::from([(survival::NAME.to_owned(), f64::from(u8::from(runs)))]);
        }
        // Arms that share one server share its memory.
        let own = self.info.as_ref().filter(|_| design.mode != Mode::InPlace);
        let pid = own.and_then(|info| info.pid);
        pid.map(|pid| server_memory::of(pid, design.mode == Mode::Rows)).unwrap_or_default()
    }

    /// The reason why a slice failed, with the last lines of the server's log if it has ended.
    pub(crate) fn with_log_tail(&self, why: String) -> String {
        match &self.info {
            Some(info) => with_log_tail(info, why),
            None => why,
        }
    }
}

/// Whether an error came after the server's start.
fn started(error: &ProveError) -> bool {
    matches!(error, ProveError::Warmup { .. } | ProveError::Load { .. })
}

impl<'a> Servers<'a> {
    pub(crate) fn new(execution: &'a Execution<'a>, templates: &'a Templates, start: usize) -> Self {
        Self { execution, templates, start, up: Vec::new(), made_on: None }
    }

    /// The server of an arm.
    pub(crate) fn of(&self, role: Role) -> Option<&Up> {
        self.up.iter().find(|up| up.role == role)
    }

    /// Starts and warms up the servers of some arms, in the random order of the design for this start. A treatment that
    /// does not start is a result; a baseline is an error.
    pub(crate) fn bring_up(
        &mut self,
        arms: impl IntoIterator<Item = &'a ArmPlan>,
        clock: &MonotonicClock,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ProveError> {
        let mut arms: Vec<&ArmPlan> = arms.into_iter().collect();
        let order = design::start_order(self.start, self.execution.design.seed);
        // Further levels of a curve are started alone.
        arms.sort_by_key(|arm| order.iter().position(|role| *role == arm.arm.role).unwrap_or(order.len()));
        for arm in arms {
            let role = arm.arm.role;
            let name = self.name(role);
            // A probe has no server.
            let Some(load) = arm.loaded() else { continue };
            match self.make(&Made::of(role.name(), arm, load, &arm.lever_set, &name), clock, watch) {
                Ok(up) => self.up.push(up),
                Err(error) if is_interrupted(&error) => return Err(error),
                Err(error) if !role.is_baseline() || self.is_result(&error) => {
                    let ended_early = started(&error);
                    self.up.push(Up { role, name, info: None, target: Err(error.to_string()), ended_early });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether a server that ended before its row is a result in any arm: survival is asked about.
    fn is_result(&self, error: &ProveError) -> bool {
        survival::decides(self.execution.design) && started(error)
    }

    /// Starts and warms up one server with the levers that all arms share, in the role of the baseline's.
    pub(crate) fn bring_up_shared(
        &mut self,
        clock: &MonotonicClock,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<(), ProveError> {
        let baseline = self.execution.arms.iter().find(|arm| arm.arm.role == Role::Baseline);
        let Some((arm, load)) = baseline.and_then(|arm| Some((arm, arm.loaded()?))) else { return Ok(()) };
        if let Some(on) = self.execution.on_server {
            return self.prepare_users(arm, load, on, clock);
        }
        let (role, name) = (arm.arm.role, self.name(Role::Baseline));
        let up = self.make(&Made::of(role.name(), arm, load, self.execution.shared, &name), clock, watch)?;
        self.up.push(up);
        Ok(())
    }

    /// Makes missing tables on the user's server, and warms them up.
    fn prepare_users(
        &mut self,
        arm: &ArmPlan,
        load: &'a Loaded,
        on: &OnServer,
        clock: &MonotonicClock,
    ) -> Result<(), ProveError> {
        let maker = self.maker();
        let made = Made::of("your server", arm, load, self.execution.shared, "");
        let (prepared, target) = maker.tables(&made, on.connect.clone())?;
        if prepared == Prepared::Made {
            // The tables are dropped also after an interruption by the user.
            let mut connect = on.connect.clone();
            connect.cancel = None;
            self.made_on = Some((load, connect));
        }
        let target = maker.warm_up(&made, target, None, clock)?;
        self.up.push(Up {
            role: Role::Baseline,
            name: String::new(),
            info: None,
            target: Ok(target),
            ended_early: false,
        });
        Ok(())
    }

    fn maker(&self) -> Maker<'a> {
        let execution = self.execution;
        Maker {
            host: execution.host,
            allow_host_change: execution.allow_host_change,
            stop: execution.stop,
            warmup: Duration::from_secs_f64(execution.design.warmup_s),
        }
    }

    fn name(&self, role: Role) -> String {
        format!("prove-{}-{}-{}", std::process::id(), self.start, role.name())
    }

    fn make(
        &self,
        wanted: &Made<'_>,
        clock: &MonotonicClock,
        watch: &mut dyn FnMut(Progress<'_>),
    ) -> Result<Up, ProveError> {
        let role = wanted.arm.role;
        let maker = self.maker();
        let mut watch = |what| watch(Progress::Server { role, what });
        let data = self.templates.of(&maker, wanted, self.execution.design.mode, &mut watch)?;
        let is_from_data = data.is_some();
        let made = match maker.make(wanted, data, clock, &mut watch) {
            // Some settings do not fit data that were made without them: such a server makes its own.
            Err(error @ ProveError::Server { .. }) if is_from_data && !is_interrupted(&error) => {
                maker.make(wanted, None, clock, &mut watch)
            }
            made => made,
        };
        let (info, target) = made?;
        Ok(Up {
            role,
            name: wanted.name.to_owned(),
            info: Some(info),
            target: Ok(target),
            ended_early: false,
        })
    }

    /// Ends all servers. Tries all of them and returns the first error.
    pub(crate) fn end(self, watch: &mut dyn FnMut(Progress<'_>)) -> Result<(), ProveError> {
        let mut first = None;
        for up in self.up.iter().filter(|up| up.info.is_some()) {
            match mydyno_sandbox::down(&Site::new(self.execution.host), &up.name) {
                Ok(left_alone) => left_alone.into_iter().for_each(|what| watch(Progress::Loud(what))),
                Err(source) => {
                    first.get_or_insert(server_error(up.role.name(), source));
                }
            }
        }
        if let Some((load, connect)) = &self.made_on
            && let Err(source) = drop_tables(&load.work, connect)
        {
            let arm = "your server".to_owned();
            first.get_or_insert(ProveError::Load { arm, source: Box::new(source) });
        }
        first.map_or(Ok(()), Err)
    }
}
