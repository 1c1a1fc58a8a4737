//! Latency histograms with logarithmic buckets, as reports and scripts of sysbench use them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets of the histogram of latency.
pub(crate) const BUCKETS: usize = 1024;
/// Range of the histogram of latency, in milliseconds.
pub(crate) const RANGE_MS: (f64, f64) = (0.001, 100_000.0);
/// Characters of the longest bar.
const BAR: usize = 40;

/// A histogram of which bucket i stands for the value min × (max / min)^(i / (n − 1)). Values outside of the range count in
/// the first or last bucket.
#[derive(Debug)]
pub(crate) struct Histogram {
    min: f64,
    max: f64,
    counts: Vec<AtomicU64>,
}

impl Histogram {
    pub(crate) fn new(buckets: usize, min: f64, max: f64) -> Self {
        Self { min, max, counts: (0..buckets.max(2)).map(|_| AtomicU64::new(0)).collect() }
    }

    /// The histogram of latency in milliseconds.
    pub(crate) fn of_latency() -> Self {
        Self::new(BUCKETS, RANGE_MS.0, RANGE_MS.1)
    }

    fn step(&self) -> f64 {
        (self.max.ln() - self.min.ln()) / (self.counts.len() - 1) as f64
    }

    pub(crate) fn update(&self, value: f64) {
        let value = value.clamp(self.min, self.max);
        let bucket = ((value.ln() - self.min.ln()) / self.step() + 0.5) as usize;
        self.counts[bucket.min(self.counts.len() - 1)].fetch_add(1, Relaxed);
    }

    /// The counts.
    pub(crate) fn counts(&self) -> Counts {
        let counts = self.counts.iter().map(|count| count.load(Relaxed)).collect();
        Counts { min: self.min, step: self.step(), counts }
    }
}

/// The counts of a histogram at an instant.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    min: f64,
    step: f64,
    counts: Vec<u64>,
}

impl Counts {
    pub(crate) fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// The difference of these counts and `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let mut difference = self.clone();
        for (count, less) in difference.counts.iter_mut().zip(&earlier.counts) {
            *count = count.saturating_sub(*less);
        }
        difference
    }

    fn value(&self, bucket: usize) -> f64 {
        self.min * (bucket as f64 * self.step).exp()
    }

    /// The value below or at which `percentile` percent of the values lie; 0 without values.
    pub(crate) fn percentile(&self, percentile: f64) -> f64 {
        let total: u64 = self.counts.iter().sum();
        if total == 0 {
            return 0.0;
        }
        let rank = (total as f64 * percentile / 100.0 + 0.5).floor().max(1.0) as u64;
        let mut below = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            below += count;
            if below >= rank {
                return self.value(bucket);
            }
        }
        self.value(self.counts.len() - 1)
    }

    /// Rows of value, bar and count for every bucket that is not empty.
    pub(crate) fn print(&self) -> String {
        let mut text = String::from("       value  ------------- distribution ------------- count\n");
        let largest = self.counts.iter().copied().max().unwrap_or(0).max(1);
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let length = (*count as f64 / largest as f64 * BAR as f64 + 0.5) as usize;
            let _ = writeln!(text, "{:12.3} |{:BAR$} {count}", self.value(bucket), "*".repeat(length));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_the_value_of_its_bucket() {
        let histogram = Histogram::of_latency();
        for _ in 0..100 {
            histogram.update(529.0);
        }
        // Bucket 732 of 1,024 between 0.001 and 100,000: 0.001 * 1e8^(732 / 1023).
        assert!((histogram.counts().percentile(95.0) - 530.08).abs() < 0.01);
        assert_eq!(Histogram::of_latency().counts().percentile(50.0), 0.0);
    }

    #[test]
    fn rows_show_value_bar_and_count() {
        let histogram = Histogram::of_latency();
        for value in [397.4, 397.4, 404.6, 397.4, 397.4, 404.6] {
            histogram.update(value);
        }
        let text = histogram.counts().print();
        let rows: Vec<&str> = text.lines().collect();
        assert_eq!(rows[1], "     397.391 |**************************************** 4");
        assert_eq!(rows[2], "     404.611 |********************                     2");
    }

    #[test]
    fn values_beyond_the_range_count_at_its_ends() {
        let histogram = Histogram::new(10, 1.0, 100.0);
        histogram.update(0.0);
        histogram.update(1e9);
        let counts = histogram.counts();
        assert_eq!((counts.counts[0], counts.counts[9]), (1, 1));
        assert_eq!(counts.percentile(1.0), 1.0);
    }
}
