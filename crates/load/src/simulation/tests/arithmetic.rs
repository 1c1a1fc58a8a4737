//! Servers whose times are known by arithmetic or queueing theory.

use std::time::Duration;

use mydyno_model::plan::{Arrivals, ConnectionPlan, Spacing};
use mydyno_model::record::Phase;
use mydyno_stats::Distribution;

use super::{Step, count_above};
use crate::End;
use crate::simulation::{Period, ServerScript, ServiceTime, Simulation};

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// With a rate λ, and μ = connections ÷ (service + both ways of the network), an arrival τ seconds after the start of a
/// stall of d seconds waits for the rest of the stall and for the backlog before it: d − τ (1 − λ/μ). So λ (d − x) ÷
/// (1 − λ/μ) responses are longer than x, while only statements that were under way have a long service time.
#[test]
fn a_stall_shows_in_the_responses_of_an_open_loop_as_the_arithmetic_says() {
    for (rate, stall_ms, connections) in [(1_000.0, 1_000, 8), (500.0, 400, 4), (2_000.0, 2_000, 16)] {
        let step = Step {
            connections,
            arrivals: Arrivals::open(rate, Spacing::Constant),
            measure: Duration::from_secs(8),
            ..Step::default()
        };
        let stall = Period { from_ns: S, length_ns: stall_ms * MS };
        let server = ServerScript { slots: 64, stalls: vec![stall], ..ServerScript::default() };
        let time_s = 1.04e-3;
        let ran = step.run(&Simulation { server, ..Simulation::default() });
        assert!(matches!(ran.end, End::Complete(_)), "{:?}", ran.end);
        let slowed = 1.0 - rate * time_s / connections as f64;
        let d_s = stall_ms as f64 / 1e3;
        for share in [0.1, 0.3, 0.5, 0.7, 0.9] {
            let found = count_above(&ran.response(), share * d_s * 1e9) as f64;
            let expected = rate * (d_s - share * d_s) / slowed;
            let close = (found - expected).abs() <= 0.02 * expected + 2.0 * connections as f64;
            assert!(close, "{found} responses above {share} of {d_s} s, expected {expected}");
        }
        let under_way = count_above(&ran.service(), 0.1 * d_s * 1e9);
        assert!((1..=connections as u64).contains(&under_way), "{under_way}");
    }
}

#[test]
fn a_stalled_second_shows_in_responses_and_not_in_the_services_of_later_statements() {
    let step = Step {
        connections: 8,
        arrivals: Arrivals::open(1_000.0, Spacing::Constant),
        measure: Duration::from_secs(3),
        ..Step::default()
    };
    let stall = Period { from_ns: S, length_ns: S };
    let server = ServerScript {
        slots: 8,
        service: ServiceTime::Constant(100_000),
        network_ns: 10_000,
        stalls: vec![stall],
        ..ServerScript::default()
    };
    let ran = step.run(&Simulation { server, ..Simulation::default() });
    assert_eq!((ran.sum(|i| i.arrivals.intended), ran.sum(|i| i.transactions)), (3_000, 3_000));
    // Those of the first nine tenths of the stalled second wait for more than a tenth; the backlog adds 1.5 %.
    let waited = count_above(&ran.response(), 1e8);
    assert!((900..=925).contains(&waited), "{waited}");
    let longest = ran.response().max_ns().unwrap();
    assert!((950 * MS..=1_001 * MS).contains(&longest), "{longest}");
    assert_eq!(count_above(&ran.service(), 1e8), 8);
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
    // Two connections and 20 ms an answer: 100 a second.
    let service = ServiceTime::Constant(20 * MS);
    let server = ServerScript { slots: 2, service, network_ns: 0, ..ServerScript::default() };
    let ran = step.run(&Simulation { server, ..Simulation::default() });
    let End::Complete(shortfalls) = ran.end else { panic!("{:?}", ran.end) };
    let of = |phase| ran.of_phase(phase).map(|i| i.arrivals);
    assert_eq!(of(Phase::Measure).map(|a| a.intended).sum::<u64>(), 2_000);
    assert_eq!(of(Phase::Drain).map(|a| a.intended).sum::<u64>(), 0);
    let dropped: u64 = of(Phase::Warmup).map(|a| a.dropped).sum();
    assert!((898..=902).contains(&dropped), "{dropped}");
    assert_eq!(ran.sum(|i| i.arrivals.dropped), dropped);
    assert!((1_796..=1_804).contains(&shortfalls.queued) && shortfalls.unanswered == 0, "{shortfalls:?}");
    assert_eq!(ran.intervals.last().map(|i| i.arrivals.queued), Some(shortfalls.queued));
}

