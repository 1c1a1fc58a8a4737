//! Properties that every step has, whatever the server does: tried on random scenarios. A failure names its seed;
//! `MYDYNO_SEED=N` runs that one alone, `MYDYNO_SEEDS=N` runs so many.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

use mydyno_model::plan::{Arrivals, Shape, Spacing};
use mydyno_model::record::Phase;
use mydyno_stats::Distribution;

use super::scenario::scenario;
use super::{Ran, Step};
use crate::End;
use crate::simulation::{START_NS, Simulation};

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

#[test]
fn every_step_has_the_properties_of_a_step() {
    let seeds = match number("MYDYNO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MYDYNO_SEEDS").unwrap_or(300),
    };
    let (began, count) = (Instant::now(), seeds.end - seeds.start);
    let mut ends = [0u64; 5];
    for seed in seeds {
        let (step, simulation) = scenario(seed);
        let checked = catch_unwind(AssertUnwindSafe(|| {
            let ran = step.run(&simulation);
            check(&step, &simulation, &ran);
            if seed % 10 == 0 {
                let again = step.run(&simulation);
                assert_eq!((again.end, again.events), (ran.end.clone(), ran.events), "not the same twice");
            }
            ran.end
        }));
        match checked {
            Ok(end) => ends[kind(&end)] += 1,
            Err(panic) => {
                eprintln!("seed {seed} failed (MYDYNO_SEED={seed}): {step:#?} {simulation:#?}");
                resume_unwind(panic);
            }
        }
    }
    let per_minute = count as f64 / began.elapsed().as_secs_f64() * 60.0;
    println!(
        "{count} seeds, {per_minute:.0} a minute; complete, interrupted, forbidden, all lost, hopeless: {ends:?}"
    );
}

fn kind(end: &End) -> usize {
    match end {
        End::Complete(_) => 0,
        End::Interrupted => 1,
        End::Forbidden { .. } => 2,
        End::AllLost { .. } => 3,
        End::Hopeless { .. } => 4,
        End::Failed { why } => panic!("{why}"),
    }
}

fn check(step: &Step, simulation: &Simulation, ran: &Ran) {
    every_arrival_is_accounted_for(ran);
    windows_tile_the_phases(step, ran);
    histograms_hold_what_was_counted(step, ran);
    the_server_agrees(step, simulation, ran);
    arrivals_follow_the_schedule(step, simulation, ran);
}

/// Transactions that waited before a window or became due in it were completed, failed or dropped in it, or wait after
/// it. At the end none are unaccounted for.
fn every_arrival_is_accounted_for(ran: &Ran) {
    let mut waiting = 0;
    for i in &ran.intervals {
        let ended = i.transactions + i.arrivals.failed + i.arrivals.dropped + i.arrivals.waiting();
        assert_eq!(waiting + i.arrivals.intended, ended, "{i:#?}");
        waiting = i.arrivals.waiting();
    }
    if let (End::Complete(shortfalls), Some(last)) = (&ran.end, ran.intervals.last()) {
        assert_eq!(
            (shortfalls.unanswered, shortfalls.queued),
            (last.arrivals.in_flight, last.arrivals.queued)
        );
    }
}

/// Windows follow each other without a gap, in the order of the phases, and a complete measurement is as long as planned.
fn windows_tile_the_phases(step: &Step, ran: &Ran) {
    let mut end_s = START_NS as f64 / 1e9;
    let mut phase = Phase::Warmup;
    let order = |phase| match phase {
        Phase::Connect => 0,
        Phase::Warmup => 1,
        Phase::Measure => 2,
        Phase::Drain => 3,
    };
    for i in &ran.intervals {
        assert!((i.start_s - end_s).abs() < 1e-9 && i.width_s >= 0.0, "{} after {end_s}", i.start_s);
        assert!(order(i.phase) >= order(phase), "{:?} after {phase:?}", i.phase);
        assert!(i.phase == Phase::Drain || i.width_s <= 1.5 + 1e-9, "{} s long", i.width_s);
        (end_s, phase) = (i.start_s + i.width_s, i.phase);
    }
    assert_eq!(ran.intervals.last().map(|i| i.phase), Some(Phase::Drain));
    let open = ran.intervals.iter().filter(|i| i.phase == Phase::Measure).map(|i| i.width_s).sum::<f64>();
    if matches!(&ran.end, End::Complete(s) if s.lost < step.connections) {
        assert!((open - step.measure.as_secs_f64()).abs() < 1e-6, "measured {open} of {:?}", step.measure);
    } else {
        assert!(open < step.measure.as_secs_f64() + 1e-6);
    }
}

