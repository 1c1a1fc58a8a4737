//! What a crash cost, as `mydyno server crash --json` prints it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::warning::Warning;

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
    /// It was to crash once so many commits were acknowledged; 0 in documents that do not say.
    #[serde(default)]
    pub commits_wanted: u64,
    /// Transactions whose commit the server had acknowledged, and whose record was synced to the disk of mydyno's state.
    pub acknowledged: u64,
    /// Of those, the ones that were not there afterwards; none: it is unknown, as `not_recovered` says.
    pub lost: Option<u64>,
    /// Transactions of which only a part was there, or with another content; none: unknown.
    pub torn: Option<u64>,
    /// Transactions that were there and had never been sent; none: unknown.
    pub never_sent: Option<u64>,
    /// Transactions that were there though their acknowledgement had not arrived: at most one a connection, and no fault;
    /// none: unknown.
    pub in_doubt_present: Option<u64>,
    /// Mounting the disk again, with the file system's own recovery; a power cut only.
    pub mount_ms: Option<f64>,
    /// From the start of the server until it let its account in.
    pub recovery_ms: Option<f64>,
    /// Why the disk or the server did not come back in its time, or why its tables cannot be read: what is lost is unknown then.
    pub not_recovered: Option<String>,
    /// What a power cut lost of the disk's volatile cache.
    pub disk_lost_bytes: Option<u64>,
    /// What makes it worth less than it looks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CrashReport {
    /// Whether as much as was wanted was acknowledged, all of that was there, whole, and nothing else.
    pub fn is_sound(&self) -> bool {
        let none = |count: Option<u64>| count == Some(0);
        self.acknowledged >= self.commits_wanted.max(1)
            && none(self.lost)
            && none(self.torn)
            && none(self.never_sent)
            && self.not_recovered.is_none()
    }
}

impl Document for CrashReport {
    const NAME: &'static str = "mydyno.crash";
    const MAJOR: u32 = 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CrashReport {
        serde_json::from_value(serde_json::json!({
            "schema": "mydyno.crash/1", "created": "2026-01-01T00:00:00Z",
            "mydyno": {"version": "0.1.0", "commit": "c"},
            "engine": "MariaDB 10.11.6", "by": "kill", "disk": null, "levers": [], "durability": [],
            "connections": 8, "commits_wanted": 1000, "acknowledged": 1003, "lost": 0, "torn": 0, "never_sent": 0,
            "in_doubt_present": 2, "mount_ms": null, "recovery_ms": 900.0, "not_recovered": null, "disk_lost_bytes": null
        }))
        .unwrap()
    }

    #[test]
    fn a_crash_is_sound_only_where_all_that_was_wanted_was_seen_to_be_there() {
        assert!(report().is_sound());
        let with = |change: fn(&mut CrashReport)| {
            let mut report = report();
            change(&mut report);
            report.is_sound()
        };
        assert!(!with(|report| report.acknowledged = 999));
        assert!(!with(|report| (report.acknowledged, report.commits_wanted) = (0, 0)));
        assert!(!with(|report| report.lost = None));
        assert!(!with(|report| report.lost = Some(1)));
        assert!(!with(|report| report.torn = Some(1)));
        assert!(!with(|report| report.never_sent = None));
        assert!(!with(|report| report.not_recovered = Some("it took too long".to_owned())));
    }
}
