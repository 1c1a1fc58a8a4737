//! Figures of an interval: rates, shares and gauges by name, derived from two samples. Pure arithmetic.
//!
//! A figure is absent where a counter is missing, fell, or was not read anew between the two samples; it is never zero for
//! want of a value. Shares are fractions of 1. Rates of a group that is read beside the bus are over the time between its own
//! readings.

mod budget;
mod details;
mod host;
mod innodb;
pub mod names;
mod server;

use indexmap::IndexMap;
use mydyno_model::sample::Sample;

use crate::growth::Growth;

pub use details::{statements, waits};

/// The figures from `before` to `after`, both full frames.
pub fn figures(before: &Sample, after: &Sample) -> IndexMap<String, f64> {
    let mut found = Figures::of(before, after);
    if after.at_s - before.at_s > 0.0 {
        host::add(&mut found);
        server::add(&mut found);
        innodb::add(&mut found);
        details::add(&mut found);
        budget::add(&mut found);
    }
    found.values
}

/// The instants of readings beside the bus, by the names of the values that they read.
const GROUPS: [(&str, &str); 19] = [
    ("server.status.", "observe.server.at_s"),
    ("server.sessions.", "observe.server.at_s"),
    ("server.innodb.", "observe.server.at_s"),
    ("server.file.", "observe.server.at_s"),
    ("server.statements.", "observe.server.at_s"),
    ("server.connection.", "observe.server.at_s"),
    ("server.threads.", "observe.kernel.at_s"),
    ("server.cgroup.memory.", "observe.kernel.at_s"),
    ("host.net.", "observe.kernel.at_s"),
    ("host.tcp.", "observe.kernel.at_s"),
    ("host.interrupts.", "observe.kernel.at_s"),
    ("host.softirqs.", "observe.kernel.at_s"),
    ("host.cpu.cpu", "observe.kernel.at_s"),
    ("profile.", "observe.profile.at_s"),
    ("server.innodb_status.", "observe.innodb_status.at_s"),
    ("server.waits.", "observe.waits.at_s"),
    ("server.digest.", "observe.digests.at_s"),
    ("server.replica.", "observe.replica.at_s"),
    ("server.smaps.", "observe.smaps.at_s"),
];

struct Figures<'a> {
    before: &'a Sample,
    after: &'a Sample,
    values: IndexMap<String, f64>,
}

impl<'a> Figures<'a> {
    fn of(before: &'a Sample, after: &'a Sample) -> Self {
        Self { before, after, values: IndexMap::new() }
    }
}

impl Figures<'_> {
    fn set(&mut self, name: &str, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.values.insert(name.to_owned(), value);
        }
    }

    /// The growth of a counter.
    fn grown(&self, name: &str) -> Option<f64> {
        self.over_s(name)?;
        Growth::of(name, self.before, self.after).amount()
    }

    /// Seconds between the two readings of a counter; `None` when it was not read anew.
    fn over_s(&self, name: &str) -> Option<f64> {
        let group = GROUPS.iter().find(|(prefix, _)| name.starts_with(prefix));
        let over_s = match group.map(|(_, at)| (self.before.values.get(*at), self.after.values.get(*at))) {
            Some((Some(before), Some(after))) => after - before,
            Some((None, Some(_)) | (Some(_), None)) => return None,
            // Without a group of its own it was read with the files.
            None | Some((None, None)) => self.after.at_s - self.before.at_s,
        };
        (over_s > 0.0).then_some(over_s)
    }

    /// The growth of a counter a second.
    fn per_s(&self, name: &str) -> Option<f64> {
        Some(self.grown(name)? / self.over_s(name)?)
    }

    /// A gauge of the later sample, if it was read in the interval.
    fn now(&self, name: &str) -> Option<f64> {
        self.over_s(name)?;
        self.after.values.get(name).copied()
    }

    /// The sum of the counters' growth a second; counters that the server does not have count nothing, and without any there
    /// is no sum.
    fn sum_per_s(&self, names: &[&str]) -> Option<f64> {
        let known = names.iter().filter(|name| self.after.values.contains_key(**name));
        known.map(|name| self.per_s(name)).reduce(|sum, next| Some(sum? + next?)).flatten()
    }

    /// Sets a figure to the growth a second of each counter.
    fn rates(&mut self, table: &[(&str, &str)]) {
        for (figure, counter) in table {
            self.set(figure, self.per_s(counter));
        }
    }

    /// Sets figures to gauges.
    fn gauges(&mut self, table: &[(&str, &str)]) {
        for (figure, gauge) in table {
            self.set(figure, self.now(gauge));
        }
    }
}

/// The quotient, where there is something to divide by.
fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    let (part, whole) = (part?, whole?);
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests;
