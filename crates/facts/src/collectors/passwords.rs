//! Accounts with a password that everybody tries first. The server compares hashes that have no salt; those of
//! caching_sha2_password are read and compared here, over a socket or TLS only, and not kept.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::sha_crypt::Stored;
use crate::source::{Missing, Read};
use crate::sql::ReadOnly;
use crate::wording::{Since, Wording, first_of, mariadb, mysql};

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

/// Names of the accounts, 20 at most.
pub fn common(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let dialect = sql.dialect();
    let kept = KEPT.iter().find(|(_, _, servers)| dialect.is_none_or(|dialect| dialect.is(servers)));
    let mut found: Vec<Value> = Vec::new();
    // MySQL 9.0 and later have no accounts with such a hash.
    if let Some((table, column, _)) = kept {
        let rows = sql.rows(&statement(table, column)).map_err(|e| e.missing("SELECT on schema mysql"))?;
        found.extend(rows.into_iter().flatten().flatten().map(Value::from));
    }
    let guesses = |user: &str| {
        let of_name = ENDS.map(|end| format!("{user}{end}"));
        of_name.into_iter().chain(MOST_COMMON.map(str::to_owned)).collect::<Vec<String>>()
    };
    complete(found, salted(sql, &guesses))
}

/// Names of the accounts with a salted hash whose password is their name.
pub fn named(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    complete(vec![], salted(sql, &|user| vec![user.to_owned()]))
}

/// The findings of both ways. Unknown where none was found and some could not be compared.
fn complete(mut found: Vec<Value>, salted: Read<Vec<Value>>) -> Read<Vec<Value>> {
    match salted {
        Ok(more) => found.extend(more),
        Err(missing) if found.is_empty() => return Err(missing),
        Err(_) => {}
    }
    found.truncate(20);
    Ok(found)
}

/// Endings that are appended to a name.
const ENDS: [&str; 5] = ["1", "12", "123", "1234", "!"];

/// Those that salted hashes are compared with: each takes some milliseconds.
const MOST_COMMON: [&str; 10] = [
    "password",
    "123456",
    "12345678",
    "Password1",
    "P@ssw0rd",
    "admin",
    "root",
    "mysql",
    "secret",
    "changeme",
];

/// Accounts that are compared, and how long.
const MOST_ACCOUNTS: usize = 40;
const LONGEST: Duration = Duration::from_millis(700);
/// Most rounds of a hash that is compared: the server's default is 5,000 (`caching_sha2_password_digest_rounds`).
const MOST_ROUNDS: u32 = 50_000;

const SALTED: [Wording; 1] = [(
    "SELECT User, Host, HEX(authentication_string) FROM mysql.user WHERE plugin = 'caching_sha2_password' AND account_locked = 'N' AND authentication_string <> '' AND User <> '' ORDER BY User, Host LIMIT 41",
    &[mysql(80_000..)],
)];
const SALTED_COUNT: [Wording; 1] = [(
    "SELECT COUNT(*) FROM mysql.user WHERE plugin IN ('caching_sha2_password', 'sha256_password') AND account_locked = 'N' AND authentication_string <> '' AND User <> ''",
    &[mysql(80_000..)],
)];
const PRIVATE: &str = "SELECT COUNT(*) FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID() AND CONNECTION_TYPE IN ('Socket', 'SSL/TLS')";

/// Accounts of caching_sha2_password with one of the guessed passwords.
///
/// # Errors
/// Not all could be compared, and none was found among the others.
fn salted(sql: &mut ReadOnly<'_>, guesses: &dyn Fn(&str) -> Vec<String>) -> Read<Vec<Value>> {
    if !sql.has_dictionary() {
        return Ok(vec![]);
    }
    let number = |rows: Vec<crate::sql::Row>| -> u64 {
        rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok()).unwrap_or(0)
    };
    let refused = |e: crate::sql::SqlError| e.missing("SELECT on schema mysql");
    let all = first_of(sql, &SALTED_COUNT).1.map(|table| number(table.rows)).map_err(refused)?;
    let private = sql.rows(PRIVATE).map(number).unwrap_or(0) > 0;
    let rows = match all > 0 && private {
        true => first_of(sql, &SALTED).1.map_err(refused)?.rows,
        false => vec![],
    };
    let until = Instant::now() + LONGEST;
    let (mut compared, mut found) = (0, Vec::new());
    for row in rows.iter().take(MOST_ACCOUNTS) {
        let [Some(user), Some(host), Some(hash)] = &row[..] else { continue };
        let Some(stored) = bytes_of(hash).as_deref().and_then(Stored::read) else { continue };
        if Instant::now() >= until {
            break;
        }
        match first_that_fits(&stored, &guesses(user), until) {
            Some(true) => found.push(Value::from(format!("{user}@{host}"))),
            Some(false) => {}
            None => continue,
        }
        compared += 1;
    }
    if found.is_empty() && compared < all {
        return Err(Missing::Error(format!(
            "{} of {all} account(s) keep salted hashes that were not compared: that needs a socket or TLS, performance_schema, and time",
            all - compared
        )));
    }
    Ok(found)
}

/// Whether a hash is that of one of the guesses; `None` where the time is over before all are compared. An account may have a thousand
/// times the usual rounds, and each guess then takes seconds: it is not begun.
fn first_that_fits(stored: &Stored, guesses: &[String], until: Instant) -> Option<bool> {
    if stored.rounds() > MOST_ROUNDS {
        return None;
    }
    for guess in guesses {
        if Instant::now() >= until {
            return None;
        }
        if stored.is_of(guess) {
            return Some(true);
        }
    }
    Some(false)
}

/// Bytes that are written as hexadecimal digits.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// A hash of mysql_native_password is an asterisk and the SHA-1 of the SHA-1 of the password. What is made of the name is
/// compared apart: old servers refuse a list of texts with different collations.
fn statement(table: &str, column: &str) -> String {
    // The old column has a character set of its own, which not every session's goes with.
    let column = if column == "Password" { format!("BINARY {column}") } else { column.to_owned() };
    let hash = |text: &str| format!("CONCAT('*', UPPER(SHA1(UNHEX(SHA1({text})))))");
    let fixed = COMMON.map(|password| hash(&format!("'{password}'"))).join(", ");
    let of_name =
        ENDS.map(|end| format!("OR {column} = {}", hash(&format!("CONCAT(User, '{end}')")))).join(" ");
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
        assert!(only_reads(&text) && only_reads(PRIVATE));
        assert!(SALTED.iter().chain(&SALTED_COUNT).all(|(statement, _)| only_reads(statement)));
        assert_eq!(bytes_of("2441"), Some(b"$A".to_vec()));
        assert!(COMMON.iter().all(|password| text.contains(&format!("'{password}'"))));
    }
}
