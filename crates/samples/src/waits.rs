//! Waits of the server's threads, from the performance schema where it is on.

use mydyno_facts::{ReadOnly, SqlError};

use crate::values::Values;

/// Kinds of waits that are read: those with the longest time since the start.
const MOST: usize = 60;

/// Waits by kind: `server.waits.EVENT.waits` and `server.waits.EVENT.time_s`, with the server's name of the event without
/// its first word, as in `io/file/innodb/innodb_log_file`. Time is summed over threads; waits for clients (`idle`) are left
/// out. Without the performance schema, and for instruments that are not enabled or not timed, there are no values.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn waits(sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
    let table = sql.table(&format!(
        "SELECT EVENT_NAME, COUNT_STAR, SUM_TIMER_WAIT FROM performance_schema.events_waits_summary_global_by_event_name \
         WHERE SUM_TIMER_WAIT > 0 AND EVENT_NAME LIKE 'wait/%' ORDER BY SUM_TIMER_WAIT DESC LIMIT {MOST}"
    ))?;
    for row in 0..table.rows.len() {
        let event = table.cell(row, "EVENT_NAME").and_then(|event| event.strip_prefix("wait/"));
        let number = |column: &str| table.cell(row, column).and_then(|text| text.parse::<f64>().ok());
        if let Some(event) = event {
            values.set_some(&format!("server.waits.{event}.waits"), number("COUNT_STAR"));
            // Timers are in picoseconds.
            let seconds = number("SUM_TIMER_WAIT").map(|ps| ps * 1e-12);
            values.set_some(&format!("server.waits.{event}.time_s"), seconds);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Scripted, read, table};

    #[test]
    fn waits_are_in_seconds_under_the_servers_own_names() {
        // Rows of MySQL 8.0.12.
        let answer = table(
            &["EVENT_NAME", "COUNT_STAR", "SUM_TIMER_WAIT"],
            &[
                &["wait/io/file/innodb/innodb_data_file", "1296", "69372393622"],
                &["wait/io/table/sql/handler", "30", "740365756"],
                &["idle", "37", "36524387000"],
            ],
        );
        let (values, ended) = read(Scripted::always(answer), waits);
        assert_eq!(ended, Ok(()));
        let found: Vec<(&str, f64)> = values.numbers.iter().map(|(n, v)| (&**n, *v)).collect();
        assert_eq!(
            found,
            [
                ("server.waits.io/file/innodb/innodb_data_file.waits", 1296.0),
                ("server.waits.io/file/innodb/innodb_data_file.time_s", 69_372_393_622.0 * 1e-12),
                ("server.waits.io/table/sql/handler.waits", 30.0),
                ("server.waits.io/table/sql/handler.time_s", 740_365_756.0 * 1e-12),
            ]
        );
    }
}
