//! The errors of a request, all of them at once.

use mydyno_model::units::UnitError;
use mydyno_workload::OptionError;
use mydyno_workload::catalogue::UnknownWorkload;
use thiserror::Error;

use crate::bound::BoundError;
use crate::capacity::RequirementError;

/// An error of a request.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum PlanError {
    /// No such workload.
    #[error(transparent)]
    Workload(#[from] UnknownWorkload),
    /// An option of the workload.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// A duration or list.
    #[error("--{option}: {source}")]
    Unit {
        /// The option.
        option: &'static str,
        /// The error of its value.
        source: UnitError,
    },
    /// A bound.
    #[error("--fail-if: {0}")]
    Bound(#[from] BoundError),
    /// A requirement.
    #[error("--find-capacity: {0}")]
    Requirement(#[from] RequirementError),
    /// Any other error of an option.
    #[error("--{option}: {problem}")]
    Value {
        /// The option.
        option: &'static str,
        /// The error, and the value that is expected.
        problem: String,
    },
}

/// The errors of a request that were found so far.
#[derive(Debug, Default)]
pub(super) struct Faults(pub(super) Vec<PlanError>);

impl Faults {
    pub(super) fn value(&mut self, option: &'static str, problem: impl Into<String>) {
        self.0.push(PlanError::Value { option, problem: problem.into() });
    }

    /// Parses a text; notes an error.
    pub(super) fn unit<T>(&mut self, option: &'static str, parsed: Result<T, UnitError>) -> Option<T> {
        parsed.map_err(|source| self.0.push(PlanError::Unit { option, source })).ok()
    }

    /// Parses a whole number within bounds; `None` when it was not given or has an error, which is noted.
    pub(super) fn count(
        &mut self,
        option: &'static str,
        text: Option<&String>,
        within: std::ops::RangeInclusive<usize>,
        what: &str,
    ) -> Option<usize> {
        let text = text?;
        let found = text.trim().parse().ok().filter(|n| within.contains(n));
        if found.is_none() {
            self.value(option, format!("{text:?} is not {what} from {} to {}", within.start(), within.end()));
        }
        found
    }
}
