//! Privileges that come by a roundabout way (roles, proxies, dynamic privileges, patterns), and accounts whose password or
//! role does not do what it seems to do. Names only.

use serde_json::{Value, json};

use crate::collector::{Collector, Cost, Run, fact};
use crate::context::{Context, Depth};
use crate::readings::Readings;
use crate::sql::{ReadOnly, quoted};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Roundabout privileges.
pub static COLLECTOR: Collector = Collector {
    name: "privileges",
    cost: Cost { host_ms: 1, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.grants.by_role",
            "",
            "accounts beside root that may insert, update, delete and drop in all schemas, or change accounts, by a role or by one that was granted to their role; with the role; 20 at most, as in all lists of server.grants",
        ),
        fact(
            "server.grants.role_admins",
            "",
            "accounts that may grant such a role to others (ADMIN OPTION), with the role",
        ),
        fact(
            "server.grants.proxies",
            "",
            "accounts that may act as root or as another account with all privileges",
        ),
        fact(
            "server.grants.dynamic",
            "",
            "accounts beside root and the server's own with a dynamic privilege by which they can get every other one: account, privilege",
        ),
        fact(
            "server.grants.roles_that_log_in",
            "",
            "accounts that are granted as a role and can log in themselves",
        ),
        fact("server.grants.idle_roles", "", "accounts with roles of which none is active after the login"),
        fact("server.grants.missing_mandatory", "", "mandatory roles that do not exist"),
        fact(
            "server.grants.patterns",
            "",
            "grants on a schema whose name has a _ or a % that stands for others, but for an account on all schemas that begin with its own name: account, schema",
        ),
        fact(
            "server.grants.of_all",
            "",
            "privileges on all schemas that every account has, by a mandatory role or by PUBLIC: role, privileges",
        ),
        fact(
            "server.grants.to_public",
            "",
            "schemas and tables on which PUBLIC, and so every account, has privileges (MariaDB); 20 at most",
        ),
        fact(
            "server.grants.hands_on",
            "",
            "accounts that may grant their privileges on one schema to others: account, schema",
        ),
        fact(
            "server.grants.wide_patterns",
            "",
            "grants with a _ that stands for any character, or that begin with %, and which match two schemas or more: account, pattern, schemas (their number), among_them (four of them)",
        ),
        fact(
            "server.grants.by_percent",
            "",
            "grants by a % that reach schemas in use and such as their names call tests or archives, or a schema and others that begin with its name: account, pattern, schemas (5), number, writes, mixed",
        ),
        fact(
            "server.grants.parts_of_super",
            "",
            "accounts beside root without SUPER and CREATE USER that have parts of SUPER which change how the server replicates, who may connect or what is read-only: account, privileges",
        ),
        fact(
            "server.passwords.ending",
            "",
            "accounts whose password ends by its age within 14 days, or has ended: account, left_s",
        ),
        fact("server.grants.gone_schemas", "", "grants on a schema that is not there: account, schema"),
        fact(
            "server.grants.unused_roles",
            "",
            "roles that no account has; MySQL knows them as locked accounts without a password",
        ),
        fact("server.grants.same_name", "", "user names that several accounts have, root excepted"),
        fact("server.passwords.expired", "", "accounts whose password has expired by hand"),
        fact("server.passwords.second", "", "accounts that keep a second, older password"),
        fact("server.passwords.in_comments", "", "accounts whose comment or attribute speaks of a password"),
        fact("server.passwords.accounts_that_lock", "count", "accounts that are locked after failed logins"),
    ],
    run: Run::Server(run),
};

