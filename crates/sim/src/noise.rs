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
        /// Share of the values that are hit, 0 to 1.
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
    /// Levels drawn anew every `seconds` values, from a standard normal distribution, under noise of 0.3: a background task that runs
    /// for half a minute, a plan that flips. The first level begins at a random phase.
    Levels {
        /// Length of a level.
        seconds: usize,
    },
    /// Pink noise (1/f) from changes of 4 values to those of 512: the sum of AR(1) processes, an octave apart, of equal variance.
    Pink,
    /// Short stalls at intervals that vary by a quarter about `period`: for `length` values the rate falls by `depth`.
    Stalls {
        /// Mean distance of the stalls.
        period: f64,
        /// Length of a stall.
        length: f64,
        /// Depth in standard deviations of the noise between them.
        depth: f64,
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

    /// Further models on which intervals are tested, made without regard to the estimator.
    pub const FURTHER: [(&'static str, Self); 5] = [
        ("levels of 30 s", Self::Levels { seconds: 30 }),
        ("levels of 2 min", Self::Levels { seconds: 120 }),
        ("pink", Self::Pink),
        ("checkpoints", Self::Stalls { period: 30.0, length: 6.0, depth: 2.0 }),
        ("stalls", Self::Stalls { period: 12.0, length: 1.0, depth: 10.0 }),
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
        let mut left = 0.0;
        let mut octaves = Vec::new();
        let state = match self {
            Self::Ar1 { .. } => rng.normal(),
            Self::Bimodal { .. } => rng.below(2) as f64 * 2.0 - 1.0,
            Self::Spiky { .. } => 0.0,
            Self::Wandering { size, .. } | Self::Drifting { size, .. } => size * rng.normal(),
            Self::Levels { seconds } => {
                left = 1.0 + rng.below(seconds as u64) as f64;
                rng.normal()
            }
            Self::Pink => {
                octaves = (0..OCTAVES).map(|_| rng.normal()).collect();
                0.0
            }
            Self::Stalls { period, .. } => {
                left = (period * rng.f64()).floor();
                0.0
            }
        };
        Source { noise: self, state, left, octaves }
    }
}

/// AR(1) processes that make pink noise: time constants of 1, 2, 4 … 128 values.
const OCTAVES: usize = 8;

/// Gives one value after the other.
#[derive(Debug, Clone)]
pub struct Source {
    noise: Noise,
    state: f64,
    /// Values until the level or the stall changes.
    left: f64,
    octaves: Vec<f64>,
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
            Noise::Levels { seconds } => {
                if self.left < 1.0 {
                    self.left = seconds as f64;
                    self.state = rng.normal();
                }
                self.left -= 1.0;
                self.state + 0.3 * rng.normal()
            }
            Noise::Pink => {
                for (octave, value) in self.octaves.iter_mut().enumerate() {
                    let phi = (-(0.5f64.powi(octave as i32))).exp();
                    *value = phi * *value + (1.0 - phi * phi).sqrt() * rng.normal();
                }
                self.octaves.iter().sum::<f64>() / (OCTAVES as f64).sqrt()
            }
            Noise::Stalls { period, length, depth } => {
                // `state` counts the values of a stall that are left; the pause after it varies about period − length.
                if self.state < 1.0 && self.left < 1.0 {
                    self.state = length;
                    self.left = ((period - length) * (0.75 + 0.5 * rng.f64())).round();
                }
                let stalled = self.state >= 1.0;
                if stalled {
                    self.state -= 1.0
                } else {
                    self.left -= 1.0
                }
                rng.normal() + depth * length / period - if stalled { depth } else { 0.0 }
            }
        }
    }
}
