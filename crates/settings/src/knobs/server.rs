//! One queried server: its rules for options, and its knobs.

use indexmap::IndexMap;
use mydyno_model::knob::KnobSeen;
use serde::Deserialize;

use super::target::Version;

/// A server's reaction to an unambiguous abbreviation of an option's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Abbreviations {
    /// It accepts it.
    Silent,
    /// It accepts it with a warning that this support will end.
    Warned,
    /// It rejects the option as unknown.
    Refused,
}

/// A server's reaction to a negative value of a number that cannot be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Negative {
    /// It uses the smallest value.
    Smallest,
    /// It uses the largest value.
    Largest,
    /// It does not start.
    Refused,
}

/// Rules by which a server reads options, as observed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// Whether names are case-sensitive.
    pub case_sensitive: bool,
    /// Abbreviated names.
    pub abbreviations: Abbreviations,
    /// Suffixes of numbers, each 1024 times the one before.
    pub suffixes: String,
    /// Negative values.
    pub negative: Negative,
    /// A number without digits: same reactions.
    pub empty_number: Negative,
    /// Groups that it reads, in the order of its documentation; the order has no effect.
    pub groups: Vec<String>,
    /// Files that it reads, in order.
    pub files: Vec<String>,
}

/// A queried server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// As in `mysql-9.7`.
    pub engine: String,
    /// Its release.
    pub version: String,
    /// How it reads options.
    pub rules: Rules,
    /// Ambiguous prefixes that the server resolves to one option all the same. Each entry stands for all shorter
    /// prefixes shared by the same options, so it is the longest of them, and can be a name itself. A server searches
    /// its options in passes (early options, the others, each plugin's own); a prefix is resolved if it is unambiguous
    /// within a pass. With an ambiguous prefix that is not listed here the server does not start.
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
