//! Global variables of a user's own server: set for an experiment and restored, also by a later command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use mydyno_host::Change;
use mydyno_host::restore::Outcome;
use mydyno_host::server_variable::{Reach, ServerVariable};
use mydyno_wire::target::{Protocol, resolve};
use mydyno_wire::{Client, ConnectOptions, Endpoint, Environment, TargetOptions, TlsMode, WireError};

use crate::error::SandboxError;
use crate::site::Site;
use crate::variable::{Swapped, check_name, neighbours, plain, put_back_value, same, show, write_recorded};

/// Time limit of a statement while the journal is locked: other commands wait ten seconds for the lock.
const ASKED_UNDER_THE_LOCK: Duration = Duration::from_secs(3);
/// Pauses before further attempts to connect to a server whose variable is to be restored: a transient failure must not
/// leave the variable changed.
const RETRIES: [Duration; 3] = [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];
/// Largest difference in seconds between two readings of the same start, from the server's rounding of its clock.
const START_TOLERANCE_S: i64 = 5;

/// Servers that this process has connected to, with their passwords: used for the restore at any end of the experiment.
static CONNECTED: Mutex<Vec<(Reach, ConnectOptions)>> = Mutex::new(Vec::new());
/// File with the password for servers of earlier commands.
static PASSWORD_FILE: OnceLock<PathBuf> = OnceLock::new();

/// Sets the file with the password with which this process restores variables of earlier commands.
pub fn take_password_from(file: &Path) {
    // A second call in one process has no effect: a command line has one such option.
    let _ = PASSWORD_FILE.set(file.to_owned());
}

/// A server that mydyno did not start.
#[derive(Debug, Clone)]
pub struct UsersServer {
    connect: ConnectOptions,
    reach: Reach,
    identity: Identity,
}

/// Distinguishes a server from another one at the same address, and from itself after a restart.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Identity {
    text: String,
    started: i64,
}

impl UsersServer {
    /// Connects once to identify the server. `reach` says how a later command connects to it.
    ///
    /// # Errors
    /// It cannot be reached, or does not show its variables.
    pub fn new(connect: &ConnectOptions, reach: Reach) -> Result<Self, SandboxError> {
        // The restore must work while the command is being cancelled, so it ignores the flag.
        let mut connect = connect.clone();
        connect.cancel = None;
        let identity = identify(&mut open(&connect, &reach)?)?;
        let mut known = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(other, _)| *other != reach);
        known.push((reach.clone(), connect.clone()));
        drop(known);
        Ok(Self { connect, reach, identity })
    }

    /// The server for people, as in `db1:3306`.
    pub fn address(&self) -> String {
        self.reach.address()
    }

    /// Program and version, as in `MariaDB 10.11.6`.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn version(&self) -> Result<String, SandboxError> {
        let mut client = open(&self.connect, &self.reach)?;
        let version = show(&mut client, "version")?;
        let family = if version.contains("MariaDB") { "MariaDB" } else { "MySQL" };
        Ok(format!("{family} {version}"))
    }

    /// The global value of a variable, as the server shows it.
    ///
    /// # Errors
    /// The server cannot be reached, or has no such variable.
    pub fn read(&self, name: &str) -> Result<String, SandboxError> {
        check_name(name)?;
        show(&mut open(&self.connect, &self.reach)?, name)
    }

    /// Sets a global variable: writes the journal entry, then the value, then reads it back. Returns the number of the
    /// journal entry; `None` when the variable has the value already.
    ///
    /// # Errors
    /// The server refuses it, or adjusts the value; the variable then has its previous value again.
    pub fn set(
        &self,
        site: &Site,
        purpose: &str,
        name: &str,
        value: &str,
    ) -> Result<Option<u64>, SandboxError> {
        check_name(name)?;
        let mut client = open(&self.connect, &self.reach)?;
        let mut briefly = self.connect.clone();
        briefly.read_timeout = Some(ASKED_UNDER_THE_LOCK);
        let mut asked = open(&briefly, &self.reach)?;
        let mut changed = ServerVariable {
            reach: self.reach.clone(),
            identity: self.identity.text.clone(),
            started: self.identity.started,
            name: name.to_owned(),
            was: String::new(),
            now: plain(value),
            along: vec![],
        };
        let key = changed.key();
        let recorded = site.journal.record_if_needed::<SandboxError>(site.lease, purpose, &key, || {
            changed.was = show(&mut asked, name)?;
            if same(&changed.was, &changed.now) {
                return Ok(None);
            }
            let value = |n: &str| Some((n.to_owned(), show(&mut asked, n).ok()?));
            changed.along = neighbours(name).filter_map(value).collect();
            Ok(Some(Box::new(changed.clone()) as Box<dyn Change>))
        })?;
        let Some(id) = recorded else { return Ok(None) };
        write_recorded(site, &mut client, id, &swapped(&changed)).map(|()| Some(id))
    }
}

