//! The steps of a sweep and the order in which they run.

use mydyno_model::plan::{Arrivals, StepPlan};
use mydyno_stats::Rng;

/// Name of the random stream of the order, separate from those of rows and operations.
const ORDER: u64 = u64::from_be_bytes(*b"\0\0\0order");

/// Connections × arrivals × repeats. A step has no more workers than connections.
pub(super) fn steps(
    connections: &[usize],
    workers: impl Fn(usize) -> usize,
    arrivals: &[Arrivals],
    repeats: usize,
) -> Vec<StepPlan> {
    let mut steps = Vec::with_capacity(connections.len() * arrivals.len() * repeats);
    for &connections in connections {
        for arrivals in arrivals {
            steps.extend((0..repeats).map(|repeat| StepPlan {
                connections,
                workers: workers(connections).min(connections),
                arrivals: arrivals.clone(),
                repeat,
            }));
        }
    }
    steps
}

/// The order of the steps: for every repeat a round over all points, each in a new random order. So a drift affects all
/// points alike, and after an interruption the numbers of repeats differ by at most one.
pub(super) fn order(steps: &[StepPlan], seed: u64) -> Vec<usize> {
    let repeats = steps.iter().map(|s| s.repeat + 1).max().unwrap_or(0);
    let mut rng = Rng::stream(seed, &[ORDER]);
    let mut order = Vec::with_capacity(steps.len());
    for repeat in 0..repeats {
        let mut round: Vec<usize> = (0..steps.len()).filter(|n| steps[*n].repeat == repeat).collect();
        rng.shuffle(&mut round);
        order.extend(round);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep() -> Vec<StepPlan> {
        let arrivals = [Arrivals::CLOSED, Arrivals::open(100.0, mydyno_model::plan::Spacing::Poisson)];
        steps(&[1, 8, 64], |_| 4, &arrivals, 3)
    }

    #[test]
    fn steps_are_connections_by_arrivals_by_repeats() {
        let steps = sweep();
        assert_eq!(steps.len(), 18);
        let points: Vec<_> = steps.iter().map(|s| (s.connections, s.workers, s.repeat)).collect();
        assert_eq!(points[..4], [(1, 1, 0), (1, 1, 1), (1, 1, 2), (1, 1, 0)]);
        assert!(steps[0].same_point(&steps[2]) && !steps[2].same_point(&steps[3]));
    }

    #[test]
    fn every_round_visits_every_point_once_and_the_seed_decides_how() {
        let steps = sweep();
        let order = order(&steps, 7);
        for (repeat, round) in order.chunks(6).enumerate() {
            assert!(round.iter().all(|n| steps[*n].repeat == repeat), "{round:?}");
            let mut points: Vec<usize> = round.iter().map(|n| n / 3).collect();
            points.sort_unstable();
            assert_eq!(points, [0, 1, 2, 3, 4, 5]);
        }
        assert_eq!(order, super::order(&steps, 7));
        assert_ne!(order, super::order(&steps, 8));
    }

    #[test]
    fn the_order_of_a_seed_never_changes() {
        assert_eq!(
            order(&steps(&[1, 2, 4, 8, 16, 32], |_| 1, &[Arrivals::CLOSED], 1), 1),
            [3, 0, 4, 1, 5, 2]
        );
    }
}
