//! Random numbers of scripts: the distributions of `--rand-type` over a range, and texts from a pattern.

use std::sync::Arc;

use mydyno_stats::rng::{Rng, mix};
use mydyno_workload::distribution::{Keys, OPTIONS};
use mydyno_workload::options::Options as KeyOptions;

use super::super::options::Options;

/// Distributions by the numbers that lua/prelude/random.lua gives them; the first is that of `--rand-type`.
const KINDS: [&str; 6] = ["default", "uniform", "gaussian", "special", "pareto", "zipfian"];

/// A distribution over the numbers 1 to n, as sysbench 1.0.20 draws it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Numbers {
    /// One that workloads have too.
    Keys(Keys),
    /// `special`: of a uniform u in [0, 1), the part below 1 − `share` follows `rest`; the other gives
    /// ⌊(½ − `part` / 2) (n − 1) + u (`part` (n − 1) + 1)⌋ + 1, so the block of special numbers begins 1 − `share` of its length
    /// behind its nominal place. Measured: docs/journal/compat.md.
    Special { rest: Keys, n: u64, part: f64, share: f64 },
}

impl Numbers {
    pub(crate) fn new(options: &KeyOptions, n: u64) -> Self {
        if options.word("distribution") != "special" {
            return Self::Keys(Keys::new(options, n));
        }
        let (name, value) = ("distribution".to_owned(), "gaussian".to_owned());
        let terms = ("rand-spec-iter".to_owned(), options.count("rand-spec-iter").to_string());
        let rest = KeyOptions::resolve("sysbench", &OPTIONS, &[(name, value), terms]);
        let percent = |name: &str| options.count(name) as f64 / 100.0;
        Self::Special {
            rest: rest.map_or_else(|_| Keys::new(options, n), |rest| Keys::new(&rest, n)),
            n: n.max(1),
            part: percent("rand-spec-pct"),
            share: percent("rand-spec-res"),
        }
    }

    /// A number.
    #[inline]
    pub(crate) fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Self::Keys(keys) => keys.draw(rng),
            Self::Special { rest, n, part, share } => {
                let u = rng.f64();
                if u < 1.0 - share {
                    return rest.draw(rng);
                }
                let last = (*n - 1) as f64;
                let place = (0.5 - part / 2.0) * last + u * (part * last + 1.0);
                (place as u64).min(n - 1) + 1
            }
        }
    }
}

/// The distributions of a thread, each with the range that it was last asked for.
pub(super) struct Draws {
    options: Arc<[KeyOptions]>,
    last: [Option<(f64, f64, Numbers)>; KINDS.len()],
}

impl Draws {
    pub(super) fn new(options: &Arc<[KeyOptions]>) -> Self {
        Self { options: Arc::clone(options), last: [const { None }; KINDS.len()] }
    }

    /// The options of all distributions, which threads share.
    pub(super) fn options(options: &Options) -> Arc<[KeyOptions]> {
        let default = options.text("rand-type").unwrap_or("special");
        let of = |kind: &&str| key_options(options, if *kind == "default" { default } else { kind });
        KINDS.iter().map(of).collect()
    }

    /// A number from `low` to `high`.
    pub(super) fn draw(&mut self, kind: usize, low: f64, high: f64, rng: &mut Rng) -> f64 {
        let last = &mut self.last[kind.min(KINDS.len() - 1)];
        let keys = match last {
            Some((from, to, keys)) if *from == low && *to == high => keys,
            _ => {
                let span = (high as i64).saturating_sub(low as i64).saturating_add(1).max(1).unsigned_abs();
                let keys = Numbers::new(&self.options[kind.min(KINDS.len() - 1)], span);
                &mut last.insert((low, high, keys)).2
            }
        };
        (low as i64 + keys.draw(rng) as i64 - 1) as f64
    }
}

/// The options of a distribution for [`Keys`]; those that are out of range keep their defaults.
pub(crate) fn key_options(options: &Options, kind: &str) -> KeyOptions {
    let mut given = vec![("distribution".to_owned(), kind.to_owned())];
    for name in ["rand-pareto-h", "rand-spec-iter", "rand-spec-pct", "rand-spec-res"] {
        let pair = (name.to_owned(), options.text(name).unwrap_or_default().to_owned());
        if KeyOptions::resolve("sysbench", &OPTIONS, std::slice::from_ref(&pair)).is_ok() {
            given.push(pair);
        }
    }
    KeyOptions::resolve("sysbench", &OPTIONS, &given)
        .or_else(|_| KeyOptions::resolve("sysbench", &OPTIONS, &[]))
        .unwrap_or_else(|_| unreachable!("defaults are valid"))
}

/// Puts a digit in the place of every `#` and a letter in the place of every `@`.
pub(super) fn fill(text: &mut [u8], rng: &mut Rng) {
    for byte in text {
        match byte {
            b'#' => *byte = b'0' + rng.below(10) as u8,
            b'@' => *byte = b'a' + rng.below(26) as u8,
            _ => {}
        }
    }
}

/// A bijection of the numbers below 2^32: four rounds of a Feistel network over their halves.
pub(super) fn permuted(number: u32) -> u32 {
    let (mut left, mut right) = (number >> 16, number & 0xffff);
    for round in 0..4_u64 {
        (left, right) = (right, left ^ (mix(u64::from(right) | round << 32) as u32 & 0xffff));
    }
    left << 16 | right
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unique_numbers_do_not_repeat() {
        let mut seen: Vec<u32> = (0..100_000).map(permuted).collect();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 100_000);
    }

    #[test]
    fn patterns_are_filled_with_digits_and_letters() {
        let mut text = *b"##-@@-x";
        fill(&mut text, &mut Rng::from_seed(1));
        assert!(text[0].is_ascii_digit() && text[3].is_ascii_lowercase() && text[6] == b'x', "{text:?}");
    }
}
