//! Number of server starts and blocks that fit into a budget of time.

use mydyno_model::experiment::definition::Mode;

use crate::analyse::Unit;
use crate::error::ProveError;

/// Arms of every block: baseline, treatment, and the baseline's second copy.
const ARMS: f64 = 3.0;
/// Opening connections and waiting for the last answers of a slice, in seconds, as measured with 16 to 64 connections.
pub(crate) const TURN_S: f64 = 0.1;
/// Making, starting and ending one private server with its tables, in seconds: an estimate until one was measured.
pub const START_S: f64 = 4.0;
/// Fewest blocks of a start: with fewer, one bad second would decide.
const FEWEST_BLOCKS: usize = 4;
/// Starts for an interval over starts: t with 4 degrees of freedom is 2.8, with 2 it is 4.3.
const STARTS: usize = 5;
/// Blocks of duets in which the baseline runs together with each of the other two arms once on each part of the CPUs.
pub(crate) const DUETS: usize = 4;
/// Most starts of an experiment with one start per row.
const MOST_ROWS: usize = 100;
/// Most blocks of a start: the table is written before the first slice.
const MOST_BLOCKS: usize = 10_000;

/// Lengths of the parts of an experiment, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Times {
    /// Measured part of a slice.
    pub slice_s: f64,
    /// Part that is cut from its beginning.
    pub settle_s: f64,
    /// Load on each server after its start.
    pub warmup_s: f64,
    /// Making, starting and ending the three servers of a start.
    pub start_s: f64,
    /// Preparing each slice, beside opening connections.
    pub set_up_s: f64,
    /// Arms beyond baseline, treatment and the baseline's second copy.
    pub further_arms: usize,
}

impl Times {
    /// One block: a slice of each arm, or one slice of two arms at the same time.
    fn block_s(&self, mode: Mode) -> f64 {
        let slices = if mode == Mode::Duet { 1.0 } else { self.arms() };
        slices * (self.slice_s + self.settle_s + TURN_S + self.set_up_s)
    }

    /// Arms that are measured in each block.
    fn arms(&self) -> f64 {
        ARMS + self.further_arms as f64
    }

    /// The same for a probe, which needs no server, and these seconds to prepare a slice of each arm. Without arms of a
    /// probe nothing changes.
    #[must_use]
    pub(crate) fn of_probe(self, set_up_s: &[f64]) -> Self {
        match set_up_s {
            [] => self,
            all => Self {
                warmup_s: 0.0,
                start_s: 0.0,
                set_up_s: all.iter().sum::<f64>() / all.len() as f64,
                ..self
            },
        }
    }

    /// One start with this many blocks.
    fn start_with_s(&self, blocks: usize, mode: Mode) -> f64 {
        // In place there is one server; otherwise each arm has its own, at the same time or one after the other.
        let servers = if mode == Mode::InPlace { 1.0 } else { self.arms() };
        servers * (self.start_s + self.warmup_s) + blocks as f64 * self.block_s(mode)
    }

    /// The whole experiment.
    pub fn total_s(&self, shape: Shape, mode: Mode) -> f64 {
        shape.starts as f64 * self.start_with_s(shape.blocks_per_start, mode)
    }
}

/// The numbers of starts and blocks of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Starts of the servers.
    pub starts: usize,
    /// Blocks of each.
    pub blocks_per_start: usize,
}

