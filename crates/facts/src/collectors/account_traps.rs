//! Accounts whose rights or whose way in are other than they seem: narrower ones that come first, locks without an end, logins
//! without a password, names of people who left. Names only.

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::counted::{count, few_enough, names};
use crate::collectors::triggers::accounts;
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::sql::{ReadOnly, SqlError};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Accounts that are other than they seem.
pub static COLLECTOR: Collector = Collector {
    name: "account-traps",
    cost: Cost { host_ms: 0, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.grants.overlaps",
            "",
            "accounts without a privilege whose host is within that of another account of the same user that has some, so that its clients get none; 20 at most",
        ),
        fact(
            "server.grants.locked_for_good",
            "",
            "accounts that failed logins lock until somebody unlocks them: account, number of failed logins",
        ),
        fact(
            "server.grants.of_gone_people",
            "",
            "accounts that may log in though a date in their attributes, by which they ought to end, has passed: account, attribute, date",
        ),
        fact(
            "server.grants.by_socket",
            "",
            "accounts beside root and the server's own that may change everything, or accounts, and log in by the name of the system's user alone",
        ),
        fact(
            "server.grants.of_all_schemas",
            "",
            "privileges to change single schemas that every account has by a mandatory role: role, privileges, schema",
        ),
        fact(
            "server.grants.literal",
            "",
            "grants whose % is no wildcard because partial_revokes is on: account, schema",
        ),
        fact(
            "server.grants.clone_donors",
            "",
            "accounts without REQUIRE that may copy all data by the plugin clone (BACKUP_ADMIN, CLONE_ADMIN)",
        ),
        fact(
            "server.grants.blind_monitors",
            "",
            "accounts with BINLOG MONITOR, and no privilege to see the state of replication (MariaDB 10.5.9 and later)",
        ),
        fact(
            "server.grants.row_readers",
            "",
            "accounts for replicas by whose names programs of change data capture read the binary log",
        ),
        fact("server.grants.of_clusters", "", "accounts named as those of Galera's state transfers"),
        fact(
            "server.accounts.of_sys",
            "count",
            "accounts mariadb.sys@localhost, which owns views of MariaDB's own (10.4.13 and later)",
        ),
    ],
    run: Run::Server(run),
};

/// Whether the account `a` has nothing, by its own row and by the tables of schemas, tables, and roles in `$roles`.
macro_rules! overlaps {
    ($roles:literal) => {
        concat!(
            "SELECT DISTINCT CONCAT(a.User, '@', a.Host, ' before ', b.User, '@', b.Host) FROM mysql.user a JOIN mysql.user b ON b.User = a.User AND b.Host <> a.Host AND a.Host LIKE b.Host WHERE a.User NOT IN ('', 'root') AND a.Host <> '' AND LOCATE('%', b.Host) > 0 AND 'Y' NOT IN (a.Select_priv, a.Insert_priv, a.Update_priv, a.Delete_priv, a.Create_priv, a.Execute_priv, a.Super_priv, a.Process_priv, a.Reload_priv, a.Repl_slave_priv, a.Repl_client_priv) AND NOT EXISTS (SELECT 1 FROM mysql.db d WHERE d.User = a.User AND d.Host = a.Host) AND NOT EXISTS (SELECT 1 FROM mysql.tables_priv d WHERE d.User = a.User AND d.Host = a.Host) AND NOT EXISTS (SELECT 1 FROM mysql.procs_priv d WHERE d.User = a.User AND d.Host = a.Host) AND NOT EXISTS (SELECT 1 FROM mysql.proxies_priv d WHERE d.User = a.User AND d.Host = a.Host)",
            $roles,
            " AND (EXISTS (SELECT 1 FROM mysql.db d WHERE d.User = b.User AND d.Host = b.Host) OR 'Y' IN (b.Select_priv, b.Insert_priv)) ORDER BY 1 LIMIT 20"
        )
    };
}
const OVERLAPS: [Wording; 3] = [
    (
        overlaps!(
            " AND NOT EXISTS (SELECT 1 FROM mysql.role_edges r WHERE r.TO_USER = a.User AND r.TO_HOST = a.Host) AND NOT EXISTS (SELECT 1 FROM mysql.global_grants g WHERE g.USER = a.User AND g.HOST = a.Host)"
        ),
        &[mysql(80_000..)],
    ),
    (
        overlaps!(
            " AND NOT EXISTS (SELECT 1 FROM mysql.roles_mapping r WHERE r.User = a.User AND r.Host = a.Host)"
        ),
        &[mariadb(100_005..)],
    ),
    (overlaps!(""), &[mysql(50_507..).until(80_000)]),
];

