//! One server that was asked: how it reads options, and its knobs.

use indexmap::IndexMap;
use mydyno_model::knob::KnobSeen;
use serde::Deserialize;

use super::target::Version;

/// A server's reaction to an unambiguous abbreviation of an option's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abbreviations {
    /// It takes it.
    Silent,
    /// It takes it and says that it will not for ever.
    Warned,
    /// The option is unknown.
    Refused,
}

/// A server's reaction to a negative value of a number that cannot be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Negative {
    /// It takes the smallest value.
    Smallest,
    /// It takes the largest value.
    Largest,
    /// It does not start.
    Refused,
}

/// How a server reads options, as seen.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Whether upper case in a name makes it another one.
    pub case_sensitive: bool,
    /// Names that are cut short.
    pub abbreviations: Abbreviations,
    /// Letters behind a number that multiply it by 1024, each by that of the one before.
    pub suffixes: String,
    /// Negative values.
    pub negative: Negative,
    /// A number without digits: the same possibilities.
    pub empty_number: Negative,
    /// Groups that it reads, in its own order; the order does not matter.
    pub groups: Vec<String>,
    /// Files that it reads, in order.
    pub files: Vec<String>,
}

/// A server that was asked.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// As in `mysql-9.7`.
    pub engine: String,
    /// Its release.
    pub version: String,
    /// How it reads options.
    pub rules: Rules,
    /// Beginnings that several options share, and the one that it takes them for all the same. Each stands for those before
    /// it that the same options share, so it is the longest, and can be a name itself. A server looks through its options in
    /// turns (those that it needs first, the others, each plugin's own); a beginning means one of them if it does within a
    /// turn. With a beginning that several share and that is not here it does not start.
    #[serde(default)]
    pub short: IndexMap<String, String>,
    /// Its knobs by name.
    pub knobs: IndexMap<String, KnobSeen>,
}

impl Server {
    /// `mysql` or `mariadb`.
    pub fn family(&self) -> &str {
        self.engine.split('-').next().unwrap_or_default()
    }

    /// Its release.
    pub fn release(&self) -> Version {
        Version::parse(&self.version).unwrap_or(Version { major: 0, minor: 0, patch: 0 })
    }

    /// Major and minor of its release.
    pub fn series(&self) -> (u32, u32) {
        self.release().series()
    }
}
