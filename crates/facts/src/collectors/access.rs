//! Accounts with privileges over everything, and the certificate that clients are shown.

use serde_json::Value;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::clients::hosts::is_public_pattern;
use crate::collectors::{certificates, passwords};
use crate::context::{Context, Depth};
use crate::der::Certificate;
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::ReadOnly;
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Privileges and certificates.
pub static COLLECTOR: Collector = Collector {
    name: "access",
    cost: Cost { host_ms: 1, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.accounts.over_everything",
            "",
            "accounts beside root and the server's own that may insert, update, delete and drop in all schemas; 20 at most",
        ),
        fact(
            "server.accounts.may_grant",
            "",
            "accounts beside root and the server's own with GRANT OPTION on all schemas; 20 at most",
        ),
        fact(
            "server.accounts.powerful",
            "",
            "accounts beside root and the server's own that may change the server or its accounts (SUPER, SHUTDOWN, CREATE USER, RELOAD with PROCESS) and are not among those over everything; 20 at most",
        ),
        fact(
            "server.accounts.powerful_public",
            "",
            "those of both lists (over_everything, powerful) whose host is a public address or network; 20 at most",
        ),
        fact(
            "server.accounts.over_system",
            "",
            "accounts beside root and the server's own that may write to the schema mysql, or to all schemas by a pattern; 20 at most",
        ),
        fact(
            "server.accounts.common_password",
            "",
            "accounts whose password is among the most common ones, or their name with a number, where the server keeps a hash that tells; 20 at most",
        ),
        fact(
            "server.accounts.from_any_host",
            "",
            "accounts with a password that may come from any host; 20 at most",
        ),
        fact(
            "server.accounts.reads_system",
            "",
            "accounts beside root and the server's own that may read the schema mysql by a grant on it; 20 at most",
        ),
        fact(
            "server.accounts.kept_passwords",
            "",
            "servers of FEDERATED and SPIDER tables (CREATE SERVER) whose password mysql.servers keeps in clear; 20 at most",
        ),
        fact(
            "server.accounts.replication_expires",
            "",
            "accounts for replicas whose password expires after some days; 20 at most",
        ),
        fact(
            "server.tls.certificate_left_s",
            "s",
            "time until the server's certificate expires; negative since",
        ),
        fact(
            "server.tls.file_left_s",
            "s",
            "time until the certificate in the file of ssl_cert expires, where the server tells that of the one that it uses; negative since",
        ),
        fact(
            "server.tls.renewed",
            "",
            "certificates in the folder of the server's own that are for the same names and valid for a day or more beyond it: file, left_s; 20 at most",
        ),
        fact("server.tls.certificate_hash", "", "hash of its signature: md5, sha1, other"),
        fact(
            "server.tls.certificate_rsa_bits",
            "count",
            "bits of its key where that is one of RSA, and 0 for keys of other kinds",
        ),
        fact("server.tls.certificate_names", "", "host names that it is for"),
    ],
    run: Run::Server(run),
};

/// Accounts of the server and of its packages, and roles in MariaDB, which have no host.
macro_rules! accounts {
    ($condition:literal, $rest:literal) => {
        concat!(
            "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE ",
            $condition,
            " AND User NOT IN ('root', 'mysql', 'mariadb.sys', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'debian-sys-maint')",
            $rest,
            " ORDER BY User, Host LIMIT 20"
        )
    };
}
macro_rules! wordings {
    ($condition:literal) => {
        [
            (accounts!($condition, " AND is_role = 'N'"), &[mariadb(100_005..)]),
            (accounts!($condition, " AND account_locked = 'N'"), &[mysql(50_706..)]),
            (accounts!($condition, ""), &[mysql(0..).until(50_706), mariadb(0..).until(100_005)]),
        ]
    };
}
const OVER_EVERYTHING: [Wording; 3] =
    wordings!("Insert_priv = 'Y' AND Update_priv = 'Y' AND Delete_priv = 'Y' AND Drop_priv = 'Y'");
