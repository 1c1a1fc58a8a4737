//! What a crash cost, as `mydyno server crash --json` prints it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};

/// How a server was made to crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrashBy {
    /// SIGKILL: what the kernel has, stays.
    Kill,
    /// The power of its emulated disk was cut, and the server killed.
    PowerCut,
}

/// A crash in the middle of a load, and what was there after recovery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrashReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// As in `MariaDB 10.11.6`.
    pub engine: String,
    /// How it crashed.
    pub by: CrashBy,
    /// The disk that the data were on, as in `emulated disk`, when it was not the host's.
    pub disk: Option<String>,
    /// What was asked for of the server and its disk, as `lever=value`.
    pub levers: Vec<String>,
    /// Variables that decide what a crash can lose, as the server showed them.
    pub durability: Vec<(String, String)>,
    /// Connections that committed.
    pub connections: u64,
    /// Transactions whose commit the server had acknowledged, and whose record was synced to another disk.
    pub acknowledged: u64,
    /// Of those, the ones that were not there afterwards.
    pub lost: u64,
    /// Transactions of which only a part was there, or with another content.
    pub torn: u64,
    /// Transactions that were there and had never been sent.
    pub never_sent: u64,
    /// Transactions that were there though their acknowledgement had not arrived: at most one a connection, and no fault.
    pub in_doubt_present: u64,
    /// Mounting the disk again, with the file system's own recovery; a power cut only.
    pub mount_ms: Option<f64>,
    /// From the start of the server until it let its account in.
    pub recovery_ms: Option<f64>,
    /// Why the disk or the server did not come back: then everything is lost.
    pub not_recovered: Option<String>,
    /// What a power cut lost of the disk's volatile cache.
    pub disk_lost_bytes: Option<u64>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CrashReport {
    /// Whether all that was acknowledged was there, whole, and nothing else.
    pub fn is_sound(&self) -> bool {
        self.lost == 0 && self.torn == 0 && self.never_sent == 0 && self.not_recovered.is_none()
    }
}

impl Document for CrashReport {
    const NAME: &'static str = "mydyno.crash";
    const MAJOR: u32 = 1;
}
