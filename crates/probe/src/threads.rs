//! Threads, mutexes and context switches: the costs of each connection's thread and of each latch in a server.

use std::cell::UnsafeCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::thread;

use mydyno_model::probe::{Measure, NotMeasured, ProbeReport};
use mydyno_model::units::show_us;

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::random::joined;
use crate::report::{Draft, figure, rate};
use crate::slot::{Slot, Window, calibrate, together};
use crate::{Run, sys};

/// The measures to take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Numbers of threads that contend for one mutex.
    pub threads: Vec<usize>,
}

/// Measures these costs.
///
/// # Errors
/// Invalid options.
pub fn run(options: &Options, run: &mut Run) -> Result<ProbeReport, ProbeError> {
    run.timing.check()?;
    if options.threads.is_empty() || options.threads.iter().any(|n| *n < 2 || *n > 1024) {
        let problem = "numbers from 2 to 1024, as in 2,16,64".to_owned();
        return Err(ProbeError::Option { option: "threads", problem });
    }
    let mut draft = Draft::begin("threads", &run.timing);
    let mutex = Mutex::new();
    let mutex = &mutex;
    let cpus = sys::allowed_cpus();
    let mut cells = vec![
        Cell::one(Series::new("thread", "a thread that is started and ends at once", Kind::Timed), |slot| {
            slot.timed(|| {
                let started = thread::Builder::new().stack_size(256 << 10).spawn(|| {});
                started.map_err(ProbeError::system("start a thread"))?.join().unwrap_or(());
                Ok(())
            })
        }),
        Cell::one(
            Series::new("mutex.1", "a POSIX mutex that nobody else wants: lock and unlock", Kind::Batched),
            move |slot| slot.batched(|times| locked(mutex, times)),
        ),
        round_trip("switch.one_cpu", "a byte to another thread on the same CPU and back", cpus[0], cpus[0]),
    ];
    if let [first, .., last] = cpus[..] {
        let what = "a byte to a thread on another CPU and back";
        cells.push(round_trip("switch.two_cpus", what, first, last));
    }
    for threads in &options.threads {
        let threads = *threads;
        let what = format!("a POSIX mutex that {threads} threads want: time a turn of each, lock and unlock");
        let series = Series::new(format!("mutex.{threads}"), what, Kind::Batched).with("threads", threads);
        cells.push(Cell::one(series, move |slot| wanted_by(mutex, threads, slot)));
    }
    let mut outcome = course::run(cells, run);
    if cpus.len() < 2 {
        outcome.not_measured.push(NotMeasured {
            id: "switch.two_cpus".to_owned(),
            why: "this process may run on one CPU only: give it two".to_owned(),
        });
    }
    draft.meaning = meaning(&outcome.measures);
    Ok(draft.finish(outcome))
}

/// The C library's mutex, which servers use, instead of Rust's.
struct Mutex(UnsafeCell<libc::pthread_mutex_t>, UnsafeCell<u64>);

// SAFETY: the counter is only touched between lock and unlock.
unsafe impl Sync for Mutex {}

impl Mutex {
    fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), UnsafeCell::new(0))
    }

    fn turn(&self) {
        // SAFETY: the mutex is initialised and stays where it is while it is borrowed; what it guards is touched by its holder
        // only.
        unsafe {
            libc::pthread_mutex_lock(self.0.get());
            *self.1.get() += 1;
            libc::pthread_mutex_unlock(self.0.get());
        }
    }
}

fn locked(mutex: &Mutex, times: u64) -> Result<(), ProbeError> {
    (0..times).for_each(|_| mutex.turn());
    Ok(())
}

fn wanted_by(mutex: &Mutex, threads: usize, slot: &Slot) -> Result<Vec<Window>, ProbeError> {
    let size = calibrate(|times| locked(mutex, times))?;
    thread::scope(|scope| {
        let batches = slot.batches(size);
        let mut workers = Vec::new();
        for _ in 0..threads {
            let work = move || slot.batched_on(&batches, |times| locked(mutex, times));
            let spawned = thread::Builder::new().stack_size(256 << 10).spawn_scoped(scope, work);
            workers.push(spawned.map_err(ProbeError::system("start a thread"))?);
        }
        let all: Result<Vec<_>, _> = workers.into_iter().map(joined).collect();
        Ok(together(all?))
    })
}

fn round_trip<'a>(id: &str, what: &str, here: usize, there: usize) -> Cell<'a> {
    Cell::one(Series::new(id, what, Kind::Timed), move |slot| {
        let failed = ProbeError::system("set up two threads");
        let (mut from_us, mut to_them) = pipe().map_err(&failed)?;
        let (mut from_them, mut to_us) = pipe().map_err(&failed)?;
        thread::scope(|scope| {
            scope.spawn(move || {
                let _ = sys::stay_on(there);
                let mut byte = [0u8];
                // Ends when the other side closes its pipe.
                while matches!(from_us.read(&mut byte), Ok(1)) {
                    if to_us.write_all(&byte).is_err() {
                        break;
                    }
                }
            });
            let worker = scope.spawn(move || {
                sys::stay_on(here).map_err(ProbeError::system("keep a thread on one CPU"))?;
                slot.timed(|| {
                    let mut byte = [0u8];
                    let trip = to_them.write_all(&byte).and_then(|()| from_them.read_exact(&mut byte));
                    trip.map_err(ProbeError::system("send a byte to another thread"))
                })
            });
            joined(worker)
        })
    })
}

/// Both ends of a pipe, for reading and for writing.
fn pipe() -> io::Result<(File, File)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: both descriptors are new and nothing else owns them.
    let [read, write] = ends.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Ok((read.into(), write.into()))
}

fn meaning(measures: &[Measure]) -> Vec<String> {
    let us = |id: &str, name: &str, factor: f64| Some(figure(measures, id, name)?.value * factor);
    let mut meaning = Vec::new();
    if let Some(thread) = us("thread", "p50_us", 1.0) {
        meaning.push(format!(
            "A connection that needs a new thread pays {} for it beside its handshake: thread_cache_size and pools of connections save it.",
            show_us(thread)
        ));
    }
    if let Some(trip) = us("switch.one_cpu", "p50_us", 1.0) {
        meaning.push(format!(
            "Two threads that share a CPU hand over to each other in about {}; one connection over a socket on this host needs two such \
             hand-overs a statement, so it cannot pass about {} statements a second on one CPU.",
            show_us(trip / 2.0),
            rate(1e6 / trip)
        ));
    }
    // The thread that has just released a mutex often acquires it again, so half of all acquisitions can cost almost
    // nothing extra.
    if let (Some(free), Some(wanted)) = (us("mutex.1", "p50_ns", 1e-3), us("mutex.2", "p50_ns", 1e-3))
        && wanted > 1.2 * free
    {
        meaning.push(format!(
            "A mutex that two threads want costs {:.1} times what one that is free costs ({} against {}).",
            wanted / free,
            show_us(wanted),
            show_us(free)
        ));
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mutex_keeps_threads_from_losing_each_others_turns() {
        let mutex = Mutex::new();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| locked(&mutex, 10_000));
            }
        });
        // SAFETY: all threads ended.
        assert_eq!(unsafe { *mutex.1.get() }, 40_000);
    }

    #[test]
    fn a_pipe_gives_what_was_put_in_and_ends_with_its_writer() {
        let (mut read, mut write) = pipe().unwrap();
        write.write_all(b"x").unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }
}
