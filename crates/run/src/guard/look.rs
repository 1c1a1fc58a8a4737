//! Reads the properties that the guard judges from a server, and from its host where that is this machine.

use std::path::Path;
use std::time::{Duration, Instant};

use mydyno_facts::Source;
use mydyno_host::{Machine, emulated, sync_delay};
use mydyno_wire::{Client, WireError};

use super::found::{Found, Others};

/// Time for connections of an earlier command to leave the server's count, and the number of readings in that time: a
/// stalled machine delays the server too.
const SETTLE: (Duration, u32) = (Duration::from_secs(1), 20);

/// Time for which activity of others is observed: twice the interval of a client that comes once a second.
pub const WATCH: Duration = Duration::from_secs(2);

/// Pause between two readings of the watch.
const PAUSE: Duration = Duration::from_millis(100);

/// Reads the properties, and observes for `watch` the activity of others. Properties that this account may not see stay
/// unknown.
///
/// # Errors
/// The connection failed; a refused statement is not an error.
pub fn look(client: &mut Client, watch: Duration) -> Result<Found, WireError> {
    let mut found = Found {
        max_connections: number(client, "SELECT @@max_connections")?,
        max_user_connections: number(client, "SELECT @@max_user_connections")?,
        max_prepared_stmt_count: number(client, "SELECT @@max_prepared_stmt_count")?,
        prepared_stmt_count: status(client, "Prepared_stmt_count")?,
        replicas: number(
            client,
            "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND LIKE 'Binlog Dump%'",
        )?,
        cluster_peers: status(client, "wsrep_cluster_size")?.map(|n| n.saturating_sub(1)),
        read_only: number(client, "SELECT @@global.read_only")?.unwrap_or(0) != 0,
        datadir: text(client, "SELECT @@datadir")?.unwrap_or_default(),
        max_allowed_packet: number(client, "SELECT @@max_allowed_packet")?,
        max_heap_table_size: number(client, "SELECT @@global.max_heap_table_size")?,
        engines: engines(client)?,
        ..Found::default()
    };
    (found.other_sessions, found.others) = others(client, watch)?;
    if let Some(pid) = client.peer_pid() {
        // Through the process's root: a server in a container has its own mounts.
        let datadir = format!("/proc/{pid}/root{}", found.datadir);
        let space = Source::live().space(&datadir).ok();
        found.disk = space.map(|s| (s.available_bytes, s.size_bytes));
        if let Ok(machine) = Machine::real() {
            found.memory = machine.available_bytes().ok();
            found.sync_delay = sync_delay::of_process(&machine, pid);
            let mut folders = vec![found.datadir.clone()];
            for (variable, is_file) in PLACES {
                let place = text(client, &format!("SELECT @@{variable}"))?;
                folders.extend(place.and_then(|place| folder_of(&found.datadir, &place, is_file)));
            }
            for folder in folders {
                let disk = emulated::below(&machine, Path::new(&format!("/proc/{pid}/root{folder}")));
                found.emulated_disks.extend(disk.filter(|disk| !found.emulated_disks.contains(disk)));
            }
        }
    }
    Ok(found)
}

/// Variables that name places outside the data directory, and whether the value is a file name prefix.
const PLACES: [(&str, bool); 4] = [
    ("innodb_data_home_dir", false),
    ("innodb_log_group_home_dir", false),
    ("innodb_undo_directory", false),
    ("log_bin_basename", true),
];

/// The folder that a variable names. Relative paths are below the data directory; an empty one is no other place.
fn folder_of(datadir: &str, value: &str, is_file: bool) -> Option<String> {
    let path = Path::new(datadir).join(value.trim());
    let folder = if is_file { path.parent()? } else { &path };
    (!value.trim().is_empty()).then(|| folder.display().to_string())
}