const LOCKED_FOR_GOOD: [Wording; 1] = [(
    "SELECT CONCAT(User, '@', Host, ' after ', JSON_EXTRACT(User_attributes, '$.Password_locking.failed_login_attempts'), ' failed logins') FROM mysql.user WHERE JSON_EXTRACT(User_attributes, '$.Password_locking.password_lock_time_days') = -1 AND JSON_EXTRACT(User_attributes, '$.Password_locking.failed_login_attempts') > 0 AND account_locked = 'N' ORDER BY 1 LIMIT 20",
    &[mysql(80_019..)],
)];

const OF_GONE_PEOPLE: [Wording; 1] = [(
    "SELECT CONCAT(x.USER, '@', x.HOST, ' (', x.k, ' ', LEFT(x.v, 10), ')') FROM (SELECT u.USER, u.HOST, j.k, JSON_UNQUOTE(JSON_EXTRACT(u.ATTRIBUTE, CONCAT('$.\"', j.k, '\"'))) AS v FROM information_schema.USER_ATTRIBUTES u JOIN JSON_TABLE(JSON_KEYS(u.ATTRIBUTE), '$[*]' COLUMNS (k VARCHAR(64) PATH '$')) j JOIN mysql.user a ON a.User = u.USER AND a.Host = u.HOST WHERE a.account_locked = 'N' AND LOWER(j.k) REGEXP '^(left|leaves|leaving|left_on|leaving_date|valid_until|until|expires|expires_on|expiry|quit|departed|terminated|termination|end_date|austritt|bis)$') x WHERE x.v REGEXP '^(19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}' AND LEFT(x.v, 10) <= DATE_FORMAT(NOW(), '%Y-%m-%d') ORDER BY 1 LIMIT 20",
    &[mysql(80_021..)],
)];

const BY_SOCKET: [Wording; 2] = [
    (
        "SELECT CONCAT(u.User, '@', u.Host) FROM mysql.global_priv g JOIN mysql.user u ON u.User = g.User AND u.Host = g.Host WHERE 'unix_socket' IN (JSON_VALUE(g.Priv, '$.plugin'), JSON_VALUE(g.Priv, '$.auth_or[0].plugin'), JSON_VALUE(g.Priv, '$.auth_or[1].plugin')) AND COALESCE(JSON_VALUE(g.Priv, '$.account_locked'), '0') NOT IN ('1', 'true') AND u.User NOT IN ('root', 'mysql', 'mariadb.sys') AND (u.Super_priv = 'Y' OR u.Create_user_priv = 'Y' OR u.Insert_priv = 'Y' AND u.Drop_priv = 'Y') ORDER BY 1 LIMIT 20",
        &[mariadb(100_400..)],
    ),
    (
        "SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u WHERE u.plugin = 'auth_socket' AND u.account_locked = 'N' AND u.User NOT IN ('root', 'mysql') AND (u.Super_priv = 'Y' OR u.Create_user_priv = 'Y' OR u.Insert_priv = 'Y' AND u.Drop_priv = 'Y') ORDER BY 1 LIMIT 20",
        &[mysql(50_706..)],
    ),
];

/// The names in mandatory_roles stand with or without quotes (39, 34, 96), and with or without a host.
const OF_ALL_SCHEMAS: [Wording; 1] = [(
    "SELECT CONCAT(d.User, ': ', TRIM(CONCAT(IF(d.Insert_priv = 'Y', 'INSERT ', ''), IF(d.Update_priv = 'Y', 'UPDATE ', ''), IF(d.Delete_priv = 'Y', 'DELETE ', ''), IF(d.Drop_priv = 'Y', 'DROP ', ''), IF(d.Alter_priv = 'Y', 'ALTER ', ''), IF(d.Grant_priv = 'Y', 'GRANT OPTION', ''))), ' on ', d.Db) FROM mysql.db d WHERE 'Y' IN (d.Insert_priv, d.Update_priv, d.Delete_priv, d.Drop_priv, d.Alter_priv, d.Grant_priv) AND (FIND_IN_SET(d.User, REPLACE(REPLACE(REPLACE(REPLACE(@@GLOBAL.mandatory_roles, CHAR(96), ''), CHAR(39), ''), CHAR(34), ''), ' ', '')) > 0 OR FIND_IN_SET(CONCAT(d.User, '@', d.Host), REPLACE(REPLACE(REPLACE(REPLACE(@@GLOBAL.mandatory_roles, CHAR(96), ''), CHAR(39), ''), CHAR(34), ''), ' ', '')) > 0) ORDER BY 1 LIMIT 20",
    &[mysql(80_002..)],
)];

const LITERAL: [Wording; 1] = [(
    "SELECT CONCAT(User, '@', Host, ' on ', Db) FROM mysql.db WHERE @@GLOBAL.partial_revokes = 1 AND LOCATE('%', REPLACE(Db, CONCAT(CHAR(92), '%'), '')) > 0 AND User NOT IN ('', 'mysql.sys', 'mysql.session') ORDER BY 1 LIMIT 20",
    &[mysql(80_016..)],
)];

