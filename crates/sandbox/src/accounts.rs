//! The account of a private server: its password, and the statements that set it before any client can connect.

use sha1::{Digest, Sha1};

use crate::error::SandboxError;
use crate::quirks::{Accounts, accounts};
use crate::version::Engine;

/// The account of every private server.
pub(crate) const USER: &str = "root";

const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const PASSWORD_LENGTH: usize = 32;

/// A new password: 32 characters from an alphabet of 62, 190 bits of kernel randomness.
pub(crate) fn new_password() -> Result<String, SandboxError> {
    let mut password = String::with_capacity(PASSWORD_LENGTH);
    let mut bytes = [0u8; 64];
    while password.len() < PASSWORD_LENGTH {
        getrandom::fill(&mut bytes).map_err(|e| SandboxError::io("read", "/dev/urandom", e.into()))?;
        // Bytes from 248 (4 × 62) on would make the first letters more likely than the rest.
        let letters = bytes.iter().filter(|b| **b < 248).map(|b| char::from(ALPHABET[usize::from(*b) % 62]));
        password.extend(letters.take(PASSWORD_LENGTH - password.len()));
    }
    Ok(password)
}

/// Content of the file for `--init-file`: one statement a line. The server executes it before it accepts connections.
///
/// For accounts with native passwords the file contains only the hash, so the server never sees the password in clear.
pub(crate) fn init_statements(engine: &Engine, password: &str) -> String {
    let hash = native_hash(password);
    let mut lines = vec!["SET SESSION sql_log_bin=0;".to_owned()];
    let all = |account: &str| format!("GRANT ALL PRIVILEGES ON *.* TO {account} WITH GRANT OPTION;");
    for account in ["'root'@'localhost'", "'root'@'127.0.0.1'"] {
        match accounts(engine) {
            Accounts::UserTable | Accounts::GlobalPriv => {
                // GRANT … IDENTIFIED BY PASSWORD creates the account, but leaves the password of an existing one.
                lines.push(format!(
                    "GRANT ALL PRIVILEGES ON *.* TO {account} IDENTIFIED BY PASSWORD '{hash}' WITH GRANT OPTION;"
                ));
                lines.push(format!("SET PASSWORD FOR {account} = '{hash}';"));
            }
            Accounts::UserTableWithPlugins => {
                lines.push(format!("CREATE USER IF NOT EXISTS {account};"));
                lines
                    .push(format!("ALTER USER {account} IDENTIFIED WITH mysql_native_password AS '{hash}';"));
                lines.push(all(account));
            }
            Accounts::Plugins => {
                // Letters and digits need no escaping. The server keeps passwords of these statements out of its logs.
                lines.push(format!("CREATE USER IF NOT EXISTS {account};"));
                lines.push(format!("ALTER USER {account} IDENTIFIED BY '{password}';"));
                lines.push(all(account));
            }
        }
    }
    let table = match accounts(engine) {
        Accounts::UserTable | Accounts::UserTableWithPlugins => Some("mysql.user"),
        Accounts::GlobalPriv => Some("mysql.global_priv"),
        Accounts::Plugins => None,
    };
    if let Some(table) = table {
        // Old series create anonymous accounts, and root accounts for host names.
        lines.push(format!(
            "DELETE FROM {table} WHERE User='' OR (User='root' AND Host NOT IN ('localhost','127.0.0.1'));"
        ));
        lines.push("DELETE FROM mysql.db WHERE User='';".to_owned());
        // Last, because MariaDB from 10.4 ignores the statements of this file that follow it.
        lines.push("FLUSH PRIVILEGES;".to_owned());
    }
    lines.join("\n") + "\n"
}

/// The stored form of mysql_native_password: `*` and SHA1(SHA1(password)) in upper-case hex.
fn native_hash(password: &str) -> String {
    let twice = Sha1::digest(Sha1::digest(password.as_bytes()));
    twice.iter().fold("*".to_owned(), |text, byte| format!("{text}{byte:02X}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_native_hash_is_that_of_the_server() {
        // The results of SELECT PASSWORD('password') and PASSWORD('mypass') in MySQL's manual.
        assert_eq!(native_hash("password"), "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19");
        assert_eq!(native_hash("mypass"), "*6C8989366EAF75BB670AD8EA7A7FC1176A95CEF4");
    }

    #[test]
    fn passwords_have_32_letters_and_digits_and_differ() {
        let (a, b) = (new_password().unwrap(), new_password().unwrap());
        assert!(a.len() == 32 && a.bytes().all(|c| c.is_ascii_alphanumeric()), "{}", a.len());
        assert_ne!(a, b);
    }

    #[test]
    fn servers_with_native_passwords_never_see_them_in_clear() {
        for reported in ["m Ver 10.11.1-MariaDB x", "m Ver 5.7.1 x", "m Ver 10.1.1-MariaDB x"] {
            let text = init_statements(&Engine::parse(reported).unwrap(), "Secret123");
            assert!(!text.contains("Secret123") && text.contains(&native_hash("Secret123")), "{text}");
        }
    }
}
