//! How sessions of clients differ from the server's settings, by which programs they come, and whether over an encrypted
//! connection: what performance_schema tells of sessions, and InnoDB of transactions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::hosts::is_local;
use super::programs;
use super::sessions::{Client, clients, of_each_account};
use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::session_list::without_port;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Settings of sessions.
pub static COLLECTOR: Collector = Collector {
    name: "session-settings",
    cost: Cost { host_ms: 1, server_ms: 15 },
    deadline_ms: 3000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.clients.serializable",
            "",
            "accounts with sessions at isolation level SERIALIZABLE, which the server does not have: user, host, sessions; 5 at most. Settings of sessions are told by MySQL 5.7 and later, of 60 sessions at most; elsewhere those of open transactions",
        ),
        fact(
            "server.clients.unchecked",
            "",
            "accounts with sessions that do not check foreign keys, though the server does, several or for a minute: likewise",
        ),
        fact(
            "server.clients.not_strict",
            "",
            "accounts with sessions without strict sql_mode, though the server has it: likewise, from MySQL 5.7 on",
        ),
        fact(
            "server.clients.unlogged",
            "",
            "accounts with sessions whose changes do not reach the binary log (sql_log_bin): likewise",
        ),
        fact(
            "server.clients.latin1",
            "",
            "accounts with sessions that say latin1 of their client, in schemas of utf8mb4: likewise",
        ),
        fact(
            "server.clients.time_zones",
            "",
            "users whose sessions have different time zones: user, zones; 5 at most, likewise",
        ),
        fact(
            "server.clients.strict_and_not",
            "",
            "users some of whose sessions have a strict sql_mode and some have none: user, strict, not_strict; 5 at most, likewise",
        ),
        fact(
            "server.clients.old_drivers",
            "",
            "sessions of old drivers: user, host, driver, sessions; 5 at most",
        ),
        fact(
            "server.clients.by_hand",
            "",
            "sessions of tools that people use by hand, with changes that are not committed or as root from another machine: session, user, host, program, rows_modified; 5 at most",
        ),
        fact(
            "server.clients.in_clear",
            "",
            "accounts whose sessions come from other machines unencrypted: user, host, sessions; 5 at most",
        ),
        fact(
            "server.clients.connects",
            "",
            "accounts with the most connections since the start: user, host, connections; 5 at most, with performance_schema",
        ),
        fact(
            "server.clients.prepared",
            "",
            "accounts with the most open prepared statements, of those that performance_schema shows: user, host, statements, sessions; 5 at most",
        ),
        fact("server.clients.encrypted", "count", "sessions from other machines that are encrypted"),
        fact(
            "server.clients.routines",
            "",
            "procedures that two sessions or more have been calling for a minute or more: routine, sessions, longest_s; 5 at most; MySQL 5.7 and later tell it",
        ),
    ],
    run: Run::Server(run),
};

/// Open transactions with their settings.
const TRANSACTIONS: &str = "SELECT p.ID, p.USER, p.HOST, t.trx_isolation_level, t.trx_foreign_key_checks, t.trx_rows_modified, p.TIME FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id LIMIT 500";

/// Schemas whose character set is utf8mb4.
const UTF8: &str = "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE DEFAULT_CHARACTER_SET_NAME = 'utf8mb4' LIMIT 5000";

/// Calls that have run for a minute, with the procedures that they are in.
const ROUTINES: [Wording; 1] = [(
    "SELECT s.OBJECT_SCHEMA, s.OBJECT_NAME, COUNT(DISTINCT s.THREAD_ID), MAX(c.TIMER_WAIT) / 1000000000000 FROM performance_schema.events_statements_current s JOIN performance_schema.events_statements_current c ON c.THREAD_ID = s.THREAD_ID WHERE s.OBJECT_TYPE = 'PROCEDURE' AND s.END_EVENT_ID IS NULL AND c.EVENT_NAME = 'statement/sql/call_procedure' AND c.END_EVENT_ID IS NULL AND c.TIMER_WAIT >= 60000000000000 GROUP BY 1, 2 HAVING COUNT(DISTINCT s.THREAD_ID) >= 2 ORDER BY 3 DESC LIMIT 5",
    &[mysql(50_703..)],
)];

/// Connections by account since the start, or since FLUSH STATUS or TRUNCATE.
const CONNECTS: [Wording; 1] = [(
    "SELECT USER, HOST, TOTAL_CONNECTIONS FROM performance_schema.accounts WHERE USER IS NOT NULL ORDER BY TOTAL_CONNECTIONS DESC LIMIT 5",
    &[mysql(50_605..), mariadb(100_000..)],
)];

