//! Rules that give a stack its class of time: data, in `rules/stacks.toml`.

use mydyno_model::profile::TimeClass;
use serde::Deserialize;

use crate::error::JudgeError;

/// Whether the thread of a stack ran or waited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// It ran.
    Cpu,
    /// It waited.
    Wait,
}

/// The rules.
#[derive(Debug, Clone)]
pub struct StackRules {
    connection: Pattern,
    groups: Vec<(String, Pattern)>,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone)]
struct Rule {
    class: TimeClass,
    on: On,
    frames: Vec<Pattern>,
    without: Vec<Pattern>,
}

/// Alternatives, each the parts of a name between its `*`.
#[derive(Debug, Clone)]
struct Pattern(Vec<Vec<String>>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    connection: Vec<String>,
    #[serde(default)]
    group: Vec<WrittenGroup>,
    rule: Vec<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenGroup {
    name: String,
    functions: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    class: TimeClass,
    on: On,
    frames: Vec<String>,
    #[serde(default)]
    without: Vec<String>,
}

impl StackRules {
    /// The rules of this release.
    ///
    /// # Errors
    /// The embedded file is damaged; a test reads it.
    pub fn embedded() -> Result<Self, JudgeError> {
        Self::parse(include_str!("../../../../rules/stacks.toml"))
    }

    /// Reads rules.
    ///
    /// # Errors
    /// The text is no such file, or a rule has no frames.
    pub fn parse(text: &str) -> Result<Self, JudgeError> {
        let file: File = toml::from_str(text).map_err(|e| JudgeError::StackRules(e.to_string()))?;
        if let Some(rule) = file.rule.iter().find(|rule| rule.frames.is_empty()) {
            return Err(JudgeError::StackRules(format!("a rule for {:?} has no frames", rule.class)));
        }
        let rules = file.rule.into_iter().map(|rule| Rule {
            class: rule.class,
            on: rule.on,
            frames: rule.frames.iter().map(|text| Pattern::parse(text)).collect(),
            without: rule.without.iter().map(|text| Pattern::parse(text)).collect(),
        });
        let groups =
            file.group.into_iter().map(|group| (group.name, Pattern::parse(&group.functions.join("|"))));
        Ok(Self {
            connection: Pattern::parse(&file.connection.join("|")),
            groups: groups.collect(),
            rules: rules.collect(),
        })
    }

    /// Names of the groups of functions that are told apart.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|(name, _)| name.as_str())
    }

    /// Whether a function of the group stands in a stack.
    pub fn is_in_group(&self, group: &str, stack: &[&str]) -> bool {
        let found = self.groups.iter().find(|(name, _)| name == group);
        found.is_some_and(|(_, pattern)| stack.iter().any(|name| pattern.fits(name)))
    }

    /// Whether a stack is that of a thread that serves a connection.
    pub fn serves_a_connection(&self, stack: &[&str]) -> bool {
        stack.iter().any(|name| self.connection.fits(name))
    }

    /// The class of a stack, outermost function first. A stack on a CPU that no rule knows is the user's or the kernel's by its
    /// innermost function.
    pub fn class(&self, on: On, stack: &[&str]) -> TimeClass {
        let found = self.rules.iter().find(|rule| rule.on == on && rule.fits(stack));
        match (found, on) {
            (Some(rule), _) => rule.class,
            (None, On::Wait) => TimeClass::Unexplained,
            (None, On::Cpu) if stack.last().is_some_and(|name| is_of_kernel(name)) => TimeClass::CpuKernel,
            (None, On::Cpu) => TimeClass::CpuUser,
        }
    }
}

fn is_of_kernel(name: &str) -> bool {
    name.ends_with("_[k]") || name == "[kernel]"
}

impl Rule {
    fn fits(&self, stack: &[&str]) -> bool {
        let mut names = stack.iter();
        let in_order = self.frames.iter().all(|pattern| names.any(|name| pattern.fits(name)));
        in_order && !self.without.iter().any(|pattern| stack.iter().any(|name| pattern.fits(name)))
    }
}

impl Pattern {
    fn parse(text: &str) -> Self {
        Self(text.split('|').map(|one| one.split('*').map(str::to_owned).collect()).collect())
    }

    fn fits(&self, name: &str) -> bool {
        self.0.iter().any(|parts| matches(parts, name))
    }
}

/// Whether a name consists of these parts, in their order and with anything between them.
fn matches(parts: &[String], name: &str) -> bool {
    let [first, middle @ .., last] = parts else {
        return parts.iter().all(|whole| whole == name);
    };
    let Some(mut rest) = name.strip_prefix(first.as_str()) else { return false };
    for part in middle {
        let Some((_, after)) = rest.split_once(part.as_str()) else { return false };
        rest = after;
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn stars_stand_for_anything_between_the_parts_of_a_name() {
        for (pattern, fits, fits_not) in [
            ("poll", &["poll"][..], &["ppoll", "poll_", ""][..]),
            (
                "rw_lock_*_spin*",
                &["rw_lock_s_lock_spin", "rw_lock_x_spin_wait"],
                &["rw_lock_spin", "x_rw_lock_s_spin"],
            ),
            ("*::read_page*", &["Buf_fetch<N>::read_page", "a::read_page_low"], &["read_page"]),
            ("a|*b", &["a", "b", "ab"], &["ba"]),
            ("ab*ba", &["abba", "abxba"], &["aba"]),
        ] {
            let parsed = Pattern::parse(pattern);
            assert!(fits.iter().all(|name| parsed.fits(name)), "{pattern}");
            assert!(!fits_not.iter().any(|name| parsed.fits(name)), "{pattern}");
        }
    }
}
