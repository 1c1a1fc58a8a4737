//! The load engine against a scripted server: what a real one does not do on request.
#![allow(clippy::unwrap_used)]

mod arrivals;
#[allow(dead_code)]
#[path = "../../../wire/tests/it/certificates.rs"]
mod certificates;
mod prepares;
mod reconnecting;
mod script;
#[allow(dead_code)]
#[path = "../../../wire/tests/it/server.rs"]
mod server;
mod sessions;
#[path = "../../../../tests/template.rs"]
mod template;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use mydyno_load::clock::MonotonicClock;
use mydyno_load::{End, LoadError, StepEvent, StepSpec, Warmup, run_step};
use mydyno_model::plan::{Arrivals, Backend, ConnectionPlan, StopOnError, WaitPlan};
use mydyno_model::record::{Interval, Phase};
use mydyno_wire::{Client, ConnectOptions, Endpoint, WireError};
use mydyno_workload::Options;
use mydyno_workload::oltp::{Mix, OPTIONS, Oltp};

use script::{Answer, Script};

fn point_select() -> Oltp {
    Oltp::new(Mix::PointSelect, &Options::resolve("w", OPTIONS, &[]).unwrap(), 1).unwrap()
}

/// A step on a scripted server.
#[derive(Clone)]
struct Step {
    connections: usize,
    workers: usize,
    arrivals: Arrivals,
    warmup: Duration,
    measure: Duration,
    keep: ConnectionPlan,
    wait: WaitPlan,
    stop_on_error: Option<StopOnError>,
}

impl Default for Step {
    /// A closed loop of four connections that are not opened again.
    fn default() -> Self {
        Self {
            connections: 4,
            workers: 2,
            arrivals: Arrivals::CLOSED,
            warmup: Duration::ZERO,
            measure: Duration::from_millis(600),
            keep: ConnectionPlan { reconnect: false, ..ConnectionPlan::default() },
            wait: WaitPlan { backend: backend(), ..WaitPlan::default() },
            stop_on_error: None,
        }
    }
}

/// Says which event loop the tests of this process use.
const BACKEND: &str = "MYDYNO_TEST_BACKEND";

fn backend() -> Backend {
    if std::env::var_os(BACKEND).is_some() { Backend::IoUring } else { Backend::Epoll }
}

