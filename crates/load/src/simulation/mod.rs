//! The load engine in virtual time: scripted servers instead of sockets, one thread, the same result for the same seed.
//!
//! Connections, tasks, schedules, windows and the merging of workers are those of a real run. Only the transport
//! differs: time advances to the next event when every worker waits, so a minute of load takes milliseconds.

mod network;
mod script;
#[cfg(test)]
mod tests;
mod transport;

use std::sync::mpsc::channel;

use mydyno_model::record::Phase;
use mydyno_wire::WireError;
use mydyno_workload::Workload;

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
pub use script::{START_NS, ServerScript, ServiceTime, Simulation, Stretch};
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
/// The step is stuck, which is a defect.
pub fn simulate<W: Workload>(
    simulation: &Simulation,
    spec: &StepSpec<'_, W>,
    sink: &mut dyn FnMut(StepEvent),
) -> Result<(End, Served), LoadError> {
    let context = StepContext::new(spec);
    let world = World::new(Network::new(simulation, spec.workers, spec.workload.statements().len()));
    let packets = || Packets::new(spec.workload.statements());
    let operations = spec.workload.operations().len();
    let shared: Vec<Shared<SimulatedTransport>> = (0..spec.workers)
        .map(|worker| Shared::new(worker, world.transport(worker), packets(), operations))
        .collect();
    sink(StepEvent::Phase(Phase::Connect, 0.0));
    world.advance(START_NS);
    let (to_coordinator, messages) = channel();
    let mut coordinator = Coordinator::start(&context, spec, START_NS, || (0, 0), sink);
    let mut loops = Vec::new();
    for shared in &shared {
        let ready =
            context.numbers(shared.worker).enumerate().map(|(task, _)| world.open(shared.worker, task));
        let tasks = worker::tasks(&context, shared, ready.collect()).map_err(stuck)?;
        loops.push(Some(EventLoop::start(&context, shared, tasks, START_NS, &to_coordinator)));
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
        if simulation.interrupt_at_ns.is_some_and(|at_ns| world.now_ns() >= START_NS + at_ns) {
            coordinator.interrupt();
        }
        coordinator.decide(|| world.now_ns());
        let before_ns = world.now_ns();
        let next_ns = until_ns.min(world.next_event_ns()).max(before_ns);
        world.advance(after_stalls(simulation, next_ns));
        rounds = if world.now_ns() == before_ns { rounds + 1 } else { 0 };
        if rounds > MOST_ROUNDS {
            return Err(LoadError::Worker(format!("the simulation is stuck at {before_ns} ns")));
        }
        for event_loop in loops.iter_mut().flatten() {
            event_loop.wait(0).and_then(|()| event_loop.after_wait()).map_err(stuck)?;
        }
    }
    drop(loops);
    let end = coordinator.finish(None, sink);
    Ok((end, world.served()))
}

/// When the load generator runs that should run at `at_ns`.
fn after_stalls(simulation: &Simulation, at_ns: u64) -> u64 {
    let stalled = simulation.client_stalls.iter().find(|stall| stall.contains(at_ns));
    stalled.map_or(at_ns, Stretch::end_ns)
}

fn stuck(source: std::io::Error) -> LoadError {
    LoadError::System { what: "simulating a step".to_owned(), source }
}
