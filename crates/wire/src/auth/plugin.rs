//! The authentication methods that this client supports.

use zeroize::Zeroizing;

/// An answer to the server; wiped when dropped, since it may hold a password.
pub type Answer = Zeroizing<Vec<u8>>;

/// State of a connection during authentication.
pub(crate) const STATE: &str = "authenticating";

/// A method of authentication by the name that both sides use for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Plugin {
    /// `mysql_native_password`: SHA-1.
    Native,
    /// `caching_sha2_password`: SHA-256, with a cache in the server.
    CachingSha2,
    /// `sha256_password`: the whole password, by TLS or RSA.
    Sha256,
    /// `client_ed25519`: MariaDB, a signature.
    Ed25519,
    /// `parsec`: MariaDB 11.6, a signature with a salted key.
    Parsec,
    /// `mysql_clear_password`: the whole password, as LDAP and PAM need it; over TLS and sockets only.
    Clear,
}

impl Plugin {
    /// The plugin with this name, if this client supports it.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "mysql_native_password" => Some(Self::Native),
            "caching_sha2_password" => Some(Self::CachingSha2),
            "sha256_password" => Some(Self::Sha256),
            "client_ed25519" => Some(Self::Ed25519),
            "parsec" => Some(Self::Parsec),
            "mysql_clear_password" => Some(Self::Clear),
            _ => None,
        }
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
            Self::Sha256 => "sha256_password",
            Self::Ed25519 => "client_ed25519",
            Self::Parsec => "parsec",
            Self::Clear => "mysql_clear_password",
        }
    }
}

/// The names that this client supports, for error texts.
pub const PLUGINS: &str = "mysql_native_password, caching_sha2_password, sha256_password, client_ed25519, parsec, \
                          mysql_clear_password";
