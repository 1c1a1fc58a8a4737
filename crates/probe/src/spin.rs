//! The cost of spinning: the pause between two checks of a lock, atomic operations, a cache line that moves between
//! CPUs.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use mydyno_model::probe::{Measure, NotMeasured, ProbeReport};
use mydyno_model::units::show_us;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::report::{Draft, figure};
use crate::slot::{Slot, Window};
use crate::{Run, sys};

/// MySQL's defaults: the maximum delay between two checks as a multiple of the pauses of the multiplier, and the number
/// of checks.
const DELAY: f64 = 6.0;
const MULTIPLIER: f64 = 50.0;
const LOOPS: f64 = 30.0;

/// Measures the cost of spinning.
///
/// # Errors
/// Invalid durations or repetitions.
pub fn run(run: &mut Run) -> Result<ProbeReport, ProbeError> {
    run.timing.check()?;
    let mut draft = Draft::begin("spin", &run.timing);
    let word = AtomicU64::new(0);
    let word = &word;
    let repeated = |id: &str, what: &str, once: &'static (dyn Fn(&AtomicU64) + Sync)| {
        Cell::one(Series::new(id, what, Kind::Batched), move |slot: &Slot| {
            slot.batched(|times| {
                for _ in 0..times {
                    once(word);
                }
                Ok(())
            })
        })
    };
    let mut cells = vec![
        repeated("pause", "the pause of a spin loop (PAUSE, YIELD or ISB)", &|_| spin_loop()),
        repeated("fetch_add", "an atomic addition on a line of one's own", &|word| {
            word.fetch_add(1, Ordering::SeqCst);
        }),
        repeated("compare_exchange", "an atomic exchange on a line of one's own", &|word| {
            let now = word.load(Ordering::Relaxed);
            let _ = word.compare_exchange(now, now + 1, Ordering::SeqCst, Ordering::Relaxed);
        }),
    ];
    let cpus = sys::allowed_cpus();
    if let [first, .., last] = cpus[..] {
        let what = format!("a line that goes from CPU {first} to CPU {last} and back");
        let series = Series::new("line.round_trip", what, Kind::Batched);
        cells.push(Cell::one(series, move |slot| round_trips(slot, first, last)));
    }
    let mut outcome = course::run(cells, run);
    if cpus.len() < 2 {
        outcome.not_measured.push(NotMeasured {
            id: "line.round_trip".to_owned(),
            why: "this process may run on one CPU only: give it two".to_owned(),
        });
    }
    draft.meaning = meaning(&outcome.measures, cpus.len());
    Ok(draft.finish(outcome))
}

fn round_trips(slot: &Slot, first: usize, last: usize) -> Result<Vec<Window>, ProbeError> {
    let (turn, over) = (AtomicU64::new(0), AtomicBool::new(false));
    let failed = ProbeError::system("keep a thread on one CPU");
    thread::scope(|scope| {
        scope.spawn(|| {
            // Without a CPU of its own the other thread would be slow, not wrong.
            let _ = sys::stay_on(last);
            while !over.load(Ordering::Relaxed) {
                if turn.load(Ordering::Acquire) % 2 == 1 {
                    turn.fetch_add(1, Ordering::Release);
                }
                spin_loop();
            }
        });
        let measured = thread::scope(|inner| {
            let worker = inner.spawn(|| {
                sys::stay_on(first).map_err(&failed)?;
                slot.batched(|times| {
                    for _ in 0..times {
                        let mine = turn.fetch_add(1, Ordering::AcqRel) + 2;
                        while turn.load(Ordering::Acquire) != mine {
                            spin_loop();
                        }
                    }
                    Ok(())
                })
            });
            crate::random::joined(worker)
        });
        over.store(true, Ordering::Relaxed);
        measured
    })
}

fn meaning(measures: &[Measure], cpus: usize) -> Vec<String> {
    let Some(ns) = figure(measures, "pause", "p50_ns").map(|estimate| estimate.value) else {
        return vec![];
    };
    let longest = DELAY * MULTIPLIER * ns / 1e3;
    let mut meaning = vec![format!(
        "With MySQL's defaults (innodb_spin_wait_delay=6, innodb_spin_wait_pause_multiplier=50) a wait between two looks at a latch is up \
         to {}, and {LOOPS:.0} of them (innodb_sync_spin_loops) up to {} of CPU time before a thread sleeps. MariaDB measures the pause \
         when it starts and spins accordingly.",
        show_us(longest),
        show_us(LOOPS * longest)
    )];
    if cpus <= 4 {
        meaning.push(format!(
            "With {cpus} CPUs the thread that holds a latch is often not running: spinning longer takes the CPU from it."
        ));
    }
    meaning
}
