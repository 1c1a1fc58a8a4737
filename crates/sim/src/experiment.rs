//! The decision path of an experiment on a virtual clock: design, rows measured one after the other on a noisy server
//! that never was, looks, verdict, forecast. What `prove` does, without the hours.

use crate::noise::{Noise, Source};
use mydyno_stats::Error;
use mydyno_stats::compare::{Pair, log_ratios};
use mydyno_stats::decision::{Decision, walk};
use mydyno_stats::design::paired_blocks;
use mydyno_stats::rng::Rng;
use mydyno_stats::sequential::Schedule;
use mydyno_stats::verdict::Statement;

/// Labels of the random streams.
const MEASURE: u64 = 3;
const CALIBRATE: u64 = 4;

/// A server and its effect, both known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct World {
    /// How its throughput varies from second to second.
    pub noise: Noise,
    /// Size of the noise: standard deviation of the log ratio of two rows of one block (see [`World::calibrated`]).
    pub pair_sd: f64,
    /// Size of one unit of the noise model on the log scale; follows from `pair_sd`.
    unit: f64,
    /// True effect on the log scale.
    pub effect: f64,
    /// Change of the logarithm of throughput from the first second to the last of the longest experiment.
    pub trend: f64,
}

/// How long the parts of a row take on the virtual clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RowTime {
    /// Restoring data, starting, warming up: nothing is measured.
    pub prepare_s: usize,
    /// Measured, a window a second.
    pub measure_s: usize,
}

impl Default for RowTime {
    fn default() -> Self {
        Self { prepare_s: 15, measure_s: 30 }
    }
}

impl World {
    /// A world whose pairs differ by `pair_sd` on the log scale when there is no effect.
    pub fn calibrated(noise: Noise, pair_sd: f64, time: RowTime) -> Self {
        let mut rng = Rng::stream(0, &[CALIBRATE]);
        let mut squares = 0.0;
        const PAIRS: usize = 4000;
        for _ in 0..PAIRS {
            let mut clock = Clock::new(noise, &mut rng);
            let a = clock.row(time, &mut rng);
            let b = clock.row(time, &mut rng);
            squares += (a - b).powi(2);
        }
        let unit = pair_sd / (squares / PAIRS as f64).sqrt();
        Self { noise, pair_sd, unit, effect: 0.0, trend: 0.0 }
    }

    /// The same world with a true effect, as a share (0.05: 5 %).
    #[must_use]
    pub fn with_effect(self, share: f64) -> Self {
        Self { effect: share.ln_1p(), ..self }
    }

    /// The same world with a trend over the whole experiment, as a share.
    #[must_use]
    pub fn with_trend(self, share: f64) -> Self {
        Self { trend: share.ln_1p(), ..self }
    }
}

/// The virtual clock and the noise that runs along it.
struct Clock {
    source: Source,
    now_s: usize,
}

impl Clock {
    fn new(noise: Noise, rng: &mut Rng) -> Self {
        Self { source: noise.source(rng), now_s: 0 }
    }

    /// Mean noise over the measured windows of the next row.
    fn row(&mut self, time: RowTime, rng: &mut Rng) -> f64 {
        for _ in 0..time.prepare_s {
            self.source.next(rng);
        }
        let sum: f64 = (0..time.measure_s).map(|_| self.source.next(rng)).sum();
        self.now_s += time.prepare_s + time.measure_s;
        sum / time.measure_s as f64
    }
}

/// Measures paired blocks in random order, one row after the other on the virtual clock.
pub fn measure(world: &World, blocks: usize, time: RowTime, seed: u64) -> Vec<Pair> {
    let mut rng = Rng::stream(seed, &[MEASURE, world.noise_label()]);
    let table = paired_blocks(blocks, seed);
    let end_s = (table.len() * (time.prepare_s + time.measure_s)) as f64;
    let mut clock = Clock::new(world.noise, &mut rng);
    let mut pairs = vec![Pair { baseline: 1000.0, treatment: 1000.0 }; blocks];
    for row in table {
        let begin_s = clock.now_s as f64;
        let noise = world.unit * clock.row(time, &mut rng);
        let trend = world.trend * (begin_s + clock.now_s as f64) / 2.0 / end_s;
        let pair = &mut pairs[row.block];
        match row.levels[..] {
            [0] => pair.baseline *= (noise + trend).exp(),
            _ => pair.treatment *= (noise + trend + world.effect).exp(),
        }
    }
    pairs
}

/// Runs one experiment as `prove` does: measures blocks and stops at the first look that decides, or when the planned blocks
/// are used up.
///
/// # Errors
/// None that a calibrated world can cause.
pub fn run(
    world: &World,
    statement: &Statement,
    schedule: &Schedule,
    time: RowTime,
    seed: u64,
) -> Result<Decision, Error> {
    let logs = log_ratios(&measure(world, schedule.max_blocks(), time, seed))?;
    walk(&logs, statement, schedule).ok_or_else(|| Error::Design("a schedule without a look".to_owned()))
}

/// The same rows measured one arm after the other, as people do it by hand: mean log of each row of both arms.
pub fn one_arm_after_the_other(
    world: &World,
    blocks: usize,
    time: RowTime,
    seed: u64,
) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::stream(seed, &[MEASURE, world.noise_label()]);
    let mut clock = Clock::new(world.noise, &mut rng);
    let end_s = (2 * blocks * (time.prepare_s + time.measure_s)) as f64;
    let mut arm = |effect: f64| -> Vec<f64> {
        (0..blocks)
            .map(|_| {
                let noise = world.unit * clock.row(time, &mut rng);
                noise + world.trend * clock.now_s as f64 / end_s + effect
            })
            .collect()
    };
    let baseline = arm(0.0);
    (baseline, arm(world.effect))
}

impl World {
    fn noise_label(&self) -> u64 {
        match self.noise {
            Noise::Ar1 { phi } => phi.to_bits(),
            Noise::Bimodal { .. } => 1,
            Noise::Spiky { .. } => 2,
            Noise::Drifting { .. } => 3,
            Noise::Wandering { .. } => 4,
            Noise::Levels { .. } => 5,
            Noise::Pink => 6,
            Noise::Stalls { .. } => 7,
        }
    }
}
