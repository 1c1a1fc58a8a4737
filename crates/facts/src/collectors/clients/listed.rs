//! Clients, as the list of sessions tells of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::hosts::{is_local, is_public, speaks_of_a_test, stem};
use crate::collectors::session_list::{
    is_background, is_catalogue, is_statement, text, verb_and_table, without_port,
};
use crate::sql::Row;

/// Entries of a list.
pub(super) const LISTED: usize = 5;

/// A name of a connection that has not logged in yet.
const NOT_YET: &str = "unauthenticated user";

/// Schemas of the server's own.
const OWN: [&str; 4] = ["mysql", "information_schema", "performance_schema", "sys"];

/// States of a session whose client does not take what the server sends.
const SENDING: [&str; 2] = ["Sending to client", "Writing to net"];

/// How long a session sleeps that its program seems to have forgotten, in seconds.
const LONG_ASLEEP_S: i64 = 600;

/// How long a connection may take to log in, in seconds.
const LOGIN_S: i64 = 3;

/// How long a session may read the sizes of tables, in seconds.
const CATALOGUE_S: i64 = 5;

/// How long each of several sessions has run one statement, in seconds.
const TOGETHER_S: i64 = 60;

/// A session.
pub(super) struct Session {
    pub(super) id: u64,
    pub(super) user: String,
    pub(super) host: String,
    pub(super) schema: String,
    command: String,
    pub(super) time_s: i64,
    state: String,
    pub(super) statement: String,
    /// The first letters of the statement. No fact has them.
    pub(super) text: String,
    is_dump: bool,
    /// Whether the host stands there with the port of a connection. Within a routine the server shows its definer instead.
    by_network: bool,
    pub(super) runs: bool,
    pub(super) background: bool,
}

impl Session {
    pub(super) fn of(row: &Row) -> Option<Self> {
        let info = text(row, 7);
        let host = text(row, 2);
        Some(Self {
            id: text(row, 0).parse().ok()?,
            user: text(row, 1),
            host: without_port(&host).to_owned(),
            schema: text(row, 3),
            command: text(row, 4),
            time_s: text(row, 5).parse::<i64>().unwrap_or(0).max(0),
            state: text(row, 6),
            by_network: without_port(&host).len() < host.len(),
            is_dump: info.starts_with("SELECT /*!40001 SQL_NO_CACHE */"),
            statement: verb_and_table(&info),
            text: info,
            runs: is_statement(row),
            background: is_background(row)
                || ["Daemon", "Slave_IO", "Slave_SQL", "Slave_worker"].contains(&text(row, 4).as_str()),
        })
    }

    fn sleeps(&self) -> bool {
        self.command == "Sleep"
    }

    fn reads_binlog(&self) -> bool {
        self.command.starts_with("Binlog Dump")
    }

    fn in_schema_of_users(&self) -> bool {
        !self.schema.is_empty() && !OWN.iter().any(|own| self.schema.eq_ignore_ascii_case(own))
    }

    /// Whether it is a session of a program or a person that has logged in.
    fn is_client(&self) -> bool {
        !self.background && !self.reads_binlog() && self.user != NOT_YET && self.command != "Connect"
    }

    pub(super) fn dumps(&self) -> bool {
        self.is_dump
    }

    pub(super) fn is_unfetched(&self) -> bool {
        self.runs && !self.is_dump && SENDING.contains(&self.state.as_str())
    }

    pub(super) fn reads_the_catalogue_long(&self) -> bool {
        self.runs && self.time_s >= CATALOGUE_S && is_catalogue(&self.text)
    }

    pub(super) fn copies_a_table(&self) -> bool {
        self.runs && self.state == "copy to tmp table"
    }
}

/// Entries of `weight`, the heaviest first.
pub(super) fn heaviest(mut found: Vec<(u64, Value)>, most: usize) -> Value {
    found.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
    found.into_iter().take(most).map(|(_, entry)| entry).collect()
}

/// Sessions of a kind that have run for so many seconds, those that have run the longest first.
pub(super) fn named(all: &[Session], least_s: i64, is: impl Fn(&Session) -> bool) -> Value {
    let found = all.iter().filter(|session| session.time_s >= least_s && is(session)).map(|session| {
        let entry = json!({
            "session": session.id, "user": session.user, "host": session.host,
            "runs_s": session.time_s, "statement": session.statement,
        });
        (session.time_s.unsigned_abs(), entry)
    });
    heaviest(found.collect(), LISTED)
}

