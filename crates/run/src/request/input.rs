//! The request as typed by the user, and the defaults of its options.

/// Connections by default.
pub const CONNECTIONS: &str = "16";
/// Warm-up by default.
pub const WARMUP: &str = "5s";
/// Measured window by default.
pub const TIME: &str = "60s";
/// Longest warm-up of `--warmup auto`.
pub const WARMUP_LIMIT_S: f64 = 60.0;
/// Resolution of the search for capacity by default.
pub const RESOLUTION: &str = "5%";
/// Percentiles by default.
pub const PERCENTILES: &str = "50,95,99,99.9";
/// Database by default.
pub const DATABASE: &str = "mydyno";
/// Default seed: runs with the same seed do the same work.
pub const SEED: u64 = 1;

/// The request of a user, as it was typed; `None` takes the default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// Workload.
    pub workload: String,
    /// Its options by name.
    pub options: Vec<(String, String)>,
    /// List of connections.
    pub connections: Option<String>,
    /// List of rates of an open loop.
    pub rate: Option<String>,
    /// A rate that grows, as in `100..5000`.
    pub ramp: Option<String>,
    /// Rates and their times, as in `500:20s,1000:20s`.
    pub rate_steps: Option<String>,
    /// Spacing of an open loop's arrivals.
    pub arrivals: Option<String>,
    /// Think time of a closed loop.
    pub think: Option<String>,
    /// How often each point of the sweep is measured.
    pub repeat: Option<String>,
    /// Steps run as they are listed.
    pub no_shuffle: bool,
    /// Transactions that a connection lives.
    pub reconnect_every: Option<String>,
    /// Connections that are open and idle.
    pub idle: Option<String>,
    /// Connections opened a second.
    pub connect_rate: Option<String>,
    /// Lost connections are not opened again.
    pub no_reconnect: bool,
    /// The first error ends the run.
    pub stop_on_error: bool,
    /// Error codes that do not end it.
    pub ignore_errors: Option<String>,
    /// Requirements of the search for the highest rate.
    pub find_capacity: Option<String>,
    /// Resolution of that search.
    pub resolution: Option<String>,
    /// Worker threads.
    pub workers: Option<String>,
    /// How the kernel reports answers to the load generator.
    pub backend: Option<String>,
    /// Time for which answers may gather.
    pub coalesce: Option<String>,
    /// Scheduling policy of the load generator's threads.
    pub scheduling: Option<String>,
    /// Measured window.
    pub time: Option<String>,
    /// Warm-up.
    pub warmup: Option<String>,
    /// Seed.
    pub seed: Option<u64>,
    /// Database.
    pub database: Option<String>,
    /// Percentiles.
    pub percentiles: Option<String>,
    /// Bounds.
    pub fail_if: Vec<String>,
    /// No samples.
    pub no_observe: bool,
    /// No stacks.
    pub no_profile: bool,
    /// Load on a server that others use.
    pub allow_load: bool,
    /// The user's statements may write to tables that mydyno did not make.
    pub allow_write: bool,
}
