//! Private servers as `mydyno server up|list --json` print them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// State of a private server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    /// A running command is creating it.
    Starting,
    /// It accepts connections.
    Running,
    /// Its process has ended; its files remain.
    Stopped,
    /// The command that was creating or using it died: `mydyno host restore` removes it.
    Orphaned,
}

/// One private server. The document contains no secret: only the owner can read `password_file`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// Name that the user gave it.
    pub name: String,
    /// Family and series, as in `mariadb-10.11`.
    pub engine: String,
    /// Result of `SELECT VERSION()`.
    pub version: String,
    /// Process id; absent when it is not running.
    pub pid: Option<u32>,
    /// Path of the unix socket.
    pub socket: String,
    /// Port on 127.0.0.1.
    pub port: u16,
    /// Administrative account of the server.
    pub user: String,
    /// File with that account's password (mode 0600).
    pub password_file: String,
    /// Connection string that works as it is and contains no secret.
    pub dsn: String,
    /// Data directory.
    pub datadir: String,
    /// The server's error log.
    pub log: String,
    /// State of the server.
    pub state: ServerState,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `mydyno server list --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Private servers, by name.
    pub servers: Vec<ServerInfo>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `mydyno server up --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StartedServer {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// The server that was started.
    #[serde(flatten)]
    pub server: ServerInfo,
}

impl Document for StartedServer {
    const NAME: &'static str = "mydyno.server";
    const MAJOR: u32 = 1;
}

impl Document for ServerList {
    const NAME: &'static str = "mydyno.server-list";
    const MAJOR: u32 = 1;
}

/// The data of a private server that was shut down, kept as a starting point for other servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptData {
    /// Name under which the data are kept.
    pub name: String,
    /// Output of `--version` of the server that wrote the data.
    pub engine: String,
    /// Total size of all files in bytes.
    pub bytes: u64,
    /// File system of the emulated disk that holds the data, and on which servers that start from them run; absent when the
    /// data are on the host's own file system.
    pub disk: Option<String>,
    /// Size of that disk in bytes.
    pub disk_bytes: Option<u64>,
    /// Private servers that use that disk.
    pub servers: Vec<String>,
    /// Folder of the data.
    pub path: String,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// `mydyno server data list --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptDataList {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Kept data, by name.
    pub data: Vec<KeptData>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Document for KeptDataList {
    const NAME: &'static str = "mydyno.kept-data-list";
    const MAJOR: u32 = 1;
}
