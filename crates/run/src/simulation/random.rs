//! Random benches on random servers: properties of every run, whatever the server does.

use mydyno_load::simulation::{Period, ServerScript, ServiceTime, Simulation};
use mydyno_model::record::{End, EventKind, Interval, Phase};
use mydyno_model::summary::BoundSummary;
use mydyno_stats::{Distribution, Histogram, Rng};
use time::OffsetDateTime;

use super::{Bench, Ran, for_seeds, point_selects};
use crate::error::RunError;
use crate::request::Request;
use crate::summarise::summarise;
use crate::verdict::Verdict;

const MS: u64 = 1_000_000;

/// Milliseconds in which faults are placed, about the length of a run.
const RUN_MS: u64 = 12_000;

fn one_in(random: &mut Rng, n: u64) -> bool {
    random.below(n) == 0
}

fn bench(seed: u64) -> Bench {
    let random = &mut Rng::stream(seed, &[u64::from_be_bytes(*b"\0\0\0bench")]);
    Bench { request: request(seed, random), simulation: simulation(seed, random) }
}

fn request(seed: u64, random: &mut Rng) -> Request {
    let open = one_in(random, 2);
    let searches = one_in(random, 8);
    let rate = random.between(20, 200);
    let rates =
        if searches || one_in(random, 2) { rate.to_string() } else { format!("{rate},{}", rate + 50) };
    let connections = random.between(1, 10);
    let list =
        if searches || one_in(random, 2) { connections.to_string() } else { format!("{connections},12") };
    let bounds = ["errors>0", "errors>5%", "p99>20ms", "p50>8ms", "max>300ms", "tps<100", "mean>1us"];
    Request {
        connections: Some(list),
        rate: open.then_some(rates),
        arrivals: ((open || searches) && one_in(random, 2)).then(|| "constant".to_owned()),
        think: (!open && !searches && one_in(random, 3)).then(|| "5ms".to_owned()),
        repeat: (!searches && one_in(random, 3)).then(|| "2".to_owned()),
        no_shuffle: one_in(random, 2),
        reconnect_every: one_in(random, 5).then(|| random.between(5, 200).to_string()),
        no_reconnect: one_in(random, 4),
        stop_on_error: one_in(random, 10),
        find_capacity: searches.then(|| "p99<50ms,errors<1%".to_owned()),
        resolution: searches.then(|| "20%".to_owned()),
        time: Some(format!("{}ms", random.between(1_000, 2_500))),
        warmup: Some(format!("{}ms", if one_in(random, 2) { 0 } else { random.between(100, 1_200) })),
        seed: Some(seed),
        fail_if: bounds.iter().filter(|_| one_in(random, 3)).map(|&text| text.to_owned()).collect(),
        ..point_selects()
    }
}

fn simulation(seed: u64, random: &mut Rng) -> Simulation {
    let mean_ns = random.between(2 * MS, 15 * MS);
    let share = |random: &mut Rng, n| if one_in(random, n) { random.f64() * 0.05 } else { 0.0 };
    let server = ServerScript {
        slots: random.between(1, 6) as usize,
        service: if one_in(random, 2) {
            ServiceTime::Constant(mean_ns)
        } else {
            ServiceTime::Exponential(mean_ns)
        },
        network_ns: random.between(5_000, 300_000),
        connect_ns: random.between(100_000, 50 * MS),
        stalls: periods(random, 3, 800),
        outages: periods(random, 5, 700),
        errors: one_in(random, 4).then(|| (random.f64() * 0.2, if one_in(random, 2) { 1213 } else { 1146 })),
        cuts: share(random, 5),
        silences: share(random, 8) / 10.0,
        short_sends: share(random, 4) * 4.0,
        split_answers: share(random, 3) * 10.0,
    };
    Simulation {
        seed,
        server,
        client_stalls: periods(random, 8, 400),
        interrupt_at_ns: one_in(random, 6).then(|| random.between(0, RUN_MS * MS)),
    }
}

/// A period of the run, in one of `n` cases.
fn periods(random: &mut Rng, n: u64, longest_ms: u64) -> Vec<Period> {
    if !one_in(random, n) {
        return Vec::new();
    }
    vec![Period { from_ns: random.between(0, RUN_MS * MS), length_ns: random.between(MS, longest_ms * MS) }]
}

#[test]
fn every_bench_has_the_properties_of_a_bench() {
    let mut ends = [0u64; 5];
    for_seeds(300, |seed| {
        let bench = bench(seed);
        let ran = bench.run();
        let kind = match &ran {
            Ok(ran) => {
                check(&bench, ran);
                kind(ran)
            }
            // The server was unreachable when the first step began.
            Err(RunError::Load(_)) if !bench.simulation.server.outages.is_empty() => 4,
            Err(error) => panic!("{error} in {bench:#?}"),
        };
        ends[kind] += 1;
        if let (0, Ok(ran)) = (seed % 10, &ran) {
            let again = bench.run().unwrap();
            assert_eq!(again.record.intervals, ran.record.intervals, "not the same twice");
            assert_eq!(again.record.events, ran.record.events, "not the same twice");
        }
    });
    println!("fine, bad, interrupted, broke off, not started: {ends:?}");
}

