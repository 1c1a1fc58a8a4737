//! The responses of experiments: what a slice is worth by each of them.

use mydyno_model::experiment::Slice;

use crate::survival;

/// A response: its name, its unit, and its value in a slice. A slice without the value is left out for this response.
#[derive(Debug, Clone, Copy)]
pub struct Measure {
    /// As in `transactions_per_s`.
    pub name: &'static str,
    /// As in `1/s`.
    pub unit: &'static str,
    /// Its name in a sentence, as in `transactions a second`.
    pub plain: &'static str,
    /// Kind of the quantity.
    pub kind: Kind,
    /// The loads that have it.
    pub load: Load,
    /// Its value, above 0.
    pub of: fn(&Slice) -> Option<f64>,
}

/// Kinds of quantities: what more of them is called, and whether more is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Work done in a time: more is better.
    Rate,
    /// A duration: longer is worse.
    Time,
    /// Something consumed: more is worse.
    Amount,
}

/// Loads that have a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// A workload on a server.
    Workload,
    /// A probe.
    Probe,
}

impl Measure {
    /// Whether a ratio of this response to the baseline's is a worse one.
    pub fn is_worse(&self, ratio: f64) -> bool {
        match self.kind {
            Kind::Rate => ratio < 1.0,
            Kind::Time | Kind::Amount => ratio > 1.0,
        }
    }
}

/// A response that is a figure of slices under the same name.
macro_rules! figure {
    ($name:literal, $unit:literal, $plain:literal, $kind:ident, $load:ident) => {
        Measure {
            name: $name,
            unit: $unit,
            plain: $plain,
            kind: Kind::$kind,
            load: Load::$load,
            of: |slice| slice.figures.get($name).copied(),
        }
    };
}

/// All responses; throughput, which decides in a closed loop, is first.
pub const MEASURES: &[Measure] = &[
    Measure {
        name: "transactions_per_s",
        unit: "1/s",
        plain: "transactions a second",
        kind: Kind::Rate,
        load: Load::Workload,
        of: |s| rate(s.transactions, s.measured_s),
    },
    Measure {
        name: "response_mean",
        unit: "us",
        plain: "the mean response time",
        kind: Kind::Time,
        load: Load::Workload,
        of: |s| s.mean_us,
    },
    Measure {
        name: "response_p95",
        unit: "us",
        plain: "the 95th percentile of the response time",
        kind: Kind::Time,
        load: Load::Workload,
        of: |s| s.p95_us,
    },
    figure!("server_resident_bytes", "B", "the server's resident memory", Amount, Workload),
    figure!("server_peak_bytes", "B", "the peak of the server's resident memory", Amount, Workload),
    figure!("server_swap_bytes", "B", "the server's memory in swap", Amount, Workload),
    figure!("server_huge_bytes", "B", "the server's memory in huge pages", Amount, Workload),
    figure!(
        "server_cpu_us_per_transaction",
        "us",
        "the server's CPU time of a transaction",
        Amount,
        Workload
    ),
    Measure {
        name: survival::NAME,
        unit: "share",
        plain: "the share of rows that the server outlived",
        kind: Kind::Rate,
        load: Load::Workload,
        // Shares have an arithmetic of their own.
        of: |_| None,
    },
    figure!("per_s", "1/s", "operations a second", Rate, Probe),
    figure!("bytes_per_s", "B/s", "bytes a second", Rate, Probe),
    figure!("p50_us", "us", "the median time of an operation", Time, Probe),
    figure!("p95_us", "us", "the 95th percentile of the time of an operation", Time, Probe),
    figure!("p99_us", "us", "the 99th percentile of the time of an operation", Time, Probe),
    figure!("minor_faults", "1", "the number of page faults of an operation", Amount, Probe),
];

/// The response with this name; throughput if there is none.
pub fn measure(name: &str) -> &'static Measure {
    MEASURES.iter().find(|measure| measure.name == name).unwrap_or(&MEASURES[0])
}

/// All responses, this one first.
pub fn measures(first: &str) -> Vec<&'static Measure> {
    let first = measure(first);
    let others = MEASURES.iter().filter(|measure| measure.name != first.name);
    std::iter::once(first).chain(others).collect()
}

fn rate(count: u64, time_s: f64) -> Option<f64> {
    (count > 0 && time_s > 0.0).then(|| count as f64 / time_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_worse_of_times_and_amounts_and_better_of_rates() {
        assert!(measure("per_s").is_worse(0.9) && !measure("per_s").is_worse(1.1));
        assert!(measure("p50_us").is_worse(1.1) && measure("minor_faults").is_worse(2.0));
        assert_eq!(measure("no such response").name, "transactions_per_s");
        assert_eq!(measures("p50_us")[0].name, "p50_us");
        assert_eq!(measures("p50_us").len(), MEASURES.len());
    }
}
