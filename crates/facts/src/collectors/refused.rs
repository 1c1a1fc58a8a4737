//! Refusals of the server: hosts, logins and requests beyond a limit, as it counts them itself.

use std::time::Duration;

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Refusals.
pub static COLLECTOR: Collector = Collector {
    name: "refused",
    cost: Cost { host_ms: 0, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.hosts.blocked",
            "",
            "hosts whose connections the server refuses for interrupted handshakes (error 1129): host, errors; 20 at most",
        ),
        fact(
            "server.hosts.interrupted",
            "count",
            "most interrupted handshakes in a row that the host cache counts of one host",
        ),
        fact(
            "server.errors.of_limits",
            "",
            "errors of limits that the server has raised since the start: number, name, count (1129, 1153, 1203, 1226, 1436, 1526)",
        ),
        fact(
            "server.errors.denied_accounts",
            "",
            "accounts whose logins were refused 5 times or more since the start: account, count; 5 at most",
        ),
        fact(
            "server.errors.limited_accounts",
            "",
            "accounts that met a limit on their connections or statements (1203, 1226): account, number, count; 5 at most",
        ),
        fact(
            "server.errors.vanished_users",
            "",
            "users whose clients vanished while the server read from them (1158): user, count; 5 at most",
        ),
        fact(
            "server.errors.range_users",
            "",
            "users whose statements had more ranges than range_optimizer_max_mem_size holds (3170): user, count; 5 at most",
        ),
    ],
    run: Run::Server(run),
};

/// A host is blocked from the error on at which its count reaches the limit. Without names there is no cache.
const BLOCKED: [Wording; 1] = [(
    "SELECT CONCAT(IP, IF(COALESCE(HOST, '') = '', '', CONCAT(' (', HOST, ')'))), SUM_CONNECT_ERRORS FROM performance_schema.host_cache WHERE SUM_CONNECT_ERRORS >= @@GLOBAL.max_connect_errors ORDER BY SUM_CONNECT_ERRORS DESC LIMIT 20",
    &[mysql(50_605..), mariadb(100_000..)],
)];
const INTERRUPTED: [Wording; 1] = [(
    "SELECT COALESCE(MAX(SUM_CONNECT_ERRORS), 0) FROM performance_schema.host_cache",
    &[mysql(50_605..), mariadb(100_000..)],
)];
const OF_LIMITS: [Wording; 1] = [(
    "SELECT ERROR_NUMBER, ERROR_NAME, SUM_ERROR_RAISED FROM performance_schema.events_errors_summary_global_by_error WHERE ERROR_NUMBER IN (1129, 1153, 1203, 1226, 1436, 1526) AND SUM_ERROR_RAISED > 0 ORDER BY SUM_ERROR_RAISED DESC",
    &[mysql(80_001..)],
)];
/// The server makes a row of each of some 5,000 errors for each account, and again for each user. Some servers count a refused
/// login for no account, which says nothing here.
const BY_ACCOUNT: [Wording; 1] = [(
    "SELECT CONCAT(USER, '@', HOST), ERROR_NUMBER, SUM_ERROR_RAISED FROM performance_schema.events_errors_summary_by_account_by_error WHERE ERROR_NUMBER IN (1045, 1203, 1226) AND SUM_ERROR_RAISED > 0 AND USER IS NOT NULL AND HOST IS NOT NULL ORDER BY SUM_ERROR_RAISED DESC LIMIT 500",
    &[mysql(80_001..)],
)];
const BY_USER: [Wording; 1] = [(
    "SELECT USER, ERROR_NUMBER, SUM_ERROR_RAISED FROM performance_schema.events_errors_summary_by_user_by_error WHERE ERROR_NUMBER IN (1158, 3170) AND SUM_ERROR_RAISED > 0 AND USER IS NOT NULL ORDER BY SUM_ERROR_RAISED DESC LIMIT 500",
    &[mysql(80_001..)],
)];

/// Time of one statement.
const LONGEST: Duration = Duration::from_millis(250);

fn run(_: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, wordings, keys) in [
        ("server.hosts.blocked", &BLOCKED[..], &["host", "errors"][..]),
        ("server.errors.of_limits", &OF_LIMITS, &["number", "name", "count"]),
    ] {
        let (statement, table) = first_of(sql, wordings);
        let found = table
            .map(|table| table.rows.iter().map(|row| record(row, keys)).collect::<Vec<Value>>())
            .map_err(|e| e.missing("SELECT on performance_schema"));
        readings.put(id, statement, found);
    }
    let account = ["account", "number", "count"];
    let user = ["user", "number", "count"];
    by_name(
        sql,
        &BY_ACCOUNT,
        readings,
        &[
            ("server.errors.denied_accounts", &account, &[1045], 5),
            ("server.errors.limited_accounts", &account, &[1203, 1226], 1),
        ],
    );
    by_name(
        sql,
        &BY_USER,
        readings,
        &[
            ("server.errors.vanished_users", &user, &[1158], 1),
            ("server.errors.range_users", &user, &[3170], 1),
        ],
    );
    let (statement, table) = first_of(sql, &INTERRUPTED);
    let most = table
        .map_err(|e| e.missing("SELECT on performance_schema"))
        .and_then(|table| super::counted::count(&table.rows));
    readings.put("server.hosts.interrupted", statement, most);
}

/// A fact, the keys of its entries, the numbers of its errors, and the least count.
type ByName<'a> = (&'a str, &'a [&'a str], &'a [u64], u64);

/// Puts facts that one statement tells: the five most frequent of each.
fn by_name(sql: &mut ReadOnly<'_>, wordings: &[Wording], readings: &Readings, facts: &[ByName<'_>]) {
    sql.at_most(Some(LONGEST));
    let (statement, table) = first_of(sql, wordings);
    sql.at_most(None);
    let table = table.map_err(|e| e.missing("SELECT on performance_schema"));
    for (id, keys, numbers, least) in facts {
        let of = |entry: &Value| {
            let number = |key: &str| entry[key].as_u64().unwrap_or(0);
            numbers.contains(&number("number")) && number("count") >= *least
        };
        let found = table.as_ref().map_err(Clone::clone).map(|table| {
            let all = table.rows.iter().map(|row| record(row, keys)).filter(of);
            let mut all = all.take(5).collect::<Vec<Value>>();
            // Where there is one number, the fact's name says it.
            for entry in all.iter_mut().filter(|_| numbers.len() == 1) {
                entry.as_object_mut().map(|entry| entry.remove("number"));
            }
            all
        });
        readings.put(id, statement, found);
    }
}

/// A row as a record; cells that are numbers become such.
fn record(row: &Row, keys: &[&str]) -> Value {
    let cell = |(key, cell): (&&str, &Option<String>)| {
        let text = cell.as_deref().unwrap_or_default();
        let number = ["errors", "count", "number"].contains(key).then(|| text.parse::<u64>().ok()).flatten();
        ((*key).to_owned(), number.map_or_else(|| json!(text), |number| json!(number)))
    };
    Value::Object(keys.iter().zip(row).map(cell).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::only_reads;

    #[test]
    fn every_statement_only_reads() {
        for (statement, _) in [BLOCKED, INTERRUPTED, OF_LIMITS, BY_ACCOUNT, BY_USER].into_iter().flatten() {
            assert!(only_reads(statement), "{statement}");
        }
    }

    #[test]
    fn counts_are_numbers_and_names_stay_text() {
        let row: Row = ["12", "12"].map(|cell| Some(cell.to_owned())).into();
        assert_eq!(record(&row, &["account", "count"]), json!({"account": "12", "count": 12}));
    }
}
