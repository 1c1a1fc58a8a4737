//! Tables and rows: made, checked, dropped.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mydyno_wire::{Client, WireError};
use serde_json::Value;
use thiserror::Error;

use crate::data::Row;
use crate::fingerprint;
use crate::mark::{self, DataMark, Owner};
use crate::options::Options;

/// Key of the OLTP family's tables in the mark.
pub const FAMILY: &str = "oltp";

/// Bytes of one INSERT at the most; less where `max_allowed_packet` is less.
const BATCH_BYTES: usize = 512 * 1024;

/// Batches of one transaction: few enough that undo and binary log caches stay small, many enough that the sync of
/// a commit does not count.
const BATCHES_PER_COMMIT: u64 = 32;

/// Why tables could not be made, checked or dropped.
#[derive(Debug, Error)]
pub enum PrepareError {
    /// The database is somebody's.
    #[error(
        "database {database:?} exists and was not made by mydyno (it has no table {}): name another with --schema, or drop it yourself if it is not needed",
        mark::TABLE
    )]
    Foreign {
        /// Its name.
        database: String,
    },
    /// Another mydyno is at work in the database.
    #[error(
        "another mydyno is using database {database:?} on this server: wait for it, or name another database with --schema"
    )]
    InUse {
        /// Its name.
        database: String,
    },
    /// There is nothing to run on.
    #[error(
        "database {database:?} has no {what}: run the `prepare` step first, or no step at all, which prepares when needed"
    )]
    NotPrepared {
        /// Its name.
        database: String,
        /// What is missing.
        what: String,
    },
    /// Rows are not what the mark says.
    #[error("{table}: {found}, expected {expected}")]
    Inconsistent {
        /// Table.
        table: String,
        /// What was found.
        found: String,
        /// What the seed or the mark says.
        expected: String,
    },
    /// A table of this name is another workload's, or somebody's.
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
    #[error("interrupted: the tables are incomplete; the next prepare starts over")]
    Interrupted,
    /// The server or the connection.
    #[error("{doing}: {source}")]
    Wire {
        /// What was being done.
        doing: String,
        /// What was said.
        source: Box<WireError>,
    },
}

pub(crate) fn doing(doing: impl Into<String>) -> impl FnOnce(WireError) -> PrepareError {
    let doing = doing.into();
    move |source| PrepareError::Wire { doing, source: Box::new(source) }
}

/// Tables of the OLTP family.
#[derive(Debug, Clone)]
pub struct Tables {
    database: String,
    tables: u64,
    table_size: u64,
    seed: u64,
    shape: Value,
    primary_key: bool,
    auto_increment: bool,
    secondary_index: bool,
    engine: String,
}

/// How far preparing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows that are in.
    pub rows: u64,
    /// Rows in the end.
    pub of: u64,
}

/// What preparing found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepared {
    /// The tables were there already.
    Reused,
    /// They were made.
    Made,
}

impl Tables {
    /// The tables that these options ask for.
    pub fn new(database: &str, options: &Options, seed: u64) -> Self {
        let shape_options =
            ["tables", "table-size", "auto-inc", "create-secondary", "secondary", "mysql-storage-engine"];
        let shape: Value =
            shape_options.iter().map(|name| ((*name).to_owned(), options.values()[*name].clone())).collect();
        Self {
            database: database.to_owned(),
            tables: options.count("tables"),
            table_size: options.count("table-size"),
            seed,
            shape,
            primary_key: !options.switch("secondary"),
            auto_increment: options.switch("auto-inc"),
            secondary_index: options.switch("create-secondary"),
            engine: options.word("mysql-storage-engine").to_owned(),
        }
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables * self.table_size
    }

    /// Bytes that the tables take on disk, roughly: for the check of free space before preparing.
    /// A row holds 188 bytes of data; pages are 15/16 full, and the index on `k` adds a ninth.
    pub fn size_bytes(&self) -> u64 {
        self.rows() * 240
    }

    /// Fingerprint of fresh rows.
    pub fn fingerprint(&self) -> String {
        fingerprint::data(&self.shape, self.seed)
    }

    /// Takes the database for this connection, so that no other mydyno makes or drops its tables meanwhile. The lock
    /// goes with the connection.
    ///
    /// # Errors
    /// Another connection holds it, or what the server said.
    pub fn claim(&self, client: &mut Client) -> Result<(), PrepareError> {
        claim(client, &self.database)
    }

