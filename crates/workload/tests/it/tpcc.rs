//! TPC-C's transactions on a real server beside their execution in memory, and faults that the conditions must find.

use std::future::Future as _;
use std::pin::pin;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};

use mydyno_tables::prepare::{Prepared as Made, Tables, Tuning};
use mydyno_wire::reply::{ResultSink, Row};
use mydyno_wire::{Client, Prepared, Value, WireError};
use mydyno_workload::session::{Answer, Kept};
use mydyno_workload::tpcc::Tpcc;
use mydyno_workload::tpcc::execute::Output;
use mydyno_workload::tpcc::inputs::Input;
use mydyno_workload::tpcc::workload::Stream;
use mydyno_workload::{Command, Fault, Param, Session, Statement, TransactionStream as _, Workload};

use crate::behaviour::options;
use crate::server::{Server, shared};
use crate::tpcc_model::{Memory, Order};

const WAREHOUSES: u64 = 2;
const SEED: u64 = 7;
/// Orders that the deliveries of this test reach, and some that they do not.
const DELIVERED: std::ops::RangeInclusive<u64> = 2_101..=2_200;
const DATABASE: &str = "tpcc_spec";

fn tables(database: &str) -> Tables {
    Tpcc::tables(database, &options("tpcc", &[("warehouses", "2")]), SEED)
}

fn prepare(server: &Server, tables: &Tables) -> Made {
    // Servers before MariaDB 10.9 keep the small log of the other tests, and write pages more often.
    let _ = server.client().execute("SET GLOBAL innodb_log_file_size = 134217728");
    tables.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// A session of prepared statements on one connection; every statement must succeed.
pub struct Blocking {
    client: Client,
    prepared: Vec<Prepared>,
}

impl Blocking {
    /// On a database whose tables are prepared.
    pub fn new(mut client: Client, database: &str, tpcc: &Tpcc) -> Self {
        client.use_schema(database).unwrap();
        let prepared = tpcc.statements().iter().map(|spec| client.prepare(&spec.sql).unwrap()).collect();
        Self { client, prepared }
    }

    /// Carries out the current transaction of a stream.
    pub fn send(&mut self, tpcc: &Tpcc, stream: &mut Stream) -> Result<(), Fault> {
        let sent = pin!(tpcc.transaction(stream, self));
        match sent.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => unreachable!("this session blocks"),
        }
    }

    pub fn rollback(&mut self) -> Result<(), WireError> {
        self.client.execute("ROLLBACK").map(drop)
    }
}

/// Counts rows on their way.
struct Counted<'a, S>(&'a mut S, u64);

impl<S: ResultSink> ResultSink for Counted<'_, S> {
    fn row(&mut self, row: Row<'_>) -> Result<(), WireError> {
        self.1 += 1;
        self.0.row(row)
    }
}

impl Session for Blocking {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        self.stream(Command::Prepared(statement, params), &mut ()).await
    }

    async fn execute_keeping(&mut self, _: Statement, _: &[Param<'_>]) -> Result<Kept, Fault> {
        unreachable!("tpcc reads rows by stream")
    }

    async fn query(&mut self, operation: usize, sql: &[u8]) -> Result<Answer, Fault> {
        self.stream(Command::Text(operation, sql), &mut ()).await
    }

    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, sink: &mut S) -> Result<Answer, Fault> {
        let mut counted = Counted(sink, 0);
        let fault = |error: WireError| match error {
            WireError::Server(error) => Fault::Server(Box::new(error)),
            error => Fault::Lost(Box::new(error)),
        };
        let (statement, params) = match command {
            Command::Prepared(statement, params) => (statement, params),
            Command::Text(_, sql) => {
                self.client.stream(sql, &mut counted).map_err(fault)?;
                return Ok(Answer { rows: counted.1, affected_rows: 0 });
            }
            Command::Handle(..) => unreachable!("tpcc prepares nothing while running"),
        };
        let value = |param: &Param<'_>| match param {
            Param::Int(n) => Value::Int(*n),
            Param::Double(x) => Value::Double(*x),
            Param::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Param::Null => Value::Null,
        };
        let values: Vec<Value> = params.iter().map(value).collect();
        self.client
            .stream_prepared(&self.prepared[statement.0 as usize], &values, &mut counted)
            .map_err(fault)?;
        Ok(Answer { rows: counted.1, affected_rows: 0 })
    }
}

fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    let text = |row: &Vec<Option<Vec<u8>>>| {
        let cells: Vec<_> = row
            .iter()
            .map(|cell| {
                cell.as_ref().map_or("NULL".into(), |bytes| String::from_utf8_lossy(bytes).into_owned())
            })
            .collect();
        cells.join("|")
    };
    client.query(sql).unwrap().rows.iter().map(text).collect()
}

fn money(cents: i64) -> String {
    format!("{}{}.{:02}", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100)
}

/// Every changing column of the database against the memory.
fn compare(client: &mut Client, memory: &Memory) {
    let expected: Vec<_> =
        memory.warehouse_ytd.iter().map(|(w, ytd)| format!("{w}|{}", money(*ytd))).collect();
    assert_eq!(rows(client, "SELECT w_id, w_ytd FROM warehouse ORDER BY 1"), expected);
    let expected: Vec<_> = memory
        .district_ytd
        .iter()
        .map(|(key, ytd)| format!("{}|{}|{}|{}", key.0, key.1, money(*ytd), memory.orders[key].len() + 1))
        .collect();
    let districts = "SELECT d_w_id, d_id, d_ytd, d_next_o_id FROM district ORDER BY 1, 2";
    assert_eq!(rows(client, districts), expected);
    let expected: Vec<_> = memory
        .stock
        .iter()
        .map(|((w, i), s)| format!("{w}|{i}|{}|{}|{}|{}", s.quantity, s.ytd, s.orders, s.remote))
        .collect();
    let stock = "SELECT s_w_id, s_i_id, s_quantity, s_ytd, s_order_cnt, s_remote_cnt FROM stock \
        WHERE s_ytd <> 0 OR s_order_cnt <> 0 OR s_remote_cnt <> 0 ORDER BY 1, 2";
    assert_eq!(rows(client, stock), expected);
    let changed = memory.customers.iter().filter(|(_, c)| c.payments != 1 || c.deliveries != 0);
    let expected: Vec<_> = changed
        .map(|((w, d, id), c)| {
            let (balance, paid) = (money(c.balance), money(c.ytd_payment));
            format!("{w}|{d}|{id}|{balance}|{paid}|{}|{}|{}", c.payments, c.deliveries, c.data)
        })
        .collect();
    let customers = "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, c_payment_cnt, c_delivery_cnt, c_data \
        FROM customer WHERE c_payment_cnt <> 1 OR c_delivery_cnt <> 0 OR c_balance <> -10 ORDER BY 1, 2, 3";
    assert_eq!(rows(client, customers), expected);
    let mut expected: Vec<_> = memory
        .history
        .iter()
        .map(|([c_w, c_d, c, d, w], amount, data)| {
            format!("{c_w}|{c_d}|{c}|{d}|{w}|{}|{data}", money(*amount))
        })
        .collect();
    let history = "SELECT h_c_w_id, h_c_d_id, h_c_id, h_d_id, h_w_id, h_amount, h_data FROM history \
        WHERE h_data LIKE '%    %'";
    let mut found = rows(client, history);
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    compare_orders(client, memory);
}

