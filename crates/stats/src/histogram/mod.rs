//! Recorders of nanoseconds: [`Histogram`] to record and merge, [`SparseHistogram`] to keep many.
//!
//! Both have the same buckets (HdrHistogram's, two significant digits, 1 ns to an hour) and, beside them, the exact count, sum,
//! minimum and maximum. Merging is lossless: the merged histogram of parts equals the histogram of the whole.

mod codec;
mod layout;
mod quantile;
mod sparse;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mydyno_model::record::HistogramData;

pub use self::quantile::{Bucket, Distribution};
pub use self::sparse::SparseHistogram;
use crate::Error;

/// The longest time with a separate bucket: 73 minutes less one bucket. The last bucket counts longer times, whose sum and
/// maximum remain exact.
pub const SATURATION_NS: u64 = layout::TOP_NS - (1 << 34) + 1;

/// Statistics that are known exactly, beside the buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exact {
    count: u64,
    sum_ns: u64,
    /// `u64::MAX` without values.
    min_ns: u64,
    max_ns: u64,
}

impl Exact {
    const NONE: Self = Self { count: 0, sum_ns: 0, min_ns: u64::MAX, max_ns: 0 };

    fn add(&mut self, other: &Self) {
        self.count = self.count.saturating_add(other.count);
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }
}

/// A recorder of nanoseconds. Recording never fails or allocates, and takes a few nanoseconds.
///
/// ```
/// use mydyno_stats::{Distribution, Histogram};
/// let mut times = Histogram::new();
/// for ns in 1..=1000 {
///     times.record(ns * 1000);
/// }
/// assert_eq!(times.count(), 1000);
/// assert_eq!(times.max_ns(), Some(1_000_000));
/// let p99 = times.quantile_ns(0.99).unwrap_or(f64::NAN);
/// assert!((p99 - 990_000.0).abs() < 990_000.0 / 128.0);
/// ```
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64; layout::BUCKETS]>,
    exact: Exact,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Histogram {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram").field("exact", &self.exact).finish_non_exhaustive()
    }
}

impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.exact == other.exact && self.counts == other.counts
    }
}

impl Eq for Histogram {}

impl Histogram {
    /// An empty recorder: 36 kB, allocated once here.
    pub fn new() -> Self {
        Self { counts: Box::new([0; layout::BUCKETS]), exact: Exact::NONE }
    }

    /// Records one duration.
    #[inline]
    pub fn record(&mut self, ns: u64) {
        let cell = &mut self.counts[layout::index_of(ns)];
        *cell = cell.wrapping_add(1);
        let exact = &mut self.exact;
        exact.count = exact.count.wrapping_add(1);
        exact.sum_ns = exact.sum_ns.saturating_add(ns);
        exact.min_ns = exact.min_ns.min(ns);
        exact.max_ns = exact.max_ns.max(ns);
    }

    /// Adds all values of another recorder.
    pub fn merge(&mut self, other: &Self) {
        if let Some(touched) = other.touched() {
            for (mine, theirs) in self.counts[touched.clone()].iter_mut().zip(&other.counts[touched]) {
                *mine = mine.saturating_add(*theirs);
            }
            self.exact.add(&other.exact);
        }
    }

    /// Adds all values of a histogram from a record, without an intermediate recorder.
    ///
    /// # Errors
    /// The data are damaged; then no value is added.
    pub fn merge_data(&mut self, data: &HistogramData) -> Result<(), Error> {
        self.merge_sparse(&SparseHistogram::from_data(data)?);
        Ok(())
    }

    /// Adds all values of a sparse histogram.
    pub fn merge_sparse(&mut self, other: &SparseHistogram) {
        for &(index, count) in &other.buckets {
            let cell = &mut self.counts[usize::from(index)];
            *cell = cell.saturating_add(count);
        }
        self.exact.add(&other.exact);
    }

    /// Removes all values.
    pub fn clear(&mut self) {
        if let Some(touched) = self.touched() {
            self.counts[touched].fill(0);
        }
        self.exact = Exact::NONE;
    }

    /// The histogram in the form used by records.
    pub fn to_data(&self) -> HistogramData {
        let hdr = self.touched().map(|touched| STANDARD.encode(codec::encode(&self.counts[..touched.end])));
        data_of(&self.exact, hdr.unwrap_or_default())
    }

    /// Reads the output of [`Histogram::to_data`].
    ///
    /// # Errors
    /// The data are damaged, in another format, or inconsistent.
    pub fn from_data(data: &HistogramData) -> Result<Self, Error> {
        let mut histogram = Self::new();
        histogram.merge_data(data)?;
        Ok(histogram)
    }

    /// The values in compact form, for keeping many histograms.
    pub fn to_sparse(&self) -> SparseHistogram {
        let buckets = self.indexed_counts().map(|(index, count)| (index as u16, count)).collect();
        SparseHistogram { buckets, exact: self.exact }
    }

    /// Buckets between the lowest and the highest value.
    fn touched(&self) -> Option<std::ops::Range<usize>> {
        (self.exact.count > 0)
            .then(|| layout::index_of(self.exact.min_ns)..layout::index_of(self.exact.max_ns) + 1)
    }
}

impl quantile::Parts for Histogram {
    fn exact(&self) -> &Exact {
        &self.exact
    }

    fn indexed_counts(&self) -> impl Iterator<Item = (usize, u64)> {
        let touched = self.touched().unwrap_or(0..0);
        let start = touched.start;
        let counts = self.counts[touched].iter().enumerate();
        counts.filter(|(_, count)| **count > 0).map(move |(i, count)| (start + i, *count))
    }
}

fn data_of(exact: &Exact, hdr: String) -> HistogramData {
    let Exact { count, sum_ns, min_ns, max_ns } = *exact;
    HistogramData { count, sum_ns, min_ns: if count == 0 { 0 } else { min_ns }, max_ns, hdr }
}

use self::quantile::Parts as _;

#[cfg(test)]
mod tests;
