//! Differences between families and versions in what they need to start: data, one row a difference.

use crate::version::{Engine, Family};

/// The step to which a row applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// Initialising the data directory.
    Init,
    /// Running the server.
    Start,
}

struct Quirk {
    family: Family,
    /// First series that needs it.
    from: (u16, u16),
    /// First series that no longer needs or knows it.
    below: (u16, u16),
    when: &'static [When],
    options: &'static [&'static str],
}

const ALWAYS: (u16, u16) = (0, 0);
const STILL: (u16, u16) = (u16::MAX, 0);
const BOTH: &[When] = &[When::Init, When::Start];

const QUIRKS: &[Quirk] = &[
    // The scripts of the system tables contain statements longer than a default packet.
    Quirk {
        family: Family::MariaDb,
        from: ALWAYS,
        below: STILL,
        when: &[When::Init],
        options: &[
            "--bootstrap",
            "--log-warnings=0",
            "--enforce-storage-engine=",
            "--max-allowed-packet=8M",
            "--net-buffer-length=16K",
        ],
    },
    Quirk {
        family: Family::MySql,
        from: ALWAYS,
        below: (5, 7),
        when: &[When::Init],
        options: &["--bootstrap", "--log-warnings=0", "--max-allowed-packet=8M", "--net-buffer-length=16K"],
    },
    Quirk {
        family: Family::MySql,
        from: (5, 7),
        below: STILL,
        when: &[When::Init],
        options: &["--initialize-insecure"],
    },
    // The compiled-in folder for LOAD DATA and INTO OUTFILE belongs to a packaged server and may not exist, which is an
    // error at the start. NULL permits neither statement.
    Quirk {
        family: Family::MySql,
        from: (5, 7),
        below: STILL,
        when: BOTH,
        options: &["--secure-file-priv=NULL"],
    },
    // The X protocol would listen on another port and socket.
    Quirk {
        family: Family::MySql,
        from: (8, 0),
        below: STILL,
        when: &[When::Start],
        options: &["--loose-mysqlx=OFF"],
    },
    // From 11.4 the server makes an RSA key at each start, which takes seconds; it listens on loopback only.
    Quirk {
        family: Family::MariaDb,
        from: (11, 4),
        below: STILL,
        when: &[When::Start],
        options: &["--skip-ssl"],
    },
];

/// The options that a server needs beyond its paths.
pub(crate) fn options(engine: &Engine, when: When) -> impl Iterator<Item = &'static str> + '_ {
    let series = engine.series();
    QUIRKS
        .iter()
        .filter(move |q| {
            q.family == engine.family && q.from <= series && series < q.below && q.when.contains(&when)
        })
        .flat_map(|q| q.options.iter().copied())
}

/// Whether the system tables are made from SQL scripts (`--bootstrap`) rather than by the server itself.
pub(crate) fn initialises_from_scripts(engine: &Engine) -> bool {
    options(engine, When::Init).any(|o| o == "--bootstrap")
}

/// How passwords of accounts are set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Accounts {
    /// `SET PASSWORD` takes a mysql_native_password hash; accounts are in `mysql.user`.
    UserTable,
    /// As `UserTable`, but accounts are in `mysql.global_priv`.
    GlobalPriv,
    /// `SET PASSWORD` takes the password in clear, and `ALTER USER … AS` takes the hash; accounts are in `mysql.user`.
    UserTableWithPlugins,
    /// `ALTER USER … IDENTIFIED BY`, with the server's default plugin; there are no accounts but its own.
    Plugins,
}

/// How passwords of a server's accounts are set.
pub(crate) fn accounts(engine: &Engine) -> Accounts {
    match (engine.family, engine.series()) {
        (Family::MariaDb, series) if series >= (10, 4) => Accounts::GlobalPriv,
        (Family::MariaDb, _) => Accounts::UserTable,
        (Family::MySql, series) if series >= (8, 0) => Accounts::Plugins,
        (Family::MySql, series) if series >= (5, 7) => Accounts::UserTableWithPlugins,
        (Family::MySql, _) => Accounts::UserTable,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(reported: &str) -> Engine {
        Engine::parse(&format!("mysqld  Ver {reported} for Linux")).unwrap()
    }

    #[test]
    fn each_series_gets_the_options_that_it_knows() {
        let start = |reported: &str| options(&engine(reported), When::Start).collect::<Vec<_>>();
        assert_eq!(start("10.11.19-MariaDB"), [""; 0]);
        assert_eq!(start("11.4.5-MariaDB"), ["--skip-ssl"]);
        assert_eq!(start("5.6.24"), [""; 0]);
        assert_eq!(start("5.7.22"), ["--secure-file-priv=NULL"]);
        assert_eq!(start("9.7.4-2"), ["--secure-file-priv=NULL", "--loose-mysqlx=OFF"]);
    }

    #[test]
    fn mysql_makes_its_own_system_tables_from_5_7() {
        assert!(initialises_from_scripts(&engine("5.6.24")));
        assert!(!initialises_from_scripts(&engine("5.7.22")));
        assert!(initialises_from_scripts(&engine("11.8.9-MariaDB")));
    }

    #[test]
    fn accounts_follow_the_tables_of_the_series() {
        for (reported, expected) in [
            ("5.5.9", Accounts::UserTable),
            ("5.7.22", Accounts::UserTableWithPlugins),
            ("8.0.12", Accounts::Plugins),
            ("10.3.39-MariaDB", Accounts::UserTable),
            ("10.4.1-MariaDB", Accounts::GlobalPriv),
        ] {
            assert_eq!(accounts(&engine(reported)), expected, "{reported}");
        }
    }
}
