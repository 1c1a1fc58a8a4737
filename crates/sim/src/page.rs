//! The page of the journal that holds all that is measured on simulated servers.

use crate::{coverage, rates};
use mydyno_stats::Error;

/// The page as Markdown, each cell from `seeds` seeds.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn page(seeds: u64) -> Result<String, Error> {
    let means = coverage::table_of_means(seeds);
    let unsteady = coverage::table_of_alarms(seeds);
    let percentiles = coverage::table_of_percentiles(seeds);
    let verdicts = rates::table_of_verdicts(seeds)?;
    let forecasts = rates::table_of_forecasts(seeds)?;
    let bias = rates::table_of_bias(seeds)?;
    let widths = rates::table_of_widths(seeds)?;
    Ok(format!(
        "# What the statistics were measured to do

Written by `MYDYNO_WRITE_DOCS=1 make stats`, {seeds} seeds; a test compares it with what the code does. What it means:
[statistics.md](statistics.md).

## Coverage of nominal 95 % intervals of a mean
Of the series that got an interval with its level, the share that holds the truth; then the share of the series that got one:
the others say why not. A dash: none has a level (too short; their intervals are provisional).

{means}
## Called unsteady
Truly unsteady are only the series of the last row.

{unsteady}
## Coverage of nominal 95 % intervals of percentiles
Windows of log-normal latencies whose level is an AR(1) with φ.

{percentiles}
## Verdicts
Paired blocks that differ by 4 %, up to 12 of them, a look after each from the fifth. Intervals at the stop are for all looks
at once, so that those of experiments which go on to their end are wider than one look would need.

{verdicts}
## Forecasts of blocks
{forecasts}
## Bias by a linear trend as large as the effect
{bias}
## Width on drifting noise, interleaved and one arm after the other
The same rows. Student's interval of two arms, one after the other, takes rows that drift for independent ones: where the drift is
weak against the noise upon it, it is hardly wider, and wrong.

{widths}"
    ))
}
