//! Probe reports, as `mydyno probe NAME --json` prints them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::estimate::Estimate;
use crate::warning::Warning;

/// One quantity of a measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// Its name with its unit last, as in `p99_us` or `per_s`.
    pub name: String,
    /// The value with its interval.
    pub estimate: Estimate,
}

/// One operation that a probe repeated, and its cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// As in `overwrite.fdatasync`.
    pub id: String,
    /// Description of the operation, for people.
    pub what: String,
    /// Sizes, threads, library and other parameters.
    pub parameters: Map<String, Value>,
    /// Number of operations, without the warm-up.
    pub operations: u64,
    /// Number of windows that the intervals are computed from.
    pub windows: usize,
    /// Total time of the windows, in seconds.
    pub time_s: f64,
    /// Rates (operations a second) of the rounds, in the order in which they were measured.
    pub rounds_per_s: Vec<f64>,
    /// Whether the rate varied around one mean; `None`: too short to tell.
    pub steady: Option<bool>,
    /// Explanation of `steady`.
    pub steady_why: String,
    /// The measured quantities.
    pub figures: Vec<Figure>,
}

impl Measure {
    /// The estimate of the figure with this name.
    pub fn figure(&self, name: &str) -> Option<&Estimate> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| &figure.estimate)
    }
}

/// A measure that could not be taken here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// The measure, as in `read.16`.
    pub id: String,
    /// The reason, and how to make the measure possible.
    pub why: String,
}

/// A block device below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// As in `sda`.
    pub name: String,
    /// Model name that the device reports.
    pub model: Option<String>,
    /// `queue/rotational`; virtual disks often report it wrongly.
    pub rotational: Option<bool>,
    /// `queue/write_cache`: `write back` (the kernel sends flushes) or `write through` (the kernel sends none).
    pub write_cache: Option<String>,
    /// `queue/fua`: whether single writes can be forced to stable storage.
    pub fua: Option<bool>,
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
}

/// The path from a folder to stable storage, as the kernel reports it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Storage {
    /// The folder, absolute.
    pub folder: String,
    /// As in `ext4`.
    pub file_system: String,
    /// Mount point.
    pub mount_point: String,
    /// Options of the mount and the file system.
    pub mount_options: String,
    /// Devices from the file system downward; empty for file systems without a device.
    pub devices: Vec<BlockDevice>,
    /// As in `emulated disk`, when the folder is on one.
    #[serde(default)]
    pub disk: Option<String>,
    /// Whether syncing a file sends a flush to every one of the devices; `None`: unknown.
    pub flushes_sent: Option<bool>,
    /// Explanation of `flushes_sent`.
    pub flushes_why: String,
}

/// A published figure, for comparison with this machine's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The measure that the figure compares with.
    pub measure: String,
    /// The measured quantity and the system that it was measured on.
    pub what: String,
    /// The value as published, with its unit.
    pub value: String,
    /// Year of publication.
    pub year: u16,
    /// Reference.
    pub source: String,
    /// Caveats for the comparison.
    pub note: Option<String>,
}

/// The machine that a probe ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedMachine {
    /// `uname -r`.
    pub kernel: String,
    /// As in `AMD EPYC 7763`.
    pub cpu: String,
    /// CPUs available to this process.
    pub cpus: usize,
    /// RAM in bytes.
    pub memory_bytes: u64,
    /// The kernel's clock source, which serves `clock_gettime`.
    pub clock_source: String,
    /// Share of this machine's CPU time that the hypervisor gave to others during the probe; `None` where the kernel does not
    /// count it.
    pub stolen_share: Option<f64>,
}

/// Output of `mydyno probe NAME --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// Name of the probe, as in `fsync`.
    pub probe: String,
    /// All parameters of the probe, defaults resolved.
    pub parameters: BTreeMap<String, Value>,
    /// The machine.
    pub machine: ProbedMachine,
    /// The path to stable storage, for storage probes.
    pub storage: Option<Storage>,
    /// Whether the user stopped the probe early; the report then contains the measures taken until then.
    pub interrupted: bool,
    /// The measures.
    pub measures: Vec<Measure>,
    /// Measures that were not taken, with reasons.
    pub not_measured: Vec<NotMeasured>,
    /// Meaning of the figures for a server on this machine, one sentence each.
    pub meaning: Vec<String>,
    /// Warnings that reduce the trust in the figures.
    pub warnings: Vec<Warning>,
    /// Published figures for comparison.
    pub literature: Vec<Published>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl ProbeReport {
    /// The measure with an id.
    pub fn measure(&self, id: &str) -> Option<&Measure> {
        self.measures.iter().find(|measure| measure.id == id)
    }
}

impl Document for ProbeReport {
    const NAME: &'static str = "mydyno.probe";
    const MAJOR: u32 = 1;
}
