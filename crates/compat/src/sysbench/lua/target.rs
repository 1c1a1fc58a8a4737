//! The servers that the options name, and connections to them in turn.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mydyno_wire::{Client, Compression, ConnectOptions, Endpoint, TlsMode, WireError};

use super::super::log::Log;
use super::super::options::Options;
use super::client::ScriptClient;

/// The socket that clients take for the host `localhost`.
const DEFAULT_SOCKET: &str = "/run/mysqld/mysqld.sock";

/// Numbers of errors after which the connection is gone.
pub(super) const LOST: [u16; 4] = [2006, 2011, 2013, 2055];

/// Servers, account and error numbers of the MySQL driver.
#[derive(Debug)]
pub(super) struct Target {
    options: Vec<ConnectOptions>,
    next: AtomicUsize,
    /// Error numbers that restart an event; `None` for all.
    ignored: Option<Vec<u16>>,
    pub(super) dry_run: bool,
    pub(super) prepares: bool,
}

impl Target {
    /// The servers that the options name.
    pub(super) fn new(options: &Options) -> Self {
        let text = |name: &str| options.text(name).unwrap_or_default().to_owned();
        let connect = |endpoint: Endpoint| {
            let mut connect = ConnectOptions::new(endpoint, text("mysql-user"));
            connect.password = Some(text("mysql-password")).filter(|word| !word.is_empty()).map(Into::into);
            connect.database = Some(text("mysql-db")).filter(|name| !name.is_empty());
            connect.multi_statements = true;
            connect.read_timeout = None;
            connect.max_result_bytes = usize::MAX >> 1;
            let file = |name: &str| options.text(name).filter(|path| !path.is_empty()).map(PathBuf::from);
            (connect.tls.ca, connect.tls.cert) = (file("mysql-ssl-ca"), file("mysql-ssl-cert"));
            connect.tls.key = file("mysql-ssl-key");
            connect.tls.mode = match options.text("mysql-ssl").unwrap_or("off") {
                "off" => TlsMode::Disabled,
                // With authorities the server has to prove that it is theirs.
                "on" if connect.tls.ca.is_some() => TlsMode::VerifyCa,
                "on" => TlsMode::Required,
                mode => mode.parse().unwrap_or(TlsMode::Required),
            };
            connect.allow_unverified_password = options.is_on("allow-unverified-password");
            if options.is_on("mysql-compression") {
                connect.compression = vec![Compression::Zlib];
            }
            connect
        };
        let list = options.list("mysql-ignore-errors");
        let all = list.iter().any(|word| word == "all");
        Self {
            options: endpoints(options).into_iter().map(connect).collect(),
            next: AtomicUsize::new(0),
            ignored: (!all).then(|| list.iter().filter_map(|number| number.parse().ok()).collect()),
            dry_run: options.is_on("mysql-dry-run"),
            prepares: options.text("db-ps-mode") != Some("disable"),
        }
    }

    /// Whether an error restarts the event.
    pub(super) fn ignores(&self, code: u16) -> bool {
        self.ignored.as_ref().is_none_or(|list| list.contains(&code))
    }

    /// Whether the loss of a connection restarts the event.
    pub(super) fn restarts_after_loss(&self) -> bool {
        LOST.iter().any(|code| self.ignores(*code))
    }

    /// Connects to the next server.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses.
    pub(super) fn client(&self) -> Result<Client, WireError> {
        Client::connect(&self.options[self.next_place()])
    }

    /// The place of the next connection; connections are spread over the servers in turn.
    pub(super) fn next_place(&self) -> usize {
        self.next.fetch_add(1, Relaxed) % self.options.len().max(1)
    }

    /// Connects. `None` after a failure, which is printed.
    pub(super) fn connect(&self, place: usize, log: &Log) -> Option<ScriptClient> {
        let options = self.options.get(place)?;
        match ScriptClient::open(options) {
            Ok(client) => Some(client),
            Err(error) => {
                log.fatal(&match &options.endpoint {
                    Endpoint::Unix(path) if path.as_os_str() != DEFAULT_SOCKET => format!(
                        "unable to connect to MySQL server on socket '{}', aborting...",
                        path.display()
                    ),
                    Endpoint::Unix(_) => {
                        "unable to connect to MySQL server on host 'localhost', port 3306, aborting..."
                            .to_owned()
                    }
                    Endpoint::Tcp { host, port } => format!(
                        "unable to connect to MySQL server on host '{host}', port {port}, aborting..."
                    ),
                });
                log.fatal(&refusal(&options.endpoint, &error));
                None
            }
        }
    }
}

/// A failure to connect in the words of the C client, which scripts look for.
fn refusal(endpoint: &Endpoint, error: &WireError) -> String {
    let reason = match error {
        WireError::Unreachable { source, .. } => source.raw_os_error(),
        _ => None,
    };
    match (endpoint, reason) {
        (Endpoint::Unix(path), Some(reason)) => {
            format!(
                "error 2002: Can't connect to local server through socket '{}' ({reason})",
                path.display()
            )
        }
        (Endpoint::Tcp { host, .. }, Some(reason)) => {
            format!("error 2002: Can't connect to server on '{host}' ({reason})")
        }
        _ => format!("error {}: {}", error.code(), message(error)),
    }
}

/// The server's own text where there is one.
pub(super) fn message(error: &WireError) -> String {
    error.server_error().map_or_else(|| error.to_string(), |error| error.message.clone())
}

/// Sockets where there are any for localhost, else every port of every host.
fn endpoints(options: &Options) -> Vec<Endpoint> {
    let sockets = options.list("mysql-socket");
    let hosts = options.list("mysql-host");
    let local = hosts.iter().all(|host| host == "localhost");
    if local && !sockets.is_empty() {
        return sockets.iter().map(|path| Endpoint::Unix(PathBuf::from(path))).collect();
    }
    let ports: Vec<u16> = options.list("mysql-port").iter().filter_map(|port| port.parse().ok()).collect();
    let mut endpoints = Vec::new();
    for host in hosts {
        if host == "localhost" {
            endpoints.push(Endpoint::Unix(PathBuf::from(DEFAULT_SOCKET)));
            continue;
        }
        for port in if ports.is_empty() { &[3306][..] } else { &ports } {
            endpoints.push(Endpoint::Tcp { host: host.clone(), port: *port });
        }
    }
    endpoints
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_can_be_read_leaves_for_unverified_servers_only_when_that_is_asked_for() {
        for (given, allowed) in [("cpu run", false), ("cpu run --allow-unverified-password", true)] {
            let words: Vec<String> = given.split(' ').map(str::to_owned).collect();
            let line = super::super::super::options::read(&words).unwrap();
            let target = Target::new(&line.options);
            assert!(target.options.iter().all(|to| to.allow_unverified_password == allowed), "{given}");
        }
    }
}
