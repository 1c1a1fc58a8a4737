//! Samples: cumulative counters and gauges of host and server, as read. Rates are derived, never stored.

use std::collections::HashSet;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::shared_text::SharedText;

/// One line of `observe.jsonl.zst`. A key frame holds every value; the lines after it hold the values that changed.
///
/// Names begin with the source and end with the unit: `host.cpu.steal_s`, `host.swap.out_pages`, `host.disk.vda.write_bytes`,
/// `server.cpu.user_s`. Counters only grow; gauges (`…_now`, `…_bytes` of memory) do not.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sample {
    /// Start of the reading, in seconds since the run began.
    pub at_s: f64,
    /// Duration of the reading in seconds: the largest time difference between two values of the sample.
    pub took_s: f64,
    /// Lateness: seconds from the instant at which the sample was due to `at_s`; absent for the unscheduled samples at the
    /// start and at the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late_s: Option<f64>,
    /// Samples that were due between the previous sample and this one and were not taken.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub missed: u64,
    /// Seconds by which the wall clock has gained on the run's clock since the first sample: a slow change means that the clock
    /// is being slewed, a jump that the clock was set or the machine suspended.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub drift_s: Option<f64>,
    /// Values of the previous line that could not be read this time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub gone: Vec<String>,
    /// Whether this line holds every value.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub key: bool,
    /// Values by name.
    pub values: IndexMap<SharedText, f64>,
    /// Texts of statements, without their literals, by the digests that names of values contain. A key frame holds all of them.
    #[serde(skip_serializing_if = "IndexMap::is_empty", default)]
    pub texts: IndexMap<SharedText, SharedText>,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Most texts of a frame, and most bytes of one with its digest, that are read; writers keep far below.
const MOST_TEXTS: usize = 200;
const LONGEST_TEXT: usize = 2_048;

impl Sample {
    /// The difference from `before`, for writing; the writer keeps key frames whole.
    #[must_use]
    pub fn delta_from(&self, before: &Self) -> Self {
        let values = self
            .values
            .iter()
            .filter(|(name, value)| before.values.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), *value))
            .collect();
        let gone = before.values.keys().filter(|name| !self.values.contains_key(*name));
        let gone = gone.map(|name| (**name).to_owned()).collect();
        let texts = self.texts.iter().filter(|(digest, text)| before.texts.get(*digest) != Some(text));
        let texts = texts.map(|(digest, text)| (digest.clone(), text.clone())).collect();
        Self { key: false, values, gone, texts, ..*self }
    }

    /// The full frame that results from applying this line to the previous full frame.
    #[must_use]
    pub fn onto(mut self, before: Option<&Self>) -> Self {
        if let (false, Some(before)) = (self.key, before) {
            let mut values = before.values.clone();
            values.extend(self.values);
            if !self.gone.is_empty() {
                let gone: HashSet<&str> = self.gone.iter().map(String::as_str).collect();
                values.retain(|name, _| !gone.contains(&**name));
            }
            self.values = values;
            let mut texts = before.texts.clone();
            texts.extend(self.texts);
            self.texts = texts;
        } else if let Some(before) = before {
            // The same names and texts, so that each is in memory once.
            let known = |name| before.values.get_key_value(&name).map_or(name, |(known, _)| known.clone());
            self.values = self.values.into_iter().map(|(name, value)| (known(name), value)).collect();
            let known = |(digest, text)| match before.texts.get_key_value(&digest) {
                Some((known, same)) if *same == text => (known.clone(), same.clone()),
                _ => (digest, text),
            };
            self.texts = self.texts.into_iter().map(known).collect();
        }
        // A damaged file must not exhaust memory: each frame holds all texts.
        self.texts.retain(|digest, text| digest.len() + text.len() <= LONGEST_TEXT);
        self.texts.truncate(MOST_TEXTS);
        self.gone.clear();
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
            values: values.iter().map(|(n, v)| ((*n).into(), *v)).collect(),
            ..Sample::default()
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

    #[test]
    fn frames_share_the_names_of_their_values() {
        let before = sample(&[("a", 1.0), ("b", 2.0)]);
        let delta = Sample { key: false, ..sample(&[("b", 3.0)]) };
        for after in [delta, sample(&[("a", 1.0), ("b", 3.0)])] {
            let frame = after.onto(Some(&before));
            assert_eq!(frame.values.len(), 2);
            assert!(
                frame
                    .values
                    .keys()
                    .zip(before.values.keys())
                    .all(|(one, other)| std::ptr::eq(&**one, &**other))
            );
        }
    }

    #[test]
    fn a_value_that_is_gone_does_not_stay_as_it_was() {
        let before = sample(&[("a", 1.0), ("b", 2.0)]);
        let after = sample(&[("a", 1.0)]);
        let delta = after.delta_from(&before);
        assert_eq!(delta.gone, ["b"]);
        assert_eq!(delta.onto(Some(&before)), after);
    }

    #[test]
    fn texts_are_written_once_and_stay_until_the_next_key_frame() {
        let with = |texts: &[(&str, &str)]| Sample {
            texts: texts.iter().map(|(d, t)| ((*d).into(), (*t).into())).collect(),
            ..sample(&[("a", 1.0)])
        };
        let (before, after) = (with(&[("d1", "SELECT ?")]), with(&[("d1", "SELECT ?"), ("d2", "COMMIT")]));
        let delta = after.delta_from(&before);
        assert_eq!(delta.texts.keys().map(|digest| &**digest).collect::<Vec<_>>(), ["d2"]);
        assert_eq!(delta.clone().onto(Some(&before)), after);
        assert_eq!(with(&[]).onto(Some(&after)).texts.len(), 0, "a key frame holds all");
        for frame in [after.clone(), delta].map(|sample| sample.onto(Some(&before))) {
            assert!(std::ptr::eq(&*frame.texts["d1"], &*before.texts["d1"]), "a text is in memory once");
        }
        let long = "x".repeat(LONGEST_TEXT);
        assert_eq!(with(&[("d3", &long)]).onto(Some(&after)).texts.len(), 0);
    }

    #[test]
    fn lines_without_the_later_fields_are_read_and_written_as_they_were() {
        let line = r#"{"at_s":1.0,"took_s":0.001,"key":true,"values":{"a":1.0}}"#;
        let sample: Sample = serde_json::from_str(line).unwrap();
        assert_eq!((sample.late_s, sample.missed, sample.drift_s), (None, 0, None));
        assert_eq!(serde_json::to_string(&sample).unwrap(), line);
    }
}
