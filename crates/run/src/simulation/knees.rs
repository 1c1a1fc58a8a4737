//! The search for capacity on simulated servers of known capacity.

use mydyno_load::simulation::{Period, ServerScript, ServiceTime, Simulation};
use mydyno_model::summary::CapacitySummary;
use mydyno_stats::Rng;

use super::{Bench, Ran, for_seeds, point_selects};
use crate::request::Request;

const MS: u64 = 1_000_000;

/// Measured window of a trial, in seconds.
const TIME_S: f64 = 3.0;

/// A server with constant times, searched with evenly spaced arrivals. Up to min(slots ÷ service, connections ÷ (service +
/// both ways of the network)) transactions a second nothing waits; above it the backlog grows for the whole window.
struct Knee {
    connections: u64,
    server: ServerScript,
    capacity_per_s: f64,
    limit_s: f64,
    resolution: f64,
}

impl Knee {
    fn random(random: &mut Rng) -> Self {
        let (slots, service_ns) = (random.between(1, 4), random.between(15 * MS, 40 * MS));
        let network_ns = random.between(5_000, 500_000);
        let connections = random.between(1, 3 * slots);
        let by_slots = slots as f64 / service_ns as f64 * 1e9;
        let by_connections = connections as f64 / (service_ns + 2 * network_ns) as f64 * 1e9;
        let server = ServerScript {
            slots: slots as usize,
            service: ServiceTime::Constant(service_ns),
            network_ns,
            ..ServerScript::default()
        };
        Self {
            connections,
            server,
            capacity_per_s: by_slots.min(by_connections),
            limit_s: 0.06,
            resolution: [0.02, 0.05, 0.1][random.below(3) as usize],
        }
    }

    fn request(&self, first_rate: Option<f64>) -> Request {
        Request {
            connections: Some(self.connections.to_string()),
            rate: first_rate.map(|rate| rate.to_string()),
            arrivals: Some("constant".to_owned()),
            find_capacity: Some(format!("p99<{}ms,errors<1%", self.limit_s * 1e3)),
            resolution: Some(format!("{}%", self.resolution * 100.0)),
            time: Some(format!("{TIME_S}s")),
            ..point_selects()
        }
    }

    /// Above the capacity the last arrival of a window of T seconds waits (rate ÷ capacity − 1) T, so a limit of the
    /// p99 permits a rate that much higher; arrivals are single, and one more connection may be busy at the end.
    fn highest_that_holds(&self) -> f64 {
        let by_wait = 1.0 + self.limit_s / (0.99 * TIME_S);
        self.capacity_per_s * by_wait + 2.0 / TIME_S
    }
}

fn capacity(ran: &Ran) -> &CapacitySummary {
    ran.ended.summary.capacity.as_ref().unwrap()
}

fn check(knee: &Knee, ran: &Ran) {
    let found = capacity(ran);
    assert!(found.end.starts_with("found") && found.confirmed, "{found:#?}");
    let rate = found.rate_per_s.unwrap();
    let lowest = knee.capacity_per_s / (1.0 + knee.resolution) * 0.99;
    let highest = knee.highest_that_holds();
    let bracket = format!("{rate} and not in {lowest}..{highest}, knee {}: {found:#?}", knee.capacity_per_s);
    assert!((lowest..=highest).contains(&rate), "{bracket}");
    let broken = found.broken_at_per_s.unwrap();
    assert!(broken > rate && broken <= rate * (1.0 + knee.resolution) + 1e-9, "{found:#?}");
}

#[test]
fn the_capacity_that_a_search_finds_is_that_of_the_server() {
    for_seeds(60, |seed| {
        let random = &mut Rng::from_seed(seed);
        let knee = Knee::random(random);
        let first = match random.below(3) {
            0 => None,
            1 => Some((knee.capacity_per_s / 8.0).max(1.0)),
            _ => Some(knee.capacity_per_s * 3.0),
        };
        let simulation = Simulation { seed, server: knee.server.clone(), ..Simulation::default() };
        let ran = Bench { request: knee.request(first), simulation }.run().unwrap();
        check(&knee, &ran);
        for trial in &capacity(&ran).trials {
            let holds = trial.broken.is_empty();
            let rate = trial.rate_per_s;
            let (low, high) = (knee.capacity_per_s * 0.99, knee.highest_that_holds());
            assert!(!(holds && rate > high || !holds && rate < low), "knee {low}..{high}: {trial:?}");
        }
    });
}

