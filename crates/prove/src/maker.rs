//! Makes one private server: started, filled, loaded until it is warm.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mydyno_host::Host;
use mydyno_host::setting::AllowHostChange;
use mydyno_levers::{Client, LeverSet};
use mydyno_load::clock::MonotonicClock;
use mydyno_model::experiment::{Arm, Row};
use mydyno_model::plan::Plan;
use mydyno_model::server::ServerInfo;
use mydyno_run::{Cancel, LoadSite, RunError, change_schema, make_tables, read_tables};
use mydyno_sandbox::data::DataAtRest;
use mydyno_sandbox::{SandboxError, Site, Spec};
use mydyno_tables::prepare::Prepared;
use mydyno_wire::ConnectOptions;

use crate::arm::{ArmPlan, Loaded};
use crate::error::ProveError;
use crate::slice::{self, Load, Measured};

/// Lines of a server's log that are shown when it has ended.
const LOG_LINES: usize = 3;

/// Whether the process of a server still runs.
pub(crate) fn runs(info: &ServerInfo) -> bool {
    info.pid.is_some_and(|pid| Path::new("/proc").join(pid.to_string()).join("exe").exists())
}

/// The reason why a row failed, with the last lines of the server's log if it has ended.
pub(crate) fn with_log_tail(info: &ServerInfo, why: String) -> String {
    if runs(info) {
        return why;
    }
    let log = mydyno_sandbox::tail(Path::new(&info.log), LOG_LINES).unwrap_or_default().join("\n");
    format!("{why}; the server has ended, and its log ends with:\n{log}")
}

/// Makes private servers that are filled and warmed up.
pub(crate) struct Maker<'a> {
    pub(crate) host: &'a Host,
    pub(crate) allow_host_change: Option<AllowHostChange>,
    pub(crate) stop: &'a Cancel,
    /// Load on a server before it is used.
    pub(crate) warmup: Duration,
}

/// Parameters of a server to be made.
pub(crate) struct Made<'a> {
    /// Its arm, for errors.
    pub(crate) who: &'a str,
    /// Its arm.
    pub(crate) arm: &'a Arm,
    /// Levers of the load generator.
    client: &'a Client,
    /// Its load.
    pub(crate) load: &'a Loaded,
    /// Its levers: those of the arm, or only some of them.
    pub(crate) lever_set: &'a LeverSet,
    /// Its name.
    pub(crate) name: &'a str,
}

impl<'a> Made<'a> {
    /// A server of an arm with this load.
    pub(crate) fn of<L>(
        who: &'a str,
        arm: &'a ArmPlan<L>,
        load: &'a Loaded,
        lever_set: &'a LeverSet,
        name: &'a str,
    ) -> Self {
        Self { who, arm: &arm.arm, client: &arm.lever_set.client, load, lever_set, name }
    }
}

impl<'a> Maker<'a> {
    /// The parameters of a server.
    pub(crate) fn spec(&self, wanted: &Made<'_>) -> Spec {
        Spec {
            name: wanted.name.to_owned(),
            lever_set: wanted.lever_set.server.clone(),
            allow_host_change: self.allow_host_change,
            ..Spec::default()
        }
    }

    /// Starts a server, makes its tables, unless it starts from `data` that have them, and loads it until the warm-up is over. A
    /// server that cannot be used is ended.
    pub(crate) fn make(
        &self,
        wanted: &Made<'_>,
        data: Option<DataAtRest>,
        clock: &MonotonicClock,
        watch: &mut dyn FnMut(mydyno_sandbox::Progress),
    ) -> Result<(ServerInfo, ConnectOptions), ProveError> {
        let has_tables = data.is_some();
        let spec = Spec { data, ..self.spec(wanted) };
        let site: Site<'a> = Site::new(self.host).cancelled_by(self.stop);
        let info =
            mydyno_sandbox::up(&site, &spec, watch).map_err(|source| server_error(wanted.who, source))?;
        match self.prepare(wanted, &info, has_tables, clock) {
            Ok(target) => Ok((info, target)),
            Err(error) => {
                // The server must not outlive an arm that cannot use it; the first error is the one to report.
                let _ = mydyno_sandbox::down(&Site::new(self.host), wanted.name);
                Err(error)
            }
        }
    }

