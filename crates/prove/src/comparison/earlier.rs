//! Experiments of folders: resumed, extended to the end of their table, or repeated.

use std::path::Path;

use mydyno_model::Header;
use mydyno_model::experiment::pooled::Earlier;
use mydyno_model::experiment::{Design, Role, Slice};
use time::OffsetDateTime;

use super::{Comparison, ComparisonRequest, arms, crashes_s, roles};
use crate::arm;
use crate::budget::{self, Shape, Times};
use crate::curve;
use crate::error::ProveError;
use crate::store;
use crate::{execute, verdict};

impl Comparison {
    /// Resumes the experiment of a folder: the table in the folder, and the slices that were measured.
    ///
    /// # Errors
    /// The folder contains no experiment, or its levers or load do not resolve on this machine.
    pub fn resume(folder: &Path, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let (design, before) = store::read(folder).map_err(|error| vec![error])?;
        Self::of(folder, design, before, now)
    }

    /// Extends the experiment of a folder that was decided before the end of its table to that end: its looks continue,
    /// and with them the error that they may spend.
    ///
    /// # Errors
    /// As [`Self::resume`]; the table is complete.
    pub fn extend(folder: &Path, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let ready = Self::resume(folder, now)?;
        let complete = execute::complete_blocks(&ready.before, &ready.design).len();
        match complete < ready.design.starts * ready.design.blocks_per_start {
            true => Ok(Self { to_the_end: true, ..ready }),
            false => Err(vec![ProveError::Complete { folder: folder.to_owned() }]),
        }
    }

    /// Repeats the experiment of a folder in another order, to be pooled with it and with those that it was pooled
    /// with.
    ///
    /// # Errors
    /// As [`Self::resume`]; the folder has no effect with an interval yet.
    pub fn again(folder: &Path, now: OffsetDateTime) -> Result<Self, Vec<ProveError>> {
        let (mut design, slices) = store::read(folder).map_err(|error| vec![error])?;
        let found = verdict::found(&design, &slices).ok_or_else(|| {
            let why =
                "it has too few complete blocks for an interval: finish it with `mydyno prove --resume`"
                    .to_owned();
            vec![ProveError::Folder { path: folder.to_owned(), why }]
        })?;
        design.earlier.push(Earlier {
            folder: folder.display().to_string(),
            created: design.header.created.clone(),
            ..found
        });
        design.header = Header::of::<Design>(now);
        design.seed = design.seed.wrapping_add(1);
        let shape = Shape { starts: design.starts, blocks_per_start: design.blocks_per_start };
        design.rows = super::table(&roles(&design.arms), design.mode, shape, design.seed);
        Self::of(folder, design, Vec::new(), now)
    }

    /// The design of a folder, and the slices of its table so far.
    fn of(
        folder: &Path,
        design: Design,
        before: Vec<Slice>,
        now: OffsetDateTime,
    ) -> Result<Self, Vec<ProveError>> {
        if design.request.name().is_empty() {
            let why =
                "its design does not say how its load was asked for: an earlier release wrote it".to_owned();
            return Err(vec![ProveError::Folder { path: folder.to_owned(), why }]);
        }
        let wanted = of_design(&design);
        let arms = arms(&wanted, now)?;
        let shape = Shape { starts: design.starts, blocks_per_start: design.blocks_per_start };
        let left = 1.0 - (before.len() as f64 / design.rows.len().max(1) as f64).min(1.0);
        let takes_s = arm::times(wanted.times, &arms).total_s(shape, wanted.mode) * left + crashes_s(&arms);
        Self::assemble(&wanted, design, shape, takes_s, arms, before)
    }
}

/// The request behind a design, as far as its execution needs it.
fn of_design(design: &Design) -> ComparisonRequest {
    let levers = |role: Role| {
        let arm = design.arms.iter().find(|arm| arm.role == role);
        arm.map(|arm| arm.levers.clone()).unwrap_or_default()
    };
    let (baseline, treatment) = (levers(Role::Baseline), levers(Role::Treatment));
    // Levers that both arms have at the same position are the set-up.
    let shared = baseline.iter().zip(&treatment).take_while(|(a, b)| a == b).count();
    let times = Times {
        slice_s: design.slice_s,
        settle_s: design.settle_s,
        warmup_s: design.warmup_s,
        start_s: budget::START_S,
        set_up_s: 0.0,
        further_arms: 0,
    };
    ComparisonRequest {
        name: design.experiment.clone(),
        question: Some(design.question.clone()),
        claim: design.claim.clone(),
        load: design.request.clone(),
        jobs: design.jobs.clone(),
        set_up: baseline[..shared].to_vec(),
        baseline: baseline[shared..].to_vec(),
        treatment: treatment[shared..].to_vec(),
        curve: design.curve.as_ref().map(curve::definition),
        equal_arms: true,
        mode: design.mode,
        response: design.response.clone(),
        asks: design.asks,
        delta: design.delta,
        budget_s: f64::INFINITY,
        starts: Some(design.starts),
        times,
        seed: design.seed,
        published: design.published.clone(),
        stand_in: design.stand_in.clone(),
    }
}
