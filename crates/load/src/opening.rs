//! Opening connections and preparing statements on them, before the load starts.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use mydyno_wire::envelope::Envelope;
use mydyno_wire::reply::ReplyParser;
use mydyno_wire::{Client, Column, Session, WireError};
use mydyno_workload::Workload;

use crate::error::LoadError;
use crate::packets::id_of;

/// An authenticated connection with its statements prepared.
pub struct Ready {
    pub socket: OwnedFd,
    pub parser: ReplyParser,
    pub envelope: Option<Box<Envelope>>,
    pub ids: Box<[u32]>,
    /// Where statements keep rows.
    pub keeping: Option<Box<Keeping>>,
}

/// What is needed to keep rows of a connection's results.
pub struct Keeping {
    pub session: Session,
    /// Columns as they were prepared, by statement; empty where it keeps no row.
    pub columns: Box<[Arc<[Column]>]>,
}

/// Opens connections `numbers` (from 0, of `of`) and prepares the workload's statements on each.
///
/// # Errors
/// The first connection or statement that is refused.
pub fn connect<W: Workload>(
    workload: &W,
    connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
    numbers: impl Iterator<Item = usize>,
    of: usize,
    stop: &dyn Fn() -> bool,
    mut connected: impl FnMut(),
) -> Result<Vec<Ready>, LoadError> {
    let mut ready = Vec::new();
    for number in numbers {
        if stop() {
            return Err(LoadError::Interrupted);
        }
        let number = number + 1;
        let refused = |e| LoadError::Connect { number, of, source: Box::new(e) };
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
                    columns.push(kept.map(|p| p.columns.clone()).unwrap_or_default().into());
                }
                id_of(prepared, statement).map_err(|e| LoadError::Prepare {
                    number,
                    of,
                    sql: statement.sql.clone(),
                    source: Box::new(e),
                })
            })
            .collect::<Result<_, _>>()?;
        let (socket, session, envelope) = client.into_enveloped_parts().map_err(refused)?;
        let parser = ReplyParser::new(&session);
        let keeping = keeps.then(|| Box::new(Keeping { session, columns: columns.into() }));
        ready.push(Ready { socket, parser, envelope, ids, keeping });
        connected();
    }
    Ok(ready)
}
