//! Simulated benches whose results follow from arithmetic: bounds, stalls, outages and interruptions.

use mydyno_load::simulation::{Period, ServerScript, ServiceTime, Simulation};
use mydyno_model::record::{End, EventKind, Phase};
use mydyno_stats::Rng;

use super::{Bench, Ran, for_seeds, point_selects};
use crate::error::RunError;
use crate::request::Request;
use crate::verdict::Verdict;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn run(request: Request, server: ServerScript) -> Ran {
    Bench { request, simulation: Simulation { server, ..Simulation::default() } }.run().unwrap()
}

fn text(value: impl ToString) -> Option<String> {
    Some(value.to_string())
}

/// A closed loop of n connections on c slots of constant service time s, with a time d on the way there and back, completes
/// min(n ÷ (s + d), c ÷ s) transactions a second, and each takes n ÷ that rate.
#[test]
fn bounds_of_a_closed_loop_are_decided_as_its_arithmetic_says() {
    for_seeds(40, |seed| {
        let random = &mut Rng::from_seed(seed);
        let (connections, slots) = (random.between(1, 12), random.between(1, 6));
        let (service_ns, network_ns) = (random.between(2 * MS, 9 * MS), random.between(5_000, 400_000));
        let seconds = |ns: u64| ns as f64 / 1e9;
        let per_s = (connections as f64 / seconds(service_ns + 2 * network_ns))
            .min(slots as f64 / seconds(service_ns));
        let response_us = connections as f64 / per_s * 1e6;
        let fail_if = vec![
            format!("mean>{}us", response_us * 0.98),
            format!("mean>{}us", response_us * 1.02),
            format!("tps<{}", per_s * 1.02),
            format!("tps<{}", per_s * 0.98),
        ];
        let request = Request {
            connections: text(connections),
            time: text("5s"),
            warmup: text("1s"),
            fail_if,
            ..point_selects()
        };
        let service = ServiceTime::Constant(service_ns);
        let ran =
            run(request, ServerScript { slots: slots as usize, service, network_ns, ..Default::default() });
        let broken: Vec<bool> = ran.ended.summary.bounds.iter().map(|b| b.broken).collect();
        assert_eq!(
            broken,
            [true, false, true, false],
            "{per_s}/s, {response_us} us: {:#?}",
            ran.ended.summary.bounds
        );
        let Verdict::Bad(why) = ran.ended.verdict() else { panic!("{:?}", ran.ended.verdict()) };
        assert_eq!(why.len(), 2, "{why:?}");
    });
}

/// With a rate λ, and μ = connections ÷ (service + both ways of the network), λ (d − x) ÷ (1 − λ/μ) responses of a stall of
/// d seconds are longer than x. In a window of T seconds these are the share 1 − q where
/// x = d − (1 − q) T (1 − λ/μ).
#[test]
fn percentiles_of_an_open_loop_hold_the_wait_of_a_stall() {
    for_seeds(20, |seed| {
        let random = &mut Rng::from_seed(seed);
        let (rate, connections) = (random.between(100, 400) as f64, random.between(4, 12));
        let (stall_ms, time_s) = (random.between(500, 1_500), 8.0);
        let stall = Period { from_ns: random.between(1, 4) * S, length_ns: stall_ms * MS };
        let server = ServerScript { slots: 64, stalls: vec![stall], ..ServerScript::default() };
        let request = Request {
            connections: text(connections),
            rate: text(rate),
            arrivals: text("constant"),
            time: text("8s"),
            ..point_selects()
        };
        let ran = run(request.clone(), server.clone());
        let [step] = ran.steps() else { panic!("{:?}", ran.ended.summary.end) };
        assert_eq!(step.transactions as f64, rate * time_s);
        let (stall_s, slowed) = (stall_ms as f64 / 1e3, 1.0 - rate * 1.04e-3 / connections as f64);
        for (name, q) in [("p99", 0.99), ("p95", 0.95)] {
            let expected_s = stall_s - (1.0 - q) * time_s * slowed;
            if expected_s > 0.1 * stall_s {
                let found_s = step.response_us.percentiles[name].value / 1e6;
                let one_arrival_s = 2.0 * connections as f64 / rate;
                let close = (found_s - expected_s).abs() <= 0.02 * expected_s + one_arrival_s;
                assert!(close, "{name}: {found_s} s instead of {expected_s} s");
            }
        }
        assert!(!ran.warns_of("hidden-wait"));

        // A closed loop sends nothing during a stall, so only as many transactions as connections show it; the run
        // warns of that.
        let closed = run(Request { rate: None, arrivals: None, ..request }, server);
        let [step] = closed.steps() else { panic!("{:?}", closed.ended.summary.end) };
        assert!(step.response_us.percentiles["p99"].value < 2_000.0, "{:?}", step.response_us);
        let longest_s = step.response_us.max.unwrap() / 1e6;
        assert!((longest_s - stall_s).abs() < 0.02 * stall_s + 0.002, "{longest_s} of {stall_s}");
        assert!(closed.warns_of("hidden-wait"), "{:?}", closed.ended.summary.warnings);
    });
}

