//! Merging of the record's histograms.

use mydyno_model::record::{HistogramData, OperationTimes, RunRecord};
use mydyno_stats::{Distribution, Histogram, SparseHistogram};

/// Merges histograms; unreadable ones are left out (see [`unreadable`]).
pub fn merged<'a>(parts: impl IntoIterator<Item = &'a HistogramData>) -> Histogram {
    let mut sum = Histogram::new();
    for part in parts {
        let _ = sum.merge_data(part);
    }
    sum
}

/// Number of damaged histograms of the transaction, which the charts are drawn from.
pub fn unreadable(record: &RunRecord) -> usize {
    let Some(transaction) = record.manifest.operations.first() else { return 0 };
    let times = record.intervals.iter().filter_map(|i| i.operations.get(&transaction.name));
    let all = times.flat_map(|OperationTimes { response, service }| [response, service]);
    all.filter(|data| SparseHistogram::from_data(data).is_err()).count()
}

/// The value in microseconds that a share `q` of all values does not exceed; `None` where fewer than one value exceeds it,
/// because the quantile would then merely be the maximum.
pub fn quantile_us(times: &Histogram, q: f64) -> Option<f64> {
    if (times.count() as f64) * (1.0 - q) < 1.0 - 1e-9 {
        return None;
    }
    times.quantile_ns(q).map(|ns| ns / 1e3)
}
