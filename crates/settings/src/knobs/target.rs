//! The release that a query is about: `mysql-9.7`, `mariadb-10.11.8`.

use std::fmt;
use std::str::FromStr;

/// A release: its series and, where known, its number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// As in 10.
    pub major: u32,
    /// As in 11.
    pub minor: u32,
    /// As in 19; without it, the series' newest release.
    pub patch: u32,
}

impl Version {
    /// The number that stands for the newest release of a series.
    const NEWEST: u32 = u32::MAX;

    /// `9.7`, `9.7.4`, `10.11.19-MariaDB-log`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.split('-').next()?;
        let mut parts = text.split('.').map(|part| part.parse::<u32>().ok());
        let (major, minor) = (parts.next()??, parts.next()??);
        let patch = match parts.next() {
            None => Self::NEWEST,
            Some(patch) => patch?,
        };
        parts.next().is_none().then_some(Self { major, minor, patch })
    }

    /// Major and minor.
    pub fn series(self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.patch {
            Self::NEWEST => write!(f, "{}.{}", self.major, self.minor),
            patch => write!(f, "{}.{}.{patch}", self.major, self.minor),
        }
    }
}

/// A family and a release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// `mysql` or `mariadb`.
    pub family: String,
    /// The release.
    pub version: Version,
}

/// A text that names no release.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} names no server: write the family and the release, as in mysql-9.7, mysql-8.0.36 or mariadb-11.8"
)]
pub struct TargetError(pub String);

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError(text.to_owned());
        let (family, version) = text.trim().split_once('-').ok_or_else(wrong)?;
        let family = family.to_ascii_lowercase();
        let version = Version::parse(version).ok_or_else(wrong)?;
        // The families' numbers do not overlap, except for early MariaDB releases that copied MySQL's.
        match family.as_str() {
            "mysql" | "mariadb" => Ok(Self { family, version }),
            _ => Err(wrong()),
        }
    }
}

impl Target {
    /// The server that the facts describe: `server.family` and `server.version`.
    pub fn of_facts(facts: &mydyno_model::facts::FactSet) -> Option<Self> {
        let family = facts.text("server.family")?.to_owned();
        let version = Version::parse(facts.text("server.version")?)?;
        Some(Self { family, version })
    }

    /// The family as it is written: `MySQL`, `MariaDB`.
    pub fn family_name(&self) -> &'static str {
        if self.family == "mariadb" { "MariaDB" } else { "MySQL" }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.family_name(), self.version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_as_people_and_servers_write_them() {
        let read = |text: &str| text.parse::<Target>().map(|t| t.to_string());
        assert_eq!(read("mysql-9.7"), Ok("MySQL 9.7".to_owned()));
        assert_eq!(read("mariadb-10.11.19-MariaDB-log"), Ok("MariaDB 10.11.19".to_owned()));
        assert_eq!(read("MySQL-8.0.36"), Ok("MySQL 8.0.36".to_owned()));
        for wrong in [
            "mysql",
            "mysql-",
            "mysql-8",
            "postgres-16.1",
            "mysql-8.x",
            "mysql-8.0.1.2",
            "",
            "-",
            "mysql-8.0.",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_series_stands_for_its_newest_release() {
        let of = |text| Version::parse(text).unwrap();
        assert!(of("8.0") > of("8.0.46") && of("8.0") < of("8.1.0"));
        assert!(of("10.11.8") < of("10.11.19"));
    }
}