/// Open prepared statements by account.
const PREPARED: [Wording; 1] = [(
    "SELECT t.PROCESSLIST_USER, COALESCE(t.PROCESSLIST_HOST, ''), COUNT(*), COUNT(DISTINCT t.PROCESSLIST_ID) FROM performance_schema.prepared_statements_instances p JOIN performance_schema.threads t ON t.THREAD_ID = p.OWNER_THREAD_ID WHERE t.PROCESSLIST_USER IS NOT NULL AND t.PROCESSLIST_ID <> CONNECTION_ID() GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 5",
    &[mysql(50_704..), mariadb(100_502..)],
)];

/// Sessions above which 5.7, whose table has no index, is not asked.
const MANY: usize = 200;

/// How long a session has to be silent before it counts as one that stays, in seconds.
const STAYS_S: u64 = 60;

/// Entries of a list.
const LISTED: usize = 5;

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let put = |name: &str, from: &'static str, value: Read<Value>| {
        readings.put(&format!("server.clients.{name}"), from, value);
    };
    let refused = |e: SqlError| e.missing("SELECT on performance_schema");
    let is_on =
        context.variable("performance_schema").is_some_and(|v| v.eq_ignore_ascii_case("ON") || v == "1");
    let transactions = sql.rows(TRANSACTIONS).map_err(|e| e.missing("PROCESS"));
    let all = match is_on {
        true => clients(sql),
        false => Err(Missing::Absent("performance_schema is off: it tells nothing of sessions".to_owned())),
    };
    let set = all.as_ref().map_err(Clone::clone).and_then(|all| settings(sql, all));
    let level = context.variable("transaction_isolation").or_else(|| context.variable("tx_isolation"));
    let own = Own {
        is_serializable: level.is_some_and(is_serializable),
        checks: context.variable("foreign_key_checks").is_none_or(|value| !["OFF", "0"].contains(&value)),
    };
    isolation(&own, &set, &transactions, &put);
    const SETTINGS: &str = "performance_schema.variables_by_thread";
    let of = |is: &dyn Fn(&Set<'_>) -> bool| set.as_ref().map(|set| grouped(set, is)).map_err(Clone::clone);
    let strict = |text: &str| text.to_ascii_uppercase().contains("STRICT_");
    let server_is_strict = context.variable("sql_mode").is_some_and(strict);
    let not_strict = |set: &Set<'_>| {
        server_is_strict && set.has("sql_mode", |mode| !strict(mode)) && !set.client.is_command_line()
    };
    put("not_strict", SETTINGS, of(&not_strict));
    put(
        "strict_and_not",
        SETTINGS,
        set.as_ref().map(|set| strict_and_not(set, strict)).map_err(Clone::clone),
    );
    put("unlogged", SETTINGS, of(&|set| set.has("sql_log_bin", |value| value.eq_ignore_ascii_case("OFF"))));
    let utf8: BTreeSet<String> = match set.is_ok() {
        true => sql.rows(UTF8).unwrap_or_default().into_iter().flatten().flatten().collect(),
        false => BTreeSet::new(),
    };
    let latin1 = |set: &Set<'_>| {
        utf8.contains(&set.client.schema)
            && set.has("character_set_client", |value| value.eq_ignore_ascii_case("latin1"))
            && !set.client.is_command_line()
    };
    put("latin1", SETTINGS, of(&latin1));
    let system = context.variable("system_time_zone").unwrap_or_default();
    put("time_zones", SETTINGS, set.as_ref().map(|set| time_zones(set, system)).map_err(Clone::clone));
    const ATTRIBUTES: &str = "performance_schema.session_connect_attrs";
    let seen = all.as_ref().map_err(Clone::clone);
    put("old_drivers", ATTRIBUTES, seen.clone().map(|all| programs::old_drivers(all)));
    let changes = changes(&transactions);
    put("by_hand", ATTRIBUTES, seen.clone().map(|all| programs::by_hand(all, &changes)));
    const THREADS: &str = "performance_schema.threads";
    let clear = |client: &Client| client.connection == "TCP/IP" && !is_local(&client.host);
    put("in_clear", THREADS, seen.clone().map(|all| by_account(all.iter().filter(|client| clear(client)))));
    let encrypted = |client: &&Client| client.connection == "SSL/TLS" && !is_local(&client.host);
    put("encrypted", THREADS, seen.map(|all| all.iter().filter(encrypted).count().into()));
    let off = || Missing::Absent("performance_schema is off: it counts nothing".to_owned());
    let mut counted = |wording: &[Wording], entry: fn(&Row) -> Option<Value>| match is_on {
        true => first_of(sql, wording)
            .1
            .map_err(refused)
            .map(|table| table.rows.iter().filter_map(entry).collect()),
        false => Err(off()),
    };
    put("connects", "performance_schema.accounts", counted(&CONNECTS, connections));
    put("prepared", "performance_schema.prepared_statements_instances", counted(&PREPARED, prepared));
    let (asked, routines) = first_of(sql, &ROUTINES);
    put(
        "routines",
        asked,
        routines.map_err(refused).map(|table| table.rows.iter().filter_map(routine).collect()),
    );
}

