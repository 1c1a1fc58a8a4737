//! Noise as servers make it, with mean 0 in the long run.

use mydyno_stats::rng::Rng;

/// A model of how measurements of a server vary. The standard deviation is about 1 but for the spikes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Noise {
    /// Each value leans on the one before by `phi`; 0 is independent noise. Gaussian.
    Ar1 {
        /// Correlation with the value before, below 1.
        phi: f64,
    },
    /// Two levels, as when a query plan or a processor's frequency flips; each lasts `dwell` values on average.
    Bimodal {
        /// Mean length of a stay at a level.
        dwell: f64,
    },
    /// Independent noise with rare slow windows, as flushing makes them: a share `share` of all lies lower by an
    /// exponential amount with mean `depth`.
    Spiky {
        /// How many values are hit, 0 to 1.
        share: f64,
        /// Mean depth.
        depth: f64,
    },
    /// Independent noise upon a level that wanders about its mean and comes back: hardly seen from one value to the next, but
    /// most of the error of a mean.
    Wandering {
        /// Correlation of the level with its value before.
        phi: f64,
        /// Standard deviation of the level; that of the noise upon it is 1.
        size: f64,
    },
    /// Independent noise upon a level that wanders (a random walk that is pulled back so slowly that a run sees
    /// mostly drift). What a run can tell is the level *of its own window*: [`Source::level`].
    Drifting {
        /// Correlation of the walk with its value before.
        phi: f64,
        /// Standard deviation of the walk; that of the noise upon it is 1.
        size: f64,
    },
}

impl Noise {
    /// The models on which the rates of errors are stated.
    pub const ALL: [(&'static str, Self); 10] = [
        ("independent", Self::Ar1 { phi: 0.0 }),
        ("AR(1) 0.3", Self::Ar1 { phi: 0.3 }),
        ("AR(1) 0.5", Self::Ar1 { phi: 0.5 }),
        ("AR(1) 0.7", Self::Ar1 { phi: 0.7 }),
        ("AR(1) 0.9", Self::Ar1 { phi: 0.9 }),
        ("AR(1) 0.95", Self::Ar1 { phi: 0.95 }),
        ("bimodal", Self::Bimodal { dwell: 10.0 }),
        ("spiky", Self::Spiky { share: 0.05, depth: 5.0 }),
        ("drifting", Self::Drifting { phi: 0.999, size: 3.0 }),
        ("wandering", Self::Wandering { phi: 0.95, size: 0.2 }),
    ];

    /// `n` values that follow each other, started as if it had always run, and the mean of the level below them.
    pub fn series(self, n: usize, rng: &mut Rng) -> (Vec<f64>, f64) {
        let mut source = self.source(rng);
        let mut level = 0.0;
        let values = (0..n)
            .map(|_| {
                let value = source.next(rng);
                level += source.level() / n as f64;
                value
            })
            .collect();
        (values, level)
    }

    /// A source of single values.
    pub fn source(self, rng: &mut Rng) -> Source {
        let state = match self {
            Self::Ar1 { .. } => rng.normal(),
            Self::Bimodal { .. } => rng.below(2) as f64 * 2.0 - 1.0,
            Self::Spiky { .. } => 0.0,
            Self::Wandering { size, .. } | Self::Drifting { size, .. } => size * rng.normal(),
        };
        Source { noise: self, state }
    }
}

/// Gives one value after the other.
#[derive(Debug, Clone)]
pub struct Source {
    noise: Noise,
    state: f64,
}

impl Source {
    /// The level that the last value varied about: 0 unless it drifts.
    pub fn level(&self) -> f64 {
        if matches!(self.noise, Noise::Drifting { .. }) { self.state } else { 0.0 }
    }

    /// The next value.
    pub fn next(&mut self, rng: &mut Rng) -> f64 {
        match self.noise {
            Noise::Ar1 { phi } => {
                self.state = phi * self.state + (1.0 - phi * phi).sqrt() * rng.normal();
                self.state
            }
            Noise::Bimodal { dwell } => {
                if rng.f64() * dwell < 1.0 {
                    self.state = -self.state;
                }
                self.state + 0.3 * rng.normal()
            }
            Noise::Spiky { share, depth } => {
                let spike = if rng.f64() < share { depth * rng.exponential() } else { 0.0 };
                rng.normal() - spike + share * depth
            }
            Noise::Wandering { phi, size } | Noise::Drifting { phi, size } => {
                self.state = phi * self.state + size * (1.0 - phi * phi).sqrt() * rng.normal();
                self.state + rng.normal()
            }
        }
    }
}
