//! Errors of a server that refuses connections, with remedies.

use crate::auth;
use crate::error::{ServerError, WireError};
use crate::options::ConnectOptions;
use mydyno_model::text;

pub(super) fn unknown_plugin(options: &ConnectOptions, asked: &str) -> WireError {
    WireError::Auth {
        plugin: text::line(&asked.chars().take(64).collect::<String>()),
        detail: format!(
            "the account '{}' uses it and this client has only {}; use another account or ALTER USER … \
             IDENTIFIED WITH one of these",
            options.user,
            auth::PLUGINS
        ),
    }
}

/// A refusal with its remedy.
pub(super) fn refused(options: &ConnectOptions, error: ServerError, awaits_key: bool) -> WireError {
    let remedy = match error.code {
        1045 if awaits_key => "the server gave no RSA key to encrypt the password with, as builds with yaSSL have none: \
                           use TLS (--ssl-mode=REQUIRED) or an account with another plugin"
            .to_owned(),
        1698 => "the account has no password and opens only over the Unix socket, to the operating system's user of the same \
                 name (unix_socket, auth_socket): run as that user, or give the account a password"
            .to_owned(),
        1045 if options.password_bytes().is_empty() => {
            "no password was given: give one by --password-file=FILE, an option file ([client] password=…), a \
             login path, MYSQL_PWD or -p"
                .to_owned()
        }
        1045 => "check the user and the password that was given (by --password-file, an option file, a \
                        login path, MYSQL_PWD or -p), and that the account may connect from this host"
            .to_owned(),
        1044 => "grant the account the schema (GRANT … ON schema.*) or name another one".to_owned(),
        1049 => "create the schema or name another one".to_owned(),
        1040 => "raise max_connections (SET GLOBAL max_connections = N) or close other connections".to_owned(),
        1203 | 1226 => "raise the account's limit of connections or close others of this user".to_owned(),
        1129 => "the server blocks this host after failed connections: FLUSH HOSTS there".to_owned(),
        1130 => "create an account for this host (CREATE USER 'user'@'host')".to_owned(),
        1524 => "the server has the account but not its plugin: load it there (INSTALL SONAME, INSTALL PLUGIN) or alter \
                 the account"
            .to_owned(),
        3159 => "use TLS: --ssl-mode=REQUIRED".to_owned(),
        _ => "see the server's error log".to_owned(),
    };
    WireError::Refused {
        endpoint: options.endpoint.to_string(),
        user: format!("'{}'", options.user),
        error: Box::new(error),
        remedy,
    }
}