fn kind(ran: &Ran) -> usize {
    match ran.ended.verdict() {
        Verdict::Fine => 0,
        Verdict::Bad(_) => 1,
        Verdict::Interrupted => 2,
        Verdict::BrokeOff { .. } => 3,
    }
}

fn check(bench: &Bench, ran: &Ran) {
    the_record_holds_every_window_once(ran);
    steps_follow_the_plan(ran);
    windows_tile_the_steps(ran);
    no_transaction_is_lost_or_counted_twice(ran);
    the_server_counted_as_much(ran);
    summaries_are_the_sums_of_their_windows(ran);
    bounds_are_decided_by_the_windows(bench, ran);
    the_verdict_follows_from_the_record(bench, ran);
}

fn the_record_holds_every_window_once(ran: &Ran) {
    assert!(ran.record.damage.is_empty(), "{:?}", ran.record.damage);
    assert_eq!(ran.record.intervals, ran.seen);
}

/// Steps begin in the plan's order, and each passes its phases in order.
fn steps_follow_the_plan(ran: &Ran) {
    let plan = &ran.ended.plan;
    if plan.capacity.is_none() {
        let order = plan.running_order();
        assert_eq!(ran.begun, order[..ran.begun.len()]);
        let complete = ran.ended.summary.end == End::Complete;
        assert!(!complete || ran.begun.len() == plan.steps.len(), "{:?} of {order:?}", ran.begun);
    } else {
        assert_eq!(ran.begun, (0..ran.begun.len()).collect::<Vec<_>>());
    }
    let mut phases = Vec::new();
    for event in &ran.record.events {
        if let EventKind::Phase { step, phase } = &event.what {
            phases.push((
                ran.begun.iter().position(|begun| begun == step).unwrap(),
                rank(*phase),
                event.at_s,
            ));
        }
    }
    assert!(phases.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1) && a.2 <= b.2), "{phases:?}");
}

fn rank(phase: Phase) -> u8 {
    match phase {
        Phase::Connect => 0,
        Phase::Warmup => 1,
        Phase::Measure => 2,
        Phase::Drain => 3,
    }
}

/// Windows of a step follow each other without a gap, and steps follow each other in time.
fn windows_tile_the_steps(ran: &Ran) {
    let mut end_s = 0.0;
    for &step in &ran.begun {
        let mut windows = ran.of_step(step).peekable();
        let Some(first) = windows.peek() else { continue };
        assert!(first.start_s >= end_s, "step {step} starts at {} and not after {end_s}", first.start_s);
        end_s = first.start_s;
        let mut last = Phase::Warmup;
        for window in windows {
            assert!((window.start_s - end_s).abs() < 1e-6, "{} after {end_s}", window.start_s);
            assert!(rank(window.phase) >= rank(last), "{:?} after {last:?}", window.phase);
            (end_s, last) = (window.start_s + window.width_s, window.phase);
        }
    }
}

/// Conservation over every hand-over: transactions that waited before a window or became due in it were completed,
/// failed or dropped in it, or wait after it.
fn no_transaction_is_lost_or_counted_twice(ran: &Ran) {
    for &step in &ran.begun {
        let mut waiting = 0;
        for window in ran.of_step(step) {
            let arrivals = &window.arrivals;
            let ended = window.transactions + arrivals.failed + arrivals.dropped + arrivals.waiting();
            assert_eq!(waiting + arrivals.intended, ended, "step {step}: {window:#?}");
            waiting = arrivals.waiting();
        }
    }
}

fn is_scripted(code: &str) -> bool {
    ["1213", "1146"].contains(&code)
}

/// The client counted the answers that the server gave, apart from those in flight when a step ended.
fn the_server_counted_as_much(ran: &Ran) {
    let sum = |of: &dyn Fn(&Interval) -> u64| ran.record.intervals.iter().map(of).sum::<u64>();
    let queries = sum(&|i| i.queries);
    let errors = sum(&|i| i.errors.iter().filter(|(code, _)| is_scripted(code)).map(|(_, n)| n).sum());
    let unanswered: u64 =
        ran.begun.iter().filter_map(|step| Some(ran.of_step(*step).last()?.arrivals.in_flight)).sum();
    assert_eq!(sum(&|i| i.transactions), queries, "a point select is one statement");
    let (answered, failed) = (ran.served.answered, ran.served.errors);
    assert!((queries..=queries + unanswered).contains(&answered), "{queries} of {:?}", ran.served);
    assert!((errors..=errors + unanswered).contains(&failed), "{errors} of {:?}", ran.served);
}

