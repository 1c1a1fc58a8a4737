//! Entries of the server's lists that do not work, or should not be there: plugins, functions of libraries, folders,
//! statistics of columns, time zones.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::counted::{count, few_tables, names};
use crate::collectors::schema::more::is_leftover_schema;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Lists of the server.
pub static COLLECTOR: Collector = Collector {
    name: "registered",
    cost: Cost { host_ms: 0, server_ms: 3 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.plugins.missing",
            "",
            "plugins that INSTALL PLUGIN registered and that are not loaded: plugin, library; 20 at most",
        ),
        fact(
            "server.functions.of_shells",
            "",
            "functions of libraries that run programs or read and write files, by their names: function, library; 20 at most",
        ),
        fact(
            "server.schemas.of_folders",
            "",
            "folders in the data directory whose names are not those of schemas and that the server lists as such; 20 at most",
        ),
        fact(
            "server.schemas.leftover",
            "",
            "schemas whose names speak of a copy or of something temporary; 20 at most",
        ),
        fact(
            "server.accounts.shared_passwords",
            "",
            "accounts of other users with one and the same hash of a password (mysql_native_password); a text for each hash, 20 at most",
        ),
        fact(
            "server.accounts.plugin_missing",
            "",
            "accounts whose authentication plugin is not active, without locked ones where the server knows them and without those of several plugins (MariaDB 10.4): account, plugin; 20 at most",
        ),
        fact(
            "server.tables.outside",
            "",
            "files of tables outside the data directory, from MySQL 8.0 on; 20 at most; with more than 5,000 tables they are not asked for",
        ),
        fact("server.time_zones.names", "count", "names in the tables of time zones"),
        fact(
            "server.table_statistics.stale",
            "",
            "tables whose rows are ten times as many as in the statistics of their columns, and 10,000 or more: table, said, rows; 20 at most",
        ),
        fact(
            "server.table_statistics.one_value",
            "",
            "indexes of one column in which InnoDB's statistics know one value in 10,000 rows or more: index, rows; 20 at most",
        ),
    ],
    run: Run::Server(run),
};

const BOTH: [crate::wording::Since; 2] = [mysql(50_500..), mariadb(50_500..)];

const PLUGINS: [Wording; 1] = [(
    "SELECT p.name, p.dl FROM mysql.plugin p WHERE LOWER(p.name) NOT IN (SELECT LOWER(i.PLUGIN_NAME) FROM information_schema.PLUGINS i) ORDER BY p.name LIMIT 20",
    &BOTH,
)];

/// Of lib_mysqludf_sys and of the libraries that attackers leave.
const SHELLS: [Wording; 1] = [(
    "SELECT name, dl FROM mysql.func WHERE LOWER(name) IN ('sys_exec', 'sys_eval', 'sys_bineval', 'sys_get', 'sys_set', 'do_system', 'cmdshell', 'backshell', 'downloader', 'xpdl3', 'shell', 'open3389', 'regread') OR LOWER(dl) LIKE '%mysqludf_sys%' OR LOWER(dl) LIKE '%raptor_udf%' ORDER BY name LIMIT 20",
    &BOTH,
)];

const FOLDERS: [Wording; 1] = [(
    "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE '#mysql50#%' ORDER BY SCHEMA_NAME LIMIT 20",
    &BOTH,
)];

const SCHEMAS: [Wording; 1] =
    [("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY SCHEMA_NAME LIMIT 10000", &BOTH)];

/// The hashes stay on the server.
macro_rules! sharing {
    ($hash:literal, $from:literal) => {
        concat!(
            "SELECT GROUP_CONCAT(CONCAT(User, '@', Host) ORDER BY User, Host SEPARATOR ' ') FROM ",
            $from,
            " WHERE User <> '' AND ",
            $hash,
            " REGEXP '^[*][0-9A-Fa-f]{40}$' GROUP BY ",
            $hash,
            " HAVING COUNT(DISTINCT User) > 1 LIMIT 20"
        )
    };
}
const SHARED: [Wording; 3] = [
    (sharing!("JSON_VALUE(Priv, '$.authentication_string')", "mysql.global_priv"), &[mariadb(100_400..)]),
    (sharing!("authentication_string", "mysql.user"), &[mysql(50_706..).until(90_000)]),
    (sharing!("Password", "mysql.user"), &[mysql(50_500..).until(50_706), mariadb(50_200..).until(100_400)]),
];

