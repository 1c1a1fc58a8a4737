//! Opening connections and preparing statements on them.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use mydyno_wire::envelope::Envelope;
use mydyno_wire::reply::ReplyParser;
use mydyno_wire::{Client, Column, Session, WireError};
use mydyno_workload::Workload;

use crate::clock::{Clock, MonotonicClock};
use crate::error::LoadError;
use crate::packets::id_of;
use crate::shared_columns::SharedColumns;

/// Opens an authenticated connection to the right database.
pub type Connect<'a> = &'a (dyn Fn() -> Result<Client, WireError> + Sync);

/// An authenticated connection with its statements prepared.
pub struct Ready<S> {
    pub socket: S,
    pub parser: ReplyParser,
    pub envelope: Option<Box<Envelope>>,
    /// The server's statement ids, by statement.
    pub ids: Box<[u32]>,
    pub keeping: Box<Keeping>,
}

/// Data with which rows of a connection's results are decoded.
pub struct Keeping {
    pub session: Session,
    /// Columns as they were prepared, by statement: none where no statement keeps rows, empty where one does not.
    pub columns: Box<[Arc<[Column]>]>,
}

/// Opens connection `number` (from 0, of `of`) and prepares the workload's statements on it.
///
/// # Errors
/// The connection or a statement is refused.
pub fn open<W: Workload>(
    workload: &W,
    connect: Connect<'_>,
    shared: &SharedColumns,
    number: usize,
    of: usize,
) -> Result<Ready<OwnedFd>, LoadError> {
    let number = number + 1;
    let refused = |e: WireError| match e {
        WireError::Cancelled { .. } => LoadError::Interrupted,
        e => LoadError::Connect { number, of, source: Box::new(e) },
    };
    let mut client = connect().map_err(refused)?;
    let mut columns: Vec<Arc<[Column]>> = Vec::new();
    let keeps = workload.statements().iter().any(|s| s.keeps_row);
    let ids = workload
        .statements()
        .iter()
        .map(|statement| {
            let prepared = client.prepare(&statement.sql);
            if keeps {
                let kept = prepared.as_ref().ok().filter(|_| statement.keeps_row);
                columns.push(shared.share(kept.map(|p| p.columns.clone()).unwrap_or_default().into()));
            }
            id_of(prepared, statement).map_err(|e| match e {
                WireError::Cancelled { .. } => LoadError::Interrupted,
                e => LoadError::Prepare { number, of, sql: statement.sql.clone(), source: Box::new(e) },
            })
        })
        .collect::<Result<_, _>>()?;
    let (socket, session, envelope) = client.into_enveloped_parts().map_err(refused)?;
    let parser = ReplyParser::new(&session);
    let keeping = Box::new(Keeping { session, columns: columns.into() });
    Ok(Ready { socket, parser, envelope, ids, keeping })
}

/// Limits the rate at which connections are opened, over all workers.
#[derive(Debug, Clone, Copy)]
pub struct ConnectRate<'a> {
    pub clock: &'a MonotonicClock,
    pub start_ns: u64,
    /// `None`: no limit.
    pub rate_per_s: Option<f64>,
}

/// Longest sleep between two checks of the cancellation flag.
const CANCELLATION_CHECK: Duration = Duration::from_millis(50);

impl ConnectRate<'_> {
    /// Waits until connection `number` may be opened. Returns false when `cancelled` did first.
    pub fn wait(&self, number: usize, cancelled: &dyn Fn() -> bool) -> bool {
        let due_ns = self.rate_per_s.map_or(0, |rate| self.start_ns + (number as f64 / rate * 1e9) as u64);
        loop {
            if cancelled() {
                return false;
            }
            let left_ns = due_ns.saturating_sub(self.clock.now_ns());
            if left_ns == 0 {
                return true;
            }
            std::thread::sleep(Duration::from_nanos(left_ns).min(CANCELLATION_CHECK));
        }
    }
}
