//! The test `memory`: blocks that are read or written a machine word at a time, in order or at random.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use mydyno_linux::calls::mapping::Mapping;
use mydyno_stats::rng::Rng;

use super::super::engine::Engine;
use super::super::log::Log;
use super::super::options::{Definition, Kind, Options};
use super::super::report::per_second;
use super::super::runner::{Reporter, Test, Worker, print_general};
use super::super::stats::{Count, Stat};
use super::{BuiltIn, Ready, run_events};

const WORD: u64 = size_of::<usize>() as u64;
const MIB: f64 = 1_048_576.0;

pub(crate) const TEST: BuiltIn = BuiltIn {
    name: "memory",
    summary: "speed of memory",
    options: || {
        let option = Definition::new;
        vec![
            option("memory-block-size", Kind::Size, Some("1K"), "size of a block; an event uses one block"),
            option("memory-total-size", Kind::Size, Some("100G"), "end after this much; 0 sets no limit"),
            option(
                "memory-scope",
                Kind::Text,
                Some("global"),
                "global: one block for all threads; local: one each",
            ),
            option("memory-hugetlb", Kind::Bool, Some("off"), "allocate from the pool of huge pages"),
            option("memory-oper", Kind::Text, Some("write"), "read, write or none"),
            option("memory-access-mode", Kind::Text, Some("seq"), "seq: in order; rnd: at random"),
        ]
    },
    prepare,
    commands: &[],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Read,
    Write,
    None,
}

#[derive(Debug, Clone)]
struct Memory {
    block: u64,
    /// Events of each thread; `None` for no limit.
    events: Option<u64>,
    /// The block of all threads; none where each has its own.
    shared: Option<Arc<Mapping>>,
    /// Blocks come from the pool of huge pages.
    huge: bool,
    operation: Operation,
    random: bool,
}

struct MemoryWorker {
    thread: usize,
    memory: Memory,
    buffer: Arc<Mapping>,
    left: Option<u64>,
    rng: Rng,
}

struct MemoryReporter {
    block: u64,
    operation: Operation,
}

/// Memory of a block.
///
/// # Errors
/// There is none: lines for the log.
fn buffer(block: u64, huge: bool) -> Result<Arc<Mapping>, String> {
    let length = if huge { block.next_multiple_of(HUGE_PAGE) } else { block };
    Mapping::anonymous(length as usize, huge).map(Arc::new).map_err(|error| {
        let text = error.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        let number = error.raw_os_error().unwrap_or(0);
        format!("Failed to allocate {length} bytes{}. errno = {number} ({text})\nFATAL: Failed to allocate buffer!",
            if huge { " from HugeTLB memory" } else { "" })
    })
}

/// Allocations from the pool of huge pages are multiples of this.
const HUGE_PAGE: u64 = 4 << 20;

fn prepare(options: &Options, threads: usize) -> Result<Ready, String> {
    let block = options.size("memory-block-size");
    if !block.is_power_of_two() || block < WORD {
        return Err(format!(
            "Invalid value for memory-block-size: {}",
            options.text("memory-block-size").unwrap_or_default()
        ));
    }
    let word = |name: &str| options.text(name).unwrap_or_default().to_owned();
    let invalid = |name: &str| format!("Invalid value for {name}: {}", word(name));
    let total = options.size("memory-total-size");
    let huge = options.is_on("memory-hugetlb");
    let scope = word("memory-scope");
    let shared = match scope.as_str() {
        "global" => Some(buffer(block, huge)?),
        "local" => None,
        _ => return Err(invalid("memory-scope")),
    };
    let oper = word("memory-oper");
    let operation = match oper.as_str() {
        "read" => Operation::Read,
        "write" => Operation::Write,
        "none" => Operation::None,
        _ => return Err(invalid("memory-oper")),
    };
    let random = match word("memory-access-mode").as_str() {
        "seq" => false,
        "rnd" => true,
        _ => return Err(invalid("memory-access-mode")),
    };
    let events = (total > 0).then(|| total / block / threads as u64);
    let memory = Memory { block, events, shared, huge, operation, random };
    Ok(Ready {
        test: Arc::new(memory),
        main: Box::new(MemoryReporter { block, operation }),
        print_mode: Box::new(move |log: &Log| {
            log.notice("Running memory speed test with the following options:");
            log.notice(&format!("  block size: {}KiB", block / 1024));
            log.notice(&format!("  total size: {}MiB", total >> 20));
            log.notice(&format!("  operation: {oper}"));
            log.notice(&format!("  scope: {scope}\n"));
        }),
    })
}

impl Test for Memory {
    fn worker(&self, engine: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>> {
        let buffer = match &self.shared {
            Some(shared) => Arc::clone(shared),
            None => buffer(self.block, self.huge).map_err(|text| engine.log.fatal(&text)).ok()?,
        };
        Some(Box::new(MemoryWorker {
            thread,
            memory: self.clone(),
            buffer,
            left: self.events,
            rng: engine.rng(thread as u64),
        }))
    }

    fn reporter(&self, _: &Arc<Engine>) -> Option<Box<dyn Reporter>> {
        Some(Box::new(MemoryReporter { block: self.block, operation: self.operation }))
    }
}

impl Worker for MemoryWorker {
    fn run(&mut self, engine: &Engine) -> bool {
        run_events(engine, self.thread, || {
            if let Some(left) = &mut self.left {
                if *left == 0 {
                    return false;
                }
                *left -= 1;
            }
            let words = &self.buffer.words()[..(self.memory.block / WORD) as usize];
            use_block(words, self.memory.operation, self.memory.random.then_some(&mut self.rng));
            true
        })
    }
}

/// Uses every word of the block, or as many words at random. Atomic accesses keep the compiler from joining or leaving out
/// words.
fn use_block(buffer: &[AtomicUsize], operation: Operation, random: Option<&mut Rng>) {
    let at = |word: &AtomicUsize, value: usize| match operation {
        Operation::Read => {
            std::hint::black_box(word.load(Relaxed));
        }
        Operation::Write => word.store(value, Relaxed),
        Operation::None => {}
    };
    match random {
        None => buffer.iter().enumerate().for_each(|(i, word)| at(word, i)),
        Some(rng) => (0..buffer.len()).for_each(|i| at(&buffer[rng.below(buffer.len() as u64) as usize], i)),
    }
}

impl Reporter for MemoryReporter {
    fn intermediate(&mut self, engine: &Engine, stat: &Stat) {
        let rate = per_second(stat.totals.get(Count::Event) * self.block, stat) / MIB;
        engine.log.notice(&format!("[ {:.0}s ] {rate:4.2} MiB/sec", stat.time_total));
    }

    fn cumulative(&mut self, engine: &Engine, stat: &Stat) {
        let events = stat.totals.get(Count::Event);
        let mut text =
            format!("Total operations: {events} ({:8.2} per second)\n\n", per_second(events, stat));
        if self.operation != Operation::None {
            let bytes = (events * self.block) as f64;
            let rate = per_second(events * self.block, stat);
            text.push_str(&format!("{:4.2} MiB transferred ({:4.2} MiB/sec)\n\n", bytes / MIB, rate / MIB));
        }
        engine.log.text(&text);
        print_general(engine, stat);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_written_in_order() {
        let memory = buffer(64, false).unwrap();
        let block = &memory.words()[..8];
        use_block(block, Operation::Write, None);
        assert_eq!(
            block.iter().map(|word| word.load(Relaxed)).collect::<Vec<_>>(),
            (0..8).collect::<Vec<_>>()
        );
    }
}
