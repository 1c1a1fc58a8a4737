//! Connections for control statements.

use mydyno_wire::{Client, ConnectOptions, WireError};

use crate::error::RunError;

/// Session settings that control statements depend on and that a server may default to something else. The lock on the
/// database lasts as long as this connection, which is idle during the load.
const CONTROL_SESSION: &str = "SET SESSION autocommit = 1, sql_mode = '', wait_timeout = 604800";

/// Opens a connection for control statements, some of which take long.
pub(crate) fn connect(target: &ConnectOptions) -> Result<Client, WireError> {
    let mut client = Client::connect(&target.for_long_statements())?;
    client.execute(CONTROL_SESSION)?;
    Ok(client)
}

/// As [`connect`], with the error of a run.
pub(crate) fn control(target: &ConnectOptions) -> Result<Client, RunError> {
    connect(target).map_err(RunError::wire("connecting"))
}
