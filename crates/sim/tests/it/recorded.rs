//! Windows of a real server that did the same all the time (A/A), resampled in blocks: intervals with a level must hold the
//! truth of the recording 92 to 98 % of the time, those of throughput and of percentiles.

use std::ops::RangeInclusive;
use std::path::Path;

use mydyno_model::Estimate;
use mydyno_model::record::HistogramData;
use mydyno_sim::coverage::{Tally, cell};
use mydyno_stats::{Distribution, Histogram, Rng, SparseHistogram, interval, series, steady};

use super::journal::{alike, cells};

const BAND: RangeInclusive<f64> = 0.92..=0.98;

/// Lengths at which intervals have a level.
const LENGTHS: [usize; 3] = [series::RELIABLE_WINDOWS, 300, 600];

/// Series that are resampled for each cell: a share of 95 % is known to ± 1 %, one of 98 % to ± 0.6 %.
const SEEDS: u64 = 2000;

/// A recording has so many mean blocks. What lasts longer than a block is cut by it, so that a recording can stand for variation
/// that is this much shorter than itself.
const BLOCKS: usize = 20;

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

/// Places of `n` windows made of blocks of a recording of `of` windows, joined end to end; block lengths are geometric about
/// `of`/[`BLOCKS`] (the stationary bootstrap of Politis and Romano), so that correlation is kept within blocks.
fn resample(of: usize, n: usize, rng: &mut Rng) -> Vec<usize> {
    let block = (of / BLOCKS) as u64;
    let mut at = rng.below(of as u64) as usize;
    let mut next = || {
        let place = at % of;
        at = if rng.below(block) == 0 { rng.below(of as u64) as usize } else { at + 1 };
        place
    };
    (0..n).map(|_| next()).collect()
}

/// How much less a mean of resampled blocks varies about the recording's than that of a server about its own: the windows of a
/// block differ from their recording's mean, which is made of them, and not from the server's. Of independent windows in blocks
/// of L on average the variance is 1 − (2L − 1)/(N − 1) of what it should be.
fn shrinkage(of: usize) -> f64 {
    let block = (of / BLOCKS) as f64;
    (1.0 - (2.0 * block - 1.0) / (of as f64 - 1.0)).sqrt()
}

/// Counts an estimate from resampled windows, with its error as large as that of the server itself would be.
fn add(tally: &mut Tally, estimate: &Estimate, truth: f64, of: usize) {
    tally.add(estimate, estimate.value + (truth - estimate.value) / shrinkage(of));
}

/// Share of the series that keep a level, at least.
const KEEP_LEVEL: f64 = 0.75;

/// Cells of single recordings that lie outside, and no others may: a recording is one draw, and its own mean is no
/// more certain than that. The first recording's p50 stays at three levels for two minutes each, and is itself said to wander.
const OUTSIDE: [(&str, usize); 5] = [
    ("held_out_oltp_point_select_1.jsonl.zst: p50", 240),
    ("held_out_oltp_point_select_1.jsonl.zst: p50", 300),
    ("held_out_oltp_point_select_1.jsonl.zst: p50", 600),
    ("held_out_oltp_point_select_1.jsonl.zst: p95", 300),
    ("fresh_oltp_point_select_1.jsonl.zst: p50", 240),
];

/// What is wrong with the intervals of what has this name, at each of [`LENGTHS`]; the journal has a row with the same cells.
fn faults(name: &str, tallies: &[Tally]) -> Vec<String> {
    let kept = cells("statistics.md", name);
    let mut faults = Vec::new();
    for ((n, tally), kept) in LENGTHS.iter().zip(tallies).zip(&kept) {
        let cell = cell(tally);
        let holds =
            tally.promised_share() >= KEEP_LEVEL && tally.coverage().is_some_and(|h| BAND.contains(&h));
        if holds == OUTSIDE.contains(&(name, *n)) {
            faults.push(format!("{name}, {n} windows: {cell}"));
        }
        if !alike(&cell, kept) {
            faults.push(format!("{name}, {n} windows: the journal has {kept}, measured {cell}"));
        }
    }
    faults
}

/// Intervals with a level, and those of them that held, at each of [`LENGTHS`] over all recordings.
#[derive(Default)]
struct Together([(u64, u64); LENGTHS.len()]);

impl Together {
    fn add(&mut self, tallies: &[Tally]) {
        for ((promised, held), tally) in self.0.iter_mut().zip(tallies) {
            *promised += tally.promised;
            *held += tally.held;
        }
    }

    fn faults(&self, what: &str) -> Vec<String> {
        let shares = self.0.map(|(promised, held)| held as f64 / promised as f64);
        let outside = LENGTHS.iter().zip(shares).filter(|(_, share)| !BAND.contains(share));
        outside.map(|(n, share)| format!("{what}, {n} windows of all recordings: {share:.3}")).collect()
    }
}

