//! Connections to private servers.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use mydyno_model::server::ServerInfo;
use mydyno_wire::{Client, ConnectOptions, Endpoint, Secret, WireError};

use crate::accounts::USER;
use crate::error::SandboxError;

/// The result of one attempt to connect to a starting server.
pub(crate) enum Attempt {
    /// Connected; the result of `SELECT VERSION()`.
    Ready(String),
    /// The server does not listen or does not answer yet.
    NotYet(String),
    /// The server refused the login.
    Refused(WireError),
}

/// How to connect to a private server: by its socket, with its own account.
///
/// # Errors
/// Its password file cannot be read, as after `server down`, or a link has replaced its socket.
pub fn connect_options(server: &ServerInfo) -> Result<ConnectOptions, SandboxError> {
    let password = fs::read_to_string(&server.password_file)
        .map_err(|e| SandboxError::io("read", &server.password_file, e))?;
    // The user of a server could replace its socket by a link to that of a server where root needs no password.
    if fs::symlink_metadata(&server.socket).is_ok_and(|meta| meta.is_symlink()) {
        let link = io::Error::other("it is a link, and servers make sockets");
        return Err(SandboxError::io("connect to", &server.socket, link));
    }
    let mut options = options(PathBuf::from(&server.socket), password.trim_end_matches('\n'));
    options.connect_timeout = ConnectOptions::CONNECT_TIMEOUT;
    options.read_timeout = Some(ConnectOptions::READ_TIMEOUT);
    Ok(options)
}

/// Options for attempts: short limits, because a starting server may accept a connection long before it answers.
pub(crate) fn options(socket: PathBuf, password: &str) -> ConnectOptions {
    let mut options = ConnectOptions::new(Endpoint::Unix(socket), USER);
    options.password = Some(Secret::from(password));
    options.connect_timeout = Duration::from_secs(1);
    options.read_timeout = Some(Duration::from_secs(10));
    options
}

pub(crate) fn attempt(options: &ConnectOptions) -> Attempt {
    let mut client = match Client::connect(options) {
        Ok(client) => client,
        Err(error @ (WireError::Refused { .. } | WireError::Server(_) | WireError::Auth { .. })) => {
            return Attempt::Refused(error);
        }
        Err(error) => return Attempt::NotYet(error.to_string()),
    };
    match client.query("SELECT VERSION()") {
        Ok(rows) => Attempt::Ready(rows.scalar().unwrap_or_default().into_owned()),
        Err(error) => Attempt::Refused(error),
    }
}