/// Sums of the interval histograms equal the totals, and no response is shorter than its service.
fn histograms_hold_what_was_counted(step: &Step, ran: &Ran) {
    let (response, service) = (ran.response(), ran.service());
    assert_eq!(response.count(), service.count());
    let queries = ran.sum(|i| i.queries);
    // The backlog of a warm-up is counted and not timed.
    match step.arrivals {
        Arrivals::Open { .. } => assert!(response.count() <= queries),
        Arrivals::Closed { .. } => assert_eq!(response.count(), queries),
    }
    assert!(response.sum_ns() >= service.sum_ns());
    for q in [0.0, 0.1, 0.5, 0.9, 0.99, 1.0] {
        assert!(response.quantile_ns(q) >= service.quantile_ns(q), "quantile {q}");
    }
    assert_eq!(queries, ran.sum(|i| i.transactions), "a point select is one statement");
    let lateness: u64 = ran.sum(|i| i.lateness.count);
    assert_eq!(lateness, response.count());
}

/// The client's counts are those of the server.
fn the_server_agrees(step: &Step, simulation: &Simulation, ran: &Ran) {
    let (served, queries) = (ran.served, ran.sum(|i| i.queries));
    let errors = ran.sum(|i| {
        i.errors.iter().filter(|(code, _)| ["1213", "1146"].contains(&&***code)).map(|(_, n)| n).sum()
    });
    assert!(queries <= served.answered && errors <= served.errors, "{queries}, {errors} of {served:?}");
    assert!(served.answered + served.errors <= served.statements, "{served:?}");
    let unanswered = ran.intervals.last().map_or(0, |i| i.arrivals.in_flight);
    if unanswered == 0 {
        assert_eq!((queries, errors), (served.answered, served.errors), "{served:?}");
    }
    let opened = ran.sum(|i| i.connect.count);
    let connections = served.connections - step.connections as u64;
    assert!(
        opened <= connections && connections <= opened + step.connections as u64,
        "{opened} of {connections}"
    );
    let lossy = simulation.server.cuts > 0.0 || !simulation.server.outages.is_empty();
    assert!(lossy || ran.sum(|i| i.reconnects) == 0);
    assert!(lossy || ran.sum(|i| i.errors.get("2013").copied().unwrap_or(0)) == 0);
}

/// Evenly spaced arrivals at a constant rate are as many as the arithmetic says, whatever the server does.
fn arrivals_follow_the_schedule(step: &Step, simulation: &Simulation, ran: &Ran) {
    assert_eq!(ran.of_phase(Phase::Drain).map(|i| i.arrivals.intended).sum::<u64>(), 0);
    let Arrivals::Open { rate_per_s, spacing: Spacing::Constant, shape: Shape::Flat } = step.arrivals else {
        return;
    };
    let whole = matches!(&ran.end, End::Complete(s) if s.lost < step.connections);
    if whole && simulation.client_stalls.is_empty() {
        let intended: u64 = ran.of_phase(Phase::Measure).map(|i| i.arrivals.intended).sum();
        let expected = (rate_per_s * step.measure.as_secs_f64()).round();
        assert!((intended as f64 - expected).abs() <= 1.0, "{intended} arrivals of {expected}");
    }
}