#[test]
fn blocks_vary_as_much_less_than_the_server_as_they_are_taken_to() {
    let of = 100;
    let n = 300;
    let (mut squares, mut recordings) = (0.0, 0.0);
    for seed in 0..4000 {
        let mut rng = Rng::stream(seed, &[1]);
        let recording: Vec<f64> = (0..of).map(|_| rng.normal()).collect();
        let truth = recording.iter().sum::<f64>() / of as f64;
        let places = resample(of, n, &mut rng);
        let mean = places.iter().map(|place| recording[*place]).sum::<f64>() / n as f64;
        squares += (mean - truth).powi(2) * n as f64;
        recordings += 1.0;
    }
    let seen = (squares / recordings).sqrt();
    assert!((seen - shrinkage(of)).abs() < 0.03, "{seen}, expected {}", shrinkage(of));
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

#[test]
fn throughputs_of_mydynos_records_hold_the_truth_as_often_as_they_promise() {
    let (mut wrong, mut together) = (Vec::new(), Together::default());
    for (name, windows) in records() {
        let (events, time_s) = windows.iter().fold((0, 0.0), |(e, t), w| (e + w.transactions, t + w.width_s));
        let tallies = LENGTHS.map(|n| {
            let mut tally = Tally::default();
            for seed in 0..SEEDS {
                let sample = resample(windows.len(), n, &mut Rng::stream(seed, &[n as u64]));
                let counts: Vec<u64> = sample.iter().map(|place| windows[*place].transactions).collect();
                let widths_s: Vec<f64> = sample.iter().map(|place| windows[*place].width_s).collect();
                let estimate = interval::throughput(&counts, &widths_s);
                add(&mut tally, &estimate, events as f64 / time_s, windows.len());
            }
            tally
        });
        together.add(&tallies);
        wrong.extend(faults(&format!("{name}: throughput"), &tallies));
    }
    wrong.extend(together.faults("throughput of mydyno's"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn percentiles_of_mydynos_records_hold_the_truth_as_often_as_they_promise() {
    let (mut wrong, mut together) = (Vec::new(), [(); QUANTILES.len()].map(|()| Together::default()));
    for (name, windows) in records() {
        let windows: Vec<SparseHistogram> =
            windows.iter().map(|w| SparseHistogram::from_data(&w.response).unwrap()).collect();
        let mut whole = Histogram::new();
        windows.iter().for_each(|window| whole.merge_sparse(window));
        let mut tallies = [[Tally::default(); LENGTHS.len()]; QUANTILES.len()];
        for (i, n) in LENGTHS.into_iter().enumerate() {
            for seed in 0..SEEDS {
                let places = resample(windows.len(), n, &mut Rng::stream(seed, &[n as u64]));
                let sample: Vec<&SparseHistogram> = places.iter().map(|place| &windows[*place]).collect();
                let estimates = interval::percentiles(&sample, &QUANTILES);
                for ((q, tallies), estimate) in QUANTILES.iter().zip(&mut tallies).zip(&estimates) {
                    add(&mut tallies[i], estimate, whole.quantile_ns(*q).unwrap(), windows.len());
                }
            }
        }
        for ((q, tallies), together) in QUANTILES.iter().zip(&tallies).zip(&mut together) {
            together.add(tallies);
            wrong.extend(faults(&format!("{name}: p{}", 100.0 * q), tallies));
        }
    }
    for (q, together) in QUANTILES.iter().zip(&together) {
        wrong.extend(together.faults(&format!("p{}", 100.0 * q)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn throughputs_of_sysbenchs_recordings_hold_the_truth_as_often_as_they_promise() {
    let (mut wrong, mut together) = (Vec::new(), Together::default());
    for (name, rates) in sysbench() {
        assert_eq!(steady::assess(&rates).steady, Some(true), "{name}");
        let truth = rates.iter().sum::<f64>() / rates.len() as f64;
        let tallies = LENGTHS.map(|n| {
            let mut tally = Tally::default();
            for seed in 0..SEEDS {
                let places = resample(rates.len(), n, &mut Rng::stream(seed, &[n as u64]));
                let sample: Vec<f64> = places.iter().map(|place| rates[*place]).collect();
                add(&mut tally, &interval::mean(&sample), truth, rates.len());
            }
            tally
        });
        together.add(&tallies);
        wrong.extend(faults(&format!("{name}: throughput"), &tallies));
    }
    wrong.extend(together.faults("throughput of sysbench's"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn shorter_series_of_recordings_promise_nothing_and_say_why() {
    for (name, rates) in sysbench() {
        for n in [series::MIN_WINDOWS, 60, series::RELIABLE_WINDOWS - 1] {
            let estimate = interval::mean(&rates[..n]);
            assert_eq!(estimate.level, None, "{name}, {n} windows: {estimate:?}");
            let why = "fewer than 240 windows cannot tell slow changes from noise";
            let said = estimate.method.contains(why) || estimate.method.contains("not steady");
            assert!(said, "{name}, {n} windows: {estimate:?}");
        }
    }
}
