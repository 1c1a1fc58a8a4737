//! Converts an experiment's file to a request.

use mydyno_model::experiment::Asks;
use mydyno_model::experiment::definition::Extent;
use mydyno_model::units::parse_share;

use mydyno_model::experiment::definition::Mode;

use super::catalogue::Experiment;
use super::extent::times;
use crate::comparison::ComparisonRequest;
use crate::factorial::design::{self, FactorialRequest};
use crate::side;

/// Default seed: experiments are repeatable.
pub const DEFAULT_SEED: u64 = 1;

impl Experiment {
    /// The experiment with one of its extents. Its form was examined when it was parsed.
    pub fn wanted(&self, extent: &Extent) -> ComparisonRequest {
        let d = &self.definition;
        let levels = |texts: &[String]| texts.iter().filter_map(|text| side::level(text)).collect();
        let (times, budget_s) = times(extent).unwrap_or_default();
        let first = d.responses.first();
        ComparisonRequest {
            name: d.name.clone(),
            question: Some(d.question.clone()),
            claim: d.claims.first().cloned(),
            load: d.load.clone(),
            jobs: d.jobs.clone(),
            baseline: levels(&d.baseline.levers),
            treatment: levels(&d.treatment.levers),
            set_up: levels(&d.set_up),
            curve: d.curve.clone(),
            equal_arms: true,
            mode: d.execution.mode,
            response: first.map(|response| response.name.clone()).unwrap_or_default(),
            asks: first.map_or(Asks::Differs, |response| response.direction),
            delta: first.and_then(|response| parse_share(&response.delta).ok()).unwrap_or(0.01),
            budget_s,
            starts: extent.starts.map(|n| n as usize),
            times,
            seed: d.load.seed.unwrap_or(DEFAULT_SEED),
            published: d.published.clone(),
            stand_in: d.stand_in.clone(),
        }
    }
    /// The experiment with its factors and one of its extents; `None` where it compares two arms.
    pub fn factorial(&self, extent: &Extent) -> Option<FactorialRequest> {
        let d = &self.definition;
        if d.factors.is_empty() {
            return None;
        }
        let (times, budget_s) = times(extent).unwrap_or_default();
        let first = d.responses.first();
        Some(FactorialRequest {
            name: d.name.clone(),
            load: d.load.clone(),
            factors: d.factors.iter().filter_map(|text| design::parse(text).ok()).collect(),
            both: d.set_up.iter().filter_map(|text| side::level(text)).collect(),
            family: None,
            runs: None,
            mode: Some(d.execution.mode).filter(|mode| matches!(mode, Mode::InPlace | Mode::Rows)),
            delta: first.and_then(|response| parse_share(&response.delta).ok()).unwrap_or(0.01),
            budget_s,
            times,
            seed: d.load.seed.unwrap_or(DEFAULT_SEED),
        })
    }
}
