//! Resolves a written option name in the same way as the servers.
//!
//! The name is looked up as it is, with dashes and underscores equivalent; then, where the server still allows that, as
//! an abbreviation of one option (or of several, of which it takes one: [`Server::short`]); then without a prefix
//! `skip-`, `disable-`, `enable-`, `maximum-` or `loose-`, repeatedly.

use indexmap::IndexMap;

use crate::knobs::{Abbreviations, Knobs, Presence, Rules, Server, Target};

/// A prefix that changes the meaning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    Skip,
    Enable,
    Maximum,
    Loose,
}

const PREFIXES: [(&str, Prefix); 5] = [
    ("skip", Prefix::Skip),
    ("disable", Prefix::Skip),
    ("enable", Prefix::Enable),
    ("maximum", Prefix::Maximum),
    ("loose", Prefix::Loose),
];

/// The result of resolving a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// An option; its full name.
    Option(String),
    /// The abbreviation of exactly one option.
    Abbreviated(String),
    /// The abbreviation of several options.
    Ambiguous(Vec<String>),
    /// No option of this release.
    Unknown,
}

/// A name, split into its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The option.
    pub found: Found,
    /// The name that was looked up last: with underscores, without prefixes, and in lower case if the server ignores
    /// case.
    pub bare: String,
    /// The name had the prefix `loose-`: if it is unknown, the server only warns.
    pub loose: bool,
    /// The value that a prefix implies.
    pub value: Option<&'static str>,
    /// The name had the prefix `maximum-`: the value is an upper bound for sessions, not the value.
    pub maximum: bool,
}

/// The longest common prefix of these names.
fn shared<'n>(first: &'n str, names: &[&str]) -> &'n str {
    let same = |name: &&str| first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    // Option names are ASCII, so each byte is a character.
    first.get(..names.iter().map(same).min().unwrap_or_default()).unwrap_or_default()
}

/// All options of a release.
pub struct Options<'k> {
    knobs: &'k Knobs,
    target: &'k Target,
    rules: &'k Rules,
    short: &'k IndexMap<String, String>,
    names: Vec<&'k str>,
}

impl<'k> Options<'k> {
    /// The options that the release accepts; `server` is a queried server that parses options as the release does.
    pub fn of(knobs: &'k Knobs, target: &'k Target, server: &'k Server) -> Self {
        let mut options =
            Self { knobs, target, rules: &server.rules, short: &server.short, names: Vec::new() };
        let listed = knobs.iter().filter(|knob| options.takes(&knob.name) == Some(true));
        options.names = listed.map(|knob| knob.name.as_str()).collect();
        options
    }

    /// Whether the release accepts an option of exactly this name; `None` for an option known only from notes or
    /// undecided, which counts as accepted.
    fn takes(&self, name: &str) -> Option<bool> {
        match self.knobs.presence(name, self.target) {
            Presence::Has { on: Some(on), .. } => Some(on.seen.option.is_some()),
            Presence::Has { on: None, .. } => None,
            Presence::Undecided { on, .. } if on.seen.option.is_some() => None,
            _ => Some(false),
        }
    }

    fn is_option(&self, name: &str) -> bool {
        self.takes(name) != Some(false)
    }

    fn look(&self, name: &str) -> Found {
        if self.is_option(name) {
            return Found::Option(name.to_owned());
        }
        if self.rules.abbreviations == Abbreviations::Refused || name.is_empty() {
            return Found::Unknown;
        }
        let listed = |known: &&&str| {
            let presence = self.knobs.presence(known, self.target);
            // An option that the server accepts without listing it cannot be abbreviated.
            !matches!(presence, Presence::Has { on: Some(on), .. } if on.seen.unlisted)
        };
        let longer: Vec<&str> =
            self.names.iter().filter(|known| known.starts_with(name)).filter(listed).copied().collect();
        match longer[..] {
            [] => Found::Unknown,
            [one] => Found::Abbreviated(one.to_owned()),
            [first, ..] => match self.short.get(shared(first, &longer)) {
                Some(taken) if self.is_option(taken) => Found::Abbreviated(taken.clone()),
                _ => Found::Ambiguous(longer.iter().map(|n| (*n).to_owned()).collect()),
            },
        }
    }

    /// Whether the release has an option of exactly this name.
    pub fn look_is_known(&self, name: &str) -> bool {
        matches!(self.look(name), Found::Option(_))
    }

    /// Resolves a written name; `value` is the text after the `=`.
    pub fn resolve(&self, written: &str, value: Option<&str>) -> Resolved {
        let plain = written.replace('-', "_");
        let plain = if self.rules.case_sensitive { plain } else { plain.to_ascii_lowercase() };
        let mut name = plain.as_str();
        let (mut loose, mut maximum, mut given) = (false, false, None);
        loop {
            let found = self.look(name);
            if found != Found::Unknown {
                return Resolved { found, bare: name.to_owned(), loose, value: given, maximum };
            }
            let prefix = PREFIXES.iter().find_map(|(word, prefix)| {
                let rest = name.strip_prefix(word)?.strip_prefix('_')?;
                (!rest.is_empty()).then_some((rest, *prefix))
            });
            let Some((rest, prefix)) = prefix else {
                return Resolved {
                    found: Found::Unknown,
                    bare: name.to_owned(),
                    loose,
                    value: given,
                    maximum,
                };
            };
            match prefix {
                Prefix::Loose => loose = true,
                Prefix::Maximum => maximum = true,
                // `skip-x=0` enables `x`, but `enable-x=0` disables it.
                Prefix::Skip => given = Some(if value == Some("0") { "1" } else { "0" }),
                Prefix::Enable => given = Some(if value == Some("0") { "0" } else { "1" }),
            }
            name = rest;
        }
    }

    /// Options with similar names.
    pub fn near(&self, name: &str) -> Vec<String> {
        mydyno_settings::several(&name.to_ascii_lowercase(), self.names.iter().copied())
    }
}
