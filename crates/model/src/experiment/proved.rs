//! The ledger of verdicts: one line for each verdict of a host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Finding, Verdict};
use crate::estimate::Estimate;

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
    /// Folder of the experiment.
    pub folder: String,
    /// Fields of later versions.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Proved {
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
            folder,
            extra: Map::new(),
        }
    }
}
