//! The statements of New-Order for all lines of an order at once.

use mydyno_model::record::OperationKind;

use super::builder::{Builder, INT, LINE};
use super::schema::district_info;
use super::{DISTRICTS, FEWEST_LINES, MOST_LINES};
use crate::session::Statement;

/// Statements of New-Order for all lines at once.
#[derive(Debug, Clone)]
pub struct BatchStatements {
    /// All items.
    pub items: Statement,
    /// All stock, locked, with the text for the order's district: one statement for each.
    pub stock: [Statement; DISTRICTS as usize],
    /// All rows of ORDER-LINE, by their number less [`FEWEST_LINES`].
    pub lines: [Statement; (MOST_LINES - FEWEST_LINES + 1) as usize],
}

/// Marks for parameters: `(?, ?), (?, ?)` for two groups of two.
fn marks(groups: u64, of: usize) -> String {
    let group = if of == 1 { "?".to_owned() } else { format!("({})", vec!["?"; of].join(", ")) };
    vec![group; groups as usize].join(", ")
}

/// Statements for all lines of an order. Those that read take [`MOST_LINES`] keys, of which an order with fewer lines repeats
/// its last, so that there is one statement for all lengths; lines are inserted by one statement for each length.
pub(super) fn batch(builder: &mut Builder) -> BatchStatements {
    let items =
        format!("SELECT i_id, i_price, i_name, i_data FROM item WHERE i_id IN ({})", marks(MOST_LINES, 1));
    let stock = |column: &str| {
        format!(
            "SELECT s_w_id, s_i_id, s_quantity, s_data, {column} FROM stock WHERE (s_w_id, s_i_id) IN ({}) FOR UPDATE",
            marks(MOST_LINES, 2)
        )
    };
    let lines = |count: u64| {
        let rows = vec!["(?, ?, ?, ?, ?, ?, NULL, ?, ?, ?)"; count as usize].join(", ");
        format!(
            "INSERT INTO order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
             ol_quantity, ol_amount, ol_dist_info) VALUES {rows}"
        )
    };
    let items = builder.add("new_order.items", &items, &[INT; MOST_LINES as usize]);
    let operation = builder.operation("new_order.stocks", OperationKind::Statement, &stock("s_dist_xx"));
    let stock = std::array::from_fn(|d| {
        let sql = stock(&district_info(d as u64 + 1));
        builder.statement(operation, &sql, &[INT; 2 * MOST_LINES as usize])
    });
    let operation = builder.operation("new_order.insert_lines", OperationKind::Statement, &lines(1));
    let lines = std::array::from_fn(|more| {
        let count = FEWEST_LINES + more as u64;
        let params = LINE.repeat(count as usize);
        builder.statement(operation, &lines(count), &params)
    });
    BatchStatements { items, stock, lines }
}
