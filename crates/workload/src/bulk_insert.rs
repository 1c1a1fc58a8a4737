//! `bulk_insert`: each connection fills a table of its own, with many rows in each statement, as text.

use mydyno_model::record::{OperationInfo, OperationKind};

use crate::draws::Draws;
use crate::engine::{self, Engine};
use crate::options::{OptionError, OptionSpec, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Session, StatementSpec, Workload};
use mydyno_tables::own_tables::{OwnTables, TableSpec};
use mydyno_tables::prepare::Tuning;
use mydyno_tables::table::push_int;
use mydyno_tables::work_tables::WorkTables;

/// Options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec::count(
        "bulk-bytes",
        128,
        1 << 30,
        512 << 10,
        "length of a statement, which as many rows as fit make up",
    ),
    engine::OPTION,
];

/// A row is two numbers.
const LONGEST_ROW: usize = 2 * 20 + 4;

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct BulkInsert {
    tables: u64,
    bytes: usize,
    operations: Vec<OperationInfo>,
}

impl BulkInsert {
    /// The workload for this number of connections, each of which has a table.
    pub fn new(options: &Options, connections: usize) -> Self {
        Self {
            tables: connections.max(1) as u64,
            bytes: options.count("bulk-bytes") as usize,
            operations: vec![OperationInfo {
                name: "bulk_insert".to_owned(),
                kind: OperationKind::Transaction,
                sql: "INSERT INTO bulk_insertN VALUES(?, ?), …".to_owned(),
            }],
        }
    }

    /// The tables, which are empty.
    pub fn tables(database: &str, options: &Options, connections: usize, seed: u64) -> OwnTables {
        let engine = Engine::of(options.word(engine::OPTION.name)).name();
        let table = |number| TableSpec {
            name: format!("bulk_insert{number}"),
            create: format!(
                "CREATE TABLE bulk_insert{number} (id BIGINT NOT NULL, k BIGINT DEFAULT '0' NOT NULL, PRIMARY KEY (id)) ENGINE={engine}"
            ),
            columns: Vec::new(),
            rows: 0,
            after: Vec::new(),
            place: String::new(),
        };
        let tables = (1..=connections.max(1)).map(table).collect();
        OwnTables {
            family: "bulk_insert",
            database: database.to_owned(),
            tables,
            checks: Vec::new(),
            doubts: Vec::new(),
            of_seed: false,
            tuning: Tuning::default(),
            seed,
        }
    }
}

/// State of one connection.
#[derive(Debug, Clone)]
pub struct Position {
    table: u64,
    /// Key of the last row.
    id: i64,
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "bulk_insert",
    summary: "fills one table a connection, many rows a statement",
    transaction: "1 statement, sent as text: an INSERT of as many rows as fit into --bulk-bytes; each step begins with empty tables",
    options: OPTIONS,
    example: Spec::EXAMPLE,
}];

impl Registered for BulkInsert {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let Request { options, database, connections, seed, .. } = *request;
        let tables = WorkTables::Own(Self::tables(database, options, connections, seed));
        Ok((Self::new(options, connections), tables))
    }
}

impl Workload for BulkInsert {
    type Stream = Draws<Position>;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &[]
    }

    fn stream(&self, connection: u64) -> Draws<Position> {
        Draws::new(Position { table: connection % self.tables + 1, id: 0 })
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        true
    }

    fn keeps_row_count(&self) -> bool {
        false
    }

    /// Each step begins with empty tables.
    fn before_step(&self) -> Vec<String> {
        (1..=self.tables).map(|table| format!("TRUNCATE TABLE bulk_insert{table}")).collect()
    }

    fn longest_query_bytes(&self) -> usize {
        self.bytes
    }

    async fn transaction<S: Session>(
        &self,
        stream: &mut Draws<Position>,
        session: &mut S,
    ) -> Result<(), Fault> {
        let position = &mut stream.current;
        let mut sql = Vec::with_capacity(self.bytes);
        sql.extend_from_slice(b"INSERT INTO bulk_insert");
        push_int(position.table as i64, &mut sql);
        sql.extend_from_slice(b" VALUES");
        let mut comma = false;
        while !comma || sql.len() + LONGEST_ROW <= self.bytes {
            if std::mem::replace(&mut comma, true) {
                sql.push(b',');
            }
            position.id += 1;
            sql.push(b'(');
            push_int(position.id, &mut sql);
            sql.push(b',');
            push_int(position.id, &mut sql);
            sql.push(b')');
        }
        session.query(0, &sql).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::replay;

    #[test]
    fn statements_hold_as_many_rows_as_fit_and_go_on_where_the_last_ended() {
        let given = [("bulk-bytes".to_owned(), "128".to_owned())];
        let workload = BulkInsert::new(&Options::resolve("w", OPTIONS, &given).unwrap(), 2);
        let mut lines = Vec::new();
        replay(&workload, 1, 2, &mut |asked| lines.push(asked.to_string()));
        assert!(lines[0].starts_with("INSERT INTO bulk_insert2 VALUES(1,1),(2,2),"), "{}", lines[0]);
        assert!(lines.iter().all(|l| l.len() <= 128), "{lines:?}");
        let last = lines[0].matches("),(").count() + 1;
        assert!(lines[1].contains(&format!("VALUES({},{}),", last + 1, last + 1)), "{}", lines[1]);
    }
}
