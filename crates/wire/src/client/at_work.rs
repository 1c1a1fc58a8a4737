//! Whether a server is executing a long statement.

use std::time::Duration;

use super::Client;
use crate::options::ConnectOptions;

/// Limit for connecting, and for the answer of the second connection.
const LIMIT: Duration = Duration::from_secs(10);

/// Looks up connection `id` in the server's process list, over a second connection.
///
/// # Errors
/// The reason why the statement may not be running: no answer, no such connection, or an idle one.
pub(super) fn look(options: &ConnectOptions, id: u32) -> Result<(), String> {
    let mut options = options.clone();
    options.connect_timeout = options.connect_timeout.min(LIMIT);
    options.read_timeout = Some(LIMIT);
    let failed = |e: crate::WireError| format!("a second connection to look at the process list failed: {e}");
    let mut client = Client::connect(&options).map_err(failed)?;
    let rows = client.query("SHOW PROCESSLIST").map_err(failed)?;
    let (Some(ids), Some(commands)) = (rows.column("Id"), rows.column("Command")) else {
        return Err("the process list has no columns Id and Command".to_owned());
    };
    let row = (0..rows.len()).find(|row| rows.number(*row, ids) == Some(id));
    match row.and_then(|row| rows.text(row, commands)) {
        None => Err(format!("the process list has no connection {id}")),
        Some(command) if command == "Sleep" => {
            Err(format!("the process list says that connection {id} is idle"))
        }
        Some(_) => Ok(()),
    }
}
