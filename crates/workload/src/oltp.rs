//! The OLTP family: sysbench's tables, statements and option names.

use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;

use crate::data::{C_BYTES, PAD_BYTES, Purpose, fill_digits};
use crate::distribution::{self, Keys};
use crate::draws::Draws;
use crate::engine::{self, Engine};
use crate::options::{OptionError, OptionSpec, Options, join};
use crate::registered::{Registered, Request, Spec, both};
use crate::sbtest;
use crate::session::{Fault, Param, ParamType, Session, Statement, StatementSpec, Workload};
use mydyno_tables::work_tables::WorkTables;

/// The transactions of the family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// One row by primary key.
    PointSelect,
    /// Rows and ranges.
    ReadOnly,
    /// Updates, delete and insert.
    WriteOnly,
    /// The statements of both.
    ReadWrite,
    /// Deletes by primary key.
    Delete,
    /// Updates of the indexed column.
    UpdateIndex,
    /// Updates of a column without index.
    UpdateNonIndex,
}

impl Mix {
    /// Whether BEGIN and COMMIT enclose its statements by default.
    fn in_transaction(self) -> bool {
        matches!(self, Self::ReadOnly | Self::WriteOnly | Self::ReadWrite)
    }
}

const MOST_STATEMENTS: u64 = 100_000;

const fn count(name: &'static str, default: u64, help: &'static str) -> OptionSpec {
    OptionSpec::count(name, 0, MOST_STATEMENTS, default, help)
}

/// Options that shape a transaction.
const TRANSACTION: [OptionSpec; 11] = [
    OptionSpec::count("range-size", 1, 1_000_000_000, 100, "rows of a range"),
    count("point-selects", 10, "rows read by primary key per transaction"),
    OptionSpec::switch("range-selects", true, "whether ranges are read at all"),
    count("simple-ranges", 1, "plain ranges per transaction"),
    count("sum-ranges", 1, "summed ranges per transaction"),
    count("order-ranges", 1, "ordered ranges per transaction"),
    count("distinct-ranges", 1, "distinct ranges per transaction"),
    count("index-updates", 1, "updates of the indexed column per transaction"),
    count("non-index-updates", 1, "updates of a column without index per transaction"),
    count("delete-inserts", 1, "deletes followed by an insert of the same key per transaction"),
    OptionSpec::switch("skip-trx", false, "no BEGIN and COMMIT: each statement commits by itself"),
];

/// Options of sysbench's `oltp_common`, under its names, and those of the distribution of keys.
pub const COMMON: [OptionSpec; 23] =
    join::<6, 17, 23>(sbtest::OPTIONS, join::<11, 6, 17>(TRANSACTION, distribution::OPTIONS));

/// Options of the family.
pub const OPTIONS: &[OptionSpec] = &COMMON;

/// Kinds of statement; the number is the index in [`TEXTS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementKind {
    Point,
    Range,
    Sum,
    Order,
    Distinct,
    UpdateIndex,
    UpdateNonIndex,
    Delete,
    Insert,
}

const INT: ParamType = ParamType::Int;

/// Name of the operation, text with `{}` for the table's number, and parameters, in the order of [`StatementKind`].
const TEXTS: [(&str, &str, &[ParamType]); 9] = [
    ("point_select", "SELECT c FROM sbtest{} WHERE id=?", &[INT]),
    ("simple_range", "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ?", &[INT, INT]),
    ("sum_range", "SELECT SUM(k) FROM sbtest{} WHERE id BETWEEN ? AND ?", &[INT, INT]),
    ("order_range", "SELECT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c", &[INT, INT]),
    ("distinct_range", "SELECT DISTINCT c FROM sbtest{} WHERE id BETWEEN ? AND ? ORDER BY c", &[INT, INT]),
    ("index_update", "UPDATE sbtest{} SET k=k+1 WHERE id=?", &[INT]),
    ("non_index_update", "UPDATE sbtest{} SET c=? WHERE id=?", &[ParamType::Fixed(C_BYTES), INT]),
    ("delete", "DELETE FROM sbtest{} WHERE id=?", &[INT]),
    (
        "insert",
        "INSERT INTO sbtest{} (id, k, c, pad) VALUES (?, ?, ?, ?)",
        &[INT, INT, ParamType::Fixed(C_BYTES), ParamType::Fixed(PAD_BYTES)],
    ),
];

