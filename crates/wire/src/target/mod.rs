//! Which server, as whom and how: from what was typed, a DSN, option files, a login path and the environment.
//!
//! MySQL's and MariaDB's own clients are the measure: where each option may stand, which place wins, and that
//! `localhost` means the socket. What is read comes from an [`Environment`], so that nothing here depends on the
//! machine it runs on. All errors are found at once.
//!
//! From the weakest to the strongest: defaults of the client · `MYSQL_HOST`, `MYSQL_TCP_PORT`, `MYSQL_UNIX_PORT`,
//! `MYSQL_PWD` · option files in their order · the login path · the DSN · options that were typed.

mod dsn;
mod environment;
mod error;
mod files;
mod layer;
mod login_path;
mod password_file;
mod syntax;
mod typed;

use std::path::PathBuf;
use std::time::Duration;

pub use dsn::check as check_dsn;
pub use environment::Environment;
pub use error::TargetError;
pub use login_path::decrypt as decrypt_login_path;
pub use syntax::{Entry, Line, parse as parse_option_file};

use crate::options::{Compression, ConnectOptions, Endpoint, ServerKey, TlsMode, TlsOptions};
use crate::secret::Secret;
use layer::Layer;

/// How to reach a server, as `--protocol` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// TCP, also to `localhost`.
    Tcp,
    /// A Unix socket.
    Socket,
}

/// Options of the command line. Everything is optional.
#[derive(Debug, Clone, Default)]
pub struct TargetOptions {
    /// `--dsn mysql://user@host:port/schema?…`.
    pub dsn: Option<String>,
    /// `-h`, `--host`.
    pub host: Option<String>,
    /// `-P`, `--port`.
    pub port: Option<u16>,
    /// `-S`, `--socket`.
    pub socket: Option<PathBuf>,
    /// `--protocol`.
    pub protocol: Option<Protocol>,
    /// `-u`, `--user`.
    pub user: Option<String>,
    /// The answer to a prompt (`-p`).
    pub password: Option<Secret>,
    /// `--password-file`.
    pub password_file: Option<PathBuf>,
    /// `-D`, `--database`, `--schema`.
    pub database: Option<String>,
    /// `--defaults-file`: read this one only.
    pub defaults_file: Option<PathBuf>,
    /// `--defaults-extra-file`: read this one too.
    pub defaults_extra_file: Option<PathBuf>,
    /// `--defaults-group-suffix`.
    pub defaults_group_suffix: Option<String>,
    /// `--no-defaults`: read no option file; a login path still counts.
    pub no_defaults: bool,
    /// `--login-path`.
    pub login_path: Option<String>,
    /// `--no-login-paths`.
    pub no_login_paths: bool,
    /// `--ssl-mode`.
    pub ssl_mode: Option<TlsMode>,
    /// `--ssl-ca`.
    pub ssl_ca: Option<PathBuf>,
    /// `--ssl-cert`.
    pub ssl_cert: Option<PathBuf>,
    /// `--ssl-key`.
    pub ssl_key: Option<PathBuf>,
    /// `--compression-algorithms`, in order of preference; empty is none.
    pub compression: Option<Vec<Compression>>,
    /// `--get-server-public-key`.
    pub get_server_public_key: Option<bool>,
    /// `--server-public-key-path`.
    pub server_public_key_path: Option<PathBuf>,
    /// `--allow-unverified-password`.
    pub allow_unverified_password: Option<bool>,
    /// `--connect-timeout`.
    pub connect_timeout: Option<Duration>,
    /// `--read-timeout`.
    pub read_timeout: Option<Duration>,
    /// Groups of option files that count; none stand for those of the clients and of this program.
    pub groups: &'static [&'static str],
}

/// The options of the option files and login paths that count, the weakest first.
///
/// # Errors
/// All files that cannot be read, and all their mistakes.
pub fn option_entries(
    options: &TargetOptions,
    environment: &Environment,
) -> Result<Vec<Entry>, Vec<TargetError>> {
    let mut errors = Vec::new();
    let entries = files::read(options, environment, &mut Vec::new(), &mut errors);
    if errors.is_empty() { Ok(entries) } else { Err(errors) }
}

/// Resolves a target.
///
/// # Errors
/// Everything that is wrong, not only the first.
pub fn resolve(
    options: &TargetOptions,
    environment: &Environment,
) -> Result<ConnectOptions, Vec<TargetError>> {
    resolve_noting(options, environment, &mut Vec::new())
}

/// [`resolve`] that also returns the warnings of MySQL's clients: world-writable files, which are ignored, and world-readable ones.
///
/// # Errors
/// As [`resolve`].
pub fn resolve_noting(
    options: &TargetOptions,
    environment: &Environment,
    notes: &mut Vec<String>,
) -> Result<ConnectOptions, Vec<TargetError>> {
    let mut errors = Vec::new();
    let mut merged = Layer::of_environment(environment, &mut errors);
    for entry in files::read(options, environment, notes, &mut errors) {
        merged.set(&entry, &mut errors);
    }
    if let Some(text) = &options.dsn {
        match dsn::parse(text) {
            Ok(from_dsn) => {
                conflicts(options, &from_dsn, &mut errors);
                merged = merged.under(from_dsn);
            }
            Err(found) => errors.extend(found),
        }
    }
    merged = merged.under(Layer::of_options(options));
    let target = finish(options, merged, environment, notes, &mut errors);
    if errors.is_empty() { Ok(target) } else { Err(errors) }
}

