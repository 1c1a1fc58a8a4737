//! The process that allocates: it is started with an allocator, and prints its measurements.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use mydyno_model::record::HistogramData;
use mydyno_stats::SparseHistogram;
use serde::{Deserialize, Serialize};

use crate::error::ProbeError;
use crate::random::joined;
use crate::slot::{Slot, Window, calibrate, together};
use mydyno_linux::calls::{processes, usage};

/// Bytes between two touches: the smallest page size.
const PAGE: usize = 4096;

/// The request, as JSON in the last argument.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    /// Size of an allocation in bytes.
    pub size: usize,
    /// Number of threads that allocate in parallel.
    pub threads: usize,
    /// Warm-up in microseconds.
    pub warm_up_us: u64,
    /// Time of all windows in microseconds.
    pub time_us: u64,
    /// Number of windows.
    pub windows: usize,
    /// Whether huge pages are disabled for this process.
    pub without_huge_pages: bool,
    /// The preloaded library.
    pub library: Option<PathBuf>,
    /// The requesting process: this one ends with it.
    #[serde(default)]
    pub asker: Option<u32>,
}

/// The answer, as JSON on standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Answer {
    /// Whether the library is loaded into this process; true when none was requested.
    pub preloaded: bool,
    /// Minor page faults of the whole process during the measurement.
    pub minor_faults: u64,
    /// Number of allocations, including those before the first window.
    pub operations: u64,
    windows: Vec<Part>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Part {
    values: HistogramData,
    operations: u64,
    width_s: f64,
}

impl Answer {
    /// Its windows.
    ///
    /// # Errors
    /// The data are damaged.
    pub fn windows(&self) -> Result<Vec<Window>, ProbeError> {
        let damaged = |e: mydyno_stats::Error| ProbeError::Child {
            what: "allocations".to_owned(),
            reported: e.to_string(),
            status: "its answer is damaged".to_owned(),
        };
        let window = |part: &Part| {
            let values = SparseHistogram::from_data(&part.values).map_err(damaged)?;
            Ok(Window { values, operations: part.operations, width_s: part.width_s })
        };
        self.windows.iter().map(window).collect()
    }
}

/// Carries out a request.
///
/// # Errors
/// The request is invalid, or a thread cannot be started.
pub fn run(request: &str) -> Result<String, ProbeError> {
    let request: Request = serde_json::from_str(request).map_err(|e| ProbeError::Option {
        option: "request",
        problem: format!("{e}: this command is started by `mydyno probe malloc`"),
    })?;
    if let Some(asker) = request.asker {
        end_with(asker)?;
    }
    if request.without_huge_pages {
        // SAFETY: prctl(2) with PR_SET_THP_DISABLE takes integers.
        let done = unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, 1, 0, 0, 0) };
        if done != 0 {
            return Err(ProbeError::system("forbid huge pages")(std::io::Error::last_os_error()));
        }
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let name = request.library.as_ref().and_then(|path| path.file_name()?.to_str());
    // A library may be a link to one with a longer name: libtcmalloc_minimal.so.4 to libtcmalloc_minimal.so.4.5.16.
    let loaded =
        |name: &str| maps.lines().any(|line| line.rsplit('/').next().is_some_and(|f| f.starts_with(name)));
    let preloaded = name.is_none_or(|name| loaded(name.split(".so").next().unwrap_or(name)));
    let never = AtomicBool::new(false);
    let slot = Slot {
        warm_up: Duration::from_micros(request.warm_up_us),
        time: Duration::from_micros(request.time_us),
        windows: request.windows,
        stop: &never,
    };
    let (before, _) = usage::page_faults();
    let (windows, operations) = measure(&slot, request.size, request.threads)?;
    let minor_faults = usage::page_faults().0.saturating_sub(before);
    let part = |window: &Window| Part {
        values: window.values.to_data(),
        operations: window.operations,
        width_s: window.width_s,
    };
    let answer = Answer { preloaded, minor_faults, operations, windows: windows.iter().map(part).collect() };
    Ok(serde_json::to_string(&answer).unwrap_or_default())
}

