//! The five transactions as stored procedures, for MySQL and MariaDB: the statements of the sample programs, run by the server.
//!
//! A procedure begins and commits its transaction, and answers with one result. An error ends it with the transaction open, which
//! the load then rolls back and tries again.

use std::fmt::Write as _;

use mydyno_tables::table::Routine;

use super::MOST_LINES;
use super::profile::Profile;
use super::schema::district_info;
use super::sets::of_set;

/// Names of the procedures.
pub const NAMES: [&str; 5] =
    ["tpcc_new_order", "tpcc_payment", "tpcc_order_status", "tpcc_delivery", "tpcc_stock_level"];

/// Characters of a line among the lines of an order.
const LINE_CHARS: usize = 14;
/// Characters of all lines at the most.
pub const LINES_CHARS: usize = LINE_CHARS * MOST_LINES as usize;

/// The procedures of a profile on one set of tables.
pub fn all(profile: &Profile, suffix: &str) -> Vec<Routine> {
    let bodies = [new_order(profile), payment(), order_status(), delivery(), stock_level()];
    let routine = |(name, body): (&str, String)| Routine {
        name: format!("{name}{suffix}"),
        sql: of_set(&format!("CREATE PROCEDURE {name}{body}"), suffix),
    };
    NAMES.into_iter().zip(bodies).map(routine).collect()
}

/// Ends a procedure where a row is missing, with the error of a load that finds none.
fn found(what: &str) -> String {
    format!(
        "IF v_found = 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1329, MESSAGE_TEXT = '{what} is missing'; END IF; "
    )
}

fn new_order(profile: &Profile) -> String {
    let infos = (1..=10).fold(String::new(), |mut infos, d| {
        let _ = write!(infos, " WHEN {d} THEN {}", district_info(d));
        infos
    });
    let stock = if profile.takes_remote_stock { "v_supplier" } else { "p_w" };
    let enough = if profile.keeps_ten_pieces { "v_left - v_quantity >= 10" } else { "v_left > v_quantity" };
    let sums = if profile.writes_stock_sums {
        ", s_ytd = s_ytd + v_quantity, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + (v_supplier <> p_w)"
    } else {
        ""
    };
    let taxed = if profile.taxes_lines { " * (1 + v_w_tax + v_d_tax) * (1 - v_discount)" } else { "" };
    let part = |offset: usize, length: usize| {
        format!("CAST(SUBSTRING(p_lines, (v_n - 1) * {LINE_CHARS} + {offset}, {length}) AS UNSIGNED)")
    };
    let (item, supplier, quantity) = (part(1, 6), part(7, 6), part(13, 2));
    let (head, row) = (found("a row of customer, warehouse or district"), found("a row of stock"));
    format!(
        "(p_w INT, p_d INT, p_c INT, p_count INT, p_local INT, p_lines VARCHAR({LINES_CHARS})) SQL SECURITY INVOKER \
         work: BEGIN \
         DECLARE v_o, v_item, v_supplier, v_quantity, v_left INT; \
         DECLARE v_n, v_found INT DEFAULT 1; DECLARE v_brand INT DEFAULT 0; \
         DECLARE v_discount, v_w_tax, v_d_tax DECIMAL(4,4); DECLARE v_price DECIMAL(5,2); \
         DECLARE v_amount DECIMAL(12,2); DECLARE v_sum DECIMAL(12,2) DEFAULT 0; \
         DECLARE v_i_data, v_s_data VARCHAR(50); DECLARE v_info CHAR(24); \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0; \
         START TRANSACTION; \
         SELECT c_discount, w_tax INTO v_discount, v_w_tax FROM warehouse, customer \
         WHERE w_id = p_w AND c_w_id = w_id AND c_d_id = p_d AND c_id = p_c; \
         SELECT d_next_o_id, d_tax INTO v_o, v_d_tax FROM district WHERE d_w_id = p_w AND d_id = p_d FOR UPDATE; \
         {head}\
         UPDATE district SET d_next_o_id = v_o + 1 WHERE d_w_id = p_w AND d_id = p_d; \
         INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
         VALUES (p_w, p_d, v_o, p_c, NOW(), NULL, p_count, p_local); \
         INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (p_w, p_d, v_o); \
         WHILE v_n <= p_count DO \
         SET v_item = {item}, v_supplier = {supplier}, v_quantity = {quantity}; \
         SELECT i_price, i_data INTO v_price, v_i_data FROM item WHERE i_id = v_item; \
         IF v_found = 0 THEN ROLLBACK; SELECT 0, v_sum, v_discount, v_w_tax, v_d_tax, v_brand; LEAVE work; END IF; \
         SELECT s_quantity, s_data, CASE p_d{infos} END INTO v_left, v_s_data, v_info FROM stock \
         WHERE s_w_id = {stock} AND s_i_id = v_item FOR UPDATE; \
         {row}\
         SET v_left = IF({enough}, v_left - v_quantity, v_left - v_quantity + 91); \
         UPDATE stock SET s_quantity = v_left{sums} WHERE s_w_id = {stock} AND s_i_id = v_item; \
         IF LOCATE('ORIGINAL', v_i_data) > 0 AND LOCATE('ORIGINAL', v_s_data) > 0 THEN SET v_brand = v_brand + 1; END IF; \
         SET v_amount = ROUND(v_quantity * v_price{taxed}, 2); \
         SET v_sum = v_sum + v_amount; \
         INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, ol_quantity, \
         ol_amount, ol_dist_info) VALUES (p_w, p_d, v_o, v_n, v_item, v_supplier, NULL, v_quantity, v_amount, v_info); \
         SET v_n = v_n + 1; \
         END WHILE; \
         COMMIT; \
         SELECT v_o, v_sum, v_discount, v_w_tax, v_d_tax, v_brand; \
         END"
    )
}