/// All tests of this binary again, in a process of its own.
#[test]
fn the_same_holds_on_io_uring() {
    if std::env::var_os(BACKEND).is_some() {
        return;
    }
    if let Err(why) = mydyno_load::available(Backend::IoUring) {
        eprintln!("not tried: {why}");
        return;
    }
    let tests = std::env::current_exe().unwrap();
    let output =
        std::process::Command::new(tests).env(BACKEND, "1").arg("--test-threads=2").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

type Ran = (Result<End, LoadError>, Vec<Interval>);

impl Step {
    fn run(&self, answer: Answer) -> Ran {
        self.run_on(&Script::start(answer))
    }

    fn run_on(&self, script: &Script) -> Ran {
        let connect = || -> Result<Client, WireError> {
            Client::connect(&ConnectOptions::new(Endpoint::Unix(script.socket()), "u"))
        };
        self.run_with(&connect, Warmup::Fixed(self.warmup))
    }

    fn run_with(&self, connect: &(dyn Fn() -> Result<Client, WireError> + Sync), warmup: Warmup<'_>) -> Ran {
        let workload = point_select();
        let spec = StepSpec {
            number: 0,
            workload: &workload,
            connections: self.connections,
            workers: self.workers,
            arrivals: &self.arrivals,
            seed: 1,
            warmup,
            measure: self.measure,
            keep: &self.keep,
            wait: &self.wait,
            stop_on_error: self.stop_on_error.as_ref(),
            connect,
        };
        let mut intervals = Vec::new();
        let end = run_step(&MonotonicClock::start(), &spec, &AtomicBool::new(false), &mut |event| {
            if let StepEvent::Interval(interval) = event {
                intervals.push(*interval);
            }
        });
        check_books(&intervals);
        (end, intervals)
    }
}

/// Conservation: waiting + due = done + given up + dropped + still waiting.
fn check_books(intervals: &[Interval]) {
    let mut waiting = 0;
    for i in intervals {
        let ended = i.transactions + i.arrivals.failed + i.arrivals.dropped + i.arrivals.waiting();
        assert_eq!(waiting + i.arrivals.intended, ended, "{i:#?}");
        waiting = i.arrivals.waiting();
    }
}

fn sum(intervals: &[Interval], of: fn(&Interval) -> u64) -> u64 {
    intervals.iter().map(of).sum()
}

#[test]
fn answers_are_counted_once_each() {
    let (end, intervals) = Step::default().run(Answer::Whole);
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
    let step = Step { measure: Duration::from_secs(60), ..Step::default() };
    let (end, intervals) = step.run(Answer::HalfThenClose { after: 3 });
    let Ok(End::AllLost { why }) = end else { panic!("{end:?}") };
    assert!(why.contains("waiting for an answer"), "{why}");
    assert_eq!(sum(&intervals, |i| i.errors.get("2013").copied().unwrap_or(0)), 4);
    assert_eq!(sum(&intervals, |i| i.transactions), 12);
}

#[test]
fn a_load_that_never_succeeds_ends_with_its_commonest_error() {
    let step = Step { connections: 2, measure: Duration::from_secs(60), ..Step::default() };
    let (end, _) = step.run(Answer::Error);
    let Ok(End::Hopeless { why }) = end else { panic!("{end:?}") };
    assert!(why.contains("error 1146") && why.contains("no such table"), "{why}");
}

#[test]
fn a_refused_connection_lets_all_workers_go() {
    let script = Script::start(Answer::Whole);
    let opened = std::sync::atomic::AtomicUsize::new(0);
    let connect = || -> Result<Client, WireError> {
        if opened.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 5 {
            return Err(WireError::Unsupported("refused by the test".to_owned()));
        }
        Client::connect(&ConnectOptions::new(Endpoint::Unix(script.socket()), "u"))
    };
    let step = Step { connections: 64, measure: Duration::from_secs(60), ..Step::default() };
    let (end, _) = step.run_with(&connect, Warmup::Fixed(Duration::ZERO));
    assert!(matches!(&end, Err(LoadError::Connect { .. })), "{end:?}");
}

#[test]
fn a_worker_that_panics_is_an_error_and_not_a_hang() {
    let connect = || -> Result<Client, WireError> { panic!("a defect") };
    let step = Step { connections: 8, measure: Duration::from_secs(60), ..Step::default() };
    let (end, _) = step.run_with(&connect, Warmup::Fixed(Duration::ZERO));
    assert!(matches!(&end, Err(LoadError::Worker(why)) if why.contains("a defect")), "{end:?}");
}

#[test]
fn an_error_that_the_user_wants_none_of_ends_the_load() {
    let forbidding = |except| Step {
        connections: 2,
        measure: Duration::from_secs(60),
        stop_on_error: Some(StopOnError { except }),
        ..Step::default()
    };
    let (end, _) = forbidding(vec![]).run(Answer::Error);
    let Ok(End::Forbidden { why }) = end else { panic!("{end:?}") };
    assert_eq!(why, "1146 (42S02) in point_select: no such table");
    let (end, _) = forbidding(vec![1146]).run(Answer::Error);
    assert!(matches!(end, Ok(End::Hopeless { .. })), "{end:?}");
}

#[test]
fn a_warmup_ends_when_it_is_called_steady_and_its_limit_at_the_latest() {
    let script = Script::start(Answer::After(Duration::from_millis(1)));
    let connect = || -> Result<Client, WireError> {
        Client::connect(&ConnectOptions::new(Endpoint::Unix(script.socket()), "u"))
    };
    let step = Step { measure: Duration::from_secs(1), ..Step::default() };
    let of = |phase, intervals: &[Interval]| intervals.iter().filter(|i| i.phase == phase).count();
    let limit = Duration::from_secs(60);
    let after_one = |seen: &[Interval]| !seen.is_empty();
    let (end, intervals) = step.run_with(&connect, Warmup::Steady { limit, is_steady: &after_one });
    assert!(matches!(end, Ok(End::Complete(_))), "{end:?}");
    // One window to be judged; two more, so that no worker is surprised; others if this machine stood still.
    assert!((2..10).contains(&of(Phase::Warmup, &intervals)), "{}", of(Phase::Warmup, &intervals));
    assert_eq!(of(Phase::Measure, &intervals), 1);

    let limit = Duration::from_secs(2);
    let (_, intervals) = step.run_with(&connect, Warmup::Steady { limit, is_steady: &|_| false });
    assert_eq!((of(Phase::Warmup, &intervals), of(Phase::Measure, &intervals)), (2, 1));
}

#[test]
fn answers_with_a_wrong_sequence_number_are_accepted_and_counted() {
    let (end, intervals) = Step::default().run(Answer::Misnumbered);
    let Ok(End::Complete(shortfalls)) = end else { panic!("{end:?}") };
    let queries: u64 = intervals.iter().map(|interval| interval.queries).sum();
    assert!(queries > 0);
    assert_eq!(shortfalls.misnumbered, queries);
}