    /// The mark, if it says that tables of this shape are complete.
    ///
    /// # Errors
    /// A foreign database, or what the server said.
    pub fn existing(&self, client: &mut Client) -> Result<Option<DataMark>, PrepareError> {
        let looking = || doing(format!("looking at database {}", self.database));
        match mark::owner(client, &self.database).map_err(looking())? {
            Owner::Foreign => Err(PrepareError::Foreign { database: self.database.clone() }),
            Owner::Missing => Ok(None),
            Owner::Ours => {
                let data = mark::data(client, &self.database, FAMILY).map_err(looking())?;
                let tables = self.old_tables(client)?.len() as u64;
                Ok(data.filter(|d| d.complete && d.shape == self.shape && tables == self.tables))
            }
        }
    }

    /// The mark of tables that a run can use.
    ///
    /// # Errors
    /// Missing or incomplete tables, tables of another shape, a foreign database.
    pub fn require(&self, client: &mut Client) -> Result<DataMark, PrepareError> {
        self.existing(client)?.ok_or_else(|| PrepareError::NotPrepared {
            database: self.database.clone(),
            what: format!("complete tables of this shape ({})", self.describe()),
        })
    }

    fn describe(&self) -> String {
        format!(
            "{} {} of {} rows, {}",
            self.tables,
            if self.tables == 1 { "table" } else { "tables" },
            self.table_size,
            self.engine
        )
    }

