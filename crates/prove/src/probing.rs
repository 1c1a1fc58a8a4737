//! A probe as the load of an experiment: one of its operations, repeated for the length of a slice. There is no server.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mydyno_host::Host;
use mydyno_host::file_system::FileSystem;
use mydyno_host::task::on_cpus;
use mydyno_levers::Client;
use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_model::experiment::Row as TableRow;
use mydyno_model::probe::{Figure, Measure, ProbeReport};
use mydyno_probe::own_disk::Flushes;
use mydyno_probe::{
    ProbeError, Run, Timing, bandwidth, clock, fsync, ladder, malloc, random, spin, threads, unlink,
};
use mydyno_run::Cancel;
use mydyno_settings::{Row, table};

use crate::slice::{Measured, empty};

/// Bytes a second that a disk is written with before a slice: an estimate for the plan.
const FILLED_PER_S: f64 = 200e6;
/// Making and removing a folder or a process, in seconds, likewise.
const FOLDER_S: f64 = 0.1;
/// Making, formatting, mounting and removing a disk of a probe, in seconds, likewise.
const DISK_S: f64 = 1.0;
/// Linking and touching the working set of a cache, and that of memory, in seconds, likewise.
const CACHE_S: f64 = 0.5;
const MEMORY_S: f64 = 5.0;

/// One operation of a probe.
#[derive(Debug, Clone)]
pub struct Probing {
    /// The probe with its options, each with one value.
    pub(crate) of: Of,
    /// Id of the measure, as in `append.fsync`.
    pub(crate) measure: String,
    /// Folder of its files; the experiment's own without it.
    pub(crate) folder: Option<PathBuf>,
}

/// A probe with options that leave one measure, or with several of which [`Probing::measure`] is one.
#[derive(Debug, Clone)]
pub(crate) enum Of {
    Fsync(fsync::Options),
    Random(random::Options),
    Latency(ladder::Options),
    Memory,
    Clock,
    Spin,
    Threads(threads::Options),
    Malloc { size: usize, threads: usize },
    Unlink(unlink::Options),
}

/// The environment of a slice.
pub(crate) struct Place<'a> {
    /// The state folder, its journal and a lease.
    pub(crate) host: &'a Host,
    /// The folder of the experiment.
    pub(crate) folder: &'a Path,
    /// Levers of the process that measures.
    pub(crate) client: &'a Client,
    /// Length of the measured part.
    pub(crate) slice: Duration,
    /// Warm-up before it.
    pub(crate) settle: Duration,
    /// Seed of random positions.
    pub(crate) seed: u64,
    /// Set by the user to end the experiment.
    pub(crate) stop: &'a Cancel,
}

impl Probing {
    /// Costs beside speed, one sentence each: a disk that loses what was synced.
    pub(crate) fn prices(&self) -> Vec<String> {
        let Of::Fsync(options) = &self.of else { return Vec::new() };
        let of = |relaxed: bool, lever| table().by_lever(lever).filter(|_| relaxed).and_then(Row::price_note);
        let variants = options.variants.iter().flat_map(|variant| {
            [
                of(variant.flushes == Flushes::Suppressed, "disk.queue.write_cache"),
                of(variant.file_system == FileSystem::Ext4NoJournal, "disk.file_system"),
            ]
        });
        variants.flatten().collect()
    }

    /// Bytes of its files at most.
    pub(crate) fn disk_bytes(&self) -> u64 {
        match &self.of {
            Of::Fsync(options) => {
                let files = options.bytes * fsync::LARGEST_FILES;
                options.variants.iter().fold(files, |sum, variant| sum + variant.disk_bytes(files))
            }
            Of::Random(options) => options.bytes + (32 << 20),
            Of::Latency(options) => options.bytes + (64 << 20),
            Of::Unlink(options) => options.sizes.iter().sum(),
            Of::Memory | Of::Clock | Of::Spin | Of::Threads(_) | Of::Malloc { .. } => 0,
        }
    }

    /// Time of its preparation before each slice in seconds, roughly.
    pub(crate) fn set_up_s(&self) -> f64 {
        match &self.of {
            Of::Fsync(options) => {
                let disks = options.variants.len() as f64 * DISK_S;
                FOLDER_S + options.bytes as f64 / FILLED_PER_S + disks
            }
            Of::Random(options) => FOLDER_S + (options.bytes + (16 << 20)) as f64 / FILLED_PER_S,
            Of::Latency(options) if self.measure == "read.device" => {
                FOLDER_S + options.bytes as f64 / FILLED_PER_S
            }
            Of::Latency(_) if self.measure == "memory" => MEMORY_S,
            Of::Latency(_) | Of::Memory => CACHE_S,
            Of::Unlink(options) => {
                options.sizes.iter().sum::<u64>() as f64 * options.count as f64 / FILLED_PER_S
            }
            Of::Clock | Of::Spin | Of::Threads(_) | Of::Malloc { .. } => FOLDER_S,
        }
    }