/// The shape for a budget. Starts: the user's number; else five, or three where five do not fit; one for levers that
/// are swapped in place; as many as fit where each row has its own start.
///
/// # Errors
/// Not even the smallest experiment fits.
pub fn shape(budget_s: f64, times: &Times, starts: Option<usize>, mode: Mode) -> Result<Shape, ProveError> {
    let blocks = |starts: usize| {
        let left = budget_s / starts as f64 - times.start_with_s(0, mode);
        (left / times.block_s(mode)).floor().max(0.0) as usize
    };
    let (fewest_starts, wanted, fewest_blocks) = match mode {
        Mode::Alternate => (Unit::Start.first_look(), STARTS, FEWEST_BLOCKS),
        Mode::Duet => (Unit::Start.first_look(), STARTS, 2 * DUETS),
        Mode::InPlace => (1, 1, Unit::Block.first_look()),
        Mode::Rows => {
            let fit = (budget_s / times.start_with_s(1, mode)).floor().max(0.0) as usize;
            (Unit::Start.first_look(), fit.clamp(Unit::Start.first_look(), MOST_ROWS), 1)
        }
    };
    let (fewest, wanted) = starts.map_or((fewest_starts, wanted), |starts| (starts, starts));
    let starts = if blocks(wanted) >= fewest_blocks { wanted } else { fewest };
    if blocks(starts) < fewest_blocks {
        let needed_s = times.total_s(Shape { starts, blocks_per_start: fewest_blocks }, mode).ceil();
        return Err(ProveError::Budget { budget_s, starts, blocks: fewest_blocks, needed_s });
    }
    let blocks_per_start = match mode {
        Mode::Rows => 1,
        Mode::Duet => blocks(starts).min(MOST_BLOCKS) / DUETS * DUETS,
        Mode::Alternate | Mode::InPlace => blocks(starts).min(MOST_BLOCKS),
    };
    Ok(Shape { starts, blocks_per_start })
}

#[cfg(test)]
mod tests {
    use proptest::{prop_assert, proptest};

    use super::*;

    const TIMES: Times = Times {
        slice_s: 1.0,
        settle_s: 0.25,
        warmup_s: 3.0,
        start_s: START_S,
        set_up_s: 0.0,
        further_arms: 0,
    };

    #[test]
    fn a_long_budget_has_five_starts_and_a_short_one_three() {
        assert_eq!(shape(600.0, &TIMES, None, Mode::Alternate).unwrap().starts, 5);
        assert_eq!(shape(120.0, &TIMES, None, Mode::Alternate).unwrap().starts, 3);
        assert_eq!(shape(600.0, &TIMES, Some(9), Mode::Alternate).unwrap().starts, 9);
    }

    #[test]
    fn a_budget_that_holds_nothing_names_what_is_needed() {
        let error = shape(30.0, &TIMES, None, Mode::Alternate).unwrap_err().to_string();
        assert!(error.contains("give --budget 112s"), "{error}");
        assert!(shape(112.0, &TIMES, None, Mode::Alternate).is_ok());
    }

    #[test]
    fn levers_in_place_have_one_start_and_rows_a_start_each() {
        let times = Times { slice_s: 10.0, settle_s: 2.0, ..TIMES };
        assert_eq!(
            shape(60.0, &TIMES, None, Mode::InPlace).unwrap(),
            Shape { starts: 1, blocks_per_start: 13 }
        );
        let rows = shape(600.0, &times, None, Mode::Rows).unwrap();
        // Three rows of 4 + 3 + 10 + 2 + 0.1 s each.
        assert_eq!(rows, Shape { starts: 10, blocks_per_start: 1 });
    }

    #[test]
    fn duets_come_in_fours_and_take_one_slice_each() {
        let found = shape(300.0, &TIMES, None, Mode::Duet).unwrap();
        // 300 / 5 - 3 x 7 s are left of a start, and a block takes 1.35 s: 28 fit.
        assert_eq!(found, Shape { starts: 5, blocks_per_start: 28 });
    }

    proptest! {
        #[test]
        fn what_is_planned_fits_the_budget(budget_s in 120.0f64..10_000.0, slice_s in 0.5f64..2.0) {
            let times = Times { slice_s, ..TIMES };
            if let Ok(shape) = shape(budget_s, &times, None, Mode::Alternate) {
                prop_assert!(times.total_s(shape, Mode::Alternate) <= budget_s + 1e-6);
                prop_assert!(shape.blocks_per_start >= FEWEST_BLOCKS);
            }
        }
    }
}
