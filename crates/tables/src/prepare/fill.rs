//! Fills tables on several connections, also within one table, and resumes an interrupted fill.
//!
//! A table is split into ranges of rows. A range is one transaction, in the order of the key, and is verified against
//! the seed after it is inserted. In a table that existed before, the contents of a range are examined first: rows in
//! order from its beginning are kept, others are deleted. The reasons for this design, and the cost of alternatives,
//! are in docs/journal/prepare.md.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use mydyno_wire::{Client, ServerVersion};

use super::batch::{self, Exchange};
use super::check::Sum;
use super::fillers::Shared;
use super::ranges::{Range, RangeLease, Ranges};
use super::{Connect, PrepareError, Progress, Tables, batch_bytes, doing, heap, inserting_at_once, key};
use crate::mark;
use crate::table::Table;

/// How tables are filled. The defaults performed best in measurements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tuning {
    /// Maximum number of bytes of an INSERT; less where `max_allowed_packet` is lower.
    pub batch_bytes: usize,
    /// Whether to send rows as values of a prepared statement, many in one exchange, where the server supports that.
    pub as_values: bool,
    /// Number of connections that insert into one table in parallel; `None` for as many as the server supports there.
    pub inserting_at_once: Option<usize>,
    /// Approximate number of bytes of the INSERTs of a transaction.
    pub range_bytes: usize,
    /// Whether the filling sessions check unique keys at once.
    pub unique_checks: bool,
    /// Whether secondary indexes are created after the rows are inserted.
    pub late_indexes: bool,
    /// Whether each range is verified after it is inserted.
    pub verify: bool,
    /// Maximum number of rows a second over all connections.
    pub rows_per_s: Option<f64>,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            batch_bytes: super::BATCH_BYTES,
            as_values: true,
            inserting_at_once: None,
            range_bytes: 16 << 20,
            unique_checks: true,
            late_indexes: true,
            verify: true,
            rows_per_s: None,
        }
    }
}

/// Progress of a table.
#[derive(Debug)]
struct State {
    /// The table existed before, so it may contain rows.
    resumed: bool,
    made: Mutex<bool>,
    /// Number of incomplete ranges.
    left: AtomicUsize,
}

struct Fill<'a> {
    tables: &'a Tables,
    ranges: Ranges,
    states: Vec<State>,
    shared: Shared<'a>,
}

/// Fills the tables; `present` are the names of existing ones.
pub(super) fn fill(
    tables: &Tables,
    present: &BTreeSet<String>,
    server: &ServerVersion,
    connect: Connect<'_>,
    connections: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), PrepareError> {
    let shared = Shared::new(tables.rows(), tables.tuning.rows_per_s, stop);
    let at_once = inserting_at_once(server, tables.data.engine.name());
    let fill = Fill::new(tables, present, connections, at_once, shared);
    let fillers = connections.clamp(1, fill.ranges.count().max(1));
    fill.shared.run(fillers, &|| fill.work(connect), progress)
}

/// Minimum number of ranges for each connection, so that all have work until the end.
const RANGES_PER_CONNECTION: u64 = 4;
const FEWEST_ROWS: u64 = 1_000;

impl<'a> Fill<'a> {
    fn new(
        tables: &'a Tables,
        present: &BTreeSet<String>,
        connections: usize,
        automatic_at_once: usize,
        shared: Shared<'a>,
    ) -> Self {
        let (mut all, mut states) = (Vec::new(), Vec::new());
        let share = tables.rows() / (RANGES_PER_CONNECTION * connections.max(1) as u64);
        for (number, table) in tables.data.tables.iter().enumerate() {
            let most = (tables.tuning.range_bytes / table.sql_bytes().max(1)) as u64;
            let rows = most.min(share.max(FEWEST_ROWS)).max(1);
            // A table without rows has one range as well, so that it is created.
            let count = table.rows().div_ceil(rows).max(1);
            let range = |range: u64| {
                let (first, last) = (range * rows + 1, ((range + 1) * rows).min(table.rows()));
                Range { table: number, first, last }
            };
            let most = if table.is_auto_increment() { automatic_at_once } else { usize::MAX };
            all.push(((0..count).map(range).collect(), tables.tuning.inserting_at_once.unwrap_or(most)));
            let resumed = present.contains(table.name());
            let left = AtomicUsize::new(count as usize);
            states.push(State { resumed, made: Mutex::new(resumed), left });
        }
        Self { tables, ranges: Ranges::new(all), states, shared }
    }

