//! Parsed levers, split by the moment at which they take effect.

use mydyno_sandbox::ServerLevers;

use crate::error::LeverError;

/// The moment at which a lever takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum When {
    /// On the whole host, for all its programs.
    Host,
    /// At the start of a private server.
    ServerStart,
    /// While the server runs.
    ServerRunning,
    /// On the tables of the workload, after they are created and before the load.
    Schema,
    /// In the workload.
    Workload,
    /// In the load generator of an experiment.
    Client,
}

impl When {
    /// Whether the lever can be changed while the server keeps running. The others need a new server or new tables.
    pub fn is_in_place(self) -> bool {
        matches!(self, Self::Host | Self::ServerRunning | Self::Workload | Self::Client)
    }
}

/// Levers of the load generator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Client {
    /// CPUs for its threads; `None` for those of the command itself.
    pub cpus: Option<Vec<usize>>,
    /// Connections that carry load; `None` for those of the load's own definition.
    pub connections: Option<u32>,
    /// Character set of its sessions; `None` for the default of a connection.
    pub character_set: Option<String>,
}

/// Levers with their values.
#[derive(Debug, Clone, Default)]
pub struct LeverSet {
    /// Levers of the host and of the private server, in the form that `mydyno_sandbox::up` takes.
    pub server: ServerLevers,
    /// Statements that change the tables of a load before it begins, in order.
    pub schema: Vec<String>,
    /// Options of the workload, by name.
    pub workload: Vec<(String, String)>,
    /// Levers of the load generator.
    pub client: Client,
    /// The price of each lever in durability or semantics, one sentence each.
    pub ledger: Vec<String>,
    /// Each lever as requested (with bundles replaced by their parts), with the moment at which it takes effect.
    pub all: Vec<(String, String, When)>,
}

impl LeverSet {
    /// Levers of the whole host, which need a permission.
    pub fn of_the_host(&self) -> Vec<String> {
        self.server.of_the_host()
    }

    /// The levers of one moment, in the order given.
    pub fn at(&self, when: When) -> impl Iterator<Item = (&str, &str)> {
        self.all
            .iter()
            .filter(move |(_, _, w)| *w == when)
            .map(|(id, value, _)| (id.as_str(), value.as_str()))
    }

    /// Whether all levers can be changed while the server keeps running.
    pub fn is_in_place(&self) -> bool {
        self.all.iter().all(|(_, _, when)| when.is_in_place())
    }

    /// Refuses levers of tables and of the workload, for commands that start a server without a load.
    ///
    /// # Errors
    /// The first such lever.
    pub fn check_no_load(&self) -> Result<(), LeverError> {
        let mut of_load = self.at(When::Schema).chain(self.at(When::Workload));
        match of_load.next() {
            None => self.check_no_client(),
            Some((id, value)) => Err(LeverError::OfLoad { lever: format!("{id}={value}") }),
        }
    }

    /// Refuses levers of the load generator, for commands other than experiments.
    ///
    /// # Errors
    /// The first such lever.
    pub fn check_no_client(&self) -> Result<(), LeverError> {
        match self.at(When::Client).next() {
            None => Ok(()),
            Some((id, value)) => Err(LeverError::OfClient { lever: format!("{id}={value}") }),
        }
    }
}
