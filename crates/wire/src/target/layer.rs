//! Settings from one source, and the precedence of sources.

use std::path::PathBuf;
use std::time::Duration;

use zeroize::Zeroizing;

use super::syntax::Entry;
use super::{Environment, Protocol, TargetError, TargetOptions};
use crate::options::{Compression, TlsMode};
use crate::secret::Secret;

/// Settings of a target from the sources that have been read so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Layer {
    pub host: Option<String>,
    pub port: Option<u16>,
    pub socket: Option<PathBuf>,
    pub protocol: Option<Protocol>,
    /// Host, port and socket were typed (or stand in the DSN), not found in a file.
    pub host_typed: bool,
    pub port_typed: bool,
    pub socket_typed: bool,
    pub user: Option<String>,
    pub password: Option<Secret>,
    pub password_file: Option<PathBuf>,
    pub database: Option<String>,
    pub ssl_mode: Option<TlsMode>,
    pub ssl_ca: Option<PathBuf>,
    pub ssl_cert: Option<PathBuf>,
    pub ssl_key: Option<PathBuf>,
    pub compression: Option<Vec<Compression>>,
    pub get_server_public_key: Option<bool>,
    pub server_public_key_path: Option<PathBuf>,
    pub allow_unverified_password: Option<bool>,
    pub connect_timeout: Option<Duration>,
    pub read_timeout: Option<Duration>,
}

impl Layer {
    /// Settings from environment variables.
    pub fn of_environment(environment: &Environment, errors: &mut Vec<TargetError>) -> Self {
        let mut layer = Self {
            host: environment.variable("MYSQL_HOST"),
            socket: environment.variable("MYSQL_UNIX_PORT").map(PathBuf::from),
            password: environment.variable_bytes("MYSQL_PWD").map(Secret::new),
            ..Self::default()
        };
        if let Some(text) = environment.variable("MYSQL_TCP_PORT") {
            layer.port = port(&text, "MYSQL_TCP_PORT", "the environment", errors);
        }
        layer
    }

    /// Settings from the command line.
    pub fn of_options(options: &TargetOptions) -> Self {
        Self {
            host: options.host.clone(),
            port: options.port,
            socket: options.socket.clone(),
            protocol: options.protocol,
            host_typed: options.host.is_some(),
            port_typed: options.port.is_some(),
            socket_typed: options.socket.is_some(),
            user: options.user.clone(),
            password: options.password.clone(),
            password_file: options.password_file.clone(),
            database: options.database.clone(),
            ssl_mode: options.ssl_mode,
            ssl_ca: options.ssl_ca.clone(),
            ssl_cert: options.ssl_cert.clone(),
            ssl_key: options.ssl_key.clone(),
            compression: options.compression.clone(),
            get_server_public_key: options.get_server_public_key,
            server_public_key_path: options.server_public_key_path.clone(),
            allow_unverified_password: options.allow_unverified_password,
            connect_timeout: options.connect_timeout,
            read_timeout: options.read_timeout,
        }
    }

    /// This layer with a stronger one on top.
    pub fn under(self, top: Self) -> Self {
        // Of the ways to give a password the stronger layer's wins, whichever it is.
        let (password, password_file) = match (top.password, top.password_file) {
            (None, None) => (self.password, self.password_file),
            given => given,
        };
        // An address that was typed stands for itself: how the weaker layers reach theirs says nothing about it.
        let typed = top.host_typed || top.port_typed || top.socket_typed;
        let protocol = if typed { None } else { self.protocol };
        Self {
            host: top.host.or(self.host),
            port: top.port.or(self.port),
            socket: top.socket.or(self.socket),
            protocol: top.protocol.or(protocol),
            host_typed: top.host_typed || self.host_typed,
            port_typed: top.port_typed || self.port_typed,
            socket_typed: top.socket_typed || self.socket_typed,
            user: top.user.or(self.user),
            password,
            password_file,
            database: top.database.or(self.database),
            ssl_mode: top.ssl_mode.or(self.ssl_mode),
            ssl_ca: top.ssl_ca.or(self.ssl_ca),
            ssl_cert: top.ssl_cert.or(self.ssl_cert),
            ssl_key: top.ssl_key.or(self.ssl_key),
            compression: top.compression.or(self.compression),
            get_server_public_key: top.get_server_public_key.or(self.get_server_public_key),
            server_public_key_path: top.server_public_key_path.or(self.server_public_key_path),
            allow_unverified_password: top.allow_unverified_password.or(self.allow_unverified_password),
            connect_timeout: top.connect_timeout.or(self.connect_timeout),
            read_timeout: top.read_timeout.or(self.read_timeout),
        }
    }

    /// Takes in an option of a file. Those of other programs are passed over.
    pub fn set(&mut self, entry: &Entry, errors: &mut Vec<TargetError>) {
        self.set_named(&entry.name, entry.value.as_ref(), &entry.origin(), errors);
    }