/// How often a transaction sends each kind of statement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts([u64; TEXTS.len()]);

impl Counts {
    fn of(&self, kind: StatementKind) -> u64 {
        self.0[kind as usize]
    }
}

/// A workload of the family with its options.
#[derive(Debug, Clone)]
pub struct Oltp {
    tables: u64,
    keys: Keys,
    range_size: u64,
    counts: Counts,
    begin_commit: bool,
    /// Whether the tables' engine can roll back.
    can_roll_back: bool,
    seed: u64,
    operations: Vec<OperationInfo>,
    statements: Vec<StatementSpec>,
    /// First statement of each kind; for table t it is t − 1 further on.
    first: [u32; TEXTS.len()],
    begin: Statement,
    commit: Statement,
}

impl Oltp {
    /// The workload `mix` with these options.
    ///
    /// # Errors
    /// Inconsistent options.
    pub fn new(mix: Mix, options: &Options, seed: u64) -> Result<Self, Vec<OptionError>> {
        let counts = counts(mix, options);
        let mut errors = Vec::new();
        if counts.0.iter().sum::<u64>() == 0 {
            errors.push(OptionError::Impossible(
                "the transaction is empty: give at least one of --point-selects, --simple-ranges, --index-updates … a value above 0"
                    .to_owned(),
            ));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let begin_commit = mix.in_transaction() && !options.switch("skip-trx");
        let mut oltp = Self {
            tables: options.count("tables"),
            keys: Keys::new(options, options.count("table-size")),
            range_size: options.count("range-size"),
            counts,
            begin_commit,
            can_roll_back: Engine::of(options.word(engine::OPTION.name)).is_transactional(),
            seed,
            operations: Vec::new(),
            statements: Vec::new(),
            first: [0; TEXTS.len()],
            begin: Statement(0),
            commit: Statement(0),
        };
        oltp.lay_out();
        Ok(oltp)
    }

    /// Operations and statements. A transaction of one statement is recorded once, as the transaction.
    fn lay_out(&mut self) {
        let single = self.counts.0.iter().sum::<u64>() == 1 && !self.begin_commit;
        if !single {
            self.operations.push(OperationInfo {
                name: "transaction".to_owned(),
                kind: OperationKind::Transaction,
                sql: String::new(),
            });
        }
        if self.begin_commit {
            self.begin = self.add_plain("begin", "BEGIN");
        }
        for (kind, (name, text, params)) in TEXTS.iter().enumerate() {
            if self.counts.0[kind] == 0 {
                continue;
            }
            self.first[kind] = self.statements.len() as u32;
            let operation = self.operations.len();
            self.operations.push(OperationInfo {
                name: (*name).to_owned(),
                kind: if single { OperationKind::Transaction } else { OperationKind::Statement },
                sql: text.replace("{}", if self.tables == 1 { "1" } else { "N" }),
            });
            for table in 1..=self.tables {
                self.statements.push(StatementSpec {
                    sql: text.replace("{}", &table.to_string()),
                    params: params.to_vec(),
                    operation,
                    ..StatementSpec::default()
                });
            }
        }
        if self.begin_commit {
            self.commit = self.add_plain("commit", "COMMIT");
        }
    }

    fn add_plain(&mut self, name: &str, sql: &str) -> Statement {
        let statement = Statement(self.statements.len() as u32);
        self.statements.push(StatementSpec {
            sql: sql.to_owned(),
            operation: self.operations.len(),
            ..StatementSpec::default()
        });
        self.operations.push(OperationInfo {
            name: name.to_owned(),
            kind: OperationKind::Statement,
            sql: sql.to_owned(),
        });
        statement
    }

    /// The statement of this kind on a table that is drawn once for all `n` statements of the kind.
    fn on_a_table(&self, kind: StatementKind, stream: &mut Stream) -> Statement {
        let table = if self.tables == 1 { 0 } else { stream.current.below(self.tables) as u32 };
        Statement(self.first[kind as usize] + table)
    }

    fn key(&self, stream: &mut Stream) -> i64 {
        self.keys.draw(&mut stream.current) as i64
    }

    async fn points<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let n = self.counts.of(StatementKind::Point);
        if n > 0 {
            let statement = self.on_a_table(StatementKind::Point, stream);
            for _ in 0..n {
                let id = self.key(stream);
                session.execute(statement, &[Param::Int(id)]).await?;
            }
        }
        Ok(())
    }

