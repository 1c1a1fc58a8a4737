//! Creates tables that workloads bring, and resumes an interrupted prepare.

use std::sync::atomic::AtomicBool;

use mydyno_wire::Client;
use serde_json::Value;

use super::fill::Fill;
use super::server_table::ServerTable;
use super::{OwnTables, at};
use crate::mark::{self, DataMark, Owner};
use crate::prepare::fillers::Shared;
use crate::prepare::{Connect, PrepareError, Prepared, Progress, doing, heap};

impl OwnTables {
    /// Creates and fills the tables on several connections, unless they exist already. It keeps the results of an
    /// interrupted prepare of the same rows, as far as it can recognise them.
    ///
    /// # Errors
    /// See [`PrepareError`]. What was made so far stays, marked as incomplete.
    pub fn prepare(
        &self,
        connect: Connect<'_>,
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Prepared, PrepareError> {
        let mut client = connect().map_err(doing("connecting"))?;
        if self.existing(&mut client)?.is_some() {
            return Ok(Prepared::Reused);
        }
        let database = &self.database;
        let looking = || doing(format!("looking at database {database:?}"));
        if mark::owner(&mut client, database).map_err(looking())? == Owner::Missing {
            mark::create(&mut client, database).map_err(doing(format!("creating database {database}")))?;
        }
        let before = mark::data(&mut client, database, self.family).map_err(looking())?;
        client.use_schema(database).map_err(doing("choosing the database"))?;
        self.set_up(&mut client).map_err(doing("setting up the session"))?;
        let mut data = DataMark {
            shape: self.shape(),
            seed: self.seed,
            fingerprint: self.fingerprint(),
            complete: false,
            used: false,
        };
        // Tables that cannot be resumed are created again, once.
        let goes_on = before.as_ref() == Some(&data);
        if !goes_on {
            self.begin(&mut client, before.as_ref(), &data)?;
        }
        if !self.complete(&mut client, connect, connections, stop, progress)? {
            self.begin(&mut client, Some(&data), &data)?;
            if !self.complete(&mut client, connect, connections, stop, progress)? {
                return Err(PrepareError::NotPrepared {
                    database: database.clone(),
                    what: "tables that stay as they are made".to_owned(),
                });
            }
        }
        let sums = self.sums(&mut client)?;
        self.keep_sums(&mut client, &sums)?;
        self.forget_notes(&mut client)?;
        data.complete = true;
        mark::set_data(&mut client, database, self.family, &data)
            .map_err(doing("marking the tables as complete"))?;
        Ok(Prepared::Made)
    }

    /// Drops the old tables and records the planned ones.
    fn begin(
        &self,
        client: &mut Client,
        before: Option<&DataMark>,
        data: &DataMark,
    ) -> Result<(), PrepareError> {
        // Records that outlive their tables would claim rows that do not exist.
        self.forget_notes(client)?;
        self.drop_old(client, before)?;
        mark::set_data(client, &self.database, self.family, data)
            .map_err(doing("marking the tables as incomplete"))
    }

    /// Completes the tables. Returns `false` if the existing ones cannot be resumed.
    fn complete(
        &self,
        client: &mut Client,
        connect: Connect<'_>,
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<bool, PrepareError> {
        if !self.notes(client)?.filled {
            self.fill(client, connect, connections, stop, progress)?;
            self.note_filled(client)?;
        }
        let notes = self.notes(client)?;
        self.finish(client, &notes)
    }

    /// Creates the missing tables and fills them. A table that an earlier prepare began is filled again if its rows
    /// differ from those inserted.
    fn fill(
        &self,
        client: &mut Client,
        connect: Connect<'_>,
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), PrepareError> {
        let mut resumed = Vec::new();
        for number in 0..self.tables.len() {
            resumed.push(self.make_table(client, number)?);
        }
        loop {
            let notes = self.notes(client)?;
            let server = self.tables.iter().map(|table| ServerTable::look(client, self, table));
            let server = server.collect::<Result<Vec<_>, _>>()?;
            let shared = Shared::new(self.rows(), self.tuning.rows_per_s, stop);
            let fill = Fill::new(self, server, &resumed, &notes, shared);
            fill.run(connect, connections, progress)?;
            let mut wrong = fill.verify(client)?.into_iter();
            let Some(first) = wrong.next() else { return Ok(()) };
            for (number, error) in std::iter::once(first).chain(wrong) {
                if !std::mem::replace(&mut resumed[number], false) {
                    return Err(error);
                }
                self.drop_table(client, number)?;
                self.make_table(client, number)?;
            }
        }
    }

    /// Creates a missing table. Returns whether it existed before and is resumed.
    fn make_table(&self, client: &mut Client, number: usize) -> Result<bool, PrepareError> {
        let table = &self.tables[number];
        if self.exists(client, &table.name)? {
            if self.can_go_on(client, number)? {
                return Ok(true);
            }
            self.drop_table(client, number)?;
        }
        self.forget_parts(client, number)?;
        let creating = || doing(format!("creating table {}{}", table.name, at(&table.place)));
        client.execute(&table.create).map_err(creating())?;
        if !self.exists(client, &table.name)? {
            return Err(PrepareError::NotPrepared {
                database: self.database.clone(),
                what: format!("table {} after its CREATE statement{}", table.name, at(&table.place)),
            });
        }
        heap::check(client, &self.database, &table.name, table.rows)?;
        Ok(false)
    }

    /// Whether the existing rows of a table are known well enough to add the missing ones.
    fn can_go_on(&self, client: &mut Client, number: usize) -> Result<bool, PrepareError> {
        let table = &self.tables[number];
        let server = ServerTable::look(client, self, table)?;
        if server.transactional {
            return Ok(true);
        }
        let notes = self.notes(client)?;
        let noted: u64 = notes.parts.range((number, 0)..=(number, u64::MAX)).map(|(_, sum)| sum.rows).sum();
        let count = format!("SELECT COUNT(*) FROM {}", mark::quoted(&table.name));
        let counted = client.query(&count).map_err(doing(format!("looking at table {}", table.name)));
        // A table that was damaged by a crash of the server cannot be counted.
        let Ok(there) = counted.map(|rows| rows.number(0, 0).unwrap_or(0u64)) else { return Ok(false) };
        Ok(there == noted || there > noted && server.can_go_on())
    }

    fn drop_table(&self, client: &mut Client, number: usize) -> Result<(), PrepareError> {
        let name = &self.tables[number].name;
        let dropping = || doing(format!("dropping table {name}, to begin it anew"));
        client.execute("SET SESSION foreign_key_checks = 0").map_err(dropping())?;
        client
            .execute(&format!("DROP TABLE {}.{}", mark::quoted(&self.database), mark::quoted(name)))
            .map_err(dropping())?;
        self.forget_parts(client, number)?;
        client.execute("SET SESSION foreign_key_checks = DEFAULT").map(drop).map_err(dropping())
    }

    /// Drops the tables that the mark lists as made by an earlier prepare; other tables of these names are foreign.
    fn drop_old(&self, client: &mut Client, before: Option<&DataMark>) -> Result<(), PrepareError> {
        let old = before.and_then(|d| d.shape.get("tables")).and_then(Value::as_array);
        let names = old.into_iter().flatten().filter_map(Value::as_str);
        client.execute("SET SESSION foreign_key_checks = 0").map_err(doing("dropping old tables"))?;
        for name in names {
            let drop =
                format!("DROP TABLE IF EXISTS {}.{}", mark::quoted(&self.database), mark::quoted(name));
            client.execute(&drop).map_err(doing(format!("dropping old table {name}")))?;
        }
        client
            .execute("SET SESSION foreign_key_checks = DEFAULT")
            .map_err(doing("switching on checks of this session"))?;
        for table in &self.tables {
            if self.exists(client, &table.name)? {
                let (database, table) = (self.database.clone(), table.name.clone());
                return Err(PrepareError::Taken { database, table });
            }
        }
        Ok(())
    }
}
