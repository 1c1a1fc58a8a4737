//! Benches in virtual time: from the request to the verdict, on simulated servers with known behaviour. The request,
//! steps, hand-overs, the search for capacity, the record, its reader, the summary, bounds and the verdict are the code
//! of a real run; only the server and the clock are simulated.

mod arithmetic;
mod knees;
mod random;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use indexmap::IndexMap;
use mydyno_load::clock::Clock;
use mydyno_load::simulation::{NO_SERVER, Served, SimulatedServer, Simulation};
use mydyno_load::{End, LoadError, StepEvent, StepSpec};
use mydyno_model::Header;
use mydyno_model::facts::FactSet;
use mydyno_model::plan::{Backend, TargetKind, TargetPlan, Transport};
use mydyno_model::record::{self, Interval, Manifest, Phase, RunRecord};
use mydyno_model::summary::{Fingerprint, StepSummary};
use mydyno_wire::{ConnectOptions, Endpoint, WireError};
use mydyno_workload::Workload;
use time::OffsetDateTime;

use crate::course::{self, CourseEnd};
use crate::error::RunError;
use crate::progress::Progress;
use crate::recording::Recording;
use crate::request::{Machine, Request, Resolved, resolve};
use crate::server::LoadedServer;
use crate::steps::{NumberedStep, StepVisitor, Work};
use crate::tables::LoadSite;
use crate::trial::{Ended, finish};
use crate::writer::{self, Writer};

/// A bench to simulate.
#[derive(Debug)]
struct Bench {
    request: Request,
    simulation: Simulation,
}

/// Result of a simulated bench.
struct Ran {
    ended: Ended,
    /// The record, as read from its folder.
    record: RunRecord,
    /// Windows in the order in which they were handed over.
    seen: Vec<Interval>,
    /// Numbers of the steps in the order in which they began.
    begun: Vec<usize>,
    served: Served,
}

/// A request for point selects: one statement a transaction.
fn point_selects() -> Request {
    Request {
        workload: "oltp_point_select".to_owned(),
        warmup: Some("0".to_owned()),
        no_observe: true,
        no_profile: true,
        ..Request::default()
    }
}

impl Bench {
    fn resolved(&self) -> Resolved {
        let machine = Machine { cpus: 2, backend: Backend::Epoll, session_groups: false };
        resolve(&self.request, machine).unwrap_or_else(|errors| panic!("{errors:#?}"))
    }

    /// Runs the bench, with its record in a folder that is removed.
    fn run(&self) -> Result<Ran, RunError> {
        let folder = tempfile::tempdir().unwrap();
        self.run_in(folder.path())
    }

    fn run_in(&self, folder: &Path) -> Result<Ran, RunError> {
        let resolved = self.resolved();
        let work = Work::new(&resolved).unwrap();
        let target = TargetPlan {
            kind: TargetKind::Sandbox,
            transport: Transport::Unix,
            address: "/simulated".to_owned(),
            user: "simulated".to_owned(),
        };
        let plan = resolved.draft.on(target, OffsetDateTime::UNIX_EPOCH);
        let connect = ConnectOptions::new(Endpoint::Unix("/simulated".into()), "simulated");
        let place = LoadSite { plan: &plan, options: &resolved.options, work: &work, connect: &connect };
        let manifest = Manifest {
            header: Header::of::<Manifest>(OffsetDateTime::UNIX_EPOCH),
            run: "simulated".to_owned(),
            plan: plan.clone(),
            argv: Vec::new(),
            facts_digest: String::new(),
            clock: record::Clock { name: "virtual".to_owned(), source: None, read_ns: 0.0 },
            fingerprint: Fingerprint { data: String::new(), operations: work.fingerprint() },
            operations: work.operations().to_vec(),
            extra: serde_json::Map::new(),
        };
        let facts = FactSet {
            header: Header::of::<FactSet>(OffsetDateTime::UNIX_EPOCH),
            facts: IndexMap::new(),
            extra: serde_json::Map::new(),
        };
        let mut writer = Writer::create(writer::claim(folder)?, &manifest, &facts)?;
        let server = SimulatedServer::new(self.simulation.clone());
        let (mut seen, mut begun) = (Vec::new(), Vec::new());
        let mut watch = |progress: Progress<'_>| match progress {
            Progress::Interval { interval, .. } => seen.push(interval.clone()),
            Progress::Step { number, .. } => begun.push(number),
            _ => {}
        };
        let (no_samples, samples) = channel();
        drop(no_samples);
        let mut recording = Recording::new(place, &manifest, &server, &mut writer, &samples, &mut watch);
        let how: CourseEnd = course::run(&mut recording, &AtomicBool::new(false))?;
        let ended = finish(folder, writer, server.clock(), how, &plan)?;
        let record = crate::folder::read(folder)?;
        Ok(Ran { ended, record, seen, begun, served: server.served() })
    }
}

impl Ran {
    fn steps(&self) -> &[StepSummary] {
        &self.ended.summary.steps
    }

    fn of_step(&self, step: usize) -> impl Iterator<Item = &Interval> {
        self.record.intervals.iter().filter(move |i| i.step == step)
    }

    fn measured(&self, step: usize) -> impl Iterator<Item = &Interval> {
        self.of_step(step).filter(|i| i.phase == Phase::Measure)
    }

    /// Whether the summary warns of something.
    fn warns_of(&self, id: &str) -> bool {
        self.ended.summary.warnings.iter().any(|warning| warning.id == id)
    }
}

impl LoadedServer for SimulatedServer {
    fn clock(&self) -> &dyn Clock {
        SimulatedServer::clock(self)
    }

    fn restore_tables(&self, _: LoadSite<'_>) -> Result<(), RunError> {
        Ok(())
    }

    fn load(
        &self,
        place: LoadSite<'_>,
        step: &NumberedStep<'_>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        place.work.visit_oltp(step, NO_SERVER, SimulatedLoad { server: self, stop, sink })
    }

    fn unreachable(&self, _: LoadSite<'_>) -> Option<WireError> {
        let refused = || std::io::ErrorKind::ConnectionRefused.into();
        self.is_away().then(|| WireError::Io { during: "connecting", source: refused() })
    }
}

struct SimulatedLoad<'a> {
    server: &'a SimulatedServer,
    stop: &'a AtomicBool,
    sink: &'a mut dyn FnMut(StepEvent),
}

impl StepVisitor for SimulatedLoad<'_> {
    type Output = Result<End, LoadError>;

    fn visit<W: Workload>(self, spec: &StepSpec<'_, W>) -> Self::Output {
        self.server.run_step(spec, self.stop, self.sink)
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs `check` on the seeds that the environment selects: `MYDYNO_SEED=N` only that one, `MYDYNO_SEEDS=N` this many,
/// else `count`. A failure prints its seed. Prints how many seeds a minute were checked.
fn for_seeds(count: u64, mut check: impl FnMut(u64)) {
    let seeds = match number("MYDYNO_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("MYDYNO_SEEDS").unwrap_or(count),
    };
    let (began, count) = (std::time::Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(seed)));
        if let Err(panic) = checked {
            eprintln!("seed {seed} failed: repeat it with MYDYNO_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
    let per_minute = count as f64 / began.elapsed().as_secs_f64() * 60.0;
    println!("{count} seeds, {per_minute:.0} a minute");
}
