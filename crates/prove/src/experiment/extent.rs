//! The extents of an experiment, `--quick` and `--full`, as numbers.

use mydyno_model::experiment::definition::Extent;
use mydyno_model::units::parse_duration;

use crate::budget;

/// Lengths of an extent, and its budget in seconds.
///
/// # Errors
/// The value that is not a duration, and why.
pub(crate) fn times(extent: &Extent) -> Result<(budget::Times, f64), (String, String)> {
    let seconds = |text: &String| {
        parse_duration(text).map(|time| time.as_secs_f64()).map_err(|error| (text.clone(), error.to_string()))
    };
    let times = budget::Times {
        slice_s: seconds(&extent.slice)?,
        settle_s: seconds(&extent.settle)?,
        warmup_s: seconds(&extent.warmup)?,
        start_s: budget::START_S,
        set_up_s: 0.0,
        further_arms: 0,
    };
    Ok((times, seconds(&extent.budget)?))
}