    async fn ranges<S: Session>(
        &self,
        kind: StatementKind,
        stream: &mut Stream,
        session: &mut S,
    ) -> Result<(), Fault> {
        let n = self.counts.of(kind);
        if n > 0 {
            let statement = self.on_a_table(kind, stream);
            for _ in 0..n {
                let from = self.key(stream);
                let to = from + self.range_size as i64 - 1;
                session.execute(statement, &[Param::Int(from), Param::Int(to)]).await?;
            }
        }
        Ok(())
    }

    async fn index_updates<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let n = self.counts.of(StatementKind::UpdateIndex);
        if n > 0 {
            let statement = self.on_a_table(StatementKind::UpdateIndex, stream);
            for _ in 0..n {
                let id = self.key(stream);
                session.execute(statement, &[Param::Int(id)]).await?;
            }
        }
        Ok(())
    }

    async fn non_index_updates<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let n = self.counts.of(StatementKind::UpdateNonIndex);
        if n > 0 {
            let statement = self.on_a_table(StatementKind::UpdateNonIndex, stream);
            for _ in 0..n {
                let mut c = [0; C_BYTES];
                fill_digits(&mut stream.current, &mut c);
                let id = self.key(stream);
                session.execute(statement, &[Param::Bytes(&c), Param::Int(id)]).await?;
            }
        }
        Ok(())
    }

    async fn delete_inserts<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let n = self.counts.of(StatementKind::Delete);
        if n > 0 {
            let table = if self.tables == 1 { 0 } else { stream.current.below(self.tables) as u32 };
            let delete = Statement(self.first[StatementKind::Delete as usize] + table);
            let insert = Statement(self.first[StatementKind::Insert as usize] + table);
            for _ in 0..n {
                let id = self.key(stream);
                if self.counts.of(StatementKind::Insert) == 0 {
                    session.execute(delete, &[Param::Int(id)]).await?;
                    continue;
                }
                let k = self.key(stream);
                let (mut c, mut pad) = ([0; C_BYTES], [0; PAD_BYTES]);
                fill_digits(&mut stream.current, &mut c);
                fill_digits(&mut stream.current, &mut pad);
                session.execute(delete, &[Param::Int(id)]).await?;
                let row = [Param::Int(id), Param::Int(k), Param::Bytes(&c), Param::Bytes(&pad)];
                session.execute(insert, &row).await?;
            }
        }
        Ok(())
    }
}

fn counts(mix: Mix, options: &Options) -> Counts {
    let mut counts = Counts::default();
    let mut set = |kind: StatementKind, n: u64| counts.0[kind as usize] = n;
    let (reads, writes) = match mix {
        Mix::PointSelect => {
            set(StatementKind::Point, 1);
            (false, false)
        }
        Mix::ReadOnly => (true, false),
        Mix::WriteOnly => (false, true),
        Mix::ReadWrite => (true, true),
        Mix::Delete => {
            set(StatementKind::Delete, 1);
            (false, false)
        }
        Mix::UpdateIndex => {
            set(StatementKind::UpdateIndex, options.count("index-updates"));
            (false, false)
        }
        Mix::UpdateNonIndex => {
            set(StatementKind::UpdateNonIndex, options.count("non-index-updates"));
            (false, false)
        }
    };
    if reads {
        set(StatementKind::Point, options.count("point-selects"));
        if options.switch("range-selects") {
            set(StatementKind::Range, options.count("simple-ranges"));
            set(StatementKind::Sum, options.count("sum-ranges"));
            set(StatementKind::Order, options.count("order-ranges"));
            set(StatementKind::Distinct, options.count("distinct-ranges"));
        }
    }
    if writes {
        set(StatementKind::UpdateIndex, options.count("index-updates"));
        set(StatementKind::UpdateNonIndex, options.count("non-index-updates"));
        set(StatementKind::Delete, options.count("delete-inserts"));
        set(StatementKind::Insert, options.count("delete-inserts"));
    }
    counts
}

