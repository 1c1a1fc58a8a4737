//! The load engine against a scripted server: what a real one does not do on request.
#![allow(clippy::unwrap_used)]

mod script;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::clock::Clock;
use mydyno_load::{End, LoadError, Phases, StepEvent, StepSpec, run_step};
use mydyno_model::record::{Interval, Phase};
use mydyno_wire::{Client, ConnectOptions, Endpoint, WireError};
use mydyno_workload::Options;
use mydyno_workload::oltp::{Mix, OPTIONS, Oltp};

use script::{Answer, Script};

fn point_select() -> Oltp {
    Oltp::new(Mix::PointSelect, &Options::resolve("w", OPTIONS, &[]).unwrap(), 1).unwrap()
}

/// Runs a step of `measure` on a scripted server.
fn run(answer: Answer, connections: usize, measure: Duration) -> (Result<End, LoadError>, Vec<Interval>) {
    let script = Script::start(answer);
    let workload = point_select();
    let connect = || -> Result<Client, WireError> {
        Client::connect(&ConnectOptions::new(Endpoint::Unix(script.socket()), "u"))
    };
    let spec = StepSpec {
        number: 0,
        workload: &workload,
        connections,
        workers: 2,
        phases: Phases { warmup: Duration::ZERO, measure },
        connect: &connect,
    };
    let mut intervals = Vec::new();
    let end = run_step(&Clock::start(), &spec, &AtomicBool::new(false), &mut |event| {
        if let StepEvent::Interval(interval) = event {
            intervals.push(*interval);
        }
    });
    (end, intervals)
}

fn sum(intervals: &[Interval], of: fn(&Interval) -> u64) -> u64 {
    intervals.iter().map(of).sum()
}

#[test]
fn answers_are_counted_once_each() {
    let (end, intervals) = run(Answer::Whole, 4, Duration::from_millis(600));
    assert!(matches!(end, Ok(End::Complete(s)) if s.unanswered == 0 && s.lost == 0), "{end:?}");
    let transactions = sum(&intervals, |i| i.transactions);
    assert!(transactions > 0);
    let recorded: u64 =
        intervals.iter().filter_map(|i| i.operations.get("point_select")).map(|o| o.response.count).sum();
    assert_eq!(transactions, recorded);
    assert_eq!(intervals.last().map(|i| i.phase), Some(Phase::Drain));
}

#[test]
fn a_close_in_the_middle_of_an_answer_is_noticed_at_once() {
    // Half of the answer and the close arrive together, so the kernel reports them as one event.
    let (end, intervals) = run(Answer::HalfThenClose { after: 3 }, 4, Duration::from_secs(60));
    let Ok(End::AllLost { why }) = end else { panic!("{end:?}") };
    assert!(why.contains("waiting for an answer"), "{why}");
    assert_eq!(sum(&intervals, |i| i.errors.get("2013").copied().unwrap_or(0)), 4);
    assert_eq!(sum(&intervals, |i| i.transactions), 12);
}

#[test]
fn a_load_that_never_succeeds_ends_with_its_commonest_error() {
    let (end, _) = run(Answer::Error, 2, Duration::from_secs(60));
    let Ok(End::Hopeless { why }) = end else { panic!("{end:?}") };
    assert!(why.contains("error 1146") && why.contains("no such table"), "{why}");
}

#[test]
fn a_refused_connection_lets_all_workers_go() {
    let script = Script::start(Answer::Whole);
    let workload = point_select();
    let opened = std::sync::atomic::AtomicUsize::new(0);
    let connect = || -> Result<Client, WireError> {
        if opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 5 {
            return Err(WireError::Unsupported("refused by the test".to_owned()));
        }
        Client::connect(&ConnectOptions::new(Endpoint::Unix(script.socket()), "u"))
    };
    let phases = Phases { warmup: Duration::ZERO, measure: Duration::from_secs(60) };
    let spec =
        StepSpec { number: 0, workload: &workload, connections: 64, workers: 4, phases, connect: &connect };
    let end = run_step(&Clock::start(), &spec, &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(&end, Err(LoadError::Connect { .. })), "{end:?}");
}

#[test]
fn a_worker_that_panics_is_an_error_and_not_a_hang() {
    let workload = point_select();
    let connect = || -> Result<Client, WireError> { panic!("a defect") };
    let phases = Phases { warmup: Duration::ZERO, measure: Duration::from_secs(60) };
    let spec =
        StepSpec { number: 0, workload: &workload, connections: 8, workers: 4, phases, connect: &connect };
    let end = run_step(&Clock::start(), &spec, &AtomicBool::new(false), &mut |_| {});
    assert!(matches!(&end, Err(LoadError::Worker(why)) if why.contains("a defect")), "{end:?}");
}