/// Whether the role `r` gives as much as root: it writes everywhere, or changes accounts.
macro_rules! as_root {
    ($account:literal, $ways:literal, $joins:literal) => {
        concat!(
            "SELECT DISTINCT CONCAT(",
            $account,
            ", ' by ', e.role_name) FROM ",
            $ways,
            " e ",
            $joins,
            " WHERE ((r.Insert_priv = 'Y' AND r.Update_priv = 'Y' AND r.Delete_priv = 'Y' AND r.Drop_priv = 'Y') OR r.Create_user_priv = 'Y' OR r.Super_priv = 'Y') AND e.user_name <> 'root' ORDER BY 1 LIMIT 20"
        )
    };
}
/// Accounts with a role that gives as much as root, also by roles that were granted to a role, which MariaDB 10.2 cannot tell.
const BY_ROLE: [Wording; 3] = [
    (
        as_root!(
            "e.user_name, '@', e.host_name",
            "(WITH RECURSIVE h (user_name, host_name, role_name, role_host) AS (SELECT TO_USER, TO_HOST, FROM_USER, FROM_HOST FROM mysql.role_edges UNION DISTINCT SELECT h.user_name, h.host_name, n.FROM_USER, n.FROM_HOST FROM h JOIN mysql.role_edges n ON n.TO_USER = h.role_name AND n.TO_HOST = h.role_host) SELECT * FROM h)",
            "JOIN mysql.user r ON r.User = e.role_name AND r.Host = e.role_host JOIN mysql.user u ON u.User = e.user_name AND u.Host = e.host_name AND u.account_locked = 'N'"
        ),
        &[mysql(80_001..)],
    ),
    (
        as_root!(
            "e.user_name, '@', e.host_name",
            "(WITH RECURSIVE h (user_name, host_name, role_name) AS (SELECT User, Host, Role FROM mysql.roles_mapping WHERE Host <> '' UNION SELECT h.user_name, h.host_name, n.Role FROM h JOIN mysql.roles_mapping n ON n.User = h.role_name AND n.Host = '') SELECT * FROM h)",
            "JOIN mysql.user r ON r.User = e.role_name AND r.is_role = 'Y'"
        ),
        &[mariadb(100_300..)],
    ),
    (
        as_root!(
            "e.user_name, '@', e.host_name",
            "(SELECT User AS user_name, Host AS host_name, Role AS role_name FROM mysql.roles_mapping WHERE Host <> '')",
            "JOIN mysql.user r ON r.User = e.role_name AND r.is_role = 'Y'"
        ),
        &[mariadb(100_005..)],
    ),
];
const ROLE_ADMINS: [Wording; 2] = [
    (
        "SELECT CONCAT(e.TO_USER, '@', e.TO_HOST, ': ', e.FROM_USER) FROM mysql.role_edges e JOIN mysql.user r ON r.User = e.FROM_USER AND r.Host = e.FROM_HOST WHERE e.WITH_ADMIN_OPTION = 'Y' AND (r.Insert_priv = 'Y' OR r.Create_user_priv = 'Y' OR r.Super_priv = 'Y') AND e.TO_USER <> 'root' ORDER BY 1 LIMIT 20",
        &[mysql(80_000..)],
    ),
    (
        "SELECT CONCAT(e.User, '@', e.Host, ': ', e.Role) FROM mysql.roles_mapping e JOIN mysql.user r ON r.User = e.Role AND r.is_role = 'Y' WHERE e.Admin_option = 'Y' AND (r.Insert_priv = 'Y' OR r.Create_user_priv = 'Y' OR r.Super_priv = 'Y') AND e.User <> 'root' AND e.Host <> '' ORDER BY 1 LIMIT 20",
        &[mariadb(100_005..)],
    ),
];
/// The servers give root, and MariaDB the user of the system that it runs as, the right to act for everybody (the empty
/// name). Who may do everything, and grant it, gains nothing by acting for others.
const PROXIES: [Wording; 1] = [(
    "SELECT CONCAT(p.User, '@', p.Host, ' as ', IF(LENGTH(p.Proxied_user) = 0, 'everybody', CONCAT(p.Proxied_user, '@', p.Proxied_host))) FROM mysql.proxies_priv p LEFT JOIN mysql.user u ON u.User = p.Proxied_user AND u.Host = p.Proxied_host LEFT JOIN mysql.user o ON o.User = p.User AND o.Host = p.Host WHERE p.User <> 'root' AND o.User IS NOT NULL AND NOT COALESCE(o.Super_priv = 'Y' AND o.Grant_priv = 'Y', FALSE) AND (p.Proxied_user IN ('', 'root') OR u.Super_priv = 'Y' OR u.Create_user_priv = 'Y') ORDER BY 1 LIMIT 20",
    &[mysql(50_507..), mariadb(50_200..)],
)];
const DYNAMIC: [Wording; 1] = [(
    "SELECT CONCAT(g.USER, '@', g.HOST, ': ', GROUP_CONCAT(g.PRIV ORDER BY g.PRIV SEPARATOR ' ')) FROM mysql.global_grants g JOIN mysql.user u ON u.User = g.USER AND u.Host = g.HOST WHERE u.account_locked = 'N' AND g.PRIV IN ('ROLE_ADMIN', 'SET_USER_ID', 'SET_ANY_DEFINER', 'SYSTEM_USER', 'SYSTEM_VARIABLES_ADMIN', 'AUTHENTICATION_POLICY_ADMIN', 'PASSWORDLESS_USER_ADMIN') AND g.USER NOT IN ('root', 'mysql.sys', 'mysql.session', 'mysql.infoschema') GROUP BY g.USER, g.HOST ORDER BY 1 LIMIT 20",
    &[mysql(80_000..)],
)];
const ROLES_THAT_LOG_IN: [Wording; 1] = [(
    "SELECT DISTINCT CONCAT(u.User, '@', u.Host) FROM mysql.role_edges e JOIN mysql.user u ON u.User = e.FROM_USER AND u.Host = e.FROM_HOST WHERE u.account_locked = 'N' AND u.authentication_string <> '' ORDER BY 1 LIMIT 20",
    &[mysql(80_000..)],
)];
const IDLE_ROLES: [Wording; 2] = [
    (
        "SELECT DISTINCT CONCAT(u.User, '@', u.Host) FROM mysql.role_edges e JOIN mysql.user u ON u.User = e.TO_USER AND u.Host = e.TO_HOST LEFT JOIN mysql.default_roles d ON d.USER = u.User AND d.HOST = u.Host WHERE d.USER IS NULL AND u.account_locked = 'N' AND @@GLOBAL.activate_all_roles_on_login = 0 ORDER BY 1 LIMIT 20",
        &[mysql(80_002..)],
    ),
    (
        "SELECT DISTINCT CONCAT(e.User, '@', e.Host) FROM mysql.roles_mapping e JOIN mysql.user u ON u.User = e.User AND u.Host = e.Host WHERE u.default_role = '' AND e.Host <> '' AND e.Admin_option = 'N' ORDER BY 1 LIMIT 20",
        &[mariadb(100_101..)],
    ),
];
/// `_` stands for any character unless a backslash precedes it.
/// Whether a grant on schemas has a `_`, or a `%`, that no backslash precedes. An account for all schemas that begin with its own
/// name is the rule of a host for many, as phpMyAdmin grants it.
macro_rules! is_pattern {
    () => {
        "(REPLACE(d.Db, CONCAT(CHAR(92), '_'), '') LIKE '%|_%' ESCAPE '|' OR REPLACE(d.Db, CONCAT(CHAR(92), '%'), '') LIKE '%|%%' ESCAPE '|') AND d.Db <> CONCAT(REPLACE(d.User, '_', CONCAT(CHAR(92), '_')), CHAR(92), '_%') AND d.User NOT IN ('', 'PUBLIC', 'mysql.sys', 'mysql.session')"
    };
}
const PATTERNS: [Wording; 1] = [(
    concat!(
        "SELECT CONCAT(d.User, '@', d.Host, ' on ', d.Db) FROM mysql.db d WHERE ",
        is_pattern!(),
        " ORDER BY 1 LIMIT 20"
    ),
    &[mysql(50_507..), mariadb(50_200..)],
)];
/// Privileges on all schemas of the roles that a condition chooses.
macro_rules! of_all {
    ($condition:literal) => {
        concat!(
            "SELECT CONCAT(r.User, ': ', TRIM(CONCAT(IF(r.Select_priv = 'Y', 'SELECT ', ''), IF(r.Insert_priv = 'Y', 'INSERT ', ''), IF(r.Update_priv = 'Y', 'UPDATE ', ''), IF(r.Delete_priv = 'Y', 'DELETE ', ''), IF(r.Drop_priv = 'Y', 'DROP ', ''), IF(r.File_priv = 'Y', 'FILE ', ''), IF(r.Process_priv = 'Y', 'PROCESS ', ''), IF(r.Super_priv = 'Y', 'SUPER ', ''), IF(r.Create_user_priv = 'Y', 'CREATE USER ', ''), IF(r.Grant_priv = 'Y', 'GRANT OPTION', '')))) FROM mysql.user r WHERE 'Y' IN (r.Select_priv, r.Insert_priv, r.Update_priv, r.Delete_priv, r.Drop_priv, r.File_priv, r.Process_priv, r.Super_priv, r.Create_user_priv, r.Grant_priv) AND ",
            $condition,
            " ORDER BY 1 LIMIT 20"
        )
    };
}
/// The names in mandatory_roles stand with or without quotes (39, 34, 96), and with or without a host.
const OF_ALL: [Wording; 2] = [
    (
        of_all!(
            "(FIND_IN_SET(r.User, REPLACE(REPLACE(REPLACE(REPLACE(@@GLOBAL.mandatory_roles, CHAR(96), ''), CHAR(39), ''), CHAR(34), ''), ' ', '')) > 0 OR FIND_IN_SET(CONCAT(r.User, '@', r.Host), REPLACE(REPLACE(REPLACE(REPLACE(@@GLOBAL.mandatory_roles, CHAR(96), ''), CHAR(39), ''), CHAR(34), ''), ' ', '')) > 0)"
        ),
        &[mysql(80_002..)],
    ),
    (of_all!("r.User = 'PUBLIC'"), &[mariadb(101_100..)]),
];
/// Installations grant PUBLIC the schemas test and test_…, which are counted among the test grants.
const TO_PUBLIC: [Wording; 1] = [(
    "SELECT REPLACE(Db, CHAR(92), '') FROM mysql.db WHERE User = 'PUBLIC' AND Db NOT LIKE 'test%' UNION SELECT CONCAT(Db, '.', Table_name) FROM mysql.tables_priv WHERE User = 'PUBLIC' ORDER BY 1 LIMIT 20",
    &[mariadb(101_100..)],
)];
const HANDS_ON: [Wording; 1] = [(
    "SELECT CONCAT(User, '@', Host, ' on ', REPLACE(Db, CHAR(92), '')) FROM mysql.db WHERE Grant_priv = 'Y' AND User NOT IN ('root', 'mariadb.sys', 'mysql.sys', 'mysql.session') ORDER BY 1 LIMIT 20",
    &[mysql(50_507..), mariadb(50_200..)],
)];
/// Without those whose name is a pattern, and those of the server, which it grants before the schemas are there.
const GONE_SCHEMAS: [Wording; 1] = [(
    "SELECT CONCAT(d.User, '@', d.Host, ' on ', REPLACE(d.Db, CHAR(92), '')) FROM mysql.db d LEFT JOIN information_schema.SCHEMATA s ON s.SCHEMA_NAME LIKE REPLACE(d.Db, CHAR(92), '|') ESCAPE '|' WHERE s.SCHEMA_NAME IS NULL AND LOCATE('%', REPLACE(d.Db, CONCAT(CHAR(92), '%'), '')) = 0 AND d.User NOT IN ('', 'PUBLIC', 'mysql.sys', 'mysql.session', 'mariadb.sys') AND d.Db NOT IN ('performance_schema', 'sys') ORDER BY 1 LIMIT 20",
    &[mysql(50_507..), mariadb(50_200..)],
)];
const UNUSED_ROLES: [Wording; 2] = [
    (
        "SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u LEFT JOIN mysql.role_edges e ON e.FROM_USER = u.User AND e.FROM_HOST = u.Host LEFT JOIN mysql.role_edges t ON t.TO_USER = u.User AND t.TO_HOST = u.Host WHERE e.FROM_USER IS NULL AND t.TO_USER IS NULL AND u.account_locked = 'Y' AND u.password_expired = 'Y' AND u.authentication_string = '' AND LOCATE(u.User, @@GLOBAL.mandatory_roles) = 0 AND u.User NOT IN ('', 'root', 'mysql.sys', 'mysql.session', 'mysql.infoschema') ORDER BY 1 LIMIT 20",
        &[mysql(80_002..)],
    ),
    // Who makes a role has it with ADMIN OPTION.
    (
        "SELECT u.User FROM mysql.user u LEFT JOIN mysql.roles_mapping e ON e.Role = u.User AND e.Admin_option = 'N' WHERE e.Role IS NULL AND u.is_role = 'Y' AND u.User <> 'PUBLIC' ORDER BY 1 LIMIT 20",
        &[mariadb(100_005..)],
    ),
];
const SAME_NAME: [Wording; 1] = [(
    "SELECT CONCAT(User, ': ', GROUP_CONCAT(Host ORDER BY Host SEPARATOR ' ')) FROM mysql.user WHERE User NOT IN ('root', '') GROUP BY User HAVING COUNT(*) > 1 ORDER BY User LIMIT 20",
    &[mysql(50_507..), mariadb(50_200..)],
)];
/// Grants whose pattern matches two schemas or more by a _ that stands for any character.
const WIDE: [Wording; 1] = [(
    concat!(
        "SELECT CONCAT(d.User, '@', d.Host), d.Db, COUNT(*), SUBSTRING_INDEX(GROUP_CONCAT(s.SCHEMA_NAME ORDER BY s.SCHEMA_NAME SEPARATOR ' '), ' ', 4) FROM mysql.db d JOIN information_schema.SCHEMATA s ON s.SCHEMA_NAME LIKE REPLACE(d.Db, CHAR(92), '|') ESCAPE '|' WHERE (REPLACE(d.Db, CONCAT(CHAR(92), '_'), '') LIKE '%|_%' ESCAPE '|' OR d.Db LIKE '|%%' ESCAPE '|') AND ",
        is_pattern!(),
        " GROUP BY d.User, d.Host, d.Db HAVING COUNT(*) > 1 ORDER BY 1, 2 LIMIT 20"
    ),
    &[mysql(50_507..), mariadb(50_200..)],
)];
/// Parts of SUPER that a program has no need of, of accounts that have not all of it.
const PARTS_OF_SUPER: [Wording; 2] = [
    (
        "SELECT CONCAT(g.USER, '@', g.HOST, ': ', GROUP_CONCAT(g.PRIV ORDER BY g.PRIV SEPARATOR ', ')) FROM mysql.global_grants g JOIN mysql.user u ON u.User = g.USER AND u.Host = g.HOST WHERE u.account_locked = 'N' AND u.Super_priv = 'N' AND u.Create_user_priv = 'N' AND (g.USER, g.HOST) NOT IN (SELECT USER, HOST FROM mysql.global_grants WHERE PRIV = 'GROUP_REPLICATION_STREAM') AND g.PRIV IN ('CONNECTION_ADMIN', 'REPLICATION_SLAVE_ADMIN', 'BINLOG_ADMIN', 'GROUP_REPLICATION_ADMIN', 'PERSIST_RO_VARIABLES_ADMIN', 'ENCRYPTION_KEY_ADMIN', 'TABLE_ENCRYPTION_ADMIN', 'INNODB_REDO_LOG_ENABLE') AND g.USER NOT IN ('root', 'mysql.sys', 'mysql.session', 'mysql.infoschema') GROUP BY g.USER, g.HOST ORDER BY 1 LIMIT 20",
        &[mysql(80_000..)],
    ),
    (
        "SELECT CONCAT(REPLACE(GRANTEE, '''', ''), ': ', GROUP_CONCAT(PRIVILEGE_TYPE ORDER BY PRIVILEGE_TYPE SEPARATOR ', ')) FROM information_schema.USER_PRIVILEGES p WHERE PRIVILEGE_TYPE IN ('READ_ONLY ADMIN', 'CONNECTION ADMIN', 'REPLICATION SLAVE ADMIN', 'REPLICATION MASTER ADMIN', 'BINLOG ADMIN', 'BINLOG REPLAY', 'SET USER', 'FEDERATED ADMIN') AND GRANTEE NOT LIKE '''root''@%' AND GRANTEE NOT LIKE '''mariadb.sys''@%' AND GRANTEE NOT IN (SELECT GRANTEE FROM information_schema.USER_PRIVILEGES WHERE PRIVILEGE_TYPE IN ('SUPER', 'CREATE USER')) AND GRANTEE NOT IN (SELECT CONCAT('''', User, '''@''', Host, '''') FROM mysql.global_priv WHERE COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') NOT IN ('0', 'false')) GROUP BY GRANTEE ORDER BY 1 LIMIT 20",
        &[mariadb(100_502..)],
    ),
];
/// Passwords that end by their age within 14 days; negative where they have ended.
const ENDING: [Wording; 2] = [
    (
        "SELECT CONCAT(User, '@', Host), CAST(JSON_VALUE(Priv, '$.password_last_changed') + 86400 * IF(COALESCE(JSON_VALUE(Priv, '$.password_lifetime'), -1) < 0, @@GLOBAL.default_password_lifetime, JSON_VALUE(Priv, '$.password_lifetime')) - UNIX_TIMESTAMP() AS SIGNED) AS left_s FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.password_last_changed') > 0 AND COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') IN ('0', 'false') AND COALESCE(JSON_VALUE(Priv, '$.plugin'), '') NOT IN ('unix_socket', 'pam', 'gssapi') AND IF(COALESCE(JSON_VALUE(Priv, '$.password_lifetime'), -1) < 0, @@GLOBAL.default_password_lifetime, JSON_VALUE(Priv, '$.password_lifetime')) > 0 HAVING left_s < 14 * 86400 ORDER BY left_s LIMIT 20",
        &[mariadb(100_403..)],
    ),
    (
        "SELECT CONCAT(User, '@', Host), TIMESTAMPDIFF(SECOND, NOW(), password_last_changed + INTERVAL COALESCE(password_lifetime, @@GLOBAL.default_password_lifetime) DAY) AS left_s FROM mysql.user WHERE account_locked = 'N' AND password_expired = 'N' AND plugin IN ('mysql_native_password', 'sha256_password', 'caching_sha2_password') AND COALESCE(password_lifetime, @@GLOBAL.default_password_lifetime) > 0 HAVING left_s < 14 * 86400 ORDER BY left_s LIMIT 20",
        &[mysql(50_706..)],
    ),
];
/// A locked account is a role, or one of the server's own.
const EXPIRED: [Wording; 2] = [
    (
        "SELECT CONCAT(User, '@', Host) FROM mysql.global_priv WHERE JSON_VALUE(Priv, '$.password_last_changed') = '0' AND COALESCE(JSON_VALUE(Priv, '$.account_locked'), '0') IN ('0', 'false') AND User <> 'mariadb.sys' ORDER BY 1 LIMIT 20",
        &[mariadb(100_403..)],
    ),
    (
        "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE password_expired = 'Y' AND account_locked = 'N' ORDER BY 1 LIMIT 20",
        &[mysql(50_706..)],
    ),
];
const SECOND: [Wording; 1] = [(
    "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE JSON_CONTAINS_PATH(User_attributes, 'one', '$.additional_password') ORDER BY 1 LIMIT 20",
    &[mysql(80_014..)],
)];
const IN_COMMENTS: [Wording; 1] = [(
    "SELECT CONCAT(USER, '@', HOST) FROM information_schema.USER_ATTRIBUTES WHERE LOWER(ATTRIBUTE) REGEXP 'passw|pwd|secret' ORDER BY 1 LIMIT 20",
    &[mysql(80_021..)],
)];
const THAT_LOCK: [Wording; 1] = [(
    "SELECT COUNT(*) FROM mysql.user WHERE JSON_CONTAINS_PATH(User_attributes, 'one', '$.Password_locking')",
    &[mysql(80_019..)],
)];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, wordings) in [
        ("server.grants.by_role", &BY_ROLE[..]),
        ("server.grants.role_admins", &ROLE_ADMINS[..]),
        ("server.grants.proxies", &PROXIES[..]),
        ("server.grants.dynamic", &DYNAMIC[..]),
        ("server.grants.roles_that_log_in", &ROLES_THAT_LOG_IN[..]),
        ("server.grants.idle_roles", &IDLE_ROLES[..]),
        ("server.grants.patterns", &PATTERNS[..]),
        ("server.grants.parts_of_super", &PARTS_OF_SUPER[..]),
        ("server.grants.of_all", &OF_ALL[..]),
        ("server.grants.to_public", &TO_PUBLIC[..]),
        ("server.grants.hands_on", &HANDS_ON[..]),
        ("server.grants.gone_schemas", &GONE_SCHEMAS[..]),
        ("server.grants.unused_roles", &UNUSED_ROLES[..]),
        ("server.grants.same_name", &SAME_NAME[..]),
        ("server.passwords.expired", &EXPIRED[..]),
        ("server.passwords.second", &SECOND[..]),
        ("server.passwords.in_comments", &IN_COMMENTS[..]),
    ] {
        let (_, table) = first_of(sql, wordings);
        let names = table
            .map(|table| super::counted::names(table.rows))
            .map_err(|e| e.missing("SELECT on schema mysql"));
        readings.put(id, "the tables of accounts", names);
    }
    super::grant_patterns::put(sql, readings);
    let (statement, table) = first_of(sql, &ENDING);
    let ending = table.map_err(|e| e.missing("SELECT on schema mysql")).map(|table| {
        let one = |row: crate::sql::Row| {
            let [account, left] = <[Option<String>; 2]>::try_from(row).ok()?;
            Some(json!({"account": account?, "left_s": left?.parse::<i64>().ok()?.max(0)}))
        };
        table.rows.into_iter().filter_map(one).collect::<Vec<Value>>()
    });
    readings.put("server.passwords.ending", statement, ending);
    let (_, table) = first_of(sql, &WIDE);
    let wide = table.map_err(|e| e.missing("SELECT on schema mysql")).map(|table| {
        let one = |row: crate::sql::Row| {
            let [account, pattern, schemas, some] = <[Option<String>; 4]>::try_from(row).ok()?;
            let schemas = schemas?.parse::<u64>().ok()?;
            Some(json!({"account": account?, "pattern": pattern?, "schemas": schemas, "among_them": some?}))
        };
        table.rows.into_iter().filter_map(one).collect::<Vec<Value>>()
    });
    readings.put("server.grants.wide_patterns", "the tables of accounts", wide);
    let (statement, table) = first_of(sql, &THAT_LOCK);
    let locks =
        table.map_err(|e| e.missing("SELECT on schema mysql")).and_then(|t| super::counted::count(&t.rows));
    readings.put("server.passwords.accounts_that_lock", statement, locks);
    let missing = missing_mandatory(context, sql);
    readings.put("server.grants.missing_mandatory", "mandatory_roles", Ok(missing));
}