    /// Makes the tables of a server that has none, or reads those of a server that has just started from kept data, as they would be in
    /// its memory if it had made them. Returns connection options with their database.
    pub(crate) fn fill(
        &self,
        wanted: &Made<'_>,
        info: &ServerInfo,
        has_tables: bool,
    ) -> Result<ConnectOptions, ProveError> {
        let mut target = mydyno_sandbox::connect_options(info).map_err(|e| server_error(wanted.who, e))?;
        if !has_tables {
            return self.tables(wanted, target).map(|(_, target)| target);
        }
        target.cancel = Some(Arc::clone(self.stop));
        target.database = Some(wanted.load.plan.database.clone());
        read_tables(&wanted.load.plan.database, &target)
            .map_err(|source| ProveError::Load { arm: wanted.who.to_owned(), source: Box::new(source) })?;
        Ok(target)
    }

    /// Fills a server and loads it until the warm-up is over.
    fn prepare(
        &self,
        wanted: &Made<'_>,
        info: &ServerInfo,
        has_tables: bool,
        clock: &MonotonicClock,
    ) -> Result<ConnectOptions, ProveError> {
        let target = self.fill(wanted, info, has_tables)?;
        self.warm_up(wanted, target, Some(Path::new(&info.log)), clock)
    }

    /// Guards the server and makes the tables. Returns connection options with their database.
    pub(crate) fn tables(
        &self,
        wanted: &Made<'_>,
        mut target: ConnectOptions,
    ) -> Result<(Prepared, ConnectOptions), ProveError> {
        let (who, loaded, stop) = (wanted.who, wanted.load, self.stop);
        let load = |source: RunError| ProveError::Load { arm: who.to_owned(), source: Box::new(source) };
        target.cancel = Some(Arc::clone(stop));
        let Loaded { resolved, plan, work } = loaded;
        let place = LoadSite { plan, options: &resolved.options, work, connect: &target };
        let prepared = make_tables(place, stop, &mut |_| {}).map_err(load)?;
        change_schema(&wanted.lever_set.schema, &target, &mut |_| {}).map_err(load)?;
        if !plan.database.is_empty() {
            target.database = Some(plan.database.clone());
        }
        Ok((prepared, target))
    }

    /// Loads the tables until the warm-up is over. `log` is the server's error log, where it is readable.
    pub(crate) fn warm_up(
        &self,
        wanted: &Made<'_>,
        target: ConnectOptions,
        log: Option<&Path>,
        clock: &MonotonicClock,
    ) -> Result<ConnectOptions, ProveError> {
        let (who, arm, stop) = (wanted.who, wanted.arm, self.stop);
        let Loaded { plan, work, .. } = wanted.load;
        // The end of the warm-up is a slice whose figures are not kept, so its row is a placeholder.
        let end_s = plan.time_s.min(self.warmup.as_secs_f64());
        let plan = &Plan { time_s: end_s, ..plan.clone() };
        let settle = self.warmup.saturating_sub(Duration::from_secs_f64(end_s));
        let row = Row { order: 0, start: 0, block: 0, arm: arm.role };
        let client = wanted.client.clone();
        let warm = Load { plan, work, target: &target, client, settle, server: None };
        match slice::warm_up(&warm, row, clock, stop) {
            Measured::Interrupted => Err(server_error(who, SandboxError::Interrupted)),
            Measured::Slice(slice) => match slice.failed {
                Some(why) => {
                    let log = log.and_then(|log| mydyno_sandbox::tail(log, LOG_LINES).ok());
                    let log = log.unwrap_or_default().join("\n");
                    let (arm, label) = (who.to_owned(), arm.label());
                    Err(ProveError::Warmup { arm, label, why, log })
                }
                None => Ok(target),
            },
        }
    }
}

pub(crate) fn server_error(arm: &str, source: SandboxError) -> ProveError {
    ProveError::Server { arm: arm.to_owned(), source: Box::new(source) }
}

pub(crate) fn is_interrupted(error: &ProveError) -> bool {
    matches!(error, ProveError::Server { source, .. } if matches!(**source, SandboxError::Interrupted))
}
