//! The server and the clock of a run's steps: real ones, or simulated ones in tests.

use std::sync::atomic::AtomicBool;

use mydyno_load::clock::{Clock, MonotonicClock};
use mydyno_load::{End, LoadError, StepEvent};
use mydyno_wire::{Client, ConnectOptions, WireError};

use crate::control::control;
use crate::error::RunError;
use crate::steps::NumberedStep;
use crate::tables::LoadSite;

/// A server that steps load.
pub(crate) trait LoadedServer {
    /// The clock of the run.
    fn clock(&self) -> &dyn Clock;

    /// Restores the tables to the state in which a step starts.
    fn restore_tables(&self, place: LoadSite<'_>) -> Result<(), RunError>;

    /// Runs the load of one step until its end or until `stop` is set.
    fn load(
        &self,
        place: LoadSite<'_>,
        step: &NumberedStep<'_>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError>;

    /// The error of a new connection; `None` when it opens.
    fn unreachable(&self, place: LoadSite<'_>) -> Option<WireError>;
}

/// The session setting that the workloads' transactions need; all others are the server's.
const LOAD_SESSION: &str = "SET SESSION autocommit = 1";

/// Makes the server refuse writes in sessions that may only read the user's tables. The text of a statement does not
/// show all writes: a stored function may write.
const READ_ONLY_SESSION: &str = "SET SESSION TRANSACTION READ ONLY";

/// The server of a [`LoadSite`], in real time.
pub(crate) struct RealServer<'a> {
    pub clock: &'a MonotonicClock,
}

impl LoadedServer for RealServer<'_> {
    fn clock(&self) -> &dyn Clock {
        self.clock
    }

    fn restore_tables(&self, place: LoadSite<'_>) -> Result<(), RunError> {
        let statements = place.work.before_step();
        if statements.is_empty() {
            return Ok(());
        }
        let mut client = control(&with_database(place))?;
        for sql in statements {
            client.execute(&sql).map_err(RunError::wire("putting the tables back before a step"))?;
        }
        Ok(())
    }

    fn load(
        &self,
        place: LoadSite<'_>,
        step: &NumberedStep<'_>,
        stop: &AtomicBool,
        sink: &mut dyn FnMut(StepEvent),
    ) -> Result<End, LoadError> {
        let target = with_database(place);
        place.work.run(self.clock, step, &|| connect(place, &target), stop, sink)
    }

    fn unreachable(&self, place: LoadSite<'_>) -> Option<WireError> {
        connect(place, &with_database(place)).err()
    }
}

fn with_database(place: LoadSite<'_>) -> ConnectOptions {
    let mut target = place.connect.clone();
    if !place.plan.database.is_empty() {
        target.database = Some(place.plan.database.clone());
    }
    target
}

/// Opens a connection of the load.
fn connect(place: LoadSite<'_>, target: &ConnectOptions) -> Result<Client, WireError> {
    let mut client = Client::connect(target)?;
    client.execute(LOAD_SESSION)?;
    if place.work.only_reads_users_tables() && !place.plan.allow.write {
        client.execute(READ_ONLY_SESSION)?;
    }
    Ok(client)
}
