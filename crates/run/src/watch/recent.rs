//! The latest intervals of a watch, on which its diagnosis is based.

use std::collections::VecDeque;

use mydyno_judge::diagnosis::{Rules, diagnose};
use mydyno_model::diagnosis::Diagnosis;
use mydyno_model::watch::WatchInterval;

use crate::error::RunError;

/// Number of intervals that a diagnosis covers.
const MOST: usize = 60;

/// The latest intervals and the rules.
pub struct Recent {
    rules: Rules,
    intervals: VecDeque<WatchInterval>,
}

impl Recent {
    /// No interval yet.
    ///
    /// # Errors
    /// The embedded rules are invalid.
    pub fn new() -> Result<Self, RunError> {
        Ok(Self { rules: Rules::embedded()?, intervals: VecDeque::new() })
    }

    /// Adds an interval.
    pub fn push(&mut self, interval: WatchInterval) {
        self.intervals.push_back(interval);
        if self.intervals.len() > MOST {
            self.intervals.pop_front();
        }
    }

    /// The diagnosis of these intervals; `None` without one.
    pub fn diagnosis(&mut self) -> Option<Diagnosis> {
        let intervals = self.intervals.make_contiguous();
        (!intervals.is_empty()).then(|| diagnose(&self.rules, intervals))
    }
}

#[cfg(test)]
mod tests {
    use mydyno_samples::figures::names::{NAMES, OF_DISK};

    use super::*;

    #[test]
    fn every_figure_that_a_rule_reads_or_shows_is_one_that_is_derived() {
        for rule in Rules::embedded().unwrap().iter() {
            for name in rule.figures().iter().chain(&rule.written.evidence) {
                let of_disk = name.strip_prefix("disk.busiest.");
                let known = of_disk.map_or(NAMES.contains(&name.as_str()), |what| OF_DISK.contains(&what));
                assert!(known, "{}: no figure is called {name}", rule.written.id);
            }
        }
    }
}
