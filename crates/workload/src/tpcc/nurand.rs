//! NURand, the non-uniform distribution of customers, last names and items (clause 2.1.6).

use mydyno_stats::rng::Rng;

use super::{CUSTOMERS, ITEMS, LAST_NAMES};

const A_NAME: u64 = 255;
const A_CUSTOMER: u64 = 1_023;
const A_ITEM: u64 = 8_191;

/// The constants C of NURand, one for each of its uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constants {
    name: u64,
    customer: u64,
    item: u64,
}

impl Constants {
    /// Random constants for the load.
    pub fn for_load(rng: &mut Rng) -> Self {
        Self { name: rng.between(0, A_NAME), ..Self::drawn(rng) }
    }

    /// Random constants for a run on tables that were loaded with `load`. C for last names differs from that of the
    /// load by 65 to 119, but not by 96 or 112 (clause 2.1.6.1).
    pub fn for_run(rng: &mut Rng, load: &Self) -> Self {
        let allowed: Vec<u64> = (0..=A_NAME).filter(|c| may_follow(load.name, *c)).collect();
        let name = allowed[rng.below(allowed.len() as u64) as usize];
        Self { name, ..Self::drawn(rng) }
    }

    fn drawn(rng: &mut Rng) -> Self {
        Self { name: 0, customer: rng.between(0, A_CUSTOMER), item: rng.between(0, A_ITEM) }
    }

    /// The number of a last name, below 1,000.
    pub fn last_name(&self, rng: &mut Rng) -> u64 {
        nurand(rng, A_NAME, self.name, 0, LAST_NAMES - 1)
    }

    /// A customer of a district, from 1 to 3,000.
    pub fn customer(&self, rng: &mut Rng) -> u64 {
        nurand(rng, A_CUSTOMER, self.customer, 1, CUSTOMERS)
    }

    /// An item, from 1 to 100,000.
    pub fn item(&self, rng: &mut Rng) -> u64 {
        nurand(rng, A_ITEM, self.item, 1, ITEMS)
    }
}

/// Whether C for last names may be `run` on tables that were loaded with `load`.
fn may_follow(load: u64, run: u64) -> bool {
    let delta = load.abs_diff(run);
    (65..=119).contains(&delta) && delta != 96 && delta != 112
}

