//! Identity of the server.

use crate::capability::Capabilities;

/// The two families that speak this protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// MySQL and its derivatives (Percona Server …).
    MySql,
    /// MariaDB.
    MariaDb,
}

/// A server as its greeting shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerVersion {
    /// As in `8.0.36` or `10.11.6-MariaDB-log`, without the `5.5.5-` that MariaDB 10 puts before it.
    pub text: String,
    /// Family.
    pub family: Family,
    /// First number of the version.
    pub major: u16,
    /// Second number.
    pub minor: u16,
    /// Third number.
    pub patch: u16,
    /// The server's id of this connection, as in `SHOW PROCESSLIST`.
    pub connection_id: u32,
    /// Capabilities that the server offers.
    pub capabilities: Capabilities,
}

impl ServerVersion {
    /// Reads the version text of a greeting.
    pub fn parse(text: &str, connection_id: u32, capabilities: Capabilities) -> Self {
        // MariaDB 10 says 5.5.5- first, so that old replicas take it for a 5.5; 11 does not.
        let mariadb = text.contains("MariaDB") || text.contains("mariadb");
        let bare = match text.strip_prefix("5.5.5-") {
            Some(rest) if mariadb => rest,
            _ => text,
        };
        let mut numbers = bare
            .split(|c: char| !c.is_ascii_digit())
            .take(3)
            .map(|digits| digits.parse::<u16>().unwrap_or(0));
        let mut next = || numbers.next().unwrap_or(0);
        let (major, minor, patch) = (next(), next(), next());
        Self {
            text: bare.to_owned(),
            family: if mariadb { Family::MariaDb } else { Family::MySql },
            major,
            minor,
            patch,
            connection_id,
            capabilities,
        }
    }

    /// Whether the version is at least this one (within its own family).
    pub fn at_least(&self, major: u16, minor: u16, patch: u16) -> bool {
        (self.major, self.minor, self.patch) >= (major, minor, patch)
    }

    /// Whether this is MariaDB.
    pub fn is_mariadb(&self) -> bool {
        self.family == Family::MariaDb
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_both_families_are_read() {
        let seen = [
            ("5.5.5-10.11.6-MariaDB-0+deb12u1", Family::MariaDb, (10, 11, 6)),
            ("11.8.9-MariaDB-log", Family::MariaDb, (11, 8, 9)),
            ("5.5.9-log", Family::MySql, (5, 5, 9)),
            ("8.0.36-28", Family::MySql, (8, 0, 36)),
            ("9.7.4", Family::MySql, (9, 7, 4)),
            ("nonsense", Family::MySql, (0, 0, 0)),
        ];
        for (text, family, numbers) in seen {
            let version = ServerVersion::parse(text, 1, Capabilities::default());
            assert_eq!((version.family, (version.major, version.minor, version.patch)), (family, numbers));
        }
        let mariadb = ServerVersion::parse("5.5.5-10.11.6-MariaDB", 1, Capabilities::default());
        assert_eq!(mariadb.text, "10.11.6-MariaDB");
        assert!(mariadb.at_least(10, 6, 0) && !mariadb.at_least(10, 12, 0));
    }
}
