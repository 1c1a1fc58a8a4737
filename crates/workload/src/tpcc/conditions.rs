//! Consistency conditions: the twelve of clause 3.3.2, and three of STOCK, which none of the twelve touches.
//!
//! Each statement counts violations over all rows, in one result set. Clause 3.3.2.11 states its condition for freshly loaded
//! tables; it is extended by the deliveries since, which CUSTOMER counts. The conditions of STOCK are about what happened
//! since the load: the load writes order lines without taking them from the stock.

use mydyno_tables::condition::Condition;

use super::{FIRST_UNDELIVERED, ORDERS, sets};

/// All conditions.
pub fn all() -> Vec<Condition> {
    let condition =
        |(about, sql): (&str, String)| Condition { about: about.to_owned(), sql, expected: "0".to_owned() };
    first_seven().into_iter().chain(last_five()).chain(of_stock()).map(condition).collect()
}

/// All conditions of a set of tables.
pub fn of_set(suffix: &str) -> Vec<Condition> {
    let on_set = |condition: Condition| Condition {
        about: if suffix.is_empty() {
            condition.about
        } else {
            format!("{} (set {suffix})", condition.about)
        },
        sql: sets::of_set(&condition.sql, suffix),
        expected: condition.expected,
    };
    all().into_iter().map(on_set).collect()
}