    /// Makes the tables, on several connections, unless tables of this shape are there already.
    ///
    /// # Errors
    /// See [`PrepareError`]. What was made so far stays, marked as incomplete.
    pub fn prepare(
        &self,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Prepared, PrepareError> {
        let mut client = connect().map_err(doing("connecting"))?;
        if self.existing(&mut client)?.is_some() {
            return Ok(Prepared::Reused);
        }
        self.make_afresh(connect, connections, stop, progress, &mut client)?;
        Ok(Prepared::Made)
    }

    fn make_afresh(
        &self,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
        client: &mut Client,
    ) -> Result<(), PrepareError> {
        let database = &self.database;
        if mark::owner(client, database).map_err(doing(format!("looking at database {database}")))?
            == Owner::Missing
        {
            mark::create(client, database).map_err(doing(format!("creating database {database}")))?;
        }
        let mut data = DataMark {
            shape: self.shape.clone(),
            seed: self.seed,
            fingerprint: self.fingerprint(),
            complete: false,
            used: false,
        };
        mark::set_data(client, database, FAMILY, &data).map_err(doing("marking the tables as incomplete"))?;
        self.drop_old_tables(client)?;
        self.fill_in_parallel(connect, connections, stop, progress)?;
        data.complete = true;
        mark::set_data(client, database, FAMILY, &data).map_err(doing("marking the tables as complete"))
    }

    /// Names of the family's tables that are there.
    fn old_tables(&self, client: &mut Client) -> Result<Vec<String>, PrepareError> {
        let list = format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME LIKE 'sbtest%'",
            mark::literal(&self.database)
        );
        let rows = client.query(&list).map_err(doing("listing the tables"))?.rows;
        let names = rows.iter().filter_map(|row| row.first()?.as_deref());
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn drop_old_tables(&self, client: &mut Client) -> Result<(), PrepareError> {
        for name in self.old_tables(client)? {
            let drop = format!("DROP TABLE {}.{}", mark::quoted(&self.database), mark::quoted(&name));
            client.execute(&drop).map_err(doing(format!("dropping old table {name}")))?;
        }
        Ok(())
    }

    fn fill_in_parallel(
        &self,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), PrepareError> {
        let next = AtomicU64::new(1);
        let done = AtomicU64::new(0);
        let fillers = connections.clamp(1, usize::try_from(self.tables).unwrap_or(usize::MAX));
        let at_work = AtomicUsize::new(fillers);
        let failed = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..fillers)
                .map(|_| {
                    scope.spawn(|| {
                        let _leaving = Leaving(&at_work);
                        let result = self.fill_tables(connect, &next, &done, &|| {
                            stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed)
                        });
                        if result.is_err() {
                            failed.store(true, Ordering::Relaxed);
                        }
                        result
                    })
                })
                .collect();
            while at_work.load(Ordering::Acquire) > 0 {
                progress(Progress { rows: done.load(Ordering::Relaxed), of: self.rows() });
                std::thread::park_timeout(Duration::from_millis(100));
            }
            // The first failure that is not just the others' reaction to it.
            let results: Vec<Result<(), PrepareError>> =
                threads.into_iter().map(|t| t.join().unwrap_or(Err(PrepareError::Interrupted))).collect();
            let (mut interrupted, mut first) = (Ok(()), None);
            for result in results {
                match result {
                    Err(PrepareError::Interrupted) => interrupted = Err(PrepareError::Interrupted),
                    Err(error) if first.is_none() => first = Some(error),
                    _ => {}
                }
            }
            first.map_or(interrupted, Err)
        })?;
        progress(Progress { rows: self.rows(), of: self.rows() });
        Ok(())
    }

    fn fill_tables(
        &self,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        next: &AtomicU64,
        done: &AtomicU64,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), PrepareError> {
        let mut client = connect().map_err(doing("connecting"))?;
        client
            .execute(&format!("USE {}", mark::quoted(&self.database)))
            .map_err(doing("choosing the database"))?;
        client
            .execute("SET SESSION unique_checks = 0, foreign_key_checks = 0")
            .map_err(doing("switching off checks of this session"))?;
        let batch_bytes = batch_bytes(&mut client)?;
        loop {
            let table = next.fetch_add(1, Ordering::Relaxed);
            if table > self.tables {
                return Ok(());
            }
            self.make_table(&mut client, table, batch_bytes, done, stop)?;
        }
    }

    fn make_table(
        &self,
        client: &mut Client,
        table: u64,
        batch_bytes: usize,
        done: &AtomicU64,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), PrepareError> {
        client.execute(&self.create_sql(table)).map_err(doing(format!("creating table sbtest{table}")))?;
        let inserting = || doing(format!("inserting into sbtest{table}"));
        let head = format!("INSERT INTO sbtest{table} (id,k,c,pad) VALUES ");
        let mut sql = Vec::with_capacity(batch_bytes);
        let (mut rows, mut batches) = (0, 0);
        client.execute("BEGIN").map_err(inserting())?;
        for id in 1..=self.table_size {
            if rows == 0 {
                sql.clear();
                sql.extend_from_slice(head.as_bytes());
            } else {
                sql.push(b',');
            }
            Row::generate(self.seed, table, id, self.table_size).push_sql(id, &mut sql);
            rows += 1;
            if sql.len() + 256 > batch_bytes || id == self.table_size {
                if stop() {
                    return Err(PrepareError::Interrupted);
                }
                client.execute_bytes(&sql).map_err(inserting())?;
                done.fetch_add(rows, Ordering::Relaxed);
                rows = 0;
                batches += 1;
                if batches % BATCHES_PER_COMMIT == 0 {
                    client.execute("COMMIT AND CHAIN").map_err(inserting())?;
                }
            }
        }
        client.execute("COMMIT").map_err(inserting())?;
        if self.secondary_index {
            client
                .execute(&format!("CREATE INDEX k_{table} ON sbtest{table}(k)"))
                .map_err(doing(format!("indexing sbtest{table}")))?;
        }
        Ok(())
    }

    fn create_sql(&self, table: u64) -> String {
        let int = if self.table_size > i32::MAX as u64 { "BIGINT" } else { "INTEGER" };
        let auto = if self.auto_increment { " AUTO_INCREMENT" } else { "" };
        let key = if self.primary_key { "PRIMARY KEY (id)" } else { "KEY xid (id)" };
        format!(
            "CREATE TABLE sbtest{table} (id {int} NOT NULL{auto}, k {int} DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key}) ENGINE={}",
            self.engine
        )
    }

    /// Notes in the mark that a run is about to change rows.
    ///
    /// # Errors
    /// What the server said.
    pub fn note_use(&self, client: &mut Client, data: &DataMark) -> Result<(), PrepareError> {
        let used = DataMark { used: true, ..data.clone() };
        mark::set_data(client, &self.database, FAMILY, &used)
            .map_err(doing("noting that the rows are in use"))
    }

    /// Checks rows against the mark: their number always (the workloads keep it), their bytes while no run has
    /// changed them.
    ///
    /// # Errors
    /// Every table that is not as it should be.
    pub fn check(&self, client: &mut Client) -> Result<DataMark, Vec<PrepareError>> {
        let data = self.require(client).map_err(|e| vec![e])?;
        let mut errors = Vec::new();
        for table in 1..=self.tables {
            if let Err(error) = self.check_table(client, table, &data) {
                errors.push(error);
            }
        }
        if errors.is_empty() { Ok(data) } else { Err(errors) }
    }

    fn check_table(&self, client: &mut Client, table: u64, data: &DataMark) -> Result<(), PrepareError> {
        let name = format!("{}.sbtest{table}", mark::quoted(&self.database));
        let sql = format!(
            "SELECT COUNT(*), COALESCE(MIN(id), 0), COALESCE(MAX(id), 0), \
             COALESCE(SUM(CRC32(CONCAT_WS(',', id, k, c, pad))), 0) FROM {name}"
        );
        let rows = client.query(&sql).map_err(doing(format!("checking {name}")))?.rows;
        let numbers: Vec<String> = rows
            .first()
            .map(|row| {
                row.iter()
                    .map(|v| String::from_utf8_lossy(v.as_deref().unwrap_or_default()).into_owned())
                    .collect()
            })
            .unwrap_or_default();
        let inconsistent = |found: String, expected: String| {
            Err(PrepareError::Inconsistent { table: format!("sbtest{table}"), found, expected })
        };
        let expected = [self.table_size.to_string(), "1".to_owned(), self.table_size.to_string()];
        if numbers.len() != 4 || numbers[..3] != expected {
            return inconsistent(
                format!("rows, first and last id are {}", numbers.get(..3).unwrap_or_default().join(", ")),
                expected.join(", "),
            );
        }
        if !data.used {
            let sum = checksum(data.seed, table, self.table_size).to_string();
            if numbers[3] != sum {
                return inconsistent(format!("checksum {}", numbers[3]), sum);
            }
        }
        Ok(())
    }

    /// Drops the database with all that is in it.
    ///
    /// # Errors
    /// A foreign database, or what the server said.
    pub fn cleanup(&self, client: &mut Client) -> Result<bool, PrepareError> {
        cleanup(client, &self.database)
    }
}

