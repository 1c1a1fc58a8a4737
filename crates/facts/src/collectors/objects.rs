//! Accounts and stored objects that do not fit together.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::counted::count;
use crate::collectors::passwords;
use crate::collectors::schema::statistics::statistics;
use crate::collectors::sessions::listed;
use crate::collectors::{stored_code, triggers, views};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::Missing;
use crate::sql::{ReadOnly, Row, SqlError};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Definers, events, and passwords that equal the name.
pub static COLLECTOR: Collector = Collector {
    name: "objects",
    cost: Cost { host_ms: 1, server_ms: 15 },
    deadline_ms: 4000,
    depth: Depth::Audit,
    facts: &[
        fact("server.routines.of_users", "count", "stored routines outside the server's own schemas"),
        fact("server.events.of_users", "count", "events"),
        fact(
            "server.routines.without_definer",
            "count",
            "stored routines whose definer is not an account of this server",
        ),
        fact(
            "server.triggers.without_definer",
            "count",
            "triggers whose definer is not an account of this server; with more than 5,000 tables, where the server has no dictionary, by the files of the data directory",
        ),
        fact("server.triggers.failing", "", "some of them: trigger, table, definer; 20 at most"),
        fact(
            "server.views.without_definer",
            "count",
            "views whose definer is not an account of this server; with more than 1,000 views, or 50 where the server has no dictionary and more than 5,000 tables, they are not asked for",
        ),
        fact(
            "server.views.invalid",
            "",
            "views that name tables, columns or functions that are not there; 20 at most",
        ),
        fact(
            "server.views.of_accounts",
            "",
            "views that read the table of accounts with the rights of their definer; 20 at most",
        ),
        fact(
            "server.tables.many_partitions",
            "",
            "InnoDB tables with 200 partitions or more: table, partitions; 20 at most",
        ),
        fact(
            "server.events.without_definer",
            "count",
            "events whose definer is not an account of this server",
        ),
        fact("server.definers.missing", "", "those definers, where there are any; 20 of each kind at most"),
        fact("server.events.failing", "", "events whose definer is no account: event, definer; 20 at most"),
        fact("server.routines.failing", "", "stored routines, likewise: routine, definer"),
        fact("server.views.failing", "", "views whose definer is no account: view, definer; 20 at most"),
        fact("server.events.enabled", "count", "events that the scheduler is to run"),
        fact("server.events.named", "", "those events; 20 at most"),
        fact(
            "server.events.late",
            "",
            "recurring events that are enabled and have not run for twice their interval; 20 at most",
        ),
        fact(
            "server.events.frequent",
            "",
            "recurring events that are enabled and run every 15 seconds or more often; 20 at most",
        ),
        fact("server.events.disabled", "", "events that are disabled; 20 at most"),
        fact(
            "server.events.ended",
            "",
            "events whose ENDS has passed, enabled ones too: event, ended_s (ago), every_s (from run to run, 0 where it ran once); 20 at most",
        ),
        fact(
            "server.events.of_a_source",
            "",
            "events that are disabled because they came from a source; 20 at most",
        ),
        fact(
            "server.init_connect.set",
            "count",
            "1 where the server runs statements for each new connection (init_connect), 0 where it does not; the text is not kept",
        ),
        fact(
            "server.init_connect.autocommit_off",
            "count",
            "1 where these statements switch autocommit off, 0 where they do not",
        ),
        fact(
            "server.init_connect.checks_off",
            "",
            "what else of consequence these statements set: foreign_key_checks, unique_checks or sql_log_bin to OFF, or sql_mode",
        ),
        fact(
            "server.passwords.checked_by",
            "",
            "what checks new passwords: validate_password, simple_password_check, cracklib_password_check, or none",
        ),
        fact("server.passwords.policy", "", "the policy of validate_password: LOW, MEDIUM or STRONG"),
        fact("server.passwords.shortest", "count", "characters of the shortest password that it takes"),
        fact("server.accounts.found.KIND", "", "names of accounts of a kind that was found: 20 at most"),
        fact(
            "server.accounts.name_as_password",
            "count",
            "accounts whose password is their name, among those with mysql_native_password or caching_sha2_password",
        ),
        fact(
            "server.accounts.may_read_files",
            "count",
            "accounts with FILE that have no SUPER: they read and write files of the server's host",
        ),
    ],
    run: Run::Server(run),
};

