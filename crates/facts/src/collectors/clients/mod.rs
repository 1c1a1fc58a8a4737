//! Clients that are connected: accounts, hosts and what their sessions are doing. No text of a statement is kept but its verb and
//! its table.

pub(super) mod hosts;
mod listed;
mod programs;
mod seen;
mod sessions;
pub mod settings;
mod why;

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::session_list::LIST;
use crate::collectors::sessions::sees_all_sessions;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Read;
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};
use listed::Session;

/// Clients by account and host.
pub static COLLECTOR: Collector = Collector {
    name: "clients",
    cost: Cost { host_ms: 1, server_ms: 5 },
    deadline_ms: 3000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.clients.by_account",
            "",
            "accounts with the most sessions: user, host (hosts of one name or network together), schema (that most of them use), sessions, asleep, asleep_long (ten minutes or more); 5 at most",
        ),
        fact(
            "server.clients.as_root",
            "",
            "sessions of root in schemas of users: host, schema, sessions, remote (whether it is another machine); 5 at most",
        ),
        fact(
            "server.clients.from_public",
            "",
            "sessions from public addresses: user, host, sessions; 5 at most",
        ),
        fact("server.clients.from_private", "count", "sessions from private addresses of other machines"),
        fact(
            "server.clients.from_test_hosts",
            "",
            "sessions from hosts whose names speak of a test, in a schema and on a server whose names do not: user, host, schema, sessions; 5 at most",
        ),
        fact("server.clients.logging_in", "count", "connections that have not logged in for 3 s or longer"),
        fact("server.clients.logging_in_from", "", "hosts of these: host, sessions, longest_s; 5 at most"),
        fact(
            "server.clients.dumping",
            "",
            "sessions that read a whole table as mysqldump and mariadb-dump do: session, user, host, runs_s, statement; 5 at most",
        ),
        fact(
            "server.clients.unfetched",
            "",
            "sessions that have waited a minute or more for their client to take the rows: session, user, host, runs_s, statement; 5 at most",
        ),
        fact(
            "server.clients.copying",
            "",
            "sessions that have copied a table for 30 s or longer to change it: session, user, host, runs_s, statement; 5 at most",
        ),
        fact(
            "server.clients.together",
            "",
            "statements that three sessions or more have run for a minute or more each: statement, user, sessions, longest_s; 5 at most",
        ),
        fact(
            "server.clients.of_events",
            "",
            "statements that two runs of events or more are at side by side (three, where the statement names no table): schema, statement, sessions, longest_s; 5 at most",
        ),
        fact(
            "server.clients.seen",
            "",
            "where nothing counts statements by their text, those that were seen most often in ten looks at the list of sessions within a fifth of a second: statement, user, times; 5 at most",
        ),
        fact(
            "server.clients.seen_with_a_fault",
            "",
            "those of them that read a table of 1,000 rows or more and whose text and indexes tell why they take long: statement, user, times, table, why",
        ),
        fact(
            "server.clients.catalogue",
            "",
            "sessions that have read the sizes of tables from information_schema for 5 s or longer: session, user, host, runs_s, statement; 5 at most",
        ),
        fact(
            "server.clients.binlog_readers",
            "",
            "sessions that read the binary log: user, host; 10 at most",
        ),
        fact(
            "server.clients.at_own_limit",
            "",
            "accounts with nine tenths or more of the sessions that they may have: user, host, permitted, sessions; 5 at most",
        ),
        fact(
            "server.clients.locked",
            "",
            "sessions of accounts that are locked: user, host, sessions; 5 at most",
        ),
    ],
    run: Run::Server(run),
};

/// Accounts with a limit of their own on sessions, and how many accounts have that user's name.
const LIMITS: &str = "SELECT a.User, a.Host, a.max_user_connections, (SELECT COUNT(*) FROM mysql.user b WHERE b.User = a.User) FROM mysql.user a WHERE a.max_user_connections > 0 LIMIT 200";

