//! sysbench's tables `sbtest1`, `sbtest2` …: the data set of the OLTP family and of `select_random_*`.

use std::sync::Arc;

use serde_json::Map;

use crate::data::{C_BYTES, PAD_BYTES, Row};
use crate::engine::{self, Engine};
use crate::options::{OptionError, OptionSpec, Options};
use crate::registered::Request;
use mydyno_tables::prepare::Tables;
use mydyno_tables::table::{DataSet, Fields, LateIndex, Table};
use mydyno_tables::work_tables::WorkTables;

/// Options that shape the tables.
pub const OPTIONS: [OptionSpec; 6] = [
    OptionSpec::count("tables", 1, 65_536, 1, "number of tables"),
    OptionSpec::count("table-size", 1, 10_000_000_000, 10_000, "rows per table"),
    OptionSpec::switch("auto-inc", true, "the key column is AUTO_INCREMENT"),
    OptionSpec::switch("create-secondary", true, "index column k after the rows are in"),
    OptionSpec::switch("secondary", false, "a secondary index on id in place of the primary key"),
    engine::OPTION,
];

/// The tables of these options.
///
/// # Errors
/// Inconsistent options.
pub fn data(options: &Options, seed: u64) -> Result<DataSet, Vec<OptionError>> {
    let engine = Engine::of(options.word(engine::OPTION.name));
    if options.switch("secondary") && engine == Engine::RocksDb {
        return Err(vec![OptionError::Impossible(
            "--secondary=on does not go with --storage-engine=rocksdb".to_owned(),
        )]);
    }
    // The engine is a separate field.
    let shaping = OPTIONS.iter().filter(|o| o.name != engine::OPTION.name);
    let shape: Map<_, _> = shaping.map(|o| (o.name.to_owned(), options.values()[o.name].clone())).collect();
    let make = |number| SbTest {
        number,
        name: format!("sbtest{number}"),
        rows: options.count("table-size"),
        seed,
        engine,
        auto_increment: options.switch("auto-inc"),
        primary_key: !options.switch("secondary"),
        index_on_k: options.switch("create-secondary"),
    };
    let tables = (1..=options.count("tables")).map(|n| Arc::new(make(n)) as Arc<dyn Table>).collect();
    let names = "^sbtest[0-9]+$".to_owned();
    Ok(DataSet {
        family: "oltp",
        names,
        shape,
        seed,
        engine,
        tables,
        conditions: Vec::new(),
        routines: Vec::new(),
    })
}

/// [`data`] in the request's database.
///
/// # Errors
/// Options that do not fit together.
pub fn tables(request: &Request<'_>) -> Result<WorkTables, Vec<OptionError>> {
    Ok(WorkTables::Oltp(Tables::new(request.database, data(request.options, request.seed)?)))
}

/// One of the tables.
#[derive(Debug, Clone)]
struct SbTest {
    number: u64,
    name: String,
    rows: u64,
    seed: u64,
    engine: Engine,
    auto_increment: bool,
    primary_key: bool,
    index_on_k: bool,
}

impl Table for SbTest {
    fn name(&self) -> &str {
        &self.name
    }

    fn create(&self) -> String {
        let int = if self.rows > i32::MAX as u64 { "BIGINT" } else { "INTEGER" };
        // Without AUTO_INCREMENT, oltp_insert provides the keys.
        let id = if self.auto_increment { int } else { "BIGINT" };
        let auto = if self.auto_increment { " AUTO_INCREMENT" } else { "" };
        let key = if self.primary_key { "PRIMARY KEY" } else { "KEY xid" };
        let (name, using, engine) = (&self.name, self.engine.index_suffix(), self.engine.name());
        format!(
            "CREATE TABLE {name} (id {id} NOT NULL{auto}, k {int} DEFAULT '0' NOT NULL, \
             c CHAR(120) DEFAULT '' NOT NULL, pad CHAR(60) DEFAULT '' NOT NULL, {key} (id){using}) ENGINE={engine}"
        )
    }

    fn columns(&self) -> &str {
        "id,k,c,pad"
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn row(&self, id: u64, fields: &mut dyn Fields) {
        let row = Row::generate(self.seed, self.number, id, self.rows);
        fields.int(id as i64);
        fields.int(row.k as i64);
        fields.bytes(&row.c);
        fields.bytes(&row.pad);
    }

    /// A row contains 188 bytes of data; InnoDB's pages are 15/16 full, and the index on `k` adds a ninth. For MEMORY
    /// the estimate is 192 bytes and two tree nodes of some 64 bytes each, with their share of unused space.
    fn row_bytes(&self) -> u64 {
        if self.engine.is_memory() { 320 } else { 240 }
    }

    fn sql_bytes(&self) -> usize {
        C_BYTES + PAD_BYTES + 2 * 20 + 9
    }

    fn reseeded(&self, seed: u64) -> Arc<dyn Table> {
        Arc::new(Self { seed, ..self.clone() })
    }

    fn is_ascii(&self) -> bool {
        true
    }

    fn is_auto_increment(&self) -> bool {
        self.auto_increment
    }

    fn late_indexes(&self) -> Vec<LateIndex> {
        if !self.index_on_k {
            return Vec::new();
        }
        let (number, table, using) = (self.number, &self.name, self.engine.index_suffix());
        let name = format!("k_{number}");
        let sql = format!("CREATE INDEX {name} ON {table}(k){using}");
        vec![LateIndex { name, sql }]
    }
}
