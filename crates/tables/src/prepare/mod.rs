//! Creates, checks and drops tables and their rows.

pub(crate) mod batch;
pub(crate) mod check;
mod fill;
pub(crate) mod fillers;
pub(crate) mod heap;
mod key;
pub(crate) mod ranges;
mod routines;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use mydyno_model::units::{show_bytes, show_count};
use mydyno_wire::{Client, ServerVersion, WireError};
use thiserror::Error;

use crate::fingerprint;
use crate::mark::{self, DataMark, Origin, Owner};
use crate::table::DataSet;
pub use fill::Tuning;

/// Opens a connection without a database.
pub type Connect<'a> = &'a (dyn Fn() -> Result<Client, WireError> + Sync);

/// Maximum number of bytes of one INSERT; less where `max_allowed_packet` is lower.
const BATCH_BYTES: usize = 512 * 1024;

/// Why tables could not be created, checked or dropped.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The database is foreign.
    #[error(
        "database {database:?} exists and was not made by mydyno (it has no table {}): name another with --schema, or drop it yourself if it is not needed",
        mark::TABLE
    )]
    Foreign {
        /// Its name.
        database: String,
    },
    /// The mark states neither that mydyno made the database nor that it existed before.
    #[error(
        "database {database:?} has the table {}, with the comment {comment:?}, which mydyno does not write: nothing was dropped; drop the database yourself if it is not needed",
        mark::TABLE
    )]
    UnclearMark {
        /// Its name.
        database: String,
        /// The comment of the mark's table.
        comment: String,
    },
    /// Another mydyno is using the database.
    #[error(
        "another mydyno is using database {database:?} on this server: wait for it, or name another database with --schema"
    )]
    InUse {
        /// Its name.
        database: String,
    },
    /// Tables are missing.
    #[error(
        "database {database:?} has no {what}: run the `prepare` step first, or no step at all, which prepares when needed"
    )]
    NotPrepared {
        /// Its name.
        database: String,
        /// The missing tables.
        what: String,
    },
    /// Rows differ from the mark.
    #[error("{table}: {found}, expected {expected}")]
    Inconsistent {
        /// Table.
        table: String,
        /// The actual value.
        found: String,
        /// The value according to the seed or the mark.
        expected: String,
    },
    /// A table with this name belongs to another workload, or is foreign.
    #[error(
        "database {database:?} has a table {table} that this workload did not make: name another database with --schema"
    )]
    Taken {
        /// The database.
        database: String,
        /// The table.
        table: String,
    },
    /// The user asked to stop.
    #[error("interrupted: the tables are incomplete; the next prepare goes on from there")]
    Interrupted,
    /// A column to be filled does not exist in the table.
    #[error(
        "table {table} has no column {column:?}{place}: {}",
        .nearest.as_ref().map_or_else(|| format!("it has {names}"), |near| format!("did you mean {near}?"))
    )]
    NoColumn {
        /// Position of its description.
        place: String,
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The most similar column name.
        nearest: Option<String>,
        /// All columns of the table.
        names: String,
    },
    /// The rows do not fit into a table in memory.
    #[error(
        "table {table} lives in the server's memory and is to have {} rows, of which it can hold about {}, since max_heap_table_size is {}: raise it with `SET GLOBAL max_heap_table_size = {needed};`, if the server has that much to spare, or ask for fewer rows",
        show_count(*.rows), show_count(*.fits), show_bytes(*.limit as f64)
    )]
    NoRoom {
        /// The table.
        table: String,
        /// Number of its rows.
        rows: u64,
        /// Number of rows that it can hold.
        fits: u64,
        /// `max_heap_table_size` at its creation, in bytes.
        limit: u64,
        /// Size for all rows, in bytes.
        needed: u64,
    },
    /// An error of the server or the connection.
    #[error("{doing}: {source}")]
    Wire {
        /// The operation.
        doing: String,
        /// The cause.
        source: Box<WireError>,
    },
}

pub(crate) fn doing(doing: impl Into<String>) -> impl FnOnce(WireError) -> PrepareError {
    let doing = doing.into();
    move |source| PrepareError::Wire { doing, source: Box::new(source) }
}

/// A data set in a database.
#[derive(Debug, Clone)]
pub struct Tables {
    database: String,
    data: DataSet,
    tuning: Tuning,
    keeps_row_count: bool,
}

/// Progress of a prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Number of rows inserted so far.
    pub rows: u64,
    /// Total number of rows.
    pub of: u64,
    /// Number of rows from an earlier prepare.
    pub found: u64,
}

/// Outcome of preparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// The tables existed already.
    Reused,
    /// The tables were created.
    Made,
}

impl Tables {
    /// The tables of a data set in a database.
    pub fn new(database: &str, data: DataSet) -> Self {
        Self { database: database.to_owned(), data, tuning: Tuning::default(), keeps_row_count: true }
    }

    /// The same for a workload that adds or removes rows.
    #[must_use]
    pub fn for_changing_row_count(mut self) -> Self {
        self.keeps_row_count = false;
        self
    }

