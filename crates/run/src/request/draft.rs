//! A resolved request: the whole plan but the server, which is not known before a private server runs.

use mydyno_model::Header;
use mydyno_model::plan::{
    Allow, CapacityPlan, ConnectionPlan, Plan, StepPlan, StopOnError, TargetPlan, WaitPlan, Warmup,
    WorkloadPlan,
};
use mydyno_workload::Options;
use mydyno_workload::catalogue::Spec;
use time::OffsetDateTime;

use crate::bound::Bound;
use crate::capacity::Requirements;

/// A request with all defaults filled in.
#[derive(Debug, Clone)]
pub struct Resolved {
    /// The plan without its server.
    pub draft: Draft,
    /// The workload's description.
    pub spec: &'static Spec,
    /// Its options.
    pub options: Options,
    /// Bounds that turn the exit status into 1.
    pub bounds: Vec<Bound>,
    /// Requirements of a search for the highest rate.
    pub requirements: Option<Requirements>,
}

/// A plan without its server. The fields are those of [`Plan`].
#[derive(Debug, Clone)]
pub struct Draft {
    /// Workload and options.
    pub workload: WorkloadPlan,
    /// Steps as listed.
    pub steps: Vec<StepPlan>,
    /// Order in which they run; empty: as listed.
    pub order: Vec<usize>,
    /// Warm-up of each step.
    pub warmup: Warmup,
    /// Measured window of each step, in seconds.
    pub time_s: f64,
    /// How connections are opened and kept.
    pub connections: ConnectionPlan,
    /// How the load generator waits for answers.
    pub wait: WaitPlan,
    /// Errors that end the run.
    pub stop_on_error: Option<StopOnError>,
    /// The search for the highest rate.
    pub capacity: Option<CapacityPlan>,
    /// Seed.
    pub seed: u64,
    /// Database of the tables.
    pub database: String,
    /// Percentiles of the summary, in percent.
    pub percentiles: Vec<f64>,
    /// Whether host and server are sampled.
    pub observe: bool,
    /// Whether the server's stacks are captured.
    pub profile: bool,
    /// The user's permissions.
    pub allow: Allow,
    /// Bounds as they were typed.
    pub fail_if: Vec<String>,
}

impl Draft {
    /// The plan for a server.
    pub fn on(&self, target: TargetPlan, now: OffsetDateTime) -> Plan {
        let draft = self.clone();
        Plan {
            header: Header::of::<Plan>(now),
            workload: draft.workload,
            target,
            steps: draft.steps,
            order: draft.order,
            warmup: draft.warmup,
            time_s: draft.time_s,
            connections: draft.connections,
            wait: draft.wait,
            stop_on_error: draft.stop_on_error,
            capacity: draft.capacity,
            seed: draft.seed,
            database: draft.database,
            percentiles: draft.percentiles,
            observe: draft.observe,
            profile: draft.profile,
            allow: draft.allow,
            fail_if: draft.fail_if,
            extra: serde_json::Map::new(),
        }
    }
}
