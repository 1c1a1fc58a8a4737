//! The losses of a crash, as `mydyno server crash --json` prints them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::{Document, Header};
use crate::warning::Warning;

/// Method by which a server was crashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CrashBy {
    /// SIGKILL: data that the kernel has received survive.
    Kill,
    /// The power of its emulated disk was cut, and the server was killed.
    PowerCut,
}

/// A crash in the middle of a load, and the state of the data after recovery.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrashReport {
    /// Schema, time and writer.
    #[serde(flatten)]
    pub header: Header,
    /// As in `MariaDB 10.11.6`.
    pub engine: String,
    /// Method of the crash.
    pub by: CrashBy,
    /// The disk that held the data, as in `emulated disk`, when it was not the host's.
    pub disk: Option<String>,
    /// Requested settings of the server and its disk, as `lever=value`.
    pub levers: Vec<String>,
    /// Variables that determine what a crash can lose, with the values that the server reported.
    pub durability: Vec<(String, String)>,
    /// Connections that committed.
    pub connections: u64,
    /// Number of acknowledged commits after which the crash was due; 0 in documents that do not record it.
    #[serde(default)]
    pub commits_wanted: u64,
    /// Transactions whose commit the server had acknowledged, and whose record was synced to the disk that holds mydyno's
    /// state.
    pub acknowledged: u64,
    /// Acknowledged transactions that were missing afterwards; `None`: unknown, for the reason in `not_recovered`.
    pub lost: Option<u64>,
    /// Transactions that were present only in part, or with different content; `None`: unknown.
    pub torn: Option<u64>,
    /// Transactions that were present and had never been sent; `None`: unknown.
    pub never_sent: Option<u64>,
    /// Transactions that were present although their acknowledgement had not arrived: at most one per connection, and not a
    /// fault; `None`: unknown.
    pub in_doubt_present: Option<u64>,
    /// Time to mount the disk again, including the file system's recovery; after a power cut only.
    pub mount_ms: Option<f64>,
    /// Time from the start of the server until it accepted its account's login.
    pub recovery_ms: Option<f64>,
    /// Reason why the disk or the server did not recover in time, or why its tables cannot be read: the losses are then
    /// unknown.
    pub not_recovered: Option<String>,
    /// Bytes of the disk's volatile cache that a power cut lost.
    pub disk_lost_bytes: Option<u64>,
    /// Warnings that reduce the trust in the report.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl CrashReport {
    /// Whether the wanted number of commits was acknowledged, and all of those transactions, and no others, were present and
    /// whole.
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
