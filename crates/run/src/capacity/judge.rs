//! Whether a step holds: the user's requirements, and whether the rate was reached at all.

use mydyno_model::summary::StepSummary;
use mydyno_model::units::show_count;
use thiserror::Error;

use crate::bound::{Bound, BoundError};

/// Share of the scheduled transactions that may be waiting at the end of a window. Random gaps and the last instants
/// leave fewer; a growing queue soon exceeds it.
const LEFT_WAITING: f64 = 0.01;

/// Requirements at a rate, as in `p99<10ms,errors<0.1%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirements(Vec<Requirement>);

/// One of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement(Bound);

/// The reason why a text is not a list of requirements.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequirementError {
    /// A part is not a bound.
    #[error(transparent)]
    Bound(#[from] BoundError),
    /// A bound that more load only helps to keep.
    #[error(
        "{0:?} does not limit the load: ask for times or errors below a bound, as in p99<10ms,errors<0.1%"
    )]
    NoLimit(String),
}

impl Requirements {
    /// Parses a comma-separated list.
    ///
    /// # Errors
    /// The first invalid part.
    pub fn parse(text: &str) -> Result<Self, RequirementError> {
        Self::read(text, Bound::parse)
    }

    /// Parses the requirements of a record, see [`Bound::parse_recorded`].
    ///
    /// # Errors
    /// As [`Self::parse`].
    pub fn parse_recorded(text: &str) -> Result<Self, RequirementError> {
        Self::read(text, Bound::parse_recorded)
    }

    fn read(text: &str, bound: fn(&str) -> Result<Bound, BoundError>) -> Result<Self, RequirementError> {
        let one = |part: &str| Requirement::of(bound(part.trim())?);
        text.split(',').map(one).collect::<Result<_, _>>().map(Self)
    }

    /// Their texts.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(|r| r.0.text().to_owned()).collect()
    }

    /// The percentiles in the requirements, in percent.
    pub fn percentiles(&self) -> impl Iterator<Item = f64> {
        self.0.iter().filter_map(|r| r.0.percentile())
    }

    /// The requirements that did not hold in a step, with figures; empty when all did.
    pub fn broken_by(&self, step: &StepSummary) -> Vec<String> {
        let mut broken: Vec<String> = reached(step).err().into_iter().collect();
        broken.extend(self.0.iter().filter_map(|r| r.0.unmet_by(step)));
        broken
    }
}

impl Requirement {
    fn of(bound: Bound) -> Result<Self, RequirementError> {
        if bound.is_below() && !bound.is_throughput() {
            Ok(Self(bound))
        } else {
            Err(RequirementError::NoLimit(bound.text().to_owned()))
        }
    }
}

/// Whether an open loop kept its schedule.
///
/// # Errors
/// A sentence with the shortfall.
pub fn reached(step: &StepSummary) -> Result<(), String> {
    let Some(rate) = step.rate else { return Ok(()) };
    let done = step.throughput.transactions_per_s.value;
    match &step.due {
        Some(due) => {
            // A transaction in progress on a connection is not backlog.
            let queued = due.waiting.saturating_sub(step.connections as u64);
            if queued as f64 > LEFT_WAITING * due.intended as f64 {
                return Err(format!(
                    "{} of {} transactions were still waiting at the end ({done:.0}/s done, {rate:.0}/s asked)",
                    show_count(due.waiting),
                    show_count(due.intended)
                ));
            }
        }
        // A record without these counts: a Poisson schedule can miss its rate by chance.
        None => {
            let by_chance = 3.0 * (rate * step.window_s).sqrt() / step.window_s;
            if done < rate * (1.0 - LEFT_WAITING) - by_chance {
                return Err(format!("{done:.0}/s done, {rate:.0}/s asked"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_upper_bounds() {
        let read = Requirements::parse("p99<10ms, errors<0.1%").unwrap();
        assert_eq!(read.texts(), ["p99<10ms", "errors<0.1%"]);
        assert_eq!(read.percentiles().collect::<Vec<_>>(), [99.0]);
        for text in ["p99>10ms", "tps<100", "qps>10"] {
            assert!(matches!(Requirements::parse(text), Err(RequirementError::NoLimit(_))), "{text}");
        }
        for text in ["", "p99", "p99<10ms,,errors<1"] {
            assert!(matches!(Requirements::parse(text), Err(RequirementError::Bound(_))), "{text:?}");
        }
    }
}
