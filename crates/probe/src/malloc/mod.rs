//! The cost of allocating memory: by size, number of threads, allocator and huge pages, with page faults counted.
//!
//! Each slot is measured in a new process ([`child`]) with a preloaded allocator and an unused heap.

pub mod child;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use mydyno_host::Machine;
use mydyno_host::allocator::{ALLOCATORS, Allocator};
use mydyno_model::Estimate;
use mydyno_model::probe::{Figure, Measure, NotMeasured, ProbeReport};
use mydyno_model::units::{show_bytes, show_us};

use crate::course::{self, Cell, Kind, Series};
use crate::error::ProbeError;
use crate::report::Draft;
use crate::slot::{Slot, Window};
use crate::{Run, machine};

use child::{Answer, Request};

/// The words with which `mydyno` starts itself as the process that allocates; the request follows them.
pub const CHILD: [&str; 2] = ["probe", "malloc-child"];
/// Number of bytes of output that an error quotes.
const TAIL: usize = 300;
/// Environment variables that are removed because they would affect the measurement.
const CLEARED: [&str; 6] = [
    "LD_PRELOAD",
    "GLIBC_TUNABLES",
    "MALLOC_ARENA_MAX",
    "MALLOC_CONF",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_TRIM_THRESHOLD_",
];

/// The measures to take.
#[derive(Debug, Clone)]
pub struct Options {
    /// Sizes in bytes.
    pub sizes: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// The program that calls [`child::run`] with the request that follows these arguments.
    pub program: (PathBuf, Vec<String>),
}

/// An allocator with its settings.
#[derive(Debug, Clone)]
struct Arrangement {
    name: &'static str,
    what: &'static str,
    library: Option<PathBuf>,
    environment: Vec<(&'static str, &'static str)>,
    without_huge_pages: bool,
}

/// Measures the allocators.
///
/// # Errors
/// Too little memory is available, or options are invalid.
pub fn run(machine: &Machine, options: &Options, run: &mut Run) -> Result<ProbeReport, ProbeError> {
    run.timing.check()?;
    let bad = |option, problem: &str| Err(ProbeError::Option { option, problem: problem.to_owned() });
    if options.sizes.is_empty() || options.sizes.iter().any(|size| *size == 0 || *size > 1 << 30) {
        return bad("sizes", "sizes from 1 byte to 1G, as in 16K,512K,4M");
    }
    if options.threads.is_empty() || options.threads.iter().any(|n| *n == 0 || *n > 1024) {
        return bad("threads", "numbers from 1 to 1024, as in 1,16");
    }
    let most = |values: &[usize]| values.iter().max().copied().unwrap_or(0) as u64;
    machine::check_memory(machine, most(&options.sizes) * most(&options.threads) + (64 << 20))?;
    let (arrangements, not_measured) = arrangements();
    let faults: RefCell<BTreeMap<String, (u64, u64)>> = RefCell::default();
    let mut cells = Vec::new();
    for arrangement in &arrangements {
        for size in &options.sizes {
            for threads in &options.threads {
                cells.push(cell(arrangement, *size, *threads, options, &faults));
            }
        }
    }
    let mut outcome = course::run(cells, run);
    let faults = faults.into_inner();
    for measure in &mut outcome.measures {
        if let Some((faults, operations)) = faults.get(&measure.id) {
            let why = "counted over all stretches, warm-ups too";
            measure.figures.push(Figure {
                name: "minor_faults".to_owned(),
                estimate: Estimate::without_interval(*faults as f64 / (*operations).max(1) as f64, why),
            });
        }
    }
    outcome.not_measured.extend(not_measured);
    let mut draft = Draft::begin("malloc", &run.timing).with("huge_pages", huge_pages());
    draft.meaning = meaning(&outcome.measures);
    Ok(draft.finish(outcome))
}

/// The kernel's setting of transparent huge pages, as in `madvise`.
fn huge_pages() -> String {
    let text = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
    let chosen = text.split_once('[').and_then(|(_, rest)| rest.split(']').next());
    chosen.unwrap_or("unknown").to_owned()
}

/// The allocators that can be compared on this machine, and the reasons for those that cannot.
fn arrangements() -> (Vec<Arrangement>, Vec<NotMeasured>) {
    let plain = |name, what| Arrangement {
        name,
        what,
        library: None,
        environment: vec![],
        without_huge_pages: false,
    };
    let mut here = vec![
        plain("glibc", "glibc"),
        Arrangement {
            // Setting it to any value disables glibc's dynamic adjustment of the threshold: mallopt(3).
            environment: vec![("MALLOC_MMAP_THRESHOLD_", "131072")],
            ..plain("glibc_fixed", "glibc with MALLOC_MMAP_THRESHOLD_=131072")
        },
    ];
    let mut missing = Vec::new();
    if glibc() >= Some((2, 35)) {
        here.push(Arrangement {
            environment: vec![("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1")],
            ..plain("glibc_huge", "glibc with glibc.malloc.hugetlb=1 (asks for huge pages)")
        });
    } else {
        let why = "glibc has asked for huge pages since 2.35 only: use a newer distribution".to_owned();
        missing.push(NotMeasured { id: "glibc_huge".to_owned(), why });
    }
    if huge_pages() == "always" {
        here.push(Arrangement {
            without_huge_pages: true,
            ..plain("glibc_small", "glibc without transparent huge pages")
        });
    }
    for allocator in ALLOCATORS.into_iter().filter(|allocator| *allocator != Allocator::Glibc) {
        match allocator.library() {
            Ok(library) => here.push(Arrangement { library, ..plain(allocator.name(), allocator.name()) }),
            Err(error) => {
                missing.push(NotMeasured { id: allocator.name().to_owned(), why: error.to_string() });
            }
        }
    }
    (here, missing)
}

