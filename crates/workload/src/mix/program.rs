//! Compiled transactions: a table of operations that is executed without look-ups by name.

use super::described::{Param, Slot, Statement as Described, Transaction};
use mydyno_tables::generator::Generator;

/// The source of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Source {
    /// Drawn for each execution, with the number of its counter if it needs one.
    Made(Generator, Option<u8>),
    /// A value of the transaction, a number.
    Number(u8),
    /// A value of the transaction, a text.
    Text(u8),
}

/// One step of a transaction: a statement with its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedStatement {
    /// Its number.
    pub statement: u32,
    /// Its parameters.
    pub sources: Box<[Source]>,
    /// Number of repetitions.
    pub repeat: u32,
    /// Slots for the values of the first row.
    pub keep: Box<[Slot]>,
}

/// A transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// Number of BEGIN, if it has one.
    pub begin: Option<u32>,
    /// Values drawn at its start, for the first slots.
    pub values: Box<[Source]>,
    /// Its statements.
    pub statements: Box<[PlannedStatement]>,
}

/// All transactions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// The transactions.
    pub paths: Box<[Path]>,
    /// Sums of their weights up to and with each.
    pub up_to: Box<[u64]>,
    /// Number of COMMIT, if any transaction has one.
    pub commit: Option<u32>,
}

/// Builds a program.
#[derive(Debug, Default)]
pub struct Builder {
    paths: Vec<Path>,
    up_to: Vec<u64>,
    commit: Option<u32>,
    counters: u8,
    statements: Vec<PlannedStatement>,
}

impl Builder {
    fn source(&mut self, generator: &Generator) -> Source {
        let counted = matches!(generator, Generator::Sequence { .. } | Generator::Unique);
        let counter = counted.then_some(self.counters);
        self.counters += u8::from(counted);
        Source::Made(generator.clone(), counter)
    }

    /// Begins a transaction.
    pub fn begin(&mut self, transaction: &Transaction, begin: Option<u32>) {
        let values = transaction.values.iter().map(|generator| self.source(generator)).collect();
        let begin = begin.filter(|_| transaction.begin);
        let sum = self.up_to.last().copied().unwrap_or(0) + transaction.weight;
        self.up_to.push(sum);
        self.paths.push(Path { begin, values, statements: Box::default() });
    }

    /// Adds a statement to it.
    pub fn statement(&mut self, number: u32, described: &Described) {
        let sources = described
            .params
            .iter()
            .map(|param| match param {
                Param::Made(generator) => self.source(generator),
                Param::Slot(Slot { number, text: None }) => Source::Number(*number),
                Param::Slot(Slot { number, text: Some(_) }) => Source::Text(*number),
            })
            .collect();
        let keep = described.keep.as_slice().into();
        self.statements.push(PlannedStatement { statement: number, sources, repeat: described.repeat, keep });
    }

    /// Ends the transaction.
    pub fn end(&mut self) {
        if let Some(path) = self.paths.last_mut() {
            path.statements = std::mem::take(&mut self.statements).into();
        }
    }

    /// Sets the statement that is COMMIT.
    pub fn commit(&mut self, number: u32) {
        self.commit = Some(number);
    }

    /// The program.
    pub fn build(self) -> Program {
        Program { paths: self.paths.into(), up_to: self.up_to.into(), commit: self.commit }
    }
}
