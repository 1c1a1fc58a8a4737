//! `slap`: the load that mysqlslap generates: its table, its five kinds of statements, its column and index options
//! under their names. Keys and values come from mydyno's seed, so that runs are repeatable, and the statements are sent
//! as text, as by mysqlslap.

mod shape;
mod statements;

use mydyno_model::record::{OperationInfo, OperationKind};

use crate::draws::Draws;
use crate::options::{OptionError, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Session, StatementSpec, Workload};
use mydyno_tables::own_tables::OwnTables;
use mydyno_tables::work_tables::WorkTables;

pub use shape::OPTIONS;
use shape::{Shape, table};
use statements::Statements;

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct Slap {
    /// Statements that write and statements that read, which alternate if there are both.
    writes: Vec<String>,
    reads: Vec<String>,
    write_operation: usize,
    read_operation: usize,
    operations: Vec<OperationInfo>,
    /// Number of statements in a transaction.
    at_once: u64,
}

/// The transactions of one connection: the number of statements sent so far.
pub type Stream = Draws<usize>;

impl Slap {
    /// The workload with these options.
    ///
    /// # Errors
    /// Inconsistent options.
    pub fn new(options: &Options, seed: u64) -> Result<Self, Vec<OptionError>> {
        let shape = Shape::new(options)?;
        let table = table(&shape, options, "", seed);
        let mut statements = Statements::new(shape, table, seed);
        let (many_writes, many_reads) = (
            options.count("auto-generate-sql-unique-write-number"),
            options.count("auto-generate-sql-unique-query-number"),
        );
        let (mut writes, mut reads) = (Vec::new(), Vec::new());
        match options.word("auto-generate-sql-load-type") {
            "update" => writes = (0..many_writes).map(|_| statements.update()).collect(),
            "write" => writes = (0..many_writes).map(|_| statements.insert()).collect(),
            "read" => reads = (0..many_reads).map(|_| statements.select(false)).collect(),
            "key" => reads = (0..many_reads).map(|_| statements.select(true)).collect(),
            _ => {
                writes = (0..many_writes).map(|_| statements.insert()).collect();
                reads = (0..many_reads).map(|_| statements.select(true)).collect();
            }
        }
        let mut slap = Self {
            writes,
            reads,
            write_operation: 0,
            read_operation: 0,
            operations: Vec::new(),
            at_once: options.count("auto-generate-sql-execute-number").max(1),
        };
        slap.lay_out();
        Ok(slap)
    }

    /// The table according to the options.
    ///
    /// # Errors
    /// Inconsistent options.
    pub fn tables(database: &str, options: &Options, seed: u64) -> Result<OwnTables, Vec<OptionError>> {
        Ok(table(&Shape::new(options)?, options, database, seed))
    }

    /// A transaction of one statement of one kind is recorded once, as the transaction; otherwise each kind also has an
    /// operation of its own.
    fn lay_out(&mut self) {
        let several = self.at_once > 1 || !self.writes.is_empty() && !self.reads.is_empty();
        let mut add = |name: &str, kind, sql: &str| {
            self.operations.push(OperationInfo { name: name.to_owned(), kind, sql: sql.to_owned() });
            self.operations.len() - 1
        };
        if several {
            add("transaction", OperationKind::Transaction, "");
        }
        let kind = if several { OperationKind::Statement } else { OperationKind::Transaction };
        // Statements of one operation differ in their values only, so the first represents all.
        if let Some(first) = self.writes.first() {
            let name = if first.starts_with("UPDATE") { "update" } else { "insert" };
            self.write_operation = add(name, kind, first);
        }
        if let Some(first) = self.reads.first() {
            self.read_operation = add("select", kind, first);
        }
    }
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "slap",
    summary: "the load that mysqlslap generates by itself, in its five kinds",
    transaction: "1 statement, sent as text: a read of the whole table or by key, an insert, an update, or inserts and reads in turn",
    options: OPTIONS,
    example: Spec::EXAMPLE,
}];

impl Registered for Slap {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let Request { options, database, seed, .. } = *request;
        Ok((Self::new(options, seed)?, WorkTables::Own(Self::tables(database, options, seed)?)))
    }
}

