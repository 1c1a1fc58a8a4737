//! Verdicts from intervals.

use mydyno_model::Estimate;

use crate::Error;

/// Direction in which the response is claimed to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// An increase, as of throughput under a good setting.
    Higher,
    /// A decrease, as of latency under a good setting.
    Lower,
}

/// Verdict on the statement "the response changes in this direction by more than δ".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The whole interval lies beyond δ in the direction.
    Supported,
    /// The whole interval lies short of δ: no relevant effect, or one in the other direction.
    Refuted,
    /// The interval contains δ, or there is no interval.
    Undecided,
}

/// An experiment's statement: a direction and the smallest relevant effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statement {
    /// Direction of the effect.
    pub direction: Direction,
    /// δ, the smallest relevant effect, as a share: 0.02 is 2 %. For [`Direction::Lower`] the bounding ratio is 1/(1 + δ), so
    /// that both directions are equally strict.
    pub delta: f64,
}

impl Statement {
    /// # Errors
    /// δ below 0 or not finite.
    pub fn new(direction: Direction, delta: f64) -> Result<Self, Error> {
        if !(delta.is_finite() && delta >= 0.0) {
            return Err(Error::Argument {
                name: "delta",
                value: delta,
                must_be: "0 or above, as 0.02 for 2 %",
            });
        }
        Ok(Self { direction, delta })
    }

    /// The ratio beyond which an effect is relevant.
    pub fn threshold(&self) -> f64 {
        match self.direction {
            Direction::Higher => 1.0 + self.delta,
            Direction::Lower => 1.0 / (1.0 + self.delta),
        }
    }

    /// Distance of a log ratio beyond the threshold, in the direction; negative when it falls short.
    pub fn beyond(&self, log_ratio: f64) -> f64 {
        let beyond = log_ratio - self.threshold().ln();
        if self.direction == Direction::Higher { beyond } else { -beyond }
    }

    /// The verdict on the effect as a ratio. An interval that touches the threshold does not pass it.
    pub fn judge(&self, effect_ratio: &Estimate) -> Verdict {
        let (Some(low), Some(high)) = (effect_ratio.low, effect_ratio.high) else {
            return Verdict::Undecided;
        };
        let threshold = self.threshold();
        let (beyond, short) = match self.direction {
            Direction::Higher => (low > threshold, high < threshold),
            Direction::Lower => (high < threshold, low > threshold),
        };
        match (beyond, short) {
            (true, _) => Verdict::Supported,
            (_, true) => Verdict::Refuted,
            _ => Verdict::Undecided,
        }
    }
}
