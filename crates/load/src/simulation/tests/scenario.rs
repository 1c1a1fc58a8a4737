//! Random steps on random servers.

use std::time::Duration;

use mydyno_model::plan::{Arrivals, ConnectionPlan, RateStep, Shape, Spacing, Spread, StopOnError, Think};
use mydyno_stats::rng::Rng;

use super::Step;
use crate::simulation::{Period, ServerScript, ServiceTime, Simulation};

const MS: u64 = 1_000_000;

/// The scenario of a seed.
pub fn scenario(seed: u64) -> (Step, Simulation) {
    let random = &mut Rng::stream(seed, &[u64::from_be_bytes(*b"scenario")]);
    let connections = random.between(1, 12) as usize;
    let warmup = Duration::from_millis(if one_in(random, 2) { 0 } else { random.between(100, 2_500) });
    let step = Step {
        connections,
        workers: random.between(1, 3.min(connections as u64)) as usize,
        arrivals: arrivals(random),
        seed,
        steady_after: (warmup.as_secs() >= 1 && one_in(random, 3)).then_some(1),
        warmup,
        measure: Duration::from_millis(random.between(200, 3_500)),
        keep: ConnectionPlan {
            reconnect: !one_in(random, 3),
            reconnect_every: one_in(random, 4).then(|| random.between(1, 200)),
            ..ConnectionPlan::default()
        },
        stop_on_error: one_in(random, 8).then(|| StopOnError { except: vec![1213] }),
    };
    let simulation = Simulation {
        seed,
        server: server(random),
        client_stalls: periods(random, 6, 400),
        interrupt_at_ns: one_in(random, 10).then(|| random.between(0, 3_000 * MS)),
    };
    (step, simulation)
}

fn one_in(random: &mut Rng, n: u64) -> bool {
    random.below(n) == 0
}

fn arrivals(random: &mut Rng) -> Arrivals {
    let spread = if one_in(random, 2) { Spread::Constant } else { Spread::Exponential };
    let spacing = if one_in(random, 2) { Spacing::Constant } else { Spacing::Poisson };
    let rate = |random: &mut Rng| random.between(20, 800) as f64;
    match random.below(6) {
        0 => Arrivals::CLOSED,
        1 => Arrivals::Closed { think: Some(Think { mean_s: random.between(1, 50) as f64 / 1e3, spread }) },
        2 | 3 => Arrivals::open(rate(random), spacing),
        4 => {
            let (from_per_s, to_per_s) = (rate(random), rate(random));
            let shape = Shape::Ramp { from_per_s, to_per_s };
            Arrivals::Open { rate_per_s: (from_per_s + to_per_s) / 2.0, spacing, shape }
        }
        _ => {
            let step = |random: &mut Rng| RateStep {
                rate_per_s: rate(random),
                time_s: random.between(1, 15) as f64 / 10.0,
            };
            let steps = vec![step(random), RateStep { rate_per_s: 0.0, time_s: 0.3 }, step(random)];
            Arrivals::Open { rate_per_s: steps[0].rate_per_s, spacing, shape: Shape::Steps { steps } }
        }
    }
}

fn server(random: &mut Rng) -> ServerScript {
    let mean_ns = random.between(2 * MS, 20 * MS);
    let share = |random: &mut Rng, n| if one_in(random, n) { random.f64() * 0.05 } else { 0.0 };
    ServerScript {
        slots: random.between(1, 8) as usize,
        service: if one_in(random, 2) {
            ServiceTime::Constant(mean_ns)
        } else {
            ServiceTime::Exponential(mean_ns)
        },
        network_ns: random.between(5_000, 300_000),
        connect_ns: random.between(100_000, 50 * MS),
        stalls: periods(random, 3, 1_000),
        outages: periods(random, 4, 700),
        errors: one_in(random, 3).then(|| (random.f64() * 0.3, if one_in(random, 2) { 1213 } else { 1146 })),
        cuts: share(random, 4),
        silences: share(random, 6) / 10.0,
        short_sends: share(random, 3) * 4.0,
        split_answers: share(random, 2) * 10.0,
    }
}

/// One stretch within the first three seconds, in one of `n` cases.
fn periods(random: &mut Rng, n: u64, longest_ms: u64) -> Vec<Period> {
    if !one_in(random, n) {
        return Vec::new();
    }
    vec![Period { from_ns: random.between(0, 3_000 * MS), length_ns: random.between(MS, longest_ms * MS) }]
}
