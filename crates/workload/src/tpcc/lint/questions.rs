//! Statements about the tables of a driver. All of them only read.

use std::collections::BTreeMap;

use crate::tpcc::{FIRST_UNDELIVERED, ORDERS, conditions};

/// A statement about the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The key of its answer.
    pub id: String,
    /// A SELECT with the names of this crate's tables; [`super::Names::renamed`] puts in the driver's.
    pub sql: String,
}

/// The rows of each answer, or the server's error. NULL is `None`.
pub type Answers = BTreeMap<String, Result<Vec<Vec<Option<String>>>, String>>;

/// All statements, the quick ones first.
pub fn questions() -> Vec<Question> {
    let since = format!("ol_o_id > {ORDERS}");
    let of_run: Vec<(&str, String)> = vec![
        ("warehouses", "SELECT COUNT(*) FROM warehouse".to_owned()),
        (
            "sizes",
            format!(
                "SELECT (SELECT COUNT(*) FROM item), (SELECT COUNT(*) FROM stock), (SELECT COUNT(*) FROM district), \
                 (SELECT COUNT(*) FROM customer), (SELECT COUNT(*) FROM orders WHERE o_id <= {ORDERS})"
            ),
        ),
        ("original", "SELECT COALESCE(SUM(i_data LIKE '%ORIGINAL%'), 0), COUNT(*) FROM item".to_owned()),
        ("credit", "SELECT COALESCE(SUM(c_credit = 'BC'), 0), COUNT(*) FROM customer".to_owned()),
        ("orders", format!("SELECT COUNT(*), COALESCE(SUM(o_ol_cnt), 0) FROM orders WHERE o_id > {ORDERS}")),
        (
            "delivered",
            format!(
                "SELECT COALESCE(SUM(o_carrier_id IS NOT NULL AND o_id >= {FIRST_UNDELIVERED}), 0) FROM orders"
            ),
        ),
        (
            "lines",
            format!(
                "SELECT COALESCE(SUM(ol_supply_w_id <> ol_w_id), 0), COUNT(*) FROM order_line WHERE {since}"
            ),
        ),
        (
            "lines_by_home",
            format!(
                "SELECT ol_w_id, SUM(ol_quantity), COUNT(*) FROM order_line WHERE {since} GROUP BY ol_w_id ORDER BY 1"
            ),
        ),
        (
            "lines_by_supplier",
            format!(
                "SELECT ol_supply_w_id, SUM(ol_quantity), COUNT(*) FROM order_line WHERE {since} \
                 GROUP BY ol_supply_w_id ORDER BY 1"
            ),
        ),
        (
            "stock",
            "SELECT s_w_id, SUM(s_ytd), SUM(s_order_cnt), SUM(s_remote_cnt), MIN(s_quantity) FROM stock \
             GROUP BY s_w_id ORDER BY 1"
                .to_owned(),
        ),
        (
            "items",
            format!(
                "SELECT n, COUNT(*) FROM (SELECT COUNT(*) AS n FROM order_line WHERE {since} GROUP BY ol_i_id) AS i \
                 GROUP BY n"
            ),
        ),
        (
            "customers",
            format!(
                "SELECT n, COUNT(*) FROM (SELECT COUNT(*) AS n FROM orders WHERE o_id > {ORDERS} GROUP BY o_c_id) AS c \
                 GROUP BY n"
            ),
        ),
        ("payments", "SELECT COUNT(*), COALESCE(SUM(h_c_w_id <> h_w_id), 0) FROM history".to_owned()),
        // All lines of the first district that has work: of all the time since the load, and next to one another by the key.
        (
            "amounts",
            format!(
                "SELECT COALESCE(SUM(ol_amount = ol_quantity * i_price), 0), COUNT(*) FROM \
                 (SELECT ol_i_id, ol_amount, ol_quantity FROM order_line JOIN \
                 (SELECT o_w_id, o_d_id FROM orders WHERE o_id > {ORDERS} LIMIT 1) AS d \
                 ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE {since}) AS l \
                 JOIN item ON i_id = ol_i_id"
            ),
        ),
        (
            "all_local",
            format!(
                "SELECT COALESCE(SUM((o_all_local = 1) <> is_local), 0) FROM orders JOIN \
                 (SELECT ol_w_id, ol_d_id, ol_o_id, MIN(ol_supply_w_id = ol_w_id) AS is_local FROM order_line \
                 WHERE {since} GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l \
                 ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id"
            ),
        ),
    ];
    let of_run = of_run.into_iter().map(|(id, sql)| Question { id: id.to_owned(), sql });
    let conditions = conditions::all().into_iter().take(12).enumerate();
    of_run
        .chain(conditions.map(|(i, c)| Question { id: format!("condition-{}", i + 1), sql: c.sql }))
        .collect()
}