/// Conditions 1 to 7: the warehouses' sums, and orders with their lines.
fn first_seven() -> [(&'static str, String); 7] {
    [
        (
            "condition 1: warehouses whose w_ytd is not the sum of their districts' d_ytd",
            "SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT d_w_id, SUM(d_ytd) AS ytd FROM district GROUP BY d_w_id) AS d \
             ON d_w_id = w_id WHERE w_ytd <> COALESCE(ytd, 0)"
                .to_owned(),
        ),
        (
            "condition 2: districts whose d_next_o_id - 1 is not the highest o_id, or not the highest no_o_id",
            "SELECT COUNT(*) FROM district LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS last FROM orders \
             GROUP BY o_w_id, o_d_id) AS o ON o_w_id = d_w_id AND o_d_id = d_id \
             LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS open FROM new_order GROUP BY no_w_id, no_d_id) AS n \
             ON no_w_id = d_w_id AND no_d_id = d_id \
             WHERE d_next_o_id - 1 <> COALESCE(last, 0) OR d_next_o_id - 1 <> COALESCE(open, d_next_o_id - 1)"
                .to_owned(),
        ),
        (
            "condition 3: districts whose open orders have gaps",
            "SELECT COUNT(*) FROM (SELECT no_w_id FROM new_order GROUP BY no_w_id, no_d_id \
             HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*)) AS n"
                .to_owned(),
        ),
        (
            "condition 4: districts whose sum of o_ol_cnt is not their number of order lines",
            "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS lines_of_orders FROM orders \
             GROUP BY o_w_id, o_d_id) AS o LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS order_lines FROM order_line \
             GROUP BY ol_w_id, ol_d_id) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id \
             WHERE lines_of_orders <> COALESCE(order_lines, 0)"
                .to_owned(),
        ),
        (
            "condition 5: orders without a carrier and a row of new_order, or with both, and rows of new_order without an order",
            "SELECT (SELECT COUNT(*) FROM orders LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id \
             AND no_o_id = o_id WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)) + \
             (SELECT COUNT(*) FROM new_order LEFT JOIN orders ON o_w_id = no_w_id AND o_d_id = no_d_id \
             AND o_id = no_o_id WHERE o_id IS NULL)"
                .to_owned(),
        ),
        (
            "condition 6: orders whose o_ol_cnt is not their number of order lines",
            "SELECT COUNT(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS order_lines \
             FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l ON ol_w_id = o_w_id AND ol_d_id = o_d_id \
             AND ol_o_id = o_id WHERE o_ol_cnt <> COALESCE(order_lines, 0)"
                .to_owned(),
        ),
        (
            "condition 7: order lines that are delivered while their order is not, or the other way round",
            "SELECT COUNT(*) FROM order_line LEFT JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id \
             AND o_id = ol_o_id WHERE o_id IS NULL OR (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"
                .to_owned(),
        ),
    ]
}

/// Conditions 8 to 12: payments, deliveries and customers.
fn last_five() -> [(&'static str, String); 5] {
    [
        (
            "condition 8: warehouses whose w_ytd is not the sum of their h_amount",
            "SELECT COUNT(*) FROM warehouse LEFT JOIN (SELECT h_w_id, SUM(h_amount) AS paid FROM history \
             GROUP BY h_w_id) AS h ON h_w_id = w_id WHERE w_ytd <> COALESCE(paid, 0)"
                .to_owned(),
        ),
        (
            "condition 9: districts whose d_ytd is not the sum of their h_amount",
            "SELECT COUNT(*) FROM district LEFT JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS paid FROM history \
             GROUP BY h_w_id, h_d_id) AS h ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> COALESCE(paid, 0)"
                .to_owned(),
        ),
        (
            "condition 10: customers whose c_balance is not what was delivered less what was paid",
            format!(
                "SELECT COUNT(*) FROM customer {DELIVERED} LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, \
                 SUM(h_amount) AS paid FROM history GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
                 ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                 WHERE c_balance <> COALESCE(amount, 0) - COALESCE(paid, 0)"
            ),
        ),
        (
            "condition 11: districts whose orders that are not open are not those of the load and the deliveries since",
            format!(
                "SELECT COUNT(*) FROM (SELECT o_w_id, o_d_id, COUNT(*) AS all_orders FROM orders \
                 GROUP BY o_w_id, o_d_id) AS o LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS open_orders \
                 FROM new_order GROUP BY no_w_id, no_d_id) AS n ON no_w_id = o_w_id AND no_d_id = o_d_id \
                 LEFT JOIN (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS deliveries FROM customer \
                 GROUP BY c_w_id, c_d_id) AS c ON c_w_id = o_w_id AND c_d_id = o_d_id \
                 WHERE all_orders - COALESCE(open_orders, 0) <> {} + COALESCE(deliveries, 0)",
                FIRST_UNDELIVERED - 1
            ),
        ),
        (
            "condition 12: customers whose c_balance + c_ytd_payment is not what was delivered",
            format!(
                "SELECT COUNT(*) FROM customer {DELIVERED} \
                 WHERE c_balance + c_ytd_payment <> COALESCE(amount, 0)"
            ),
        ),
    ]
}

/// Conditions on the supply of each warehouse since the load.
fn of_stock() -> [(&'static str, String); 3] {
    [
        (
            "stock: warehouses whose sum of s_ytd is not the quantity of the order lines that they supplied since the load",
            stock("SUM(s_ytd)", "SUM(ol_quantity)"),
        ),
        (
            "stock: warehouses whose sum of s_order_cnt is not the number of order lines that they supplied since the load",
            stock("SUM(s_order_cnt)", "COUNT(*)"),
        ),
        (
            "stock: warehouses whose sum of s_remote_cnt is not the number of order lines of other warehouses that they supplied since the load",
            stock("SUM(s_remote_cnt)", "SUM(ol_supply_w_id <> ol_w_id)"),
        ),
    ]
}

/// The sum of each customer's delivered order lines, as `amount`.
const DELIVERED: &str = "LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS amount FROM orders, order_line \
    WHERE ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id AND ol_delivery_d IS NOT NULL \
    GROUP BY o_w_id, o_d_id, o_c_id) AS l ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id";

/// Compares a sum over STOCK with one over the order lines since the load, by supplying warehouse.
fn stock(of_stock: &str, of_lines: &str) -> String {
    format!(
        "SELECT COUNT(*) FROM (SELECT s_w_id, {of_stock} AS counted FROM stock GROUP BY s_w_id) AS s \
         LEFT JOIN (SELECT ol_supply_w_id, {of_lines} AS ordered FROM order_line WHERE ol_o_id > {ORDERS} \
         GROUP BY ol_supply_w_id) AS l ON ol_supply_w_id = s_w_id WHERE counted <> COALESCE(ordered, 0)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_the_twelve_of_the_specification_and_three_of_stock() {
        let all = all();
        assert_eq!(all.len(), 15);
        for (number, condition) in (1..=12).zip(&all) {
            assert!(condition.about.starts_with(&format!("condition {number}:")), "{}", condition.about);
        }
        assert!(all[12..].iter().all(|condition| condition.about.starts_with("stock:")));
    }
}
