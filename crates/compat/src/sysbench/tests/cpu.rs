//! The test `cpu`: prime numbers by division, an event for each pass up to the limit.

use std::hint::black_box;
use std::sync::Arc;

use super::super::engine::Engine;
use super::super::log::Level;
use super::super::options::{Definition, Kind};
use super::super::report::per_second;
use super::super::runner::{Reporter, Test, Worker, print_general};
use super::super::stats::{Count, Stat};
use super::{BuiltIn, Ready, run_events};

pub(crate) const TEST: BuiltIn = BuiltIn {
    name: "cpu",
    summary: "arithmetic of the CPU",
    options: || {
        vec![Definition::new("cpu-max-prime", Kind::Int, Some("10000"), "largest number that is tested")]
    },
    prepare: |options, _| {
        let limit = options.int("cpu-max-prime");
        let limit = u64::try_from(limit)
            .ok()
            .filter(|limit| *limit > 0)
            .ok_or_else(|| format!("Invalid value of cpu-max-prime: {limit}."))?;
        Ok(Ready {
            test: Arc::new(Cpu { limit }),
            main: Box::new(CpuReporter),
            print_mode: Box::new(move |log| {
                log.line(Level::Info, "Doing CPU performance benchmark\n");
                log.notice(&format!("Prime numbers limit: {limit}\n"));
            }),
        })
    },
    commands: &[],
};

struct Cpu {
    limit: u64,
}

struct CpuWorker {
    thread: usize,
    limit: u64,
}

struct CpuReporter;

impl Test for Cpu {
    fn worker(&self, _: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>> {
        Some(Box::new(CpuWorker { thread, limit: self.limit }))
    }

    fn reporter(&self, _: &Arc<Engine>) -> Option<Box<dyn Reporter>> {
        Some(Box::new(CpuReporter))
    }
}

impl Worker for CpuWorker {
    fn run(&mut self, engine: &Engine) -> bool {
        let limit = self.limit;
        run_events(engine, self.thread, || {
            black_box(primes(black_box(limit)));
            true
        })
    }
}

impl Reporter for CpuReporter {
    fn cumulative(&mut self, engine: &Engine, stat: &Stat) {
        let rate = per_second(stat.totals.get(Count::Event), stat);
        engine.log.text(&format!("CPU speed:\n    events per second: {rate:8.2}\n"));
        print_general(engine, stat);
    }
}

/// How many of the numbers from 3 to `limit` have no divisor from 2 to their root.
fn primes(limit: u64) -> u64 {
    let mut found = 0;
    for number in 3..=limit {
        let root = (number as f64).sqrt();
        let mut divisor = 2;
        while divisor as f64 <= root && number % divisor != 0 {
            divisor += 1;
        }
        found += u64::from(divisor as f64 > root);
    }
    found
}

#[cfg(test)]
mod tests {
    #[test]
    fn primes_are_counted() {
        // 25 primes up to 100 without 2; 1,229 up to 10,000.
        assert_eq!(super::primes(100), 24);
        assert_eq!(super::primes(10_000), 1_228);
    }
}