/// Little's law: connections = throughput × mean time, in a closed loop without pauses.
#[test]
fn a_closed_loop_obeys_littles_law() {
    for seed in 0..20 {
        let connections = 1 + seed as usize % 12;
        let step = Step { connections, workers: 1, measure: Duration::from_secs(5), seed, ..Step::default() };
        let service = ServiceTime::Exponential((1 + seed % 5) * MS);
        let server = ServerScript { slots: 4, service, ..ServerScript::default() };
        let ran = step.run(&Simulation { seed, server, ..Simulation::default() });
        let per_s = ran.of_phase(Phase::Measure).map(|i| i.transactions).sum::<u64>() as f64 / 5.0;
        let inside = per_s * ran.response().mean_ns().unwrap() / 1e9;
        assert!((inside / connections as f64 - 1.0).abs() < 0.02, "seed {seed}: {inside} of {connections}");
    }
}

/// Erlang's C: in an M/M/c queue the mean wait is C(c, a) ÷ (cμ − λ). The values of C were computed by Erlang's B recursion,
/// outside this program.
#[test]
fn waits_are_those_of_erlang() {
    // Slots, offered load in erlangs, probability of waiting.
    for (slots, load, waits) in
        [(1, 0.5, 0.5), (2, 1.2, 0.45), (4, 3.0, 0.509_433_962), (8, 6.0, 0.356_981_086)]
    {
        let (service_ns, mut response, mut n) = (5 * MS, 0.0, 0.0);
        let (mu, lambda) = (1e9 / service_ns as f64, load * 1e9 / service_ns as f64);
        for seed in 0..12 {
            let step = Step {
                // So many that none of the arrivals waits for a connection.
                connections: 200,
                workers: 2,
                arrivals: Arrivals::open(lambda, Spacing::Poisson),
                measure: Duration::from_secs(40),
                seed,
                ..Step::default()
            };
            let service = ServiceTime::Exponential(service_ns);
            let server = ServerScript { slots, service, network_ns: 0, ..ServerScript::default() };
            let ran = step.run(&Simulation { seed, server, ..Simulation::default() });
            response += ran.response().sum_ns() as f64;
            n += ran.response().count() as f64;
        }
        let expected_s = 1.0 / mu + waits / (slots as f64 * mu - lambda);
        let found_s = response / n / 1e9;
        assert!(
            (found_s / expected_s - 1.0).abs() < 0.06,
            "{slots} slots, {load}: {found_s} of {expected_s} s"
        );
    }
}

#[test]
fn a_server_that_restarts_is_waited_for_and_one_that_stays_away_ends_the_step() {
    let step = Step { connections: 6, measure: Duration::from_secs(100), ..Step::default() };
    let away = |length_ns| ServerScript {
        outages: vec![Period { from_ns: 10 * S, length_ns }],
        ..ServerScript::default()
    };
    let run =
        |step: &Step, length_ns| step.run(&Simulation { server: away(length_ns), ..Simulation::default() });
    let ran = run(&step, 5 * S);
    assert!(matches!(ran.end, End::Complete(s) if s.lost == 0), "{:?}", ran.end);
    assert_eq!(ran.sum(|i| i.reconnects), 6);
    // At most the longest pause between attempts after the outage.
    let silent = ran.of_phase(Phase::Measure).filter(|i| i.transactions == 0).count();
    assert!((3..=8).contains(&silent), "{silent} silent seconds");

    let ran = run(&step, 1_000 * S);
    assert!(matches!(&ran.end, End::AllLost { .. }), "{:?}", ran.end);
    let end_s = ran.intervals.last().map_or(0.0, |i| i.start_s + i.width_s);
    assert!((40.0..43.0).contains(&end_s), "given up at {end_s} s");

    let keep = ConnectionPlan { reconnect: false, ..ConnectionPlan::default() };
    let ran = run(&Step { keep, ..step }, 5 * S);
    assert!(matches!(&ran.end, End::AllLost { .. }), "{:?}", ran.end);
}

