//! Connection options: address, account and limits.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::cancel::CancelFlag;
use crate::envelope::TlsConfig;
use crate::error::WireError;
use crate::secret::Secret;

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// A Unix socket.
    Unix(PathBuf),
    /// A TCP port.
    Tcp {
        /// Name or address.
        host: String,
        /// As in 3306.
        port: u16,
    },
}

impl Endpoint {
    /// Whether data stay on this host: a socket, `localhost` or a loopback address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Unix(_) => true,
            Self::Tcp { host, .. } => {
                host.eq_ignore_ascii_case("localhost")
                    || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
            }
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
        }
    }
}

/// The source of the RSA key with which a password is encrypted for a server that needs it over plain TCP
/// (caching_sha2_password without a cached entry, sha256_password).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ServerKey {
    /// Ask the server for its key where passwords that can be read are permitted, see [`crate::auth::Circumstances`].
    #[default]
    AskWhenLocal,
    /// Request it because the user said so (`--get-server-public-key`).
    Ask,
    /// This key, in PEM (`--server-public-key-path`).
    Given(String),
}

impl TlsOptions {
    /// Whether a connection without TLS satisfies the mode.
    pub(crate) fn is_only_preferred(&self) -> bool {
        self.mode == TlsMode::Preferred && self.ca.is_none() && self.cert.is_none() && self.key.is_none()
    }
}

/// Whether and how strictly a connection is encrypted, from the laxest to the strictest, as `--ssl-mode` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TlsMode {
    /// Never.
    Disabled,
    /// When the server can; a man in the middle can prevent it. A Unix socket is not encrypted.
    #[default]
    Preferred,
    /// Always, without verification of the server.
    Required,
    /// Always, and the server's certificate must come from the given authority.
    VerifyCa,
    /// [`Self::VerifyCa`], and the certificate must be for the requested host.
    VerifyIdentity,
}

impl std::str::FromStr for TlsMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.to_ascii_lowercase().replace('-', "_").as_str() {
            "disabled" => Ok(Self::Disabled),
            "preferred" => Ok(Self::Preferred),
            "required" => Ok(Self::Required),
            "verify_ca" => Ok(Self::VerifyCa),
            "verify_identity" => Ok(Self::VerifyIdentity),
            _ => Err(()),
        }
    }
}

/// TLS of a connection. Files are PEM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// How strictly.
    pub mode: TlsMode,
    /// Certificates of authorities.
    pub ca: Option<PathBuf>,
    /// This client's certificate.
    pub cert: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

/// How packets may be compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// Every server has it.
    Zlib,
    /// MySQL 8.0.18 and newer.
    Zstd,
}

impl Compression {
    /// Any algorithm that the server supports.
    pub const ANY: [Self; 2] = [Self::Zlib, Self::Zstd];
    /// Syntax of [`Self::parse_list`], for error texts.
    pub const LIST: &str = "it may be a list of zlib, zstd and uncompressed";

    /// Parses a list in order of preference, as in `zstd,zlib,uncompressed`. Entries behind `uncompressed`, which every
    /// server supports, have no effect.
    pub fn parse_list(text: &str) -> Option<Vec<Self>> {
        let mut wanted = Vec::new();
        let mut over = false;
        for word in text.split(',') {
            let algorithm = match word.trim().to_ascii_lowercase().as_str() {
                "zlib" => Some(Self::Zlib),
                "zstd" => Some(Self::Zstd),
                "uncompressed" => None,
                _ => return None,
            };
            over |= algorithm.is_none();
            wanted.extend(algorithm.filter(|_| !over));
        }
        Some(wanted)
    }
}

/// Everything that a connection needs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// The address of the server.
    pub endpoint: Endpoint,
    /// User name.
    pub user: String,
    /// Password; none and an empty one are the same to a server.
    pub password: Option<Secret>,
    /// Schema to use from the start.
    pub database: Option<String>,
    /// Limit for everything up to the end of authentication.
    pub connect_timeout: Duration,
    /// Limit for the whole answer to one command, first byte to last. `None` is for long statements, such as those that
    /// build an index: every [`Self::look_interval`] a second connection checks whether the server still executes the
    /// statement (SHOW PROCESSLIST). The call ends when it does not, or after [`Self::LONGEST_STATEMENT`].
    pub read_timeout: Option<Duration>,
    /// Time between two checks of the process list, for statements without [`Self::read_timeout`].
    pub look_interval: Duration,
    /// Whether the user set [`Self::read_timeout`]; it then applies to long statements too.
    pub read_timeout_given: bool,
    /// Ends blocking calls with [`WireError::Cancelled`] once it is set.
    pub cancel: Option<CancelFlag>,
    /// Limit of a packet from the server, in bytes, continuations included.
    pub max_packet_bytes: usize,
    /// Limit of a materialised result, in bytes of memory; a larger one fails.
    pub max_result_bytes: usize,
    /// Whether a text may hold several statements separated by semicolons.
    pub multi_statements: bool,
    /// Whether a MariaDB that can (10.6 and newer) leaves out unchanged column definitions of prepared statements.
    pub cache_metadata: bool,
    /// Whether a MariaDB that can (10.5 and newer) names the types behind its columns, see [`crate::Column::type_name`].
    pub extended_metadata: bool,
    /// Whether a MySQL that supports it (8.0 and newer) may leave out column definitions, as it does after `SET
    /// resultset_metadata = NONE`. Prepared statements are then read by the definitions of their preparation, which
    /// hold unless parameters of another type change the columns'.
    pub optional_metadata: bool,
    /// Whether servers that support it (MySQL 5.7, MariaDB 10.2 and newer) report changes of the session by a
    /// statement, see [`crate::Client::session_changes`].
    pub session_tracking: bool,
    /// The source of the server's RSA key when one is needed.
    pub server_key: ServerKey,
    /// Whether a server that is not verified may get the password in a form that it can read
    /// (`--allow-unverified-password`), see [`crate::auth::Circumstances`].
    pub allow_unverified_password: bool,
    /// Encryption.
    pub tls: TlsOptions,
    /// Compression in order of preference; empty is none.
    pub compression: Vec<Compression>,
    /// Configuration built from the files of [`Self::tls`], shared by clones.
    loaded_tls: LoadedTls,
}

