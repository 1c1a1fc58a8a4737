//! The search on simulated servers of known capacity.

use mydyno_stats::Rng;

use super::{EndReason, Next, Settings, Trial, claim, next};

/// A queue with `servers` servers that each take `service_s`: Erlang's C, and the tail of its waiting time.
struct Queue {
    servers: u32,
    service_s: f64,
}

impl Queue {
    /// Probability that an arrival waits.
    fn waits(&self, rate: f64) -> f64 {
        let load = rate * self.service_s;
        let c = f64::from(self.servers);
        let (mut term, mut sum) = (1.0, 0.0);
        for n in 0..self.servers {
            sum += term;
            term *= load / f64::from(n + 1);
        }
        let last = term * c / (c - load);
        last / (sum + last)
    }

    /// 99th percentile of the time from arrival to answer, in seconds; infinite beyond saturation. Uses the 99th
    /// percentile of the service time, which is an upper estimate.
    fn p99_s(&self, rate: f64) -> f64 {
        let c = f64::from(self.servers);
        if rate * self.service_s >= c {
            return f64::INFINITY;
        }
        let drain = c / self.service_s - rate;
        let waiting = (self.waits(rate) / 0.01).ln().max(0.0) / drain;
        waiting + self.service_s * 100f64.ln()
    }

    /// The highest rate with a p99 below a limit.
    fn capacity(&self, limit_s: f64) -> f64 {
        let (mut low, mut high) = (0.0, f64::from(self.servers) / self.service_s);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.p99_s(middle) < limit_s { low = middle } else { high = middle }
        }
        low
    }
}

const LIMIT_S: f64 = 0.02;

fn search(settings: &Settings, mut holds: impl FnMut(f64) -> bool) -> (Vec<Trial>, EndReason) {
    let mut trials = Vec::new();
    loop {
        match next(settings, &trials) {
            Next::Done(why) => return (trials, why),
            Next::Measure(rate_per_s) => {
                let held = holds(rate_per_s);
                trials.push(Trial { rate_per_s, held });
            }
        }
    }
}

#[test]
fn the_capacity_of_a_noisy_queue_is_found_from_any_first_rate() {
    let queue = Queue { servers: 8, service_s: 0.003 };
    let truth = queue.capacity(LIMIT_S);
    let settings = |from_per_s| Settings { from_per_s, resolution: 0.05, most_trials: 30 };
    let (mut near, mut searches) = (0, 0);
    for seed in 0..200 {
        for from in [truth / 40.0, truth / 2.0, truth * 7.0] {
            let mut random = Rng::from_seed(seed);
            // A measured p99 has an error of a tenth, sometimes more.
            let measured = |rate: f64| queue.p99_s(rate) * (0.1 * random.normal()).exp();
            let mut measured = measured;
            let (trials, why) = search(&settings(from), |rate| measured(rate) < LIMIT_S);
            assert_eq!(why, EndReason::Found, "{trials:?}");
            let claim = claim(&trials);
            let rate = claim.holds_per_s.unwrap();
            let held = trials.iter().filter(|t| t.rate_per_s == rate && t.held).count();
            assert!(held >= 2 && claim.confirmed, "{rate} was claimed and held {held} times: {trials:?}");
            searches += 1;
            near += usize::from((rate / truth - 1.0).abs() < 0.1);
        }
    }
    assert!(near * 100 >= searches * 95, "{near} of {searches} within a tenth of {truth}");
}

#[test]
fn a_search_stays_within_its_trials_whatever_the_server_does() {
    for seed in 0..500 {
        let mut random = Rng::from_seed(seed);
        let settings = Settings { from_per_s: 100.0, resolution: 0.02, most_trials: 12 };
        let (trials, _) = search(&settings, |_| random.below(2) == 0);
        assert!(trials.len() <= 12, "{}", trials.len());
        if let Some(rate) = claim(&trials).holds_per_s {
            let of = |held| trials.iter().filter(|t| t.rate_per_s == rate && t.held == held).count();
            assert!(of(true) > of(false), "{rate} of {trials:?}");
            let broken_below = trials.iter().any(|t| {
                let same =
                    |held| trials.iter().filter(|u| u.rate_per_s == t.rate_per_s && u.held == held).count();
                t.rate_per_s < rate && same(true) <= same(false)
            });
            assert!(!broken_below, "{rate} of {trials:?}");
        }
    }
}

#[test]
fn a_server_that_one_stall_hit_is_not_sold_short() {
    let queue = Queue { servers: 4, service_s: 0.002 };
    let truth = queue.capacity(LIMIT_S);
    let settings = Settings { from_per_s: truth / 10.0, resolution: 0.05, most_trials: 30 };
    for stalled in 0..12 {
        let mut n = 0;
        let (trials, _) = search(&settings, |rate| {
            n += 1;
            queue.p99_s(rate) < LIMIT_S && n - 1 != stalled
        });
        let rate = claim(&trials).holds_per_s.unwrap();
        assert!(rate > truth * 0.94 && rate <= truth, "stalled in trial {stalled}: {rate} of {truth}");
    }
}
