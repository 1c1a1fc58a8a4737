//! The script of a simulation: service times and faults of the server, stalls of the client.

use mydyno_stats::rng::Rng;

/// When the load starts, on the virtual clock: the connections have been opened before.
pub const START_NS: u64 = 1_000_000;

/// The surroundings of a simulated step. Instants are nanoseconds after the start of the load.
#[derive(Debug, Clone, Default)]
pub struct Simulation {
    /// Seed of service times and faults.
    pub seed: u64,
    /// The server.
    pub server: ServerScript,
    /// Stretches of time in which the load generator does not run.
    pub client_stalls: Vec<Period>,
    /// When the user interrupts the run.
    pub interrupt_at_ns: Option<u64>,
}

/// A stretch of time, in nanoseconds after the start of the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// Start.
    pub from_ns: u64,
    /// Length.
    pub length_ns: u64,
}

impl Period {
    /// Its start on the virtual clock.
    pub(super) fn start_ns(&self) -> u64 {
        START_NS + self.from_ns
    }

    /// Its end on the virtual clock.
    pub(super) fn end_ns(&self) -> u64 {
        self.start_ns() + self.length_ns
    }

    /// Whether an instant of the virtual clock lies in it.
    pub(super) fn contains(&self, at_ns: u64) -> bool {
        (self.start_ns()..self.end_ns()).contains(&at_ns)
    }
}

/// Time that the server works on a statement, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceTime {
    /// Always the same.
    Constant(u64),
    /// Exponential with this mean.
    Exponential(u64),
}

/// A scripted server. Shares are probabilities for each statement.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerScript {
    /// Statements that it executes at the same time; more of them wait in the order of their arrival.
    pub slots: usize,
    /// Time that it works on a statement.
    pub service: ServiceTime,
    /// Time that a packet takes in each direction, in nanoseconds.
    pub network_ns: u64,
    /// Time that opening a connection takes, in nanoseconds.
    pub connect_ns: u64,
    /// Stretches in which it executes nothing.
    pub stalls: Vec<Period>,
    /// Stretches in which it is away: all connections are closed at the start, new ones are refused until the end.
    pub outages: Vec<Period>,
    /// Share of errors, and their code.
    pub errors: Option<(f64, u16)>,
    /// Share of answers of which half is sent before the connection is closed.
    pub cuts: f64,
    /// Share of statements that are never answered.
    pub silences: f64,
    /// Share of sends of which the socket takes only a part at first.
    pub short_sends: f64,
    /// Share of answers that arrive in two parts.
    pub split_answers: f64,
}

impl Default for ServerScript {
    /// One statement at a time, 1 ms each, no faults.
    fn default() -> Self {
        Self {
            slots: 1,
            service: ServiceTime::Constant(1_000_000),
            network_ns: 20_000,
            connect_ns: 1_000_000,
            stalls: Vec::new(),
            outages: Vec::new(),
            errors: None,
            cuts: 0.0,
            silences: 0.0,
            short_sends: 0.0,
            split_answers: 0.0,
        }
    }
}

impl ServerScript {
    pub(super) fn service_ns(&self, random: &mut Rng) -> u64 {
        match self.service {
            ServiceTime::Constant(ns) => ns,
            ServiceTime::Exponential(mean_ns) => (mean_ns as f64 * random.exponential()) as u64,
        }
    }

    /// When a statement is done that starts at an instant and takes so long, stalls included.
    pub(super) fn done_ns(&self, start_ns: u64, service_ns: u64) -> u64 {
        let mut done_ns = start_ns + service_ns;
        // In order of time, or a later stall could be missed.
        for stall in &self.stalls {
            if start_ns < stall.end_ns() && done_ns > stall.start_ns() {
                done_ns += stall.end_ns() - start_ns.max(stall.start_ns());
            }
        }
        done_ns
    }

    pub(super) fn is_away(&self, at_ns: u64) -> bool {
        self.outages.iter().any(|outage| outage.contains(at_ns))
    }
}