/// Takes a database for this connection.
pub(crate) fn claim(client: &mut Client, database: &str) -> Result<(), PrepareError> {
    // Names of locks have 64 characters at most, databases too: a digest fits.
    let name = format!("mydyno {}", fingerprint::short(database.as_bytes()));
    let sql = format!("SELECT GET_LOCK({}, 0)", mark::literal(&name));
    let taken = client.query(&sql).map_err(doing("claiming the database"))?;
    if taken.scalar().as_deref() == Some("1") {
        Ok(())
    } else {
        Err(PrepareError::InUse { database: database.to_owned() })
    }
}

/// Drops a database of ours; whether there was one.
pub(crate) fn cleanup(client: &mut Client, database: &str) -> Result<bool, PrepareError> {
    match mark::owner(client, database).map_err(doing(format!("looking at database {database}")))? {
        Owner::Missing => Ok(false),
        Owner::Foreign => Err(PrepareError::Foreign { database: database.to_owned() }),
        Owner::Ours => {
            mark::drop(client, database).map_err(doing(format!("dropping database {database}")))?;
            Ok(true)
        }
    }
}

/// Sum of the CRC-32 of all rows, as the check's SQL computes it.
fn checksum(seed: u64, table: u64, table_size: u64) -> u128 {
    (1..=table_size)
        .map(|id| {
            let row = Row::generate(seed, table, id, table_size);
            let mut crc = crc32fast::Hasher::new();
            crc.update(format!("{id},{},", row.k).as_bytes());
            crc.update(&row.c);
            crc.update(b",");
            crc.update(&row.pad);
            u128::from(crc.finalize())
        })
        .sum()
}

pub(crate) fn batch_bytes(client: &mut Client) -> Result<usize, PrepareError> {
    let rows = client.query("SELECT @@max_allowed_packet").map_err(doing("reading max_allowed_packet"))?.rows;
    let most = rows
        .first()
        .and_then(|row| row.first()?.as_deref())
        .and_then(|text| std::str::from_utf8(text).ok()?.parse::<usize>().ok())
        .unwrap_or(BATCH_BYTES);
    Ok(BATCH_BYTES.min(most.saturating_sub(1024)).max(1024))
}

/// Counts a filler out however it leaves.
pub(crate) struct Leaving<'a>(pub(crate) &'a AtomicUsize);

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