/// An account with its connections.
fn connections(row: &Row) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    Some(json!({"user": text(0)?, "host": text(1)?, "connections": text(2)?.parse::<u64>().ok()?}))
}

/// An account with its open prepared statements.
fn prepared(row: &Row) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    let number = |place: usize| text(place)?.parse::<u64>().ok();
    Some(json!({"user": text(0)?, "host": text(1)?, "statements": number(2)?, "sessions": number(3)?}))
}

/// A procedure that several sessions are calling.
fn routine(row: &Row) -> Option<Value> {
    let text = |place: usize| row.get(place)?.as_deref();
    let number = |place: usize| text(place)?.split('.').next()?.parse::<u64>().ok();
    Some(json!({
        "routine": format!("{}.{}", text(0)?, text(1)?), "sessions": number(2)?, "longest_s": number(3)?,
    }))
}

/// Rows that open transactions have changed, by session.
fn changes(transactions: &Read<Vec<Row>>) -> BTreeMap<u64, u64> {
    let number = |row: &Row, place: usize| row.get(place)?.as_deref()?.parse::<u64>().ok();
    let rows = transactions.as_deref().unwrap_or_default();
    rows.iter().filter_map(|row| Some((number(row, 0)?, number(row, 5)?))).collect()
}

/// A session with those of its settings that are looked at.
struct Set<'a> {
    client: &'a Client,
    values: BTreeMap<String, String>,
}

impl Set<'_> {
    fn has(&self, name: &str, is: impl Fn(&str) -> bool) -> bool {
        self.values.get(name).is_some_and(|value| is(value))
    }
}

/// The settings of some sessions of each account.
fn settings<'a>(sql: &mut ReadOnly<'_>, all: &'a [Client]) -> Read<Vec<Set<'a>>> {
    let knows = sql.dialect().is_some_and(|dialect| dialect.is(&[mysql(50_703..)]));
    let has_index = sql.dialect().is_some_and(|dialect| dialect.is(&[mysql(80_000..)]));
    if !knows {
        let why = "this server does not tell the settings of sessions: MySQL does from 5.7 on";
        return Err(Missing::Absent(why.to_owned()));
    }
    if !has_index && all.len() > MANY {
        return Err(Missing::Absent(format!("{} sessions: their settings are not asked for", all.len())));
    }
    let some = of_each_account(all);
    if some.is_empty() {
        return Ok(Vec::new());
    }
    let threads = some.iter().map(|client| client.thread.to_string()).collect::<Vec<String>>().join(", ");
    let rows = sql
        .rows(&format!(
            "SELECT THREAD_ID, VARIABLE_NAME, COALESCE(VARIABLE_VALUE, '') FROM performance_schema.variables_by_thread WHERE THREAD_ID IN ({threads}) AND VARIABLE_NAME IN ('sql_mode', 'time_zone', 'sql_log_bin', 'foreign_key_checks', 'transaction_isolation', 'tx_isolation', 'character_set_client')"
        ))
        .map_err(|e| e.missing("SELECT on performance_schema"))?;
    let mut values: BTreeMap<u64, BTreeMap<String, String>> = BTreeMap::new();
    for row in rows {
        let [Some(thread), Some(name), Some(value)] = &row[..] else { continue };
        let Ok(thread) = thread.parse::<u64>() else { continue };
        values.entry(thread).or_default().insert(name.to_ascii_lowercase(), value.clone());
    }
    let set = some
        .into_iter()
        .map(|client| Set { client, values: values.remove(&client.thread).unwrap_or_default() });
    Ok(set.collect())
}

