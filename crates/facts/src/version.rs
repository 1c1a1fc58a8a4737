//! Family and number of a server, from the text of VERSION().

use crate::source::{Missing, Read};

/// `mariadb` or `mysql`.
pub fn family_of(version: &str) -> String {
    if version.to_ascii_lowercase().contains("mariadb") { "mariadb" } else { "mysql" }.to_owned()
}

/// `10.11.19-MariaDB` as 101119.
///
/// # Errors
/// The text does not begin with three numbers.
pub fn version_number(version: &str) -> Read<u64> {
    let wrong = || Missing::Error(format!("the version {version:?} does not begin like 8.0.36"));
    // Behind some proxies MariaDB calls itself 5.5.5-10.11.19-MariaDB, for the sake of old replicas.
    let bare = version.strip_prefix("5.5.5-").filter(|v| v.contains("MariaDB")).unwrap_or(version);
    let mut parts = bare.split(|c: char| !c.is_ascii_digit());
    let mut next = || parts.next().and_then(|p| p.parse::<u64>().ok()).filter(|n| *n < 100_000);
    match (next(), next(), next()) {
        (Some(major), Some(minor), Some(patch)) if minor < 100 && patch < 100 => {
            Ok(major * 10_000 + minor * 100 + patch)
        }
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_become_numbers_that_can_be_compared() {
        for (text, number) in [
            ("10.11.19-MariaDB-0+deb12u1-log", 101_119),
            ("5.5.5-10.6.7-MariaDB", 100_607),
            ("8.0.46", 80_046),
            ("9.7.0-commercial", 90_700),
            ("5.7.44-48-log", 50_744),
        ] {
            assert_eq!(version_number(text), Ok(number), "{text}");
        }
        for text in ["", "8", "8.0", "x.y.z", "8.100.1", "99999999999999999999.1.1"] {
            assert!(version_number(text).is_err(), "{text}");
        }
        assert_eq!(family_of("10.11.19-MariaDB"), "mariadb");
        assert_eq!(family_of("8.0.46"), "mysql");
    }
}