fn swapped(variable: &ServerVariable) -> Swapped<'_> {
    let ServerVariable { name, was, now, along, .. } = variable;
    Swapped { name, was, now, along }
}

/// Restores a variable, with the connection options of this process or those in the journal.
pub(crate) fn put_back(variable: &ServerVariable) -> Outcome {
    let outcome = options(&variable.reach).and_then(|connect| {
        let mut client = open_patiently(&connect, &variable.reach)?;
        let found = identify(&mut client)?;
        if found.text != variable.identity {
            let why = format!("another server answers there: {}, not {}", found.text, variable.identity);
            return Ok(Outcome::failed(why));
        }
        if (found.started - variable.started).abs() > START_TOLERANCE_S {
            return after_restart(&mut client, variable);
        }
        put_back_value(&mut client, &swapped(variable))
    });
    outcome.unwrap_or_else(|error| Outcome::failed(error.to_string()))
}

/// A restart has ended the change, unless the server's start only seems to differ because its clock was set.
fn after_restart(client: &mut Client, variable: &ServerVariable) -> Result<Outcome, SandboxError> {
    let current = show(client, &variable.name)?;
    Ok(match same(&current, &variable.now) && !same(&current, &variable.was) {
        true => Outcome::left_alone(format!(
            "its server was restarted since, and shows {current}, the value that mydyno had set; it was {} before: \
             set that by hand if its option file does not say {current}",
            variable.was
        )),
        false => Outcome::restored("its server was restarted, and its value ended with it"),
    })
}

fn options(reach: &Reach) -> Result<ConnectOptions, SandboxError> {
    let known = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |other: &Reach| other.address() == reach.address() && other.user == reach.user;
    match known.iter().find(|(other, _)| same(other)) {
        Some((_, connect)) => Ok(connect.clone()),
        None => resolved(reach),
    }
}

/// Connection options from the journal, the option files and the environment of this process.
fn resolved(reach: &Reach) -> Result<ConnectOptions, SandboxError> {
    let failed =
        |why: Vec<String>| SandboxError::UsersServer { address: reach.address(), why: why.join("; ") };
    let mut options = TargetOptions::default();
    // Options in a DSN must not be given twice.
    if reach.options.iter().all(|(name, _)| name != "dsn") {
        options.host = reach.tcp_host.clone();
        options.port = reach.port;
        options.socket = reach.socket.clone();
        options.protocol = Some(if reach.socket.is_some() { Protocol::Socket } else { Protocol::Tcp });
        options.user = Some(reach.user.clone());
    }
    let files = reach.files.iter().map(|(name, path)| (name, path.as_os_str()));
    for (name, value) in files.chain(reach.options.iter().map(|(name, text)| (name, OsStr::new(text)))) {
        options.set(name, value).map_err(|error| failed(vec![error.to_string()]))?;
    }
    if options.dsn.is_none() {
        options.ssl_mode = reach.ssl_mode.parse().ok();
    }
    if let Some(file) = PASSWORD_FILE.get() {
        options.password_file = Some(file.clone());
    }
    resolve(&options, &Environment::current())
        .map_err(|errors| failed(errors.iter().map(ToString::to_string).collect()))
}

/// The name of an encryption mode, as in `--ssl-mode`.
fn ssl_mode(mode: TlsMode) -> &'static str {
    match mode {
        TlsMode::Disabled => "disabled",
        TlsMode::Preferred => "preferred",
        TlsMode::Required => "required",
        TlsMode::VerifyCa => "verify_ca",
        TlsMode::VerifyIdentity => "verify_identity",
    }
}

