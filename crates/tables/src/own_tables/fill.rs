//! Fills tables that workloads bring: connections fill parts of all tables; each part is a transaction that also
//! records the part.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use mydyno_wire::Client;

use super::parts::{Notes, part_rows};
use super::rows::Rows;
use super::server_table::ServerTable;
use super::{OwnTables, at};
use crate::mark;
use crate::prepare::batch::{self, Exchange};
use crate::prepare::check::Sum;
use crate::prepare::fillers::Shared;
use crate::prepare::ranges::{Range, Ranges};
use crate::prepare::{self, Connect, PrepareError, doing};
use crate::table::Table;

/// Number of attempts for a part that fails by a deadlock or a lock wait of neighbouring parts.
const TRIES: usize = 5;

/// A table that is being filled.
struct Filling {
    rows: Rows,
    server: ServerTable,
    part_rows: u64,
    /// Rows of parts that are not recorded may exist.
    resumed: bool,
    /// Sum of the complete parts.
    sum: Mutex<Sum>,
}

pub(super) struct Fill<'a> {
    tables: &'a OwnTables,
    filling: Vec<Filling>,
    ranges: Ranges,
    shared: Shared<'a>,
}

impl<'a> Fill<'a> {
    /// The remaining work on existing tables; `resumed` marks those that existed before, in their order.
    pub fn new(
        tables: &'a OwnTables,
        server: Vec<ServerTable>,
        resumed: &[bool],
        notes: &Notes,
        shared: Shared<'a>,
    ) -> Self {
        let (mut filling, mut ranges) = (Vec::new(), Vec::new());
        for (number, server) in server.into_iter().enumerate() {
            let rows = Rows::new(tables, number).digesting(server.digested.clone());
            let part_rows = part_rows(rows.rows(), rows.sql_bytes());
            let noted = |part: &u64| notes.parts.contains_key(&(number, *part));
            let range = |part: u64| Range {
                table: number,
                first: part * part_rows + 1,
                last: ((part + 1) * part_rows).min(rows.rows()),
            };
            let left = (0..rows.rows().div_ceil(part_rows)).filter(|part| !noted(part)).map(range).collect();
            ranges.push((left, tables.tuning.inserting_at_once.unwrap_or(server.inserting_at_once)));
            let sum = sum_of(&notes.parts, number);
            shared.count_found(sum.rows);
            filling.push(Filling { rows, server, part_rows, resumed: resumed[number], sum: Mutex::new(sum) });
        }
        Self { tables, filling, ranges: Ranges::new(ranges), shared }
    }

    /// Fills them on several connections.
    pub fn run(
        &self,
        connect: Connect<'_>,
        connections: usize,
        progress: &mut dyn FnMut(prepare::Progress),
    ) -> Result<(), PrepareError> {
        let fillers = connections.max(1).min(self.ranges.count());
        self.shared.run(fillers, &|| self.work(connect), progress)
    }

    /// Numbers of the tables whose rows differ from those inserted, with the difference.
    pub fn verify(&self, client: &mut Client) -> Result<Vec<(usize, PrepareError)>, PrepareError> {
        let mut wrong = Vec::new();
        for (number, filling) in self.filling.iter().enumerate() {
            let name =
                format!("{}.{}", mark::quoted(&self.tables.database), mark::quoted(filling.rows.name()));
            let found = Sum::of_server(client, &filling.rows, &name, "")?;
            let expected = *filling.sum.lock().unwrap_or_else(PoisonError::into_inner);
            if found != expected {
                let place = at(&self.tables.tables[number].place);
                let error = PrepareError::Inconsistent {
                    table: filling.rows.name().to_owned(),
                    found: found.to_string(),
                    expected: format!("{expected} after filling{place}"),
                };
                wrong.push((number, error));
            }
        }
        Ok(wrong)
    }

    fn work(&self, connect: Connect<'_>) -> Result<(), PrepareError> {
        let mut client = connect().map_err(doing("connecting"))?;
        client.use_schema(&self.tables.database).map_err(doing("choosing the database"))?;
        self.tables
            .set_up(&mut client)
            // Rows of several tables are inserted in parallel, referenced rows perhaps after the rows that refer to
            // them.
            .and_then(|()| client.execute("SET SESSION foreign_key_checks = 0"))
            .map_err(doing("setting up the session"))?;
        if self.filling.iter().all(|filling| filling.rows.is_ascii()) {
            // The default character set of the tables, so that nothing is converted.
            client.execute("SET NAMES latin1").map_err(doing("choosing the session's character set"))?;
        }
        let limit_bytes = prepare::batch_bytes(&mut client, self.tables.tuning.batch_bytes)?;
        let exchange =
            Exchange { limit_bytes, as_values: self.tables.tuning.as_values, shared: &self.shared };
        while let Some(turn) = self.ranges.next(&|| self.shared.is_off())? {
            self.fill_part(&mut client, turn.range, &exchange)?;
        }
        Ok(())
    }

    fn fill_part(
        &self,
        client: &mut Client,
        range: Range,
        exchange: &Exchange<'_>,
    ) -> Result<(), PrepareError> {
        let filling = &self.filling[range.table];
        for attempt in 1.. {
            match self.try_part(client, range, exchange) {
                Err(PrepareError::Wire { source, .. })
                    if matches!(source.code(), 1205 | 1213) && attempt < TRIES =>
                {
                    client.execute("ROLLBACK").map_err(doing("rolling back"))?;
                }
                Err(PrepareError::Wire { doing, source }) => {
                    let place = at(&self.tables.tables[range.table].place);
                    return Err(PrepareError::Wire { doing: format!("{doing}{place}"), source });
                }
                Err(other) => return Err(other),
                Ok(sum) => {
                    let mut all = filling.sum.lock().unwrap_or_else(PoisonError::into_inner);
                    all.rows += sum.rows;
                    all.digest += sum.digest;
                    break;
                }
            }
        }
        Ok(())
    }

    fn try_part(
        &self,
        client: &mut Client,
        range: Range,
        exchange: &Exchange<'_>,
    ) -> Result<Sum, PrepareError> {
        let filling = &self.filling[range.table];
        let (rows, server) = (&filling.rows, &filling.server);
        let filled = || doing(format!("filling {}", rows.name()));
        let mut sum = Sum::default();
        client.execute("BEGIN").map_err(filled())?;
        if let (true, false, Some(part)) = (filling.resumed, server.transactional, server.part(&range)) {
            let delete = format!("DELETE FROM {} WHERE {part}", mark::quoted(rows.name()));
            client.execute(&delete).map_err(filled())?;
        }
        batch::insert(client, range.first..=range.last, rows, exchange, &mut sum)?;
        self.tables.note_part(client, range.table, (range.first - 1) / filling.part_rows, sum)?;
        client.execute("COMMIT").map_err(filled())?;
        Ok(sum)
    }
}

fn sum_of(parts: &BTreeMap<(usize, u64), Sum>, table: usize) -> Sum {
    let mut sum = Sum::default();
    for part in parts.range((table, 0)..=(table, u64::MAX)).map(|(_, part)| part) {
        sum.rows += part.rows;
        sum.digest += part.digest;
    }
    sum
}
