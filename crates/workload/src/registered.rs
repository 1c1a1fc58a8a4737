//! The interface for choosing a workload by name. The list of workloads is at the end of `lib.rs`.

use crate::options::{OptionError, OptionSpec, Options};
use crate::session::Workload;
use crate::user_statement::UserStatement;
use mydyno_tables::work_tables::WorkTables;

/// Description of a workload, from which the command line, the catalogue and the documentation are generated.
#[derive(Debug, Clone, Copy)]
pub struct Spec {
    /// Name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Statements of one transaction, for people.
    pub transaction: &'static str,
    /// Options.
    pub options: &'static [OptionSpec],
    /// Options of an example, to be appended to `mydyno bench NAME`.
    pub example: &'static str,
}

impl Spec {
    /// The example of most workloads.
    pub const EXAMPLE: &'static str = "--sandbox --connections 1,4,16 --time 10s";
}

/// Arguments for building a workload.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// One of the workload's names.
    pub name: &'a str,
    /// Its options.
    pub options: &'a Options,
    /// Database of its tables.
    pub database: &'a str,
    /// Connections of the largest step.
    pub connections: usize,
    /// Seed of rows and operations.
    pub seed: u64,
}

/// A workload that can be chosen by name.
pub trait Registered: Workload + Sized {
    /// Entries in the catalogue, one for each name.
    const SPECS: &'static [Spec];

    /// Builds the workload and describes its tables.
    ///
    /// # Errors
    /// All inconsistent options.
    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>>;

    /// Pause between two transactions of a connection, in seconds; 0 for none.
    fn think_s(&self) -> f64 {
        0.0
    }

    /// Number of connections, where the workload decides it and when each begins its transactions.
    fn connections(&self) -> Option<usize> {
        None
    }

    /// The work in words, by aspect, for a report of two runs.
    fn work(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Statements written by the user.
    fn user_statements(&self) -> &[UserStatement] {
        &[]
    }

    /// Hash of the user's file, which is then part of the fingerprint.
    fn content(&self) -> Option<&str> {
        None
    }

    /// The same workload for another step of a run, if its operations depend on the step's number.
    fn at_step(&self, _step: u64) -> Option<Self> {
        None
    }
}

/// Both values, or the errors of both.
///
/// # Errors
/// Those of either.
pub fn both<A, B>(
    a: Result<A, Vec<OptionError>>,
    b: Result<B, Vec<OptionError>>,
) -> Result<(A, B), Vec<OptionError>> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(mut first), Err(second)) => {
            first.extend(second);
            Err(first)
        }
        (Err(errors), _) | (_, Err(errors)) => Err(errors),
    }
}
