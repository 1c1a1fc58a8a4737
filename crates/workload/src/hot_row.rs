//! `hot_row`: many sessions sell from few rows, as in a flash sale.
//!
//! Every transaction takes one piece of a row's stock. The rows' locks then determine the server's performance: how
//! long they are held (commit included), how waiters queue, the cost of deadlock detection.

use mydyno_model::Warning;
use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;

use crate::data::Purpose;
use crate::draws::Draws;
use crate::options::{Default, Form, OptionError, OptionSpec, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Param, ParamType, Session, Statement, StatementSpec, Workload};
use mydyno_tables::condition::Condition;
use mydyno_tables::generator::{Constant, Generator};
use mydyno_tables::own_tables::{ColumnSpec, DoubtSpec, OwnTables, TableSpec};
use mydyno_tables::prepare::Tuning;
use mydyno_tables::work_tables::WorkTables;

/// Key of the tables in the mark.
pub const FAMILY: &str = "hot_row";

const STOCK_TABLE: &str = "hot_row";
const ORDER_TABLE: &str = "hot_row_order";

/// Number of buyers from whom an order's buyer is drawn.
const BUYERS: u64 = 1_000_000;

/// Options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "rows",
        form: Form::Count { min: 1, max: 1_000_000 },
        default: Default::Count(1),
        help: "rows that the sessions share, each equally likely; the test of flash sales has 1, splitting the stock has more",
    },
    OptionSpec {
        name: "stock",
        form: Form::Count { min: 1, max: 1_000_000_000_000 },
        default: Default::Count(1_000_000_000),
        help: "pieces in each row; what is sold out is no longer hot, so give more than a run can sell",
    },
    OptionSpec {
        name: "check-stock",
        form: Form::Switch,
        default: Default::Switch(true),
        help: "sell only what is there (AND stock > 0)",
    },
    OptionSpec {
        name: "insert-order",
        form: Form::Switch,
        default: Default::Switch(false),
        help: "insert an order in the same transaction, so that stock and orders can be checked against each other",
    },
    OptionSpec {
        name: "statements",
        form: Form::Choice(&["update", "select-for-update", "order-first"]),
        default: Default::Word("update"),
        help: "update at once; or lock with SELECT … FOR UPDATE, then update; or insert the order before the update, which holds the lock for less time",
    },
    crate::engine::OPTION,
];

/// The order of the statements of a sale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementOrder {
    Update,
    SelectForUpdate,
    InsertFirst,
}

/// The workload with its options.
#[derive(Debug, Clone)]
pub struct HotRow {
    rows: u64,
    order: StatementOrder,
    insert_order: bool,
    check_stock: bool,
    seed: u64,
    operations: Vec<OperationInfo>,
    statements: Vec<StatementSpec>,
    place: Places,
}

/// Numbers of the statements that are used.
#[derive(Debug, Clone, Copy, Default)]
struct Places {
    begin: Option<Statement>,
    lock: Option<Statement>,
    update: Option<Statement>,
    insert: Option<Statement>,
    commit: Option<Statement>,
    rollback: Option<Statement>,
}

/// The transactions of one connection.
pub type Stream = Draws<Rng>;

impl HotRow {
    /// The workload with these options.
    ///
    /// # Errors
    /// Inconsistent options.
    pub fn new(options: &Options, seed: u64) -> Result<Self, Vec<OptionError>> {
        let order = match options.word("statements") {
            "select-for-update" => StatementOrder::SelectForUpdate,
            "order-first" => StatementOrder::InsertFirst,
            _ => StatementOrder::Update,
        };
        let insert_order = options.switch("insert-order");
        if order == StatementOrder::InsertFirst && !insert_order {
            return Err(vec![OptionError::Impossible(
                "--statements=order-first inserts an order before the update: give --insert-order=on too"
                    .to_owned(),
            )]);
        }
        let mut hot_row = Self {
            rows: options.count("rows"),
            order,
            insert_order,
            check_stock: options.switch("check-stock"),
            seed,
            operations: Vec::new(),
            statements: Vec::new(),
            place: Places::default(),
        };
        hot_row.lay_out();
        Ok(hot_row)
    }

