//! Collects the statements of the transactions and the operations under which they are recorded.

use mydyno_model::record::{OperationInfo, OperationKind};

use super::inputs::Kind;
use crate::session::{ParamType, Statement, StatementSpec};

/// The transactions in the order of their operations.
pub const KINDS: [(Kind, &str); 5] = [
    (Kind::NewOrder, "new_order"),
    (Kind::Payment, "payment"),
    (Kind::OrderStatus, "order_status"),
    (Kind::Delivery, "delivery"),
    (Kind::StockLevel, "stock_level"),
];

/// The operation of a transaction of this kind; operation 0 is a transaction of any kind.
pub fn operation(kind: Kind) -> usize {
    1 + KINDS.iter().position(|(other, _)| *other == kind).unwrap_or(0)
}

pub(super) const INT: ParamType = ParamType::Int;
/// `-9999999999.99` at the most.
pub(super) const MONEY: ParamType = ParamType::Bytes(16);
/// Not as long as an amount, which goes into a text without quotes.
pub(super) const NAME: ParamType = ParamType::Bytes(20);

/// Collects statements and operations.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// For each connection to prepare.
    pub statements: Vec<StatementSpec>,
    /// The transaction, the five kinds, the statements.
    pub operations: Vec<OperationInfo>,
}

impl Builder {
    /// With the operations of the transactions.
    pub(super) fn of_transactions() -> Self {
        let mut builder = Self::default();
        builder.operation("transaction", OperationKind::Transaction, "");
        for (_, name) in KINDS {
            builder.operation(name, OperationKind::Transaction, "");
        }
        builder
    }

    pub(super) fn operation(&mut self, name: &str, kind: OperationKind, sql: &str) -> usize {
        self.operations.push(OperationInfo { name: name.to_owned(), kind, sql: sql.to_owned() });
        self.operations.len() - 1
    }

    pub(super) fn statement(&mut self, operation: usize, sql: &str, params: &[ParamType]) -> Statement {
        // FOUND_ROWS is not in use: whether a row was there is known from results only.
        let keeps_row = sql.starts_with("SELECT") || sql.starts_with("CALL");
        let spec = StatementSpec { sql: sql.to_owned(), params: params.to_vec(), operation, keeps_row };
        self.statements.push(spec);
        Statement(self.statements.len() as u32 - 1)
    }

    /// A statement with an operation of its own.
    pub(super) fn add(&mut self, name: &str, sql: &str, params: &[ParamType]) -> Statement {
        let operation = self.operation(name, OperationKind::Statement, sql);
        self.statement(operation, sql, params)
    }
}

/// Parameters of a row of ORDER-LINE.
pub(super) const LINE: [ParamType; 9] = [INT, INT, INT, INT, INT, INT, INT, MONEY, ParamType::Bytes(24)];