fn compare_orders(client: &mut Client, memory: &Memory) {
    let open: Vec<_> = memory
        .open
        .iter()
        .flat_map(|((w, d), open)| open.iter().map(move |o| format!("{w}|{d}|{o}")))
        .collect();
    assert_eq!(rows(client, "SELECT no_w_id, no_d_id, no_o_id FROM new_order ORDER BY 1, 2, 3"), open);
    let (mut orders, mut lines) = (Vec::new(), Vec::new());
    for ((w, d), all) in &memory.orders {
        for (o, order) in (1..).zip(all).skip(2_100) {
            let Order { customer, carrier, all_local, lines: of_order } = order;
            let carrier = carrier.map_or("NULL".to_owned(), |carrier| carrier.to_string());
            let local = u8::from(*all_local);
            orders.push(format!("{w}|{d}|{o}|{customer}|{carrier}|{}|{local}", of_order.len()));
            // Lines of all orders would be more than a client takes as one result.
            if !(DELIVERED.contains(&o) || o > 3_000) {
                continue;
            }
            for (number, line) in (1..).zip(of_order) {
                lines.push(format!(
                    "{w}|{d}|{o}|{number}|{}|{}|{}|{}|{}|{}",
                    line.item,
                    line.supplier,
                    u8::from(line.delivered),
                    line.quantity,
                    money(line.amount),
                    line.info
                ));
            }
        }
    }
    let found = rows(
        client,
        "SELECT o_w_id, o_d_id, o_id, o_c_id, o_carrier_id, o_ol_cnt, o_all_local FROM orders WHERE o_id > 2100 \
         ORDER BY 1, 2, 3",
    );
    assert!(found == orders, "orders differ");
    let found = rows(
        client,
        "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d IS NOT NULL, ol_quantity, \
         ol_amount, ol_dist_info FROM order_line WHERE ol_o_id BETWEEN 2101 AND 2200 OR ol_o_id > 3000 ORDER BY 1, 2, 3, 4",
    );
    let differs = found.iter().zip(&lines).find(|(found, expected)| found != expected);
    assert!(found.len() == lines.len() && differs.is_none(), "order lines differ: {differs:?}");
}

/// Carries out transactions of one connection; each must succeed. `each` gets its number, input and output.
fn run(server: &Server, tpcc: &Tpcc, transactions: u64, each: &mut dyn FnMut(u64, &Input, Output)) {
    run_on(server, DATABASE, tpcc, 0, transactions, each);
}

/// As [`run`], on this database and connection.
fn run_on(
    server: &Server,
    database: &str,
    tpcc: &Tpcc,
    connection: u64,
    transactions: u64,
    each: &mut dyn FnMut(u64, &Input, Output),
) {
    let mut session = Blocking::new(server.client(), database, tpcc);
    let mut stream = tpcc.stream(connection);
    for number in 0..transactions {
        stream.begin();
        // Drawn twice from the same state: for the caller, and for the server.
        let input = tpcc.draw(&mut stream);
        stream.redraw();
        let done = session.send(tpcc, &mut stream);
        assert!(done.is_ok(), "{number}: {input:?}: {done:?}");
        each(number, &input, stream.output());
    }
}