/// Sets `v_c`: the customer's id, by name that of the middle one (clause 2.5.2.2).
fn customer(w: &str, d: &str) -> String {
    let missing = found("a customer of this last name");
    format!(
        "SET v_c = p_c; \
         IF p_c = 0 THEN \
         SELECT COUNT(*) INTO v_n FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND c_last = p_last; \
         SET v_n = GREATEST((v_n + 1) DIV 2 - 1, 0); \
         SELECT c_id INTO v_c FROM customer WHERE c_w_id = {w} AND c_d_id = {d} AND c_last = p_last \
         ORDER BY c_first LIMIT v_n, 1; \
         {missing}\
         END IF; "
    )
}

fn payment() -> String {
    let (customer, row) = (customer("p_c_w", "p_c_d"), found("a row of customer"));
    format!(
        "(p_w INT, p_d INT, p_c_w INT, p_c_d INT, p_c INT, p_last VARCHAR(20), p_amount DECIMAL(6,2)) \
         SQL SECURITY INVOKER \
         BEGIN \
         DECLARE v_c, v_n INT; DECLARE v_found INT DEFAULT 1; DECLARE v_w_name, v_d_name VARCHAR(10); \
         DECLARE v_balance DECIMAL(12,2); DECLARE v_credit CHAR(2); DECLARE v_data VARCHAR(500); \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0; \
         START TRANSACTION; \
         UPDATE warehouse SET w_ytd = w_ytd + p_amount WHERE w_id = p_w; \
         SELECT w_name INTO v_w_name FROM warehouse WHERE w_id = p_w; \
         UPDATE district SET d_ytd = d_ytd + p_amount WHERE d_w_id = p_w AND d_id = p_d; \
         SELECT d_name INTO v_d_name FROM district WHERE d_w_id = p_w AND d_id = p_d; \
         {customer}\
         SELECT c_balance, c_credit INTO v_balance, v_credit FROM customer \
         WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c FOR UPDATE; \
         {row}\
         IF v_credit = 'BC' THEN \
         SELECT c_data INTO v_data FROM customer WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c; \
         UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount, \
         c_payment_cnt = c_payment_cnt + 1, \
         c_data = LEFT(CONCAT(v_c, ' ', p_c_d, ' ', p_c_w, ' ', p_d, ' ', p_w, ' ', p_amount, ' ', v_data), 500) \
         WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c; \
         ELSE \
         UPDATE customer SET c_balance = c_balance - p_amount, c_ytd_payment = c_ytd_payment + p_amount, \
         c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = p_c_w AND c_d_id = p_c_d AND c_id = v_c; \
         END IF; \
         INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES (p_c_w, p_c_d, v_c, p_d, p_w, NOW(), p_amount, CONCAT(v_w_name, '    ', v_d_name)); \
         COMMIT; \
         SELECT v_c, v_balance, v_credit; \
         END"
    )
}