fn sweep() -> Request {
    Request {
        connections: text("2,4,6"),
        no_shuffle: true,
        time: text("3s"),
        warmup: text("1s"),
        ..point_selects()
    }
}

#[test]
fn connections_that_are_lost_in_one_step_are_there_in_the_next() {
    let outage = Period { from_ns: 6 * S, length_ns: S / 2 };
    let ran = run(sweep(), ServerScript { outages: vec![outage], ..ServerScript::default() });
    assert_eq!(ran.ended.summary.end, End::Complete);
    let reconnects: Vec<u64> = ran.steps().iter().map(|step| step.reconnects).collect();
    assert_eq!(reconnects, [0, 4, 0]);
    // 1 ms a statement, one at a time: half a second without the server, and the pauses between attempts to connect.
    let done: Vec<u64> = ran.steps().iter().map(|step| step.transactions).collect();
    assert!(done[0].abs_diff(3_000) <= 3 && done[2].abs_diff(3_000) <= 3, "{done:?}");
    assert!((1_000..=2_500).contains(&done[1]), "{done:?}");
}

#[test]
fn a_server_that_is_away_when_a_step_begins_ends_the_run_and_keeps_the_steps_before() {
    let away = |from_s: f64| {
        let outage = Period { from_ns: (from_s * 1e9) as u64, length_ns: 100 * S };
        ServerScript { outages: vec![outage], ..ServerScript::default() }
    };
    let sound = run(sweep(), ServerScript::default());
    let begins_s = |ran: &Ran, number| {
        let begins = |what: &EventKind| matches!(what, EventKind::Phase { step, phase: Phase::Connect } if *step == number);
        ran.record.events.iter().find(|event| begins(&event.what)).map(|event| event.at_s).unwrap()
    };
    // Connections are open 1 ms after a step begins, as are those of the first step when the server's script begins.
    let ran = run(sweep(), away(begins_s(&sound, 1)));
    assert_eq!(ran.begun, [0, 1]);
    assert_eq!(ran.steps().iter().map(|step| step.step).collect::<Vec<_>>(), [0]);
    let Verdict::BrokeOff { why, by_answers: false } = ran.ended.verdict() else {
        panic!("{:?}", ran.ended.verdict())
    };
    assert!(why.contains("connect"), "{why}");

    // A first step that cannot start is an error.
    let bench =
        Bench { request: sweep(), simulation: Simulation { server: away(0.0), ..Simulation::default() } };
    assert!(matches!(bench.run(), Err(RunError::Load(_))));
}

#[test]
fn an_interruption_keeps_what_was_measured_until_then() {
    for_seeds(20, |seed| {
        let at_ns = Rng::from_seed(seed).between(100 * MS, 11 * S);
        let simulation = Simulation { interrupt_at_ns: Some(at_ns), ..Simulation::default() };
        let ran = Bench { request: sweep(), simulation }.run().unwrap();
        assert_eq!(ran.ended.verdict(), Verdict::Interrupted);
        let end_s = ran.record.intervals.last().map_or(0.0, |i| i.start_s + i.width_s);
        let at_s = at_ns as f64 / 1e9;
        assert!((at_s - 0.15..at_s + 0.2).contains(&end_s), "{end_s} after {at_s}");
        // 1 ms a statement, one at a time, while there is load.
        let loaded = || ran.record.intervals.iter().filter(|i| i.phase != Phase::Drain);
        let (done, loaded_s): (u64, f64) =
            (loaded().map(|i| i.transactions).sum(), loaded().map(|i| i.width_s).sum());
        assert!((done as f64 - 1e3 * loaded_s).abs() <= 20.0, "{done} in {loaded_s} s");
    });
}

#[test]
fn a_forbidden_error_ends_the_run_in_its_step() {
    let request = Request { stop_on_error: true, ..sweep() };
    let ran = run(request, ServerScript { errors: Some((0.01, 1146)), ..ServerScript::default() });
    let Verdict::BrokeOff { why, by_answers: true } = ran.ended.verdict() else {
        panic!("{:?}", ran.ended.verdict())
    };
    assert!(why.contains("1146") && ran.begun == [0], "{why}");
}