/// Each condition's number or name, a change that violates it, and the change that undoes that.
const FAULTS: [(&str, &str, &str); 15] = [
    (
        "condition 1",
        "UPDATE district SET d_ytd = d_ytd + 1 WHERE d_id = 3 AND d_w_id = 1",
        "UPDATE district SET d_ytd = d_ytd - 1 WHERE d_id = 3 AND d_w_id = 1",
    ),
    (
        "condition 2",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3 AND d_w_id = 1",
        "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 3 AND d_w_id = 1",
    ),
    (
        "condition 3",
        "DELETE FROM new_order WHERE no_w_id = 2 AND no_d_id = 4 AND no_o_id = 2990",
        "INSERT INTO new_order VALUES (2, 4, 2990)",
    ),
    (
        "condition 4",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 5",
    ),
    (
        "condition 5",
        "UPDATE orders SET o_carrier_id = 1 WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 2999",
        "UPDATE orders SET o_carrier_id = NULL WHERE o_w_id = 1 AND o_d_id = 1 AND o_id = 2999",
    ),
    (
        "condition 6",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + IF(o_id = 5, 1, -1) WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (5, 6)",
        "UPDATE orders SET o_ol_cnt = o_ol_cnt + IF(o_id = 5, -1, 1) WHERE o_w_id = 1 AND o_d_id = 1 AND o_id IN (5, 6)",
    ),
    (
        "condition 7",
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 2999 AND ol_number = 1",
        "UPDATE order_line SET ol_delivery_d = NULL WHERE ol_w_id = 1 AND ol_d_id = 1 AND ol_o_id = 2999 AND ol_number = 1",
    ),
    (
        "condition 8",
        "UPDATE warehouse SET w_ytd = w_ytd + 0.01 WHERE w_id = 2",
        "UPDATE warehouse SET w_ytd = w_ytd - 0.01 WHERE w_id = 2",
    ),
    (
        "condition 9",
        "UPDATE district SET d_ytd = d_ytd + IF(d_id = 1, 1, -1) WHERE d_w_id = 2 AND d_id IN (1, 2)",
        "UPDATE district SET d_ytd = d_ytd + IF(d_id = 1, -1, 1) WHERE d_w_id = 2 AND d_id IN (1, 2)",
    ),
    (
        "condition 10",
        "UPDATE customer SET c_balance = c_balance + 1, c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 9",
        "UPDATE customer SET c_balance = c_balance - 1, c_ytd_payment = c_ytd_payment + 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 9",
    ),
    (
        "condition 11",
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 10",
        "UPDATE customer SET c_delivery_cnt = c_delivery_cnt - 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 10",
    ),
    (
        "condition 12",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment + 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 11",
        "UPDATE customer SET c_ytd_payment = c_ytd_payment - 1 WHERE c_w_id = 1 AND c_d_id = 1 AND c_id = 11",
    ),
    (
        "s_ytd",
        "UPDATE stock SET s_ytd = s_ytd + 1 WHERE s_w_id = 2 AND s_i_id = 77",
        "UPDATE stock SET s_ytd = s_ytd - 1 WHERE s_w_id = 2 AND s_i_id = 77",
    ),
    (
        "s_order_cnt",
        "UPDATE stock SET s_order_cnt = s_order_cnt + 1 WHERE s_w_id = 2 AND s_i_id = 77",
        "UPDATE stock SET s_order_cnt = s_order_cnt - 1 WHERE s_w_id = 2 AND s_i_id = 77",
    ),
    (
        "s_remote_cnt",
        "UPDATE stock SET s_remote_cnt = s_remote_cnt + 1 WHERE s_w_id = 2 AND s_i_id = 77",
        "UPDATE stock SET s_remote_cnt = s_remote_cnt - 1 WHERE s_w_id = 2 AND s_i_id = 77",
    ),
];

#[test]
fn transactions_do_what_the_specification_says_and_conditions_find_each_fault() {
    let server = shared();
    let tables = tables(DATABASE);
    assert_eq!(prepare(&server, &tables), Made::Made);
    assert_eq!(prepare(&server, &tables), Made::Reused);
    let mut client = server.client();
    let mark = tables.check(&mut client).unwrap();
    tables.note_use(&mut client, &mark).unwrap();
    client.use_schema(DATABASE).unwrap();

    let mut memory = Memory::new(WAREHOUSES, SEED);
    let with_procedures = [("warehouses", "2"), ("statements", "procedure")];
    let with_procedures = Tpcc::tables(DATABASE, &options("tpcc", &with_procedures), SEED);
    assert!(
        with_procedures.require(&mut client).unwrap_err().to_string().contains("procedure tpcc_new_order")
    );
    assert_eq!(prepare(&server, &with_procedures), Made::Reused);
    with_procedures.require(&mut client).unwrap();
    for (statements, text, seed) in [
        ("single", "off", 11),
        ("batched", "off", 12),
        ("procedure", "off", 14),
        ("single", "on", 15),
        ("batched", "on", 16),
    ] {
        let given = [("warehouses", "2"), ("statements", statements), ("text", text)];
        let tpcc = Tpcc::new(&options("tpcc", &given), seed);
        let mut rolled_back = 0;
        run(&server, &tpcc, 400, &mut |number, input, output| {
            let expected = memory.execute(input);
            rolled_back += u64::from(expected == Output::RolledBack);
            assert_eq!(output, expected, "{statements} {number}: {input:?}");
        });
        assert!(rolled_back > 0);
        compare(&mut client, &memory);
    }
    // `compare` has looked at what later transactions could hide: one check for all.
    tables.check(&mut client).unwrap();
    // All faults at once, since a check reads all rows: each condition must name its own.
    for (_, fault, _) in FAULTS {
        client.execute(fault).unwrap();
    }
    let errors = tables.check(&mut client).unwrap_err();
    for (about, _, _) in FAULTS {
        assert!(errors.iter().any(|error| error.to_string().contains(about)), "{about}: {errors:?}");
    }
    assert_eq!(errors.len(), FAULTS.len());
    for (_, _, undo) in FAULTS {
        client.execute(undo).unwrap();
    }
    tables.check(&mut client).unwrap();

    // What public drivers leave out passes the twelve conditions, and fails those of STOCK.
    let of_hammerdb = options("tpcc", &[("warehouses", "2"), ("as", "hammerdb")]);
    assert_eq!(prepare(&server, &Tpcc::tables(DATABASE, &of_hammerdb, SEED)), Made::Reused);
    for driver in ["go-tpc", "sysbench-tpcc", "hammerdb"] {
        let tpcc = Tpcc::new(&options("tpcc", &[("warehouses", "2"), ("as", driver)]), 13);
        run(&server, &tpcc, 200, &mut |_, _, _| {});
        let errors = tables.check(&mut client).unwrap_err();
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert!(errors.iter().all(|error| error.starts_with("stock:")), "{driver}: {errors:?}");
        assert!(errors.iter().any(|error| error.contains("s_ytd")), "{driver}: {errors:?}");
    }
    assert!(tables.cleanup(&mut client).unwrap());
}

