//! Opening connections and preparing statements on them, before the load starts.

use std::os::fd::OwnedFd;

use mydyno_wire::envelope::Envelope;
use mydyno_wire::reply::ReplyParser;
use mydyno_wire::{Client, WireError};
use mydyno_workload::Workload;

use crate::error::LoadError;
use crate::packets::id_of;

/// An authenticated connection with its statements prepared.
pub struct Ready {
    pub socket: OwnedFd,
    pub parser: ReplyParser,
    pub envelope: Option<Box<Envelope>>,
    pub ids: Box<[u32]>,
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
        let ids = workload
            .statements()
            .iter()
            .map(|statement| {
                let sql = || statement.sql.clone();
                id_of(client.prepare(&statement.sql), statement).map_err(|e| LoadError::Prepare {
                    number,
                    of,
                    sql: sql(),
                    source: Box::new(e),
                })
            })
            .collect::<Result<_, _>>()?;
        let (socket, session, envelope) = client.into_enveloped_parts().map_err(refused)?;
        ready.push(Ready { socket, parser: ReplyParser::new(&session), envelope, ids });
        connected();
    }
    Ok(ready)
}