    /// The tables of these options.
    pub fn tables(database: &str, options: &Options, seed: u64) -> OwnTables {
        let engine = options.word(crate::engine::OPTION.name);
        let (rows, stock) = (options.count("rows"), options.count("stock"));
        let insert_order = options.switch("insert-order");
        let column =
            |name: &str, generator| ColumnSpec { name: name.to_owned(), generator, place: String::new() };
        let goods = TableSpec {
            name: STOCK_TABLE.to_owned(),
            create: format!(
                "CREATE TABLE {STOCK_TABLE} (id INT NOT NULL PRIMARY KEY, stock BIGINT NOT NULL) ENGINE={engine}"
            ),
            columns: vec![
                column("id", Generator::Sequence { from: 1, step: 1 }),
                column("stock", Generator::Constant(Constant::Int(stock as i64))),
            ],
            rows,
            after: Vec::new(),
            place: String::new(),
        };
        let orders = TableSpec {
            name: ORDER_TABLE.to_owned(),
            create: format!(
                "CREATE TABLE {ORDER_TABLE} (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, item INT NOT NULL, \
                 buyer INT NOT NULL, pieces INT NOT NULL) ENGINE={engine}"
            ),
            columns: Vec::new(),
            rows: 0,
            after: Vec::new(),
            place: String::new(),
        };
        let mut tables = vec![goods];
        if insert_order {
            tables.push(orders);
        }
        OwnTables {
            family: FAMILY,
            database: database.to_owned(),
            tables,
            checks: checks(rows, stock, insert_order, options.switch("check-stock")),
            doubts: if options.switch("check-stock") { vec![sold_out()] } else { Vec::new() },
            of_seed: false,
            tuning: Tuning::default(),
            seed,
        }
    }

    /// Operations and statements. A transaction of one statement is recorded once, as the transaction.
    fn lay_out(&mut self) {
        let single = self.order == StatementOrder::Update && !self.insert_order;
        if single {
            self.place.update = Some(self.add("sell", OperationKind::Transaction, self.update_sql(), ROW));
            return;
        }
        self.operations.push(OperationInfo {
            name: "transaction".to_owned(),
            kind: OperationKind::Transaction,
            sql: String::new(),
        });
        let statement = OperationKind::Statement;
        self.place.begin = Some(self.add("begin", statement, "BEGIN".to_owned(), &[]));
        if self.order == StatementOrder::SelectForUpdate {
            let sql = format!("SELECT stock FROM {STOCK_TABLE} WHERE id = ? FOR UPDATE");
            self.place.lock = Some(self.add("lock", statement, sql, ROW));
        }
        self.place.update = Some(self.add("sell", statement, self.update_sql(), ROW));
        if self.insert_order {
            let sql = format!("INSERT INTO {ORDER_TABLE} (item, buyer, pieces) VALUES (?, ?, 1)");
            self.place.insert = Some(self.add("order", statement, sql, &[ParamType::Int, ParamType::Int]));
        }
        self.place.commit = Some(self.add("commit", statement, "COMMIT".to_owned(), &[]));
        if self.order == StatementOrder::InsertFirst && self.check_stock {
            self.place.rollback = Some(self.add("rollback", statement, "ROLLBACK".to_owned(), &[]));
        }
    }

    fn update_sql(&self) -> String {
        let check = if self.check_stock { " AND stock > 0" } else { "" };
        format!("UPDATE {STOCK_TABLE} SET stock = stock - 1 WHERE id = ?{check}")
    }

    fn add(&mut self, name: &str, kind: OperationKind, sql: String, params: &[ParamType]) -> Statement {
        let statement = Statement(self.statements.len() as u32);
        let operation = self.operations.len();
        self.statements.push(StatementSpec {
            sql: sql.clone(),
            params: params.to_vec(),
            operation,
            ..StatementSpec::default()
        });
        self.operations.push(OperationInfo { name: name.to_owned(), kind, sql });
        statement
    }
}

const ROW: &[ParamType] = &[ParamType::Int];

