//! Defaults of the file that are part of a command line.

use std::path::PathBuf;

use super::Entry;
use crate::failure::{Failure, Status};

/// The defaults that were inserted into a command line.
#[derive(Debug, Default)]
pub struct Added {
    /// The file of defaults.
    pub path: PathBuf,
    /// The defaults.
    pub entries: Vec<Entry>,
}

impl Added {
    /// A note that names all of them, for a mistake that cannot be attributed to one.
    pub fn note(&self) -> Option<String> {
        let typed: Vec<String> = self.entries.iter().flat_map(Entry::typed).collect();
        let path = self.path.display();
        (!typed.is_empty())
            .then(|| format!("{path} adds {}; `mydyno config` says where each comes from", typed.join(" ")))
    }

    /// Adds to a failure whose problems name an option of the file where that option comes from. Values are not repeated.
    pub fn explain(&self, failure: &mut Failure) {
        if failure.status != Status::Usage {
            return;
        }
        let path = self.path.display();
        let blamed =
            self.entries.iter().filter(|entry| failure.problems.iter().any(|text| names(text, &entry.key)));
        let places: Vec<String> = blamed
            .map(|entry| {
                format!(
                    "--{} is a default of {path}:{}; `mydyno config` lists the defaults",
                    entry.key, entry.line
                )
            })
            .collect();
        failure.problems.extend(places);
    }
}

/// Whether a text names a long option.
fn names(text: &str, option: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    text.split("--")
        .skip(1)
        .any(|rest| rest.strip_prefix(option).is_some_and(|rest| !rest.starts_with(of_name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_reported_with_its_place_in_the_file() {
        let entry = |key: &str, value: &str, line| Entry {
            table: Some("bench".to_owned()),
            key: key.to_owned(),
            values: vec![value.to_owned()],
            line,
        };
        let added = Added {
            path: "/home/me/mydyno.toml".into(),
            entries: vec![
                entry("time", "xx", 3),
                entry("connections", "4", 4),
                entry("connect-rate", "hunter2", 5),
            ],
        };
        let mut failure = Failure::usage("--time: \"xx\" is not a duration");
        failure.problems.push("--connect-rate: not a rate".to_owned());
        added.explain(&mut failure);
        let places = failure.problems.split_off(2);
        assert_eq!(places.len(), 2, "{places:?}");
        assert!(places[0].starts_with("--time is a default of /home/me/mydyno.toml:3"), "{places:?}");
        assert!(places[1].starts_with("--connect-rate is a default of /home/me/mydyno.toml:5"), "{places:?}");
        assert!(!places[1].contains("hunter2"));
        // A server that does not answer is no mistake of the file.
        let mut failure = Failure::environment("--time: no answer");
        added.explain(&mut failure);
        assert_eq!(failure.problems.len(), 1);
        assert!(Added::default().note().is_none() && added.note().unwrap().contains("--time=xx"));
    }
}