const MAY_GRANT: [Wording; 3] = wordings!("Grant_priv = 'Y'");
const POWERFUL: [Wording; 3] = wordings!(
    "(Super_priv = 'Y' OR Shutdown_priv = 'Y' OR Create_user_priv = 'Y' OR (Reload_priv = 'Y' AND Process_priv = 'Y' AND File_priv = 'Y')) AND NOT (Insert_priv = 'Y' AND Update_priv = 'Y' AND Delete_priv = 'Y' AND Drop_priv = 'Y')"
);
const FROM_ANY_HOST: [Wording; 3] = wordings!("Host IN ('%', '') AND User <> ''");
const OVER_SYSTEM: &str = "SELECT CONCAT(User, '@', Host, ' on ', Db) FROM mysql.db WHERE (Db = 'mysql' OR Db = '%') AND (Insert_priv = 'Y' OR Update_priv = 'Y' OR Delete_priv = 'Y' OR Drop_priv = 'Y') AND User NOT IN ('root', 'mysql', 'mariadb.sys', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'debian-sys-maint') ORDER BY User, Host LIMIT 20";

const READS_SYSTEM: &str = "SELECT CONCAT(User, '@', Host) FROM mysql.db WHERE Db = 'mysql' AND Select_priv = 'Y' AND User NOT IN ('root', 'mysql', 'mariadb.sys', 'mysql.sys', 'mysql.session', 'mysql.infoschema', 'debian-sys-maint') ORDER BY User, Host LIMIT 20";

/// The password itself is not read.
const KEPT_PASSWORDS: &str =
    "SELECT Server_name FROM mysql.servers WHERE Password <> '' ORDER BY Server_name LIMIT 20";

/// An account's own lifetime of its password; where it has none, default_password_lifetime is in force.
const REPLICATION_EXPIRES: [Wording; 2] = [
    (
        "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE Repl_slave_priv = 'Y' AND Super_priv = 'N' AND password_lifetime > 0 ORDER BY User, Host LIMIT 20",
        &[mysql(50_706..)],
    ),
    (
        "SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u JOIN mysql.global_priv g ON g.User = u.User AND g.Host = u.Host WHERE u.Repl_slave_priv = 'Y' AND u.Super_priv = 'N' AND JSON_VALUE(g.Priv, '$.password_lifetime') > 0 ORDER BY u.User, u.Host LIMIT 20",
        &[mariadb(100_403..)],
    ),
];