/// A stall breaks the trial that it hits, at any rate. The rate is measured again before the search relies on it.
#[test]
fn a_stall_in_one_trial_does_not_lower_the_capacity() {
    for_seeds(30, |seed| {
        let random = &mut Rng::from_seed(seed);
        let mut knee = Knee::random(random);
        knee.server.stalls = vec![Period {
            from_ns: random.between(0, 40_000 * MS),
            length_ns: random.between(200, 900) * MS,
        }];
        let simulation = Simulation { seed, server: knee.server.clone(), ..Simulation::default() };
        let first = knee.capacity_per_s / 4.0;
        check(&knee, &Bench { request: knee.request(Some(first)), simulation }.run().unwrap());
    });
}

/// M/M/c with a = λ/μ offered erlangs and Erlang's C: the response time is longer than t with probability e^(−μt) (1 +
/// C (1 − e^(−μt (c − 1 − a))) ÷ (c − 1 − a)).
struct Queue {
    slots: f64,
    service_s: f64,
}

impl Queue {
    fn waits(&self, a: f64) -> f64 {
        // Erlang's B by its recursion, then C.
        let mut b = 1.0;
        for n in 1..=self.slots as u32 {
            b = a * b / (f64::from(n) + a * b);
        }
        b / (1.0 - a / self.slots * (1.0 - b))
    }

    fn longer_than(&self, t_s: f64, rate: f64) -> f64 {
        let (a, mu_t) = (rate * self.service_s, t_s / self.service_s);
        let spare = self.slots - 1.0 - a;
        let waiting = if spare.abs() < 1e-9 { mu_t } else { (1.0 - (-mu_t * spare).exp()) / spare };
        (-mu_t).exp() * (1.0 + self.waits(a) * waiting)
    }

    /// The rate at which the share 1 − q of the responses is longer than the limit.
    fn capacity(&self, q: f64, limit_s: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.slots / self.service_s);
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            if self.longer_than(limit_s, middle) < 1.0 - q { low = middle } else { high = middle }
        }
        low
    }
}

/// Trials of some 2,300 transactions, so that the p90 of a trial has little random error. They take 2 s: a server that is
/// faster by a factor has the same queue in a time that is shorter by it, and fewer windows.
#[test]
fn the_capacity_of_a_queue_is_that_of_erlang() {
    let queue = Queue { slots: 4.0, service_s: 0.0025 };
    let limit_s = 0.008;
    let truth = queue.capacity(0.9, limit_s);
    let mut found = Vec::new();
    for_seeds(6, |seed| {
        let request = Request {
            connections: Some("16".to_owned()),
            rate: Some("400".to_owned()),
            find_capacity: Some(format!("p90<{limit_s}s")),
            resolution: Some("5%".to_owned()),
            time: Some("2s".to_owned()),
            warmup: Some("200ms".to_owned()),
            seed: Some(seed),
            ..point_selects()
        };
        let server = ServerScript {
            slots: 4,
            service: ServiceTime::Exponential(2_500_000),
            network_ns: 0,
            ..ServerScript::default()
        };
        let ran = Bench { request, simulation: Simulation { seed, server, ..Simulation::default() } }
            .run()
            .unwrap();
        let rate = capacity(&ran).rate_per_s.unwrap();
        assert!((rate / truth - 1.0).abs() < 0.15, "{rate} of {truth}: {:#?}", capacity(&ran));
        found.push(rate / truth);
    });
    let mean = found.iter().sum::<f64>() / found.len() as f64;
    assert!((mean - 1.0).abs() < 0.08 || found.len() < 6, "{found:?}");
}
