//! When transactions are asked: open loops, think time.

use std::time::Duration;

use mydyno_load::End;
use mydyno_model::plan::{Arrivals, RateStep, Shape, Spacing, Spread, Think};
use mydyno_model::record::{HistogramData, Interval};
use mydyno_stats::{Distribution, Histogram};

use crate::script::Answer;
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

/// The stall's effect on each response is tested in virtual time.
#[test]
fn a_stall_of_the_server_loses_no_arrival_of_an_open_loop() {
    let stall = Duration::from_millis(300);
    // Nothing is due when the window ends, so that a worker that comes late there leaves nothing queued and finds
    // nothing more.
    let steps = [(1_000.0, 1.0), (0.0, 0.5)].map(|(rate_per_s, time_s)| RateStep { rate_per_s, time_s });
    let shape = Shape::Steps { steps: steps.to_vec() };
    let step = Step {
        connections: 8,
        arrivals: Arrivals::Open { rate_per_s: 1_000.0, spacing: Spacing::Constant, shape },
        measure: Duration::from_millis(1_500),
        ..Step::default()
    };
    let (end, intervals) = step.run(Answer::Stall { from: stall, length: stall });
    assert!(matches!(end, Ok(End::Complete(_))), "{end:?}");
    assert_eq!(sum(&intervals, |i| i.arrivals.intended), 1_000);
    assert_eq!(sum(&intervals, |i| i.transactions), 1_000);
    let longest = merged(&intervals, |t| &t.response).max_ns().unwrap();
    assert!(longest >= stall.as_nanos() as u64 / 2, "{longest}");
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