    /// The same with other tuning.
    #[must_use]
    pub fn tuned(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// The data set.
    pub fn data(&self) -> &DataSet {
        &self.data
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.data.rows()
    }

    /// Approximate size of the tables in bytes, for the check of free space before a prepare.
    pub fn size_bytes(&self) -> u64 {
        self.data.size_bytes()
    }

    /// Fingerprint of fresh rows.
    pub fn fingerprint(&self) -> String {
        self.data.fingerprint()
    }

    /// Locks the database for this connection, so that no other mydyno creates or drops its tables meanwhile. The lock
    /// ends with the connection.
    ///
    /// # Errors
    /// Another connection holds it, or the server's error.
    pub fn claim(&self, client: &mut Client) -> Result<(), PrepareError> {
        claim(client, &self.database)
    }

    /// The mark, if it states that tables of this shape are complete.
    ///
    /// # Errors
    /// A foreign database, or the server's error.
    pub fn existing(&self, client: &mut Client) -> Result<Option<DataMark>, PrepareError> {
        let shape = self.data.shape();
        let Some(data) = self.marked(client)?.filter(|d| d.complete && d.shape == shape) else {
            return Ok(None);
        };
        let there = self.present(client)?;
        let all = self.data.tables.iter().all(|t| there.contains(t.name()));
        if !all || there.len() != self.data.tables.len() {
            return Ok(None);
        }
        // MEMORY tables lose their rows when the server stops.
        for table in self.data.tables.iter().filter(|t| self.data.engine.is_memory() && t.rows() > 0) {
            if is_empty(client, &self.database, table.name())? {
                return Ok(None);
            }
        }
        Ok(Some(data))
    }

    /// Reads the mark's entry about the family's tables.
    fn marked(&self, client: &mut Client) -> Result<Option<DataMark>, PrepareError> {
        let looking = || doing(format!("looking at database {:?}", self.database));
        match mark::owner(client, &self.database).map_err(looking())? {
            Owner::Foreign => Err(PrepareError::Foreign { database: self.database.clone() }),
            Owner::Missing => Ok(None),
            Owner::Ours => mark::data(client, &self.database, self.data.family).map_err(looking()),
        }
    }

    /// The mark of tables that a run can use.
    ///
    /// # Errors
    /// Missing or incomplete tables, tables of another shape, a foreign database.
    pub fn require(&self, client: &mut Client) -> Result<DataMark, PrepareError> {
        let not_prepared = |what| PrepareError::NotPrepared { database: self.database.clone(), what };
        let found = self
            .existing(client)?
            .ok_or_else(|| not_prepared(format!("complete tables of this shape ({})", self.describe())))?;
        match self.missing_routine(client)? {
            None => Ok(found),
            Some(name) => Err(not_prepared(format!("procedure {name}"))),
        }
    }

    fn describe(&self) -> String {
        let (tables, rows) = (self.data.tables.len(), self.data.tables.first().map_or(0, |t| t.rows()));
        let plural = if tables == 1 { "table" } else { "tables" };
        format!("{tables} {plural} of {rows} rows, {}", self.data.engine.name())
    }

    /// Creates and fills the tables on several connections, unless tables of this shape exist already. Rows of an
    /// interrupted prepare with the same rows are kept.
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
        let client = &mut connect().map_err(doing("connecting"))?;
        if self.existing(client)?.is_some() {
            self.make_routines(client)?;
            return Ok(Prepared::Reused);
        }
        let (database, family) = (&self.database, self.data.family);
        if mark::owner(client, database).map_err(doing(format!("looking at database {database:?}")))?
            == Owner::Missing
        {
            mark::create(client, database).map_err(doing(format!("creating database {database}")))?;
        }
        let mut data = DataMark {
            shape: self.data.shape(),
            seed: self.data.seed,
            fingerprint: self.fingerprint(),
            complete: false,
            used: false,
        };
        let before = self.marked(client)?;
        let goes_on = before.as_ref() == Some(&data);
        let old = self.old_tables(client, before)?;
        // Tables that a mark of the same rows left incomplete are resumed.
        if !goes_on {
            self.drop_tables(client, &old)?;
            mark::set_data(client, database, family, &data)
                .map_err(doing("marking the tables as incomplete"))?;
            let note = self.count_note();
            mark::note(client, database, &note, None).map_err(doing("marking the tables as incomplete"))?;
        }
        let present = self.present(client)?;
        let server = client.server().clone();
        fill::fill(self, &present, &server, connect, connections, stop, progress)?;
        self.make_routines(client)?;
        data.complete = true;
        mark::set_data(client, database, family, &data).map_err(doing("marking the tables as complete"))?;
        Ok(Prepared::Made)
    }