/// Sessions by account, those with the most first.
fn by_account<'a>(clients: impl Iterator<Item = &'a Client>) -> Value {
    let mut groups: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for client in clients {
        *groups.entry((&client.user, &client.host)).or_default() += 1;
    }
    listed(groups)
}

fn listed(groups: BTreeMap<(&str, &str), u64>) -> Value {
    let mut found: Vec<((&str, &str), u64)> = groups.into_iter().collect();
    found.sort_by_key(|(_, sessions)| std::cmp::Reverse(*sessions));
    found
        .into_iter()
        .take(LISTED)
        .map(|((user, host), sessions)| json!({"user": user, "host": host, "sessions": sessions}))
        .collect()
}

/// Accounts with sessions of a kind.
fn grouped(set: &[Set<'_>], is: &dyn Fn(&Set<'_>) -> bool) -> Value {
    by_account(set.iter().filter(|one| is(one)).map(|one| one.client))
}

/// Values that the server itself has.
struct Own {
    is_serializable: bool,
    checks: bool,
}

fn is_serializable(value: &str) -> bool {
    value.eq_ignore_ascii_case("SERIALIZABLE")
}

/// Sessions at SERIALIZABLE and sessions that do not check foreign keys: by their settings, or by those of open transactions.
fn isolation(
    own: &Own,
    set: &Read<Vec<Set<'_>>>,
    transactions: &Read<Vec<Row>>,
    put: &dyn Fn(&str, &'static str, Read<Value>),
) {
    let (all_are, checked) = (own.is_serializable, own.checks);
    if let Ok(set) = set {
        let level = |one: &Set<'_>| {
            !all_are
                && ["transaction_isolation", "tx_isolation"].iter().any(|name| one.has(name, is_serializable))
        };
        put("serializable", "performance_schema.variables_by_thread", Ok(grouped(set, &level)));
        let off = |one: &Set<'_>| {
            checked && one.has("foreign_key_checks", |value| value.eq_ignore_ascii_case("OFF"))
        };
        // A restore by the server's own clients switches the checks off while it runs.
        let restores = |one: &Set<'_>| one.client.is_command_line() && one.client.silent_s() < STAYS_S;
        let mut of_account: BTreeMap<(&str, &str), (u64, bool)> = BTreeMap::new();
        for one in set.iter().filter(|one| off(one) && !restores(one)) {
            let entry = of_account.entry((&one.client.user, &one.client.host)).or_default();
            *entry = (entry.0 + 1, entry.1 || one.client.silent_s() >= STAYS_S);
        }
        let groups = of_account.into_iter().filter(|(_, (sessions, stays))| *sessions >= 2 || *stays);
        put(
            "unchecked",
            "performance_schema.variables_by_thread",
            Ok(listed(groups.map(|(account, (sessions, _))| (account, sessions)).collect())),
        );
        return;
    }
    let of = |is: &dyn Fn(&Row) -> bool| {
        let rows = transactions.as_deref().map_err(Clone::clone)?;
        let mut groups: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for row in rows.iter().filter(|row| is(row)) {
            let text = |place: usize| row.get(place).and_then(Option::as_deref).unwrap_or_default();
            *groups.entry((text(1), without_port(text(2)))).or_default() += 1;
        }
        Ok(listed(groups))
    };
    let cell = |row: &Row, place: usize| row.get(place).cloned().flatten().unwrap_or_default();
    put("serializable", TRANSACTIONS, of(&|row| !all_are && is_serializable(&cell(row, 3))));
    let stays = |row: &Row| cell(row, 6).parse::<f64>().is_ok_and(|time| time >= STAYS_S as f64);
    put("unchecked", TRANSACTIONS, of(&|row| checked && cell(row, 4) == "0" && stays(row)));
}

