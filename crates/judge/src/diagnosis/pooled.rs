//! Waits and statements of several intervals together. Pure.

use std::collections::BTreeMap;

use mydyno_model::watch::{StatementFigures, WaitFigures, WatchInterval};

/// Kinds of waits and statements that are kept: those with the most time.
const MOST: usize = 10;

/// Means over the intervals in which waits were read, the most first.
pub fn waits(intervals: &[WatchInterval]) -> Vec<WaitFigures> {
    let readings: Vec<&Vec<WaitFigures>> =
        intervals.iter().map(|interval| &interval.waits).filter(|waits| !waits.is_empty()).collect();
    let mut sums: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for wait in readings.iter().copied().flatten() {
        let (threads, per_s) = sums.entry(&wait.event).or_default();
        *threads += wait.threads;
        *per_s += wait.waits_per_s;
    }
    let count = readings.len() as f64;
    let mut found: Vec<WaitFigures> = sums
        .into_iter()
        .map(|(event, (threads, per_s))| WaitFigures {
            event: event.to_owned(),
            threads: threads / count,
            waits_per_s: per_s / count,
            wait_us: (per_s > 0.0).then(|| 1e6 * threads / per_s),
        })
        .collect();
    found.sort_by(|a, b| b.threads.total_cmp(&a.threads));
    found.truncate(MOST);
    found
}

/// The same for statements; what a statement does on average is weighted by the number of statements.
pub fn statements(intervals: &[WatchInterval]) -> Vec<StatementFigures> {
    let readings: Vec<&Vec<StatementFigures>> =
        intervals.iter().map(|interval| &interval.statements).filter(|all| !all.is_empty()).collect();
    let count = readings.len() as f64;
    let mut by_digest: BTreeMap<(&str, Option<&str>), Vec<&StatementFigures>> = BTreeMap::new();
    for statement in readings.into_iter().flatten() {
        by_digest.entry((&statement.digest, statement.schema.as_deref())).or_default().push(statement);
    }
    let mut found: Vec<StatementFigures> =
        by_digest.into_values().filter_map(|all| together(&all, count)).collect();
    found.sort_by(|a, b| b.threads.total_cmp(&a.threads));
    found.truncate(MOST);
    found
}

/// One statement over `count` readings, of which those that lack it saw nothing of it.
fn together(all: &[&StatementFigures], count: f64) -> Option<StatementFigures> {
    let first = all.first()?;
    let mean = |of: fn(&StatementFigures) -> Option<f64>| {
        let known: Vec<f64> = all.iter().filter_map(|statement| of(statement)).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / count)
    };
    let each = |of: fn(&StatementFigures) -> Option<f64>| {
        let known = all.iter().filter_map(|statement| Some((of(statement)?, statement.statements_per_s)));
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, all), (value, w)| (sum + value * w, all + w));
        (weight > 0.0).then(|| sum / weight)
    };
    Some(StatementFigures {
        digest: first.digest.clone(),
        schema: first.schema.clone(),
        text: all.iter().find_map(|statement| statement.text.clone()),
        threads: mean(|s| Some(s.threads))?,
        statements_per_s: mean(|s| Some(s.statements_per_s))?,
        statement_us: each(|s| s.statement_us),
        lock_threads: mean(|s| s.lock_threads),
        rows_examined: each(|s| s.rows_examined),
        rows_used: each(|s| s.rows_used),
        tmp_disk_tables_per_s: mean(|s| s.tmp_disk_tables_per_s),
        errors_per_s: mean(|s| s.errors_per_s),
    })
}
