//! A histogram that stores only non-empty buckets: 16 bytes each.

use std::cmp::Ordering;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mydyno_model::record::HistogramData;

use super::{Exact, codec, data_of, layout, quantile};
use crate::Error;

/// A histogram for storage: decoded from a record or taken from a recorder, one for each second and operation, queried and merged, but
/// not recorded into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SparseHistogram {
    /// Bucket number and count of the non-empty buckets, lowest first.
    pub(super) buckets: Vec<(u16, u64)>,
    pub(super) exact: Exact,
}

impl Default for SparseHistogram {
    fn default() -> Self {
        Self { buckets: Vec::new(), exact: Exact::NONE }
    }
}

impl SparseHistogram {
    /// Reads the histogram of a record.
    ///
    /// # Errors
    /// The data are damaged, in another format, or inconsistent.
    pub fn from_data(data: &HistogramData) -> Result<Self, Error> {
        if data.hdr.is_empty() {
            return match data.count {
                0 => Ok(Self::default()),
                count => Err(contradiction("count", count, "none".to_owned())),
            };
        }
        let bytes = STANDARD.decode(&data.hdr).map_err(|e| Error::HistogramBase64(e.to_string()))?;
        let mut buckets = Vec::with_capacity(bytes.len().saturating_sub(40));
        let mut total = 0u64;
        codec::decode(&bytes, |index, count| {
            buckets.push((index as u16, count));
            total = total.saturating_add(count);
        })?;
        if total != data.count {
            return Err(contradiction("count", data.count, total.to_string()));
        }
        for (what, beside, end) in
            [("minimum", data.min_ns, buckets.first()), ("maximum", data.max_ns, buckets.last())]
        {
            let index = end.map_or(0, |(index, _)| usize::from(*index));
            if layout::index_of(beside) != index {
                let buckets = format!("{} to {} ns", layout::low_of(index), layout::high_of(index));
                return Err(contradiction(what, beside, buckets));
            }
        }
        let exact =
            Exact { count: data.count, sum_ns: data.sum_ns, min_ns: data.min_ns, max_ns: data.max_ns };
        Ok(Self { buckets, exact })
    }

    /// Adds all values of another one.
    pub fn merge(&mut self, other: &Self) {
        let mut merged = Vec::with_capacity(self.buckets.len().max(other.buckets.len()));
        let (mut mine, mut theirs) = (self.buckets.iter().peekable(), other.buckets.iter().peekable());
        while let (Some((one, count)), Some((two, more))) = (mine.peek(), theirs.peek()) {
            let bucket = match one.cmp(two) {
                Ordering::Less => (*one, *count),
                Ordering::Greater => (*two, *more),
                Ordering::Equal => (*one, count.saturating_add(*more)),
            };
            mine.next_if(|(index, _)| *index == bucket.0);
            theirs.next_if(|(index, _)| *index == bucket.0);
            merged.push(bucket);
        }
        merged.extend(mine.chain(theirs));
        self.buckets = merged;
        self.exact.add(&other.exact);
    }

    /// The histogram in the form used by records.
    pub fn to_data(&self) -> HistogramData {
        let Some((last, _)) = self.buckets.last() else { return HistogramData::default() };
        let mut counts = vec![0; usize::from(*last) + 1];
        for &(index, count) in &self.buckets {
            counts[usize::from(index)] = count;
        }
        data_of(&self.exact, STANDARD.encode(codec::encode(&counts)))
    }
}

impl quantile::Parts for SparseHistogram {
    fn exact(&self) -> &Exact {
        &self.exact
    }

    fn indexed_counts(&self) -> impl Iterator<Item = (usize, u64)> {
        self.buckets.iter().map(|(index, count)| (usize::from(*index), *count))
    }
}

fn contradiction(what: &'static str, beside: u64, buckets: String) -> Error {
    Error::HistogramContradiction { what, beside, buckets }
}
