//! The ledger of verdicts: one line for each verdict of a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::factorial::Factorial;
use super::{Finding, Verdict};
use crate::estimate::Estimate;

/// Properties that tell one host from another, and from itself after a change. They identify no person or account.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HostFingerprint {
    /// Digest of `/etc/machine-id`; empty where there is none.
    pub machine: String,
    /// Release of the kernel.
    pub kernel: String,
    /// Model of the first CPU.
    pub cpu: String,
    /// CPUs.
    pub cpus: usize,
    /// Memory in bytes.
    pub memory_bytes: u64,
}

impl HostFingerprint {
    /// Differences of a later fingerprint, as in `kernel 6.1.0 → 6.12.1`.
    pub fn changes(&self, later: &Self) -> Vec<String> {
        let mut changes = Vec::new();
        let mut compare = |what: &str, was: String, now: String| {
            if was != now {
                changes.push(format!("{what} {was} → {now}"));
            }
        };
        compare("kernel", self.kernel.clone(), later.kernel.clone());
        compare("CPU", self.cpu.clone(), later.cpu.clone());
        compare("CPUs", self.cpus.to_string(), later.cpus.to_string());
        // A kernel takes a little more or less of it at each boot.
        let gib = |bytes: u64| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30));
        compare("memory", gib(self.memory_bytes), gib(later.memory_bytes));
        if self.machine != later.machine {
            changes.insert(0, "another host".to_owned());
        }
        changes
    }
}

/// Verdict of an experiment on this host on a finding's advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProvedHere {
    /// When the experiment ended, in RFC 3339.
    pub at: String,
    /// Its name.
    pub experiment: String,
    /// The answer in one word.
    pub verdict: Finding,
    /// The answer in one sentence.
    pub answer: String,
    /// Changes of host and server since.
    pub changed: Vec<String>,
}

/// One line of `runs/verdicts.jsonl` in the state folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proved {
    /// When the experiment ended, in RFC 3339.
    pub at: String,
    /// Release that wrote it.
    pub mydyno: String,
    /// Name of the experiment.
    pub experiment: String,
    /// Claim that it proves; absent for a comparison of the user's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub claim: Option<String>,
    /// The answer in one word.
    pub verdict: Finding,
    /// The answer in one sentence.
    pub answer: String,
    /// δ, as a share.
    pub delta: f64,
    /// Treatment over baseline of the response that decides; absent where nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub effect_ratio: Option<Estimate>,
    /// The scope of the verdict: which start, boot and host it covers.
    pub scope: String,
    /// The host that it was measured on.
    pub host: String,
    /// The server that it was measured on, by program and version.
    pub server: String,
    /// The host in figures, to be compared with a later one; absent in lines of earlier releases.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fingerprint: Option<HostFingerprint>,
    /// File that it was imported from; absent for verdicts of this host.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub imported: Option<String>,
    /// Folder of the experiment.
    pub folder: String,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Proved {
    /// The line of an experiment with several factors. `verdict` is that on its main effects.
    pub fn of_factors(
        result: &Factorial,
        verdict: Finding,
        host: String,
        server: String,
        folder: String,
    ) -> Self {
        Self {
            at: result.header.created.clone(),
            mydyno: result.header.mydyno.version.clone(),
            experiment: result.experiment.clone(),
            claim: None,
            verdict,
            answer: result.answer.clone(),
            delta: result.delta,
            effect_ratio: None,
            scope: "this host, this load".to_owned(),
            host,
            server,
            fingerprint: None,
            imported: None,
            folder,
            extra: Map::new(),
        }
    }

    /// The line of a verdict. `host` and `server` are fingerprints in words: kernel and CPUs, program and version.
    pub fn of(verdict: &Verdict, host: String, server: String, folder: String) -> Self {
        Self {
            at: verdict.header.created.clone(),
            mydyno: verdict.header.mydyno.version.clone(),
            experiment: verdict.experiment.clone(),
            claim: verdict.claim.clone(),
            verdict: verdict.verdict,
            answer: verdict.answer.clone(),
            delta: verdict.delta,
            effect_ratio: verdict.responses.first().map(|response| response.effect_ratio.clone()),
            scope: verdict.scope.clone(),
            host,
            server,
            fingerprint: None,
            imported: None,
            folder,
            extra: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_host_is_told_figure_by_figure() {
        let was = HostFingerprint {
            machine: "a".to_owned(),
            kernel: "6.1.0".to_owned(),
            cpu: "X".to_owned(),
            cpus: 2,
            memory_bytes: 8 << 30,
        };
        assert!(was.changes(&was.clone()).is_empty());
        let now =
            HostFingerprint { kernel: "6.12.1".to_owned(), memory_bytes: (8 << 30) + 4096, ..was.clone() };
        assert_eq!(was.changes(&now), ["kernel 6.1.0 → 6.12.1"]);
        let other = HostFingerprint { machine: "b".to_owned(), cpus: 4, ..was.clone() };
        assert_eq!(was.changes(&other), ["another host", "CPUs 2 → 4"]);
    }
}