/// Makes the kernel end this process when the requesting process ends, even by SIGKILL: nothing would read the answer.
fn end_with(asker: u32) -> Result<(), ProbeError> {
    let has_asker = processes::end_with_parent(asker);
    if has_asker.map_err(ProbeError::system("end with the process that asks"))? {
        return Ok(());
    }
    Err(ProbeError::Missing {
        missing: format!("process {asker}, which asks for this, has ended"),
        remedy: "start `mydyno probe malloc` again".to_owned(),
    })
}

fn measure(slot: &Slot, size: usize, threads: usize) -> Result<(Vec<Window>, u64), ProbeError> {
    let mut first = 0;
    let size_of_batches = calibrate(|times| {
        first += times;
        (0..times).try_for_each(|_| once(size))
    })?;
    thread::scope(|scope| {
        let batches = slot.batches(size_of_batches);
        let mut workers = Vec::new();
        for _ in 0..threads {
            let work = move || {
                let mut all = 0;
                let windows = slot.batched_on(&batches, |times| {
                    all += times;
                    (0..times).try_for_each(|_| once(size))
                })?;
                Ok((windows, all))
            };
            let spawned = thread::Builder::new().spawn_scoped(scope, work);
            workers.push(spawned.map_err(ProbeError::system("start a thread"))?);
        }
        let all: Result<Vec<_>, ProbeError> = workers.into_iter().map(joined).collect();
        let (windows, operations): (Vec<_>, Vec<u64>) = all?.into_iter().unzip();
        Ok((together(windows), first + operations.iter().sum::<u64>()))
    })
}

/// Allocates memory, touches every page of it, and frees it.
fn once(size: usize) -> Result<(), ProbeError> {
    // SAFETY: malloc(3) takes a size; null is looked for before the memory is used.
    let start = black_box(unsafe { libc::malloc(size) }.cast::<u8>());
    if start.is_null() {
        return Err(ProbeError::system("get memory")(std::io::ErrorKind::OutOfMemory.into()));
    }
    for at in (0..size).step_by(PAGE) {
        // SAFETY: `at` is below the requested size. The write is volatile, so that the compiler cannot omit it.
        unsafe { start.add(at).write_volatile(1) };
    }
    // SAFETY: it came from malloc and is freed once.
    unsafe { libc::free(start.cast()) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_holds_what_was_measured() {
        let request = Request {
            size: 8192,
            threads: 2,
            warm_up_us: 1000,
            time_us: 20_000,
            windows: 4,
            without_huge_pages: false,
            library: None,
            asker: None,
        };
        let answer = run(&serde_json::to_string(&request).unwrap()).unwrap();
        let answer: Answer = serde_json::from_str(&answer).unwrap();
        let windows = answer.windows().unwrap();
        assert!(answer.preloaded && windows.len() <= 4);
        assert!(answer.operations >= windows.iter().map(|w| w.operations).sum());
    }

    #[test]
    fn nothing_is_measured_for_a_process_that_has_ended() {
        // This process is not its own parent.
        let request = format!(
            r#"{{"size":64,"threads":1,"warm_up_us":0,"time_us":1000,"windows":1,"without_huge_pages":false,
            "library":null,"asker":{}}}"#,
            std::process::id()
        );
        assert!(run(&request).unwrap_err().to_string().contains("has ended"));
    }

    #[test]
    fn a_library_that_is_not_there_is_noticed() {
        let request = r#"{"size":64,"threads":1,"warm_up_us":0,"time_us":1000,"windows":1,"without_huge_pages":false,
            "library":"/nowhere/libnothing_such.so.2"}"#;
        let answer: Answer = serde_json::from_str(&run(request).unwrap()).unwrap();
        assert!(!answer.preloaded);
        assert!(run("nonsense").unwrap_err().to_string().contains("mydyno probe malloc"));
    }
}
