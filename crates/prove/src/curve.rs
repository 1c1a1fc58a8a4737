//! Several values of one lever: the arms beyond baseline and treatment, and the curve of the response over the values.

use mydyno_model::experiment::definition::CurveDefinition;
use mydyno_model::experiment::{Curve, CurveDesign, CurveLevel, CurvePoint, Design, LeverLevel, Role, Slice};
use mydyno_stats::compare::LogEffect;
use mydyno_stats::sequential::Schedule;

use crate::analyse::{Ratios, Unit, effect_or_provisional, units};
use crate::measure::measure;

/// Fewest levels: with two the comparison of baseline and treatment says all.
const FEWEST: usize = 3;

/// The levels of a curve with their arms: those of baseline and treatment, and one more arm for each other level.
///
/// # Errors
/// Too few or too many levels, one that is there twice, or levels that baseline and treatment do not have.
pub(crate) fn levels(
    curve: &CurveDefinition,
    baseline: &[LeverLevel],
    treatment: &[LeverLevel],
) -> Result<CurveDesign, String> {
    let most = Role::LEVELS.len() + 2;
    if !(FEWEST..=most).contains(&curve.levels.len()) {
        return Err(format!("curve.levels: from {FEWEST} to {most} values of the lever"));
    }
    let twice = curve.levels.iter().enumerate().find(|(at, value)| curve.levels[..*at].contains(value));
    if let Some((_, value)) = twice {
        return Err(format!("curve.levels: {value:?} is there twice"));
    }
    let of = |arm: &[LeverLevel]| {
        arm.iter().rfind(|level| level.lever == curve.lever).map(|level| level.value.clone())
    };
    let mut named =
        [(Role::Baseline, baseline), (Role::Treatment, treatment)].map(|(role, arm)| (role, of(arm)));
    for (role, value) in &mut named {
        match value {
            Some(value) if curve.levels.contains(value) => {}
            Some(value) => {
                return Err(format!("curve.levels: {value:?} is missing, the value of the {}", role.name()));
            }
            None => return Err(format!("curve.lever: the {} does not set {}", role.name(), curve.lever)),
        }
    }
    let mut others = Role::LEVELS.into_iter();
    let arm = |value: &String| {
        let known = named.iter().find(|(_, of)| of.as_ref() == Some(value)).map(|(role, _)| *role);
        let arm = known.or_else(|| others.next()).unwrap_or(Role::Treatment);
        CurveLevel { value: value.clone(), arm }
    };
    Ok(CurveDesign { lever: curve.lever.clone(), levels: curve.levels.iter().map(arm).collect() })
}

/// The levers of the arm of a level: the baseline's, with one value exchanged.
pub(crate) fn levers(baseline: &[LeverLevel], lever: &str, value: &str) -> Vec<LeverLevel> {
    let exchanged = |level: &LeverLevel| match level.lever == lever {
        true => LeverLevel { lever: level.lever.clone(), value: value.to_owned() },
        false => level.clone(),
    };
    baseline.iter().map(exchanged).collect()
}

/// The definition behind a design.
pub(crate) fn definition(design: &CurveDesign) -> CurveDefinition {
    let levels = design.levels.iter().map(|level| level.value.clone()).collect();
    CurveDefinition { lever: design.lever.clone(), levels }
}

/// The curve of the slices so far. Its intervals hold together (Bonferroni), so that of the treatment is wider than the
/// verdict's. `looks` makes the schedule of a simultaneous coverage.
pub(crate) fn of(
    design: &Design,
    slices: &[Slice],
    level: f64,
    looks: impl Fn(f64) -> Option<Schedule>,
) -> Option<Curve> {
    let curve = design.curve.as_ref()?;
    let measure = measure(&design.response);
    let comparisons = curve.levels.len().saturating_sub(1).max(1);
    let each = 1.0 - (1.0 - level) / comparisons as f64;
    let schedule = looks(each);
    let unit = Unit::of(design.mode);
    let point = |level: &CurveLevel| {
        let of_arm = slices.iter().filter(|slice| slice.row.arm == level.arm && slice.failed.is_none());
        let logs: Vec<f64> = of_arm
            .filter_map(measure.of)
            .filter(|value| value.is_finite() && *value > 0.0)
            .map(f64::ln)
            .collect();
        let ratios = Ratios::to_baseline(slices, measure, level.arm);
        let effect = (level.arm != Role::Baseline && !ratios.is_empty())
            .then(|| effect_or_provisional(&units(&ratios, unit), unit, schedule.as_ref(), each));
        CurvePoint {
            value: level.value.clone(),
            arm: level.arm,
            mean: (!logs.is_empty()).then(|| LogEffect::of(&logs).mean.exp()),
            effect_ratio: effect,
        }
    };
    Some(Curve {
        lever: curve.lever.clone(),
        response: measure.name.to_owned(),
        unit: measure.unit.to_owned(),
        points: curve.levels.iter().map(point).collect(),
    })
}

#[cfg(test)]
mod tests;
