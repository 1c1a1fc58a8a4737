//! The question about the deciding response, and its answer by an interval.

use mydyno_model::Estimate;
use mydyno_model::experiment::{Asks, Finding};
use mydyno_stats::verdict::{Direction, Statement, Verdict};

/// A question with its δ.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question {
    /// Direction of the change in question.
    pub asks: Asks,
    /// δ, the smallest effect that matters, as a share. Ratios from 1/(1 + δ) to 1 + δ do not matter.
    pub delta: f64,
}

impl Question {
    /// The answer by an interval of the effect, a ratio. Touching δ does not exceed it.
    pub fn judge(&self, effect: &Estimate) -> Finding {
        let directed = |direction| {
            let verdict = Statement::new(direction, self.delta).map(|statement| statement.judge(effect));
            verdict.unwrap_or(Verdict::Undecided)
        };
        let up = || directed(Direction::Higher);
        let down = || directed(Direction::Lower);
        match self.asks {
            Asks::Higher => finding(up()),
            Asks::Lower => finding(down()),
            Asks::Differs => match (up(), down()) {
                (Verdict::Supported, _) | (_, Verdict::Supported) => Finding::Supported,
                (Verdict::Refuted, Verdict::Refuted) => Finding::Refuted,
                _ => Finding::Undecided,
            },
        }
    }

    /// The statement whose threshold is nearest to an effect on the log scale, for a forecast.
    pub fn nearest(&self, log_effect: f64) -> Option<Statement> {
        let direction = match self.asks {
            Asks::Higher => Direction::Higher,
            Asks::Lower => Direction::Lower,
            Asks::Differs if log_effect < 0.0 => Direction::Lower,
            Asks::Differs => Direction::Higher,
        };
        Statement::new(direction, self.delta).ok()
    }
}

fn finding(verdict: Verdict) -> Finding {
    match verdict {
        Verdict::Supported => Finding::Supported,
        Verdict::Refuted => Finding::Refuted,
        Verdict::Undecided => Finding::Undecided,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(asks: Asks, low: f64, high: f64) -> Finding {
        let effect = Estimate::with_interval((low * high).sqrt(), low, high, 0.95, "test");
        Question { asks, delta: 0.02 }.judge(&effect)
    }

    #[test]
    fn a_difference_is_supported_on_either_side_of_delta_and_refuted_between_them() {
        assert_eq!(judged(Asks::Differs, 1.03, 1.05), Finding::Supported);
        assert_eq!(judged(Asks::Differs, 0.90, 0.97), Finding::Supported);
        assert_eq!(judged(Asks::Differs, 0.99, 1.015), Finding::Refuted);
        assert_eq!(judged(Asks::Differs, 0.99, 1.03), Finding::Undecided);
        assert_eq!(judged(Asks::Differs, 0.90, 1.10), Finding::Undecided);
    }

    #[test]
    fn a_direction_is_refuted_by_the_other_one() {
        assert_eq!(judged(Asks::Higher, 0.90, 0.95), Finding::Refuted);
        assert_eq!(judged(Asks::Lower, 0.90, 0.95), Finding::Supported);
        assert_eq!(judged(Asks::Lower, 1.00, 1.01), Finding::Refuted);
        assert_eq!(judged(Asks::Higher, 1.00, 1.03), Finding::Undecided);
    }

    #[test]
    fn without_an_interval_nothing_is_decided() {
        let effect = Estimate::without_interval(1.5, "too short");
        for asks in [Asks::Higher, Asks::Lower, Asks::Differs] {
            assert_eq!(Question { asks, delta: 0.0 }.judge(&effect), Finding::Undecided);
        }
    }
}
