//! The data of a workload: tables that mydyno makes, or the user's own, which it only queries.

use std::sync::atomic::AtomicBool;

use mydyno_model::Warning;
use mydyno_wire::Client;

use crate::mark::{self, DataMark, Origin, Owner};
use crate::own_tables::OwnTables;
use crate::prepare::{self, Connect, PrepareError, Prepared, Progress, Tables, Tuning, doing};

/// The data of a workload.
#[derive(Debug, Clone)]
pub enum WorkTables {
    /// Tables of the OLTP family.
    Oltp(Tables),
    /// Tables that the workload brings.
    Own(OwnTables),
    /// Existing tables of the user in this database: none are made, checked or dropped.
    Users(String),
}

impl WorkTables {
    fn database(&self) -> Option<&str> {
        match self {
            Self::Oltp(_) => None,
            Self::Own(tables) => Some(&tables.database),
            Self::Users(database) => Some(database),
        }
    }

    /// Whether mydyno makes tables for it.
    pub fn is_made(&self) -> bool {
        !matches!(self, Self::Users(_))
    }

    /// Rows that preparing makes.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Oltp(tables) => tables.rows(),
            Self::Own(tables) => tables.rows(),
            Self::Users(_) => 0,
        }
    }

    /// Approximate disk space that preparing needs, in bytes.
    pub fn disk_bytes(&self) -> u64 {
        match self {
            Self::Oltp(tables) if tables.data().engine.is_memory() => 0,
            Self::Oltp(tables) => tables.size_bytes(),
            Self::Own(tables) => tables.disk_bytes(),
            Self::Users(_) => 0,
        }
    }

    /// Approximate memory of the server that each table needs, in bytes, for engines that keep rows in memory only.
    pub fn heap_bytes(&self) -> Vec<u64> {
        match self {
            Self::Oltp(tables) if tables.data().engine.is_memory() => tables.data().table_bytes().collect(),
            Self::Own(tables) => tables.heap_bytes(),
            _ => Vec::new(),
        }
    }

    /// The same data, with other parameters of filling.
    #[must_use]
    pub fn tuned(self, tuning: Tuning) -> Self {
        match self {
            Self::Oltp(tables) => Self::Oltp(tables.tuned(tuning)),
            Self::Own(tables) => Self::Own(OwnTables { tuning, ..tables }),
            Self::Users(database) => Self::Users(database),
        }
    }

    /// Locks the database for this connection, so that no other mydyno makes, drops or loads its tables meanwhile. The
    /// lock ends with the connection. Several commands may load a database of the user.
    ///
    /// # Errors
    /// Another connection holds the lock, or the server's error.
    pub fn claim(&self, client: &mut Client) -> Result<(), PrepareError> {
        match self {
            Self::Oltp(tables) => tables.claim(client),
            Self::Own(tables) => prepare::claim(client, &tables.database),
            Self::Users(_) => Ok(()),
        }
    }

    /// The mark, if it states that the tables are complete.
    ///
    /// # Errors
    /// A foreign database, or the server's error.
    pub fn existing(&self, client: &mut Client) -> Result<Option<DataMark>, PrepareError> {
        match self {
            Self::Oltp(tables) => tables.existing(client),
            Self::Own(tables) => tables.existing(client),
            Self::Users(_) => Ok(Some(unknown())),
        }
    }

    /// The mark of tables that a run can use.
    ///
    /// # Errors
    /// Missing, incomplete or other tables, a foreign database.
    pub fn require(&self, client: &mut Client) -> Result<DataMark, PrepareError> {
        match self {
            Self::Oltp(tables) => tables.require(client),
            Self::Own(tables) => tables.require(client),
            Self::Users(_) => Ok(unknown()),
        }
    }

    /// Makes the tables on several connections, unless they exist already.
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
        match self {
            Self::Oltp(tables) => tables.prepare(connect, connections, stop, progress),
            Self::Own(tables) => tables.prepare(connect, connections, stop, progress),
            Self::Users(_) => Ok(Prepared::Reused),
        }
    }

    /// Records in the mark that a run is about to change rows.
    ///
    /// # Errors
    /// The server's error.
    pub fn note_use(&self, client: &mut Client, data: &DataMark) -> Result<(), PrepareError> {
        match self {
            Self::Oltp(tables) => tables.note_use(client, data),
            Self::Own(tables) => tables.note_use(client, data),
            Self::Users(database) => note_use_of_all(client, database),
        }
    }

    /// Checks the rows.
    ///
    /// # Errors
    /// All conditions that the tables violate, or the statement that failed.
    pub fn check(&self, client: &mut Client) -> Result<DataMark, Vec<PrepareError>> {
        match self {
            Self::Oltp(tables) => tables.check(client),
            Self::Own(tables) => tables.check(client),
            Self::Users(_) => Ok(unknown()),
        }
    }

    /// Drops the database that mydyno made; returns whether there was one. The user's own is never dropped.
    ///
    /// # Errors
    /// A foreign database, or the server's error.
    pub fn cleanup(&self, client: &mut Client) -> Result<bool, PrepareError> {
        match self {
            Self::Oltp(tables) => tables.cleanup(client),
            Self::Own(tables) => prepare::cleanup(client, &tables.database),
            Self::Users(_) => Ok(false),
        }
    }

    /// The conclusion from a successful check; `used` is whether runs have changed rows.
    pub fn shown_by_check(&self, used: bool) -> &'static str {
        match (self, used) {
            (Self::Oltp(_), false) => "every row is as the seed makes it",
            (Self::Oltp(tables), true) if !tables.data().conditions.is_empty() => {
                "what must hold at any time holds (runs have changed rows since they were made)"
            }
            (Self::Oltp(_), true) => {
                "the number of rows is right (runs have changed rows since they were made)"
            }
            (Self::Own(_), false) => "every row is as it was made",
            (Self::Own(tables), true) if tables.checks.is_empty() => {
                "the tables are there (runs have changed rows since they were made, and the workload says nothing that must hold then)"
            }
            (Self::Own(_), true) => {
                "what must hold at any time holds (runs have changed rows since they were made)"
            }
            (Self::Users(_), _) => "these tables are not mydyno's: there is nothing to check",
        }
    }

    /// Warnings about a run, from the rows that it left.
    ///
    /// # Errors
    /// The server's error.
    pub fn doubts(&self, client: &mut Client) -> Result<Vec<Warning>, PrepareError> {
        match self {
            Self::Own(tables) => tables.doubts(client),
            Self::Oltp(_) | Self::Users(_) => Ok(Vec::new()),
        }
    }

    /// Whether statements may write in the database without a permission: to tables that mydyno makes there; to any
    /// table of a database that mydyno made.
    ///
    /// # Errors
    /// The server's error.
    pub fn is_ours(&self, client: &mut Client) -> Result<bool, PrepareError> {
        let Some(database) = self.database() else { return Ok(true) };
        // Statements without a database: none of it is mydyno's.
        if database.is_empty() {
            return Ok(false);
        }
        let owner =
            mark::owner(client, database).map_err(doing(format!("looking at database {database:?}")))?;
        if self.is_made() || owner != Owner::Ours {
            return Ok(self.is_made() && owner != Owner::Foreign);
        }
        // A database that existed before mydyno may contain other tables of the user.
        let origin =
            mark::origin(client, database).map_err(doing(format!("looking at database {database:?}")))?;
        Ok(origin == Origin::Made)
    }
}

/// Records in all marks of a database of mydyno's that the user's statements are about to change rows.
fn note_use_of_all(client: &mut Client, database: &str) -> Result<(), PrepareError> {
    let noting = || doing("noting that the rows are in use");
    if database.is_empty() || mark::owner(client, database).map_err(noting())? != Owner::Ours {
        return Ok(());
    }
    let names = client
        .query(&format!("SELECT name FROM {}.{}", mark::quoted(database), mark::TABLE))
        .map_err(noting())?;
    for row in 0..names.len() {
        let Some(family) = names.text(row, 0) else { continue };
        if let Some(data) = mark::data(client, database, &family).map_err(noting())? {
            mark::set_data(client, database, &family, &DataMark { used: true, ..data }).map_err(noting())?;
        }
    }
    Ok(())
}

/// Rows of tables that mydyno did not prepare.
fn unknown() -> DataMark {
    DataMark {
        shape: serde_json::Value::Null,
        seed: 0,
        fingerprint: "not-ours".to_owned(),
        complete: true,
        used: false,
    }
}
