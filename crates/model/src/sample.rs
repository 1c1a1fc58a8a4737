//! Samples: cumulative counters and gauges of host and server as they were read. Rates are derived, never stored.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One line of `observe.jsonl.zst`. A key frame holds every value; the lines behind it hold those that changed.
///
/// Names say whose they are and end in their unit: `host.cpu.steal_s`, `host.swap.out_pages`,
/// `host.disk.vda.write_bytes`, `server.cpu.user_s`. Counters only grow; gauges (`…_now`, `…_bytes` of memory) do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Seconds since the run began, when reading started.
    pub at_s: f64,
    /// Seconds that reading took: how far apart the first and the last value may be.
    pub took_s: f64,
    /// Whether this line holds every value.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub key: bool,
    /// Values by name.
    pub values: IndexMap<String, f64>,
}

impl Sample {
    /// What changed since `before`, to be written; a key frame stays whole.
    #[must_use]
    pub fn delta_from(&self, before: &Self) -> Self {
        let values = self
            .values
            .iter()
            .filter(|(name, value)| before.values.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), *value))
            .collect();
        Self { at_s: self.at_s, took_s: self.took_s, key: false, values }
    }

    /// The full frame that this line makes on top of the full frame before it.
    #[must_use]
    pub fn onto(mut self, before: Option<&Self>) -> Self {
        if let (false, Some(before)) = (self.key, before) {
            let mut values = before.values.clone();
            values.extend(self.values);
            self.values = values;
        }
        self.key = true;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[(&str, f64)]) -> Sample {
        Sample {
            at_s: 1.0,
            took_s: 0.001,
            key: true,
            values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
        }
    }

    #[test]
    fn a_delta_on_top_of_its_base_is_the_sample_again() {
        let before = sample(&[("a", 1.0), ("b", 2.0)]);
        let after = sample(&[("a", 1.0), ("b", 3.0), ("c", 4.0)]);
        let delta = after.delta_from(&before);
        assert_eq!(delta.values.len(), 2);
        assert_eq!(delta.onto(Some(&before)), after);
    }
}
