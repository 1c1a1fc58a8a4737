//! Connected users, replicas, accounts, plugins and engines, and the origin of variables' values. Counts and names of
//! the server's own parts only: no statement text, no password hash.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::replication;
use crate::collectors::server::typed;
use crate::collectors::session_list::{LIST, running_long, summed, user_locks, waiting};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::secrets;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, quoted};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Sessions, replication, accounts, plugins, origins.
pub static COLLECTOR: Collector = Collector {
    name: "sessions",
    cost: Cost { host_ms: 2, server_ms: 15 },
    deadline_ms: 5000,
    depth: Depth::Audit,
    facts: &[
        fact("server.sessions.total", "count", "sessions, background threads included"),
        fact("server.sessions.sleeping", "count", "sessions that wait for their client"),
        fact(
            "server.sessions.longest_query_s",
            "s",
            "time that the longest statement of a client has run; 0 when there is none",
        ),
        fact(
            "server.sessions.running_long",
            "",
            "statements of clients that have run for 60 s or longer: session, user, host, runs_s, statement (its verb and its table); 5 at most",
        ),
        fact(
            "server.replicas.numbers",
            "count",
            "replicas that registered with this server, by their numbers (server_id): of several with one number the server keeps one",
        ),
        fact(
            "server.replication_unused",
            "",
            "channels of a server that takes writes which have never received anything, and stand still, or look for their source in vain while it has been written; they count as no channels: channel, io, source_host, error",
        ),
        fact(
            "server.replication_stopped",
            "",
            "channels that do not run: channel, errno, error, waiting (transactions that were fetched and not applied), since (of the error, where the server tells it)",
        ),
        fact(
            "server.replication_patterns",
            "",
            "patterns of a replica's filters that begin the names of several tables that are here: option (do, ignore), pattern, number, tables (5), mixed (whether some of the names speak of logs, caches or the like and others do not)",
        ),
        fact(
            "server.replication_wildcards",
            "",
            "filters of tables by a pattern whose _ stands for any character and which match tables by that: option (do, ignore), pattern, tables; 20 at most",
        ),
        fact("server.sessions.binlog_dumps", "count", "replicas that are reading the binary log"),
        fact("server.sessions.metadata_lock_waits", "count", "sessions that wait for a metadata lock"),
        fact(
            "server.sessions.metadata_lock_wait_longest_s",
            "s",
            "how long the longest of them has waited; 0 when there is none",
        ),
        fact(
            "server.sessions.global_lock_waits",
            "count",
            "sessions that wait for the global read lock, a backup lock or a flush of tables",
        ),
        fact(
            "server.sessions.global_lock_wait_longest_s",
            "s",
            "how long the longest of them has waited; 0 when there is none",
        ),
        fact("server.sessions.appliers_at_global_lock", "count", "threads of replication among them"),
        fact(
            "server.sessions.table_lock_waits",
            "count",
            "sessions that wait for another statement on a table whose engine locks whole tables, as MyISAM does",
        ),
        fact(
            "server.sessions.table_lock_wait_longest_s",
            "s",
            "how long the longest of them has waited; 0 when there is none",
        ),
        fact(
            "server.sessions.metadata_waiting",
            "",
            "those that have waited the longest for a metadata lock: session, user, host, waits_s, statement (its verb and its table); 5 at most",
        ),
        fact(
            "server.sessions.asleep_long",
            "count",
            "sessions that have waited ten minutes or more for their client",
        ),
        fact("server.sessions.user_lock_waits", "count", "sessions that wait in GET_LOCK()"),
        fact(
            "server.sessions.user_locks",
            "",
            "the locks that they wait for, as far as their statements show the names: lock, session (that holds it); 5 at most",
        ),
        fact(
            "server.sessions.user_lock_wait_longest_s",
            "s",
            "how long the longest of them has waited; 0 when there is none",
        ),
        fact(
            "server.sessions.dumps",
            "count",
            "sessions that read a whole table as mysqldump and mariadb-dump do",
        ),
        fact(
            "server.replication.channels",
            "count",
            "channels that this server replicates from; 0 is no replica",
        ),
        fact(
            "server.replication.CHANNEL.NAME",
            "",
            "state of a channel: io_running, sql_running, lag_s, delay_s (as ordered), heartbeat_s (how often a source without news says so), last_errno, last_io_errno, last_error, last_io_error, gtid_mode, encrypted, user (of the source), applier_state (what the applier is doing, in the server's words), until (condition), skips (events that are still to be skipped), retry_s (between attempts to connect), source_id (server_id of the source), waiting_transactions and waiting_bytes (fetched and not yet applied), worker_error, filters",
        ),
        fact(
            "server.gtid.own",
            "count",
            "on a replica, in MySQL transactions with this server's own id, in MariaDB domains whose last one has it",
        ),
        fact(
            "server.gtid.own_ids",
            "",
            "these transactions by their global ids; in MariaDB the last one of each domain",
        ),
        fact("server.accounts.total", "count", "accounts, roles included"),
        fact("server.accounts.anonymous", "count", "accounts without a user name"),
        fact("server.accounts.from_anywhere", "count", "accounts that may come from any host"),
        fact(
            "server.accounts.administrators_from_anywhere",
            "count",
            "accounts with SUPER that may come from any host and are not locked",
        ),
        fact(
            "server.accounts.by_host_name",
            "count",
            "accounts for the name of a host, which match only where names are looked up; localhost is none",
        ),
        fact(
            "server.accounts.test_grants",
            "count",
            "grants to everybody on schemas whose names begin with test",
        ),
        fact("server.accounts.without_password", "count", "accounts that log in without a password"),
        fact("server.accounts.listed.KIND", "", "names of accounts of a kind that was found: 20 at most"),
        fact("server.accounts.plugin.NAME", "count", "accounts by authentication plugin"),
        fact("server.plugin.NAME", "", "a plugin: status, type, library"),
        fact("server.engine.NAME", "", "support of a storage engine: DEFAULT, YES, NO, DISABLED"),
        fact(
            "server.origin.NAME",
            "",
            "where a variable that is not at its compiled default got its value: source and file",
        ),
        fact("server.persisted_variables", "", "names of the variables that SET PERSIST has set"),
        fact(
            "server.default.NAME",
            "",
            "compiled default of a variable that is set to something else, where the server tells",
        ),
    ],
    run: Run::Server(run),
};