/// NURand(A, x, y) with the constant C: `(((random(0, A) | random(x, y)) + C) % (y − x + 1)) + x`.
fn nurand(rng: &mut Rng, a: u64, c: u64, x: u64, y: u64) -> u64 {
    let bits = rng.between(0, a) | rng.between(x, y);
    (bits + c) % (y - x + 1) + x
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_stats::special::chi2_sf;

    /// Number of pairs (r in 0..=a, s in x..=y) with r | s = v, for each v: the number of pairs below v in the lattice
    /// of bit sets, from which the Möbius transform subtracts the pairs of proper subsets.
    fn pairs(a: u64, x: u64, y: u64) -> Vec<f64> {
        let bits = 64 - y.max(a).leading_zeros();
        let size = 1usize << bits;
        let indicator = |low: u64, high: u64| -> Vec<i64> {
            (0..size as u64).map(|v| i64::from((low..=high).contains(&v))).collect()
        };
        let over_subsets = |values: &mut Vec<i64>, sign: i64| {
            for bit in 0..bits {
                for v in (0..size).filter(|v| v >> bit & 1 == 1) {
                    values[v] += sign * values[v ^ (1 << bit)];
                }
            }
        };
        let (mut first, mut second) = (indicator(0, a), indicator(x, y));
        over_subsets(&mut first, 1);
        over_subsets(&mut second, 1);
        let mut product: Vec<i64> = first.iter().zip(&second).map(|(f, s)| f * s).collect();
        over_subsets(&mut product, -1);
        product.into_iter().map(|n| n as f64).collect()
    }

    /// The share of each result from x to y.
    fn shares(a: u64, c: u64, x: u64, y: u64) -> Vec<f64> {
        let range = y - x + 1;
        let mut shares = vec![0.0; range as usize];
        for (v, n) in pairs(a, x, y).into_iter().enumerate() {
            shares[((v as u64 + c) % range) as usize] += n / ((a + 1) * range) as f64;
        }
        shares
    }

    #[test]
    fn the_transform_counts_as_going_over_all_pairs_does() {
        let mut counted = vec![0.0; 1024];
        for r in 0..=255usize {
            for s in 0..=999usize {
                counted[r | s] += 1.0;
            }
        }
        assert_eq!(pairs(255, 0, 999), counted);
    }

    /// Draws of `draw` against the expected shares, the keys in groups of one percent from the hottest on; the p value
    /// and the expected share of the hottest percent.
    fn fit(shares: &[f64], first: u64, mut draw: impl FnMut() -> u64) -> (f64, f64) {
        const DRAWS: usize = 400_000;
        const GROUPS: usize = 100;
        let mut hottest: Vec<usize> = (0..shares.len()).collect();
        hottest.sort_by(|i, j| shares[*j].total_cmp(&shares[*i]));
        let mut group_of = vec![0; shares.len()];
        let mut expected = [0.0; GROUPS];
        for (rank, key) in hottest.into_iter().enumerate() {
            let group = rank * GROUPS / shares.len();
            group_of[key] = group;
            expected[group] += shares[key];
        }
        let mut seen = [0.0f64; GROUPS];
        for _ in 0..DRAWS {
            seen[group_of[(draw() - first) as usize]] += 1.0;
        }
        let cells = seen.iter().zip(&expected).map(|(n, share)| (n, share * DRAWS as f64));
        let chi2 = cells.map(|(n, e)| (n - e).powi(2) / e).sum();
        (chi2_sf(chi2, (GROUPS - 1) as f64), expected[0])
    }

    #[test]
    fn draws_have_the_exact_distribution() {
        let mut rng = Rng::from_seed(11);
        let c = Constants { name: 123, customer: 259, item: 7_911 };
        let names = fit(&shares(A_NAME, c.name, 0, LAST_NAMES - 1), 0, || c.last_name(&mut rng));
        let customers = fit(&shares(A_CUSTOMER, c.customer, 1, CUSTOMERS), 1, || c.customer(&mut rng));
        let items = fit(&shares(A_ITEM, c.item, 1, ITEMS), 1, || c.item(&mut rng));
        // The shares of the hottest percent come from an independent simulation.
        for (what, (p, hottest), simulated) in
            [("names", names, 0.148), ("customers", customers, 0.222), ("items", items, 0.305)]
        {
            assert!(p > 1e-4, "{what}: p = {p}");
            assert!((hottest - simulated).abs() < 0.005, "{what}: hottest percent {hottest}");
        }
    }

    #[test]
    fn uniform_draws_do_not_pass_for_nurand() {
        let mut rng = Rng::from_seed(12);
        let (p, _) = fit(&shares(A_ITEM, 0, 1, ITEMS), 1, || rng.between(1, ITEMS));
        assert!(p < 1e-12, "{p}");
    }

    #[test]
    fn the_constant_of_a_run_keeps_its_distance_from_that_of_the_load() {
        let mut deltas = std::collections::BTreeSet::new();
        for seed in 0..20_000 {
            let mut rng = Rng::from_seed(seed);
            let load = Constants::for_load(&mut rng);
            let run = Constants::for_run(&mut rng, &load);
            assert!(load.name <= 255 && run.name <= 255 && run.customer <= 1_023 && run.item <= 8_191);
            deltas.insert(load.name.abs_diff(run.name));
        }
        let allowed: Vec<u64> = (65..=119).filter(|d| ![96, 112].contains(d)).collect();
        assert_eq!(deltas.into_iter().collect::<Vec<_>>(), allowed);
    }

    #[test]
    fn every_constant_of_a_load_leaves_some_for_runs() {
        assert!((0..=A_NAME).all(|load| (0..=A_NAME).any(|run| may_follow(load, run))));
    }
}