const ROUTINES_COUNTED: &str =
    "SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA NOT IN ('mysql', 'sys')";
const ROUTINES: &str = "SELECT COUNT(*) FROM information_schema.ROUTINES o WHERE o.ROUTINE_SCHEMA NOT IN ('mysql', 'sys') AND o.DEFINER NOT IN (SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u)";
const PARTITIONS: &str = "SELECT CONCAT(database_name, '.', SUBSTRING_INDEX(LOWER(table_name), '#p#', 1)) AS name, COUNT(*) FROM mysql.innodb_table_stats WHERE LOWER(table_name) LIKE '%#p#%' GROUP BY name HAVING COUNT(*) >= 200 ORDER BY COUNT(*) DESC LIMIT 20";
const EVENTS_COUNTED: &str = "SELECT COUNT(*) FROM information_schema.EVENTS";
const EVENTS: &str = "SELECT COUNT(*) FROM information_schema.EVENTS o WHERE o.DEFINER NOT IN (SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u)";
const ENABLED: &str = "SELECT COUNT(*) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'";
const INIT_CONNECT: &str =
    "SELECT COUNT(*) FROM (SELECT @@GLOBAL.init_connect AS statements) s WHERE s.statements <> ''";
const AUTOCOMMIT: &str = "SELECT COUNT(*) FROM (SELECT REPLACE(LOWER(@@GLOBAL.init_connect), ' ', '') AS statements) s WHERE s.statements REGEXP 'autocommit:?=(0|off|false)'";
const CHECKS: &str = "SELECT s.statements REGEXP 'foreign_key_checks:?=(0|off|false)', s.statements REGEXP 'unique_checks:?=(0|off|false)', s.statements REGEXP 'sql_log_bin:?=(0|off|false)', s.statements REGEXP 'sql_mode:?=' FROM (SELECT REPLACE(LOWER(@@GLOBAL.init_connect), ' ', '') AS statements) s";
/// Times of an event are in the time zone of the event.
const ENABLED_NAMES: &str = "SELECT CONCAT(EVENT_SCHEMA, '.', EVENT_NAME) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' ORDER BY EVENT_SCHEMA, EVENT_NAME LIMIT 20";
const LATE: &str = "SELECT CONCAT(EVENT_SCHEMA, '.', EVENT_NAME) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' AND EVENT_TYPE = 'RECURRING' AND COALESCE(ENDS, COALESCE(CONVERT_TZ(NOW(), @@time_zone, TIME_ZONE), NOW())) >= COALESCE(CONVERT_TZ(NOW(), @@time_zone, TIME_ZONE), NOW()) AND TIMESTAMPDIFF(SECOND, GREATEST(COALESCE(LAST_EXECUTED, CREATED), COALESCE(STARTS, CREATED), CREATED), COALESCE(CONVERT_TZ(NOW(), @@time_zone, TIME_ZONE), NOW())) > 2 * INTERVAL_VALUE * CASE INTERVAL_FIELD WHEN 'SECOND' THEN 1 WHEN 'MINUTE' THEN 60 WHEN 'HOUR' THEN 3600 WHEN 'DAY' THEN 86400 WHEN 'WEEK' THEN 604800 WHEN 'MONTH' THEN 2678400 WHEN 'QUARTER' THEN 7948800 ELSE 31622400 END AND INTERVAL_VALUE REGEXP '^[0-9]+$' ORDER BY EVENT_SCHEMA, EVENT_NAME LIMIT 20";
const FREQUENT: &str = "SELECT CONCAT(EVENT_SCHEMA, '.', EVENT_NAME) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' AND EVENT_TYPE = 'RECURRING' AND INTERVAL_FIELD = 'SECOND' AND INTERVAL_VALUE REGEXP '^([0-9]|1[0-5])$' ORDER BY EVENT_SCHEMA, EVENT_NAME LIMIT 20";
const OF_A_SOURCE: &str = "SELECT CONCAT(EVENT_SCHEMA, '.', EVENT_NAME) FROM information_schema.EVENTS WHERE STATUS IN ('SLAVESIDE_DISABLED', 'REPLICA_SIDE_DISABLED') ORDER BY EVENT_SCHEMA, EVENT_NAME LIMIT 20";
const FILES: &str =
    "SELECT COUNT(*) FROM mysql.user WHERE File_priv = 'Y' AND Super_priv = 'N' AND User <> 'mariadb.sys'";

