//! The cost of reading the clock. A server reads it for each statement, and for each wait that it instruments.

use std::fs;
use std::hint::black_box;

use mydyno_model::probe::{Measure, NotMeasured, ProbeReport};
use mydyno_model::units::show_us;

use crate::Run;
use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::report::{Draft, figure};

/// Costs from this many nanoseconds on indicate a system call; reading the clock in user space is faster.
const SYSTEM_CALL_NS: f64 = 100.0;

/// Measures the cost of each clock.
///
/// # Errors
/// Invalid durations or repetitions.
pub fn run(run: &mut Run) -> Result<ProbeReport, ProbeError> {
    run.timing.check()?;
    let source = |file: &str| {
        let path = format!("/sys/devices/system/clocksource/clocksource0/{file}");
        fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default()
    };
    let (current, available) = (source("current_clocksource"), source("available_clocksource"));
    let mut draft = Draft::begin("clock", &run.timing)
        .with("clock_source", current.clone())
        .with("clock_sources_available", available.clone());
    let mut cells: Vec<Cell> = [
        ("monotonic", "clock_gettime(CLOCK_MONOTONIC)", libc::CLOCK_MONOTONIC),
        ("realtime", "clock_gettime(CLOCK_REALTIME)", libc::CLOCK_REALTIME),
        ("monotonic_coarse", "clock_gettime(CLOCK_MONOTONIC_COARSE)", libc::CLOCK_MONOTONIC_COARSE),
        ("thread_cpu", "clock_gettime(CLOCK_THREAD_CPUTIME_ID)", libc::CLOCK_THREAD_CPUTIME_ID),
    ]
    .map(|(id, what, clock)| cell(id, what, move || gettime(clock)))
    .into();
    cells.push(cell("system_call", "the same as a system call, past the vDSO", system_call));
    cells.extend(counter());
    let mut outcome = course::run(cells, run);
    if !cfg!(target_arch = "x86_64") {
        let why = "only x86-64 has this instruction".to_owned();
        outcome.not_measured.push(NotMeasured { id: "rdtsc".to_owned(), why });
    }
    draft.meaning = meaning(&outcome.measures, &current, &available);
    Ok(draft.finish(outcome))
}

fn cell<'a>(id: &str, what: &str, read: impl Fn() -> u64 + 'a) -> Cell<'a> {
    Cell::one(Series::new(id, what, Kind::Batched), move |slot| {
        slot.batched(|times| {
            for _ in 0..times {
                black_box(read());
            }
            Ok(())
        })
    })
}

fn gettime(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for writing; a clock that does not exist is an error that changes nothing.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    u64::try_from(now.tv_nsec).unwrap_or(0)
}

fn system_call() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: clock_gettime(2) by number, with a clock and a place for the answer.
    unsafe { libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    u64::try_from(now.tv_nsec).unwrap_or(0)
}

#[cfg(target_arch = "x86_64")]
fn counter<'a>() -> Option<Cell<'a>> {
    // SAFETY: rdtsc reads a counter; Linux permits it unless a process disables it for itself.
    Some(cell("rdtsc", "the processor's own counter (rdtsc)", || unsafe { std::arch::x86_64::_rdtsc() }))
}

#[cfg(not(target_arch = "x86_64"))]
fn counter<'a>() -> Option<Cell<'a>> {
    None
}

fn meaning(measures: &[Measure], current: &str, available: &str) -> Vec<String> {
    let Some(ns) = figure(measures, "monotonic", "p50_ns").map(|estimate| estimate.value) else {
        return vec![];
    };
    let mut meaning = vec![format!(
        "Reading the clock costs {}: an instrumented wait, which reads it twice, {}.",
        show_us(ns / 1e3),
        show_us(2.0 * ns / 1e3)
    )];
    if ns > SYSTEM_CALL_NS {
        let better = available.split_whitespace().any(|name| name == "tsc") && current != "tsc";
        let remedy = if better { "; tsc is available" } else { "" };
        meaning.push(format!(
            "That is a system call's price: the clock source {current} cannot be read in user space{remedy}. Performance schema and \
             EXPLAIN ANALYZE cost accordingly more on this machine.",
        ));
    }
    meaning
}
