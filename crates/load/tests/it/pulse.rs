//! A pulse beside a run: whether this machine stood still meanwhile, of which bounds on times say nothing.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(5);
/// A beat that comes later than this disturbs a run.
const LATE: Duration = Duration::from_millis(50);
/// Runs at the most.
const RUNS: usize = 10;

/// A run during which this machine did not stand still. The last of ten is given as it is: a load that itself stops the
/// machine is to be judged too.
pub fn undisturbed<T>(run: impl Fn() -> T) -> T {
    for _ in 1..RUNS {
        let (result, late) = with_pulse(&run);
        if late <= LATE {
            return result;
        }
        eprintln!("this machine stood still for {late:?}: once more");
    }
    run()
}

/// Runs it, and tells by how much a thread beside it overslept at worst.
fn with_pulse<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    // A run that panics drops its end, and so ends the pulse.
    let (running, over) = channel::<()>();
    std::thread::scope(|scope| {
        let pulse = scope.spawn(move || {
            let mut worst = Duration::ZERO;
            loop {
                let began = Instant::now();
                let beat = over.recv_timeout(BEAT);
                worst = worst.max(began.elapsed().saturating_sub(BEAT));
                if beat == Err(RecvTimeoutError::Disconnected) {
                    return worst;
                }
            }
        });
        let result = run();
        drop(running);
        (result, pulse.join().unwrap())
    })
}

#[test]
fn a_run_is_given_with_what_it_returned_and_its_panics_are_its_own() {
    let runs = std::cell::Cell::new(0);
    let last = undisturbed(|| runs.replace(runs.get() + 1));
    assert!(last < RUNS && last + 1 == runs.get(), "run {last} of {}", runs.get());
    assert!(std::panic::catch_unwind(|| undisturbed::<()>(|| panic!("a defect"))).is_err());
}
