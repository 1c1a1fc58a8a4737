//! Removing large files, for which DROP TABLE waits.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;

use mydyno_host::Host;
use mydyno_model::Estimate;
use mydyno_model::probe::{Figure, Measure, NotMeasured, ProbeReport};
use mydyno_model::units::{show_bytes, show_us};
use mydyno_stats::Rng;
use serde_json::Map;

use crate::course::Outcome;
use crate::error::ProbeError;
use crate::few;
use crate::report::{Draft, figure};
use crate::scratch::{PIECE, Scratch};
use crate::{Run, storage};

/// The measures to take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Folder of the files.
    pub folder: PathBuf,
    /// Sizes of files in bytes.
    pub sizes: Vec<u64>,
    /// Number of files of each size.
    pub count: usize,
}

/// Measures the removal.
///
/// # Errors
/// The folder cannot be used, or has too little space.
pub fn run(host: &Host, options: &Options, run: &mut Run) -> Result<ProbeReport, ProbeError> {
    let bad = |option, problem: &str| Err(ProbeError::Option { option, problem: problem.to_owned() });
    if options.sizes.is_empty() || options.sizes.contains(&0) {
        return bad("sizes", "sizes of files, as in 64M,1G");
    }
    if options.count == 0 || options.count > 1000 {
        return bad("count", "from 1 to 1000");
    }
    let mut draft = Draft::begin("unlink", &run.timing).with("count", options.count);
    draft.storage = Some(storage::look(host.machine(), Path::new("/sys"), &options.folder)?);
    let largest = options.sizes.iter().max().copied().unwrap_or(0);
    let scratch = Scratch::make(host, &options.folder, largest)?;
    draft.pace = storage::pace(host.machine(), &options.folder);
    let mut rng = Rng::from_seed(run.timing.seed);
    let mut times_us: Vec<Vec<f64>> = vec![vec![]; options.sizes.len()];
    let mut outcome = Outcome::default();
    'rounds: for round in 0..options.count {
        (run.progress)(&format!("file {} of {} of each size", round + 1, options.count));
        let mut order: Vec<usize> = (0..options.sizes.len()).collect();
        rng.shuffle(&mut order);
        for i in order {
            if run.stop.load(Ordering::Relaxed) {
                outcome.interrupted = true;
                break 'rounds;
            }
            times_us[i].push(remove_one(&scratch, options.sizes[i])?);
        }
    }
    scratch.remove()?;
    for (size, times_us) in options.sizes.iter().zip(times_us) {
        let id = format!("unlink.{}", show_bytes(*size as f64).replace(' ', ""));
        match times_us.is_empty() {
            true => outcome.not_measured.push(NotMeasured { id, why: "it was ended before".to_owned() }),
            false => outcome.measures.push(measure(id, *size, times_us)),
        }
    }
    draft.meaning = meaning(&outcome.measures);
    Ok(draft.finish(outcome))
}

/// Writes and syncs a file, removes it, and returns the duration of the removal in microseconds.
fn remove_one(scratch: &Scratch, bytes: u64) -> Result<f64, ProbeError> {
    scratch.filled("large", bytes, PIECE)?;
    let path = scratch.path().join("large");
    let begun = Instant::now();
    fs::remove_file(&path).map_err(ProbeError::io("remove", &path))?;
    Ok(begun.elapsed().as_secs_f64() * 1e6)
}

fn measure(id: String, size: u64, times_us: Vec<f64>) -> Measure {
    let longest = times_us.iter().copied().fold(0.0, f64::max);
    let total_s = times_us.iter().sum::<f64>() / 1e6;
    let figure = |name: &str, estimate| Figure { name: name.to_owned(), estimate };
    let mut parameters = Map::new();
    parameters.insert("bytes".to_owned(), size.into());
    Measure {
        id,
        what: format!(
            "remove a file of {} whose pages are written and in the page cache",
            show_bytes(size as f64)
        ),
        parameters,
        operations: times_us.len() as u64,
        windows: times_us.len(),
        time_s: total_s,
        rounds_per_s: times_us.iter().map(|us| 1e6 / us.max(1e-3)).collect(),
        steady: None,
        steady_why: "single events, not a rate".to_owned(),
        figures: vec![
            figure("p50_us", few::median(&times_us)),
            figure("max_us", Estimate::without_interval(longest, "the longest that was seen")),
        ],
    }
}

fn meaning(measures: &[Measure]) -> Vec<String> {
    let largest = measures.iter().max_by_key(|m| m.parameters["bytes"].as_u64());
    let Some(largest) = largest else { return vec![] };
    let longest = figure(std::slice::from_ref(largest), &largest.id, "max_us").map_or(0.0, |e| e.value);
    let gib = largest.parameters["bytes"].as_u64().unwrap_or(1) as f64 / f64::from(1u32 << 30);
    vec![format!(
        "Removing took up to {} for {gib:.2} GiB here. If it grows with size, a table of 100 GiB takes about {}: DROP TABLE holds \
         its metadata lock that long. A hard link made before and a file that is shrunk in steps take that out of the server.",
        show_us(longest),
        show_us(longest * 100.0 / gib)
    )]
}