/// The version of glibc; `None` for another C library.
fn glibc() -> Option<(u32, u32)> {
    #[cfg(target_env = "gnu")]
    {
        // SAFETY: gnu_get_libc_version(3) gives a static C string.
        let text = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
        let (major, minor) = text.to_str().ok()?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    }
    #[cfg(not(target_env = "gnu"))]
    None
}

fn cell<'a>(
    arrangement: &'a Arrangement,
    size: usize,
    threads: usize,
    options: &'a Options,
    faults: &'a RefCell<BTreeMap<String, (u64, u64)>>,
) -> Cell<'a> {
    let shown = show_bytes(size as f64);
    let id = format!("{}.{}.{threads}", arrangement.name, shown.replace(' ', ""));
    let plural = if threads == 1 { "" } else { "s" };
    let what = format!("{}: get, touch and free {shown}, {threads} thread{plural}", arrangement.what);
    let series = Series::new(&id, what, Kind::Batched).with("bytes", size).with("threads", threads);
    Cell::one(series, move |slot| {
        let (windows, minor_faults, operations) =
            measure_in_child(arrangement, size, threads, &options.program, slot)?;
        let mut faults = faults.borrow_mut();
        let sum = faults.entry(id.clone()).or_default();
        *sum = (sum.0 + minor_faults, sum.1 + operations);
        Ok(windows)
    })
}

/// Measures one slot in a new process.
fn measure_in_child(
    arrangement: &Arrangement,
    size: usize,
    threads: usize,
    program: &(PathBuf, Vec<String>),
    slot: &Slot,
) -> Result<(Vec<Window>, u64, u64), ProbeError> {
    let request = Request {
        size,
        threads,
        warm_up_us: slot.warm_up.as_micros() as u64,
        time_us: slot.time.as_micros() as u64,
        windows: slot.windows,
        without_huge_pages: arrangement.without_huge_pages,
        library: arrangement.library.clone(),
        asker: Some(std::process::id()),
    };
    let mut command = Command::new(&program.0);
    command.args(&program.1).arg(serde_json::to_string(&request).unwrap_or_default());
    CLEARED.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.envs(arrangement.environment.iter().copied()).stdin(Stdio::null());
    if let Some(library) = &arrangement.library {
        command.env("LD_PRELOAD", library);
    }
    let output = command.output().map_err(ProbeError::io("start", &program.0))?;
    let reported = String::from_utf8_lossy(&output.stdout);
    let answer: Option<Answer> = serde_json::from_str(&reported).ok().filter(|_| output.status.success());
    let Some(answer) = answer else {
        let wrong = String::from_utf8_lossy(&output.stderr);
        let reported: String = [reported.as_ref(), wrong.as_ref()].concat().chars().take(TAIL).collect();
        let status = output.status.to_string();
        return Err(ProbeError::Child { what: arrangement.name.to_owned(), reported, status });
    };
    if !answer.preloaded {
        return Err(ProbeError::Missing {
            missing: format!("{} was not loaded into the process", arrangement.what),
            remedy: "a static build of mydyno cannot preload: use the one that is linked to glibc".to_owned(),
        });
    }
    let windows = answer.windows()?;
    Ok((windows, answer.minor_faults, answer.operations))
}

fn meaning(measures: &[Measure]) -> Vec<String> {
    let ns = |id: &str| {
        let found = measures.iter().find(|measure| measure.id == id)?;
        Some(found.figure("p50_ns")?.value)
    };
    let mut meaning = Vec::new();
    if let (Some(small), Some(large)) = (ns("glibc.256KiB.1"), ns("glibc.2MiB.1")) {
        meaning.push(format!(
            "A buffer of 2 MiB that a statement gets, fills and frees costs {} here, one of 256 KiB {}: multiply by statements a second to \
             see whether sort_buffer_size or read_buffer_size matters.",
            show_us(large / 1e3),
            show_us(small / 1e3)
        ));
    }
    if let (Some(adjusted), Some(fixed)) = (ns("glibc.256KiB.1"), ns("glibc_fixed.256KiB.1")) {
        meaning.push(format!(
            "glibc raises its threshold for mmap after the first free; with MALLOC_MMAP_THRESHOLD_ it does not, and 256 KiB cost {:.1} times \
             as much.",
            fixed / adjusted
        ));
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocator_is_compared_or_said_to_be_missing_with_the_package_that_brings_it() {
        let (here, missing) = arrangements();
        for allocator in ALLOCATORS {
            let name = allocator.name();
            let found = here.iter().any(|arrangement| arrangement.name == name);
            let why = missing.iter().find(|missing| missing.id == name);
            assert!(found != why.is_some(), "{name}");
            assert!(why.is_none_or(|missing| missing.why.contains("install")), "{why:?}");
        }
    }

    #[cfg(target_env = "gnu")]
    #[test]
    fn the_version_of_the_c_library_is_known() {
        assert!(glibc().is_some_and(|version| version >= (2, 17)));
    }
}