    /// Measures one row. A measure that cannot be taken is a failed slice with its reason.
    pub(crate) fn slice(&self, place: &Place<'_>, row: TableRow, clock: &MonotonicClock) -> Measured {
        let at_s = clock.now_s();
        let report = match &place.client.cpus {
            None => self.report(place, row),
            Some(cpus) => on_cpus(cpus, || self.report(place, row)).unwrap_or_else(|source| {
                Err(ProbeError::System { action: "stay on the CPUs of client.cpus", source })
            }),
        };
        let interrupted = place.stop.load(std::sync::atomic::Ordering::Relaxed);
        let mut slice = empty(row, at_s);
        match report {
            _ if interrupted => return Measured::Interrupted,
            Err(error) => slice.failed = Some(error.to_string()),
            Ok(report) => match report.measure(&self.measure) {
                Some(measure) => {
                    slice.measured_s = measure.time_s;
                    slice.figures = figures(measure);
                }
                None => slice.failed = Some(self.missing(&report)),
            },
        }
        Measured::Slice(Box::new(slice))
    }

    fn report(&self, place: &Place<'_>, row: TableRow) -> Result<ProbeReport, ProbeError> {
        let seed = place.seed.wrapping_add(row.order as u64);
        let timing = Timing { time: place.slice, warm_up: place.settle, rounds: 1, seed };
        let mut quiet = |_: &str| {};
        let run =
            &mut Run { timing, only: Some(&self.measure), stop: place.stop.as_ref(), progress: &mut quiet };
        let (host, machine) = (place.host, place.host.machine());
        let folder = self.folder.clone().unwrap_or_else(|| place.folder.to_owned());
        match &self.of {
            Of::Fsync(options) => fsync::run(host, &fsync::Options { folder, ..options.clone() }, run),
            Of::Random(options) => random::run(host, &random::Options { folder, ..options.clone() }, run),
            Of::Latency(options) => {
                let options = ladder::Options { folder: Some(folder), ..options.clone() };
                ladder::run(Some(host), machine, &options, run)
            }
            Of::Memory => bandwidth::run(machine, run),
            Of::Clock => clock::run(run),
            Of::Spin => spin::run(run),
            Of::Threads(options) => threads::run(options, run),
            Of::Malloc { size, threads } => {
                let program = std::env::current_exe()
                    .map_err(|source| ProbeError::System { action: "find mydyno's own program", source })?;
                let options = malloc::Options {
                    sizes: vec![*size],
                    threads: vec![*threads],
                    program: (program, malloc::CHILD.map(str::to_owned).into()),
                };
                malloc::run(machine, &options, run)
            }
            Of::Unlink(options) => unlink::run(host, &unlink::Options { folder, ..options.clone() }, run),
        }
    }

    /// The reason why a report lacks the measure. That of an allocator is told under its name alone.
    fn missing(&self, report: &ProbeReport) -> String {
        let of = |id: &str| self.measure == id || self.measure.split('.').next() == Some(id);
        let why = report.not_measured.iter().find(|missing| of(&missing.id)).map(|missing| &missing.why);
        why.cloned().unwrap_or_else(|| format!("the probe {} has no {} here", report.probe, self.measure))
    }
}

/// Figures of a measure by the names of responses: times in microseconds, also those of operations that last nanoseconds.
fn figures(measure: &Measure) -> BTreeMap<String, f64> {
    let named = |Figure { name, estimate }: &Figure| match name.strip_suffix("_ns") {
        Some(name) => (format!("{name}_us"), estimate.value / 1e3),
        None => (name.clone(), estimate.value),
    };
    measure.figures.iter().map(named).collect()
}

#[cfg(test)]
mod tests {
    use mydyno_model::Estimate;
    use serde_json::Map;

    use super::*;

    #[test]
    fn times_are_in_microseconds_whatever_the_probe_counts_in() {
        let figure = |name: &str, value| Figure {
            name: name.to_owned(),
            estimate: Estimate::without_interval(value, "a test"),
        };
        let measure = Measure {
            id: "memory".to_owned(),
            what: String::new(),
            parameters: Map::new(),
            operations: 1,
            windows: 1,
            time_s: 1.0,
            rounds_per_s: vec![],
            steady: None,
            steady_why: String::new(),
            figures: vec![figure("p50_ns", 90.0), figure("p99_us", 7.0), figure("minor_faults", 2.0)],
        };
        let figures = figures(&measure);
        assert_eq!(figures["p50_us"], 0.09);
        assert_eq!((figures["p99_us"], figures["minor_faults"]), (7.0, 2.0));
    }
}
