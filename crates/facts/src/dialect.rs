//! Ranges of server versions, and the version of a server.

use std::ops::RangeFrom;

use crate::version::{family_of, version_number};

/// The servers that support a statement: a family, and the versions from the first number up to, but excluding, the
/// second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since {
    mariadb: bool,
    from: u64,
    until: u64,
}

/// MySQL from a version on, as in `80_022`.
pub(crate) const fn mysql(from: RangeFrom<u64>) -> Since {
    Since { mariadb: false, from: from.start, until: u64::MAX }
}

/// MariaDB from a version on, as in `100_501`.
pub(crate) const fn mariadb(from: RangeFrom<u64>) -> Since {
    Since { mariadb: true, from: from.start, until: u64::MAX }
}

impl Since {
    /// The same servers up to, but excluding, a version.
    pub(crate) const fn until(self, until: u64) -> Self {
        Self { until, ..self }
    }
}

/// Family and version of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dialect {
    mariadb: bool,
    number: u64,
}

impl Dialect {
    /// Parses the text of VERSION(); `None` when it has another form.
    pub(crate) fn of(version: &str) -> Option<Self> {
        let number = version_number(version).ok()?;
        Some(Self { mariadb: family_of(version) == "mariadb", number })
    }

    /// Whether this server is one of these.
    pub(crate) fn is(self, servers: &[Since]) -> bool {
        servers.iter().any(|s| s.mariadb == self.mariadb && (s.from..s.until).contains(&self.number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_asked_in_the_words_of_its_version() {
        let servers = [mysql(80_022..), mariadb(100_000..).until(100_501)];
        for (version, knows) in [
            ("8.0.21", false),
            ("8.0.22", true),
            ("9.7.0", true),
            ("10.4.34-MariaDB", true),
            ("10.5.1-MariaDB", false),
            ("5.5.5-10.4.34-MariaDB", true),
            ("5.5.68-MariaDB", false),
        ] {
            assert_eq!(Dialect::of(version).unwrap().is(&servers), knows, "{version}");
        }
        assert_eq!(Dialect::of("unknown"), None);
    }
}
