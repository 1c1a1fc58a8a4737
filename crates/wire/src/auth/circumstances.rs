//! Security properties of a connection, and the rule for passwords that are sent in a readable form.
//!
//! A password leaves in a form that its receiver can read (as it is, or encrypted with a key that the receiver sent)
//! only when the receiver is known to be the server: over a Unix socket, or over TLS with a verified certificate. A
//! key from a file is the server's own, so what it encrypts only the server can read. On the loopback interface, where
//! only programs of this host listen, the default does without, as the original clients do; `--ssl-mode=REQUIRED`
//! takes that back. `--allow-unverified-password` lifts the rule.

use zeroize::Zeroizing;

use super::plugin::{Answer, Plugin};
use crate::error::WireError;
use crate::options::{ConnectOptions, Endpoint, ServerKey, TlsMode};
use crate::secret::Secret;

/// Properties of a connection that authentication plugins depend on.
#[derive(Debug, Clone)]
pub struct Circumstances {
    password: Secret,
    /// A Unix socket.
    socket: bool,
    /// TLS.
    encrypted: bool,
    /// TLS to a server whose certificate is verified.
    verified: bool,
    /// The server is on this host and the user did not ask for TLS.
    loopback: bool,
    /// The user lifted the rule.
    allow_unverified: bool,
    server_key: ServerKey,
}

/// The source of a server's RSA key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key<'a> {
    /// From a file, in PEM.
    Given(&'a str),
    /// The server is to be asked for it.
    Ask,
}

impl Circumstances {
    /// The properties before TLS, from the options.
    pub fn new(options: &ConnectOptions) -> Self {
        Self {
            password: options.password.clone().unwrap_or_else(|| Secret::new(Vec::new())),
            socket: matches!(options.endpoint, Endpoint::Unix(_)),
            encrypted: false,
            verified: false,
            loopback: options.endpoint.is_local() && options.tls.mode < TlsMode::Required,
            allow_unverified: options.allow_unverified_password,
            server_key: options.server_key.clone(),
        }
    }

    /// Marks the connection as encrypted by TLS. `verified`: whether the server's certificate was verified.
    pub fn set_encrypted(&mut self, verified: bool) {
        (self.encrypted, self.verified) = (true, verified);
    }

    /// Whether a password may be sent in a form that its receiver can read: the rule of this file.
    fn permits_readable(&self) -> bool {
        self.password.is_empty() || self.socket || self.verified || self.loopback || self.allow_unverified
    }

    /// Whether only the receiver can read sent bytes.
    fn is_confidential(&self) -> bool {
        self.socket || self.encrypted
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    pub(super) fn password(&self) -> &[u8] {
        self.password.expose()
    }

    /// The password and a NUL for `mysql_clear_password`, which sends it unencrypted. Without TLS the default does not
    /// permit that even on the loopback interface.
    ///
    /// # Errors
    /// The rule forbids it, or others can read the channel.
    pub(super) fn clear_password(&self) -> Result<Answer, WireError> {
        let asked = self.password.is_empty() || self.socket || self.verified || self.allow_unverified;
        if asked && (self.is_confidential() || self.password.is_empty()) {
            return Ok(self.password_and_nul());
        }
        Err(self.refuse(Plugin::Clear))
    }

    /// The password and a NUL for methods that send it through a channel that only the receiver can read; `None` where
    /// others can read the channel and an RSA key is needed.
    ///
    /// # Errors
    /// The rule forbids it.
    pub(super) fn whole_password(&self, plugin: Plugin) -> Result<Option<Answer>, WireError> {
        match (self.is_confidential(), self.permits_readable()) {
            (false, _) => Ok(None),
            (true, true) => Ok(Some(self.password_and_nul())),
            (true, false) => Err(self.refuse(plugin)),
        }
    }

    /// The password and a NUL, to be encrypted with the server's key.
    pub(super) fn password_and_nul(&self) -> Answer {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.password().len() + 1));
        bytes.extend_from_slice(self.password());
        bytes.push(0);
        bytes
    }

    /// Source of the server's RSA key. An unverified server can decrypt everything that is encrypted with a key that it
    /// sent, and so can a man in the middle.
    ///
    /// # Errors
    /// The rule forbids to request it, or the user did not permit it.
    pub(super) fn key(&self, plugin: Plugin) -> Result<Key<'_>, WireError> {
        match &self.server_key {
            ServerKey::Given(pem) => Ok(Key::Given(pem)),
            _ if self.permits_readable() => Ok(Key::Ask),
            _ => Err(self.refuse(plugin)),
        }
    }

    fn refuse(&self, plugin: Plugin) -> WireError {
        let why = if self.encrypted {
            "the server wants the whole password and is not verified"
        } else {
            "the server asks for the password itself, others can read this connection, and the server is not verified"
        };
        let key = match plugin {
            Plugin::Clear => "",
            _ if self.encrypted => {
                ", give the server's RSA key and do without TLS (--server-public-key-path=FILE \
                                     --ssl-mode=DISABLED)"
            }
            _ => ", give the server's RSA key (--server-public-key-path=FILE)",
        };
        WireError::Auth {
            plugin: plugin.name().to_owned(),
            detail: format!(
                "{why}; verify its certificate (--ssl-ca=FILE), use the Unix socket{key}, or send the password to \
                 any server that answers (--allow-unverified-password{})",
                if self.encrypted { "" } else { " --ssl-mode=REQUIRED" }
            ),
        }
    }
}
