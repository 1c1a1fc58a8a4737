//! `fuzz SECONDS [TARGET…]`: mutates the seeds of `fuzz/seeds` and what had a new outcome, for so many seconds a target,
//! two targets at a time. It needs no other compiler than the crate's own; `fuzz/run` is guided by coverage.
#![allow(clippy::print_stdout, clippy::exit, clippy::unwrap_used, clippy::expect_used)]

#[path = "../fuzz/entries/mod.rs"]
mod entries;

use std::collections::HashSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use entries::{ENTRIES, Run};

/// Largest input.
const MAX_BYTES: usize = 8192;
/// Most inputs that are kept.
const MAX_KEPT: usize = 4096;
/// An input may take so long.
const MAX_RUN: Duration = Duration::from_secs(10);
/// The process may take so much memory, with two targets at a time.
const MAX_MEMORY_KB: u64 = 1 << 20;

/// The input that is being run, and since when, for the watchdog over inputs that never end.
type Running = Mutex<Option<(Instant, Vec<u8>)>>;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().and_then(|text| text.parse().ok()).expect("fuzz SECONDS [TARGET…]");
    let names: Vec<String> = arguments.collect();
    let chosen: Vec<_> =
        ENTRIES.iter().filter(|e| names.is_empty() || names.iter().any(|n| n == e.0)).collect();
    let time = Duration::from_secs(seconds);
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
    let todo = Mutex::new(chosen.into_iter());
    let failed = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut failed = false;
                    loop {
                        let next = todo.lock().unwrap().next();
                        let Some((name, run)) = next else { return failed };
                        failed |= !fuzz(name, *run, time, seed);
                    }
                })
            })
            .collect();
        workers.into_iter().any(|worker| worker.join().unwrap_or(true))
    });
    let memory_kb = peak_kb();
    println!("peak memory {memory_kb} kB");
    ExitCode::from(u8::from(failed || memory_kb > MAX_MEMORY_KB))
}

/// Runs one target; `false` after a finding, which is printed as hexadecimal digits.
fn fuzz(name: &str, run: Run, time: Duration, seed: u64) -> bool {
    let running = Running::default();
    let ended = Mutex::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(name, &running, &ended));
        let good = mutate(name, run, time, seed, &running);
        *ended.lock().unwrap() = true;
        good
    })
}

fn mutate(name: &str, run: Run, time: Duration, seed: u64, running: &Running) -> bool {
    let mut random = Random(seed | 1);
    let mut kept = seeds(name);
    let unchanged = kept.len();
    let mut seen = HashSet::new();
    let begin = Instant::now();
    let mut runs = 0;
    while begin.elapsed() < time {
        let input = if runs < unchanged { kept[runs].clone() } else { random.mutated(&kept) };
        runs += 1;
        *running.lock().unwrap() = Some((Instant::now(), input.clone()));
        let Ok(outcome) = catch_unwind(AssertUnwindSafe(|| run(&input))) else {
            println!("{name}: a finding (seed {seed}, run {runs}): {}", hex(&input));
            return false;
        };
        if seen.insert(shape(&outcome)) && kept.len() < MAX_KEPT {
            kept.push(input);
        }
    }
    println!("{name}: {} s without a finding, {runs} inputs, {} outcomes", time.as_secs(), seen.len());
    true
}

/// Ends the process when an input takes too long.
fn watch(name: &str, running: &Running, ended: &Mutex<bool>) {
    while !*ended.lock().unwrap() {
        std::thread::sleep(Duration::from_millis(100));
        if let Some((since, input)) = &*running.lock().unwrap()
            && since.elapsed() > MAX_RUN
        {
            println!("{name}: an input that takes more than {} s: {}", MAX_RUN.as_secs(), hex(input));
            std::process::exit(1);
        }
    }
}

/// An outcome without its numbers.
fn shape(outcome: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for byte in outcome.bytes().filter(|b| !b.is_ascii_digit()).take(400) {
        byte.hash(&mut hasher);
    }
    hasher.finish()
}

/// One input a line, in hexadecimal digits.
fn seeds(name: &str) -> Vec<Vec<u8>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/seeds").join(name).with_extension("hex");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .map(|line| {
            line.as_bytes()
                .chunks(2)
                .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
                .collect()
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 33) as usize % end.max(1)
    }

    /// A kept input, changed in one to eight places.
    fn mutated(&mut self, kept: &[Vec<u8>]) -> Vec<u8> {
        let mut input = match kept.len() {
            0 => vec![0; 32],
            count => kept[self.below(count)].clone(),
        };
        for _ in 0..1 << self.below(4) {
            self.change(&mut input, kept);
        }
        input.truncate(MAX_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
        /// Bytes that mean something: borders of length-encoded integers, ends of text, headers.
        const WORDS: [&[u8]; 12] = [
            b"\0",
            b"\x01",
            b"\xfa",
            b"\xfb",
            b"\xfc\xff\xff",
            b"\xfd\xff\xff\xff",
            b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\xff\x15\x04#28000",
            b"\xfe\0\0\x02\0",
            b"\xff\xff\xff\x01",
            b"[client]\n",
            b"=",
        ];
        let at = self.below(input.len() + 1);
        let span = at..(at + self.below(16)).min(input.len());
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.next() as u8,
            2 => input.insert(at, self.next() as u8),
            3 => drop(input.drain(span)),
            4 => {
                let part = input[span].to_vec();
                let to = self.below(input.len() + 1);
                input.splice(to..to, part);
            }
            5 => {
                let word = WORDS[self.below(WORDS.len())];
                let end = if self.below(2) == 0 { at } else { (at + word.len()).min(input.len()) };
                input.splice(at..end, word.iter().copied());
            }
            6 => input.truncate(at),
            _ if !kept.is_empty() => {
                let other = &kept[self.below(kept.len())];
                let from = self.below(other.len() + 1);
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => {}
        }
    }
}
