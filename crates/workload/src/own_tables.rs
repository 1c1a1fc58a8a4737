//! Tables of workloads that bring their own: described as data, filled from generators, on several connections also
//! within one table.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use mydyno_model::Warning;
use mydyno_stats::rng::Rng;
use mydyno_wire::{Client, WireError};
use serde_json::{Value, json};

use crate::data::Purpose;
use crate::fingerprint;
use crate::generator::{Generator, Turn};
use crate::mark::{self, DataMark, Owner};
use crate::prepare::{self, Leaving, PrepareError, Prepared, Progress, doing};
use crate::sql_text::{self, Token};

/// Values that do not fit and engines that are not there are errors: a table is what its description says.
const STRICT: &str = "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'";

/// How often a transaction of rows is tried that a deadlock or a lock wait of neighbours ended.
const TRIES: usize = 5;

/// Rows that one connection makes in one transaction.
const CHUNK_ROWS: u64 = 20_000;

/// A table and its rows.
#[derive(Debug, Clone, PartialEq)]
pub struct TableSpec {
    /// Name, unqualified.
    pub name: String,
    /// The statement that makes it.
    pub create: String,
    /// Columns that are filled; the others have their defaults.
    pub columns: Vec<ColumnSpec>,
    /// Rows in the beginning.
    pub rows: u64,
    /// Statements for after the rows are in, as for indexes.
    pub after: Vec<String>,
    /// Where it is described, as in `shop.toml:12`; empty where nobody wrote it.
    pub place: String,
}

impl TableSpec {
    fn size_bytes(&self) -> u64 {
        let value = |c: &ColumnSpec| c.generator.longest().max(8) as u64;
        self.rows.saturating_mul(2 * (40 + self.columns.iter().map(value).sum::<u64>()))
    }

    /// Whether its statement asks for MEMORY.
    fn is_memory(&self) -> bool {
        let words = sql_text::tokens(&self.create);
        let mut words = words.iter().map(|(token, _)| *token).filter(|token| *token != Token::Mark('='));
        let is = |token: Token<'_>, list: &[&str]| matches!(token, Token::Word(word) if list.iter().any(|w| word.eq_ignore_ascii_case(w)));
        while let Some(token) = words.next() {
            if is(token, &["ENGINE"]) {
                return words.next().is_some_and(|engine| is(engine, &["MEMORY", "HEAP"]));
            }
        }
        false
    }
}

/// A column and how its values are made.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    /// Name.
    pub name: String,
    /// Values.
    pub generator: Generator,
}

/// A statement whose result says whether the data hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckSpec {
    /// What it is about, for messages.
    pub about: String,
    /// A SELECT; the first value of its first row counts.
    pub sql: String,
    /// What that value must be.
    pub expected: String,
}

/// A statement that finds out after a run whether its figures are doubtful.
#[derive(Debug, Clone, PartialEq)]
pub struct DoubtSpec {
    /// A SELECT that gives a number: how many rows give cause for doubt.
    pub sql: String,
    /// What is said when there are any.
    pub warning: Warning,
}

/// The tables of a workload in a database.
#[derive(Debug, Clone, PartialEq)]
pub struct OwnTables {
    /// Key in the mark.
    pub family: &'static str,
    /// The database.
    pub database: String,
    /// In the order in which they are made.
    pub tables: Vec<TableSpec>,
    /// What must hold before and after runs.
    pub checks: Vec<CheckSpec>,
    /// What makes a run's figures doubtful.
    pub doubts: Vec<DoubtSpec>,
    /// Seed of the rows.
    pub seed: u64,
    /// Whether a run asks for rows that only its own seed makes.
    pub of_seed: bool,
}

impl OwnTables {
    /// Everything but the seed that decides the rows.
    fn shape(&self) -> Value {
        let names: Vec<&str> = self.tables.iter().map(|t| t.name.as_str()).collect();
        let rows: Vec<u64> = self.tables.iter().map(|t| t.rows).collect();
        let recipes: Vec<_> = self.tables.iter().map(|t| (&t.create, &t.columns, &t.after)).collect();
        let recipe = fingerprint::short(format!("{recipes:?}").as_bytes());
        json!({"tables": names, "rows": rows, "recipe": recipe})
    }

