//! The budget of a window, from the intervals of it in which stacks were captured.

use mydyno_model::diagnosis::{DiagnosedBudget, DiagnosedShare, Disagreement, ShareSource};
use mydyno_model::profile::TimeClass;
use mydyno_model::watch::WatchInterval;
use mydyno_stats::special::t_quantile;

/// Level of the intervals.
const LEVEL: f64 = 0.95;

/// Fewest captures for an interval.
const FEWEST: usize = 3;

/// Name of the figure with the mean number of threads of a class.
pub fn figure(class: TimeClass) -> String {
    format!("budget.{}_threads", class.key())
}

/// The budget; `None` where no connection worked on a statement in a capture, or nothing was captured.
pub fn of(intervals: &[WatchInterval]) -> Option<DiagnosedBudget> {
    let busy = |interval: &WatchInterval| interval.figures.get("budget.busy_threads").copied();
    let captured: Vec<&WatchInterval> = intervals.iter().filter(|i| busy(i).is_some()).collect();
    let mean = |name: &str| {
        let known: Vec<f64> = captured.iter().filter_map(|i| i.figures.get(name).copied()).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let busy_threads = mean("budget.busy_threads").filter(|busy| *busy > 0.0)?;
    let busy: Vec<f64> = captured.iter().filter_map(|interval| busy(interval)).collect();
    let mut classes: Vec<DiagnosedShare> = TimeClass::ALL
        .into_iter()
        .filter(|class| *class != TimeClass::ClientIdle)
        .filter_map(|class| {
            let name = figure(class);
            let threads: Vec<f64> =
                captured.iter().map(|i| i.figures.get(&name).copied().unwrap_or(0.0)).collect();
            let share = threads.iter().sum::<f64>() / threads.len() as f64 / busy_threads;
            let half = half_width(&threads, &busy, share);
            (share > 0.0).then(|| DiagnosedShare {
                class,
                share,
                low: half.map(|half| (share - half).max(0.0)),
                high: half.map(|half| (share + half).min(1.0)),
                source: match class {
                    TimeClass::CpuWait => ShareSource::Switches,
                    _ => ShareSource::Stacks,
                },
            })
        })
        .collect();
    classes.sort_by(|a, b| b.share.total_cmp(&a.share));
    let unexplained = classes.iter().find(|class| class.class == TimeClass::Unexplained);
    Some(DiagnosedBudget {
        busy_threads,
        idle_threads: mean("budget.idle_threads").unwrap_or(0.0),
        unexplained: unexplained.map_or(0.0, |class| class.share),
        closure: mean("profile.closure"),
        captures: captured.len(),
        disagreements: disagreements(intervals, &classes, busy_threads),
        classes,
    })
}

/// Classes of which counters tell the mean number of threads as well.
const COUNTED: [(TimeClass, &str); 4] = [
    (TimeClass::CpuWait, "server.threads_waiting_for_cpu"),
    (TimeClass::DataRead, "server.file.data.read_threads"),
    (TimeClass::RowLock, "innodb.row_lock_waiting"),
    (TimeClass::MetadataLock, "server.sessions.metadata_locked"),
];

/// Differences from which stacks and counters disagree: threads, and the factor between both.
const FAR_THREADS: f64 = 1.0;
const FAR_FACTOR: f64 = 2.0;

/// Where the counters contradict the stacks. Threads that wait for longer than a capture switch in none and have no stack.
fn disagreements(intervals: &[WatchInterval], classes: &[DiagnosedShare], busy: f64) -> Vec<Disagreement> {
    let found = COUNTED.into_iter().filter_map(|(class, figure)| {
        let known: Vec<f64> = intervals.iter().filter_map(|i| i.figures.get(figure).copied()).collect();
        let counted_threads = known.iter().sum::<f64>() / known.len() as f64;
        let share = classes.iter().find(|found| found.class == class).map_or(0.0, |found| found.share);
        let stacks_threads = share * busy;
        let (more, less) = (counted_threads.max(stacks_threads), counted_threads.min(stacks_threads));
        let is_far = !known.is_empty() && more - less >= FAR_THREADS && more >= FAR_FACTOR * less;
        is_far.then(|| Disagreement { class, stacks_threads, figure: figure.to_owned(), counted_threads })
    });
    found.collect()
}

/// Half the width of the interval of a ratio of means (Cochran, Sampling Techniques, 3rd edition, section 6.4).
fn half_width(parts: &[f64], wholes: &[f64], ratio: f64) -> Option<f64> {
    let n = parts.len();
    if n < FEWEST {
        return None;
    }
    let mean = wholes.iter().sum::<f64>() / n as f64;
    let squares: f64 = parts.iter().zip(wholes).map(|(part, whole)| (part - ratio * whole).powi(2)).sum();
    let error = (squares / (n as f64 * (n - 1) as f64)).sqrt() / mean;
    Some(t_quantile(0.5 + LEVEL / 2.0, (n - 1) as f64) * error)
}

#[cfg(test)]
mod tests {
    use indexmap::IndexMap;
    use mydyno_model::document::Header;
    use time::macros::datetime;

    use super::*;

    fn interval(figures: &[(&str, f64)]) -> WatchInterval {
        WatchInterval {
            header: Header::of::<WatchInterval>(datetime!(2026-11-23 12:00 UTC)),
            at_s: 0.0,
            over_s: 1.0,
            late_s: None,
            missed: 0,
            figures: figures.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect::<IndexMap<_, _>>(),
            waits: Vec::new(),
            statements: Vec::new(),
            events: Vec::new(),
            extra: serde_json::Map::new(),
        }
    }

    #[test]
    fn shares_are_of_all_captures_together_and_sum_to_one() {
        let captured = |busy: f64, rows: f64| {
            interval(&[
                ("budget.busy_threads", busy),
                ("budget.idle_threads", 1.0),
                ("budget.row_lock_threads", rows),
                ("budget.cpu_wait_threads", busy - rows),
            ])
        };
        let none = interval(&[("server.threads_running", 4.0)]);
        let found = of(&[captured(8.0, 6.0), none.clone(), captured(4.0, 3.0), captured(4.0, 2.0)]);
        let found = found.unwrap_or_else(|| panic!("no budget"));
        let first = &found.classes[0];
        assert_eq!((first.class, first.source), (TimeClass::RowLock, ShareSource::Stacks));
        assert!((first.share - 11.0 / 16.0).abs() < 1e-12, "{}", first.share);
        assert!((found.classes.iter().map(|c| c.share).sum::<f64>() - 1.0).abs() < 1e-12);
        let (low, high) = (first.low.unwrap_or(0.0), first.high.unwrap_or(0.0));
        assert!(low < first.share && first.share < high && high <= 1.0, "{low} {high}");
        assert_eq!((found.captures, found.unexplained), (3, 0.0));
        assert_eq!(of(&[none]), None);
    }

    #[test]
    fn counters_that_say_something_else_are_told() {
        let seen = |locked: f64, rows: f64| {
            interval(&[
                ("budget.busy_threads", 4.0),
                ("budget.row_lock_threads", 3.0),
                ("budget.cpu_user_threads", 1.0),
                ("innodb.row_lock_waiting", rows),
                ("server.sessions.metadata_locked", locked),
            ])
        };
        let differ = |intervals: &[WatchInterval]| -> Vec<(TimeClass, f64, f64)> {
            let budget = of(intervals).unwrap_or_else(|| panic!("no budget"));
            let all = budget.disagreements.into_iter();
            all.map(|found| (found.class, found.stacks_threads, found.counted_threads)).collect()
        };
        assert!(differ(&[seen(0.5, 2.0), seen(0.5, 2.5)]).is_empty());
        assert_eq!(differ(&[seen(5.0, 2.0), seen(7.0, 2.0)]), [(TimeClass::MetadataLock, 0.0, 6.0)]);
        assert_eq!(differ(&[seen(0.0, 0.5)]), [(TimeClass::RowLock, 3.0, 0.5)]);
    }

    #[test]
    fn half_a_width_is_the_quantile_times_the_error_of_the_ratio() {
        // Residuals 0.5, 0.25 and -0.75 of a ratio of 11/16: sum of squares 0.875, over 3 × 2, its root over the mean 16/3.
        let half = half_width(&[6.0, 3.0, 2.0], &[8.0, 4.0, 4.0], 11.0 / 16.0).unwrap_or(0.0);
        let error = (0.875_f64 / 6.0).sqrt() / (16.0 / 3.0);
        assert!((half / error - 4.302_652_7).abs() < 1e-4, "{half}");
        assert_eq!(half_width(&[1.0, 2.0], &[2.0, 2.0], 0.75), None);
    }
}