const CLONE_DONORS: [Wording; 1] = [(
    "SELECT DISTINCT CONCAT(g.USER, '@', g.HOST) FROM mysql.global_grants g JOIN mysql.user u ON u.User = g.USER AND u.Host = g.HOST WHERE g.PRIV IN ('BACKUP_ADMIN', 'CLONE_ADMIN') AND u.account_locked = 'N' AND u.ssl_type = '' AND u.Host NOT IN ('localhost', '127.0.0.1', '::1') AND g.USER NOT IN ('root', 'mysql.sys', 'mysql.session', 'mysql.infoschema') ORDER BY 1 LIMIT 20",
    &[mysql(80_017..)],
)];

/// The server shows REPLICA MONITOR as SLAVE MONITOR.
const BLIND_MONITORS: [Wording; 1] = [(
    "SELECT DISTINCT REPLACE(GRANTEE, '''', '') FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE = 'BINLOG MONITOR' AND GRANTEE NOT IN (SELECT GRANTEE FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('SLAVE MONITOR', 'REPLICA MONITOR', 'SUPER', 'REPLICATION SLAVE ADMIN')) AND LOWER(GRANTEE) REGEXP 'mon|nagios|icinga|zabbix|zbx|pmm|exporter|prometheus|check|datadog' ORDER BY 1 LIMIT 20",
    &[mariadb(100_509..)],
)];

const ROW_READERS: [Wording; 1] = [(
    "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE Repl_slave_priv = 'Y' AND LOWER(User) REGEXP 'cdc|debez|maxwell|canal|airbyte|fivetran|kafka|striim|qlik|flink' ORDER BY 1 LIMIT 20",
    &[mysql(50_500..), mariadb(50_200..)],
)];

const OF_CLUSTERS: [Wording; 1] = [(
    "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE LOWER(User) REGEXP '^(sst|wsrep|galera)([0-9_-]|$)|^(sst|galera|wsrep)(user|rep|backup)$' ORDER BY 1 LIMIT 20",
    &[mysql(50_500..), mariadb(50_200..)],
)];

/// mysql.user is a view of that account, and cannot be read without it.
const OF_SYS: [Wording; 1] = [(
    "SELECT COUNT(*) FROM mysql.global_priv WHERE User = 'mariadb.sys' AND Host = 'localhost'",
    &[mariadb(100_413..)],
)];

/// Accounts that are compared with each other.
const MOST: u64 = 2000;

fn run(_: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, wordings) in [
        ("server.grants.overlaps", &OVERLAPS[..]),
        ("server.grants.locked_for_good", &LOCKED_FOR_GOOD),
        ("server.grants.of_gone_people", &OF_GONE_PEOPLE),
        ("server.grants.by_socket", &BY_SOCKET),
        ("server.grants.of_all_schemas", &OF_ALL_SCHEMAS),
        ("server.grants.literal", &LITERAL),
        ("server.grants.clone_donors", &CLONE_DONORS),
        ("server.grants.blind_monitors", &BLIND_MONITORS),
        ("server.grants.row_readers", &ROW_READERS),
        ("server.grants.of_clusters", &OF_CLUSTERS),
    ] {
        let refused = |e: SqlError| e.missing("SELECT on schema mysql");
        // It joins the accounts with themselves, and the table has no index for it.
        let few = match id == "server.grants.overlaps" {
            true => accounts(sql).map_err(refused).and_then(|all| few_enough(&all.len().into(), MOST)),
            false => Ok(()),
        };
        let found = few.and_then(|()| {
            let table = first_of(sql, wordings).1.map_err(refused)?;
            Ok(names(table.rows))
        });
        readings.put(id, "the tables of accounts", found);
    }
    let (statement, table) = first_of(sql, &OF_SYS);
    let of_sys = table.map_err(|e| e.missing("SELECT on mysql.global_priv")).and_then(|t| count(&t.rows));
    readings.put("server.accounts.of_sys", statement, of_sys);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::only_reads;

    #[test]
    fn every_statement_only_reads() {
        let all = [
            &OVERLAPS[..],
            &LOCKED_FOR_GOOD,
            &OF_GONE_PEOPLE,
            &BY_SOCKET,
            &OF_ALL_SCHEMAS,
            &LITERAL,
            &CLONE_DONORS,
            &BLIND_MONITORS,
            &ROW_READERS,
            &OF_CLUSTERS,
            &OF_SYS,
        ];
        for (statement, _) in all.into_iter().flatten() {
            assert!(only_reads(statement), "{statement}");
        }
    }
}
