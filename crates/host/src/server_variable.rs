//! Global variables of a user's own server that an experiment has changed. They are restored through a client
//! connection.

use std::path::PathBuf;

use mydyno_journal::{Change, Context, JournalError, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How to connect to a server again, without the password: `host restore` reads it from the same files, or asks the
/// user.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reach {
    /// Unix socket; else TCP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
    /// Host name or address; empty with a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp_host: Option<String>,
    /// TCP port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Account.
    pub user: String,
    /// As `--ssl-mode` takes it.
    pub ssl_mode: String,
    /// Files of TLS and of passwords by the name of their option, as in `password-file`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<(String, PathBuf)>,
    /// Other options by name, as in `login-path`; a switch has an empty value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<(String, String)>,
}

impl Reach {
    /// The server for people, as in `db1:3306`.
    pub fn address(&self) -> String {
        match (&self.socket, &self.tcp_host, self.port) {
            (Some(path), _, _) => path.display().to_string(),
            (None, Some(host), Some(port)) => format!("{host}:{port}"),
            (None, host, _) => host.clone().unwrap_or_default(),
        }
    }
}

/// A global variable of a server that mydyno did not start. It ends with a restart of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerVariable {
    /// How to connect to the server.
    pub reach: Reach,
    /// Host name, port and data directory as the server shows them: another server at the same address is left
    /// unchanged.
    pub identity: String,
    /// Start of the server, in seconds since 1970 by its own clock.
    pub started: i64,
    /// As in `sort_buffer_size`.
    pub name: String,
    /// The value before, as the server shows it.
    pub was: String,
    /// The new value, as the server shows it: a value that the server rounds is refused.
    pub now: String,
    /// Variables that the server may change along with it, with their values before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub along: Vec<(String, String)>,
}

impl Change for ServerVariable {
    fn kind(&self) -> &str {
        "server_variable"
    }

    fn what(&self) -> String {
        format!("variable {} of the server at {}", self.name, self.reach.address())
    }

    fn key(&self) -> String {
        format!("server_variable:{}:{}", self.identity, self.name)
    }

    fn was(&self) -> Value {
        Value::from(self.was.as_str())
    }

    fn now(&self) -> Value {
        Value::from(self.now.as_str())
    }

    /// The server may run on another host, and a local one reports its own start.
    fn ends_with_boot(&self) -> bool {
        false
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(context.hooks.put_back(self))
    }
}