/// A reader of the record derives the summary that the run wrote, and its counts are the sums over the windows.
fn summaries_are_the_sums_of_their_windows(ran: &Ran) {
    let mut derived = summarise(&ran.record, OffsetDateTime::UNIX_EPOCH);
    derived.header = ran.ended.summary.header.clone();
    assert_eq!(derived, ran.ended.summary);
    for step in ran.steps() {
        let sum = |of: fn(&Interval) -> u64| ran.measured(step.step).map(of).sum::<u64>();
        assert_eq!(step.transactions, sum(|i| i.transactions));
        assert_eq!(step.queries, sum(|i| i.queries));
        assert_eq!(step.retries, sum(|i| i.retries));
        assert_eq!(step.reconnects, sum(|i| i.reconnects));
        assert_eq!(step.errors.values().sum::<u64>(), sum(|i| i.errors.values().sum()));
        let window_s: f64 = ran.measured(step.step).map(|i| i.width_s).sum();
        assert!((step.window_s - window_s).abs() < 1e-9);
        let per_s = step.transactions as f64 / window_s;
        assert!((step.throughput.transactions_per_s.value - per_s).abs() <= 1e-6 * per_s);
        let count = response(ran, step.step).count();
        assert_eq!((step.response_us.count, step.service_us.count), (count, count));
        if let Some(due) = &step.due {
            let began = due.intended + due.carried;
            let ended = due.done + due.failed + due.waiting;
            assert!(
                began == ended || due.warmup_dropped > 0 && began <= ended + due.warmup_dropped,
                "{due:?}"
            );
        }
    }
}

fn response(ran: &Ran, step: usize) -> Histogram {
    let mut all = Histogram::default();
    for times in ran.measured(step).filter_map(|i| i.operations.get("point_select")) {
        all.merge_data(&times.response).unwrap();
    }
    all
}

/// Every bound is decided as its windows require.
fn bounds_are_decided_by_the_windows(bench: &Bench, ran: &Ran) {
    let summary = &ran.ended.summary;
    if summary.capacity.is_none() {
        assert_eq!(summary.bounds.len(), bench.request.fail_if.len() * summary.steps.len());
    }
    for bound in &summary.bounds {
        let truth = is_broken(ran, bound);
        assert!(truth.is_none_or(|broken| broken == bound.broken), "{bound:#?} in {:#?}", ran.steps());
    }
}

/// Whether a bound is broken; `None` within the resolution of a histogram.
fn is_broken(ran: &Ran, bound: &BoundSummary) -> Option<bool> {
    let sum = |of: &dyn Fn(&Interval) -> u64| ran.measured(bound.step).map(of).sum::<u64>() as f64;
    let (done, errors) = (sum(&|i| i.transactions), sum(&|i| i.errors.values().sum()));
    let times = response(ran, bound.step);
    let above = |found_ns: Option<f64>, limit_ns: f64| {
        let Some(found_ns) = found_ns else { return Some(true) };
        ((found_ns / limit_ns - 1.0).abs() > 0.02).then_some(found_ns > limit_ns)
    };
    match bound.bound.as_str() {
        "errors>0" => Some(errors > 0.0),
        // Without any attempt there is no share.
        "errors>5%" => Some(done + errors == 0.0 || errors > 0.05 * (done + errors)),
        "p99>20ms" => above(times.quantile_ns(0.99), 20e6),
        "p50>8ms" => above(times.quantile_ns(0.5), 8e6),
        "max>300ms" => above(times.max_ns().map(|ns| ns as f64), 300e6),
        "mean>1us" => Some(true),
        "tps<100" => {
            let window_s: f64 = ran.measured(bound.step).map(|i| i.width_s).sum();
            Some(done < 100.0 * window_s)
        }
        other => panic!("{other}"),
    }
}

fn the_verdict_follows_from_the_record(bench: &Bench, ran: &Ran) {
    let last = ran.record.events.last().map(|event| &event.what);
    let Some(EventKind::End { how }) = last else { panic!("{last:?}") };
    assert_eq!(how, &ran.ended.summary.end);
    let verdict = ran.ended.verdict();
    match how {
        End::Complete => {
            let broken = ran.ended.summary.bounds.iter().any(|bound| bound.broken);
            let none_holds = ran.ended.summary.capacity.as_ref().is_some_and(|c| c.rate_per_s.is_none());
            let bad = matches!(verdict, Verdict::Bad(_));
            assert!(bad || matches!(verdict, Verdict::Fine), "{verdict:?}");
            assert!(bad || !(broken || none_holds), "fine in spite of {:?}", ran.ended.summary.bounds);
        }
        End::Interrupted => {
            assert!(bench.simulation.interrupt_at_ns.is_some());
            assert_eq!(verdict, Verdict::Interrupted);
        }
        End::BrokeOff(why) => {
            assert!(matches!(&verdict, Verdict::BrokeOff { why: same, .. } if same == why), "{verdict:?}");
            let server = &bench.simulation.server;
            let faulty = server.errors.is_some() || !server.outages.is_empty() || server.cuts > 0.0;
            assert!(faulty || server.silences > 0.0, "broke off on a sound server: {why}");
        }
        End::Killed | End::Recording => panic!("the record has no end"),
    }
}