    /// Fingerprint of fresh rows.
    pub fn fingerprint(&self) -> String {
        fingerprint::data(&self.shape(), self.seed)
    }

    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|t| t.rows).sum()
    }

    /// Bytes that the tables take on disk, roughly: values, some 40 bytes a row that the engine adds, and as much again
    /// for indexes and half-filled pages.
    pub fn size_bytes(&self) -> u64 {
        self.tables.iter().map(TableSpec::size_bytes).sum()
    }

    /// Bytes that the largest table in an engine without files takes of the server's memory, as roughly; 0 without one.
    pub fn heap_bytes(&self) -> u64 {
        let in_memory = self.tables.iter().filter(|t| t.is_memory());
        in_memory.map(TableSpec::size_bytes).max().unwrap_or(0)
    }

    /// The mark, if it says that these tables are complete.
    ///
    /// # Errors
    /// A foreign database, or what the server said.
    pub fn existing(&self, client: &mut Client) -> Result<Option<DataMark>, PrepareError> {
        let looking = || doing(format!("looking at database {}", self.database));
        match mark::owner(client, &self.database).map_err(looking())? {
            Owner::Foreign => Err(PrepareError::Foreign { database: self.database.clone() }),
            Owner::Missing => Ok(None),
            Owner::Ours => {
                let data = mark::data(client, &self.database, self.family).map_err(looking())?;
                let fits = |d: &DataMark| {
                    d.complete && d.shape == self.shape() && (!self.of_seed || d.seed == self.seed)
                };
                let Some(data) = data.filter(fits) else { return Ok(None) };
                for table in &self.tables {
                    let there = self.exists(client, &table.name)?;
                    // MEMORY's rows are gone with the server.
                    let lost = there
                        && table.is_memory()
                        && table.rows > 0
                        && prepare::is_empty(client, &self.database, &table.name)?;
                    if !there || lost {
                        return Ok(None);
                    }
                }
                Ok(Some(data))
            }
        }
    }

    /// The mark of tables that a run can use.
    ///
    /// # Errors
    /// Missing or incomplete tables, other tables, a foreign database.
    pub fn require(&self, client: &mut Client) -> Result<DataMark, PrepareError> {
        let names: Vec<&str> = self.tables.iter().map(|t| t.name.as_str()).collect();
        self.existing(client)?.ok_or_else(|| PrepareError::NotPrepared {
            database: self.database.clone(),
            what: format!(
                "complete tables of this workload and these options{} ({})",
                if self.of_seed { format!(" from seed {}", self.seed) } else { String::new() },
                names.join(", ")
            ),
        })
    }

    fn exists(&self, client: &mut Client, table: &str) -> Result<bool, PrepareError> {
        let sql = format!(
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            mark::literal(&self.database),
            mark::literal(table)
        );
        Ok(!client.query(&sql).map_err(doing("listing the tables"))?.is_empty())
    }

    /// Makes the tables, on several connections, unless they are there already.
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
        let database = &self.database;
        let looking = || doing(format!("looking at database {database}"));
        if mark::owner(&mut client, database).map_err(looking())? == Owner::Missing {
            mark::create(&mut client, database).map_err(doing(format!("creating database {database}")))?;
        }
        let before = mark::data(&mut client, database, self.family).map_err(looking())?;
        client.use_schema(database).map_err(doing("choosing the database"))?;
        client.execute(STRICT).map_err(doing("setting up the session"))?;
        self.drop_old(&mut client, before.as_ref())?;
        let mut data = DataMark {
            shape: self.shape(),
            seed: self.seed,
            fingerprint: self.fingerprint(),
            complete: false,
            used: false,
        };
        mark::set_data(&mut client, database, self.family, &data)
            .map_err(doing("marking the tables as incomplete"))?;
        for table in &self.tables {
            client.execute(&table.create).map_err(doing(format!(
                "creating table {}{}",
                table.name,
                at(&table.place)
            )))?;
            if !self.exists(&mut client, &table.name)? {
                return Err(PrepareError::NotPrepared {
                    database: database.clone(),
                    what: format!("table {} after its CREATE statement{}", table.name, at(&table.place)),
                });
            }
        }
        self.fill(connect, connections, stop, progress)?;
        for table in &self.tables {
            for statement in &table.after {
                client.execute(statement).map_err(doing(format!(
                    "finishing table {}{}",
                    table.name,
                    at(&table.place)
                )))?;
            }
        }
        let sums = self.sums(&mut client)?;
        self.keep_sums(&mut client, &sums)?;
        data.complete = true;
        mark::set_data(&mut client, database, self.family, &data)
            .map_err(doing("marking the tables as complete"))?;
        Ok(Prepared::Made)
    }

    /// Drops the tables that the mark names as made by an earlier prepare; others of these names are somebody's.
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

    /// Pieces of the work: a table, its first row and its last.
    fn chunks(&self) -> Vec<Chunk> {
        let of_table = |(number, table): (usize, &TableSpec)| {
            let rows = table.rows;
            (0..rows.div_ceil(CHUNK_ROWS)).map(move |chunk| Chunk {
                table: number,
                first: chunk * CHUNK_ROWS + 1,
                last: ((chunk + 1) * CHUNK_ROWS).min(rows),
            })
        };
        self.tables.iter().enumerate().flat_map(of_table).collect()
    }

    fn fill(
        &self,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        connections: usize,
        stop: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(), PrepareError> {
        let chunks = self.chunks();
        let (next, done) = (AtomicUsize::new(0), AtomicU64::new(0));
        let fillers = connections.min(chunks.len());
        let at_work = AtomicUsize::new(fillers);
        let failed = AtomicBool::new(false);
        let off = || stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let failures = std::thread::scope(|scope| {
            let filler = || {
                let _leaving = Leaving(&at_work);
                let result = self.fill_chunks(connect, &chunks, &next, &done, &off);
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                result
            };
            let threads: Vec<_> = (0..fillers).map(|_| scope.spawn(filler)).collect();
            while at_work.load(Ordering::Acquire) > 0 {
                progress(Progress { rows: done.load(Ordering::Relaxed), of: self.rows() });
                std::thread::park_timeout(Duration::from_millis(100));
            }
            let ended = threads.into_iter().map(|t| t.join().unwrap_or(Err(PrepareError::Interrupted)));
            ended.filter_map(Result::err).collect::<Vec<_>>()
        });
        // The first failure that is not just the others' reaction to it.
        let (interrupted, mut real): (Vec<_>, Vec<_>) =
            failures.into_iter().partition(|e| matches!(e, PrepareError::Interrupted));
        if let Some(error) = real.drain(..).next().or(interrupted.into_iter().next()) {
            return Err(error);
        }
        progress(Progress { rows: self.rows(), of: self.rows() });
        Ok(())
    }

    fn fill_chunks(
        &self,
        connect: &(dyn Fn() -> Result<Client, WireError> + Sync),
        chunks: &[Chunk],
        next: &AtomicUsize,
        done: &AtomicU64,
        off: &dyn Fn() -> bool,
    ) -> Result<(), PrepareError> {
        let mut client = connect().map_err(doing("connecting"))?;
        client.use_schema(&self.database).map_err(doing("choosing the database"))?;
        client
            .execute(STRICT)
            // Rows of several tables come in at once, those that are referred to perhaps later.
            .and_then(|_| client.execute("SET SESSION foreign_key_checks = 0"))
            .map_err(doing("setting up the session"))?;
        let batch_bytes = prepare::batch_bytes(&mut client, prepare::BATCH_BYTES)?;
        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
            for attempt in 1.. {
                match self.fill_chunk(&mut client, chunk, batch_bytes, done, off) {
                    Err(PrepareError::Wire { source, .. })
                        if matches!(source.code(), 1205 | 1213) && attempt < TRIES =>
                    {
                        client.execute("ROLLBACK").map_err(doing("rolling back"))?;
                    }
                    Ok(()) => break,
                    other => return other,
                }
            }
        }
        Ok(())
    }

    fn fill_chunk(
        &self,
        client: &mut Client,
        chunk: &Chunk,
        batch_bytes: usize,
        done: &AtomicU64,
        off: &dyn Fn() -> bool,
    ) -> Result<(), PrepareError> {
        let table = &self.tables[chunk.table];
        let inserting = || doing(format!("inserting into {}{}", table.name, at(&table.place)));
        let columns: Vec<String> = table.columns.iter().map(|c| mark::quoted(&c.name)).collect();
        let head = format!("INSERT INTO {} ({}) VALUES ", mark::quoted(&table.name), columns.join(","));
        let longest_row: usize = table.columns.iter().map(|c| 2 * c.generator.longest() + 24).sum();
        let (mut sql, mut text, mut rows) = (Vec::with_capacity(batch_bytes), Vec::new(), 0);
        let counted = Counted { done, rows: Cell::new(0) };
        client.execute("BEGIN").map_err(inserting())?;
        for row in chunk.first..=chunk.last {
            if rows == 0 {
                sql.clear();
                sql.extend_from_slice(head.as_bytes());
            } else {
                sql.push(b',');
            }
            self.push_row(chunk.table, row, &mut text, &mut sql);
            rows += 1;
            if sql.len() + longest_row > batch_bytes || row == chunk.last {
                if off() {
                    return Err(PrepareError::Interrupted);
                }
                client.execute_bytes(&sql).map_err(inserting())?;
                counted.add(rows);
                rows = 0;
            }
        }
        client.execute("COMMIT").map_err(inserting())?;
        counted.keep();
        Ok(())
    }

    /// Appends a row: it depends on the seed, the table's place and the row's number only.
    fn push_row(&self, table: usize, row: u64, text: &mut Vec<u8>, sql: &mut Vec<u8>) {
        let mut rng = self.row_rng(table, row);
        let mut before = b'(';
        for column in &self.tables[table].columns {
            sql.push(before);
            column.generator.push_sql(&mut rng, Turn::Row(row), text, sql);
            before = b',';
        }
        sql.extend_from_slice(if self.tables[table].columns.is_empty() { b"()" } else { b")" });
    }

    /// A value of a row as SQL writes it.
    pub fn value(&self, table: usize, column: usize, row: u64) -> String {
        let mut rng = self.row_rng(table, row);
        let (mut text, mut sql) = (Vec::new(), Vec::new());
        for column in &self.tables[table].columns[..=column] {
            sql.clear();
            column.generator.push_sql(&mut rng, Turn::Row(row), &mut text, &mut sql);
        }
        String::from_utf8_lossy(&sql).into_owned()
    }

    fn row_rng(&self, table: usize, row: u64) -> Rng {
        Rng::stream(self.seed, &[Purpose::Data as u64, fnv(self.family), table as u64, row])
    }

    /// Number of rows and a checksum over the filled columns, table by table.
    fn sums(&self, client: &mut Client) -> Result<Vec<String>, PrepareError> {
        self.tables
            .iter()
            .map(|table| {
                let columns: Vec<String> = table.columns.iter().map(|c| mark::quoted(&c.name)).collect();
                let sum = match columns.as_slice() {
                    [] => "0".to_owned(),
                    columns => format!("COALESCE(SUM(CRC32(CONCAT_WS(',', {}))), 0)", columns.join(",")),
                };
                let sql = format!(
                    "SELECT CONCAT(COUNT(*), ' rows with checksum ', {sum}) FROM {}.{}",
                    mark::quoted(&self.database),
                    mark::quoted(&table.name)
                );
                let rows = client.query(&sql).map_err(doing(format!("checking {}", table.name)))?;
                Ok(rows.scalar().map(|text| text.into_owned()).unwrap_or_default())
            })
            .collect()
    }

    fn sums_key(&self) -> String {
        format!("{}.sums", self.family)
    }

    fn keep_sums(&self, client: &mut Client, sums: &[String]) -> Result<(), PrepareError> {
        for (table, sum) in self.tables.iter().zip(sums) {
            if !sum.starts_with(&format!("{} rows", table.rows)) {
                return Err(PrepareError::Inconsistent {
                    table: table.name.clone(),
                    found: sum.clone(),
                    expected: format!("{} rows after filling{}", table.rows, at(&table.place)),
                });
            }
        }
        client
            .execute(&format!(
                "REPLACE INTO {}.{} (name, value) VALUES ({}, {})",
                mark::quoted(&self.database),
                mark::TABLE,
                mark::literal(&self.sums_key()),
                mark::literal(&json!(sums).to_string())
            ))
            .map(drop)
            .map_err(doing("keeping the tables' checksums"))
    }

    fn kept_sums(&self, client: &mut Client) -> Result<Vec<String>, PrepareError> {
        let sql = format!(
            "SELECT value FROM {}.{} WHERE name = {}",
            mark::quoted(&self.database),
            mark::TABLE,
            mark::literal(&self.sums_key())
        );
        let rows = client.query(&sql).map_err(doing("reading the tables' checksums"))?;
        Ok(rows.scalar().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default())
    }

    /// Notes in the mark that a run is about to change rows.
    ///
    /// # Errors
    /// What the server said.
    pub fn note_use(&self, client: &mut Client, data: &DataMark) -> Result<(), PrepareError> {
        let used = DataMark { used: true, ..data.clone() };
        mark::set_data(client, &self.database, self.family, &used)
            .map_err(doing("noting that the rows are in use"))
    }

    /// What a run has left that makes its figures doubtful.
    ///
    /// # Errors
    /// What the server said.
    pub fn doubts(&self, client: &mut Client) -> Result<Vec<Warning>, PrepareError> {
        if self.doubts.is_empty() {
            return Ok(Vec::new());
        }
        client.use_schema(&self.database).map_err(doing("choosing the database"))?;
        let mut warnings = Vec::new();
        for doubt in &self.doubts {
            let rows = client.query(&doubt.sql).map_err(doing("looking at the rows after the run"))?;
            if rows.number::<u64>(0, 0).unwrap_or(0) > 0 {
                warnings.push(doubt.warning.clone());
            }
        }
        Ok(warnings)
    }

    /// Checks the rows: their number and bytes while no run has changed them, and what must hold at any time.
    ///
    /// # Errors
    /// Everything that is not as it should be.
    pub fn check(&self, client: &mut Client) -> Result<DataMark, Vec<PrepareError>> {
        let data = self.require(client).map_err(|e| vec![e])?;
        client.use_schema(&self.database).map_err(|e| vec![doing("choosing the database")(e)])?;
        let mut errors = Vec::new();
        if !data.used {
            let sums = self.kept_sums(client).and_then(|kept| Ok((kept, self.sums(client)?)));
            let (kept, found) = sums.map_err(|e| vec![e])?;
            for (number, table) in self.tables.iter().enumerate() {
                let (kept, found) = (kept.get(number), &found[number]);
                if kept != Some(found) {
                    errors.push(PrepareError::Inconsistent {
                        table: table.name.clone(),
                        found: found.clone(),
                        expected: kept.cloned().unwrap_or_else(|| "what the mark has lost".to_owned()),
                    });
                }
            }
        }
        for check in &self.checks {
            match client.query(&check.sql).map_err(doing(format!("checking {}", check.about))) {
                Err(error) => errors.push(error),
                Ok(rows) => {
                    let found = rows.scalar().map_or_else(|| "no row".to_owned(), |text| text.into_owned());
                    if found != check.expected {
                        let (table, expected) = (check.about.clone(), check.expected.clone());
                        errors.push(PrepareError::Inconsistent { table, found, expected });
                    }
                }
            }
        }
        if errors.is_empty() { Ok(data) } else { Err(errors) }
    }
}