/// The transactions of one connection.
pub type Stream = Draws<Rng>;

/// Entries in the catalogue.
const SPECS: &[Spec] = &[
    Spec {
        name: "oltp_point_select",
        summary: "reads one row by its primary key",
        transaction: "1 statement: a row by primary key; no BEGIN or COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "oltp_read_only",
        summary: "reads rows and ranges in a transaction",
        transaction: "16 statements: BEGIN, 10 rows by primary key, 4 ranges (plain, sum, ordered, distinct), COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "oltp_write_only",
        summary: "updates, deletes and inserts in a transaction",
        transaction: "6 statements: BEGIN, update of an indexed column, update of another, delete, insert, COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "oltp_read_write",
        summary: "reads and writes in a transaction: the classic mix",
        transaction: "20 statements: BEGIN, 10 rows by primary key, 4 ranges, 2 updates, delete, insert, COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "oltp_delete",
        summary: "deletes one row by its primary key",
        transaction: "1 statement: DELETE by primary key, also of rows that are gone; no BEGIN or COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "oltp_update_index",
        summary: "updates an indexed column of one row",
        transaction: "as many statements as --index-updates says, 1 by default: k = k + 1 by primary key; no BEGIN or COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
    Spec {
        name: "oltp_update_non_index",
        summary: "updates a column without index of one row",
        transaction: "as many statements as --non-index-updates says, 1 by default: another c by primary key; no BEGIN or COMMIT",
        options: OPTIONS,
        example: Spec::EXAMPLE,
    },
];

/// Transactions of the entries in the catalogue, in their order.
const MIXES: [Mix; 7] = [
    Mix::PointSelect,
    Mix::ReadOnly,
    Mix::WriteOnly,
    Mix::ReadWrite,
    Mix::Delete,
    Mix::UpdateIndex,
    Mix::UpdateNonIndex,
];

impl Registered for Oltp {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let mix =
            SPECS.iter().position(|spec| spec.name == request.name).map_or(Mix::PointSelect, |n| MIXES[n]);
        both(sbtest::tables(request), Self::new(mix, request.options, request.seed))
            .map(|(tables, workload)| (workload, tables))
    }
}

impl Workload for Oltp {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &self.statements
    }

    fn stream(&self, connection: u64) -> Stream {
        Draws::new(Rng::stream(self.seed, &[Purpose::Operations as u64, connection]))
    }

    fn transactional(&self) -> bool {
        self.begin_commit && self.can_roll_back
    }

    fn writes(&self) -> bool {
        [StatementKind::UpdateIndex, StatementKind::UpdateNonIndex, StatementKind::Delete]
            .iter()
            .any(|kind| self.counts.of(*kind) > 0)
    }

    fn keeps_row_count(&self) -> bool {
        self.counts.of(StatementKind::Delete) == self.counts.of(StatementKind::Insert)
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        if self.begin_commit {
            session.execute(self.begin, &[]).await?;
        }
        self.points(stream, session).await?;
        for kind in [StatementKind::Range, StatementKind::Sum, StatementKind::Order, StatementKind::Distinct]
        {
            self.ranges(kind, stream, session).await?;
        }
        self.index_updates(stream, session).await?;
        self.non_index_updates(stream, session).await?;
        self.delete_inserts(stream, session).await?;
        if self.begin_commit {
            session.execute(self.commit, &[]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