/// The hash of a name as a password is computed by the server and compared there.
/// A MariaDB that was not upgraded has no global_priv.
const NAMED: [Wording; 3] = [
    (
        "SELECT COUNT(*) FROM mysql.global_priv WHERE User <> '' AND COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') NOT IN ('1', 'true') AND JSON_VALUE(Priv, '$.authentication_string') = CONCAT('*', UPPER(SHA1(UNHEX(SHA1(User)))))",
        &[mariadb(100_400..)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE User <> '' AND account_locked = 'N' AND authentication_string = CONCAT('*', UPPER(SHA1(UNHEX(SHA1(User)))))",
        &[mysql(50_706..).until(90_000)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE User <> '' AND BINARY Password = CONCAT('*', UPPER(SHA1(UNHEX(SHA1(User)))))",
        &[mysql(50_500..).until(50_706), mariadb(50_200..)],
    ),
];

/// The plugins or components that check passwords, recognised by their variables.
fn password_checks(context: &Context, readings: &Readings) {
    const FROM: &str = "SHOW GLOBAL VARIABLES";
    if context.variables.is_empty() {
        let missing = Missing::Error("the server's variables could not be read".to_owned());
        for id in ["server.passwords.checked_by", "server.passwords.policy", "server.passwords.shortest"] {
            readings.put::<Value>(id, FROM, Err(missing.clone()));
        }
        return;
    }
    let checks = ["validate_password", "simple_password_check", "cracklib_password_check"];
    let there = checks.into_iter().find(|check| context.variables.keys().any(|name| name.starts_with(check)));
    readings.put("server.passwords.checked_by", FROM, Ok(there.unwrap_or("none")));
    let first = |names: &[&str]| {
        let found = names.iter().find_map(|name| context.variable(name)).map(str::to_owned);
        found.ok_or_else(|| Missing::Absent("nothing that checks passwords tells it".to_owned()))
    };
    let policy = first(&["validate_password.policy", "validate_password_policy"]);
    readings.put("server.passwords.policy", FROM, policy);
    let shortest = first(&[
        "validate_password.length",
        "validate_password_length",
        "simple_password_check_minimal_length",
    ]);
    let shortest = shortest.and_then(|text| {
        text.parse::<u64>().map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
    });
    readings.put("server.passwords.shortest", FROM, shortest);
}

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    password_checks(context, readings);
    for (id, statement) in [
        ("server.init_connect.set", INIT_CONNECT),
        ("server.init_connect.autocommit_off", AUTOCOMMIT),
        ("server.accounts.may_read_files", FILES),
    ] {
        put_count(sql, id, statement, readings);
    }
    routines(sql, readings);
    checks(sql, readings);
    name_as_password(sql, readings);
    events(sql, readings);
    partitions(sql, readings);
    let of_triggers = triggers::read(context, sql, readings);
    let of_views = views::read(context, sql, readings);
    failing(sql, readings);
    definers(sql, of_triggers.into_iter().take(20).chain(of_views).collect(), readings);
    let files = readings.value("server.accounts.may_read_files").and_then(|found| found.as_u64());
    listed(sql, "server.accounts.found.may_read_files", FILES, &Ok(files.unwrap_or(0)), readings);
}

/// Accounts whose password is their name, by both kinds of hashes.
fn name_as_password(sql: &mut ReadOnly<'_>, readings: &Readings) {
    const NAMES: &str = "server.accounts.found.name_as_password";
    const ID: &str = "server.accounts.name_as_password";
    let (statement, table) = first_of(sql, &NAMED);
    let plain = match table {
        Ok(table) => count(&table.rows).map(|found| found.as_u64().unwrap_or(0)),
        // MySQL 9.0 and later have no such accounts.
        Err(SqlError::NotInThisVersion) => Ok(0),
        Err(error) => Err(error.missing("SELECT on schema mysql")),
    };
    listed(sql, NAMES, statement, &plain, readings);
    let salted = passwords::named(sql);
    let number = match (plain, &salted) {
        (Ok(0), Err(missing)) => Err(missing.clone()),
        (plain, salted) => plain.map(|plain| plain + salted.as_ref().map_or(0, |names| names.len() as u64)),
    };
    if let Ok(salted) = salted
        && !salted.is_empty()
    {
        let before = readings.value(NAMES).and_then(|names| names.as_array().cloned()).unwrap_or_default();
        let names: Vec<Value> = before.into_iter().chain(salted).take(20).collect();
        readings.put(NAMES, "the accounts' hashes", Ok(names));
    }
    readings.put(ID, "the accounts' hashes", number);
}

/// Settings that init_connect switches off; its text stays on the server.
fn checks(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let names = ["foreign_key_checks", "unique_checks", "sql_log_bin", "sql_mode"];
    let rows = sql.rows(CHECKS).map_err(|e| e.missing("SELECT"));
    let found = rows.map(|rows| {
        let row = rows.into_iter().next().unwrap_or_default();
        let set = names.into_iter().zip(row).filter(|(_, cell)| cell.as_deref() == Some("1"));
        set.map(|(name, _)| Value::from(name)).collect::<Vec<Value>>()
    });
    readings.put("server.init_connect.checks_off", CHECKS, found);
}

fn put_count(sql: &mut ReadOnly<'_>, id: &str, statement: &'static str, readings: &Readings) {
    let rows = sql.rows(statement).map_err(|e| e.missing("SELECT on schema mysql, and EVENT"));
    readings.put(id, statement, rows.and_then(|rows| count(&rows)));
}

/// How many routines there are, and how many without their definer: by those that are read for their texts, unless there are more.
fn routines(sql: &mut ReadOnly<'_>, readings: &Readings) {
    const IDS: [&str; 2] = ["server.routines.of_users", "server.routines.without_definer"];
    match (sql.shared(stored_code::ROUTINES), triggers::accounts(sql)) {
        (Ok(rows), Ok(accounts)) if rows.len() < stored_code::MOST => {
            let definer = |row: &&Row| row.get(4).and_then(Option::as_deref).map(triggers::by_host);
            let gone = rows.iter().filter(|row| definer(row).is_some_and(|name| !accounts.contains(&name)));
            readings.put(IDS[0], stored_code::ROUTINES, Ok(rows.len()));
            readings.put(IDS[1], stored_code::ROUTINES, Ok(gone.count()));
        }
        _ => {
            put_count(sql, IDS[0], ROUTINES_COUNTED, readings);
            put_count(sql, IDS[1], ROUTINES, readings);
        }
    }
}

/// Events. Most servers have none, which one statement tells.
fn events(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let lists = [
        ("server.events.named", ENABLED_NAMES),
        ("server.events.late", LATE),
        ("server.events.frequent", FREQUENT),
        ("server.events.of_a_source", OF_A_SOURCE),
    ];
    let counts = [("server.events.without_definer", EVENTS), ("server.events.enabled", ENABLED)];
    let all = sql.rows(EVENTS_COUNTED).map_err(|e| e.missing("EVENT")).and_then(|rows| count(&rows));
    readings.put("server.events.of_users", EVENTS_COUNTED, all.clone());
    if all == Ok(Value::from(0)) {
        counts.iter().for_each(|(id, _)| readings.put(id, EVENTS_COUNTED, Ok(0)));
        super::events_off::put_none(readings);
        return lists.iter().for_each(|(id, _)| readings.put(id, EVENTS_COUNTED, Ok(Vec::<Value>::new())));
    }
    counts.iter().for_each(|(id, statement)| put_count(sql, id, statement, readings));
    super::events_off::put(sql, readings);
    for (id, statement) in lists {
        let rows = sql.rows(statement).map_err(|e| e.missing("EVENT"));
        let names = rows.map(super::counted::names);
        readings.put(id, "information_schema.EVENTS", names);
    }
}

/// Names of the routines and events whose definer is no account, where there are any.
fn failing(sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, of, statement, key, name) in [
        (
            "server.routines.failing",
            "server.routines.without_definer",
            ROUTINES,
            "routine",
            "o.ROUTINE_SCHEMA, '.', o.ROUTINE_NAME",
        ),
        (
            "server.events.failing",
            "server.events.without_definer",
            EVENTS,
            "event",
            "o.EVENT_SCHEMA, '.', o.EVENT_NAME",
        ),
    ] {
        let some = readings.value(of).and_then(|found| found.as_u64()).is_some_and(|found| found > 0);
        let named = statement.replacen("COUNT(*)", &format!("CONCAT({name}), o.DEFINER"), 1);
        let rows = if some { sql.rows(&format!("{named} LIMIT 20")) } else { Ok(Vec::new()) };
        let entry = |row: &Row| {
            let text = |place: usize| row.get(place)?.as_deref();
            Some(json!({(key): text(0)?, "definer": text(1)?}))
        };
        let found = rows.map(|rows| rows.iter().filter_map(entry).collect::<Vec<Value>>());
        readings.put(
            id,
            "information_schema",
            found.map_err(|e| e.missing("SELECT on schema mysql, and EVENT")),
        );
    }
}

