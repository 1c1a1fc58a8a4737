//! The server of a trial or an audit: an existing one, a private one for the duration of the call, or a private one of
//! the caller.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use mydyno_host::Host;
use mydyno_levers::LeverSet;
use mydyno_model::plan::{TargetKind, TargetPlan, Transport};
use mydyno_sandbox::{Site, Spec, data};
use mydyno_wire::{ConnectOptions, Endpoint};

use crate::error::RunError;
use crate::progress::{Progress, Watch};

/// The server of a trial or an audit.
#[derive(Debug, Clone)]
pub enum Target {
    /// An existing server that others may use.
    Server(Box<ConnectOptions>),
    /// A private server, started before the work and ended after it.
    Private(Box<PrivateServer>),
    /// A private server that the caller started and will end.
    Held(Box<ConnectOptions>),
}

/// A private server for the length of one call.
#[derive(Debug, Clone)]
pub struct PrivateServer {
    /// The command that its journal entries name, as in `bench`.
    pub command: String,
    /// The server.
    pub spec: Spec,
    /// Its levers, including those of tables and workload.
    pub lever_set: LeverSet,
    /// Name of the kept data that it starts from.
    pub data: Option<String>,
}

impl Target {
    /// Options of the workload that the levers of a private server set.
    pub fn workload_options(&self) -> &[(String, String)] {
        match self {
            Self::Private(server) => &server.lever_set.workload,
            Self::Server(_) | Self::Held(_) => &[],
        }
    }

    /// Statements that the levers of a private server run on its tables.
    pub(crate) fn schema_statements(&self) -> &[String] {
        match self {
            Self::Private(server) => &server.lever_set.schema,
            Self::Server(_) | Self::Held(_) => &[],
        }
    }
}

/// A flag that the user's signal sets: it ends loads, filling of tables and waiting for a server.
pub type Cancel = Arc<AtomicBool>;

/// A running server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Up<'a> {
    /// How to reach it, without a database.
    pub connect: &'a ConnectOptions,
    /// Whether mydyno made it.
    pub kind: TargetKind,
}

impl Up<'_> {
    /// The target as a plan names it.
    pub fn plan(&self) -> TargetPlan {
        let (transport, address) = match &self.connect.endpoint {
            Endpoint::Unix(path) => (Transport::Unix, path.display().to_string()),
            Endpoint::Tcp { .. } => (Transport::Tcp, self.connect.endpoint.to_string()),
        };
        TargetPlan { kind: self.kind, transport, address, user: self.connect.user.clone() }
    }
}

/// Runs `work` on the target. A private server is started before and ended after it, even when `work` fails; when the
/// process is killed, `mydyno host restore` finds and removes the server.
pub(crate) fn with_target<T>(
    target: &Target,
    stop: &Cancel,
    watch: &mut Watch<'_>,
    work: impl FnOnce(Up<'_>, &mut Watch<'_>) -> Result<T, RunError>,
) -> Result<T, RunError> {
    let cancelled = |connect: &ConnectOptions| {
        let mut connect = connect.clone();
        connect.cancel = Some(Arc::clone(stop));
        connect
    };
    let server = match target {
        Target::Server(connect) => {
            return work(Up { connect: &cancelled(connect), kind: TargetKind::Server }, watch);
        }
        Target::Held(connect) => {
            return work(Up { connect: &cancelled(connect), kind: TargetKind::Sandbox }, watch);
        }
        Target::Private(server) => server,
    };
    let host = Host::open(&server.command)?;
    let site = Site::new(&host);
    let data = server.data.as_deref().map(|name| data::find(&site, name)).transpose()?;
    let spec = Spec { data, ..server.spec.clone() };
    let started = |progress: &mut Watch<'_>| {
        mydyno_sandbox::up(&site.clone().cancelled_by(stop), &spec, &mut |step| {
            progress(Progress::Server(&step))
        })
    };
    let info = started(watch)?;
    let worked = mydyno_sandbox::connect_options(&info)
        .map_err(RunError::from)
        .and_then(|connect| work(Up { connect: &cancelled(&connect), kind: TargetKind::Sandbox }, watch));
    let ended = mydyno_sandbox::down(&site, &spec.name);
    for sentence in ended.iter().flatten() {
        watch(Progress::LeftAlone(sentence));
    }
    match (worked, ended) {
        (worked, Ok(_)) => worked,
        (Ok(_), Err(error)) => Err(error.into()),
        (Err(error), Err(left)) => {
            Err(RunError::AndServerLeft { error: Box::new(error), left: Box::new(left) })
        }
    }
}