const NOT_AFTER: &str = "SHOW GLOBAL STATUS LIKE 'Ssl_server_not_after'";

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    for (id, wordings) in [
        ("server.accounts.over_everything", &OVER_EVERYTHING[..]),
        ("server.accounts.may_grant", &MAY_GRANT[..]),
        ("server.accounts.powerful", &POWERFUL[..]),
        ("server.accounts.from_any_host", &FROM_ANY_HOST[..]),
        ("server.accounts.replication_expires", &REPLICATION_EXPIRES),
    ] {
        let (_, table) = first_of(sql, wordings);
        let names =
            table.map(|t| super::counted::names(t.rows)).map_err(|e| e.missing("SELECT on schema mysql"));
        readings.put(id, "mysql.user", names);
    }
    let listed = ["server.accounts.over_everything", "server.accounts.powerful"]
        .map(|id| readings.value(id).ok_or_else(|| Missing::Error(format!("{id} was not read"))));
    let public = listed.into_iter().collect::<Read<Vec<Value>>>().map(|lists| public(&lists));
    readings.put("server.accounts.powerful_public", "mysql.user", public);
    for (id, from, statement) in [
        ("server.accounts.over_system", "mysql.db", OVER_SYSTEM),
        ("server.accounts.reads_system", "mysql.db", READS_SYSTEM),
        ("server.accounts.kept_passwords", "mysql.servers", KEPT_PASSWORDS),
    ] {
        let names =
            sql.rows(statement).map(super::counted::names).map_err(|e| e.missing("SELECT on schema mysql"));
        readings.put(id, from, names);
    }
    readings.put("server.accounts.common_password", "the accounts' hashes", passwords::common(sql));
    let (from, file) = match certificate(context) {
        Ok((path, certificate)) => (path, Ok(certificate)),
        Err(missing) => ("ssl_cert".to_owned(), Err(missing)),
    };
    let unreadable = || Missing::Error(format!("{from}: the certificate has another form than is known"));
    let file = file.as_ref().map_err(Clone::clone);
    let hash = file.clone().and_then(|found| found.hash().ok_or_else(unreadable));
    readings.put("server.tls.certificate_hash", from.clone(), hash);
    let bits = file.clone().and_then(|found| found.rsa_bits().ok_or_else(unreadable));
    readings.put("server.tls.certificate_rsa_bits", from.clone(), bits);
    let renewed = file.clone().and_then(|own| certificates::beside(context, &from, own));
    readings.put("server.tls.renewed", from.clone(), renewed);
    let names = file.clone().and_then(|found| found.names().ok_or_else(unreadable));
    readings.put("server.tls.certificate_names", from.clone(), names);
    // MariaDB tells it to encrypted sessions only.
    let reported = sql.rows(NOT_AFTER).ok().and_then(|rows| rows.into_iter().next()?.into_iter().nth(1)?);
    let of_file = file.clone().and_then(|found| found.not_after().ok_or_else(unreadable));
    let now = OffsetDateTime::now_utc();
    let of_file = match reported.as_deref().and_then(written_out) {
        Some(_) => of_file.map(|end| (end.assume_utc() - now).as_seconds_f64().round()),
        None => Err(Missing::Absent("the server does not tell when its certificate expires".to_owned())),
    };
    readings.put("server.tls.file_left_s", from.clone(), of_file);
    let (from, end) = match reported.as_deref().and_then(written_out) {
        Some(end) => (NOT_AFTER.to_owned(), Ok(end)),
        None => (from.clone(), file.and_then(|found| found.not_after().ok_or_else(unreadable))),
    };
    let left = end.map(|end| (end.assume_utc() - now).as_seconds_f64().round());
    readings.put("server.tls.certificate_left_s", from, left);
}

/// Accounts of lists that come from a public address or network.
fn public(lists: &[Value]) -> Vec<Value> {
    let all = lists.iter().filter_map(Value::as_array).flatten();
    let is = |account: &&Value| {
        account
            .as_str()
            .and_then(|text| text.rsplit_once('@'))
            .is_some_and(|(_, host)| is_public_pattern(host))
    };
    all.filter(is).take(20).cloned().collect()
}

/// The server's certificate and its file.
fn certificate(context: &Context) -> Read<(String, Certificate)> {
    let named = context.variable("ssl_cert").ok_or_else(|| {
        Missing::Absent(
            "ssl_cert names no file: there is no certificate, or one that the server makes at its start"
                .to_owned(),
        )
    })?;
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let path = match (named.strip_prefix('/'), context.variable("datadir")) {
        (None, Some(datadir)) => format!("{}/{named}", datadir.trim_end_matches('/')),
        _ => named.to_owned(),
    };
    let seen = format!("{}{path}", mounts::view(&context.source, server)?);
    let text = context.source.text_within(&seen, 1 << 20)?;
    let found = Certificate::read(&text)
        .ok_or_else(|| Missing::Error(format!("{path}: no certificate in PEM form was found in it")))?;
    Ok((path, found))
}

/// As in `Nov  3 17:14:13 2036 GMT`.
fn written_out(text: &str) -> Option<PrimitiveDateTime> {
    let form =
        format_description!("[month repr:short] [day padding:none] [hour]:[minute]:[second] [year] GMT");
    let words: Vec<&str> = text.split_whitespace().collect();
    PrimitiveDateTime::parse(&words.join(" "), form).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn the_servers_form_of_a_time_is_read() {
        assert_eq!(written_out("Nov  3 17:14:13 2036 GMT"), Some(datetime!(2036-11-03 17:14:13)));
        assert_eq!(written_out("Nov 23 07:14:13 2036 GMT"), Some(datetime!(2036-11-23 07:14:13)));
        assert_eq!(written_out(""), None);
    }
}
