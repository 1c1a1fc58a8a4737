//! The load engine in virtual time: scripted servers instead of sockets, one thread, the same result for the same seed.
//!
//! Connections, tasks, schedules, windows and the merging of workers are those of a real run. Only the transport
//! differs: time advances to the next event when every worker waits, so a minute of load takes milliseconds.

mod network;
mod script;
#[cfg(test)]
mod tests;
mod transport;

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;

use mydyno_model::record::Phase;
use mydyno_wire::WireError;
use mydyno_workload::Workload;

use crate::clock::Clock;
use crate::context::StepContext;
use crate::coordinator::Coordinator;
use crate::error::LoadError;
use crate::event::{End, StepEvent, StepSpec};
use crate::handover::Message;
use crate::opening::Connect;
use crate::packets::Packets;
use crate::shared::Shared;
use crate::worker::{self, EventLoop, LONGEST_WAIT_NS};

use network::Network;
pub use network::Served;
pub use script::{Period, START_NS, ServerScript, ServiceTime, Simulation};
pub use transport::VirtualClock;
use transport::{SimulatedTransport, World};

/// Rounds of the event loops at one instant, beyond which the simulation is stuck.
const MOST_ROUNDS: u32 = 100_000;

/// For [`StepSpec::connect`] of a simulated step, which opens its connections itself.
pub const NO_SERVER: Connect<'static> =
    &|| Err(WireError::Unsupported("a simulation has no server".to_owned()));

/// Runs one step in virtual time, and returns how it ended and what the server did. The step begins at second 0 of the
/// virtual clock; idle connections and limits of the rate of connecting are not simulated.
///
/// # Errors
/// The server is away, or the step is stuck, which is a defect.
pub fn simulate<W: Workload>(
    simulation: &Simulation,
    spec: &StepSpec<'_, W>,
    sink: &mut dyn FnMut(StepEvent),
) -> Result<(End, Served), LoadError> {
    let server = SimulatedServer::new(simulation.clone());
    let end = server.run_step(spec, &AtomicBool::new(false), sink)?;
    Ok((end, server.served()))
}

/// A scripted server and its clock, which goes on from step to step of a run.
#[derive(Debug)]
pub struct SimulatedServer {
    simulation: Simulation,
    clock: VirtualClock,
    served: Cell<Served>,
}

impl SimulatedServer {
    /// A server whose clock is at 0.
    pub fn new(simulation: Simulation) -> Self {
        Self { simulation, clock: VirtualClock::default(), served: Cell::default() }
    }

    /// The clock of the run.
    pub fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    /// Actions of the server in all steps so far.
    pub fn served(&self) -> Served {
        self.served.get()
    }

    /// Whether it refuses connections at this instant of its clock.
    pub fn is_away(&self) -> bool {
        self.simulation.server.is_away(self.clock.now_ns())
    }

    fn is_interrupted(&self) -> bool {
        let at_ns = self.simulation.interrupt_at_ns;
        at_ns.is_some_and(|at_ns| self.clock.now_ns() >= START_NS + at_ns)
    }

    /// Runs the next step in virtual time. Its connections are open [`START_NS`] after its beginning.
    ///
    /// # Errors
    /// The run is interrupted when the step begins, or the server is away when connections are to be open, or the step is stuck, which is a defect.
    pub fn run_step<W: Workload>(
        &self,
        spec: &StepSpec<'_, W>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        let stopped = || stop.load(Ordering::Relaxed) || self.is_interrupted();
        sink(StepEvent::Phase(Phase::Connect, self.clock.now_s()));
        if stopped() {
            return Err(LoadError::Interrupted);
        }
        let context = StepContext::new(spec);
        let start_ns = self.clock.now_ns() + START_NS;
        let statements = spec.workload.statements();
        let network = Network::new(&self.simulation, self.clock.now_ns(), spec.workers, statements.len());
        let world = World::new(self.clock.clone(), network);
        let operations = spec.workload.operations().len();
        let shared: Vec<Shared<SimulatedTransport>> = (0..spec.workers)
            .map(|worker| {
                Shared::new(
                    worker,
                    world.transport(worker),
                    Packets::new(statements),
                    operations,
                    Arc::clone(&context.columns),
                )
            })
            .collect();
        world.advance(start_ns);
        if self.is_away() {
            return Err(network::refused(0, spec.connections));
        }
        let (to_coordinator, messages) = channel();
        let mut coordinator = Coordinator::start(&context, spec, start_ns, || (0, 0), sink);
        let mut loops = Vec::new();
        for shared in &shared {
            let ready =
                context.numbers(shared.worker).enumerate().map(|(task, _)| world.open(shared.worker, task));
            let tasks = worker::tasks(&context, shared, ready.collect()).map_err(stuck)?;
            loops.push(Some(EventLoop::start(&context, shared, tasks, start_ns, &to_coordinator)));
        }
        let mut rounds = 0;
        while coordinator.is_running() {
            let mut until_ns = world.now_ns() + LONGEST_WAIT_NS;
            for (worker, slot) in loops.iter_mut().enumerate() {
                match slot.as_mut().map(EventLoop::before_wait) {
                    None => {}
                    Some(Some(due_ns)) => until_ns = until_ns.min(due_ns),
                    Some(None) => {
                        *slot = None;
                        // The receiver lives as long as this function.
                        let _ = to_coordinator.send(Message::Gone { worker });
                    }
                }
            }
            while let Ok(message) = messages.try_recv() {
                coordinator.take(message, sink);
            }
            if stopped() {
                coordinator.interrupt();
            }
            coordinator.decide(|| world.now_ns());
            let before_ns = world.now_ns();
            let next_ns = until_ns.min(world.next_event_ns()).max(before_ns);
            world.advance(after_stalls(&self.simulation, next_ns));
            rounds = if world.now_ns() == before_ns { rounds + 1 } else { 0 };
            if rounds > MOST_ROUNDS {
                return Err(LoadError::Worker(format!("the simulation is stuck at {before_ns} ns")));
            }
            for event_loop in loops.iter_mut().flatten() {
                event_loop.wait(0).and_then(|()| event_loop.after_wait()).map_err(stuck)?;
            }
        }
        drop(loops);
        self.served.set(self.served.get().plus(&world.served()));
        Ok(coordinator.finish(None, sink))
    }
}

/// When the load generator runs that should run at `at_ns`.
fn after_stalls(simulation: &Simulation, at_ns: u64) -> u64 {
    let stalled = simulation.client_stalls.iter().find(|stall| stall.contains(at_ns));
    stalled.map_or(at_ns, Period::end_ns)
}

fn stuck(source: std::io::Error) -> LoadError {
    LoadError::System { what: "simulating a step".to_owned(), source }
}
