//! Options that say how a server is asked, and their request.

use mydyno_run::Request;

/// How the server is asked.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Load")]
pub struct LoadArgs {
    /// Connections that carry load; a list is a sweep [default: 16].
    #[arg(long, value_name = "LIST")]
    pub connections: Option<String>,
    /// Threads of the load generator [default: 2, more with many CPUs; with epoll 1 for up to 64 connections on up to 4
    /// CPUs].
    #[arg(long, value_name = "N")]
    pub workers: Option<String>,
    /// How workers learn that answers have arrived [default: io_uring where it is permitted, Linux 6.1 and newer]; the record names it.
    #[arg(long, value_name = "epoll|io_uring")]
    pub backend: Option<String>,
    /// Let answers gather for so long before they are received, as in `50us`: saves the client CPU, adds to the times
    /// that are measured, and is named in the record [default: 0].
    #[arg(long, value_name = "DURATION")]
    pub coalesce: Option<String>,
    /// Whether the load generator's threads may interrupt the server's on a CPU that both use: `batch` lets the server's
    /// finish their turn, `normal` is punctual [default: batch for closed loops without think time, else normal]; the
    /// record names it.
    #[arg(long, value_name = "batch|normal")]
    pub scheduling: Option<String>,
    /// Measured window of each step [default: 60s]; 16s and more give intervals, 240s and more such as can be
    /// relied on.
    #[arg(long, value_name = "DURATION")]
    pub time: Option<String>,
    /// Warm-up before each window [default: 5s]; `auto` or `auto:LIMIT` ends it when it is steady [limit: 60s].
    #[arg(long, value_name = "DURATION|auto")]
    pub warmup: Option<String>,
    /// Open loop: transactions a second over all connections, fractions too, as in `200` or `90/m`; a list is a sweep.
    /// Without it the loop is closed: each connection asks again when it is answered.
    #[arg(long, value_name = "LIST")]
    pub rate: Option<String>,
    /// Open loop whose rate changes evenly over the window, as in `100..5000`.
    #[arg(long, value_name = "FROM..TO")]
    pub ramp: Option<String>,
    /// Open loop at one rate after the other, as in `500:20s,1000:20s`; their times make the window.
    #[arg(long, value_name = "RATE:DURATION,…")]
    pub rate_steps: Option<String>,
    /// Gaps of an open loop: as many independent users make them, or even [default: poisson].
    #[arg(long, value_name = "poisson|constant")]
    pub arrivals: Option<String>,
    /// Closed loop: pause of a connection after each answer, as in `20ms` or `20ms:exponential`.
    #[arg(long, value_name = "DURATION[:SPREAD]")]
    pub think: Option<String>,
    /// Measure each point of the sweep so often; the differences between the repeats make the intervals.
    #[arg(long, value_name = "N")]
    pub repeat: Option<String>,
    /// Run the steps as listed, not in the order that the seed gives.
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
    /// Connections to open a second at most, as in `100` [default: no limit].
    #[arg(long, value_name = "RATE")]
    pub connect_rate: Option<String>,
    /// Close and open a connection after so many transactions; the time that this takes is recorded apart.
    #[arg(long, value_name = "N")]
    pub reconnect_every: Option<String>,
    /// Connections that are open and silent, beside those that carry load [default: 0].
    #[arg(long, value_name = "N")]
    pub idle: Option<String>,
    /// Do not open lost connections again.
    #[arg(long)]
    pub no_reconnect: bool,
}

/// Options for the result: bounds, formats and files.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Result")]
pub struct AnswerArgs {
    /// Search for the highest rate at which all of this holds, as in 'p99<10ms,errors<0.1%'; `--rate` is then the first
    /// one to try, and `--time` the window of each step.
    #[arg(long, value_name = "BOUNDS")]
    pub find_capacity: Option<String>,
    /// How close the search for the highest rate comes [default: 5%].
    #[arg(long, value_name = "PERCENT")]
    pub resolution: Option<String>,
    /// Percentiles of the summary [default: 50,95,99,99.9].
    #[arg(long, value_name = "LIST")]
    pub percentiles: Option<String>,
    /// Bound that turns the exit status into 1, as in 'p99>10ms', 'errors>0.1%' or 'tps<1000'; may be given several
    /// times.
    #[arg(long, value_name = "BOUND")]
    pub fail_if: Vec<String>,
    /// End the run at the first error; deadlocks, lock waits that time out and conflicts are tried again and end nothing.
    #[arg(long)]
    pub stop_on_error: bool,
    /// Codes that do not end it, as in `1062,1146`.
    #[arg(long, value_name = "LIST")]
    pub ignore_errors: Option<String>,
}

impl LoadArgs {
    /// The part of a request that these options are.
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