/// In virtual time, so the bound is exact: until the workers notice it, and what they wait for answers after that.
#[test]
fn a_load_on_a_server_that_fell_silent_ends_within_half_a_second_of_an_interruption() {
    let step = Step { measure: Duration::from_secs(100), ..Step::default() };
    let silent = Period { from_ns: 2 * S + 500 * MS, length_ns: 1_000 * S };
    let server = ServerScript { stalls: vec![silent], ..ServerScript::default() };
    let interrupt_at_ns = Some(4 * S + 250 * MS);
    let ran = step.run(&Simulation { server, interrupt_at_ns, ..Simulation::default() });
    assert_eq!(ran.end, End::Interrupted);
    let end_s = ran.intervals.last().map_or(0.0, |i| i.start_s + i.width_s);
    assert!((4.25..4.75).contains(&end_s), "{end_s}");
    // What was measured is kept, the window that the interruption cut short as well.
    assert_eq!(ran.sum(|i| i.transactions), ran.served.answered);
    let measured_s: f64 = ran.of_phase(Phase::Measure).map(|i| i.width_s).sum();
    assert!((4.25..4.5).contains(&measured_s), "{measured_s}");
}

#[test]
fn a_warmup_ends_a_window_after_it_is_steady_and_drops_its_backlog() {
    let step = Step {
        arrivals: Arrivals::open(1_000.0, Spacing::Constant),
        warmup: Duration::from_secs(60),
        steady_after: Some(3),
        measure: Duration::from_secs(5),
        ..Step::default()
    };
    // 1 ms each, one at a time, four connections and 40 µs on the way: a little below the rate.
    let service = ServiceTime::Constant(1_250_000);
    let server = ServerScript { service, ..ServerScript::default() };
    let ran = step.run(&Simulation { server, ..Simulation::default() });
    let End::Complete(shortfalls) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!((ran.of_phase(Phase::Warmup).count(), ran.of_phase(Phase::Measure).count()), (5, 5));
    // 800 of 1,000 a second are done.
    let dropped = ran.sum(|i| i.arrivals.dropped);
    assert!(dropped.abs_diff(1_000) <= 8, "{dropped}");
    assert!(shortfalls.queued.abs_diff(1_000) <= 8, "{shortfalls:?}");
}

#[test]
fn a_load_generator_that_stands_still_reports_how_late_it_was() {
    let step = Step { measure: Duration::from_secs(3), ..Step::default() };
    let stall = Period { from_ns: 1_900 * MS, length_ns: 600 * MS };
    let ran = step.run(&Simulation { client_stalls: vec![stall], ..Simulation::default() });
    let End::Complete(shortfalls) = ran.end else { panic!("{:?}", ran.end) };
    assert_eq!(shortfalls.late_ns, 500 * MS);
}

/// Connections 0, 2, … belong to the first worker, 1, 3, … to the second. Both send to a server that cuts answers, and
/// nothing is opened again, so one of them has no connection left before the other.
#[test]
fn arrivals_of_a_worker_without_connections_are_counted_as_backlog() {
    for seed in 0..20 {
        let step = Step {
            connections: 2,
            arrivals: Arrivals::open(100.0, Spacing::Constant),
            measure: Duration::from_secs(4),
            keep: ConnectionPlan { reconnect: false, ..ConnectionPlan::default() },
            ..Step::default()
        };
        let server = ServerScript { cuts: 0.01, ..ServerScript::default() };
        let ran = step.run(&Simulation { seed, server, ..Simulation::default() });
        if let End::Complete(_) = ran.end {
            assert_eq!(ran.sum(|i| i.arrivals.intended), 400, "seed {seed}: {:?}", ran.end);
        }
    }
}

#[test]
fn a_load_without_any_success_ends_with_its_most_frequent_error() {
    let step = Step { measure: Duration::from_secs(60), ..Step::default() };
    let server = ServerScript { errors: Some((1.0, 1146)), ..ServerScript::default() };
    let ran = step.run(&Simulation { server, ..Simulation::default() });
    assert!(matches!(&ran.end, End::Hopeless { why } if why.contains("1146")), "{:?}", ran.end);
    let end_s = ran.intervals.last().map_or(0.0, |i| i.start_s + i.width_s);
    assert!((2.0..2.3).contains(&end_s), "after {end_s} s");
}