/// Users all of whose accounts are locked. The view mysql.user of MariaDB does not show which are.
const LOCKED: [Wording; 2] = [
    (
        "SELECT User FROM mysql.user GROUP BY User HAVING MIN(account_locked) = 'Y' LIMIT 200",
        &[mysql(50_706..)],
    ),
    (
        "SELECT User FROM mysql.global_priv GROUP BY User HAVING MIN(COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') IN ('1', 'true')) = 1 LIMIT 200",
        &[mariadb(100_402..)],
    ),
];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    // Without PROCESS the server shows only our own sessions.
    let rows = sees_all_sessions(sql).and_then(|()| sql.rows(LIST).map_err(|e| e.missing("PROCESS")));
    let all = match rows {
        Ok(rows) => rows.iter().filter_map(Session::of).collect::<Vec<Session>>(),
        Err(missing) => return readings.rest_is(LIST, &missing),
    };
    let put = |name: &str, value: Value| readings.put(&format!("server.clients.{name}"), LIST, Ok(value));
    put("by_account", listed::by_account(&all));
    put("as_root", listed::as_root(&all));
    put("from_public", listed::from_public(&all));
    put("from_private", listed::from_private(&all).into());
    let own = context.variable("hostname").unwrap_or_default();
    put("from_test_hosts", listed::from_test_hosts(&all, own));
    let (waiting, from) = listed::logging_in(&all);
    put("logging_in", waiting.into());
    put("logging_in_from", from);
    put("dumping", listed::named(&all, 0, Session::dumps));
    put("unfetched", listed::named(&all, 60, Session::is_unfetched));
    put("copying", listed::named(&all, 30, Session::copies_a_table));
    put("together", listed::together(&all));
    put("of_events", listed::of_events(&all));
    put("binlog_readers", listed::binlog_readers(&all));
    put("catalogue", listed::named(&all, 0, Session::reads_the_catalogue_long));
    let seen = seen::seen(context, sql, &all);
    readings.put("server.clients.seen", LIST, seen.as_ref().map(|s| s.often.clone()).map_err(Clone::clone));
    readings.put("server.clients.seen_with_a_fault", LIST, seen.map(|s| s.explained));
    let limited = sql.rows(LIMITS).map_err(|e| e.missing("SELECT on mysql.user"));
    let limited: Read<Value> =
        limited.map(|rows| rows.iter().filter_map(|row| at_limit(row, &all)).take(5).collect());
    readings.put("server.clients.at_own_limit", LIMITS, limited);
    let (asked, locked) = first_of(sql, &LOCKED);
    let locked = locked.map_err(|e| e.missing("SELECT on mysql.user")).map(|table| {
        let users: Vec<String> = table.rows.into_iter().flatten().flatten().collect();
        listed::counted(&all, |session| !session.background && users.contains(&session.user))
    });
    readings.put("server.clients.locked", asked, locked);
}

/// An account that has, or nearly has, as many sessions as it may. Where a user has several accounts, the host of the account has to
/// be that of the session.
fn at_limit(row: &Row, all: &[Session]) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    let (user, host) = (text(0)?, text(1)?);
    let permitted: u64 = text(2)?.parse().ok()?;
    let is_only = text(3)? == "1";
    let has =
        |session: &&Session| session.user == user && (is_only || session.host.eq_ignore_ascii_case(host));
    let sessions = all.iter().filter(has).count() as u64;
    (sessions > 0 && sessions * 10 >= permitted * 9)
        .then(|| json!({"user": user, "host": host, "permitted": permitted, "sessions": sessions}))
}

#[cfg(test)]
mod tests {
    use super::listed::session;
    use super::*;

    #[test]
    fn an_account_near_its_own_limit_is_told() {
        let row = |accounts: &str| -> Row {
            ["portal", "%", "20", accounts].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let all: Vec<Session> =
            (0..18).map(|_| session("portal", "10.1.1.2:99", "Sleep", 1, "", "")).collect();
        assert_eq!(
            at_limit(&row("1"), &all),
            Some(json!({"user": "portal", "host": "%", "permitted": 20, "sessions": 18}))
        );
        assert_eq!(at_limit(&row("1"), &all[1..]), None);
        assert_eq!(at_limit(&row("2"), &all), None);
    }
}
