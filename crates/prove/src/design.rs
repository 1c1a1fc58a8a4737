//! The run table: which arm is loaded when.
//!
//! A block contains one slice of each arm, close in time and in a new random order for each block, so that slow drift
//! affects all arms alike. Blocks are grouped by start: the servers of one start have their own memory layout, hash
//! seeds and page placement, which all slices of this start share.

use mydyno_model::experiment::definition::Mode;
use mydyno_model::experiment::{Design, Role, Row};
use mydyno_stats::rng::Rng;

use crate::budget::DUETS;

/// Label of the random stream of the order in which servers start.
const STARTING: u64 = u64::from_be_bytes(*b"starting");

/// The random order in which the servers of a start come up. The order decides where a server's memory is placed and
/// which resources the next ones find, so a fixed order would favour one arm each time.
pub fn start_order(start: usize, seed: u64) -> [Role; 3] {
    let mut arms = Role::ALL;
    Rng::stream(seed, &[STARTING, start as u64]).shuffle(&mut arms);
    arms
}

/// Label of the random stream of the order of slices.
const ORDER: u64 = u64::from_be_bytes(*b"alternat");

/// The table of `starts` × `blocks` blocks with one slice of each of the three arms.
pub fn table(starts: usize, blocks: usize, seed: u64) -> Vec<Row> {
    table_of(&Role::ALL, starts, blocks, seed)
}

/// The same with one slice of each of these arms.
pub fn table_of(arms: &[Role], starts: usize, blocks: usize, seed: u64) -> Vec<Row> {
    let mut rng = Rng::stream(seed, &[ORDER]);
    let mut rows = Vec::with_capacity(starts * blocks * arms.len());
    for start in 0..starts {
        for block in 0..blocks {
            let mut arms = arms.to_vec();
            rng.shuffle(&mut arms);
            rows.extend(arms.into_iter().map(|arm| (start, block, arm)));
        }
    }
    let numbered = rows.into_iter().enumerate();
    numbered.map(|(order, (start, block, arm))| Row { order, start, block, arm }).collect()
}

/// Label of the random stream of duets.
const DUET: u64 = u64::from_be_bytes(*b"duet-arm");

/// The table of duets: two rows a block, which are loaded at the same time, the first on the first part of the CPUs. Of
/// four blocks two contain baseline and treatment, two the baseline and its second copy, each pair once on either part;
/// their order is random.
pub fn duets(starts: usize, blocks: usize, seed: u64) -> Vec<Row> {
    let mut rng = Rng::stream(seed, &[DUET]);
    let mut rows = Vec::with_capacity(starts * blocks * 2);
    for start in 0..starts {
        for four in 0..blocks / DUETS {
            let mut pairs = [
                [Role::Baseline, Role::Treatment],
                [Role::Treatment, Role::Baseline],
                [Role::Baseline, Role::Again],
                [Role::Again, Role::Baseline],
            ];
            rng.shuffle(&mut pairs);
            for (place, pair) in pairs.into_iter().enumerate() {
                rows.extend(pair.map(|arm| (start, four * DUETS + place, arm)));
            }
        }
    }
    let numbered = rows.into_iter().enumerate();
    numbered.map(|(order, (start, block, arm))| Row { order, start, block, arm }).collect()
}

/// Rows of a complete block of a design.
pub fn rows_of_block(design: &Design) -> usize {
    if design.mode == Mode::Duet { 2 } else { design.arms.len() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::{prop_assert, prop_assert_eq, proptest};

    use super::*;

    proptest! {
        #[test]
        fn each_block_holds_each_arm_once_and_blocks_follow_each_other(starts in 1usize..6, blocks in 1usize..20, seed: u64) {
            let rows = table(starts, blocks, seed);
            prop_assert_eq!(rows.len(), starts * blocks * 3);
            for (number, block) in rows.chunks(3).enumerate() {
                let arms: BTreeSet<Role> = block.iter().map(|row| row.arm).collect();
                prop_assert_eq!(arms.len(), 3);
                prop_assert!(block.iter().all(|row| row.start == number / blocks && row.block == number % blocks));
            }
            prop_assert!(rows.iter().enumerate().all(|(order, row)| row.order == order));
        }
    }

    #[test]
    fn each_arm_comes_first_equally_often() {
        let rows = table(1, 3000, 7);
        for arm in Role::ALL {
            let first = rows.iter().step_by(3).filter(|row| row.arm == arm).count();
            assert!((900..1100).contains(&first), "{arm:?} is first in {first} of 3000 blocks");
        }
    }

    #[test]
    fn each_arm_starts_in_each_place_equally_often() {
        for arm in Role::ALL {
            for place in 0..3 {
                let there = (0..3000).filter(|start| start_order(*start, 7)[place] == arm).count();
                assert!((900..1100).contains(&there), "{arm:?} in place {place}: {there} of 3000");
            }
        }
    }

    #[test]
    fn each_pair_of_a_duet_is_loaded_on_both_parts_equally_often() {
        let rows = duets(3, 12, 9);
        assert_eq!(rows.len(), 3 * 12 * 2);
        let mut seen = std::collections::BTreeMap::new();
        for (number, pair) in rows.chunks(2).enumerate() {
            assert!(pair.iter().all(|row| row.start == number / 12 && row.block == number % 12), "{pair:?}");
            *seen.entry((pair[0].arm, pair[1].arm)).or_insert(0) += 1;
        }
        assert_eq!(seen.len(), 4);
        assert!(seen.values().all(|times| *times == 9), "{seen:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_table() {
        assert_eq!(table(3, 9, 5), table(3, 9, 5));
        assert_ne!(table(3, 9, 5), table(3, 9, 6));
    }
}