/// Rows of a transaction, counted as they go in, and out again unless it commits.
struct Counted<'a> {
    done: &'a AtomicU64,
    rows: Cell<u64>,
}

impl Counted<'_> {
    fn add(&self, rows: u64) {
        self.done.fetch_add(rows, Ordering::Relaxed);
        self.rows.set(self.rows.get() + rows);
    }

    fn keep(&self) {
        self.rows.set(0);
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.done.fetch_sub(self.rows.get(), Ordering::Relaxed);
    }
}

struct Chunk {
    table: usize,
    first: u64,
    last: u64,
}

fn at(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" ({place})") }
}

/// FNV-1a: a label of its own for each family.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::Constant;

    fn tables(rows: u64) -> OwnTables {
        let column = |name: &str, generator| ColumnSpec { name: name.to_owned(), generator };
        let table = TableSpec {
            name: "item".to_owned(),
            create: "CREATE TABLE item (id INT, price INT, kind VARCHAR(9))".to_owned(),
            columns: vec![
                column("id", Generator::Sequence { from: 1, step: 1 }),
                column("price", Generator::Uniform { low: 100, high: 999 }),
                column("kind", Generator::Constant(Constant::Text("book".into()))),
            ],
            rows,
            after: Vec::new(),
            place: String::new(),
        };
        OwnTables {
            family: "test",
            database: "d".to_owned(),
            tables: vec![table],
            checks: Vec::new(),
            doubts: Vec::new(),
            seed: 1,
            of_seed: false,
        }
    }

    fn row(tables: &OwnTables, row: u64) -> String {
        let mut sql = Vec::new();
        tables.push_row(0, row, &mut Vec::new(), &mut sql);
        String::from_utf8(sql).unwrap()
    }

    #[test]
    fn a_row_depends_on_seed_family_and_number() {
        let one = tables(10);
        assert_eq!(row(&one, 3), row(&one, 3));
        assert!(row(&one, 3).starts_with("(3,") && row(&one, 3).ends_with(",'book')"), "{}", row(&one, 3));
        assert_ne!(row(&one, 3), row(&OwnTables { seed: 2, ..one.clone() }, 3));
        assert_ne!(row(&one, 3), row(&OwnTables { family: "other", ..one.clone() }, 3));
    }

    #[test]
    fn a_value_is_that_of_its_row() {
        let one = tables(10);
        let price = one.value(0, 1, 7);
        assert_eq!(row(&one, 7), format!("(7,{price},'book')"));
    }

    #[test]
    fn chunks_cover_each_row_once() {
        let tables = tables(2 * CHUNK_ROWS + 1);
        let bounds: Vec<(u64, u64)> = tables.chunks().iter().map(|c| (c.first, c.last)).collect();
        assert_eq!(
            bounds,
            [(1, CHUNK_ROWS), (CHUNK_ROWS + 1, 2 * CHUNK_ROWS), (2 * CHUNK_ROWS + 1, 2 * CHUNK_ROWS + 1)]
        );
        assert!(self::tables(0).chunks().is_empty());
    }

    #[test]
    fn what_decides_the_rows_decides_the_fingerprint() {
        let one = tables(10);
        let mut other = tables(10);
        other.tables[0].columns[1].generator = Generator::Uniform { low: 100, high: 998 };
        assert_ne!(one.fingerprint(), other.fingerprint());
        assert_ne!(one.fingerprint(), tables(11).fingerprint());
        assert_ne!(one.fingerprint(), OwnTables { seed: 2, ..one.clone() }.fingerprint());
        assert_eq!(one.fingerprint(), OwnTables { database: "e".to_owned(), ..one.clone() }.fingerprint());
    }
}
