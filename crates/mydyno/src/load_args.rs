//! Options of the load, and their request.

use mydyno_run::Request;

/// How the load is generated.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Connections that carry load; a list is a sweep [default: 16].
    #[arg(long, value_name = "LIST")]
    pub connections: Option<String>,
    /// Threads of the load generator [default: 1 or 2, more with many CPUs: what costs least for these connections on this
    /// host].
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// How the kernel reports answers [default: io_uring where permitted, Linux 6.1 and newer]; the record names it.
    #[arg(long, value_name = "epoll|io_uring")]
    pub backend: Option<String>,
    /// Let answers gather for this long before they are received, as in `50us`: saves client CPU, adds to response
    /// times, and is named in the record [default: 0].
    #[arg(long, value_name = "DURATION")]
    pub coalesce: Option<String>,
    /// Whether the load generator's threads may preempt the server's on a shared CPU: `batch` does not preempt,
    /// `normal` is punctual [default: batch for closed loops without think time, else normal]; the record names it.
    #[arg(long, value_name = "batch|normal")]
    pub scheduling: Option<String>,
    /// Measured window of each step [default: 60s]; from 16s results have intervals, from 240s reliable ones.
    #[arg(long, value_name = "DURATION")]
    pub time: Option<String>,
    /// Warm-up before each window [default: 5s]; `auto` or `auto:LIMIT` ends it when throughput is steady [limit: 60s].
    #[arg(long, value_name = "DURATION|auto")]
    pub warmup: Option<String>,
    /// Open loop: transactions a second over all connections, fractions too, as in `200` or `90/m`; a list is a sweep.
    /// Without it the loop is closed: each connection sends its next transaction after an answer.
    #[arg(long, value_name = "LIST")]
    pub rate: Option<String>,
    /// Open loop whose rate changes linearly over the window, as in `100..5000`.
    #[arg(long, value_name = "FROM..TO")]
    pub ramp: Option<String>,
    /// Open loop with a sequence of rates, as in `500:20s,1000:20s`; their times add up to the window.
    #[arg(long, value_name = "RATE:DURATION,…")]
    pub rate_steps: Option<String>,
    /// Gaps between arrivals of an open loop: those of many independent users, or even [default: poisson].
    #[arg(long, value_name = "poisson|constant")]
    pub arrivals: Option<String>,
    /// Closed loop: pause of a connection after each answer, as in `20ms` or `20ms:exponential`.
    #[arg(long, value_name = "DURATION[:SPREAD]")]
    pub think: Option<String>,
    /// Repeats of each point of the sweep; intervals then come from the differences between repeats.
    #[arg(long, value_name = "N")]
    pub repeat: Option<String>,
    /// Run the steps in the given order instead of a random one.
    #[arg(long)]
    pub no_shuffle: bool,
    #[command(flatten)]
    pub connecting: ConnectingArgs,
    #[command(flatten)]
    pub answer: AnswerArgs,
}

/// How connections are opened and kept.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Connections")]
pub struct ConnectingArgs {
    /// Limit of connections opened a second, as in `100` [default: no limit].
    #[arg(long, value_name = "RATE")]
    pub connect_rate: Option<String>,
    /// Reconnect after this many transactions; the time for it is recorded separately.
    #[arg(long, value_name = "N")]
    pub reconnect_every: Option<String>,
    /// Idle connections in addition to those that carry load [default: 0].
    #[arg(long, value_name = "N")]
    pub idle: Option<String>,
    /// Do not reopen lost connections.
    #[arg(long)]
    pub no_reconnect: bool,
}

/// Options for the result: bounds, formats and files.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Result")]
pub struct AnswerArgs {
    /// Search for the highest rate that meets these requirements, as in 'p99<10ms,errors<0.1%'; `--rate` is then the
    /// initial rate, and `--time` the window of each step.
    #[arg(long, value_name = "BOUNDS")]
    pub find_capacity: Option<String>,
    /// Resolution of the search for the highest rate [default: 5%].
    #[arg(long, value_name = "PERCENT")]
    pub resolution: Option<String>,
    /// Percentiles of the summary [default: 50,95,99,99.9].
    #[arg(long, value_name = "LIST")]
    pub percentiles: Option<String>,
    /// Bound that changes the exit status to 1, as in 'p99>10ms', 'errors>0.1%' or 'tps<1000'; repeatable.
    #[arg(long, value_name = "BOUND")]
    pub fail_if: Vec<String>,
    /// End the run at the first error; deadlocks, lock wait timeouts and conflicts are retried and do not count.
    #[arg(long)]
    pub stop_on_error: bool,
    /// Error codes that do not end it, as in `1062,1146`.
    #[arg(long, value_name = "LIST")]
    pub ignore_errors: Option<String>,
}

impl LoadArgs {
    /// The part of a request that these options determine.
    pub fn request(&self) -> Request {
        let Self { connecting, answer, .. } = self;
        Request {
            connections: self.connections.clone(),
            workers: self.workers.clone(),
            backend: self.backend.clone(),
            coalesce: self.coalesce.clone(),
            scheduling: self.scheduling.clone(),
            time: self.time.clone(),
            warmup: self.warmup.clone(),
            rate: self.rate.clone(),
            ramp: self.ramp.clone(),
            rate_steps: self.rate_steps.clone(),
            arrivals: self.arrivals.clone(),
            think: self.think.clone(),
            repeat: self.repeat.clone(),
            no_shuffle: self.no_shuffle,
            connect_rate: connecting.connect_rate.clone(),
            reconnect_every: connecting.reconnect_every.clone(),
            idle: connecting.idle.clone(),
            no_reconnect: connecting.no_reconnect,
            find_capacity: answer.find_capacity.clone(),
            resolution: answer.resolution.clone(),
            percentiles: answer.percentiles.clone(),
            fail_if: answer.fail_if.clone(),
            stop_on_error: answer.stop_on_error,
            ignore_errors: answer.ignore_errors.clone(),
            ..Request::default()
        }
    }
}
