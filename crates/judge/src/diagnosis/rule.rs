//! Rules of the diagnosis: TOML files in `rules/diagnosis`, one for each bottleneck.

use std::collections::BTreeMap;
use std::sync::Arc;

use indexmap::IndexMap;
use mydyno_model::embedded::Embedded;
use serde::Deserialize;

use crate::error::{JudgeError, Problem};
use crate::expr::{Bindings, Expr, parse_with};

/// Files of all embedded rules, with their texts.
static EMBEDDED: Embedded = include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// The folder of these rules.
const FOLDER: &str = "diagnosis/";

/// A rule as it is written.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The class of time and a name, as in `row-lock.waits`; the file has the same name.
    pub id: String,
    /// One line.
    pub title: String,
    /// An expression over figures: where it is true, the bottleneck is said.
    pub when: String,
    /// Conditions under which it is not said all the same.
    #[serde(default)]
    pub unless: Vec<WrittenUnless>,
    /// The estimate of the share of the running sessions' time.
    pub share: String,
    /// Figures that are shown as evidence, where they are known.
    pub evidence: Vec<String>,
    /// Whether statements cause it, so that those with the most time are named.
    #[serde(default)]
    pub statements: bool,
    /// The next step.
    pub next: String,
    /// Claims of the audit that concern it.
    #[serde(default)]
    pub claims: Vec<String>,
    /// The experiment that shows its price.
    pub experiment: Option<String>,
    /// Said only when nothing else is.
    #[serde(default)]
    pub alone: bool,
    /// Names for expressions, used as `$name`.
    #[serde(default, rename = "let")]
    pub bindings: IndexMap<String, String>,
    /// Known answers.
    #[serde(default)]
    pub fixture: Vec<Fixture>,
}

/// A condition under which a bottleneck is not said.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenUnless {
    /// An expression over figures.
    pub when: String,
    /// The reason for the reader.
    pub why: String,
}

/// Figures and whether the rule says its bottleneck on them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fixture {
    /// Whether it is said.
    pub said: bool,
    /// The figures.
    pub figures: BTreeMap<String, f64>,
}

/// A rule whose expressions are parsed.
#[derive(Debug, Clone)]
pub struct Rule {
    /// The rule as it is written.
    pub written: Written,
    pub(super) when: Expr,
    pub(super) unless: Vec<(Expr, String)>,
    pub(super) share: Expr,
}

impl Rule {
    /// Reads a file.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let written: Written =
            toml::from_str(text).map_err(|error| vec![Problem::of(file, error.to_string())])?;
        let mut problems = Vec::new();
        if file.strip_prefix(FOLDER).and_then(|name| name.strip_suffix(".toml")) != Some(&written.id) {
            problems.push(Problem::of(
                file,
                format!("id is {:?}: the file has to be called like it", written.id),
            ));
        }
        let mut bindings = Bindings::new();
        let mut parse = |key: &str, text: &str, bindings: &Bindings| {
            let parsed = parse_with(text, bindings, &[]);
            parsed.map_err(|error| problems.push(Problem::of(file, format!("{key}: {error}")))).ok()
        };
        for (name, text) in &written.bindings {
            if let Some(expr) = parse(&format!("let.{name}"), text, &bindings) {
                bindings.insert(name.clone(), Arc::new(expr));
            }
        }
        let when = parse("when", &written.when, &bindings);
        let share = parse("share", &written.share, &bindings);
        let unless: Vec<(Expr, String)> = written
            .unless
            .iter()
            .filter_map(|unless| Some((parse("unless.when", &unless.when, &bindings)?, unless.why.clone())))
            .collect();
        match (when, share) {
            (Some(when), Some(share)) if problems.is_empty() => Ok(Self { written, when, unless, share }),
            _ => Err(problems),
        }
    }

    /// Names of the figures that its expressions read.
    pub fn figures(&self) -> Vec<String> {
        let conditions = self.unless.iter().map(|(when, _)| when);
        let mut names: Vec<String> =
            [&self.when, &self.share].into_iter().chain(conditions).flat_map(Expr::facts).collect();
        names.sort();
        names.dedup();
        names
    }
}

/// The rules of a diagnosis, in the order of their files.
#[derive(Debug, Clone)]
pub struct Rules(Vec<Rule>);

impl Rules {
    /// The built-in rules.
    ///
    /// # Errors
    /// One of them is invalid; the tests ensure that none is.
    pub fn embedded() -> Result<Self, JudgeError> {
        let files = EMBEDDED.files().filter(|(file, _)| file.starts_with(FOLDER));
        let (mut rules, mut problems) = (Vec::new(), Vec::new());
        for (file, text) in files {
            match Rule::read(file, text) {
                Ok(rule) => rules.push(rule),
                Err(found) => problems.extend(found),
            }
        }
        if problems.is_empty() { Ok(Self(rules)) } else { Err(JudgeError::Files(problems)) }
    }

    /// All rules.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}