/// Users whose sessions are in several time zones, a fifth of four sessions or more in each.
fn time_zones(set: &[Set<'_>], system: &str) -> Value {
    let mut of_user: BTreeMap<&str, BTreeMap<String, usize>> = BTreeMap::new();
    for one in set.iter().filter(|one| !one.client.is_command_line()) {
        let Some(zone) = one.values.get("time_zone") else { continue };
        let zone = if zone.eq_ignore_ascii_case("SYSTEM") { system } else { zone };
        let zone = if ["UTC", "GMT", "Etc/UTC", "-00:00"].contains(&zone) { "+00:00" } else { zone };
        *of_user.entry(&one.client.user).or_default().entry(zone.to_owned()).or_default() += 1;
    }
    let mixed = of_user.into_iter().filter_map(|(user, zones)| {
        let all: usize = zones.values().sum();
        let often: Vec<&String> =
            zones.iter().filter(|(_, sessions)| **sessions * 5 >= all).map(|(zone, _)| zone).collect();
        (all >= 4 && often.len() >= 2).then(|| json!({"user": user, "zones": often}))
    });
    mixed.take(LISTED).collect()
}

/// Users of whose sessions two or more are strict, and two or more are not.
fn strict_and_not(set: &[Set<'_>], strict: impl Fn(&str) -> bool) -> Value {
    let mut of_user: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for one in set.iter().filter(|one| !one.client.is_command_line()) {
        let Some(mode) = one.values.get("sql_mode") else { continue };
        let (with, without) = of_user.entry(&one.client.user).or_default();
        *if strict(mode) { with } else { without } += 1;
    }
    let mixed = of_user.into_iter().filter(|(_, (with, without))| *with.min(without) >= 2);
    let entry = |(user, (with, without))| json!({"user": user, "strict": with, "not_strict": without});
    mixed.map(entry).take(LISTED).collect()
}

#[cfg(test)]
mod tests {
    use super::super::sessions::client;
    use super::*;

    fn set<'a>(client: &'a Client, name: &str, value: &str) -> Set<'a> {
        Set { client, values: [(name.to_owned(), value.to_owned())].into() }
    }

    #[test]
    fn sessions_of_a_kind_are_told_by_account() {
        let (one, other) = (client("api", "10.1.1.1", "java"), client("bi", "10.1.1.2", "java"));
        let all = [
            set(&one, "sql_mode", ""),
            set(&one, "sql_mode", ""),
            set(&other, "sql_mode", "STRICT_ALL_TABLES"),
        ];
        let found = grouped(&all, &|set| set.has("sql_mode", str::is_empty));
        assert_eq!(found, json!([{"user": "api", "host": "10.1.1.1", "sessions": 2}]));
    }

    #[test]
    fn a_user_is_told_whose_sessions_are_strict_in_part() {
        let (one, other) = (client("api", "10.1.1.1", "java"), client("bi", "10.1.1.2", "java"));
        let mode = |client, value| set(client, "sql_mode", value);
        let mut all =
            vec![mode(&one, "STRICT_TRANS_TABLES"), mode(&one, "STRICT_TRANS_TABLES"), mode(&one, "")];
        all.extend([mode(&other, ""), mode(&other, "")]);
        let strict = |text: &str| text.contains("STRICT_");
        assert_eq!(strict_and_not(&all, strict), json!([]));
        all.push(mode(&one, ""));
        assert_eq!(strict_and_not(&all, strict), json!([{"user": "api", "strict": 2, "not_strict": 2}]));
    }

    #[test]
    fn time_zones_of_one_user_are_compared_by_what_they_mean() {
        let api = client("api", "10.1.1.1", "java");
        let zones = |names: [&str; 4]| names.map(|name| set(&api, "time_zone", name));
        assert_eq!(time_zones(&zones(["UTC", "+00:00", "SYSTEM", "GMT"]), "UTC"), json!([]));
        assert_eq!(
            time_zones(&zones(["UTC", "SYSTEM", "SYSTEM", "UTC"]), "CET"),
            json!([{"user": "api", "zones": ["+00:00", "CET"]}])
        );
    }

    #[test]
    fn a_transaction_without_checks_is_told_where_settings_of_sessions_are_not() {
        let row = |level: &str, checks: &str, time: &str| -> Row {
            ["9", "importer", "10.1.1.5:77", level, checks, "3", time]
                .map(|cell| Some(cell.to_owned()))
                .to_vec()
        };
        let rows = Ok(vec![
            row("SERIALIZABLE", "1", "1"),
            row("REPEATABLE READ", "0", "70"),
            row("REPEATABLE READ", "0", "5"),
        ]);
        assert_eq!(changes(&rows).get(&9), Some(&3));
        let told = std::cell::RefCell::new(BTreeMap::new());
        let own = Own { is_serializable: false, checks: true };
        isolation(&own, &Err(Missing::Absent(String::new())), &rows, &|name, _, value| {
            told.borrow_mut().insert(name.to_owned(), value.unwrap());
        });
        let one = json!([{"user": "importer", "host": "10.1.1.5", "sessions": 1}]);
        assert_eq!((&told.borrow()["serializable"], &told.borrow()["unchecked"]), (&one, &one));
    }
}
