//! Cells of the tables, each simulated once for all tests that assert something of it.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

use mydyno_sim::coverage::{self, Tally};
use mydyno_sim::noise::Noise;

/// A cell that one test simulates while others wait for it.
type Cell = Arc<OnceLock<Tally>>;

static CELLS: LazyLock<Mutex<HashMap<String, Cell>>> = LazyLock::new(Mutex::default);

fn once(key: String, simulate: impl FnOnce() -> Tally) -> Tally {
    let cell = Arc::clone(CELLS.lock().unwrap().entry(key).or_default());
    *cell.get_or_init(simulate)
}

/// [`coverage::means`].
pub fn means(noise: Noise, n: usize, seeds: u64) -> Tally {
    once(format!("means {noise:?} {n} {seeds}"), || coverage::means(noise, n, seeds))
}

/// [`coverage::counts`].
pub fn counts(noise: Noise, n: usize, seeds: u64) -> Tally {
    once(format!("counts {noise:?} {n} {seeds}"), || coverage::counts(noise, n, seeds))
}
