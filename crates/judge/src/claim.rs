//! A parsed claim: its file, its expressions and texts.

use std::sync::Arc;

use mydyno_model::claim::{Claim as Document, Severity, Step, StepKind};
use mydyno_model::facts::FactSet;

use crate::error::Problem;
use crate::expr::{Bindings, Expr, Over, ParseError, parse_for, parse_with};
use crate::template::{Place, Template};

/// The repetition of a step: a name, the collection, and the condition.
pub type Each = (String, Over, Option<Expr>);

/// A step of a remedy with its texts parsed.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyStep {
    /// Its form.
    pub kind: StepKind,
    /// Condition under which the step applies.
    pub when: Option<Expr>,
    /// The items for which the step is repeated.
    pub each: Option<Each>,
    /// Its text.
    pub text: Template,
    /// How to undo it.
    pub undo: Option<Template>,
}

/// Maximum number of names in `[let]`.
const MOST_BINDINGS: usize = 200;
/// Maximum length of a claim's file, in bytes.
const LONGEST_FILE: usize = 256 << 10;

/// A parsed claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Content of its file.
    pub document: Document,
    /// The folder of its file.
    pub area: String,
    /// Its file, as in `host/swappiness.toml`.
    pub file: String,
    /// Condition under which the claim applies.
    pub applies: Option<Expr>,
    /// The condition that has to hold.
    pub check: Expr,
    /// Conditions for another severity.
    pub cases: Vec<(Expr, Severity)>,
    /// The summary of a violation.
    pub finding: Option<Template>,
    /// Steps that take effect at once.
    pub now: Vec<ReadyStep>,
    /// Steps that survive a restart.
    pub persistent: Vec<ReadyStep>,
}

impl Claim {
    /// Whether every value of the finding's sentence is known by these facts.
    pub fn is_told_in_full(&self, facts: &FactSet) -> bool {
        self.finding.as_ref().is_none_or(|finding| finding.fill(facts, &[], Place::Prose).whole)
    }

    /// Reads a claim from the text of the file `AREA/ID.toml`.
    ///
    /// # Errors
    /// All mistakes in its form, each with its line.
    pub fn read(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        if text.len() > LONGEST_FILE {
            return Err(vec![Problem::of(file, format!("a claim has at most {} KiB", LONGEST_FILE >> 10))]);
        }
        let document: Document = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            vec![Problem { file: file.to_owned(), line, text: error.message().trim().to_owned() }]
        })?;
        if document.bindings.len() > MOST_BINDINGS {
            return Err(vec![Problem::of(
                file,
                format!("[let] names more than {MOST_BINDINGS} expressions"),
            )]);
        }
        let mut reader = Reader { file, text, problems: vec![], bindings: Bindings::new() };
        let claim = reader.claim(document);
        match claim {
            Some(claim) if reader.problems.is_empty() => Ok(claim),
            _ => Err(reader.problems),
        }
    }

    /// The facts that it needs, as patterns like `block.*.scheduler`.
    pub fn needs(&self) -> Vec<String> {
        let decide = self.applies.iter().chain([&self.check]).chain(self.cases.iter().map(|(when, _)| when));
        let mut needs: Vec<String> = decide.flat_map(Expr::facts).collect();
        needs.sort();
        needs.dedup();
        needs
    }

    /// All steps.
    pub fn steps(&self) -> impl Iterator<Item = &ReadyStep> {
        self.now.iter().chain(&self.persistent)
    }
}

struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    problems: Vec<Problem>,
    bindings: Bindings,
}

