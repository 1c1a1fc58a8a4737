//! When transactions are asked: open loops, think time.

use std::time::Duration;

use mydyno_load::End;
use mydyno_model::plan::{Arrivals, RateStep, Shape, Spacing, Spread, Think};
use mydyno_model::record::{HistogramData, Interval, Phase};
use mydyno_stats::{Distribution, Histogram};

use crate::script::Answer;
use crate::undisturbed::undisturbed;
use crate::{Step, sum};

fn merged(
    intervals: &[Interval],
    of: fn(&mydyno_model::record::OperationTimes) -> &HistogramData,
) -> Histogram {
    let mut all = Histogram::default();
    for times in intervals.iter().filter_map(|i| i.operations.get("point_select")) {
        all.merge_data(of(times)).unwrap();
    }
    all
}

/// Values above a bound, in order, each as often as it was recorded.
fn above(histogram: &Histogram, bound_ns: f64) -> Vec<f64> {
    let n = histogram.count();
    let ranks = (0..n).map(|rank| (rank as f64 + 0.5) / n as f64);
    ranks.filter_map(|q| histogram.quantile_ns(q)).filter(|ns| *ns > bound_ns).collect()
}

#[test]
fn a_stalled_second_of_an_open_loop_shows_in_response_times_and_not_in_the_service_times_of_others() {
    let second = Duration::from_secs(1);
    // Nothing is due when the window ends, so that a worker that comes late there leaves nothing queued and finds
    // nothing more.
    let steps = [(1_000.0, 3.0), (0.0, 0.5)].map(|(rate_per_s, time_s)| RateStep { rate_per_s, time_s });
    let shape = Shape::Steps { steps: steps.to_vec() };
    let step = Step {
        connections: 8,
        arrivals: Arrivals::Open { rate_per_s: 1_000.0, spacing: Spacing::Constant, shape },
        measure: 3 * second + second / 2,
        ..Step::default()
    };
    let (end, intervals) = undisturbed(|| step.run(Answer::Stall { from: second, length: second }));
    assert!(matches!(end, Ok(End::Complete(_))), "{end:?}");
    assert_eq!(sum(&intervals, |i| i.arrivals.intended), 3_000);
    assert_eq!(sum(&intervals, |i| i.transactions), 3_000);
    let waited = above(&merged(&intervals, |t| &t.response), 1e8);
    // Those of the first nine tenths of the stalled second wait for more than a tenth.
    assert!((850..=1_300).contains(&waited.len()), "{}", waited.len());
    let median = waited[waited.len() / 2];
    assert!((3.5e8..8e8).contains(&median), "{median}");
    assert!(*waited.last().unwrap() > 9e8, "{waited:?}");
    // Only those that were on their way when the server stood still, or when this machine did.
    let slow = above(&merged(&intervals, |t| &t.service), 1e8);
    assert!((1..=32).contains(&slow.len()), "{slow:?}");
}

#[test]
fn more_than_the_server_can_do_becomes_a_backlog_that_is_counted() {
    let step = Step {
        connections: 2,
        arrivals: Arrivals::open(1_000.0, Spacing::Constant),
        warmup: Duration::from_secs(1),
        measure: Duration::from_secs(2),
        ..Step::default()
    };
    // Two connections and 20 ms an answer: at most 100 a second.
    let (end, intervals) = step.run(Answer::After(Duration::from_millis(20)));
    let Ok(End::Complete(shortfalls)) = end else { panic!("{end:?}") };
    let of = |phase| intervals.iter().filter(move |i| i.phase == phase);
    assert_eq!(of(Phase::Measure).map(|i| i.arrivals.intended).sum::<u64>(), 2_000);
    assert_eq!(of(Phase::Drain).map(|i| i.arrivals.intended).sum::<u64>(), 0);
    let dropped: u64 = of(Phase::Warmup).map(|i| i.arrivals.dropped).sum();
    assert!(dropped >= 890, "{dropped}");
    assert_eq!(sum(&intervals, |i| i.arrivals.dropped), dropped);
    assert!(shortfalls.queued >= 1_790 && shortfalls.unanswered == 0, "{shortfalls:?}");
    assert_eq!(intervals.last().map(|i| i.arrivals.queued), Some(shortfalls.queued));
}

#[test]
fn a_poisson_ramp_asks_what_its_schedule_says_however_many_workers_there_are() {
    // Down to nothing: a worker that comes late to the end finds no more than the others.
    let shape = Shape::Ramp { from_per_s: 1_000.0, to_per_s: 0.0 };
    let step = Step {
        arrivals: Arrivals::Open { rate_per_s: 500.0, spacing: Spacing::Poisson, shape },
        measure: Duration::from_secs(2),
        ..Step::default()
    };
    let asked = |step: &Step| sum(&step.run(Answer::Whole).1, |i| i.arrivals.intended);
    let first = asked(&step);
    // 1,000 are expected; six standard deviations of a Poisson process.
    assert!(first.abs_diff(1_000) < 190, "{first}");
    for workers in [1, 4] {
        assert_eq!(asked(&Step { workers, ..step.clone() }), first);
    }
}

#[test]
fn who_thinks_asks_no_faster_than_the_pauses_allow() {
    for spread in [Spread::Constant, Spread::Exponential] {
        let think = Think { mean_s: 0.05, spread };
        let step = Step {
            connections: 10,
            arrivals: Arrivals::Closed { think: Some(think) },
            measure: Duration::from_secs(2),
            ..Step::default()
        };
        let (end, intervals) = step.run(Answer::Whole);
        assert!(matches!(end, Ok(End::Complete(_))), "{end:?}");
        let asked = sum(&intervals, |i| i.arrivals.intended);
        // 400 in the mean; evenly at most 41 a connection, else with a standard deviation of 20.
        assert!(asked > 0 && asked <= 520, "{spread:?}: {asked}");
        let lateness: u64 = intervals.iter().map(|i| i.lateness.count).sum();
        assert_eq!(lateness, sum(&intervals, |i| i.transactions));
    }
}
