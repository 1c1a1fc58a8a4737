//! Connections that are lost, given up, held idle, or opened slowly.

use std::time::{Duration, Instant};

use mydyno_load::End;
use mydyno_model::plan::{Arrivals, ConnectionPlan, Spacing, Spread, Think};

use crate::script::{Answer, Script};
use crate::{Step, sum};

/// Time for many connections, also on a machine that stands still for a part of it.
const LONG: Duration = Duration::from_secs(3);

/// A closed loop that leaves most of the machine to others.
const THINKING: Arrivals =
    Arrivals::Closed { think: Some(Think { mean_s: 0.002, spread: Spread::Constant }) };

/// A server that restarts under the four connections of a step.
fn restart(away: Duration) -> Answer {
    Answer::Restart { after: 100, away, connections: 4 }
}

#[test]
fn a_lost_connection_is_opened_again_and_the_load_goes_on() {
    let step = Step { arrivals: THINKING, measure: LONG, keep: ConnectionPlan::default(), ..Step::default() };
    let (end, intervals) = step.run(Answer::HalfThenClose { after: 3 });
    let Ok(End::Complete(shortfalls)) = end else { panic!("{end:?}") };
    let lost = sum(&intervals, |i| i.errors.get("2013").copied().unwrap_or(0));
    let reopened = sum(&intervals, |i| i.reconnects);
    assert!(reopened > 4, "{reopened}");
    assert_eq!(lost, reopened + shortfalls.lost as u64);
    assert_eq!(sum(&intervals, |i| i.arrivals.failed), lost);
    assert_eq!(sum(&intervals, |i| i.connect.count), reopened);
    assert!(sum(&intervals, |i| i.transactions) > 12);
}

#[test]
fn a_server_that_restarts_is_waited_for() {
    for arrivals in [THINKING, Arrivals::open(500.0, Spacing::Constant)] {
        let step = Step { arrivals, measure: LONG, keep: ConnectionPlan::default(), ..Step::default() };
        let (end, intervals) = step.run(restart(Duration::from_millis(200)));
        assert!(matches!(end, Ok(End::Complete(s)) if s.lost == 0), "{end:?}");
        assert_eq!(sum(&intervals, |i| i.reconnects), 4);
        assert!(sum(&intervals, |i| i.errors.get("2003").copied().unwrap_or(0)) > 0);
        assert!(sum(&intervals, |i| i.transactions) > 200);
    }
}

#[test]
fn a_server_that_is_gone_at_the_end_is_told() {
    let step = Step { measure: LONG, keep: ConnectionPlan::default(), ..Step::default() };
    let (end, intervals) = step.run(restart(Duration::from_secs(600)));
    assert!(matches!(end, Ok(End::Complete(s)) if s.lost == 4), "{end:?}");
    assert!(sum(&intervals, |i| i.transactions) > 0);
}

#[test]
fn connections_that_are_given_up_after_some_transactions_are_timed_alone() {
    let keep = ConnectionPlan { reconnect_every: Some(5), ..ConnectionPlan::default() };
    let script = Script::start(Answer::Whole);
    let step = Step { arrivals: THINKING, measure: LONG, keep, ..Step::default() };
    let (end, intervals) = step.run_on(&script);
    assert!(matches!(end, Ok(End::Complete(s)) if s.lost == 0), "{end:?}");
    let opened = sum(&intervals, |i| i.connect.count);
    let transactions = sum(&intervals, |i| i.transactions);
    assert!(opened > 0);
    assert_eq!(sum(&intervals, |i| i.reconnects + i.errors.values().sum::<u64>()), 0);
    // Every connection but the last of each of the four has had its five.
    assert!(transactions >= opened * 5 && transactions <= (opened + 4 + 4) * 5, "{transactions} {opened}");
}

#[test]
fn idle_connections_are_opened_beside_those_that_carry_load() {
    let keep = ConnectionPlan { idle: 5, reconnect: false, ..ConnectionPlan::default() };
    let script = Script::start(Answer::Whole);
    let (end, _) = Step { keep, ..Step::default() }.run_on(&script);
    assert!(matches!(end, Ok(End::Complete(_))), "{end:?}");
    assert_eq!(script.accepted(), 9);
}

#[test]
fn connections_are_opened_no_faster_than_they_may() {
    let keep = ConnectionPlan { rate_per_s: Some(50.0), reconnect: false, ..ConnectionPlan::default() };
    let began = Instant::now();
    let (end, _) = Step { connections: 21, keep, ..Step::default() }.run(Answer::Whole);
    assert!(matches!(end, Ok(End::Complete(_))), "{end:?}");
    assert!(began.elapsed() >= Duration::from_millis(400 + 600));
}
