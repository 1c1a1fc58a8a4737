//! Which option a written name means, as the servers decide it.
//!
//! A name is looked for as it is, dashes and underscores being the same; then, where the server still does that, as the
//! beginning of one (or of several, of which it takes one: [`Server::short`]); then without `skip-`, `disable-`, `enable-`, `maximum-` or `loose-` before it, again and again.

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
    /// The beginning of exactly one option.
    Abbreviated(String),
    /// The beginning of several.
    Ambiguous(Vec<String>),
    /// None that this release has.
    Unknown,
}

/// A name, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The option.
    pub found: Found,
    /// The name that was looked up last: lower case where the server does not care, with underscores, without prefixes.
    pub bare: String,
    /// `loose-` stood before it: an unknown name is a warning.
    pub loose: bool,
    /// The value that a prefix implies.
    pub value: Option<&'static str>,
    /// `maximum-`: the value is a bound for sessions, not the value.
    pub maximum: bool,
}

/// The longest beginning of a name that all of these share.
fn shared<'n>(first: &'n str, names: &[&str]) -> &'n str {
    let same = |name: &&str| first.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
    // Names of options are ASCII: each byte is a letter.
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
    /// Those that the release takes; `server` is the one that was asked and reads options as the release does.
    pub fn of(knobs: &'k Knobs, target: &'k Target, server: &'k Server) -> Self {
        let mut options =
            Self { knobs, target, rules: &server.rules, short: &server.short, names: Vec::new() };
        let listed = knobs.iter().filter(|knob| options.takes(&knob.name) == Some(true));
        options.names = listed.map(|knob| knob.name.as_str()).collect();
        options
    }

    /// Whether the release takes an option of exactly this name; `None` for one that only a note knows or that is
    /// undecided, which counts as taken.
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
            // What it takes without listing it cannot be abbreviated.
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

    /// Whether the release takes exactly this.
    pub fn look_is_known(&self, name: &str) -> bool {
        matches!(self.look(name), Found::Option(_))
    }

    /// Finds what a written name means; `value` is what stands behind it.
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
                // `skip-x=0` is `x`, and `enable-x=0` is not.
                Prefix::Skip => given = Some(if value == Some("0") { "1" } else { "0" }),
                Prefix::Enable => given = Some(if value == Some("0") { "0" } else { "1" }),
            }
            name = rest;
        }
    }

    /// Options that somebody may have meant.
    pub fn near(&self, name: &str) -> Vec<String> {
        mydyno_settings::several(&name.to_ascii_lowercase(), self.names.iter().copied())
    }
}
