//! The statements of the transactions, one for each step of the specification's sample programs, and the operations under
//! which they are recorded.

use mydyno_model::record::{OperationInfo, OperationKind};

use super::DISTRICTS;
use super::batch::{BatchStatements, batch};
use super::builder::{Builder, INT, LINE, MONEY, NAME};
pub use super::builder::{KINDS, operation};
use super::calls::{CallStatements, calls};
use super::profile::{Form, Profile};
use super::rules::DATA_CHARS;
use super::schema::district_info;
use crate::session::{ParamType, Statement, StatementSpec};

/// Statements of New-Order.
#[derive(Debug, Clone)]
pub struct NewOrderStatements {
    /// Customer and warehouse.
    pub customer: Statement,
    /// The district, locked.
    pub district: Statement,
    /// The district's next order number.
    pub next: Statement,
    /// A row of ORDER.
    pub order: Statement,
    /// A row of NEW-ORDER.
    pub new_order: Statement,
    /// An item.
    pub item: Statement,
    /// Stock, locked, with the text for the order's district: one statement for each.
    pub stock: [Statement; DISTRICTS as usize],
    /// Stock after the line.
    pub update_stock: Statement,
    /// A row of ORDER-LINE.
    pub line: Statement,
    /// In place of the single statements for items, stock and lines.
    pub batch: Option<BatchStatements>,
}

/// Statements of Payment.
#[derive(Debug, Clone)]
pub struct PaymentStatements {
    /// W_YTD.
    pub update_warehouse: Statement,
    /// Name and address of the warehouse.
    pub warehouse: Statement,
    /// D_YTD.
    pub update_district: Statement,
    /// Name and address of the district.
    pub district: Statement,
    /// The customer, locked.
    pub customer: Statement,
    /// C_DATA of a customer of bad credit.
    pub data: Statement,
    /// The customer's sums.
    pub update_customer: Statement,
    /// The customer's sums and C_DATA.
    pub update_bad_customer: Statement,
    /// A row of HISTORY.
    pub history: Statement,
}

/// Statements of Order-Status.
#[derive(Debug, Clone)]
pub struct OrderStatusStatements {
    /// The customer.
    pub customer: Statement,
    /// The last order.
    pub order: Statement,
    /// Its lines.
    pub lines: Statement,
}

/// Statements of Delivery.
#[derive(Debug, Clone)]
pub struct DeliveryStatements {
    /// The oldest open order of a district, locked.
    pub oldest: Statement,
    /// Deletes it from NEW-ORDER.
    pub delete: Statement,
    /// Its customer.
    pub order: Statement,
    /// Its carrier.
    pub update_order: Statement,
    /// The delivery date of its lines.
    pub update_lines: Statement,
    /// The sum of its lines.
    pub amount: Statement,
    /// The customer's balance.
    pub update_customer: Statement,
}

/// Statements of Stock-Level.
#[derive(Debug, Clone)]
pub struct StockLevelStatements {
    /// The district's next order number.
    pub district: Statement,
    /// Number of items of the last 20 orders whose stock is low.
    pub count: Statement,
}

/// All statements and operations.
#[derive(Debug, Clone)]
pub struct Statements {
    /// For each connection to prepare.
    pub specs: Vec<StatementSpec>,
    /// Operations: the transaction, the five kinds, the statements.
    pub operations: Vec<OperationInfo>,
    /// In place of a driver's ping.
    pub ping: Option<Statement>,
    /// In place of all others.
    pub calls: Option<CallStatements>,
    /// BEGIN.
    pub begin: Statement,
    /// COMMIT.
    pub commit: Statement,
    /// ROLLBACK of a new order with an unused item.
    pub rollback: Statement,
    /// Numbers of the customers of a last name by their first names, of Payment and of Order-Status.
    pub by_name: [Statement; 2],
    /// Of New-Order.
    pub new_order: NewOrderStatements,
    /// Of Payment.
    pub payment: PaymentStatements,
    /// Of Order-Status.
    pub order_status: OrderStatusStatements,
    /// Of Delivery.
    pub delivery: DeliveryStatements,
    /// Of Stock-Level.
    pub stock_level: StockLevelStatements,
}

/// Name of the operation that counts rolled back new orders.
pub const ROLLBACK: &str = "new_order.rollback";