const PLUGINS: &str =
    "SELECT PLUGIN_NAME, PLUGIN_STATUS, PLUGIN_TYPE, PLUGIN_LIBRARY FROM information_schema.PLUGINS";
const ENGINES: &str = "SELECT ENGINE, SUPPORT FROM information_schema.ENGINES";
const ACCOUNTS: &str = "SELECT COUNT(*), SUM(User = ''), SUM(Host = '%') FROM mysql.user";
const ANONYMOUS: &str = "SELECT COUNT(*) FROM mysql.user WHERE User = ''";
const NATIVE: &str =
    "SELECT COUNT(*) FROM mysql.user WHERE plugin = 'mysql_native_password' AND User <> 'mysql.session'";
/// Roles have no host in MariaDB, and any host in MySQL; a host with a colon is an IPv6 address.
const BY_HOST_NAME: &str = "SELECT COUNT(*) FROM mysql.user WHERE Host REGEXP '[a-zA-Z]' AND Host NOT LIKE '%:%' AND Host <> 'localhost'";
/// MariaDB 10.11 and later grant to the role PUBLIC.
const TEST_GRANTS: &str = "SELECT COUNT(*) FROM mysql.db WHERE User IN ('', 'PUBLIC') AND Db LIKE 'test%'";

/// In MySQL a role is a locked account; elsewhere it has no host.
const ADMINISTRATORS: [Wording; 5] = [
    // The view mysql.user does not show which accounts are locked. A role has an empty host, and an account with an
    // empty host matches every host.
    (
        "SELECT COUNT(*) FROM mysql.user u JOIN mysql.global_priv p ON p.User = u.User AND p.Host = u.Host WHERE u.Super_priv = 'Y' AND (u.Host REGEXP '^[%.:]*%[%.:]*$' OR u.Host IN ('', '0.0.0.0/0.0.0.0', '::/0')) AND COALESCE(JSON_VALUE(p.Priv, '$.is_role'), '0') NOT IN ('1', 'true') AND COALESCE(JSON_VALUE(p.Priv, '$.account_locked'), '0') NOT IN ('1', 'true')",
        &[mariadb(100_400..)],
    ),
    // By themselves, by a dynamic privilege that gives as much, or by a role.
    (
        "SELECT COUNT(*) FROM mysql.user u WHERE (u.Super_priv = 'Y' OR EXISTS (SELECT 1 FROM mysql.global_grants g WHERE g.USER = u.User AND g.HOST = u.Host AND g.PRIV IN ('SYSTEM_VARIABLES_ADMIN', 'SET_USER_ID', 'SET_ANY_DEFINER', 'ROLE_ADMIN', 'SYSTEM_USER')) OR EXISTS (SELECT 1 FROM mysql.role_edges e JOIN mysql.user r ON r.User = e.FROM_USER AND r.Host = e.FROM_HOST WHERE e.TO_USER = u.User AND e.TO_HOST = u.Host AND r.Super_priv = 'Y')) AND (u.Host REGEXP '^[%.:]*%[%.:]*$' OR u.Host IN ('', '0.0.0.0/0', '0.0.0.0/0.0.0.0', '::/0')) AND u.account_locked = 'N'",
        &[mysql(80_004..)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE Super_priv = 'Y' AND (Host REGEXP '^[%.:]*%[%.:]*$' OR Host IN ('', '0.0.0.0/0', '0.0.0.0/0.0.0.0', '::/0')) AND account_locked = 'N'",
        &[mysql(50_706..)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE Super_priv = 'Y' AND (Host REGEXP '^[%.:]*%[%.:]*$' OR Host IN ('', '0.0.0.0/0.0.0.0', '::/0'))",
        &[mysql(0..).until(50_706)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE Super_priv = 'Y' AND (Host REGEXP '^[%.:]*%[%.:]*$' OR Host IN ('0.0.0.0/0.0.0.0', '::/0'))",
        &[mariadb(0..).until(100_400)],
    ),
];
const ACCOUNT_PLUGINS: &str = "SELECT plugin, COUNT(*) FROM mysql.user GROUP BY plugin";

/// Servers store a password's hash in different places. The query only returns whether there is one.
const NO_PASSWORD: [Wording; 4] = [
    // An object with the hash; mysql.user is a view. JSON_VALUE gives true as 1.
    (
        "SELECT COUNT(*) FROM mysql.global_priv WHERE COALESCE(JSON_VALUE(Priv, '$.is_role'), '0') NOT IN ('1', 'true') AND COALESCE(JSON_VALUE(Priv, '$.plugin'), '') IN ('', 'mysql_native_password', 'mysql_old_password') AND COALESCE(JSON_VALUE(Priv, '$.authentication_string'), '') = '' AND JSON_VALUE(Priv, '$.auth_or[0].plugin') IS NULL AND COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') NOT IN ('1', 'true')",
        &[mariadb(100_400..)],
    ),
    (
        "SELECT COUNT(*) FROM mysql.user WHERE authentication_string = '' AND account_locked = 'N' AND plugin IN ('mysql_native_password', 'caching_sha2_password', 'sha256_password')",
        &[mysql(50_706..)],
    ),
    // Roles are rows of the table of accounts, without a password.
    (
        "SELECT COUNT(*) FROM mysql.user WHERE is_role = 'N' AND Password = '' AND COALESCE(authentication_string, '') = '' AND COALESCE(plugin, '') IN ('', 'mysql_native_password', 'mysql_old_password')",
        &[mariadb(100_005..).until(100_400)],
    ),
    // Servers without roles.
    (
        "SELECT COUNT(*) FROM mysql.user WHERE Password = '' AND COALESCE(plugin, '') IN ('', 'mysql_native_password', 'mysql_old_password')",
        &[mysql(50_507..).until(50_706), mariadb(50_200..).until(100_005)],
    ),
];

const ORIGINS: [Wording; 3] = [
    (
        "SELECT VARIABLE_NAME, GLOBAL_VALUE_ORIGIN, GLOBAL_VALUE_PATH, DEFAULT_VALUE FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_ORIGIN IS NOT NULL AND GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME')",
        // The path of the option file was added in a later version.
        &[mariadb(100_500..)],
    ),
    (
        "SELECT VARIABLE_NAME, GLOBAL_VALUE_ORIGIN, NULL, DEFAULT_VALUE FROM information_schema.SYSTEM_VARIABLES WHERE GLOBAL_VALUE_ORIGIN IS NOT NULL AND GLOBAL_VALUE_ORIGIN NOT IN ('COMPILE-TIME')",
        &[mariadb(100_101..).until(100_500)],
    ),
    (
        "SELECT VARIABLE_NAME, VARIABLE_SOURCE, VARIABLE_PATH, NULL FROM performance_schema.variables_info WHERE VARIABLE_SOURCE <> 'COMPILED'",
        &[mysql(80_000..)],
    ),
];

/// Names only: values can be secrets.
const PERSISTED: [Wording; 1] =
    [("SELECT VARIABLE_NAME FROM performance_schema.persisted_variables", &[mysql(80_000..)])];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    sessions(sql, readings);
    replication::read(context, sql, readings);
    let dumps = readings.value("server.sessions.binlog_dumps").and_then(|dumps| dumps.as_u64());
    replication::replicas(sql, dumps, readings);
    accounts(sql, readings);
    plugins(sql, readings);
    origins(sql, readings);
}

/// A whole number in a cell; the sum of no rows (NULL) is 0.
fn count(row: &Read<Row>, place: usize) -> Read<u64> {
    let row = row.as_ref().map_err(Clone::clone)?;
    let Some(text) = row.get(place).and_then(Option::as_deref) else { return Ok(0) };
    // Some servers return SUM as a decimal.
    let whole = text.split('.').next().unwrap_or_default();
    whole.parse().map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
}

fn one_row(sql: &mut ReadOnly<'_>, statement: &str, privilege: &str) -> Read<Row> {
    let rows = sql.rows(statement).map_err(|e| e.missing(privilege))?;
    rows.into_iter().next().ok_or_else(|| Missing::Error(format!("{statement} gave no row")))
}

fn sessions(sql: &mut ReadOnly<'_>, readings: &Readings) {
    // Without PROCESS the server shows only our own sessions, so the count would be wrong rather than missing.
    let may_see = sees_all_sessions(sql);
    let rows = may_see.and_then(|()| sql.rows(LIST).map_err(|e| e.missing("PROCESS")));
    let longest = rows.as_ref().map(|rows| waiting(rows)).map_err(Clone::clone);
    readings.put("server.sessions.metadata_waiting", LIST, longest);
    let running = rows.as_ref().map(|rows| running_long(rows)).map_err(Clone::clone);
    readings.put("server.sessions.running_long", LIST, running);
    let locks = rows.as_ref().map(|rows| held(sql, user_locks(rows))).map_err(Clone::clone);
    readings.put("server.sessions.user_locks", LIST, locks);
    let row = rows.map(|rows| summed(&rows));
    let ids = [
        "total",
        "sleeping",
        "binlog_dumps",
        "longest_query_s",
        "metadata_lock_waits",
        "metadata_lock_wait_longest_s",
        "global_lock_waits",
        "global_lock_wait_longest_s",
        "appliers_at_global_lock",
        "dumps",
        "table_lock_waits",
        "table_lock_wait_longest_s",
        "user_lock_waits",
        "user_lock_wait_longest_s",
        "asleep_long",
    ];
    for (place, id) in ids.iter().enumerate() {
        readings.put(&format!("server.sessions.{id}"), LIST, count(&row, place));
    }
}

/// The sessions that hold locks of GET_LOCK().
fn held(sql: &mut ReadOnly<'_>, locks: Vec<String>) -> Vec<Value> {
    let holder = |lock: String| {
        let rows = sql.rows(&format!("SELECT IS_USED_LOCK({})", quoted(&lock)?)).ok()?;
        let session = rows.into_iter().flatten().next().flatten()?.parse::<u64>().ok()?;
        Some(json!({"lock": lock, "session": session}))
    };
    locks.into_iter().filter_map(holder).collect()
}

pub(super) fn sees_all_sessions(sql: &mut ReadOnly<'_>) -> Read<()> {
    // An administrator sees everybody's privileges. A grantee is 'user'@'host'; the user's name may itself contain an
    // @.
    const PRIVILEGES: &str = "SELECT PRIVILEGE_TYPE FROM information_schema.USER_PRIVILEGES WHERE GRANTEE = CONCAT('''', LEFT(CURRENT_USER(), CHAR_LENGTH(CURRENT_USER()) - CHAR_LENGTH(SUBSTRING_INDEX(CURRENT_USER(), '@', -1)) - 1), '''@''', SUBSTRING_INDEX(CURRENT_USER(), '@', -1), '''')";
    let rows = sql.rows(PRIVILEGES).map_err(|e| e.missing("PROCESS"))?;
    if rows.iter().flatten().flatten().any(|privilege| privilege.eq_ignore_ascii_case("PROCESS")) {
        return Ok(());
    }
    Err(Missing::Denied("this account sees only its own sessions; it needs PROCESS".to_owned()))
}

fn accounts(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let row = one_row(sql, ACCOUNTS, "SELECT on mysql.user");
    for (place, id) in ["total", "anonymous", "from_anywhere"].iter().enumerate() {
        readings.put(&format!("server.accounts.{id}"), ACCOUNTS, count(&row, place));
    }
    let anonymous = count(&row, 1);
    listed(sql, "server.accounts.listed.anonymous", ANONYMOUS, &anonymous, readings);
    let (statement, table) = first_of(sql, &ADMINISTRATORS);
    let row = table.map_err(|e| e.missing("SELECT on mysql.user")).and_then(|table| {
        table.rows.into_iter().next().ok_or_else(|| Missing::Error(format!("{statement} gave no row")))
    });
    let found = count(&row, 0);
    listed(sql, "server.accounts.listed.administrators_from_anywhere", statement, &found, readings);
    readings.put("server.accounts.administrators_from_anywhere", statement, found);
    let row = one_row(sql, BY_HOST_NAME, "SELECT on mysql.user");
    let found = count(&row, 0);
    listed(sql, "server.accounts.listed.by_host_name", BY_HOST_NAME, &found, readings);
    readings.put("server.accounts.by_host_name", BY_HOST_NAME, found);
    let row = one_row(sql, TEST_GRANTS, "SELECT on mysql.db");
    readings.put("server.accounts.test_grants", TEST_GRANTS, count(&row, 0));
    let (statement, table) = first_of(sql, &NO_PASSWORD);
    let row = table.map_err(|e| e.missing("SELECT on schema mysql")).and_then(|table| {
        table.rows.into_iter().next().ok_or_else(|| Missing::Error(format!("{statement} gave no row")))
    });
    let found = count(&row, 0);
    listed(sql, "server.accounts.listed.without_password", statement, &found, readings);
    readings.put("server.accounts.without_password", statement, found);
    for row in sql.rows(ACCOUNT_PLUGINS).unwrap_or_default() {
        let name =
            row.first().cloned().flatten().filter(|n| !n.is_empty()).unwrap_or_else(|| "none".to_owned());
        let number = count(&Ok(row), 1);
        if name == "mysql_native_password" && sql.has_dictionary() {
            listed(sql, "server.accounts.listed.native_password", NATIVE, &number, readings);
        }
        readings.put(&format!("server.accounts.plugin.{name}"), ACCOUNT_PLUGINS, number);
    }
}

/// The names of accounts that a statement has counted, where there are any. The statement counts rows of a table of accounts,
/// whose alias, if it has one, is `u`.
pub(super) fn listed(
    sql: &mut ReadOnly<'_>,
    id: &str,
    statement: &str,
    found: &Read<u64>,
    readings: &Readings,
) {
    if !found.as_ref().is_ok_and(|found| *found > 0) {
        return;
    }
    let alias = if statement.contains("mysql.user u ") { "u." } else { "" };
    let names = format!("SELECT CONCAT({alias}User, '@', {alias}Host)");
    let names = format!("{} LIMIT 20", statement.replacen("SELECT COUNT(*)", &names, 1));
    let rows = sql.rows(&names).map_err(|e| e.missing("SELECT on schema mysql"));
    let name = |name: String| if name.starts_with('@') { format!("''{name}") } else { name };
    let names = rows
        .map(|rows| rows.into_iter().flatten().flatten().map(name).map(Value::from).collect::<Vec<Value>>());
    readings.put(id, "the table of accounts", names);
}

fn plugins(sql: &mut ReadOnly<'_>, readings: &Readings) {
    for row in sql.rows(PLUGINS).unwrap_or_default() {
        if let [Some(name), status, kind, library] = &row[..] {
            let value = json!({"status": status, "type": kind, "library": library});
            readings.put(&format!("server.plugin.{name}"), PLUGINS, Ok(value));
        }
    }
    for row in sql.rows(ENGINES).unwrap_or_default() {
        if let [Some(name), Some(support)] = &row[..] {
            readings.put(&format!("server.engine.{name}"), ENGINES, Ok(support.as_str()));
        }
    }
}

fn origins(sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (statement, table) = first_of(sql, &PERSISTED);
    let names = table.map_err(|e| e.missing("SELECT on performance_schema")).map(|table| {
        let first = table.rows.into_iter().filter_map(|row| row.into_iter().next().flatten());
        first.map(|name| name.to_ascii_lowercase()).collect::<Vec<String>>()
    });
    readings.put("server.persisted_variables", statement, names);
    let (statement, table) = first_of(sql, &ORIGINS);
    for row in table.map(|t| t.rows).unwrap_or_default() {
        let [Some(name), Some(source), path, default] = &row[..] else { continue };
        let name = name.to_ascii_lowercase();
        let path = path.as_deref().filter(|p| !p.is_empty());
        // MySQL writes COMMAND_LINE, MariaDB COMMAND-LINE.
        let source = source.to_ascii_lowercase().replace('-', "_");
        readings.put(
            &format!("server.origin.{name}"),
            statement,
            Ok(json!({"source": source, "path": path})),
        );
        if let Some(default) = default.as_deref().filter(|_| !secrets::is_secret_variable(&name)) {
            readings.put(
                &format!("server.default.{name}"),
                statement,
                Ok::<Value, Missing>(typed(&name, default)),
            );
        }
    }
}
