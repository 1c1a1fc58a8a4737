//! The requirements of a load, and the properties of a server that the guard compares with them.

use std::time::Duration;

use mydyno_host::emulated::EmulatedDisk;

/// The requirements of a load, apart from the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Needs<'a> {
    /// Prepared statements of one connection.
    pub statements: usize,
    /// Whether the load changes data, or tables are to be made.
    pub writes: bool,
    /// Bytes that the tables will occupy on disk; 0 when they exist.
    pub disk_bytes: u64,
    /// Bytes of the server's memory that the largest table will use, with engine MEMORY; else 0.
    pub heap_bytes: u64,
    /// Bytes of the server's memory that all such tables will use.
    pub memory_bytes: u64,
    /// Engine of tables that are to be made.
    pub engine: Option<&'a str>,
    /// Bytes of the longest statement that is sent as text.
    pub query_bytes: u64,
}

/// The activity of others on a server while it was watched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Others {
    /// Connections that they opened.
    pub connections: u64,
    /// Statements that they sent.
    pub statements: u64,
}

/// The properties of a server, as the guard read them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// `max_connections`.
    pub max_connections: Option<u64>,
    /// `max_user_connections`; 0 is no limit.
    pub max_user_connections: Option<u64>,
    /// `max_prepared_stmt_count`.
    pub max_prepared_stmt_count: Option<u64>,
    /// Prepared statements that exist.
    pub prepared_stmt_count: Option<u64>,
    /// Sessions besides mydyno's: the highest count.
    pub other_sessions: Option<u64>,
    /// Activity of others within [`super::look::WATCH`]; `None` when it was not watched or the counters are hidden.
    pub others: Option<Others>,
    /// Replicas that read its binary log.
    pub replicas: Option<u64>,
    /// Other nodes of a Galera cluster, which apply the same writes.
    pub cluster_peers: Option<u64>,
    /// `read_only`.
    pub read_only: bool,
    /// Free and total bytes where its data directory is, when that is on this machine.
    pub disk: Option<(u64, u64)>,
    /// Emulated disks of this machine that its data directory, its logs or its tablespaces are on.
    pub emulated_disks: Vec<EmulatedDisk>,
    /// The delay of each of its syncs, when the server is on this machine and its process is accessible.
    pub sync_delay: Option<Duration>,
    /// Its data directory.
    pub datadir: String,
    /// `max_allowed_packet`.
    pub max_allowed_packet: Option<u64>,
    /// `max_heap_table_size`.
    pub max_heap_table_size: Option<u64>,
    /// Available memory in bytes, when the server is on this machine.
    pub memory: Option<u64>,
    /// Its engines in lower case; empty when it does not list them.
    pub engines: Vec<String>,
}