/// A row without stock is found but not changed, so the load differs from then on.
fn sold_out() -> DoubtSpec {
    DoubtSpec {
        sql: format!("SELECT COUNT(*) FROM {STOCK_TABLE} WHERE stock = 0"),
        warning: Warning::new(
            "sold-out",
            "a row was sold out at the end of the run: sales that change nothing are among the transactions",
            "give more --stock, on fresh tables (the step cleanup)",
        ),
    }
}

/// Conditions that must always hold. Without orders a sale changes the stock only.
fn checks(rows: u64, stock: u64, insert_order: bool, check_stock: bool) -> Vec<Condition> {
    let check =
        |about: &str, sql: String, expected: String| Condition { about: about.to_owned(), sql, expected };
    let mut checks = vec![
        check("rows of hot_row", format!("SELECT COUNT(*) FROM {STOCK_TABLE}"), rows.to_string()),
        check(
            "rows of hot_row with more stock than in the beginning",
            format!("SELECT COUNT(*) FROM {STOCK_TABLE} WHERE stock > {stock}"),
            "0".to_owned(),
        ),
    ];
    if check_stock {
        checks.push(check(
            "rows of hot_row that were sold more often than they had pieces",
            format!("SELECT COUNT(*) FROM {STOCK_TABLE} WHERE stock < 0"),
            "0".to_owned(),
        ));
    }
    if insert_order {
        checks.push(check(
            "rows of hot_row whose stock and orders do not add up to the stock in the beginning",
            format!(
                "SELECT COUNT(*) FROM {STOCK_TABLE} LEFT JOIN \
                 (SELECT item, SUM(pieces) AS sold FROM {ORDER_TABLE} GROUP BY item) AS orders ON item = id \
                 WHERE stock + COALESCE(sold, 0) <> {stock}"
            ),
            "0".to_owned(),
        ));
        checks.push(check(
            "orders of hot_row_order for rows that do not exist",
            format!("SELECT COUNT(*) FROM {ORDER_TABLE} LEFT JOIN {STOCK_TABLE} ON item = {STOCK_TABLE}.id WHERE stock IS NULL"),
            "0".to_owned(),
        ));
    }
    checks
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "hot_row",
    summary: "many sessions sell from few rows: the flash sale",
    transaction: "1 statement: a row's stock less one, if there is any; with an order, a lock or a chosen sequence of the statements 3 to 5, BEGIN and COMMIT included",
    options: OPTIONS,
    example: "--sandbox --set max_connections=300 --connections 1,8,72,96,144,192,256 --time 10s",
}];

impl Registered for HotRow {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let Request { options, database, seed, .. } = *request;
        Ok((Self::new(options, seed)?, WorkTables::Own(Self::tables(database, options, seed))))
    }
}