/// Names in mandatory_roles that are no accounts.
fn missing_mandatory(context: &Context, sql: &mut ReadOnly<'_>) -> Vec<Value> {
    let named = names(context.variable("mandatory_roles").unwrap_or_default());
    let is_there = |sql: &mut ReadOnly<'_>, user: &str, host: &str| {
        let (Some(user), Some(host)) = (quoted(user), quoted(host)) else { return true };
        let found = sql.rows(&format!("SELECT User FROM mysql.user WHERE User = {user} AND Host = {host}"));
        found.map_or(true, |rows| !rows.is_empty())
    };
    let gone = named.into_iter().take(20).filter(|(user, host)| !is_there(sql, user, host));
    gone.map(|(user, host)| Value::from(format!("{user}@{host}"))).collect()
}

/// The roles of a list as in `` `a`@`%`,b ``; without a host it is `%`.
fn names(list: &str) -> Vec<(String, String)> {
    let bare = |text: &str| text.trim().trim_matches(['`', '\'', '"']).to_owned();
    let one = |part: &str| {
        let (user, host) = part.rsplit_once('@').map_or((part, "%"), |(user, host)| (user, host));
        (bare(user), bare(host))
    };
    list.split(',').filter(|part| !part.trim().is_empty()).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::only_reads;

    #[test]
    fn every_statement_only_reads() {
        let all =
            [&BY_ROLE[..], &ROLE_ADMINS, &PROXIES, &DYNAMIC, &ROLES_THAT_LOG_IN, &IDLE_ROLES, &PATTERNS];
        let more = [
            &OF_ALL[..],
            &TO_PUBLIC,
            &HANDS_ON,
            &GONE_SCHEMAS,
            &UNUSED_ROLES,
            &SAME_NAME,
            &EXPIRED,
            &SECOND,
            &IN_COMMENTS,
            &THAT_LOCK,
            &PARTS_OF_SUPER,
            &ENDING,
        ];
        for (statement, _) in all.into_iter().chain(more).flatten() {
            assert!(only_reads(statement), "{statement}");
        }
    }

    #[test]
    fn mandatory_roles_are_read_with_and_without_a_host() {
        let pair = |user: &str, host: &str| (user.to_owned(), host.to_owned());
        assert_eq!(names("`a`@`%`, b, 'c'@'h'"), [pair("a", "%"), pair("b", "%"), pair("c", "h")]);
        assert!(names("").is_empty());
    }
}