/// Hexadecimal digits, because the collations of both tables differ from server to server.
macro_rules! without_plugin {
    ($plugin:literal, $of:literal) => {
        concat!(
            "SELECT CONCAT(u.User, '@', u.Host), ",
            $plugin,
            " FROM ",
            $of,
            " AND ",
            $plugin,
            " <> '' AND HEX(LOWER(",
            $plugin,
            ")) NOT IN (SELECT HEX(LOWER(p.PLUGIN_NAME)) FROM information_schema.PLUGINS p WHERE p.PLUGIN_TYPE = 'AUTHENTICATION' AND p.PLUGIN_STATUS = 'ACTIVE') ORDER BY u.User, u.Host LIMIT 20"
        )
    };
}
const WITHOUT_PLUGIN: [Wording; 3] = [
    (
        without_plugin!(
            "JSON_VALUE(u.Priv, '$.plugin')",
            "mysql.global_priv u WHERE NOT JSON_EXISTS(u.Priv, '$.auth_or') AND COALESCE(JSON_VALUE(u.Priv, '$.account_locked'), '0') NOT IN ('1', 'true')"
        ),
        &[mariadb(100_400..)],
    ),
    (without_plugin!("u.plugin", "mysql.user u WHERE u.account_locked = 'N'"), &[mysql(50_706..)]),
    (
        without_plugin!("u.plugin", "mysql.user u WHERE 1 = 1"),
        &[mysql(50_507..).until(50_706), mariadb(50_200..).until(100_400)],
    ),
];

const TIME_ZONES: [Wording; 1] = [("SELECT COUNT(*) FROM mysql.time_zone_name", &BOTH)];

/// `cardinality` is what ANALYZE TABLE … PERSISTENT counted, `n_rows` what InnoDB estimates as rows change.
const STALE: [Wording; 1] = [(
    "SELECT CONCAT(t.db_name, '.', t.table_name), t.cardinality, i.n_rows FROM mysql.table_stats t JOIN mysql.innodb_table_stats i ON i.database_name = t.db_name AND i.table_name = t.table_name WHERE i.n_rows >= 10000 AND i.n_rows >= 10 * t.cardinality AND @@GLOBAL.use_stat_tables <> 'NEVER' ORDER BY i.n_rows DESC LIMIT 20",
    &[mariadb(100_000..)],
)];

/// An index of one column has the primary key behind it. A partition may hold one value by design. The statistics of tables
/// come first, since few have so many rows and the others' indexes need not be read.
const ONE_VALUE: [Wording; 1] = [(
    "SELECT STRAIGHT_JOIN CONCAT(i.database_name, '.', i.table_name, '.', i.index_name), t.n_rows FROM mysql.innodb_table_stats t JOIN mysql.innodb_index_stats i ON i.database_name = t.database_name AND i.table_name = t.table_name AND i.stat_name = 'n_diff_pfx01' AND i.stat_value = 1 JOIN mysql.innodb_index_stats p ON p.database_name = t.database_name AND p.table_name = t.table_name AND p.index_name IN ('PRIMARY', 'GEN_CLUST_INDEX') AND p.stat_name = 'n_diff_pfx01' JOIN mysql.innodb_index_stats s ON s.database_name = t.database_name AND s.table_name = t.table_name AND s.index_name = i.index_name AND s.stat_name = 'n_diff_pfx02' AND s.stat_description = CONCAT(i.stat_description, ',', p.stat_description) WHERE t.n_rows >= 10000 AND LOWER(t.table_name) NOT LIKE '%#p#%' AND t.database_name NOT IN ('mysql', 'sys') ORDER BY t.n_rows DESC, i.database_name, i.table_name, i.index_name LIMIT 20",
    &[mysql(50_606..), mariadb(100_000..)],
)];

