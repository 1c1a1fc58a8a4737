//! The second half of a verdict on an arm that relaxes durability: what a crash costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::crash::{CrashBy, CrashReport};

/// Costs of the treatment beside performance.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// The rows of the ledger that the treatment has and the baseline has not, one sentence each.
    pub ledger: Vec<String>,
    /// Crashes of a server with the treatment's levers, where durability or crash safety is at stake.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crashes: Vec<CrashCost>,
}

/// Loss by one crash, or the reason why it was not measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CrashCost {
    /// Method of the crash.
    pub by: CrashBy,
    /// The disk that held the data, as in `emulated disk`, when it was not the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
    /// Commits that the server had acknowledged before the crash.
    pub acknowledged: u64,
    /// Those of them that were missing afterwards; absent: unknown.
    pub lost: Option<u64>,
    /// Transactions that were there only in part; absent: unknown.
    pub torn: Option<u64>,
    /// Why it was not measured, or why the server did not come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl CrashCost {
    /// The figures of a report of the crash kit.
    pub fn of(report: &CrashReport) -> Self {
        Self {
            by: report.by,
            disk: report.disk.clone(),
            acknowledged: report.acknowledged,
            lost: report.lost,
            torn: report.torn,
            why: report.not_recovered.clone(),
        }
    }

    /// A crash that was not made.
    pub fn not_measured(by: CrashBy, why: String) -> Self {
        Self { by, disk: None, acknowledged: 0, lost: None, torn: None, why: Some(why) }
    }

    /// As in `a power cut (emulated disk) lost 412 of 1003 acknowledged commits`.
    pub fn text(&self) -> String {
        let by = match self.by {
            CrashBy::Kill => "kill -9",
            CrashBy::PowerCut => "a power cut",
        };
        let disk = self.disk.as_ref().map_or_else(String::new, |disk| format!(" ({disk})"));
        let torn = self
            .torn
            .filter(|torn| *torn > 0)
            .map_or_else(String::new, |torn| format!(" and left {torn} torn"));
        match (self.lost, &self.why) {
            (Some(lost), _) => {
                format!("{by}{disk} lost {lost} of {} acknowledged commits{torn}", self.acknowledged)
            }
            (None, why) if self.acknowledged > 0 => {
                let why = why.as_deref().unwrap_or("unknown");
                format!("after {by}{disk} the server did not come back with its data: {why}")
            }
            (None, why) => {
                format!("the loss by {by} was not measured: {}", why.as_deref().unwrap_or("unknown"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_is_told_with_its_loss_or_the_reason_why_that_is_unknown() {
        let cost = CrashCost {
            acknowledged: 1003,
            lost: Some(412),
            torn: Some(0),
            why: None,
            ..not(CrashBy::PowerCut)
        };
        let cost = CrashCost { disk: Some("emulated disk".to_owned()), ..cost };
        assert_eq!(cost.text(), "a power cut (emulated disk) lost 412 of 1003 acknowledged commits");
        let torn = CrashCost { torn: Some(2), disk: None, ..cost };
        assert!(torn.text().ends_with("and left 2 torn"), "{}", torn.text());
        let gone = CrashCost { acknowledged: 7, ..not(CrashBy::Kill) };
        assert_eq!(gone.text(), "after kill -9 the server did not come back with its data: x");
        assert_eq!(not(CrashBy::Kill).text(), "the loss by kill -9 was not measured: x");
    }

    fn not(by: CrashBy) -> CrashCost {
        CrashCost::not_measured(by, "x".to_owned())
    }
}