impl Workload for HotRow {
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
        self.place.begin.is_some()
    }

    fn writes(&self) -> bool {
        true
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        let row = [Param::Int(stream.current.below(self.rows) as i64 + 1)];
        let buyer = Param::Int(stream.current.below(BUYERS) as i64 + 1);
        let order = [row[0], buyer];
        let place = &self.place;
        if let Some(begin) = place.begin {
            session.execute(begin, &[]).await?;
        }
        if let Some(lock) = place.lock {
            session.execute(lock, &row).await?;
        }
        if let (StatementOrder::InsertFirst, Some(insert)) = (self.order, place.insert) {
            session.execute(insert, &order).await?;
        }
        let mut sold = true;
        if let Some(update) = place.update {
            sold = session.execute(update, &row).await?.affected_rows > 0;
        }
        if let (true, StatementOrder::Update | StatementOrder::SelectForUpdate, Some(insert)) =
            (sold, self.order, place.insert)
        {
            session.execute(insert, &order).await?;
        }
        let end = if sold { place.commit } else { place.rollback.or(place.commit) };
        if let Some(end) = end {
            session.execute(end, &[]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{Answer, Kept};
    use crate::transcript::replay;

    fn hot_row(given: &[(&str, &str)]) -> Result<HotRow, Vec<OptionError>> {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        HotRow::new(&Options::resolve("hot_row", OPTIONS, &given).unwrap(), 1)
    }

    fn asked(hot_row: &HotRow) -> Vec<&str> {
        let mut operations = Vec::new();
        replay(hot_row, 0, 1, &mut |asked| operations.push(asked.operation));
        operations.into_iter().map(|i| hot_row.operations()[i].sql.as_str()).collect()
    }

    const SELL: &str = "UPDATE hot_row SET stock = stock - 1 WHERE id = ? AND stock > 0";
    const ORDER: &str = "INSERT INTO hot_row_order (item, buyer, pieces) VALUES (?, ?, 1)";

    #[test]
    fn the_plain_sale_is_one_statement_that_commits_by_itself() {
        let plain = hot_row(&[]).unwrap();
        assert_eq!(asked(&plain), [SELL]);
        assert_eq!(plain.operations().len(), 1);
        assert!(!plain.transactional());
        let unchecked = hot_row(&[("check-stock", "off")]).unwrap();
        assert_eq!(asked(&unchecked), ["UPDATE hot_row SET stock = stock - 1 WHERE id = ?"]);
    }

    #[test]
    fn the_options_set_the_sequence_of_the_statements() {
        let of = |given: &[(&str, &str)]| asked(&hot_row(given).unwrap()).join("; ");
        assert_eq!(of(&[("insert-order", "on")]), format!("BEGIN; {SELL}; {ORDER}; COMMIT"));
        assert_eq!(
            of(&[("statements", "select-for-update")]),
            format!("BEGIN; SELECT stock FROM hot_row WHERE id = ? FOR UPDATE; {SELL}; COMMIT")
        );
        let first = [("statements", "order-first"), ("insert-order", "on")];
        assert_eq!(of(&first), format!("BEGIN; {ORDER}; {SELL}; COMMIT"));
    }

    #[test]
    fn an_order_that_comes_first_is_taken_back_when_nothing_is_left() {
        /// A shop without stock.
        struct SoldOut<'a>(&'a HotRow, Vec<String>);
        impl Session for SoldOut<'_> {
            async fn execute(&mut self, statement: Statement, _: &[Param<'_>]) -> Result<Answer, Fault> {
                self.1.push(self.0.statements()[statement.0 as usize].sql.clone());
                Ok(Answer::default())
            }
            async fn execute_keeping(&mut self, of: Statement, with: &[Param<'_>]) -> Result<Kept, Fault> {
                self.execute(of, with).await.map(|answer| Kept { answer, row: None })
            }
            async fn query(&mut self, _: usize, _: &[u8]) -> Result<Answer, Fault> {
                Ok(Answer::default())
            }
        }
        let asked_when_sold_out = |given: &[(&str, &str)]| {
            let hot_row = hot_row(given).unwrap();
            let mut session = SoldOut(&hot_row, Vec::new());
            let mut stream = hot_row.stream(0);
            {
                let asked = std::pin::pin!(hot_row.transaction(&mut stream, &mut session));
                let context = &mut std::task::Context::from_waker(std::task::Waker::noop());
                assert!(matches!(asked.poll(context), std::task::Poll::Ready(Ok(()))));
            }
            session.1.join("; ")
        };
        let first = [("statements", "order-first"), ("insert-order", "on")];
        assert_eq!(asked_when_sold_out(&first), format!("BEGIN; {ORDER}; {SELL}; ROLLBACK"));
        assert_eq!(asked_when_sold_out(&[("insert-order", "on")]), format!("BEGIN; {SELL}; COMMIT"));
    }

    #[test]
    fn an_order_cannot_come_first_where_there_is_none() {
        let errors = hot_row(&[("statements", "order-first")]).unwrap_err();
        assert!(errors[0].to_string().contains("--insert-order=on"), "{}", errors[0]);
    }

    #[test]
    fn the_first_operations_stay_what_they_are() {
        let given = [("rows", "10"), ("insert-order", "on"), ("statements", "select-for-update")];
        crate::golden::same("hot_row.txt", &crate::golden::stream(&hot_row(&given).unwrap(), 4));
    }
}
