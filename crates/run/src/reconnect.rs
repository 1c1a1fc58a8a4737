//! Connections to the server for the sampler, and its process on this host.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_facts::Source;
use mydyno_samples::watched_server::{Connect, Connected, Lost};
use mydyno_wire::{Client, ConnectOptions, Endpoint, WireError};

use crate::audit::{is_loopback, process_behind};
use crate::control::connect;

/// Longest time for opening a connection again, so that a server that is back is seen soon.
const RECONNECT: Duration = Duration::from_secs(2);

/// Opens connections for the sampler.
#[derive(Clone)]
pub struct Reconnect {
    pub options: ConnectOptions,
    pub source: Source,
}

impl Reconnect {
    /// Connections that end when `cancel` is set.
    pub fn new(options: &ConnectOptions, source: &Source, cancel: &Arc<AtomicBool>) -> Self {
        let mut options = options.clone();
        options.cancel = Some(Arc::clone(cancel));
        Self { options, source: source.clone() }
    }

    /// The first connection, with the user's own time limit; and the reason why the server's process is not visible, if
    /// it is not.
    ///
    /// # Errors
    /// The server refuses the connection, or accepts it and answers a query with no row.
    pub fn first(&mut self) -> Result<(Connected<Client>, Option<String>), WireError> {
        let mut client = connect(&self.options)?;
        if client.query("SELECT 1")?.rows.is_empty() {
            let detail = "it answers SELECT 1 with no row, as no server does that can be watched";
            return Err(WireError::protocol("answer", "asking for a row", detail));
        }
        let found = process_behind(&self.source, &client, &self.options);
        let hidden = found.as_ref().err().map(ToString::to_string);
        self.options.connect_timeout = self.options.connect_timeout.min(RECONNECT);
        Ok((Connected { sql: client, pid: found.ok().map(|process| process.pid) }, hidden))
    }

    /// Whether the server is on another host, so that samples of this one do not concern it.
    pub fn is_remote(&self) -> bool {
        matches!(&self.options.endpoint, Endpoint::Tcp { host, .. } if !is_loopback(host))
    }
}

impl Connect for Reconnect {
    type Connection = Client;

    fn connect(&mut self) -> Result<Connected<Client>, Lost> {
        let client = connect(&self.options).map_err(|e| Lost { code: e.code(), why: e.to_string() })?;
        let found = process_behind(&self.source, &client, &self.options);
        Ok(Connected { sql: client, pid: found.ok().map(|process| process.pid) })
    }
}
