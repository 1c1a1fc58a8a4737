//! The state of a pass over the options.

use std::collections::BTreeMap;

use mydyno_model::facts::FactSet;
use mydyno_model::knob::KnobOn;

use super::check::{Problem, Report};
use super::name::Options;
use super::written::{Place, Written};
use crate::knobs::{Knobs, Rules, Server, Target};

/// An option whose name the release knows.
pub struct Known<'a> {
    pub name: String,
    pub written: &'a Written,
    pub value: Option<String>,
    pub loose: bool,
}

/// A pass over the options of a server.
pub struct Linter<'a> {
    pub facts: &'a FactSet,
    pub knobs: &'a Knobs,
    pub target: &'a Target,
    pub rules: &'a Rules,
    pub options: Options<'a>,
    pub report: &'a mut Report,
    pub found: Vec<Known<'a>>,
    /// Number of occurrences of each name.
    pub met: BTreeMap<String, usize>,
    /// Index of the current line among the lines with its name.
    pub turn: usize,
}

impl<'a> Linter<'a> {
    pub fn new(
        facts: &'a FactSet,
        knobs: &'a Knobs,
        target: &'a Target,
        server: &'a Server,
        report: &'a mut Report,
    ) -> Self {
        Self {
            facts,
            knobs,
            target,
            rules: &server.rules,
            options: Options::of(knobs, target, server),
            report,
            found: Vec::new(),
            met: BTreeMap::new(),
            turn: 1,
        }
    }

    /// A finding about a written option.
    pub fn problem(&self, written: &Written, name: &str, summary: String) -> Problem {
        let place = written.place.text();
        let text = written.text();
        // The finding's id distinguishes lines with the same name by this index, which lines with other names do not change.
        let about = if self.turn > 1 { format!("{name}@{}", self.turn) } else { name.to_owned() };
        let mut problem = Problem::new(&about, format!("{place}: {summary}"));
        problem = match &written.place {
            Place::File(_, _, group) => {
                problem.evidence(written.place.fact(), &format!("{place} [{group}]"), &text)
            }
            _ => problem.evidence(written.place.fact(), &place, &text),
        };
        match self.knobs.get(name).and_then(|knob| knob.ledger.as_ref()) {
            Some(price) => problem.trap(format!("In the ledger: {}", price.note)),
            None => problem,
        }
    }
}

/// Whether a word is the token of a redacted bundle: `n` and eight hexadecimal digits.
pub fn is_token(word: &str) -> bool {
    word.len() == 9 && word.starts_with('n') && word.bytes().skip(1).all(|b| b.is_ascii_hexdigit())
}

pub fn family_name(on: &KnobOn) -> &'static str {
    if on.engine.starts_with("mariadb") { "MariaDB" } else { "MySQL" }
}
