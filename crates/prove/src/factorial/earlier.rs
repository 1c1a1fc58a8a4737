//! Experiments with several factors that were interrupted.

use std::path::Path;

use mydyno_levers::LeverSet;
use mydyno_model::experiment::factorial::{Factorial, FactorialRow};
use mydyno_model::experiment::{LeverLevel, Role};
use time::OffsetDateTime;

use super::design::Planned;
use super::{analyse, execute};
use crate::arm::{Common, of_the_host, pairs, plan_errors, server_arm};
use crate::error::ProveError;

impl Planned {
    /// Resumes the experiment of a folder: the table in the folder, and the rows that were measured.
    ///
    /// # Errors
    /// The folder contains no such experiment, or its levers or load do not resolve on this machine.
    pub fn resume(folder: &Path, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let (document, before) = execute::read(folder).map_err(|error| vec![error])?;
        let common =
            Common { set_up: &document.both, load: &document.request, slice_s: document.slice_s, now };
        let mut arms = Vec::with_capacity(document.runs.len());
        for run in &document.runs {
            arms.push(server_arm(Role::Treatment, &format!("run {run}"), &levels(&document, run), &common)?);
        }
        let shared =
            LeverSet::parse(&pairs(&document.both)).map_err(|errors| plan_errors("all runs", &errors))?;
        let of_the_host = of_the_host(&arms);
        let left = document.rows.len().saturating_sub(before.len()) as f64;
        let takes_s = left * (document.slice_s + document.settle_s);
        // The conclusions of an interrupted execution are derived again.
        let document = Factorial {
            answer: String::new(),
            responses: Vec::new(),
            failures: Vec::new(),
            threats: Vec::new(),
            crashes: Vec::new(),
            measured_rows: 0,
            ..document
        };
        Ok(Self { document, takes_s, of_the_host, arms, shared, before })
    }

    /// Rows that are not measured yet, in their order.
    pub(crate) fn left(&self) -> Vec<FactorialRow> {
        let measured = |row: &FactorialRow| self.before.iter().any(|run| run.row.order == row.order);
        self.document.rows.iter().filter(|row| !measured(row)).copied().collect()
    }
}

/// The result of an experiment by its rows so far.
///
/// # Errors
/// The folder holds no such experiment, or a file of it is damaged.
pub fn of_folder(folder: &Path) -> Result<Factorial, ProveError> {
    let (document, runs) = execute::read(folder)?;
    if !document.answer.is_empty() {
        return Ok(document);
    }
    Ok(analyse::conclude(&document, &runs))
}

/// The levers of a run, given by its signs.
fn levels(document: &Factorial, run: &str) -> Vec<LeverLevel> {
    document.factors.iter().zip(run.bytes()).map(|(factor, sign)| factor.level(sign == b'+')).collect()
}