/// Servers with a dictionary read no file for it.
/// Paths of tables within the data directory begin with a dot.
const OUTSIDE: [Wording; 1] = [(
    "SELECT PATH FROM information_schema.INNODB_DATAFILES WHERE PATH LIKE '/%.ibd' ORDER BY PATH LIMIT 20",
    &[mysql(80_000..)],
)];

fn run(_: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, wordings, privilege, keys) in [
        ("server.plugins.missing", &PLUGINS[..], "SELECT on schema mysql", &["plugin", "library"][..]),
        ("server.functions.of_shells", &SHELLS, "SELECT on schema mysql", &["function", "library"]),
        ("server.schemas.of_folders", &FOLDERS, "SHOW DATABASES", &[]),
        ("server.accounts.plugin_missing", &WITHOUT_PLUGIN, "SELECT on mysql.user", &["account", "plugin"]),
        (
            "server.table_statistics.one_value",
            &ONE_VALUE,
            "SELECT on mysql.innodb_table_stats and mysql.innodb_index_stats",
            &["index", "rows"],
        ),
        (
            "server.table_statistics.stale",
            &STALE,
            "SELECT on mysql.table_stats and mysql.innodb_table_stats",
            &["table", "said", "rows"],
        ),
    ] {
        let (statement, found) = list(sql, wordings, privilege, keys);
        readings.put(id, statement, found);
    }
    let (statement, schemas) = list(sql, &SCHEMAS, "SHOW DATABASES", &[]);
    let leftover = |name: &Value| name.as_str().is_some_and(is_leftover_schema);
    let schemas = schemas.map(|all| all.into_iter().filter(leftover).take(20).collect::<Vec<Value>>());
    readings.put("server.schemas.leftover", statement, schemas);
    let (statement, shared) = first_of(sql, &SHARED);
    let shared = match shared {
        // MySQL 9.0 and later salt every hash.
        Err(SqlError::NotInThisVersion) => Ok(Vec::new()),
        other => other.map(|table| names(table.rows)).map_err(|e| e.missing("SELECT on schema mysql")),
    };
    readings.put("server.accounts.shared_passwords", statement, shared);
    let (statement, zones) = first_of(sql, &TIME_ZONES);
    let zones = zones.map_err(|e| e.missing("SELECT on schema mysql")).and_then(|table| count(&table.rows));
    readings.put("server.time_zones.names", statement, zones);
    let known = sql.dialect().is_none_or(|dialect| dialect.is(OUTSIDE[0].1));
    let few = if known { few_tables(sql) } else { Ok(()) };
    let outside = few.and_then(|()| list(sql, &OUTSIDE, "PROCESS", &[]).1);
    readings.put("server.tables.outside", OUTSIDE[0].0, outside);
}

/// Rows as records of these keys; without keys as names.
fn list(
    sql: &mut ReadOnly<'_>,
    wordings: &[Wording],
    privilege: &str,
    keys: &[&str],
) -> (&'static str, Read<Vec<Value>>) {
    let (statement, table) = first_of(sql, wordings);
    let rows = table.map_err(|e| -> Missing { e.missing(privilege) });
    let listed = rows.map(|table| match keys {
        [] => names(table.rows),
        keys => table.rows.iter().map(|row| record(row, keys)).collect(),
    });
    (statement, listed)
}

fn record(row: &Row, keys: &[&str]) -> Value {
    let cell = |key: &str, cell: &Option<String>| {
        let text = cell.as_deref().unwrap_or_default();
        let number = ["said", "rows"].contains(&key).then(|| text.parse::<u64>().ok()).flatten();
        number.map_or_else(|| json!(text), |number| json!(number))
    };
    let pairs = keys.iter().zip(row).map(|(key, value)| ((*key).to_owned(), cell(key, value)));
    Value::Object(pairs.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_become_records_with_numbers_as_numbers() {
        let row: Row = ["hr.staff", "2", "40000"].map(|cell| Some(cell.to_owned())).into();
        assert_eq!(
            record(&row, &["table", "said", "rows"]),
            json!({"table": "hr.staff", "said": 2, "rows": 40000})
        );
        assert_eq!(names(vec![vec![Some("hr.staff".to_owned())], vec![None]]), [json!("hr.staff")]);
    }
}
