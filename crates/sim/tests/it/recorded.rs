//! Recorded servers that did the same all the time (A/A): the first part of a recording gives an interval of 60 s, which must hold the
//! mean of the whole recording. Segments are taken as they were recorded, not resampled.

use std::path::Path;

use mydyno_model::record::HistogramData;
use mydyno_sim::coverage::Tally;
use mydyno_stats::{Distribution, Histogram, SparseHistogram, interval, slow, steady};

/// Length of a segment in seconds.
const SEGMENT: usize = 60;

const QUANTILES: [f64; 3] = [0.5, 0.95, 0.99];

/// A window of mydyno's own record, as tests/sim/aa/record keeps it.
#[derive(serde::Deserialize)]
struct Window {
    width_s: f64,
    transactions: u64,
    response: HistogramData,
}

/// Names and texts of the files of tests/sim/aa with this ending, in the order of their names.
fn recordings(ending: &str) -> Vec<(String, String)> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sim/aa"));
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths.sort();
    let text = |path: &Path| {
        String::from_utf8(zstd::decode_all(std::fs::File::open(path).unwrap()).unwrap()).unwrap()
    };
    paths.iter().map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), text(path))).collect()
}

/// mydyno's own records.
fn records() -> Vec<(String, Vec<Window>)> {
    let parse = |text: &str| text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    recordings(".jsonl.zst").into_iter().map(|(name, text)| (name, parse(&text))).collect()
}

/// Throughput of each second by sysbench, from where the product would end the warm-up.
fn sysbench() -> Vec<(String, Vec<f64>)> {
    let parse = |(name, text): (String, String)| {
        let rates: Vec<f64> =
            text.lines().skip(1).map(|line| line.split(',').nth(1).unwrap().parse().unwrap()).collect();
        let start = steady::warm_up_end(&rates).unwrap_or_else(|| panic!("{name} never settles"));
        (name, rates[start..].to_vec())
    };
    recordings(".csv.zst").into_iter().map(parse).collect()
}

#[test]
fn there_are_at_least_200_windows_of_each_kind() {
    let mut windows = 0;
    for window in records().into_iter().flat_map(|(_, windows)| windows) {
        let response = SparseHistogram::from_data(&window.response).unwrap();
        assert_eq!(response.count(), window.transactions);
        windows += 1;
    }
    assert!(windows >= 200, "{windows}");
    let windows: usize = sysbench().iter().map(|(_, rates)| rates.len()).sum();
    assert!(windows >= 200, "{windows}");
}

/// Share of the segments of all recordings whose interval must hold the mean of its recording. A recording is one draw, its own mean is
/// made of the segments, and servers wander for minutes, so that this is a check against gross errors only.
const HOLDS: f64 = 0.8;

fn check(what: &str, tally: &Tally) {
    let held = tally.provisional_coverage().unwrap();
    assert!(held >= HOLDS, "{what}: {held}, {tally:?}");
    assert_eq!(tally.promised, 0, "{what}: a minute promises nothing");
}

#[test]
fn segments_of_a_minute_hold_the_throughput_of_their_recording() {
    let mut tally = Tally::default();
    for (_, windows) in records() {
        let (events, time_s) = windows.iter().fold((0, 0.0), |(e, t), w| (e + w.transactions, t + w.width_s));
        for segment in windows.chunks_exact(SEGMENT) {
            let counts: Vec<u64> = segment.iter().map(|w| w.transactions).collect();
            let widths_s: Vec<f64> = segment.iter().map(|w| w.width_s).collect();
            tally.add(&interval::throughput(&counts, &widths_s), events as f64 / time_s);
        }
    }
    for (_, rates) in sysbench() {
        let truth = rates.iter().sum::<f64>() / rates.len() as f64;
        for segment in rates.chunks_exact(SEGMENT) {
            tally.add(&interval::mean(segment, SEGMENT as f64), truth);
        }
    }
    check("throughput", &tally);
}

#[test]
fn segments_of_a_minute_hold_the_percentiles_of_their_recording() {
    let mut tallies = [Tally::default(); QUANTILES.len()];
    for (_, windows) in records() {
        let windows: Vec<SparseHistogram> =
            windows.iter().map(|w| SparseHistogram::from_data(&w.response).unwrap()).collect();
        let mut whole = Histogram::new();
        windows.iter().for_each(|window| whole.merge_sparse(window));
        for segment in windows.chunks_exact(SEGMENT) {
            let estimates = interval::percentiles(segment, &QUANTILES, SEGMENT as f64);
            for ((q, tally), estimate) in QUANTILES.iter().zip(&mut tallies).zip(&estimates) {
                tally.add(estimate, whole.quantile_ns(*q).unwrap());
            }
        }
    }
    for (q, tally) in QUANTILES.iter().zip(&tallies) {
        check(&format!("p{}", 100.0 * q), tally);
    }
}

#[test]
fn shorter_series_of_recordings_promise_nothing_and_say_why() {
    for (name, rates) in sysbench() {
        for n in [slow::MIN_WINDOWS, 60, 239] {
            let estimate = interval::mean(&rates[..n], n as f64);
            assert_eq!(estimate.level, None, "{name}, {n} windows: {estimate:?}");
            let why = "less than 240 seconds cannot tell slow changes from noise";
            let reported = estimate.method.contains(why) || estimate.method.contains("not steady");
            assert!(reported, "{name}, {n} windows: {estimate:?}");
        }
    }
}