/// Address, account and encryption of connection options; the caller adds files and further options.
pub fn reach_of(connect: &ConnectOptions) -> Reach {
    let user = connect.user.clone();
    let reach = Reach { user, ssl_mode: ssl_mode(connect.tls.mode).to_owned(), ..Reach::default() };
    match &connect.endpoint {
        Endpoint::Unix(path) => Reach { socket: Some(path.clone()), ..reach },
        Endpoint::Tcp { host, port } => Reach { tcp_host: Some(host.clone()), port: Some(*port), ..reach },
    }
}

fn open(connect: &ConnectOptions, reach: &Reach) -> Result<Client, SandboxError> {
    Client::connect(connect).map_err(|source| unreachable(reach, &source))
}

fn open_patiently(connect: &ConnectOptions, reach: &Reach) -> Result<Client, SandboxError> {
    let mut last = match Client::connect(connect) {
        Ok(client) => return Ok(client),
        Err(error) => error,
    };
    for pause in RETRIES {
        // A refusal by the server, such as a wrong password, is not transient.
        if matches!(last, WireError::Server(_)) {
            break;
        }
        std::thread::sleep(pause);
        match Client::connect(connect) {
            Ok(client) => return Ok(client),
            Err(error) => last = error,
        }
    }
    Err(unreachable(reach, &last))
}

fn unreachable(reach: &Reach, source: &WireError) -> SandboxError {
    SandboxError::UsersServer { address: reach.address(), why: source.to_string() }
}

fn identify(client: &mut Client) -> Result<Identity, SandboxError> {
    let failed = |source| SandboxError::Variable { name: "uptime".to_owned(), source };
    let text = client
        .query("SELECT CONCAT(@@hostname, ':', @@port, ' ', @@datadir)")
        .map_err(failed)?
        .scalar()
        .map(|text| text.into_owned())
        .unwrap_or_default();
    let uptime = client.query("SHOW GLOBAL STATUS LIKE 'Uptime'").map_err(failed)?;
    let uptime = uptime.number(0, 1).unwrap_or(0);
    let now = client.query("SELECT UNIX_TIMESTAMP()").map_err(failed)?;
    let now = now.number(0, 0).unwrap_or(0);
    let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    Ok(Identity { text, started: signed(now) - signed(uptime) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reach() -> Reach {
        let connect = ConnectOptions::new(Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 1 }, "app");
        reach_of(&connect)
    }

    #[test]
    fn a_server_is_reached_again_by_its_address_account_and_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("password");
        std::fs::write(&file, "secret\n").unwrap();
        let files = vec![("password-file".to_owned(), file)];
        let options = vec![("no-defaults".to_owned(), String::new())];
        let reach = Reach { files, options, ..reach() };
        let again = resolved(&reach).unwrap();
        assert_eq!(again.endpoint, Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 1 });
        assert_eq!((again.user.as_str(), again.password.is_some()), ("app", true));
        let stored = serde_json::to_string(&reach).unwrap();
        assert!(!stored.contains("secret"), "{stored}");
        let read: Reach = serde_json::from_str(&stored).unwrap();
        assert_eq!((read.address(), &read), ("127.0.0.1:1".to_owned(), &reach));
    }

    #[test]
    fn every_mode_of_encryption_is_read_back_from_its_name() {
        for mode in [TlsMode::Disabled, TlsMode::Preferred, TlsMode::Required, TlsMode::VerifyCa] {
            assert_eq!(ssl_mode(mode).parse(), Ok(mode));
        }
    }

    #[test]
    fn a_server_that_cannot_be_reached_stays_to_be_put_back() {
        let variable = ServerVariable {
            reach: Reach { options: vec![("no-defaults".to_owned(), String::new())], ..reach() },
            identity: "x".to_owned(),
            started: 0,
            name: "sort_buffer_size".to_owned(),
            was: "1".to_owned(),
            now: "2".to_owned(),
            along: vec![],
        };
        let outcome = put_back(&variable);
        assert_eq!(outcome.closing(), None);
        assert!(outcome.why.contains("127.0.0.1:1"), "{outcome:?}");
    }
}