/// Names of the definers that are no accounts: those of routines and events, beside those of triggers and views.
fn definers(sql: &mut ReadOnly<'_>, mut missing: BTreeSet<String>, readings: &Readings) {
    const FROM: &str = "the DEFINER of routines, events, triggers and views";
    for (id, statement) in
        [("server.routines.without_definer", ROUTINES), ("server.events.without_definer", EVENTS)]
    {
        if readings.value(id).and_then(|found| found.as_u64()).is_some_and(|found| found > 0) {
            let names = statement.replacen("SELECT COUNT(*)", "SELECT DISTINCT o.DEFINER", 1);
            match sql.rows(&format!("{names} LIMIT 20")) {
                Ok(rows) => missing.extend(rows.into_iter().flatten().flatten()),
                Err(error) => {
                    let why = error.missing("SELECT on schema mysql, and EVENT");
                    return readings.put::<Value>("server.definers.missing", FROM, Err(why));
                }
            }
        }
    }
    let missing: Vec<Value> = missing.into_iter().map(Value::from).collect();
    readings.put("server.definers.missing", FROM, Ok(missing));
}

fn partitions(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let entry = |row: &Row| {
        let partitions = row.get(1)?.as_deref()?.parse::<u64>().ok()?;
        Some(json!({"table": row.first()?.as_deref()?, "partitions": partitions}))
    };
    let found = statistics(sql, PARTITIONS)
        .map(|rows| rows.iter().filter_map(entry).collect::<Vec<Value>>())
        .map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"));
    readings.put("server.tables.many_partitions", "mysql.innodb_table_stats", found);
}
