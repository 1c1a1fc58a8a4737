//! Family and version of a server program, from its output for `--version`.

use std::fmt;

use crate::error::SandboxError;

/// The two families.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// MariaDB.
    MariaDb,
    /// MySQL and its derivatives.
    MySql,
}

impl Family {
    /// As in `mariadb-10.11`.
    pub fn name(self) -> &'static str {
        match self {
            Self::MariaDb => "mariadb",
            Self::MySql => "mysql",
        }
    }
}

/// A server program's family and version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Engine {
    /// Family.
    pub family: Family,
    /// Major, minor, patch.
    pub numbers: (u16, u16, u16),
    /// As in `10.11.19-MariaDB-0+deb12u1`.
    pub text: String,
}

impl Engine {
    /// Parses the output of `--version`, as in `mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64
    /// (Debian 12)`.
    pub fn parse(reported: &str) -> Option<Self> {
        let (_, after) = reported.split_once("Ver ")?;
        let text = after.split_ascii_whitespace().next()?;
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<u16>().ok());
        let numbers = (numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0));
        let family = if text.contains("MariaDB") { Family::MariaDb } else { Family::MySql };
        let oldest = match family {
            Family::MariaDb => (10, 1),
            Family::MySql => (5, 5),
        };
        ((numbers.0, numbers.1) >= oldest).then(|| Self { family, numbers, text: text.to_owned() })
    }

    /// Major and minor version.
    pub fn series(&self) -> (u16, u16) {
        (self.numbers.0, self.numbers.1)
    }
}

impl fmt::Display for Engine {
    /// Family and series, as in `mariadb-10.11`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}.{}", self.family.name(), self.numbers.0, self.numbers.1)
    }
}

/// The value of `--engine`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineRequest {
    family: Family,
    /// One to three numbers, as given.
    numbers: Vec<u16>,
}

impl EngineRequest {
    /// Parses `mariadb`, `mariadb-10.11`, `mysql-8.0.36`.
    ///
    /// # Errors
    /// Any other text.
    pub fn parse(input: &str) -> Result<Self, SandboxError> {
        let error = || SandboxError::EngineName { input: input.to_owned() };
        let (family, numbers) = input.split_once('-').map_or((input, None), |(f, n)| (f, Some(n)));
        let family = match family.to_ascii_lowercase().as_str() {
            "mariadb" => Family::MariaDb,
            "mysql" => Family::MySql,
            _ => return Err(error()),
        };
        let numbers = numbers
            .map_or(Ok(vec![]), |n| n.split('.').map(str::parse).collect::<Result<Vec<u16>, _>>())
            .map_err(|_| error())?;
        if numbers.len() > 3 { Err(error()) } else { Ok(Self { family, numbers }) }
    }

    /// Whether a program is the requested one.
    pub fn matches(&self, engine: &Engine) -> bool {
        let (major, minor, patch) = engine.numbers;
        self.family == engine.family && self.numbers.iter().zip([major, minor, patch]).all(|(a, b)| *a == b)
    }

    /// The requested family.
    pub fn family(&self) -> Family {
        self.family
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answers_of_real_servers_are_read() {
        for (reported, engine, text) in [
            (
                "mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)",
                "mariadb-10.11",
                "10.11.19-MariaDB-0+deb12u1",
            ),
            ("/x/mysqld  Ver 5.5.9 for Linux on x86_64 (Source distribution)", "mysql-5.5", "5.5.9"),
            (
                "/x/mysqld  Ver 8.0.12 for linux-glibc2.12 on x86_64 (MySQL Community Server - GPL)",
                "mysql-8.0",
                "8.0.12",
            ),
            ("mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", "mysql-9.7", "9.7.4-2"),
            (
                "mysqld  Ver 8.0.35-27 for Linux on x86_64 (Percona Server (GPL), Release 27)",
                "mysql-8.0",
                "8.0.35-27",
            ),
            (
                "mysqld  Ver 10.1.23-MariaDB for Linux on x86_64 (MariaDB Server)",
                "mariadb-10.1",
                "10.1.23-MariaDB",
            ),
        ] {
            let found = Engine::parse(reported).unwrap();
            assert_eq!((found.to_string().as_str(), found.text.as_str()), (engine, text));
        }
    }

    #[test]
    fn what_is_no_supported_server_is_not_taken_for_one() {
        for reported in [
            "",
            "bash 5.2",
            "mysqld  Ver 5.1.73 for Linux",
            "mysqld Ver 10.0.38-MariaDB for Linux",
            "Ver x.y",
        ] {
            assert_eq!(Engine::parse(reported), None, "{reported}");
        }
    }

    #[test]
    fn an_engine_is_asked_for_as_exactly_as_it_matters() {
        let engine = Engine::parse("m Ver 10.11.19-MariaDB for").unwrap();
        for (wanted, matches) in [
            ("mariadb", true),
            ("MariaDB-10.11", true),
            ("mariadb-10.11.19", true),
            ("mariadb-10.1", false),
            ("mysql", false),
        ] {
            assert_eq!(EngineRequest::parse(wanted).unwrap().matches(&engine), matches, "{wanted}");
        }
        for wanted in ["", "postgres", "mariadb-", "mysql-8.x", "mysql-8.0.1.2"] {
            assert!(EngineRequest::parse(wanted).is_err(), "{wanted}");
        }
    }
}
