//! Queries on a histogram, dense or sparse.

use super::{Exact, layout};

/// A non-empty bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest value that it can hold, in nanoseconds; never below the exact minimum.
    pub low_ns: u64,
    /// Highest value that it can contain; never above the exact maximum.
    pub high_ns: u64,
    /// Number of values in the bucket.
    pub count: u64,
}

/// Access to the contents of both kinds of histogram.
pub trait Parts {
    #[doc(hidden)]
    fn exact(&self) -> &Exact;
    #[doc(hidden)]
    fn indexed_counts(&self) -> impl Iterator<Item = (usize, u64)>;
}

/// Queries on a histogram. A quantile is the smallest recorded value that at least a share `q` of all values does not exceed,
/// interpolated inside its bucket in proportion to its rank. It differs from the exact quantile by less than the bucket's width
/// (1/128 of the value) and is never below the exact minimum nor above the exact maximum.
pub trait Distribution: Parts {
    /// Number of values.
    fn count(&self) -> u64 {
        self.exact().count
    }

    /// Whether the histogram contains no value.
    fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Exact sum in nanoseconds (up to 2^64 − 1: 584 years of waiting).
    fn sum_ns(&self) -> u64 {
        self.exact().sum_ns
    }

    /// Exact minimum.
    fn min_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.exact().min_ns)
    }

    /// Exact maximum.
    fn max_ns(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.exact().max_ns)
    }

    /// Exact mean.
    fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns() as f64 / self.count() as f64)
    }

    /// Number of values in the overflow bucket (see [`super::SATURATION_NS`]); a quantile among them is known only to lie
    /// "between 73 minutes and the maximum".
    fn saturated(&self) -> u64 {
        let last = layout::BUCKETS - 1;
        self.indexed_counts().filter(|(index, _)| *index == last).map(|(_, count)| count).sum()
    }

    /// Non-empty buckets, lowest first.
    fn buckets(&self) -> impl Iterator<Item = Bucket> {
        self.indexed_counts().map(|(index, count)| self.bucket(index, count))
    }

    /// The `q`-quantile in nanoseconds, as in 0.99; `None` without values. `q` is clamped to 0 … 1.
    fn quantile_ns(&self, q: f64) -> Option<f64> {
        let (bucket, rank_in_bucket) = self.locate(q)?;
        let share = rank_in_bucket / bucket.count as f64;
        let (low, high) = (bucket.low_ns as f64, bucket.high_ns as f64);
        Some((low + share * (high - low)).clamp(low, high))
    }

    /// Bounds in nanoseconds that are certain to contain the exact `q`-quantile of the recorded values: the ends of its bucket,
    /// clipped at minimum and maximum.
    fn quantile_bounds_ns(&self, q: f64) -> Option<(u64, u64)> {
        self.locate(q).map(|(bucket, _)| (bucket.low_ns, bucket.high_ns))
    }

    /// Approximate number of values below `ns`: exact at bucket edges, interpolated inside a bucket.
    fn count_below(&self, ns: f64) -> f64 {
        let mut below = [0.0];
        self.counts_below(&[ns], &mut below);
        below[0]
    }

    /// [`Distribution::count_below`] for several times, lowest first, in one pass; `below` is as long as `ns`.
    fn counts_below(&self, ns: &[f64], below: &mut [f64]) {
        let mut before = 0u64;
        let mut counts = self.indexed_counts();
        let mut current = counts.next();
        for (ns, below) in ns.iter().zip(below) {
            // Whole buckets are identified by their number alone.
            let cut = layout::index_of(ns.max(0.0) as u64);
            while let Some((_, count)) = current.filter(|(index, _)| *index < cut) {
                before = before.saturating_add(count);
                current = counts.next();
            }
            *below = before as f64;
            if let Some((index, count)) = current.filter(|(index, _)| *index == cut) {
                let bucket = self.bucket(index, count);
                let (low, end) = (bucket.low_ns as f64, bucket.high_ns as f64 + 1.0);
                *below += count as f64 * ((ns - low) / (end - low)).clamp(0.0, 1.0);
            }
        }
    }

    #[doc(hidden)]
    fn bucket(&self, index: usize, count: u64) -> Bucket {
        let exact = self.exact();
        let high = if index == layout::BUCKETS - 1 { u64::MAX } else { layout::high_of(index) };
        Bucket { low_ns: layout::low_of(index).max(exact.min_ns), high_ns: high.min(exact.max_ns), count }
    }

    #[doc(hidden)]
    fn locate(&self, q: f64) -> Option<(Bucket, f64)> {
        let target = q.clamp(0.0, 1.0) * self.count() as f64;
        let mut before = 0.0;
        let mut last = None;
        for bucket in self.buckets() {
            let through = before + bucket.count as f64;
            if through >= target {
                return Some((bucket, (target - before).max(0.0)));
            }
            before = through;
            last = Some(bucket);
        }
        // Rounding of counts beyond 2^53 only.
        last.map(|bucket| (bucket, bucket.count as f64))
    }
}

impl<T: Parts> Distribution for T {}

impl<T: Parts> Parts for &T {
    fn exact(&self) -> &Exact {
        (*self).exact()
    }

    fn indexed_counts(&self) -> impl Iterator<Item = (usize, u64)> {
        (*self).indexed_counts()
    }
}