/// A TLS configuration and the options that it was built from.
type LoadedTls = Arc<Mutex<Option<(TlsOptions, Endpoint, TlsConfig)>>>;

impl ConnectOptions {
    /// Limit of [`Self::connect_timeout`] unless another is set.
    pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
    /// Limit of [`Self::read_timeout`] unless another is set.
    pub const READ_TIMEOUT: Duration = Duration::from_secs(60);
    /// Limit for a statement without [`Self::read_timeout`], even while the server executes it.
    pub const LONGEST_STATEMENT: Duration = Duration::from_secs(24 * 3600);
    /// [`Self::max_packet_bytes`] unless another is set: 32 MiB.
    pub const MAX_PACKET_BYTES: usize = 32 << 20;
    /// [`Self::max_result_bytes`] unless another is set: 48 MiB, which leaves room for a packet within 100 MB.
    pub const MAX_RESULT_BYTES: usize = 48 << 20;

    /// The defaults for a server and a user: no password, no schema.
    pub fn new(endpoint: Endpoint, user: impl Into<String>) -> Self {
        Self {
            endpoint,
            user: user.into(),
            password: None,
            database: None,
            connect_timeout: Self::CONNECT_TIMEOUT,
            read_timeout: Some(Self::READ_TIMEOUT),
            look_interval: Self::READ_TIMEOUT,
            read_timeout_given: false,
            cancel: None,
            max_packet_bytes: Self::MAX_PACKET_BYTES,
            max_result_bytes: Self::MAX_RESULT_BYTES,
            multi_statements: false,
            cache_metadata: true,
            extended_metadata: true,
            optional_metadata: true,
            session_tracking: true,
            server_key: ServerKey::default(),
            allow_unverified_password: false,
            tls: TlsOptions::default(),
            compression: Vec::new(),
            loaded_tls: LoadedTls::default(),
        }
    }

    /// These options for a connection whose statements may take long (fill, index or check a table): without
    /// [`Self::read_timeout`], unless the user set one.
    #[must_use]
    pub fn for_long_statements(&self) -> Self {
        let read_timeout = self.read_timeout.filter(|_| self.read_timeout_given);
        Self { read_timeout, ..self.clone() }
    }

    /// The TLS configuration. Its files are read for the first connection, and later ones reuse it even if the files
    /// change.
    ///
    /// # Errors
    /// A file cannot be read or has no valid content.
    pub(crate) fn tls_config(&self) -> Result<TlsConfig, WireError> {
        let mut loaded = self.loaded_tls.lock().unwrap_or_else(PoisonError::into_inner);
        match &*loaded {
            Some((tls, endpoint, config)) if *tls == self.tls && *endpoint == self.endpoint => {
                Ok(config.clone())
            }
            _ => {
                let config = TlsConfig::new(&self.tls, &self.endpoint)?;
                *loaded = Some((self.tls.clone(), self.endpoint.clone(), config.clone()));
                Ok(config)
            }
        }
    }

    /// The password to send: an empty one counts as none.
    pub(crate) fn password_bytes(&self) -> &[u8] {
        self.password.as_ref().map_or(&[], Secret::expose)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_print_without_the_password() {
        let mut options = ConnectOptions::new(Endpoint::Unix("/s".into()), "app");
        options.password = Some("hunter2".into());
        assert!(!format!("{options:?}").contains("hunter2"));
    }

    #[test]
    fn an_endpoint_reads_as_people_write_it() {
        let tcp = |host: &str| Endpoint::Tcp { host: host.into(), port: 3306 };
        assert_eq!(tcp("db1").to_string(), "db1:3306");
        assert_eq!(tcp("::1").to_string(), "[::1]:3306");
        assert!(tcp("::1").is_local() && tcp("127.0.0.2").is_local() && !tcp("10.0.0.1").is_local());
    }
}