/// Settings that the DSN and an option give different values.
fn conflicts(options: &TargetOptions, dsn: &Layer, errors: &mut Vec<TargetError>) {
    let mut check = |name: &'static str, differ: bool| {
        if differ {
            errors.push(TargetError::Conflict { first: "--dsn", second: name });
        }
    };
    check("--host", options.host.is_some() && dsn.host.is_some() && options.host != dsn.host);
    check("--port", options.port.is_some() && dsn.port.is_some() && options.port != dsn.port);
    check("--socket", options.socket.is_some() && dsn.socket.is_some() && options.socket != dsn.socket);
    check("--user", options.user.is_some() && dsn.user.is_some() && options.user != dsn.user);
}

fn finish(
    options: &TargetOptions,
    merged: Layer,
    environment: &Environment,
    notes: &mut Vec<String>,
    errors: &mut Vec<TargetError>,
) -> ConnectOptions {
    let endpoint = endpoint(options, &merged, environment, errors);
    let user = merged.user.unwrap_or_else(|| environment.user.clone());
    let mut target = ConnectOptions::new(endpoint, user);
    target.password = merged.password;
    if let Some(path) = &merged.password_file {
        match password_file::read(path, environment, notes) {
            Ok(secret) => target.password = Some(secret),
            Err(error) => errors.push(error),
        }
    }
    target.database = merged.database;
    if let Some(timeout) = merged.connect_timeout {
        target.connect_timeout = timeout;
    }
    if let Some(timeout) = merged.read_timeout {
        target.read_timeout = Some(timeout);
        target.read_timeout_given = true;
    }
    // A certificate authority that is named is meant to be used, as in MariaDB's client and in libmysqlclient 8.
    let mode = match (merged.ssl_mode, &merged.ssl_ca) {
        (None | Some(TlsMode::Required), Some(_)) => TlsMode::VerifyCa,
        (mode, _) => mode.unwrap_or_default(),
    };
    if mode >= TlsMode::VerifyCa && merged.ssl_ca.is_none() {
        errors.push(TargetError::MissingAuthority);
    }
    if merged.ssl_cert.is_some() != merged.ssl_key.is_some() {
        errors.push(TargetError::HalfCertificate);
    }
    for (what, path) in [
        ("the certificate authorities", &merged.ssl_ca),
        ("the certificate", &merged.ssl_cert),
        ("the certificate's key", &merged.ssl_key),
    ] {
        let Some(path) = path else { continue };
        // A file that is missing is named when TLS is set up; a device or a pipe must never be read.
        if environment.facts(path).is_ok_and(|facts| !facts.is_file) {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is not a regular file");
            errors.push(TargetError::File { what, path: path.clone(), source });
        }
    }
    let logical = |path: Option<PathBuf>| path.map(|p| environment.absolute(&p));
    target.tls = TlsOptions {
        mode,
        ca: logical(merged.ssl_ca),
        cert: logical(merged.ssl_cert),
        key: logical(merged.ssl_key),
    };
    target.allow_unverified_password = merged.allow_unverified_password.unwrap_or_default();
    target.compression = merged.compression.unwrap_or_default();
    target.server_key = match (merged.server_public_key_path, merged.get_server_public_key) {
        (Some(path), _) => match environment.read(&path, password_file::MAX_BYTES) {
            Ok(bytes) => ServerKey::Given(String::from_utf8_lossy(&bytes).into_owned()),
            Err(source) => {
                errors.push(TargetError::File { what: "the server's public key", path, source });
                ServerKey::AskWhenLocal
            }
        },
        (None, Some(true)) => ServerKey::Ask,
        _ => ServerKey::AskWhenLocal,
    };
    target
}

/// Sockets where servers of the common distributions listen.
///
/// Not `/tmp/mysql.sock`: any user of the host could listen there and be sent a password.
const SOCKETS: [&str; 3] =
    ["/run/mysqld/mysqld.sock", "/var/run/mysqld/mysqld.sock", "/var/lib/mysql/mysql.sock"];

/// Socket or TCP. As in MariaDB's client, a port or a socket that was typed says how to reach `localhost`.
fn endpoint(
    options: &TargetOptions,
    merged: &Layer,
    environment: &Environment,
    errors: &mut Vec<TargetError>,
) -> Endpoint {
    let socket = || match &merged.socket {
        Some(path) => Endpoint::Unix(environment.absolute(path)),
        None => {
            let found = SOCKETS.iter().find(|path| environment.exists(path.as_ref()));
            Endpoint::Unix(found.unwrap_or(&SOCKETS[0]).into())
        }
    };
    let tcp = |host: &str| Endpoint::Tcp { host: host.to_owned(), port: merged.port.unwrap_or(3306) };
    let host = merged.host.as_deref().unwrap_or("localhost");
    let is_here = host.eq_ignore_ascii_case("localhost");
    // A DSN as servers of this program print it names socket and port of one server; the socket is faster.
    let is_local = is_here || tcp(host).is_local();
    match merged.protocol {
        Some(Protocol::Tcp) => return tcp(host),
        Some(Protocol::Socket) => return socket(),
        None => {}
    }
    if merged.socket_typed {
        let both = options.host.is_some() && options.socket.is_some() && !is_here;
        if both || (merged.host_typed && !is_local) {
            errors.push(TargetError::Conflict { first: "--host", second: "--socket" });
        }
        return socket();
    }
    match () {
        () if !is_here => tcp(host),
        () if merged.port_typed || options.port.is_some() => tcp(host),
        () => socket(),
    }
}
