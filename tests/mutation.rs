//! Random mutations of texts, and the memory that reading them took: for the fuzz targets of files.

use std::time::{SystemTime, UNIX_EPOCH};

/// Peak memory of this process (VmHWM of /proc/self/status).
pub fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// xorshift64.
pub struct Random(u64);

impl Random {
    /// A stream with a seed of its own, which it prints.
    pub fn of_the_clock() -> Self {
        let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64);
        println!("seed {seed}");
        Self(seed | 1)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n.max(1) as u64) as usize
    }

    /// A seed with some parts changed, removed, moved or repeated many times.
    pub fn mutated(&mut self, seeds: &[&str]) -> Vec<u8> {
        let mut bytes = seeds[self.below(seeds.len())].as_bytes().to_vec();
        for _ in 0..=self.below(6) {
            let from = self.below(bytes.len());
            let to = (from + self.below(40)).min(bytes.len());
            let part = bytes[from..to].to_vec();
            match self.below(5) {
                0 if from < bytes.len() => bytes[from] = self.below(256) as u8,
                1 => drop(bytes.drain(from..to)),
                2 => {
                    let times = 1 << self.below(14);
                    let at = self.below(bytes.len());
                    bytes.splice(at..at, part.repeat(times).into_iter().take(1 << 20));
                }
                3 => bytes.extend(part),
                _ => bytes.truncate(to),
            }
            bytes.truncate(2 << 20);
        }
        bytes
    }
}
