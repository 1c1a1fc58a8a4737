//! Private servers as `mydyno server up|list --json` print them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// How a private server stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerState {
    /// Being made by a command that is still at work.
    Starting,
    /// Accepting connections.
    Running,
    /// Its process is gone; its files are still there.
    Stopped,
    /// The command that was making or using it died: `mydyno host restore` removes it.
    Orphaned,
}

/// One private server. It holds no secret: `password_file` is readable by its owner only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    /// The name it was given.
    pub name: String,
    /// Family and series, as in `mariadb-10.11`.
    pub engine: String,
    /// What `SELECT VERSION()` says.
    pub version: String,
    /// Process id; absent when it is not running.
    pub pid: Option<u32>,
    /// Path of the unix socket.
    pub socket: String,
    /// Port on 127.0.0.1.
    pub port: u16,
    /// Administrative account of this server.
    pub user: String,
    /// File that holds that account's password (mode 0600).
    pub password_file: String,
    /// Connects unaided and holds no secret.
    pub dsn: String,
    /// Data directory.
    pub datadir: String,
    /// The server's error log.
    pub log: String,
    /// How it stands.
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

impl Document for ServerList {
    const NAME: &'static str = "mydyno.server-list";
    const MAJOR: u32 = 1;
}

/// The data of a private server that was shut down, kept so that others start from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KeptData {
    /// The name under which they are kept.
    pub name: String,
    /// What `--version` of the server said that wrote them.
    pub engine: String,
    /// Bytes of all files.
    pub bytes: u64,
    /// File system of the disk that they are kept on, and that servers which start from them live on; absent: they lie on the
    /// host's own.
    pub disk: Option<String>,
    /// Size of that disk in bytes.
    pub disk_bytes: Option<u64>,
    /// Private servers that live on that disk now.
    pub servers: Vec<String>,
    /// Their folder.
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
