//! Runs during which this machine did not stand still: bounds on times say nothing of others.

use std::time::Duration;

use crate::pulse::with_pulse;

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
    }
    run()
}

#[test]
fn a_run_is_given_with_what_it_returned_and_its_panics_are_its_own() {
    let runs = std::cell::Cell::new(0);
    let last = undisturbed(|| runs.replace(runs.get() + 1));
    assert!(last < RUNS && last + 1 == runs.get(), "run {last} of {}", runs.get());
    assert!(std::panic::catch_unwind(|| undisturbed::<()>(|| panic!("a defect"))).is_err());
}