    /// Takes in an option by its name; `false` when there is none of this name.
    pub fn set_named(
        &mut self,
        name: &str,
        value: Option<&Zeroizing<String>>,
        origin: &str,
        errors: &mut Vec<TargetError>,
    ) -> bool {
        let text = value.map(|v| v.as_str());
        // Given and empty is as not given, but for passwords.
        let filled = text.filter(|t| !t.is_empty());
        let path = || filled.map(PathBuf::from);
        match name {
            "host" => self.host = filled.map(str::to_owned),
            "port" => self.port = filled.and_then(|t| port(t, name, origin, errors)),
            "socket" => self.socket = path(),
            "protocol" => self.protocol = filled.and_then(|t| protocol(t, origin, errors)),
            "user" => self.user = filled.map(str::to_owned),
            "password" => match value {
                Some(value) => {
                    (self.password, self.password_file) = (Some(value.as_str().into()), None);
                }
                None => errors.push(TargetError::NoValue {
                    option: name.to_owned(),
                    origin: origin.to_owned(),
                    hint: "; to be asked for it, leave the line out and give -p",
                }),
            },
            "skip-password" => (self.password, self.password_file) = (None, None),
            "password-file" => (self.password, self.password_file) = (None, path()),
            "database" => self.database = filled.map(str::to_owned),
            "ssl-mode" => self.ssl_mode = filled.and_then(|t| ssl_mode(t, origin, errors)).or(self.ssl_mode),
            // `ssl` does not weaken a stricter --ssl-mode.
            "ssl" if is_on(text) => {
                self.ssl_mode = Some(self.ssl_mode.unwrap_or(TlsMode::Required).max(TlsMode::Required));
            }
            "ssl" => self.ssl_mode = Some(TlsMode::Disabled),
            "skip-ssl" | "disable-ssl" => self.ssl_mode = Some(TlsMode::Disabled),
            "ssl-verify-server-cert" if is_on(text) => self.ssl_mode = Some(TlsMode::VerifyIdentity),
            "ssl-verify-server-cert" | "skip-ssl-verify-server-cert" | "disable-ssl-verify-server-cert" => {
                self.ssl_mode = self.ssl_mode.map(|mode| mode.min(TlsMode::Required));
            }
            "ssl-ca" => self.ssl_ca = path(),
            "ssl-cert" => self.ssl_cert = path(),
            "ssl-key" => self.ssl_key = path(),
            "compress" => {
                self.compression = Some(if is_on(text) { Compression::ANY.to_vec() } else { Vec::new() });
            }
            "skip-compress" => self.compression = Some(Vec::new()),
            "compression-algorithms" => {
                self.compression = filled.and_then(|t| compression(t, origin, errors))
            }
            "allow-unverified-password" => self.allow_unverified_password = Some(is_on(text)),
            "get-server-public-key" => self.get_server_public_key = Some(is_on(text)),
            "server-public-key-path" => self.server_public_key_path = path(),
            "connect-timeout" => {
                self.connect_timeout = filled.and_then(|t| seconds(t, name, origin, errors));
            }
            "read-timeout" => self.read_timeout = filled.and_then(|t| seconds(t, name, origin, errors)),
            _ => return false,
        }
        true
    }
}

fn is_on(value: Option<&str>) -> bool {
    !matches!(value.map(str::to_ascii_lowercase).as_deref(), Some("0" | "off" | "false" | "no"))
}

pub(super) fn invalid(option: &str, value: &str, origin: &str, expected: &'static str) -> TargetError {
    TargetError::Value {
        option: option.to_owned(),
        value: value.to_owned(),
        origin: origin.to_owned(),
        expected,
    }
}

fn port(text: &str, name: &str, origin: &str, errors: &mut Vec<TargetError>) -> Option<u16> {
    match text.trim().parse::<u16>() {
        // 0 is the clients' way to say: the default.
        Ok(0) => None,
        Ok(port) => Some(port),
        Err(_) => {
            errors.push(invalid(name, text, origin, "a port is a number from 1 to 65535"));
            None
        }
    }
}

pub(super) fn protocol(text: &str, origin: &str, errors: &mut Vec<TargetError>) -> Option<Protocol> {
    match text.to_ascii_lowercase().as_str() {
        "tcp" => Some(Protocol::Tcp),
        "socket" => Some(Protocol::Socket),
        _ => {
            errors.push(invalid("protocol", text, origin, "it may be tcp or socket"));
            None
        }
    }
}

pub(super) fn ssl_mode(text: &str, origin: &str, errors: &mut Vec<TargetError>) -> Option<TlsMode> {
    let mode = text.parse().ok();
    if mode.is_none() {
        errors.push(invalid(
            "ssl-mode",
            text,
            origin,
            "it may be DISABLED, PREFERRED, REQUIRED, VERIFY_CA or VERIFY_IDENTITY",
        ));
    }
    mode
}

pub(super) fn compression(
    text: &str,
    origin: &str,
    errors: &mut Vec<TargetError>,
) -> Option<Vec<Compression>> {
    let wanted = Compression::parse_list(text);
    if wanted.is_none() {
        errors.push(invalid("compression-algorithms", text, origin, Compression::LIST));
    }
    wanted
}

fn seconds(text: &str, name: &str, origin: &str, errors: &mut Vec<TargetError>) -> Option<Duration> {
    match text.trim().parse::<u32>() {
        Ok(0) => None,
        Ok(seconds) => Some(Duration::from_secs(seconds.into())),
        Err(_) => {
            errors.push(invalid(name, text, origin, "it is a number of seconds"));
            None
        }
    }
}
