//! Run tables: the order in which variants are measured. Randomised from a seed, in blocks, so that influences of time and
//! neighbours are evenly distributed.

use crate::Error;
use crate::rng::Rng;

/// One row of a run table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Block, from 0: rows of one block are compared with one another.
    pub block: usize,
    /// Position in the whole experiment, from 0.
    pub order: usize,
    /// Level of each factor, from 0.
    pub levels: Vec<usize>,
}

/// Labels of the random streams, so that no two uses share a stream.
const PAIRED: u64 = 1;
const FACTORIAL: u64 = 2;

/// A table of `blocks` blocks of two rows, level 0 (baseline) and level 1 (treatment), with the order of each block randomised
/// independently. Alternating orders would cancel a trend a little better, but would make neighbouring blocks of a correlated
/// server err alike, and the interval too narrow; independent randomisation keeps the interval valid, and a trend adds less to
/// one block than noise does.
pub fn paired_blocks(blocks: usize, seed: u64) -> Vec<Row> {
    let mut rng = Rng::stream(seed, &[PAIRED]);
    let mut rows = Vec::with_capacity(2 * blocks);
    for block in 0..blocks {
        let first = rng.below(2) as usize;
        for level in [first, 1 - first] {
            rows.push(Row { block, order: rows.len(), levels: vec![level] });
        }
    }
    rows
}

/// All combinations of levels (as in `[2, 2, 3]`) in each of `blocks` blocks, in random order within the block.
///
/// # Errors
/// No factor, a factor with fewer than two levels, or more than 1,000 rows a block.
pub fn full_factorial(levels: &[usize], blocks: usize, seed: u64) -> Result<Vec<Row>, Error> {
    let combinations = levels.iter().try_fold(1usize, |product, l| product.checked_mul(*l));
    let Some(combinations) = combinations.filter(|c| *c <= 1000 && !levels.is_empty()) else {
        return Err(Error::Design(format!(
            "{levels:?} levels: at least one factor, at most 1000 combinations"
        )));
    };
    if let Some(few) = levels.iter().find(|l| **l < 2) {
        return Err(Error::Design(format!("a factor has {few} levels; a factor needs at least two")));
    }
    let mut rng = Rng::stream(seed, &[FACTORIAL]);
    let mut rows = Vec::with_capacity(combinations * blocks);
    for block in 0..blocks {
        let mut order: Vec<usize> = (0..combinations).collect();
        rng.shuffle(&mut order);
        for mut combination in order {
            // The first factor changes fastest.
            let row_levels = levels
                .iter()
                .map(|l| {
                    let level = combination % l;
                    combination /= l;
                    level
                })
                .collect();
            rows.push(Row { block, order: rows.len(), levels: row_levels });
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn each_block_measures_both_variants(blocks in 0usize..40, seed: u64) {
            let rows = paired_blocks(blocks, seed);
            prop_assert_eq!(rows.len(), 2 * blocks);
            for (i, pair) in rows.chunks(2).enumerate() {
                prop_assert!(pair.iter().all(|r| r.block == i));
                prop_assert_eq!(pair[0].levels[0] + pair[1].levels[0], 1);
            }
        }

        #[test]
        fn a_factorial_block_holds_each_combination_once(levels in proptest::collection::vec(2usize..4, 1..4), seed: u64) {
            let rows = full_factorial(&levels, 3, seed).unwrap();
            let combinations: usize = levels.iter().product();
            for block in rows.chunks(combinations) {
                let distinct: BTreeSet<_> = block.iter().map(|r| r.levels.clone()).collect();
                prop_assert_eq!(distinct.len(), combinations);
                prop_assert!(block.iter().all(|r| r.levels.iter().zip(&levels).all(|(l, n)| l < n)));
            }
        }
    }

    #[test]
    fn both_orders_are_equally_likely() {
        let first: usize = (0..400).map(|seed| paired_blocks(1, seed)[0].levels[0]).sum();
        assert!((160..240).contains(&first), "{first} of 400 begin with the treatment");
    }

    #[test]
    fn a_seed_gives_the_same_table_and_another_seed_another() {
        assert_eq!(paired_blocks(12, 5), paired_blocks(12, 5));
        assert_ne!(paired_blocks(12, 5), paired_blocks(12, 6));
    }

    #[test]
    fn tables_without_a_choice_are_refused() {
        for levels in [&[][..], &[1], &[2, 0], &[100, 100]] {
            assert!(full_factorial(levels, 1, 0).is_err(), "{levels:?}");
        }
    }
}
