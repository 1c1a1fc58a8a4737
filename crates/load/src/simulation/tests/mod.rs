//! The load engine against scripted servers in virtual time.

mod arithmetic;
mod properties;
mod scenario;
mod sessions;

use std::time::Duration;

use mydyno_model::plan::{Arrivals, ConnectionPlan, StopOnError, WaitPlan};
use mydyno_model::record::{HistogramData, Interval, OperationTimes, Phase};
use mydyno_stats::{Distribution, Histogram};
use mydyno_workload::oltp::{Mix, OPTIONS, Oltp};
use mydyno_workload::{Options, Workload};

use super::{NO_SERVER, Served, Simulation, simulate};
use crate::{End, StepEvent, StepSpec, Warmup};

/// A step to simulate.
#[derive(Debug, Clone)]
struct Step {
    connections: usize,
    workers: usize,
    arrivals: Arrivals,
    seed: u64,
    warmup: Duration,
    /// Ends the warm-up after so many windows.
    steady_after: Option<usize>,
    measure: Duration,
    keep: ConnectionPlan,
    stop_on_error: Option<StopOnError>,
}

impl Default for Step {
    /// A closed loop of four connections, without warm-up.
    fn default() -> Self {
        Self {
            connections: 4,
            workers: 2,
            arrivals: Arrivals::CLOSED,
            seed: 1,
            warmup: Duration::ZERO,
            steady_after: None,
            measure: Duration::from_secs(2),
            keep: ConnectionPlan::default(),
            stop_on_error: None,
        }
    }
}

/// Report of a simulated step.
struct Ran {
    end: End,
    served: Served,
    events: Vec<String>,
    intervals: Vec<Interval>,
}

fn point_select() -> Oltp {
    Oltp::new(Mix::PointSelect, &Options::resolve("w", OPTIONS, &[]).unwrap(), 1).unwrap()
}

impl Step {
    fn run(&self, simulation: &Simulation) -> Ran {
        self.run_workload(&point_select(), simulation)
    }

    fn run_workload<W: Workload>(&self, workload: &W, simulation: &Simulation) -> Ran {
        let wait = WaitPlan::default();
        let is_steady = |seen: &[Interval]| self.steady_after.is_some_and(|windows| seen.len() >= windows);
        let warmup = match self.steady_after {
            None => Warmup::Fixed(self.warmup),
            Some(_) => Warmup::Steady { limit: self.warmup, is_steady: &is_steady },
        };
        let spec = StepSpec {
            number: 0,
            workload,
            connections: self.connections,
            workers: self.workers,
            arrivals: &self.arrivals,
            seed: self.seed,
            warmup,
            measure: self.measure,
            keep: &self.keep,
            wait: &wait,
            stop_on_error: self.stop_on_error.as_ref(),
            connect: NO_SERVER,
        };
        let (mut events, mut intervals) = (Vec::new(), Vec::new());
        let (end, served) = simulate(simulation, &spec, &mut |event| match event {
            StepEvent::Interval(interval) => {
                events.push(serde_json::to_string(&*interval).unwrap());
                intervals.push(*interval);
            }
            other => events.push(format!("{other:?}")),
        })
        .unwrap();
        Ran { end, served, events, intervals }
    }
}

impl Ran {
    fn sum(&self, of: impl Fn(&Interval) -> u64) -> u64 {
        self.intervals.iter().map(of).sum()
    }

    fn of_phase(&self, phase: Phase) -> impl Iterator<Item = &Interval> {
        self.intervals.iter().filter(move |i| i.phase == phase)
    }

    fn merged(&self, of: impl Fn(&OperationTimes) -> &HistogramData) -> Histogram {
        let mut all = Histogram::default();
        for times in self.intervals.iter().filter_map(|i| i.operations.get("point_select")) {
            all.merge_data(of(times)).unwrap();
        }
        all
    }

    fn response(&self) -> Histogram {
        self.merged(|times| &times.response)
    }

    fn service(&self) -> Histogram {
        self.merged(|times| &times.service)
    }
}

/// Number of a histogram's values above a bound.
fn count_above(histogram: &Histogram, bound_ns: f64) -> u64 {
    let n = histogram.count();
    let above =
        |rank: u64| histogram.quantile_ns((rank as f64 + 0.5) / n as f64).is_some_and(|ns| ns > bound_ns);
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = (low + high) / 2;
        if above(middle) { high = middle } else { low = middle + 1 }
    }
    n - low
}
