//! Steps in virtual time: plans as the user requests them, on servers whose throughput is known, through the load engine,
//! the summary and the bounds. A failure names its seed.

use std::time::Duration;

use mydyno_load::simulation::{ServerScript, ServiceTime, Simulation, Stretch};
use mydyno_load::{End, StepEvent, Warmup};
use mydyno_model::Header;
use mydyno_model::plan::{self, Backend, Plan, StepPlan, TargetKind, TargetPlan, Transport};
use mydyno_model::record::{self, Interval, Manifest, Phase, RunRecord};
use mydyno_model::summary::{Fingerprint, StepSummary};
use mydyno_stats::Rng;
use time::OffsetDateTime;

use crate::bound::Bound;
use crate::request::{Machine, Request, resolve};
use crate::settled::settled;
use crate::steps::{NumberedStep, Work};
use crate::summarise::summarise_step;

/// A plan, its workload, and the server for it.
struct Trial {
    plan: Plan,
    bounds: Vec<Bound>,
    work: Work,
    simulation: Simulation,
}

impl Trial {
    fn new(request: &Request, simulation: Simulation) -> Self {
        let target = TargetPlan {
            kind: TargetKind::Server,
            transport: Transport::Unix,
            address: "/s".to_owned(),
            user: "root".to_owned(),
        };
        let machine = Machine { cpus: 2, backend: Backend::Epoll };
        let resolved = resolve(request, machine).unwrap();
        let work = Work::new(&resolved).unwrap();
        let plan = resolved.draft.on(target, OffsetDateTime::UNIX_EPOCH);
        Self { plan, bounds: resolved.bounds, work, simulation }
    }

    /// Runs a step and derives its summary as a run does.
    fn step(&self, number: usize, step: &StepPlan) -> (End, StepSummary, Vec<Interval>) {
        let transaction = self.work.operations()[0].name.as_str();
        let is_steady = |seen: &[Interval]| settled(&step.arrivals, transaction, seen);
        let warmup = match self.plan.warmup {
            plan::Warmup::Fixed { time_s } => Warmup::Fixed(Duration::from_secs_f64(time_s)),
            plan::Warmup::Steady { limit_s } => {
                Warmup::Steady { limit: Duration::from_secs_f64(limit_s), is_steady: &is_steady }
            }
        };
        let numbered = NumberedStep { number, plan: step, whole: &self.plan, warmup };
        let mut intervals = Vec::new();
        let simulation =
            Simulation { seed: self.simulation.seed + 1_000 * number as u64, ..self.simulation.clone() };
        let mut sink = |event| {
            if let StepEvent::Interval(interval) = event {
                intervals.push(*interval);
            }
        };
        let end = self.work.simulate(&simulation, &numbered, &mut sink).unwrap();
        let record = RunRecord {
            manifest: self.manifest(),
            facts: None,
            intervals: intervals.clone(),
            events: Vec::new(),
            samples: Vec::new(),
        };
        (end, summarise_step(&record, number, step).unwrap(), intervals)
    }

    fn manifest(&self) -> Manifest {
        Manifest {
            header: Header::of::<Manifest>(OffsetDateTime::UNIX_EPOCH),
            run: "simulated".to_owned(),
            plan: self.plan.clone(),
            argv: Vec::new(),
            facts_digest: String::new(),
            clock: record::Clock { name: "virtual".to_owned(), source: None, read_ns: 0.0 },
            fingerprint: Fingerprint { data: String::new(), operations: String::new() },
            operations: self.work.operations().to_vec(),
            extra: serde_json::Map::new(),
        }
    }
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn request() -> Request {
    Request {
        workload: "oltp_point_select".to_owned(),
        connections: text("16"),
        time: text("5s"),
        warmup: text("1s"),
        ..Request::default()
    }
}

fn server(slots: usize, service: ServiceTime) -> ServerScript {
    ServerScript { slots, service, ..ServerScript::default() }
}

#[test]
fn bounds_are_judged_on_what_was_asked_and_not_on_what_was_sent() {
    // A stall of 1.5 s in 5 s of an open loop: nearly a third of the responses wait for it.
    let stall = Stretch { from_ns: 2_500_000_000, length_ns: 1_500_000_000 };
    let stalled = ServerScript { stalls: vec![stall], ..server(16, ServiceTime::Constant(1_000_000)) };
    let bounds = ["p99>1s", "p50>10ms", "max>3s", "tps<100", "errors>0"].map(str::to_owned).to_vec();
    let request = Request { rate: text("400"), fail_if: bounds, ..request() };
    let broken = |server| {
        let trial = Trial::new(&request, Simulation { server, ..Simulation::default() });
        let (end, summary, _) = trial.step(0, &trial.plan.steps[0]);
        assert!(matches!(end, End::Complete(_)), "{end:?}");
        let bounds = trial.bounds.iter();
        bounds.filter_map(|bound| bound.broken_by(&summary)).collect::<Vec<_>>()
    };
    let found = broken(stalled);
    assert!(found.len() == 1 && found[0].starts_with("p99>1s"), "{found:?}");
    assert_eq!(broken(server(16, ServiceTime::Constant(1_000_000))), Vec::<String>::new());
    let slow = broken(server(1, ServiceTime::Constant(20_000_000)));
    assert!(slow.iter().any(|b| b.starts_with("tps<100")), "{slow:?}");
}

#[test]
fn a_summary_of_a_closed_loop_is_that_of_the_server() {
    for seed in 0..20 {
        let random = &mut Rng::from_seed(seed);
        let (slots, service_ms) = (random.between(1, 8), random.between(1, 10));
        let service = ServiceTime::Constant(service_ms * 1_000_000);
        let request = Request { warmup: text("auto"), seed: Some(seed), ..request() };
        let simulation =
            Simulation { seed, server: server(slots as usize, service), ..Simulation::default() };
        let trial = Trial::new(&request, simulation);
        let (end, summary, intervals) = trial.step(0, &trial.plan.steps[0]);
        assert!(matches!(end, End::Complete(_)), "seed {seed}: {end:?}");
        let expected = slots as f64 / service_ms as f64 * 1e3;
        let found = summary.throughput.transactions_per_s.value;
        assert!((found / expected - 1.0).abs() < 0.06, "seed {seed}: {found} of {expected} a second");
        let measured = intervals.iter().filter(|i| i.phase == Phase::Measure).count();
        assert_eq!(measured, 5, "seed {seed}");
    }
}