    /// Fills ranges on one connection until none are left.
    fn work(&self, connect: Connect<'_>) -> Result<(), PrepareError> {
        let mut client = connect().map_err(doing("connecting"))?;
        client.use_schema(&self.tables.database).map_err(doing("choosing the database"))?;
        let checks = u8::from(self.tables.tuning.unique_checks);
        client
            .execute(&format!("SET SESSION unique_checks = {checks}, foreign_key_checks = 0"))
            .map_err(doing("switching off checks of this session"))?;
        if self.tables.data.tables.iter().all(|table| table.is_ascii()) {
            // The character set of the tables, see [`mark::create`], so that nothing is converted.
            client.execute("SET NAMES latin1").map_err(doing("choosing the session's character set"))?;
        }
        let limit = batch_bytes(&mut client, self.tables.tuning.batch_bytes)?;
        while let Some(turn) = self.ranges.next(&|| self.shared.is_off())? {
            let range = turn.range;
            self.make_table(&mut client, range.table)?;
            self.fill_range(&mut client, turn, limit)?;
            if self.states[range.table].left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.finish_table(&mut client, range.table)?;
            }
        }
        Ok(())
    }

    /// Creates a table, once.
    fn make_table(&self, client: &mut Client, number: usize) -> Result<(), PrepareError> {
        let mut made = self.states[number].made.lock().unwrap_or_else(PoisonError::into_inner);
        if *made {
            return Ok(());
        }
        let table = &self.tables.data.tables[number];
        let creating = || doing(format!("creating table {}", table.name()));
        client.execute(&table.create()).map_err(creating())?;
        if !self.makes_indexes_late() {
            for index in table.late_indexes() {
                client.execute(&index.sql).map_err(creating())?;
            }
        }
        heap::check(client, &self.tables.database, table.name(), table.rows())?;
        *made = true;
        Ok(())
    }

    /// Indexes need memory too, so they must exist when the check finds out whether the rows fit.
    fn makes_indexes_late(&self) -> bool {
        self.tables.tuning.late_indexes && !self.tables.data.engine.is_memory()
    }

    fn fill_range(
        &self,
        client: &mut Client,
        turn: RangeLease<'_>,
        limit: usize,
    ) -> Result<(), PrepareError> {
        /// Number of attempts after deadlocks and lock waits of neighbouring ranges whose rows are deleted.
        const TRIES: usize = 5;
        let range = turn.range;
        let mut turn = Some(turn);
        let mut resumed = self.states[range.table].resumed;
        for attempt in 1.. {
            match self.try_range(client, &range, &mut turn, limit, resumed) {
                Err(PrepareError::Wire { source, .. })
                    if matches!(source.code(), 1205 | 1213) && attempt < TRIES =>
                {
                    client.execute("ROLLBACK").map_err(doing("rolling back"))?;
                    resumed = true;
                }
                // The rows of an earlier fill are wrong: fill the range once more from the beginning.
                Err(PrepareError::Inconsistent { .. }) if resumed && attempt == 1 => {
                    self.delete(client, &range)?;
                }
                other => return other,
            }
        }
        Ok(())
    }

    fn try_range(
        &self,
        client: &mut Client,
        range: &Range,
        turn: &mut Option<RangeLease<'_>>,
        limit: usize,
        resumed: bool,
    ) -> Result<(), PrepareError> {
        let table = &*self.tables.data.tables[range.table];
        let from = if resumed { self.go_on_from(client, range)? } else { range.first };
        let mut sum = Sum::of_seed(table, range.first, from - 1);
        self.shared.count_found(sum.rows);
        self.insert(client, from..=range.last, table, limit, &mut sum)?;
        // The next connection inserts while this one verifies.
        drop(turn.take());
        if !self.tables.tuning.verify {
            return Ok(());
        }
        let found = Sum::of_server(client, table, &mark::quoted(table.name()), &part(table, range))?;
        if found == sum {
            return Ok(());
        }
        Err(PrepareError::Inconsistent {
            table: format!("{}, rows {} to {}", table.name(), range.first, range.last),
            found: found.to_string(),
            expected: sum.to_string(),
        })
    }

    /// The first missing row of a range. Rows that are not in order from the range's beginning are deleted.
    fn go_on_from(&self, client: &mut Client, range: &Range) -> Result<u64, PrepareError> {
        let table = &*self.tables.data.tables[range.table];
        let mut count = |first: u64, last: u64| {
            let (name, part) = (mark::quoted(table.name()), key::between(table, first, last));
            let rows = client
                .query(&format!("SELECT COUNT(*) FROM {name}{part}"))
                .map_err(doing(format!("looking at the rows of {}", table.name())))?;
            Ok(rows.number::<u64>(0, 0).unwrap_or(0))
        };
        let found = count(range.first, range.last)?;
        let next = range.first + found;
        if found == 0 || next <= range.last + 1 && count(range.first, next - 1)? == found {
            return Ok(next);
        }
        self.delete(client, range).map(|()| range.first)
    }

    fn delete(&self, client: &mut Client, range: &Range) -> Result<(), PrepareError> {
        let table = &*self.tables.data.tables[range.table];
        let sql = format!("DELETE FROM {}{}", mark::quoted(table.name()), part(table, range));
        client.execute(&sql).map(drop).map_err(doing(format!("deleting rows of {}", table.name())))
    }

    /// Inserts rows in one transaction, and adds them to `sum`.
    fn insert(
        &self,
        client: &mut Client,
        ids: RangeInclusive<u64>,
        table: &dyn Table,
        limit_bytes: usize,
        sum: &mut Sum,
    ) -> Result<(), PrepareError> {
        let inserting = || doing(format!("inserting into {}", table.name()));
        let exchange =
            Exchange { limit_bytes, as_values: self.tables.tuning.as_values, shared: &self.shared };
        client.execute("BEGIN").map_err(inserting())?;
        batch::insert(client, ids, table, &exchange, sum)?;
        client.execute("COMMIT").map(drop).map_err(inserting())
    }

    /// Creates the indexes of a filled table, and checks that it has no other rows.
    fn finish_table(&self, client: &mut Client, number: usize) -> Result<(), PrepareError> {
        let table = &*self.tables.data.tables[number];
        let found = key::ends(client, table, &mark::quoted(table.name()))?;
        let expected = (key::of_row(table, table.rows().min(1)), key::of_row(table, table.rows()));
        if found != expected {
            return Err(PrepareError::Inconsistent {
                table: table.name().to_owned(),
                found: format!("rows from {} to {}", key::show(&found.0), key::show(&found.1)),
                expected: format!("rows from {} to {}", key::show(&expected.0), key::show(&expected.1)),
            });
        }
        for index in table.late_indexes() {
            if self.shared.is_off() {
                return Err(PrepareError::Interrupted);
            }
            if self.states[number].resumed || !self.makes_indexes_late() {
                let there = format!(
                    "SELECT 1 FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = {} AND INDEX_NAME = {}",
                    mark::literal(table.name()),
                    mark::literal(&index.name)
                );
                if !client.query(&there).map_err(doing("listing the indexes"))?.is_empty() {
                    continue;
                }
            }
            client.execute(&index.sql).map_err(doing(format!("indexing {}", table.name())))?;
        }
        Ok(())
    }
}

/// A WHERE clause for a range.
fn part(table: &dyn Table, range: &Range) -> String {
    key::between(table, range.first, range.last)
}
