//! Accounts and stored objects that do not fit together, as counts: names are the user's own.

use serde_json::Value;

use crate::bag::Bag;
use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::source::{Missing, Read};
use crate::sql::ReadOnly;
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Definers, events, and passwords that equal the name.
pub static COLLECTOR: Collector = Collector {
    name: "objects",
    cost: Cost { host_ms: 1, server_ms: 10 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.routines.without_definer",
            "count",
            "stored routines whose definer is no account of this server",
        ),
        fact("server.events.without_definer", "count", "events whose definer is no account of this server"),
        fact("server.events.enabled", "count", "events that the scheduler is to run"),
        fact(
            "server.accounts.name_as_password",
            "count",
            "accounts whose password is their name, among those with mysql_native_password",
        ),
        fact(
            "server.accounts.may_read_files",
            "count",
            "accounts with FILE that have no SUPER: they read and write files of the server's host",
        ),
    ],
    run: Run::Server(run),
};

const ROUTINES: &str = "SELECT COUNT(*) FROM information_schema.ROUTINES o WHERE o.ROUTINE_SCHEMA NOT IN ('mysql', 'sys') AND o.DEFINER NOT IN (SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u)";
const EVENTS: &str = "SELECT COUNT(*) FROM information_schema.EVENTS o WHERE o.DEFINER NOT IN (SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u)";
const ENABLED: &str = "SELECT COUNT(*) FROM information_schema.EVENTS WHERE STATUS = 'ENABLED'";
const FILES: &str =
    "SELECT COUNT(*) FROM mysql.user WHERE File_priv = 'Y' AND Super_priv = 'N' AND User <> 'mariadb.sys'";

/// The hash of a name as a password is computed by the server and compared there: no hash leaves it.
const NAMED: [Wording; 3] = [
    (
        "SELECT COUNT(*) FROM mysql.global_priv WHERE User <> '' AND JSON_VALUE(Priv, '$.authentication_string') = CONCAT('*', UPPER(SHA1(UNHEX(SHA1(User)))))",
        &[mariadb(100_400..)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE User <> '' AND authentication_string = CONCAT('*', UPPER(SHA1(UNHEX(SHA1(User)))))",
        &[mysql(50_706..)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE User <> '' AND Password = CONCAT('*', UPPER(SHA1(UNHEX(SHA1(User)))))",
        &[mysql(50_500..).until(50_706), mariadb(50_200..).until(100_400)],
    ),
];

fn run(_: &Context, sql: &mut ReadOnly<'_>, bag: &Bag) {
    for (id, statement) in [
        ("server.routines.without_definer", ROUTINES),
        ("server.events.without_definer", EVENTS),
        ("server.events.enabled", ENABLED),
        ("server.accounts.may_read_files", FILES),
    ] {
        let rows = sql.rows(statement).map_err(|e| e.missing("SELECT on schema mysql, and EVENT"));
        bag.put(id, statement, rows.and_then(|rows| count(&rows)));
    }
    let (statement, table) = first_of(sql, &NAMED);
    let rows = table.map_err(|e| e.missing("SELECT on schema mysql")).map(|table| table.rows);
    bag.put("server.accounts.name_as_password", statement, rows.and_then(|rows| count(&rows)));
}

/// The number in the only cell.
fn count(rows: &[crate::sql::Row]) -> Read<Value> {
    let text = rows.first().and_then(|row| row.first()).cloned().flatten().unwrap_or_default();
    let number = text.parse::<u64>();
    number.map(Value::from).map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
}