/// Name of the operation of a delivery that its terminal has queued for another connection.
pub const QUEUED: &str = "delivery.queued";

impl Statements {
    /// The operation of queueing a delivery.
    pub fn queued(&self) -> usize {
        self.operations.len() - 1
    }

    /// The statements of a profile's work in this form.
    pub fn new(form: Form, profile: &Profile) -> Self {
        let mut builder = Builder::of_transactions();
        let ping = profile.pings.then(|| builder.add("ping", "DO 0", &[]));
        let begin = builder.add("begin", "BEGIN", &[]);
        let new_order = new_order(&mut builder, form, profile);
        let rollback = builder.add(ROLLBACK, "ROLLBACK", &[]);
        let by_name = |builder: &mut Builder, transaction: &str| {
            builder.add(
                &format!("{transaction}.customers_by_name"),
                "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
                &[INT, INT, NAME],
            )
        };
        let payment_by_name = by_name(&mut builder, "payment");
        let payment = payment(&mut builder);
        let order_status_by_name = by_name(&mut builder, "order_status");
        let order_status = order_status(&mut builder);
        let delivery = delivery(&mut builder);
        let stock_level = stock_level(&mut builder);
        let commit = builder.add("commit", "COMMIT", &[]);
        let mut called = Builder::of_transactions();
        let calls = (form == Form::Procedure).then(|| calls(&mut called));
        let mut builder = if calls.is_some() { called } else { builder };
        builder.operation(QUEUED, OperationKind::Transaction, "");
        Self {
            ping: ping.filter(|_| calls.is_none()),
            calls,
            begin,
            commit,
            rollback,
            by_name: [payment_by_name, order_status_by_name],
            new_order,
            payment,
            order_status,
            delivery,
            stock_level,
            specs: builder.statements,
            operations: builder.operations,
        }
    }
}

fn new_order(builder: &mut Builder, form: Form, profile: &Profile) -> NewOrderStatements {
    let sums = "s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ?";
    let (sums, params) =
        if profile.writes_stock_sums { (format!(", {sums}"), 5) } else { (String::new(), 3) };
    let update_stock = format!("UPDATE stock SET s_quantity = ?{sums} WHERE s_w_id = ? AND s_i_id = ?");
    let stock = |column: &str| {
        format!("SELECT s_quantity, s_data, {column} FROM stock WHERE s_w_id = ? AND s_i_id = ? FOR UPDATE")
    };
    NewOrderStatements {
        customer: builder.add(
            "new_order.customer",
            "SELECT c_discount, c_last, c_credit, w_tax FROM warehouse, customer \
             WHERE w_id = ? AND c_w_id = w_id AND c_d_id = ? AND c_id = ?",
            &[INT; 3],
        ),
        district: builder.add(
            "new_order.district",
            "SELECT d_next_o_id, d_tax FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
            &[INT; 2],
        ),
        next: builder.add(
            "new_order.next_order",
            "UPDATE district SET d_next_o_id = ? WHERE d_w_id = ? AND d_id = ?",
            &[INT; 3],
        ),
        order: builder.add(
            "new_order.insert_order",
            "INSERT INTO orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local) \
             VALUES (?, ?, ?, ?, NOW(), NULL, ?, ?)",
            &[INT; 6],
        ),
        new_order: builder.add(
            "new_order.insert_new_order",
            "INSERT INTO new_order (no_w_id, no_d_id, no_o_id) VALUES (?, ?, ?)",
            &[INT; 3],
        ),
        item: builder.add(
            "new_order.item",
            "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
            &[INT],
        ),
        stock: {
            let operation = builder.operation("new_order.stock", OperationKind::Statement, &stock("s_dist_xx"));
            std::array::from_fn(|d| {
                builder.statement(operation, &stock(&district_info(d as u64 + 1)), &[INT; 2])
            })
        },
        update_stock: builder.add("new_order.update_stock", &update_stock, &vec![INT; params]),
        line: builder.add(
            "new_order.insert_line",
            "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
             ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)",
            &LINE,
        ),
        batch: (form == Form::Batched).then(|| batch(builder)),
    }
}