/// The largest number of other sessions, and their activity, during `watch`. The status counters need no privilege.
/// Connections of an earlier command get some time to end before.
fn others(client: &mut Client, watch: Duration) -> Result<(Option<u64>, Option<Others>), WireError> {
    let sessions = |client: &mut Client| {
        Ok::<_, WireError>(status(client, "Threads_connected")?.map(|n| n.saturating_sub(1)))
    };
    let (time, looks) = SETTLE;
    let mut most = sessions(client)?;
    for _ in 0..looks {
        if most.unwrap_or(0) == 0 {
            break;
        }
        std::thread::sleep(time / looks);
        most = sessions(client)?;
    }
    let (Some(before), false) = (Counters::read(client)?, watch.is_zero()) else { return Ok((most, None)) };
    let begin = Instant::now();
    loop {
        std::thread::sleep(PAUSE.min(watch));
        let Some(others) = Counters::read(client)?.map(|now| now.since(&before)) else {
            return Ok((most, None));
        };
        most = most.max(sessions(client)?);
        // Other sessions that were seen once exist; only their absence needs the whole time.
        if begin.elapsed() >= watch || most.unwrap_or(0) > 0 || others != Others::default() {
            return Ok((most, Some(others)));
        }
    }
}

/// Counters of the whole server and of this session.
struct Counters {
    connections: u64,
    statements: u64,
    own_statements: u64,
}

impl Counters {
    /// `None` when the server does not show them.
    fn read(client: &mut Client) -> Result<Option<Self>, WireError> {
        let own = match client.query("SHOW SESSION STATUS LIKE 'Questions'") {
            Ok(rows) => rows.number(0, 1),
            Err(WireError::Server(_)) => None,
            Err(e) => return Err(e),
        };
        let (all, connections) = (status(client, "Questions")?, status(client, "Connections")?);
        Ok(match (connections, all, own) {
            (Some(connections), Some(statements), Some(own_statements)) => {
                Some(Self { connections, statements, own_statements })
            }
            _ => None,
        })
    }

    /// Activity of others since an earlier reading. Both readings send the same statements in the same order, so those
    /// of this session cancel out.
    fn since(&self, before: &Self) -> Others {
        let own = self.own_statements.saturating_sub(before.own_statements);
        Others {
            connections: self.connections.saturating_sub(before.connections),
            statements: self.statements.saturating_sub(before.statements).saturating_sub(own),
        }
    }
}

fn text(client: &mut Client, sql: &str) -> Result<Option<String>, WireError> {
    match client.query(sql) {
        Ok(rows) => Ok(rows.scalar().map(|text| text.into_owned())),
        Err(WireError::Server(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

fn engines(client: &mut Client) -> Result<Vec<String>, WireError> {
    let sql = "SELECT LOWER(GROUP_CONCAT(ENGINE)) FROM information_schema.ENGINES WHERE SUPPORT IN ('YES', 'DEFAULT')";
    Ok(text(client, sql)?.map(|list| list.split(',').map(str::to_owned).collect()).unwrap_or_default())
}

fn number(client: &mut Client, sql: &str) -> Result<Option<u64>, WireError> {
    Ok(text(client, sql)?.and_then(|text| text.parse().ok()))
}

fn status(client: &mut Client, name: &str) -> Result<Option<u64>, WireError> {
    match client.query(&format!("SHOW GLOBAL STATUS LIKE '{name}'")) {
        Ok(rows) => Ok(rows.number(0, 1)),
        Err(WireError::Server(_)) => Ok(None),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_and_tablespaces_have_folders_of_their_own() {
        let of = |value, is_file| folder_of("/data/", value, is_file);
        assert_eq!(of("./", false).as_deref(), Some("/data/./"));
        assert_eq!(of("/fast/redo", false).as_deref(), Some("/fast/redo"));
        assert_eq!(of("undo", false).as_deref(), Some("/data/undo"));
        assert_eq!(of("/logs/binlog", true).as_deref(), Some("/logs"));
        assert_eq!(of("", false), None);
    }
}