impl Workload for Slap {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &[]
    }

    fn stream(&self, _: u64) -> Stream {
        Draws::new(0)
    }

    fn transactional(&self) -> bool {
        false
    }

    fn writes(&self) -> bool {
        !self.writes.is_empty()
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        for _ in 0..self.at_once {
            let turn = stream.current;
            stream.current += 1;
            let (list, turn, operation) = match (self.writes.is_empty(), self.reads.is_empty()) {
                (false, true) => (&self.writes, turn, self.write_operation),
                (true, _) => (&self.reads, turn, self.read_operation),
                (false, false) if turn.is_multiple_of(2) => (&self.writes, turn / 2, self.write_operation),
                (false, false) => (&self.reads, turn / 2, self.read_operation),
            };
            session.query(operation, list[turn % list.len()].as_bytes()).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(given: &[(&str, &str)]) -> Options {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        Options::resolve("slap", OPTIONS, &given).unwrap()
    }

    fn create(given: &[(&str, &str)]) -> String {
        Slap::tables("d", &options(given), 1).unwrap().tables[0].create.clone()
    }

    const LOAD: &str = "auto-generate-sql-load-type";
    const SERIAL: (&str, &str) = ("auto-generate-sql-add-autoincrement", "on");
    const GUID: (&str, &str) = ("auto-generate-sql-guid-primary", "on");

    /// Texts, GUIDs and long numbers as one letter each.
    fn shape(sql: &str) -> String {
        let mut out = String::new();
        for part in sql.split_inclusive(['(', ')', ',', ' ']) {
            let (word, mark) = part.split_at(part.trim_end_matches(['(', ')', ',', ' ']).len());
            out.push_str(match word {
                w if w.starts_with('\'') && w.len() == 128 => "S",
                w if w.starts_with('\'') && w.len() == 38 => "G",
                w if w.starts_with('\'') => "K",
                w if !w.is_empty() && w.bytes().all(|b| b.is_ascii_digit()) => "N",
                w => w,
            });
            out.push_str(mark);
        }
        out
    }

    fn shapes(given: &[(&str, &str)]) -> Vec<String> {
        let slap = Slap::new(&options(given), 1).unwrap();
        let mut shapes = Vec::new();
        crate::transcript::replay(&slap, 0, 4, &mut |asked| {
            shapes.push(shape(&String::from_utf8_lossy(asked.sql)));
        });
        shapes.dedup();
        shapes
    }

    // The expectations are what `mysqlslap --only-print` of 10.11 prints for the same options.

    #[test]
    fn tables_have_the_shapes_that_mysqlslap_gives_them() {
        assert_eq!(create(&[]), "CREATE TABLE t1 (intcol1 INT(32),charcol1 VARCHAR(128)) ENGINE=innodb");
        assert_eq!(
            create(&[
                SERIAL,
                ("number-int-cols", "2:0"),
                ("number-char-cols", "2"),
                ("mysql-storage-engine", "memory")
            ]),
            "CREATE TABLE t1 (id serial,intcol1 INT(32),intcol2 INT(32),charcol1 VARCHAR(128),charcol2 VARCHAR(128)) ENGINE=memory"
        );
        assert_eq!(
            create(&[
                GUID,
                ("auto-generate-sql-secondary-indexes", "2"),
                ("number-int-cols", "1:1"),
                ("char-cols-index", "on")
            ]),
            "CREATE TABLE t1 (id varchar(36) primary key,id0 varchar(36) unique key,id1 varchar(36) unique key,\
             intcol1 INT(32), INDEX(intcol1),charcol1 VARCHAR(128), INDEX(charcol1)) ENGINE=innodb"
        );
    }

    #[test]
    fn statements_have_the_shapes_that_mysqlslap_gives_them() {
        let insert = "INSERT INTO t1 VALUES (N,S)";
        let select = "SELECT intcol1,charcol1 FROM t1";
        assert_eq!(shapes(&[]), [insert, select, insert, select]);
        assert_eq!(shapes(&[(LOAD, "read"), SERIAL]), [select]);
        assert_eq!(shapes(&[(LOAD, "write"), SERIAL]), ["INSERT INTO t1 VALUES (NULL,N,S)"]);
        assert_eq!(
            shapes(&[(LOAD, "write"), GUID, ("auto-generate-sql-secondary-indexes", "1")]),
            ["INSERT INTO t1 VALUES (uuid(),uuid(),N,S)"]
        );
        assert_eq!(shapes(&[(LOAD, "key"), SERIAL]), [format!("{select} WHERE id = K")]);
        assert_eq!(shapes(&[(LOAD, "key"), GUID]), [format!("{select} WHERE id = G")]);
        assert_eq!(shapes(&[(LOAD, "update")]), ["UPDATE t1 SET intcol1 = N,charcol1 = S"]);
        assert_eq!(
            shapes(&[(LOAD, "update"), SERIAL, ("number-char-cols", "2")]),
            ["UPDATE t1 SET intcol1 = N,charcol1 = S,charcol2 = S WHERE id = K"]
        );
        assert_eq!(shapes(&[GUID])[1], format!("{select} WHERE id = G"));
    }

    #[test]
    fn keys_are_those_of_rows_that_are_there() {
        let given = options(&[(LOAD, "key"), GUID, ("auto-generate-sql-write-number", "3")]);
        let tables = Slap::tables("d", &given, 1).unwrap();
        let keys: Vec<String> = (1..=3).map(|row| tables.value(0, 0, row)).collect();
        for sql in Slap::new(&given, 1).unwrap().reads {
            assert!(keys.iter().any(|key| sql.ends_with(key.as_str())), "{sql}");
        }
    }

    #[test]
    fn a_transaction_may_be_all_that_a_client_asks() {
        let many = [
            ("auto-generate-sql-execute-number", "3"),
            ("auto-generate-sql-unique-write-number", "2"),
            (LOAD, "write"),
        ];
        let slap = Slap::new(&options(&many), 1).unwrap();
        let names: Vec<&str> = slap.operations.iter().map(|o| o.name.as_str()).collect();
        assert_eq!(names, ["transaction", "insert"]);
        let mut asked = Vec::new();
        crate::transcript::replay(&slap, 0, 2, &mut |one| asked.push(one.sql.to_vec()));
        assert_eq!(asked.len(), 6);
        // Two different inserts alternate, across transactions.
        assert!(asked[0] != asked[1] && asked[2] == asked[0] && asked[3] == asked[1], "{asked:?}");
    }

    #[test]
    fn options_that_do_not_go_together_are_told() {
        let problems = |given: &[(&str, &str)]| Slap::new(&options(given), 1).unwrap_err()[0].to_string();
        assert!(problems(&[(LOAD, "key")]).contains("needs a primary key"));
        assert!(problems(&[SERIAL, GUID]).contains("not both"));
        assert!(problems(&[("number-int-cols", "0"), ("number-char-cols", "0")]).contains("needs a column"));
    }

    #[test]
    fn the_first_operations_stay_what_they_are() {
        let mut text = String::new();
        for load in ["mixed", "update", "write", "key", "read"] {
            text.push_str(&format!("## {load}\n"));
            let slap = Slap::new(&options(&[(LOAD, load), GUID]), 1).unwrap();
            text.push_str(&crate::golden::stream(&slap, 4));
        }
        crate::golden::same("slap.txt", &text);
    }
}
