//! Probes: what `mydyno probe NAME --json` prints.

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
    /// The value and how good it is.
    pub estimate: Estimate,
}

/// One thing that a probe did over and over, and what that cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measure {
    /// As in `overwrite.fdatasync`.
    pub id: String,
    /// What was done, for people.
    pub what: String,
    /// With which sizes, threads, library.
    pub parameters: Map<String, Value>,
    /// How often it was done, warm-up left out.
    pub operations: u64,
    /// Windows that the intervals are made of.
    pub windows: usize,
    /// Time that they cover, in seconds.
    pub time_s: f64,
    /// Rates (operations a second) of the rounds, in the order in which they were measured.
    pub rounds_per_s: Vec<f64>,
    /// Whether the rate varied about one mean; none: too short to tell.
    pub steady: Option<bool>,
    /// In words.
    pub steady_why: String,
    /// What was found.
    pub figures: Vec<Figure>,
}

impl Measure {
    /// The estimate of a name.
    pub fn figure(&self, name: &str) -> Option<&Estimate> {
        self.figures.iter().find(|figure| figure.name == name).map(|figure| &figure.estimate)
    }
}

/// What could not be measured here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// The measure, as in `read.16`.
    pub id: String,
    /// Why, and how to get it.
    pub why: String,
}

/// A block device below a folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BlockDevice {
    /// As in `sda`.
    pub name: String,
    /// What the device calls itself.
    pub model: Option<String>,
    /// `queue/rotational`; virtual disks often say what is not so.
    pub rotational: Option<bool>,
    /// `queue/write_cache`: `write back` (the kernel sends flushes) or `write through` (it sends none).
    pub write_cache: Option<String>,
    /// `queue/fua`: whether single writes can be asked to reach stable storage.
    pub fua: Option<bool>,
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
}

/// What the kernel says of the way from a folder to stable storage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Storage {
    /// The folder, absolute.
    pub folder: String,
    /// As in `ext4`.
    pub file_system: String,
    /// Where it is mounted.
    pub mount_point: String,
    /// Options of mount and file system.
    pub mount_options: String,
    /// Devices from the file system downward; none for file systems that have none.
    pub devices: Vec<BlockDevice>,
    /// As in `emulated disk`, when the folder is on one.
    #[serde(default)]
    pub disk: Option<String>,
    /// Whether a sync of a file sends a flush to every one of the devices; none: it cannot be seen.
    pub flushes_sent: Option<bool>,
    /// Why.
    pub flushes_why: String,
}

/// A figure that somebody published, to stand beside those of this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Published {
    /// The measure that it compares with.
    pub measure: String,
    /// What was measured, on what.
    pub what: String,
    /// The value as published, with its unit.
    pub value: String,
    /// The year.
    pub year: u16,
    /// Where it stands.
    pub source: String,
    /// What has to be known to compare it.
    pub note: Option<String>,
}

/// The machine that a probe ran on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbedMachine {
    /// `uname -r`.
    pub kernel: String,
    /// As in `AMD EPYC 7763`.
    pub cpu: String,
    /// CPUs that this process may run on.
    pub cpus: usize,
    /// RAM in bytes.
    pub memory_bytes: u64,
    /// What answers `clock_gettime`.
    pub clock_source: String,
    /// Share of its CPU time that the hypervisor gave to others meanwhile; none where the kernel does not count it.
    pub stolen_share: Option<f64>,
}

/// `mydyno probe NAME --json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProbeReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// As in `fsync`.
    pub probe: String,
    /// Everything that it was asked with, defaults resolved.
    pub parameters: BTreeMap<String, Value>,
    /// Where.
    pub machine: ProbedMachine,
    /// The way to stable storage, for probes of storage.
    pub storage: Option<Storage>,
    /// Whether it ended early on the user's word; then what was measured until then is here.
    pub interrupted: bool,
    /// What was measured.
    pub measures: Vec<Measure>,
    /// What was not, and why.
    pub not_measured: Vec<NotMeasured>,
    /// What it means for a server on this machine, one sentence each.
    pub meaning: Vec<String>,
    /// What makes the figures worth less than they look.
    pub warnings: Vec<Warning>,
    /// Figures of others.
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