fn payment(builder: &mut Builder) -> PaymentStatements {
    PaymentStatements {
        update_warehouse: builder.add(
            "payment.update_warehouse",
            "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
            &[MONEY, INT],
        ),
        warehouse: builder.add(
            "payment.warehouse",
            "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM warehouse WHERE w_id = ?",
            &[INT],
        ),
        update_district: builder.add(
            "payment.update_district",
            "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
            &[MONEY, INT, INT],
        ),
        district: builder.add(
            "payment.district",
            "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM district \
             WHERE d_w_id = ? AND d_id = ?",
            &[INT; 2],
        ),
        customer: builder.add(
            "payment.customer",
            "SELECT c_balance, c_credit, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
             c_phone, c_since, c_credit_lim, c_discount FROM customer \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
            &[INT; 3],
        ),
        data: builder.add(
            "payment.customer_data",
            "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[INT; 3],
        ),
        update_customer: builder.add(
            "payment.update_customer",
            "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
             c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[MONEY, MONEY, INT, INT, INT],
        ),
        update_bad_customer: builder.add(
            "payment.update_bad_customer",
            "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, \
             c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[MONEY, MONEY, ParamType::Bytes(DATA_CHARS), INT, INT, INT],
        ),
        history: builder.add(
            "payment.insert_history",
            "INSERT INTO history (h_c_w_id, h_c_d_id, h_c_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
             VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
            &[INT, INT, INT, INT, INT, MONEY, ParamType::Bytes(24)],
        ),
    }
}

fn order_status(builder: &mut Builder) -> OrderStatusStatements {
    OrderStatusStatements {
        customer: builder.add(
            "order_status.customer",
            "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[INT; 3],
        ),
        order: builder.add(
            "order_status.last_order",
            "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? \
             ORDER BY o_id DESC LIMIT 1",
            &[INT; 3],
        ),
        lines: builder.add(
            "order_status.lines",
            "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line \
             WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            &[INT; 3],
        ),
    }
}

fn delivery(builder: &mut Builder) -> DeliveryStatements {
    DeliveryStatements {
        oldest: builder.add(
            "delivery.oldest",
            "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
            &[INT; 2],
        ),
        delete: builder.add(
            "delivery.delete",
            "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
            &[INT; 3],
        ),
        order: builder.add(
            "delivery.order",
            "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            &[INT; 3],
        ),
        update_order: builder.add(
            "delivery.update_order",
            "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
            &[INT; 4],
        ),
        update_lines: builder.add(
            "delivery.update_lines",
            "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            &[INT; 3],
        ),
        amount: builder.add(
            "delivery.amount",
            "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
            &[INT; 3],
        ),
        update_customer: builder.add(
            "delivery.update_customer",
            "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 \
             WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
            &[MONEY, INT, INT, INT],
        ),
    }
}

fn stock_level(builder: &mut Builder) -> StockLevelStatements {
    StockLevelStatements {
        district: builder.add(
            "stock_level.district",
            "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
            &[INT; 2],
        ),
        count: builder.add(
            "stock_level.count",
            "SELECT COUNT(DISTINCT s_i_id) FROM order_line, stock WHERE ol_w_id = ? AND ol_d_id = ? \
             AND ol_o_id < ? AND ol_o_id >= ? AND s_w_id = ? AND s_i_id = ol_i_id AND s_quantity < ?",
            &[INT; 6],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::profile::SPECIFICATION;

    #[test]
    fn each_kind_has_its_operation_and_each_statement_its_parameters() {
        for form in [Form::Single, Form::Batched, Form::Procedure] {
            every_statement_has_its_parameters(&Statements::new(form, &SPECIFICATION));
        }
        every_statement_has_its_parameters(&Statements::new(Form::Single, &Profile::named("hammerdb")));
    }

    fn every_statement_has_its_parameters(statements: &Statements) {
        for (kind, name) in KINDS {
            assert_eq!(statements.operations[operation(kind)].name, name);
        }
        for spec in &statements.specs {
            assert_eq!(spec.sql.matches('?').count(), spec.params.len(), "{}", spec.sql);
            assert!(statements.operations[statements.queued()].name == QUEUED);
            assert_eq!(statements.operations[spec.operation].kind, OperationKind::Statement);
        }
        let names: std::collections::BTreeSet<&str> =
            statements.operations.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names.len(), statements.operations.len());
    }
}