    /// Names of the family's existing tables.
    fn present(&self, client: &mut Client) -> Result<BTreeSet<String>, PrepareError> {
        let list = format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME REGEXP {}",
            mark::literal(&self.database),
            mark::literal(&self.data.names)
        );
        let rows = client.query(&list).map_err(doing("listing the tables"))?.rows;
        let names = rows.iter().filter_map(|row| row.first()?.as_deref());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    /// Names of the family's existing tables. The mark must list each: others are foreign.
    fn old_tables(
        &self,
        client: &mut Client,
        before: Option<DataMark>,
    ) -> Result<BTreeSet<String>, PrepareError> {
        let present = self.present(client)?;
        let marked = before.map(mark::tables_of).unwrap_or_default();
        match present.iter().find(|name| !marked.contains(name)) {
            None => Ok(present),
            Some(name) => Err(PrepareError::Taken { database: self.database.clone(), table: name.clone() }),
        }
    }

    fn drop_tables(&self, client: &mut Client, names: &BTreeSet<String>) -> Result<(), PrepareError> {
        let checks = |on: &str| format!("SET SESSION foreign_key_checks = {on}");
        client.execute(&checks("0")).map_err(doing("dropping old tables"))?;
        for name in names {
            let drop = format!("DROP TABLE {}.{}", mark::quoted(&self.database), mark::quoted(name));
            client.execute(&drop).map_err(doing(format!("dropping old table {name}")))?;
        }
        client.execute(&checks("DEFAULT")).map_err(doing("dropping old tables"))?;
        Ok(())
    }

    /// Name of the note that a run added or removed rows.
    fn count_note(&self) -> String {
        format!("{}.row-count-changed", self.data.family)
    }

    /// Records in the mark that a run is about to change rows.
    ///
    /// # Errors
    /// The server's error.
    pub fn note_use(&self, client: &mut Client, data: &DataMark) -> Result<(), PrepareError> {
        let used = DataMark { used: true, ..data.clone() };
        let noting = || doing("noting that the rows are in use");
        mark::set_data(client, &self.database, self.data.family, &used).map_err(noting())?;
        if !self.keeps_row_count {
            mark::note(client, &self.database, &self.count_note(), Some("yes")).map_err(noting())?;
        }
        Ok(())
    }

    /// Drops the database with everything in it.
    ///
    /// # Errors
    /// A foreign database, or the server's error.
    pub fn cleanup(&self, client: &mut Client) -> Result<bool, PrepareError> {
        cleanup(client, &self.database)
    }
}

/// Whether a table has no row.
pub(crate) fn is_empty(client: &mut Client, database: &str, table: &str) -> Result<bool, PrepareError> {
    let any = format!("SELECT 1 FROM {}.{} LIMIT 1", mark::quoted(database), mark::quoted(table));
    Ok(client.query(&any).map_err(doing(format!("looking at table {table}")))?.is_empty())
}

/// Seconds that a claim waits: the server releases the lock of a command that has ended when it notices that its
/// connection is closed, which a busy server may do after the next command has begun.
const CLAIM_WAIT_S: u32 = 2;

/// Locks a database for this connection.
pub(crate) fn claim(client: &mut Client, database: &str) -> Result<(), PrepareError> {
    // Names of locks have at most 64 characters, as do names of databases: a digest fits.
    let name = format!("mydyno {}", fingerprint::short(database.as_bytes()));
    let sql = format!("SELECT GET_LOCK({}, {CLAIM_WAIT_S})", mark::literal(&name));
    let taken = client.query(&sql).map_err(doing("claiming the database"))?;
    if taken.scalar().as_deref() == Some("1") {
        Ok(())
    } else {
        Err(PrepareError::InUse { database: database.to_owned() })
    }
}

/// Drops a database of mydyno. Returns whether there was one.
pub(crate) fn cleanup(client: &mut Client, database: &str) -> Result<bool, PrepareError> {
    match mark::owner(client, database).map_err(doing(format!("looking at database {database:?}")))? {
        Owner::Missing => {
            mark::drop_empty(client, database).map_err(doing(format!("dropping database {database}")))
        }
        Owner::Foreign => Err(PrepareError::Foreign { database: database.to_owned() }),
        Owner::Ours => {
            match mark::drop(client, database).map_err(doing(format!("dropping database {database}")))? {
                Origin::Made | Origin::Adopted => Ok(true),
                Origin::Unclear(comment) => {
                    Err(PrepareError::UnclearMark { database: database.to_owned(), comment })
                }
            }
        }
    }
}

/// Number of bytes of an INSERT: `most`, or what `max_allowed_packet` permits.
pub(crate) fn batch_bytes(client: &mut Client, most: usize) -> Result<usize, PrepareError> {
    let rows = client.query("SELECT @@max_allowed_packet").map_err(doing("reading max_allowed_packet"))?;
    let limit = rows.number(0, 0).map_or(most, |n: u64| usize::try_from(n).unwrap_or(usize::MAX));
    Ok(most.min(limit.saturating_sub(1024)).max(1024))
}

/// Number of connections that insert in parallel into one table with AUTO_INCREMENT. Since 10.2.4 MariaDB's InnoDB
/// stores the largest number in the root page of the table's tree and latches that page for each row, so that a second
/// connection only waits for the first.
pub(crate) fn inserting_at_once(server: &ServerVersion, engine: &str) -> usize {
    let in_root = server.is_mariadb() && server.at_least(10, 2, 4);
    if in_root && engine == "innodb" { 1 } else { usize::MAX }
}
