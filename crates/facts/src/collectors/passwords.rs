//! Accounts with a password that everybody tries first. The server compares hashes; none leaves it.

use serde_json::Value;

use crate::source::Read;
use crate::sql::ReadOnly;
use crate::wording::{Since, mariadb, mysql};

/// Passwords that stand at the top of every published list, and those of examples in manuals.
const COMMON: [&str; 40] = [
    "password",
    "Password",
    "passw0rd",
    "Password1",
    "password1",
    "password123",
    "Passw0rd!",
    "P@ssw0rd",
    "123456",
    "12345678",
    "123456789",
    "1234567890",
    "12345",
    "1234",
    "123",
    "111111",
    "qwerty",
    "abc123",
    "letmein",
    "welcome",
    "admin",
    "admin123",
    "root",
    "toor",
    "root123",
    "mysql",
    "mariadb",
    "test",
    "test123",
    "changeme",
    "change_me",
    "secret",
    "default",
    "database",
    "pass",
    "guest",
    "user",
    "monitor",
    "mypass",
    "s3cret",
];

/// Where the hash of mysql_native_password is kept.
const KEPT: [(&str, &str, &[Since]); 3] = [
    ("mysql.global_priv", "JSON_VALUE(Priv, '$.authentication_string')", &[mariadb(100_400..)]),
    ("mysql.user", "authentication_string", &[mysql(50_706..).until(90_000)]),
    ("mysql.user", "Password", &[mysql(50_500..).until(50_706), mariadb(50_200..).until(100_400)]),
];

/// Names of the accounts, 20 at most; none where the server has no accounts with such a hash (MySQL 9.0 and later).
pub fn common(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let dialect = sql.dialect();
    let kept = KEPT.iter().find(|(_, _, servers)| dialect.is_none_or(|dialect| dialect.is(servers)));
    let Some((table, column, _)) = kept else { return Ok(Vec::new()) };
    let rows = sql.rows(&statement(table, column)).map_err(|e| e.missing("SELECT on schema mysql"))?;
    Ok(rows.into_iter().flatten().flatten().map(Value::from).collect())
}

/// A hash of mysql_native_password is an asterisk and the SHA-1 of the SHA-1 of the password. What is made of the name is
/// compared apart: old servers refuse a list of texts with different collations.
fn statement(table: &str, column: &str) -> String {
    // The old column has a character set of its own, which not every session's goes with.
    let column = if column == "Password" { format!("BINARY {column}") } else { column.to_owned() };
    let hash = |text: &str| format!("CONCAT('*', UPPER(SHA1(UNHEX(SHA1({text})))))");
    let fixed = COMMON.map(|password| hash(&format!("'{password}'"))).join(", ");
    let of_name = ["1", "12", "123", "1234", "!"]
        .map(|end| format!("OR {column} = {}", hash(&format!("CONCAT(User, '{end}')"))))
        .join(" ");
    format!(
        "SELECT CONCAT(User, '@', Host) FROM {table} WHERE ({column} IN ({fixed}) {of_name}) AND User <> '' ORDER BY User, Host LIMIT 20"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::only_reads;

    #[test]
    fn the_statement_reads_only_and_names_every_password() {
        let text = statement("mysql.user", "authentication_string");
        assert!(only_reads(&text));
        assert!(COMMON.iter().all(|password| text.contains(&format!("'{password}'"))));
    }
}
