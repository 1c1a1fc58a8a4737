//! Capacity of tables in the server's memory.

use mydyno_wire::Client;

use super::{PrepareError, doing};
use crate::mark;

/// Refuses and drops a MEMORY table that cannot hold its rows, based on what the server reports after creating it: the
/// maximum number of rows depends on the columns' full lengths, the indexes and `max_heap_table_size` at that moment.
pub(crate) fn check(client: &mut Client, database: &str, table: &str, rows: u64) -> Result<(), PrepareError> {
    let looking = || doing(format!("looking at table {table}"));
    let sql = format!(
        "SELECT MAX_DATA_LENGTH, AVG_ROW_LENGTH, @@SESSION.max_heap_table_size FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {} AND ENGINE = 'MEMORY'",
        mark::literal(database),
        mark::literal(table)
    );
    let found = client.query(&sql).map_err(looking())?;
    let number = |column| found.number::<u64>(0, column);
    let (Some(most_bytes), Some(row_bytes), Some(limit)) = (number(0), number(1), number(2)) else {
        return Ok(());
    };
    // Some servers know the length of a row only after the first one.
    let Some(fits) = most_bytes.checked_div(row_bytes).filter(|fits| *fits > 0) else { return Ok(()) };
    // Memory is allocated in blocks, and the last one may have no space for a whole row.
    let fits = fits - fits / 64;
    if rows <= fits {
        return Ok(());
    }
    let needed = u128::from(limit) * u128::from(rows) / u128::from(fits);
    let needed = u64::try_from(needed + needed / 10).unwrap_or(u64::MAX).next_multiple_of(1 << 20);
    let drop = format!("DROP TABLE {}.{}", mark::quoted(database), mark::quoted(table));
    client
        .execute(&drop)
        .map_err(doing(format!("dropping table {table}, which has no room for its rows")))?;
    Err(PrepareError::NoRoom { table: table.to_owned(), rows, fits, limit, needed })
}
