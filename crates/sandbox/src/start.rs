//! Starts a server and waits until its own account can log in.

use std::fs::{self, File};
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use mydyno_host::cgroup::MadeGroup;
use mydyno_host::process::{self, OtherUser, Placement, Started};
use mydyno_host::sync_delay;

use crate::arrangement::{Arrangement, environment};
use crate::connect::{self, Attempt};
use crate::error::SandboxError;
use crate::find::Install;
use crate::folder::ServerFolder;
use crate::log;
use crate::program::{base_command, how_it_ended, owner_option};
use crate::quirks::{When, options};
use crate::settings::Setting;
use crate::site::{Progress, Site};

/// Time limit until a server accepts connections. Slow disks and large buffer pools need tens of seconds.
const READY_PATIENCE: Duration = Duration::from_secs(120);
/// The number of syncs during a start: MySQL 9.7 makes 148.
const SYNCS_OF_A_START: u32 = 300;
/// Ports that are tried. Each is free when it is chosen, but another program may take it.
const PORT_ATTEMPTS: usize = 5;

/// A server that accepts connections.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) started: Started,
    pub(crate) port: u16,
    /// The result of `SELECT VERSION()`.
    pub(crate) version: String,
}

/// The settings, place and group that a server starts with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StartOptions<'a> {
    pub(crate) settings: &'a [Setting],
    pub(crate) arrangement: &'a Arrangement,
    pub(crate) group: Option<&'a MadeGroup>,
}

/// Starts the server of a folder and waits until it accepts connections.
pub(crate) fn start(
    site: &Site,
    install: &Install,
    given: &StartOptions,
    folder: &ServerFolder,
    purpose: &str,
    password: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<Ready, SandboxError> {
    let user = given.arrangement.other_user()?;
    if let Some(user) = &user {
        // The library too: the umask may have denied others to read it.
        let of_delays = given.arrangement.sync_delay.map(|_| [sync_delay::library, sync_delay::count_file]);
        let of_delays = of_delays.iter().flatten().map(|file| file(folder.path()));
        for file in of_delays.chain([folder.init_file()]) {
            user.own(&file)?;
        }
    }
    let _span = tracing::debug_span!("start server", program = ?install.program).entered();
    let folders = folder.places();
    for _ in 0..PORT_ATTEMPTS {
        let port = free_port()?;
        tracing::debug!(port, "starting");
        progress(Progress::Starting { port });
        let owner = if user.is_none() { owner_option() } else { None };
        let command = command(install, given, folder, port, owner)?;
        let placement = Placement {
            group: given.group,
            scheduling: &given.arrangement.scheduling,
            limits: &given.arrangement.process_limits,
            memory_policy: given.arrangement.memory_policy.as_ref(),
            user: user.as_ref().map(|user| OtherUser { user, folders: &folders }),
        };
        let mut started = process::start_placed(site.journal, site.lease, purpose, command, &placement)?;
        let delays = given.arrangement.sync_delay.unwrap_or_default() * SYNCS_OF_A_START;
        match wait_ready(site, &mut started, folder, password, READY_PATIENCE + delays) {
            Ok(version) => {
                if let Some(user) = &user {
                    user.read_back(site.lease.machine(), started.identity.pid, &install.program)?;
                }
                return Ok(Ready { started, port, version });
            }
            Err(SandboxError::Ended { .. }) if port_was_taken(&folder.log()) => {
                site.undo_one(started.id)?;
                let _ = fs::remove_file(folder.log());
            }
            Err(error) => return Err(error),
        }
    }
    Err(SandboxError::NoPort { attempts: PORT_ATTEMPTS })
}

fn command(
    install: &Install,
    given: &StartOptions,
    folder: &ServerFolder,
    port: u16,
    owner: Option<&str>,
) -> Result<Command, SandboxError> {
    let path = folder.log();
    let io = |e| SandboxError::io("create", &path, e);
    let log = File::create_new(&path).map_err(io)?;
    let errors = log.try_clone().map_err(io)?;
    let mut command = base_command(install);
    for (name, value) in environment(given.arrangement, folder.path())? {
        if value.is_empty() {
            command.env_remove(name);
        } else {
            command.env(name, value);
        }
    }
    command.args(options(&install.engine, When::Start)).args(owner);
    // The user's options come first, so that those that make the server private take precedence.
    command.args(given.settings.iter().map(Setting::option));
    let file = |option: &str, path: &Path| format!("--{option}={}", path.display());
    command.args([
        file("datadir", &folder.data()),
        file("tmpdir", &folder.tmp()),
        file("socket", &folder.socket()?),
        file("pid-file", &folder.pid_file()),
        file("init-file", &folder.init_file()),
        format!("--port={port}"),
        "--bind-address=127.0.0.1".to_owned(),
        "--skip-name-resolve".to_owned(),
    ]);
    command.current_dir(folder.path()).stdin(Stdio::null()).stdout(log).stderr(errors);
    Ok(command)
}

fn wait_ready(
    site: &Site,
    started: &mut Started,
    folder: &ServerFolder,
    password: &str,
    patience: Duration,
) -> Result<String, SandboxError> {
    let options = connect::options(folder.socket()?, password);
    let begin = Instant::now();
    loop {
        site.check_cancelled()?;
        let ended = started.child.try_wait().map_err(|e| SandboxError::io("wait for", "the server", e))?;
        if let Some(status) = ended {
            let log = log::reasons(&folder.log(), password);
            return Err(SandboxError::Ended { how: how_it_ended(status), log });
        }
        let last = match connect::attempt(&options) {
            Attempt::Ready(version) => return Ok(version),
            Attempt::NotYet(why) => why,
            Attempt::Refused(source) => {
                return Err(SandboxError::Refused { source, log: log::reasons(&folder.log(), password) });
            }
        };
        if begin.elapsed() >= patience {
            let log = log::reasons(&folder.log(), password);
            return Err(SandboxError::NotReady { waited: patience, last, log });
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A port on 127.0.0.1 that is currently free.
fn free_port() -> Result<u16, SandboxError> {
    TcpListener::bind(("127.0.0.1", 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|e: io::Error| SandboxError::io("listen on", "127.0.0.1", e))
}

/// Whether the log reports that the port is in use. All series use one of these texts.
fn port_was_taken(log: &Path) -> bool {
    log::tail(log, 200).unwrap_or_default().iter().any(|line| {
        line.contains("Can't start server: Bind on TCP/IP port")
            || line.contains("Can't start server: can't bind to TCP/IP port")
            || line.contains("Do you already have another")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_taken_is_recognised_in_the_log() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "2026-11-21 [ERROR] Can't start server: Bind on TCP/IP port. Got error: 98: Address already in use\n").unwrap();
        assert!(port_was_taken(file.path()));
        fs::write(file.path(), "[ERROR] unknown variable 'x=1'\n").unwrap();
        assert!(!port_was_taken(file.path()));
    }
}
