//! The page of the journal that holds all that is measured on simulated servers.

use crate::{coverage, rates};
use mydyno_stats::Error;

/// Parts of the page.
pub const PARTS: [&str; 3] = ["series", "percentiles", "experiments"];

/// A part of the page as Markdown, each cell from `seeds` seeds.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn part(name: &str, seeds: u64) -> Result<String, Error> {
    match name {
        "series" => Ok(of_series(seeds)),
        "percentiles" => Ok(of_percentiles(seeds)),
        _ => of_experiments(seeds),
    }
}

fn of_series(seeds: u64) -> String {
    let means = coverage::table_of_means(seeds);
    let counts = coverage::table_of_counts(seeds);
    let found = coverage::table_of_found(seeds);
    let unsteady = coverage::table_of_alarms(seeds);
    format!(
        "# Measured rates of the statistics

Written by `MYDYNO_WRITE_DOCS=1 make stats`, {seeds} seeds; a test compares it with the code. The meaning:
[statistics.md](statistics.md).

## Coverage of nominal 95 % intervals of a mean
Of the series that got an interval with its level, the share that holds the truth; then the share of the series that got one:
the others say why not. After ~: none has a level (shorter than 240 s), and so many of the provisional intervals hold it. The
assumption, no change slower than a quarter of the run, does not hold on *drifting*, on *levels of 2 min* below 600 s and on
*levels of 30 s*, AR(1) 0.9 and 0.95 below 120 s; a run says so when it gives no level.

{means}
## The same of Poisson counts
Throughputs of about 100 transactions a second whose mean varies by a tenth with the noise.

{counts}
## Lasting falls by 20 % that are called unsteady, by their place in the run
Noise of 4 %; at most {} seeds.

{found}
## Called unsteady
Levels that last as long as the run or half of it are changes; *drifting* series truly drift.

{unsteady}
",
        coverage::FOUND_SEEDS
    )
}

fn of_percentiles(seeds: u64) -> String {
    let percentiles = coverage::table_of_percentiles(seeds);
    format!(
        "## Coverage of nominal 95 % intervals of percentiles
Windows of log-normal latencies whose level is an AR(1) with φ.

{percentiles}
"
    )
}

fn of_experiments(seeds: u64) -> Result<String, Error> {
    let verdicts = rates::table_of_verdicts(seeds)?;
    let forecasts = rates::table_of_forecasts(seeds)?;
    let bias = rates::table_of_bias(seeds)?;
    let widths = rates::table_of_widths(seeds)?;
    Ok(format!(
        "## Verdicts
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