/// Sessions of a kind by user and host.
pub(super) fn counted(all: &[Session], is: impl Fn(&Session) -> bool) -> Value {
    let mut groups: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for session in all.iter().filter(|session| is(session)) {
        *groups.entry((&session.user, &session.host)).or_default() += 1;
    }
    let entry =
        |((user, host), sessions)| (sessions, json!({"user": user, "host": host, "sessions": sessions}));
    heaviest(groups.into_iter().map(entry).collect(), LISTED)
}

/// The value that is there most often.
fn commonest<'a>(values: impl Iterator<Item = &'a str>) -> &'a str {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for value in values {
        *counts.entry(value).or_default() += 1;
    }
    counts.into_iter().max_by_key(|(_, count)| *count).map_or("", |(value, _)| value)
}

/// Accounts by sessions. Hosts of one user are taken together where there are many.
pub(super) fn by_account(all: &[Session]) -> Value {
    let mut of_user: BTreeMap<&str, Vec<&Session>> = BTreeMap::new();
    for session in all.iter().filter(|session| session.is_client()) {
        of_user.entry(&session.user).or_default().push(session);
    }
    let mut found = Vec::new();
    for (user, sessions) in of_user {
        let mut hosts: Vec<&str> = sessions.iter().map(|session| session.host.as_str()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let many = hosts.len() > 2;
        let mut groups: BTreeMap<String, Vec<&Session>> = BTreeMap::new();
        for session in sessions {
            let host = if many { stem(&session.host) } else { session.host.clone() };
            groups.entry(host).or_default().push(session);
        }
        for (host, group) in groups {
            let asleep = group.iter().filter(|session| session.sleeps()).count();
            let long =
                group.iter().filter(|session| session.sleeps() && session.time_s >= LONG_ASLEEP_S).count();
            let schema = commonest(group.iter().map(|session| session.schema.as_str()));
            let entry = json!({
                "user": user, "host": host, "schema": schema, "sessions": group.len(),
                "asleep": asleep, "asleep_long": long,
            });
            found.push((group.len() as u64, entry));
        }
    }
    heaviest(found, LISTED)
}

/// Sessions of root that use a schema of users.
pub(super) fn as_root(all: &[Session]) -> Value {
    let mut groups: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for session in all {
        let of_root = session.user.eq_ignore_ascii_case("root") && session.is_client();
        let by_itself = session.by_network || session.sleeps();
        if of_root && by_itself && session.in_schema_of_users() && !session.is_dump {
            *groups.entry((&session.host, &session.schema)).or_default() += 1;
        }
    }
    let entry = |((host, schema), sessions)| {
        let entry = json!({"host": host, "schema": schema, "sessions": sessions, "remote": !is_local(host)});
        (sessions, entry)
    };
    heaviest(groups.into_iter().map(entry).collect(), LISTED)
}

/// Sessions from public addresses.
pub(super) fn from_public(all: &[Session]) -> Value {
    counted(all, |session| session.is_client() && is_public(&session.host) == Some(true))
}

/// How many sessions come from private addresses of other machines.
pub(super) fn from_private(all: &[Session]) -> usize {
    let is = |session: &&Session| {
        session.is_client() && !is_local(&session.host) && is_public(&session.host) == Some(false)
    };
    all.iter().filter(is).count()
}

/// Sessions from hosts whose names speak of a test, on a server whose name does not.
pub(super) fn from_test_hosts(all: &[Session], own: &str) -> Value {
    let mut groups: BTreeMap<(&str, &str, &str), u64> = BTreeMap::new();
    for session in all.iter().filter(|_| !speaks_of_a_test(own)) {
        let from_test = is_public(&session.host).is_none()
            && !is_local(&session.host)
            && speaks_of_a_test(&session.host)
            && !session.host.eq_ignore_ascii_case(own);
        if from_test
            && session.is_client()
            && session.in_schema_of_users()
            && !speaks_of_a_test(&session.schema)
        {
            *groups.entry((&session.user, &session.host, &session.schema)).or_default() += 1;
        }
    }
    let entry = |((user, host, schema), sessions)| {
        (sessions, json!({"user": user, "host": host, "schema": schema, "sessions": sessions}))
    };
    heaviest(groups.into_iter().map(entry).collect(), LISTED)
}

/// Connections that have not logged in for some seconds: their number, and their hosts.
pub(super) fn logging_in(all: &[Session]) -> (usize, Value) {
    let waiting: Vec<&Session> =
        all.iter().filter(|session| session.user == NOT_YET && session.time_s >= LOGIN_S).collect();
    let mut groups: BTreeMap<&str, (u64, i64)> = BTreeMap::new();
    for session in &waiting {
        let group = groups.entry(&session.host).or_default();
        *group = (group.0 + 1, group.1.max(session.time_s));
    }
    let entry = |(host, (sessions, longest_s))| {
        (sessions, json!({"host": host, "sessions": sessions, "longest_s": longest_s}))
    };
    (waiting.len(), heaviest(groups.into_iter().map(entry).collect(), LISTED))
}

/// Statements that several sessions have run for long, as jobs do that overtake themselves. What waits for a lock is told by the
/// claims on waits.
pub(super) fn together(all: &[Session]) -> Value {
    let mut groups: BTreeMap<(&str, &str), (u64, i64)> = BTreeMap::new();
    for session in all {
        let told = session.statement.contains(' ') && session.statement != "a statement";
        let waits = session.state.starts_with("Waiting for ") || session.state == "User lock";
        if session.runs && told && !waits && !session.is_dump && session.time_s >= TOGETHER_S {
            let group = groups.entry((&session.statement, &session.user)).or_default();
            *group = (group.0 + 1, group.1.max(session.time_s));
        }
    }
    let found = groups.into_iter().filter(|(_, (sessions, _))| *sessions >= 3).map(
        |((statement, user), (sessions, longest_s))| {
            let entry = json!({
                "statement": statement, "user": user, "sessions": sessions, "longest_s": longest_s,
            });
            (sessions, entry)
        },
    );
    heaviest(found.collect(), LISTED)
}

/// Statements that several events, or runs of one, are at: the server lists the session of a run as one that connects. What waits for
/// a lock that GET_LOCK gives is guarded by it. Without the name of a table a statement is alike in many events.
pub(super) fn of_events(all: &[Session]) -> Value {
    let mut groups: BTreeMap<(&str, &str), (u64, i64)> = BTreeMap::new();
    for session in all {
        let is_run = session.command == "Connect" && !session.background && session.user != NOT_YET;
        let runs = is_run && session.in_schema_of_users() && !session.statement.is_empty();
        if runs && session.statement != "a statement" && session.state != "User lock" {
            let group = groups.entry((&session.schema, &session.statement)).or_default();
            *group = (group.0 + 1, group.1.max(session.time_s));
        }
    }
    let least = |statement: &str| if statement.contains(' ') { 2 } else { 3 };
    let found = groups
        .into_iter()
        .filter(|((_, statement), (sessions, _))| *sessions >= least(statement))
        .map(|((schema, statement), (sessions, longest_s))| {
            let entry = json!({
                "schema": schema, "statement": statement, "sessions": sessions, "longest_s": longest_s,
            });
            (sessions, entry)
        });
    heaviest(found.collect(), LISTED)
}

/// Who reads the binary log.
pub(super) fn binlog_readers(all: &[Session]) -> Value {
    let readers = all.iter().filter(|session| session.reads_binlog());
    readers.take(10).map(|session| json!({"user": session.user, "host": session.host})).collect()
}

/// A session, for tests.
#[cfg(test)]
pub(super) fn session(
    user: &str,
    host: &str,
    command: &str,
    time_s: i64,
    state: &str,
    info: &str,
) -> Session {
    let time = time_s.to_string();
    let row: Row =
        ["7", user, host, "shop", command, &time, state, info].map(|cell| Some(cell.to_owned())).to_vec();
    Session::of(&row).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_pools_are_told_by_account_and_deployment() {
        let hosts = ["app-7f9c-a:1", "app-7f9c-b:2", "app-7f9c-c:3", "app-7f9c-c:4"];
        let mut all: Vec<Session> =
            hosts.iter().map(|host| session("app", host, "Sleep", 3600, "", "")).collect();
        all.push(session("report", "bi:5", "Query", 3, "", "SELECT 1"));
        all.push(session("system user", "", "Connect", 3, "", ""));
        let found = by_account(&all);
        assert_eq!(
            found,
            json!([
                {"user": "app", "host": "app-7f9c-*", "schema": "shop", "sessions": 4, "asleep": 4, "asleep_long": 4},
                {"user": "report", "host": "bi", "schema": "shop", "sessions": 1, "asleep": 0, "asleep_long": 0},
            ])
        );
    }

    #[test]
    fn sessions_of_root_in_a_schema_of_users_are_told_with_their_host() {
        let all = [
            session("root", "10.1.1.12:1", "Sleep", 1, "", ""),
            session("root", "10.1.1.12:2", "Query", 1, "", "SELECT 1"),
            session("root", "%", "Query", 1, "", "SELECT 1"),
            session("root", "localhost", "Query", 1, "", "SELECT /*!40001 SQL_NO_CACHE */ * FROM t"),
            session("app", "localhost", "Query", 1, "", "SELECT 1"),
        ];
        assert_eq!(
            as_root(&all),
            json!([{"host": "10.1.1.12", "schema": "shop", "sessions": 2, "remote": true}])
        );
    }

    #[test]
    fn foreign_clients_and_those_that_never_log_in_are_told() {
        let all = [
            session("report", "203.0.113.77:1", "Sleep", 1, "", ""),
            session("app", "10.20.1.2:2", "Sleep", 1, "", ""),
            session("app", "stg-web-02:2", "Sleep", 1, "", ""),
            session("unauthenticated user", "10.1.2.3:3", "Connect", 9, "login", ""),
            session("unauthenticated user", "10.1.2.3:4", "Connect", 1, "login", ""),
        ];
        assert_eq!(from_public(&all), json!([{"user": "report", "host": "203.0.113.77", "sessions": 1}]));
        assert_eq!(from_private(&all), 1);
        assert_eq!(from_test_hosts(&all, "db1").as_array().map(Vec::len), Some(1));
        assert_eq!(from_test_hosts(&all, "stg-db1"), json!([]));
        assert_eq!(logging_in(&all), (1, json!([{"host": "10.1.2.3", "sessions": 1, "longest_s": 9}])));
    }

    #[test]
    fn runs_of_an_event_beside_each_other_are_told() {
        let run = |info: &str, state: &str| session("dba", "localhost", "Connect", 30, state, info);
        let all = [
            run("DELETE FROM gps WHERE at < NOW()", "Updating"),
            run("DELETE FROM gps WHERE at < NOW()", "Updating"),
            run("SELECT SLEEP(40)", "User sleep"),
            run("SELECT SLEEP(40)", "User sleep"),
            run("DO GET_LOCK('gps', 60)", "User lock"),
            run("DO GET_LOCK('gps', 60)", "User lock"),
            run("DO GET_LOCK('gps', 60)", "User lock"),
            session("system user", "", "Connect", 30, "", "DELETE FROM gps"),
        ];
        let expected =
            json!([{"schema": "shop", "statement": "DELETE of gps", "sessions": 2, "longest_s": 30}]);
        assert_eq!(of_events(&all), expected);
    }

    #[test]
    fn statements_that_stand_still_or_run_together_are_told() {
        let call = || session("cron", "app:1", "Query", 61, "Sending data", "CALL sp_nightly(7)");
        let all = [
            call(),
            call(),
            call(),
            session("bi", "bi:1", "Query", 7200, "Sending to client", "SELECT * FROM sales"),
            session("bi", "bi:1", "Query", 59, "Writing to net", "SELECT * FROM sales"),
            session("dba", "dba:1", "Query", 30, "copy to tmp table", "ALTER TABLE t ADD a INT"),
        ];
        assert_eq!(
            together(&all),
            json!([{"statement": "CALL sp_nightly", "user": "cron", "sessions": 3, "longest_s": 61}])
        );
        let catalogue = "SELECT SUM(data_length) FROM information_schema.TABLES";
        let sizes = [session("zabbix", "h:1", "Query", 25, "", catalogue)];
        assert_eq!(named(&sizes, 0, Session::reads_the_catalogue_long)[0]["user"], json!("zabbix"));
        let found = named(&all, 60, Session::is_unfetched);
        assert_eq!(found.as_array().map(Vec::len), Some(1));
        assert_eq!(found[0]["statement"], json!("SELECT of sales"));
        assert_eq!(named(&all, 30, Session::copies_a_table)[0]["statement"], json!("ALTER TABLE t"));
    }
}