impl Reader<'_> {
    /// Records a problem with an expression, with the line of its key in the file if it can be found.
    fn wrong(&mut self, key: &str, written: &str, error: &ParseError) {
        let first = written.lines().find(|l| !l.trim().is_empty()).unwrap_or(written).trim();
        let key_line = self
            .text
            .lines()
            .position(|line| line.contains(first) && !first.is_empty())
            .map(|at| at + error.at.line);
        let excerpt = written.lines().nth(error.at.line - 1).unwrap_or(written);
        let caret = " ".repeat(error.at.column.saturating_sub(1));
        let text = format!("{key}: column {}: {}\n    {excerpt}\n    {caret}^", error.at.column, error.text);
        self.problems.push(Problem { file: self.file.to_owned(), line: key_line, text });
    }

    fn note(&mut self, text: impl Into<String>) {
        self.problems.push(Problem::of(self.file, text));
    }

    fn expr(&mut self, key: &str, written: &str, locals: &[&str]) -> Option<Expr> {
        let parsed = parse_with(written, &self.bindings, locals);
        parsed.map_err(|e| self.wrong(key, written, &e)).ok()
    }

    fn template(&mut self, key: &str, written: &str, locals: &[&str]) -> Option<Template> {
        let read = Template::read(written, &self.bindings, locals);
        read.map_err(|e| self.wrong(key, written, &e)).ok()
    }

    fn claim(&mut self, document: Document) -> Option<Claim> {
        let parts: Vec<&str> = self.file.trim_end_matches(".toml").split('/').collect();
        let [.., area, name] = parts[..] else {
            self.note("a claim stands in AREA/ID.toml");
            return None;
        };
        if document.id != name {
            self.note(format!(
                "id is {:?}, the file is called {name:?}: they have to be the same",
                document.id
            ));
        }
        for (name, written) in &document.bindings {
            if let Some(expr) = self.expr(&format!("let.{name}"), written, &[]) {
                self.bindings.insert(name.clone(), Arc::new(expr));
            }
        }
        let applies = document.applies_when.as_ref().map(|text| self.expr("applies_when", text, &[]));
        let check = self.expr("check", &document.check, &[]);
        let cases: Vec<(Expr, Severity)> = document
            .severity_cases
            .iter()
            .filter_map(|case| Some((self.expr("severity_cases.when", &case.when, &[])?, case.severity)))
            .collect();
        let finding = document.finding.as_ref().map(|text| self.template("finding", text, &[]));
        let steps = |reader: &mut Self, key: &str, steps: &[Step]| -> Vec<ReadyStep> {
            steps.iter().filter_map(|step| reader.step(key, step)).collect()
        };
        let now = steps(self, "remedy.now", &document.remedy.now);
        let persistent = steps(self, "remedy.persistent", &document.remedy.persistent);
        Some(Claim {
            area: area.to_owned(),
            file: self.file.to_owned(),
            applies: applies.flatten(),
            check: check?,
            cases,
            finding: finding.flatten(),
            now,
            persistent,
            document,
        })
    }

    fn step(&mut self, key: &str, step: &Step) -> Option<ReadyStep> {
        let forms = step.forms();
        let [(kind, text)] = forms[..] else {
            let names = "sql, cnf, sysctl, udev, systemd, tmpfiles, kernel, shell or text";
            self.note(format!("{key}: a step has exactly one of {names}; this one has {}", forms.len()));
            return None;
        };
        let each = match &step.each {
            None => None,
            Some(written) => match parse_for(written, &self.bindings) {
                Ok(each) => Some(each),
                Err(error) => {
                    self.wrong(&format!("{key}.for"), written, &error);
                    return None;
                }
            },
        };
        let locals: Vec<&str> = each.iter().map(|(name, ..)| name.as_str()).collect();
        let when = match &step.when {
            None => None,
            Some(written) => Some(self.expr(&format!("{key}.when"), written, &[])?),
        };
        let undo = match &step.undo {
            None => None,
            Some(written) => Some(self.template(&format!("{key}.undo"), written, &locals)?),
        };
        let text = self.template(key, text, &locals)?;
        if kind == StepKind::Sql
            && (text.quotes_a_value() || undo.as_ref().is_some_and(Template::quotes_a_value))
        {
            self.note(format!(
                "{key}: a value in a statement is quoted when it is filled in: leave out the quotes"
            ));
            return None;
        }
        Some(ReadyStep { kind, when, each, text, undo })
    }
}
