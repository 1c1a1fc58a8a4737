//! Distributions of the keys that transactions use, from 1 to the size of a table, with sysbench's names, parameters
//! and definitions.

use mydyno_stats::rng::Rng;

use crate::options::{Default, Form, OptionSpec, Options};
use mydyno_tables::zipf::Zipf;

/// Options of every workload that draws keys.
pub const OPTIONS: [OptionSpec; 6] = [
    OptionSpec {
        name: "distribution",
        form: Form::Choice(&["uniform", "zipfian", "pareto", "gaussian", "special"]),
        default: Default::Word("uniform"),
        help: "which rows are asked for how often",
    },
    OptionSpec::real(
        "rand-zipfian-exp",
        0.0,
        10.0,
        0.8,
        "zipfian: exponent; the larger, the fewer rows get most",
    ),
    OptionSpec::real(
        "rand-pareto-h",
        0.001,
        0.999,
        0.2,
        "pareto: this share of the rows gets all but this share",
    ),
    OptionSpec::count("rand-spec-iter", 1, 1_000, 12, "gaussian, special: uniform numbers that are averaged"),
    OptionSpec::count("rand-spec-pct", 1, 100, 1, "special: percent of the rows that are special"),
    OptionSpec::count("rand-spec-res", 0, 100, 75, "special: percent of the draws that go to them"),
];

/// A distribution over the keys 1 to n.
#[derive(Debug, Clone, PartialEq)]
pub struct Keys {
    n: u64,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// All keys with equal probability.
    Uniform,
    /// Key i with probability proportional to i^−exponent.
    Zipfian(Zipf),
    /// A uniform number raised to a power, scaled to the keys: at h = 0.2 the first 20 % of the keys get 80 %.
    Pareto { power: f64 },
    /// The mean of some uniform numbers, scaled to the keys: bell-shaped around the middle (Bates' distribution).
    Gaussian { terms: u64 },
    /// A block of keys in the middle gets a share of the draws, uniformly; the other draws follow `Gaussian`.
    Special { terms: u64, first: u64, keys: u64, share: f64 },
}

impl Keys {
    /// The distribution of these options, over keys 1 to `n`.
    pub fn new(options: &Options, n: u64) -> Self {
        let n = n.max(1);
        let terms = options.count("rand-spec-iter").max(1);
        let kind = match options.word("distribution") {
            "zipfian" => Kind::Zipfian(Zipf::new(n, options.real("rand-zipfian-exp"))),
            "pareto" => {
                let h = options.real("rand-pareto-h");
                Kind::Pareto { power: h.ln() / (1.0 - h).ln() }
            }
            "gaussian" => Kind::Gaussian { terms },
            "special" => {
                let part =
                    |percent: u64, of: u64| (u128::from(n) * u128::from(percent) / u128::from(of)) as u64;
                let percent = options.count("rand-spec-pct");
                let keys = part(percent, 100).max(1);
                let first = (n / 2 - part(percent, 200)).min(n - keys) + 1;
                Kind::Special { terms, first, keys, share: options.count("rand-spec-res") as f64 / 100.0 }
            }
            _ => Kind::Uniform,
        };
        Self { n, kind }
    }

    /// A key.
    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.kind {
            Kind::Uniform => rng.below(self.n) + 1,
            Kind::Zipfian(zipf) => zipf.draw(rng),
            Kind::Pareto { power } => self.scaled(rng.f64().powf(*power)),
            Kind::Gaussian { terms } => self.bates(*terms, rng),
            Kind::Special { terms, first, keys, share } => {
                if rng.f64() < *share {
                    first + rng.below(*keys)
                } else {
                    self.bates(*terms, rng)
                }
            }
        }
    }

    fn bates(&self, terms: u64, rng: &mut Rng) -> u64 {
        let sum: f64 = (0..terms).map(|_| rng.f64()).sum();
        self.scaled(sum / terms as f64)
    }

    /// The key whose n-th part of [0, 1) contains `x`.
    fn scaled(&self, x: f64) -> u64 {
        ((x * self.n as f64) as u64).min(self.n - 1) + 1
    }
}

#[cfg(test)]
mod tests;
