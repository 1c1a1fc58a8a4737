//! Memory bandwidth: reading, writing and copying data that no cache holds, with one thread and with one for each CPU.

use std::convert::Infallible;
use std::hint::black_box;
use std::path::Path;
use std::sync::{Barrier, OnceLock};
use std::thread;

use mydyno_host::Machine;
use mydyno_model::probe::{Measure, ProbeReport};
use mydyno_model::units::show_bytes;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::random::joined;
use crate::report::{Draft, figure};
use crate::slot::{Slot, Window, calibrate, together};
use crate::{Run, ladder, machine, sys};

/// Bytes of an operation.
const PIECE: usize = 256 << 10;
/// Smallest and largest buffer of one thread, in bytes.
const BUFFER: (usize, usize) = (32 << 20, 256 << 20);

#[derive(Debug, Clone, Copy)]
enum Direction {
    Read,
    Write,
    Copy,
}

/// Measures the bandwidth.
///
/// # Errors
/// Too little memory is available.
pub fn run(machine: &Machine, run: &mut Run) -> Result<ProbeReport, ProbeError> {
    run.timing.check()?;
    let cpus = sys::allowed_cpus().len();
    let cache = ladder::last_cache(Path::new("/sys/devices/system/cpu/cpu0/cache"));
    let bytes = (4 * cache).clamp(BUFFER.0, BUFFER.1) / PIECE * PIECE;
    machine::check_memory(machine, (bytes * cpus) as u64)?;
    let mut draft = Draft::begin("memory", &run.timing).with("bytes_a_thread", bytes);
    let mut counts = vec![1, cpus];
    counts.dedup();
    let mut cells = Vec::new();
    for threads in counts {
        for (direction, name, verb) in [
            (Direction::Read, "read", "reading"),
            (Direction::Write, "write", "writing"),
            (Direction::Copy, "copy", "copying"),
        ] {
            // A copy reads and writes each byte once: the result counts the bytes moved, as of a server's memcpy.
            let plural = if threads == 1 { "" } else { "s" };
            let what = format!("{verb} {}, {threads} thread{plural}", show_bytes((bytes * threads) as f64));
            let series = Series::new(format!("{name}.{threads}"), what, Kind::Bytes(PIECE as u64))
                .with("threads", threads)
                .with("bytes", bytes * threads);
            cells.push(Cell::one(series, move |slot| measure(slot, direction, threads, bytes)));
        }
    }
    let outcome = course::run(cells, run);
    draft.meaning = meaning(&outcome.measures, cpus);
    Ok(draft.finish(outcome))
}

fn measure(
    slot: &Slot,
    direction: Direction,
    threads: usize,
    bytes: usize,
) -> Result<Vec<Window>, ProbeError> {
    // All memory is touched before the warm-up begins, which is common to all threads.
    let ready = Barrier::new(threads);
    let begun = OnceLock::new();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut buffer = vec![1u64; bytes / 8];
                    let mut at = 0;
                    let mut batch = |pieces| {
                        for _ in 0..pieces {
                            at = piece(direction, &mut buffer, at);
                        }
                        Ok::<(), Infallible>(())
                    };
                    ready.wait();
                    let batches = begun.get_or_init(|| {
                        let Ok(size) = calibrate(&mut batch);
                        slot.batches(size)
                    });
                    slot.batched_on(batches, |pieces| {
                        let Ok(()) = batch(pieces);
                        Ok(())
                    })
                })
            })
            .collect();
        let all: Result<Vec<_>, _> = workers.into_iter().map(joined).collect();
        Ok(together(all?))
    })
}

/// Processes one piece and returns the start of the next.
fn piece(direction: Direction, buffer: &mut [u64], at: usize) -> usize {
    let words = PIECE / 8;
    let half = buffer.len() / 2;
    match direction {
        Direction::Read => {
            let sum = buffer[at..at + words].iter().fold(0u64, |sum, word| sum.wrapping_add(*word));
            black_box(sum);
        }
        Direction::Write => {
            buffer[at..at + words].fill(at as u64);
            black_box(&mut buffer[at]);
        }
        Direction::Copy => {
            // Copies from the first half to the second.
            let at = at % half;
            let (from, to) = buffer.split_at_mut(half);
            let words = words.min(half - at);
            to[at..at + words].copy_from_slice(&from[at..at + words]);
            black_box(&mut to[at]);
        }
    }
    if at + 2 * words > buffer.len() { 0 } else { at + words }
}

fn meaning(measures: &[Measure], cpus: usize) -> Vec<String> {
    let value = |id: &str| figure(measures, id, "bytes_per_s").map(|estimate| estimate.value);
    let mut meaning = Vec::new();
    if let Some(one) = value("read.1") {
        meaning.push(format!(
            "A scan of rows that are in the buffer pool cannot pass {}/s on one CPU, whatever the statement does with them.",
            show_bytes(one)
        ));
    }
    if let (Some(one), Some(all)) = (value("read.1"), value(&format!("read.{cpus}")))
        && cpus > 1
    {
        meaning.push(format!(
            "{cpus} CPUs together read {:.1} times as much as one: {}.",
            all / one,
            if all < 0.7 * cpus as f64 * one {
                "memory, not CPUs, bounds parallel scans here"
            } else {
                "memory keeps up with the CPUs"
            }
        ));
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_go_through_the_whole_buffer_and_begin_again() {
        let mut buffer = vec![1u64; 4 * PIECE / 8];
        let mut starts = vec![];
        let mut at = 0;
        for _ in 0..5 {
            starts.push(at * 8 / PIECE);
            at = piece(Direction::Write, &mut buffer, at);
        }
        assert_eq!(starts, [0, 1, 2, 3, 0]);
        buffer[..PIECE / 8].fill(9);
        piece(Direction::Copy, &mut buffer, 0);
        assert!(buffer[2 * PIECE / 8..3 * PIECE / 8].iter().all(|word| *word == 9));
    }
}
