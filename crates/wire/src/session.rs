//! An authenticated connection, apart from its socket.

use crate::capability::Capabilities;
use crate::options::Compression;
use crate::server::ServerVersion;

/// How a server proved its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerIdentity {
    /// It did not.
    Unknown,
    /// By the Unix socket, which only the system's users can put in its place.
    UnixSocket,
    /// By a certificate of `--ssl-ca`.
    Certificate,
    /// By a hash of the password and its certificate (MariaDB 11.4 and newer).
    Password,
}

/// Parameters that client and server negotiated when they connected.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Session {
    /// Capabilities in force: those that the server offered and this client took, MariaDB's extended ones included.
    pub capabilities: Capabilities,
    /// The server's id of this connection, as in `KILL`.
    pub connection_id: u32,
    /// The server.
    pub version: ServerVersion,
    /// Status flags of the last OK packet, see [`crate::capability::status`].
    pub status: u16,
    /// Method of authentication by which this client was let in, as in `caching_sha2_password`; empty where a driver has
    /// its own way in. Servers that rely on the operating system (`unix_socket`, PAM) accept the client
    /// after another method was tried.
    pub authentication: &'static str,
    /// TLS version and cipher; `None` when packets are not encrypted.
    pub tls: Option<String>,
    /// How the server proved its identity.
    pub identity: ServerIdentity,
    /// How packets are compressed.
    pub compression: Option<Compression>,
}

impl Session {
    /// A session with a server: for tests and for drivers that have their own way in.
    pub fn new(version: ServerVersion, capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            connection_id: version.connection_id,
            version,
            status: 0,
            authentication: "",
            tls: None,
            identity: ServerIdentity::Unknown,
            compression: None,
        }
    }
}
