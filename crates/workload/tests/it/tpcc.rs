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
    tables.prepare(&|| server.connect(), 2, &AtomicBool::new(false), &mut |_| {}).unwrap()
}

/// A session of prepared statements on one connection; every statement must succeed.
struct Blocking {
    client: Client,
    prepared: Vec<Prepared>,
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

    async fn query(&mut self, _: usize, _: &[u8]) -> Result<Answer, Fault> {
        unreachable!("tpcc sends prepared statements")
    }

    async fn stream<S: ResultSink>(&mut self, command: Command<'_>, sink: &mut S) -> Result<Answer, Fault> {
        let Command::Prepared(statement, params) = command else { unreachable!() };
        let value = |param: &Param<'_>| match param {
            Param::Int(n) => Value::Int(*n),
            Param::Double(x) => Value::Double(*x),
            Param::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
            Param::Null => Value::Null,
        };
        let values: Vec<Value> = params.iter().map(value).collect();
        let mut counted = Counted(sink, 0);
        self.client
            .stream_prepared(&self.prepared[statement.0 as usize], &values, &mut counted)
            .map_err(|error| Fault::Lost(Box::new(error)))?;
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
    let mut client = server.client();
    client.use_schema(DATABASE).unwrap();
    let prepared = tpcc.statements().iter().map(|spec| client.prepare(&spec.sql).unwrap()).collect();
    let mut session = Blocking { client, prepared };
    let mut stream = tpcc.stream(0);
    for number in 0..transactions {
        stream.begin();
        // Drawn twice from the same state: for the caller, and for the server.
        let input = tpcc.draw(&mut stream);
        stream.redraw();
        {
            let sent = pin!(tpcc.transaction(&mut stream, &mut session));
            let done = sent.poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(done, Poll::Ready(Ok(()))), "{number}: {input:?}: {done:?}");
        }
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
    for (statements, seed) in [("single", 11), ("batched", 12)] {
        let tpcc = Tpcc::new(&options("tpcc", &[("warehouses", "2"), ("statements", statements)]), seed);
        let mut rolled_back = 0;
        run(&server, &tpcc, 400, &mut |number, input, output| {
            let expected = memory.execute(input);
            rolled_back += u64::from(expected == Output::RolledBack);
            assert_eq!(output, expected, "{statements} {number}: {input:?}");
        });
        assert!(rolled_back > 0);
        compare(&mut client, &memory);
        tables.check(&mut client).unwrap();
    }
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
    for driver in ["go-tpc", "sysbench-tpcc"] {
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
