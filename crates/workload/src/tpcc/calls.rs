//! The calls of the stored procedures, one for each transaction.

use super::builder::{Builder, INT, KINDS, MONEY, NAME};
use super::procedures::LINES_CHARS;
use crate::session::{ParamType, Statement};

/// The calls.
#[derive(Debug, Clone)]
pub struct CallStatements {
    /// Of New-Order.
    pub new_order: Statement,
    /// Of Payment.
    pub payment: Statement,
    /// Of Order-Status.
    pub order_status: Statement,
    /// Of Delivery.
    pub delivery: Statement,
    /// Of Stock-Level.
    pub stock_level: Statement,
}

/// Adds a statement for each procedure.
pub(super) fn calls(builder: &mut Builder) -> CallStatements {
    let mut call = |kind: usize, params: &[ParamType]| {
        let name = KINDS[kind].1;
        let marks = vec!["?"; params.len()].join(", ");
        builder.add(&format!("{name}.call"), &format!("CALL tpcc_{name}({marks})"), params)
    };
    CallStatements {
        new_order: call(0, &[INT, INT, INT, INT, INT, ParamType::Bytes(LINES_CHARS)]),
        payment: call(1, &[INT, INT, INT, INT, INT, NAME, MONEY]),
        order_status: call(2, &[INT, INT, INT, NAME]),
        delivery: call(3, &[INT; 2]),
        stock_level: call(4, &[INT; 3]),
    }
}
