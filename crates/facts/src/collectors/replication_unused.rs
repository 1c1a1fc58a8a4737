//! Channels that were set up and never received anything: they make no replica of a server.

use serde_json::{Value, json};

use crate::bounds::shortened;
use crate::context::Context;
use crate::sql::Table;

/// Longest text of an error that is kept, in bytes.
const LONGEST_ERROR: usize = 200;

/// Transactions of its own from which on a MySQL server is written by programs, not by an administrator alone. MariaDB tells domains.
const WRITTEN: u64 = 100;

/// Takes the channels of a server that takes writes out of the status that have never received anything and stand still, or look
/// for their source in vain while the server is written itself: channel, io, error. `own` is what the server's global ids tell of its own transactions.
pub(super) fn take(table: &mut Table, own: u64, context: &Context) -> Vec<Value> {
    // Who sets read_only means the server to be a replica.
    if !context.variable("read_only").is_some_and(|value| ["OFF", "0"].contains(&value)) {
        return Vec::new();
    }
    out(table, own >= if context.variable("server_uuid").is_none() { 1 } else { WRITTEN })
}

/// The same, where it is known whether the server is written itself.
fn out(table: &mut Table, is_written: bool) -> Vec<Value> {
    let mut unused = Vec::new();
    let mut kept = Vec::new();
    for row in 0..table.rows.len() {
        let told = told(table, row, is_written);
        kept.push(told.is_none());
        unused.extend(told);
    }
    let mut keeps = kept.into_iter();
    table.rows.retain(|_| keeps.next().unwrap_or(true));
    unused
}

/// Entry of a channel that was never used.
fn told(table: &Table, row: usize, is_written: bool) -> Option<Value> {
    let cell = |names: &[&str]| names.iter().find_map(|name| table.cell(row, name));
    let text = |names: &[&str]| cell(names).unwrap_or_default();
    let never = match cell(&["Source_UUID", "Master_UUID"]) {
        // MySQL keeps the id of the source from the first connection on, over restarts.
        Some(uuid) => uuid.is_empty() && text(&["Retrieved_Gtid_Set"]).is_empty(),
        // The first connection begins the second relay log.
        None => {
            let file = text(&["Relay_Log_File"]);
            text(&["Source_Server_Id", "Master_Server_Id"]).trim_start_matches('0').is_empty()
                && (file.is_empty() || file.ends_with(".000001"))
        }
    };
    let io = text(&["Replica_IO_Running", "Slave_IO_Running"]);
    let stands = io == "No" && text(&["Replica_SQL_Running", "Slave_SQL_Running"]) == "No";
    // MySQL gives up after SOURCE_RETRY_COUNT attempts, while the applier goes on.
    let seeks = io != "Yes" && is_written;
    if !never || !stands && !seeks {
        return None;
    }
    let channel = match text(&["Connection_name", "Channel_Name"]) {
        "" => "default",
        name => name,
    };
    // Group replication has channels of its own, which the server sets up.
    if channel.starts_with("group_replication_") {
        return None;
    }
    let source = text(&["Source_Host", "Master_Host"]);
    let error = shortened(text(&["Last_IO_Error"]).to_owned(), LONGEST_ERROR);
    Some(json!({"channel": channel, "io": io, "source_host": source, "error": error}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(names: &[&str], rows: &[&[&str]]) -> Table {
        Table {
            columns: names.iter().map(|name| (*name).to_owned()).collect(),
            rows: rows.iter().map(|row| row.iter().map(|cell| Some((*cell).to_owned())).collect()).collect(),
        }
    }

    #[test]
    fn a_channel_that_never_received_anything_is_taken_out() {
        let names = [
            "Channel_Name",
            "Source_UUID",
            "Retrieved_Gtid_Set",
            "Replica_IO_Running",
            "Replica_SQL_Running",
        ];
        let rows: [&[&str]; 5] = [
            &["old", "", "", "No", "No"],
            &["seeks", "", "", "Connecting", "Yes"],
            &["gave_up", "", "", "No", "Yes"],
            &["was", "117b20b6", "", "No", "No"],
            &["", "117b20b6", "117b20b6:1-5", "Yes", "Yes"],
        ];
        let mut all = table(&names, &rows);
        let told = |unused: Vec<Value>| {
            unused.iter().map(|entry| entry["channel"].as_str().unwrap().to_owned()).collect::<Vec<String>>()
        };
        assert_eq!(told(out(&mut all, false)), ["old"]);
        assert_eq!(all.rows.len(), 4);
        assert_eq!(told(out(&mut all, true)), ["seeks", "gave_up"]);
        assert_eq!(all.rows.len(), 2);
    }

    #[test]
    fn without_the_id_of_the_source_the_relay_log_tells_it() {
        let names = [
            "Connection_name",
            "Master_Server_Id",
            "Relay_Log_File",
            "Slave_IO_Running",
            "Slave_SQL_Running",
        ];
        let rows: [&[&str]; 3] = [
            &["new", "0", "relay-bin-new.000001", "No", "No"],
            &["was", "0", "relay-bin-was.000007", "No", "No"],
            &["seeks", "0", "relay-bin-seeks.000001", "Connecting", "Yes"],
        ];
        let mut all = table(&names, &rows);
        assert_eq!(out(&mut all, true).len(), 2);
        assert_eq!(all.rows.len(), 1);
    }
}
