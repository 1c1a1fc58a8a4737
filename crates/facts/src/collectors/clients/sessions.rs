//! Sessions of clients in performance_schema, with the attributes of their connections.

use std::collections::BTreeMap;

use crate::source::Read;
use crate::sql::{ReadOnly, Row, SqlError};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Sessions whose settings are read, and those of one account.
const SETTINGS_OF: usize = 60;
const OF_ACCOUNT: usize = 10;

const THREADS: [Wording; 1] = [(
    "SELECT THREAD_ID, PROCESSLIST_ID, PROCESSLIST_USER, COALESCE(PROCESSLIST_HOST, ''), COALESCE(PROCESSLIST_DB, ''), COALESCE(PROCESSLIST_COMMAND, ''), COALESCE(PROCESSLIST_TIME, 0), COALESCE(PROCESSLIST_STATE, ''), COALESCE(CONNECTION_TYPE, '') FROM performance_schema.threads WHERE TYPE = 'FOREGROUND' AND PROCESSLIST_ID IS NOT NULL AND PROCESSLIST_ID <> CONNECTION_ID() AND PROCESSLIST_USER IS NOT NULL AND COALESCE(PROCESSLIST_COMMAND, '') <> 'Daemon' AND PROCESSLIST_USER NOT IN ('event_scheduler', 'system user', 'unauthenticated user') LIMIT 5000",
    &[mysql(50_703..), mariadb(100_502..)],
)];

const ATTRIBUTES: [Wording; 1] = [(
    "SELECT PROCESSLIST_ID, ATTR_NAME, COALESCE(ATTR_VALUE, '') FROM performance_schema.session_connect_attrs WHERE ATTR_NAME IN ('_client_name', '_client_version', 'program_name') LIMIT 20000",
    &[mysql(50_606..), mariadb(100_005..)],
)];

/// Programs of the command line.
const COMMAND_LINE: [&str; 9] = [
    "mysql",
    "mariadb",
    "mysqldump",
    "mariadb-dump",
    "mydumper",
    "myloader",
    "mysqlimport",
    "mysqlsh",
    "mysqlbinlog",
];

/// A session of a client.
#[derive(Default)]
pub(super) struct Client {
    pub(super) thread: u64,
    pub(super) session: u64,
    pub(super) user: String,
    pub(super) host: String,
    pub(super) schema: String,
    command: String,
    time_s: u64,
    state: String,
    pub(super) connection: String,
    attributes: BTreeMap<String, String>,
}

impl Client {
    fn of(row: &Row) -> Option<Self> {
        let text = |place: usize| row.get(place)?.clone();
        Some(Self {
            thread: text(0)?.parse().ok()?,
            session: text(1)?.parse().ok()?,
            user: text(2)?,
            host: text(3)?,
            schema: text(4)?,
            command: text(5)?,
            time_s: text(6)?.parse().unwrap_or(0),
            state: text(7)?,
            connection: text(8)?,
            attributes: BTreeMap::new(),
        })
    }

    /// An attribute of the connection, empty where the client does not send it.
    pub(super) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// Whether it is one of the server's own clients, or of those that dump and load.
    pub(super) fn is_command_line(&self) -> bool {
        COMMAND_LINE.contains(&self.attribute("program_name"))
    }

    /// How long it has run no statement, in seconds.
    pub(super) fn silent_s(&self) -> u64 {
        if self.command == "Sleep" || self.state == "User sleep" { self.time_s } else { 0 }
    }
}

/// All sessions of clients.
pub(super) fn clients(sql: &mut ReadOnly<'_>) -> Read<Vec<Client>> {
    let refused = |e: SqlError| e.missing("SELECT on performance_schema");
    let rows = first_of(sql, &THREADS).1.map_err(refused)?.rows;
    let mut all: Vec<Client> = rows.iter().filter_map(Client::of).collect();
    let mut attributes: BTreeMap<u64, BTreeMap<String, String>> = BTreeMap::new();
    for row in first_of(sql, &ATTRIBUTES).1.map(|table| table.rows).unwrap_or_default() {
        let [Some(session), Some(name), Some(value)] = &row[..] else { continue };
        let Ok(session) = session.parse::<u64>() else { continue };
        attributes.entry(session).or_default().insert(name.clone(), value.clone());
    }
    for client in &mut all {
        client.attributes = attributes.remove(&client.session).unwrap_or_default();
    }
    all.retain(|client| client.attribute("program_name") != "mydyno");
    Ok(all)
}

/// Some sessions of each account, so that one large pool does not hide the others.
pub(super) fn of_each_account(all: &[Client]) -> Vec<&Client> {
    let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut ranked: Vec<(usize, &Client)> = all
        .iter()
        .map(|client| {
            let before = seen.entry((&client.user, &client.host)).or_default();
            *before += 1;
            (*before, client)
        })
        .filter(|(place, _)| *place <= OF_ACCOUNT)
        .collect();
    ranked.sort_by_key(|(place, _)| *place);
    ranked.into_iter().take(SETTINGS_OF).map(|(_, client)| client).collect()
}

/// A session, for tests.
#[cfg(test)]
pub(super) fn client(user: &str, host: &str, program: &str) -> Client {
    let attributes = [("program_name".to_owned(), program.to_owned())].into();
    Client { user: user.to_owned(), host: host.to_owned(), attributes, ..Client::default() }
}

/// A session of a driver, for tests.
#[cfg(test)]
pub(super) fn driven(name: &str, version: &str) -> Client {
    let mut client = client("erp", "10.1.1.1", "");
    client.attributes.insert("_client_name".to_owned(), name.to_owned());
    client.attributes.insert("_client_version".to_owned(), version.to_owned());
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_pool_does_not_hide_other_accounts() {
        let mut all: Vec<Client> = (0..100).map(|_| client("app", "10.1.1.1", "java")).collect();
        all.push(client("importer", "10.1.1.2", "php"));
        let some = of_each_account(&all);
        assert_eq!(some.len(), 11);
        assert!(some.iter().any(|client| client.user == "importer"));
    }
}