fn order_status() -> String {
    let (customer, row) = (customer("p_w", "p_d"), found("a row of customer or an order"));
    format!(
        "(p_w INT, p_d INT, p_c INT, p_last VARCHAR(20)) SQL SECURITY INVOKER \
         BEGIN \
         DECLARE v_c, v_n, v_o INT; DECLARE v_found INT DEFAULT 1; DECLARE v_balance DECIMAL(12,2); \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0; \
         START TRANSACTION; \
         {customer}\
         SELECT c_balance INTO v_balance FROM customer WHERE c_w_id = p_w AND c_d_id = p_d AND c_id = v_c; \
         SELECT o_id INTO v_o FROM orders WHERE o_w_id = p_w AND o_d_id = p_d AND o_c_id = v_c ORDER BY o_id DESC LIMIT 1; \
         {row}\
         SELECT v_c, v_balance, v_o, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
         WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id = v_o; \
         COMMIT; \
         END"
    )
}

fn delivery() -> String {
    let row = found("a row of the order");
    format!(
        "(p_w INT, p_carrier INT) SQL SECURITY INVOKER \
         BEGIN \
         DECLARE v_o, v_c INT; DECLARE v_d, v_found INT DEFAULT 1; DECLARE v_delivered INT DEFAULT 0; \
         DECLARE v_amount DECIMAL(12,2); \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0; \
         START TRANSACTION; \
         WHILE v_d <= 10 DO \
         SET v_found = 1; \
         SELECT no_o_id INTO v_o FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d ORDER BY no_o_id LIMIT 1 FOR UPDATE; \
         IF v_found = 1 THEN \
         DELETE FROM new_order WHERE no_w_id = p_w AND no_d_id = v_d AND no_o_id = v_o; \
         SELECT o_c_id INTO v_c FROM orders WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_o; \
         UPDATE orders SET o_carrier_id = p_carrier WHERE o_w_id = p_w AND o_d_id = v_d AND o_id = v_o; \
         UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_o; \
         SELECT SUM(ol_amount) INTO v_amount FROM order_line WHERE ol_w_id = p_w AND ol_d_id = v_d AND ol_o_id = v_o; \
         {row}\
         UPDATE customer SET c_balance = c_balance + v_amount, c_delivery_cnt = c_delivery_cnt + 1 \
         WHERE c_w_id = p_w AND c_d_id = v_d AND c_id = v_c; \
         SET v_delivered = v_delivered + 1; \
         END IF; \
         SET v_d = v_d + 1; \
         END WHILE; \
         COMMIT; \
         SELECT v_delivered; \
         END"
    )
}

fn stock_level() -> String {
    let row = found("a row of district");
    format!(
        "(p_w INT, p_d INT, p_threshold INT) SQL SECURITY INVOKER \
         BEGIN \
         DECLARE v_o INT; DECLARE v_found INT DEFAULT 1; \
         DECLARE CONTINUE HANDLER FOR NOT FOUND SET v_found = 0; \
         START TRANSACTION; \
         SELECT d_next_o_id INTO v_o FROM district WHERE d_w_id = p_w AND d_id = p_d; \
         {row}\
         SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = p_w AND ol_d_id = p_d AND ol_o_id < v_o \
         AND ol_o_id >= v_o - 20 AND s_w_id = p_w AND s_i_id = ol_i_id AND s_quantity < p_threshold; \
         COMMIT; \
         END"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::profile::SPECIFICATION;

    #[test]
    fn a_procedure_does_the_work_of_its_profile_on_its_set() {
        let spec = all(&SPECIFICATION, "2");
        assert_eq!(spec.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), NAMES.map(|n| format!("{n}2")));
        assert!(spec[0].sql.contains("s_remote_cnt") && spec[0].sql.contains("FROM stock2 "));
        let hammerdb = all(&Profile::named("hammerdb"), "");
        assert!(!hammerdb[0].sql.contains("s_ytd") && hammerdb[0].sql.contains("v_left > v_quantity"));
        assert!(hammerdb[0].sql.contains("(1 - v_discount)"));
    }
}
