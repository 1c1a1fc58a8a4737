//! The contents of a mix file.

use crate::session::ParamType;
use mydyno_tables::condition::Condition;
use mydyno_tables::generator::Generator;
use mydyno_tables::own_tables::TableSpec;

/// Maximum numbers of parameters of a statement, and of values of a transaction.
pub const MOST_PARAMS: usize = 64;
pub const MOST_VALUES: usize = 32;
/// Maximum number of sequences and unique numbers in all transactions.
pub const MOST_COUNTERS: usize = 8;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Description {
    pub about: String,
    pub think_s: f64,
    pub tables: Vec<TableSpec>,
    pub checks: Vec<Condition>,
    pub transactions: Vec<Transaction>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Transaction {
    pub weight: u64,
    /// Whether BEGIN and COMMIT enclose the statements.
    pub begin: bool,
    /// Values drawn at the start of each transaction, for the first slots.
    pub values: Vec<Generator>,
    pub statements: Vec<Statement>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Its name, as in `buy.pick`.
    pub name: String,
    /// Its position, as in `shop.toml:12:3`.
    pub place: String,
    /// Its text, with `?` for parameters.
    pub sql: String,
    pub params: Vec<Param>,
    pub repeat: u32,
    /// Slots for the values of the first row, column by column.
    pub keep: Vec<Slot>,
}

/// A value of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    pub number: u8,
    /// Bytes to reserve for a text; `None` for numbers.
    pub text: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Param {
    /// Drawn for each execution.
    Made(Generator),
    /// A value of the transaction.
    Slot(Slot),
}

impl Param {
    pub fn wire_type(&self) -> ParamType {
        let text = match self {
            Self::Made(generator) => generator.is_text().then(|| generator.longest()),
            Self::Slot(slot) => slot.text,
        };
        text.map_or(ParamType::Int, ParamType::Bytes)
    }
}