/// Ranges are small, so that they end within orders and districts.
#[test]
fn a_fill_of_composite_keys_that_was_cut_off_goes_on_and_ends_with_the_same_rows() {
    let server = shared();
    let small = Tuning { batch_bytes: 64 << 10, range_bytes: 2 << 20, ..Tuning::default() };
    let tables = tables("tpcc_cut").tuned(small);
    let stop = AtomicBool::new(false);
    let cut = tables.prepare(&|| server.connect(), 2, &stop, &mut |progress| {
        stop.store(progress.rows > 300_000, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(cut.is_err(), "{cut:?}");
    let mut client = server.client();
    // Damage of two kinds: a hole within a range, and a row that is not the seed's.
    client.execute("DELETE FROM tpcc_cut.stock WHERE s_w_id = 1 AND s_i_id = 50").unwrap();
    client.execute("UPDATE tpcc_cut.stock SET s_data = 'x' WHERE s_w_id = 1 AND s_i_id = 51").unwrap();
    assert_eq!(prepare(&server, &tables), Made::Made);
    tables.check(&mut client).unwrap();
    assert!(tables.cleanup(&mut client).unwrap());
}

#[test]
fn sets_with_foreign_keys_are_filled_run_on_checked_and_dropped() {
    let server = shared();
    let given = [("warehouses", "1"), ("sets", "2"), ("foreign-keys", "on"), ("statements", "procedure")];
    let options = options("tpcc", &given);
    let tables = Tpcc::tables("tpcc_sets", &options, SEED);
    assert_eq!(prepare(&server, &tables), Made::Made);
    let mut client = server.client();
    let mark = tables.check(&mut client).unwrap();
    tables.note_use(&mut client, &mark).unwrap();
    let keys = "SELECT COUNT(*) FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'tpcc_sets'";
    assert_eq!(rows(&mut client, keys), ["20"]);
    let tpcc = Tpcc::new(&options, 21);
    for connection in [0, 1] {
        run_on(&server, "tpcc_sets", &tpcc, connection, 46, &mut |_, _, _| {});
    }
    client.use_schema("tpcc_sets").unwrap();
    for set in ["1", "2"] {
        let orders = rows(&mut client, &format!("SELECT SUM(d_next_o_id) > 30010 FROM district{set}"));
        assert_eq!(orders, ["1"], "set {set}");
    }
    tables.check(&mut client).unwrap();
    client.execute("UPDATE stock2 SET s_ytd = s_ytd + 1 WHERE s_i_id = 5").unwrap();
    let errors = tables.check(&mut client).unwrap_err();
    assert_eq!(errors.len(), 1);
    assert!(errors[0].to_string().contains("s_ytd") && errors[0].to_string().contains("set 2"), "{errors:?}");
    // Another shape drops these tables first, in any order.
    assert!(tables.cleanup(&mut client).unwrap());
}
