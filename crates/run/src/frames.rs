//! Full frames of samples, from the lines of a record that hold what changed.

use mydyno_model::sample::Sample;

use crate::lines::LONGEST_GAP_S;

/// Values of samples that are kept in memory, about 50 bytes each; longer runs keep every second, fourth … sample.
const MOST_VALUES: usize = 1_000_000;

/// Values that take as much memory as a frame without any, and as a text of a statement does in each frame that has it.
const FRAME: usize = 6;
const TEXT: usize = 2;

/// Values that are copied while samples are expanded, which bounds the time: a day of 500 values a second.
const MOST_COPIED: usize = 50_000_000;

/// Expands samples, one after the other, so that a line is in memory alone. Long series are thinned out: counters are cumulative, so
/// that rates stay right.
#[derive(Debug)]
pub(crate) struct Frames {
    kept: Vec<Sample>,
    last: Option<Sample>,
    number: usize,
    stride: usize,
    values: usize,
    copied: usize,
    broken: bool,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self { kept: Vec::new(), last: None, number: 0, stride: 1, values: 0, copied: 0, broken: false }
    }

    /// Takes the next sample; behind one that cannot be, none is taken.
    pub(crate) fn push(&mut self, sample: Sample) {
        if self.broken {
            return;
        }
        let before = self.last.as_ref();
        let latest_s = before.map_or(30.0 * LONGEST_GAP_S, |last| last.at_s + LONGEST_GAP_S);
        let size = before.map_or(0, weight) + weight(&sample) + sample.gone.len();
        self.copied = self.copied.saturating_add(size);
        if !(0.0..=latest_s).contains(&sample.at_s) || self.copied > MOST_COPIED {
            self.broken = true;
            return;
        }
        let frame = sample.onto(before);
        if self.number.is_multiple_of(self.stride) {
            self.values += weight(&frame);
            self.kept.push(frame.clone());
        }
        self.number += 1;
        self.last = Some(frame);
        if self.values > MOST_VALUES && self.kept.len() > 2 {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        self.stride *= 2;
        let mut index = 0;
        self.kept.retain(|_| {
            index += 1;
            index % 2 == 1
        });
        self.values = self.kept.iter().map(weight).sum();
    }

    /// The frames, and what is missing of them.
    pub(crate) fn end(self, damage: &mut Vec<String>) -> Vec<Sample> {
        if self.broken {
            damage.push("samples with an impossible time, or beyond what is read, are left out".to_owned());
        }
        self.kept
    }
}

/// Memory of a frame, in values.
fn weight(frame: &Sample) -> usize {
    FRAME + frame.values.len() + TEXT * frame.texts.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(
        at_s: f64,
        key: bool,
        values: indexmap::IndexMap<mydyno_model::sample::SharedText, f64>,
    ) -> Sample {
        Sample { at_s, key, values, ..Sample::default() }
    }

    fn frames(samples: impl IntoIterator<Item = Sample>) -> (Vec<Sample>, Vec<String>) {
        let (mut frames, mut damage) = (Frames::new(), Vec::new());
        samples.into_iter().for_each(|sample| frames.push(sample));
        let kept = frames.end(&mut damage);
        (kept, damage)
    }

    #[test]
    fn small_deltas_upon_a_large_frame_stay_within_bounds() {
        let large = (0..20_000).map(|n| (format!("v{n}").into(), 1.0)).collect();
        let deltas = (1..5_000).map(|n| sample(f64::from(n), false, indexmap::IndexMap::new()));
        let (kept, damage) = frames(std::iter::once(sample(0.0, true, large)).chain(deltas));
        let values: usize = kept.iter().map(|frame| frame.values.len()).sum();
        assert!(values <= MOST_VALUES && kept.len() > 10 && damage.len() == 1, "{values}, {damage:?}");
    }

    #[test]
    fn samples_without_values_and_texts_of_statements_count_as_well() {
        let none = indexmap::IndexMap::new;
        let (kept, damage) = frames((0..400_000).map(|n| sample(f64::from(n), false, none())));
        assert!(kept.len() <= MOST_VALUES / FRAME && damage.is_empty(), "{}", kept.len());
        let texts = (0..200).map(|n| (format!("d{n}").into(), "SELECT ?".into())).collect();
        let first = Sample { texts, ..sample(0.0, true, none()) };
        let later = (1..10_000).map(|n| sample(f64::from(n), false, none()));
        let (kept, damage) = frames(std::iter::once(first).chain(later));
        let texts: usize = kept.iter().map(|frame| frame.texts.len()).sum();
        assert!(texts * TEXT <= MOST_VALUES && kept.len() > 10 && damage.is_empty(), "{texts} {damage:?}");
    }

    #[test]
    fn a_sample_of_an_impossible_time_ends_the_series() {
        let none = indexmap::IndexMap::new;
        let (kept, damage) =
            frames([sample(0.0, true, none()), sample(1e15, true, none()), sample(1.0, true, none())]);
        assert_eq!((kept.len(), damage.len()), (1, 1));
    }
}
