//! The comparison of runs with the first of them, as a document.

use mydyno_model::comparison::{
    Comparisons, EnvironmentDifference, FigureDifference, LoadComparison, RunComparison,
};
use mydyno_model::{Estimate, Header};
use mydyno_stats::compare::ratio_of_estimates;
use serde_json::Map;
use time::OffsetDateTime;

use crate::RunView;
use crate::compare::{CAVEAT, Difference, about_provisional, compared};
use crate::contrast::{command, contrasts};
use crate::figures::Unit;
use crate::words;

/// The comparison of each run with the first.
pub fn document(runs: &[RunView<'_>], now: OffsetDateTime) -> Comparisons {
    let comparisons = match runs {
        [first, others @ ..] => others.iter().map(|other| one(first, other)).collect(),
        [] => Vec::new(),
    };
    Comparisons {
        header: Header::of::<Comparisons>(now),
        runs: runs.iter().map(|run| run.summary.clone()).collect(),
        comparisons,
        extra: Map::new(),
    }
}

fn one(first: &RunView<'_>, other: &RunView<'_>) -> RunComparison {
    let all = compared(first, other);
    let loads = all.iter().map(|load| LoadComparison {
        load: load.name.clone(),
        figures: load.differences.iter().map(figure).collect(),
    });
    let differs = contrasts(first.record, other.record).into_iter();
    RunComparison {
        baseline: first.summary.run.clone(),
        treatment: other.summary.run.clone(),
        loads: loads.collect(),
        doubts: about_provisional(&all),
        prove: command(first.record, other.record),
        differs: differs
            .map(|c| EnvironmentDifference { name: c.name, baseline: c.a, treatment: c.b })
            .collect(),
        warnings: words::unequal_work(first, other).into_iter().collect(),
        caveat: CAVEAT.to_owned(),
    }
}

fn figure(difference: &Difference) -> FigureDifference {
    let change = difference.change().map(|_| {
        let ratio = ratio_of_estimates(&difference.a, &difference.b);
        let share = |ratio: f64| ratio - 1.0;
        Estimate {
            value: share(ratio.value),
            low: ratio.low.map(share),
            high: ratio.high.map(share),
            ..ratio
        }
    });
    FigureDifference {
        name: difference.name.clone(),
        unit: if difference.unit == Unit::PerSecond { "1/s" } else { "us" }.to_owned(),
        more_is_better: difference.more_is_better,
        baseline: difference.a.clone(),
        treatment: difference.b.clone(),
        change,
        verdict: difference.verdict().word().to_owned(),
        in_words: difference.in_these_two_runs(),
    }
}
