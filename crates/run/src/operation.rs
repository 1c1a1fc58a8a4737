//! Times of an operation over the windows of a step.

use mydyno_model::Estimate;
use mydyno_model::record::{HistogramData, Interval, OperationInfo};
use mydyno_model::summary::{LatencySummary, OperationSummary, percentile_name};
use mydyno_stats::{Distribution, Histogram, SparseHistogram, interval};

/// An operation over the windows of a step, with these percentiles.
pub(crate) fn operation_summary(info: &OperationInfo, windows: &[&Interval], qs: &[f64]) -> OperationSummary {
    let times = || windows.iter().map(|w| w.operations.get(&info.name));
    let time_s = time_s(windows);
    let service_us = latency(times().map(|t| t.map(|t| &t.service)), qs, time_s);
    OperationSummary {
        name: info.name.clone(),
        kind: info.kind,
        count: service_us.count,
        response_us: latency(times().map(|t| t.map(|t| &t.response)), qs, time_s),
        service_us,
    }
}

/// Measured seconds.
pub(crate) fn time_s(windows: &[&Interval]) -> f64 {
    windows.iter().map(|w| w.width_s).sum()
}

/// A distribution over windows of `time_s` seconds together; a window without values counts as an empty one. A damaged
/// histogram counts as empty, which the count shows.
pub(crate) fn latency<'a>(
    windows: impl Iterator<Item = Option<&'a HistogramData>>,
    percents: &[f64],
    time_s: f64,
) -> LatencySummary {
    let empty = HistogramData::default();
    let windows: Vec<SparseHistogram> =
        windows.map(|data| SparseHistogram::from_data(data.unwrap_or(&empty)).unwrap_or_default()).collect();
    let mut whole = Histogram::new();
    windows.iter().for_each(|w| whole.merge_sparse(w));
    let us = |ns: f64| ns / 1e3;
    let percentiles = if whole.count() == 0 {
        Vec::new()
    } else {
        let qs: Vec<f64> = percents.iter().map(|p| p / 100.0).collect();
        interval::percentiles(&windows, &qs, time_s)
    };
    LatencySummary {
        count: whole.count(),
        percentiles: percents
            .iter()
            .zip(percentiles)
            .map(|(percent, e)| {
                let e = Estimate { value: us(e.value), low: e.low.map(us), high: e.high.map(us), ..e };
                (percentile_name(*percent), e)
            })
            .collect(),
        mean: whole.mean_ns().map(us),
        min: whole.min_ns().map(|ns| us(ns as f64)),
        max: whole.max_ns().map(|ns| us(ns as f64)),
    }
}
