//! Config lint: checks written options against what a release accepts.
//!
//! The lint works on facts alone: it judges a live server, a bundle, or a file for another release. The accepted options
//! come from servers ([`crate::knobs`]); each finding names the file and the line.

mod check;
mod collation;
mod files;
mod linter;
mod lists;
mod name;
mod option;
mod repeated;
mod runtime;
#[cfg(test)]
mod tests;
mod unknown;
mod value;
mod written;

use mydyno_model::facts::FactSet;
use mydyno_model::finding::Finding;

use crate::knobs::{Knobs, Target};

use check::Report;
pub use check::{AREA, CHECKS, Check, is_of};
use linter::Linter;

/// Lints the options of the facts for a release. Findings come in the order of the checks; a check that finds nothing
/// holds.
pub fn lint(facts: &FactSet, knobs: &Knobs, target: &Target) -> Vec<Finding> {
    let Some(server) = knobs.nearest_server(target) else { return Vec::new() };
    if facts.value("server.options.set").is_none() {
        return vec![check::not_seen(facts, target)];
    }
    let certain = server.series() == target.version.series();
    let mut report = Report::new(target, certain);
    let mut linter = Linter::new(facts, knobs, target, server, &mut report);
    linter.files();
    let all = written::written(facts);
    for written in &all {
        linter.option(written);
    }
    linter.duplicates();
    linter.collation();
    linter.in_force();
    report.findings(all.len(), server)
}
