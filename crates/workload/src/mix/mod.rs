//! Mixes: workloads that users describe in TOML. Tables with rows from generators, weighted transactions, statements
//! with parameters.
//!
//! A mix is processed in three steps: the file is parsed, with all its mistakes at once ([`read`]); its transactions
//! are compiled to a small program ([`program`]); and the transactions of a connection execute the program ([`run`]).

mod described;
pub mod place;
mod program;
mod read;
mod run;

use mydyno_model::record::{OperationInfo, OperationKind};

use crate::options::{Default, Form, OptionError, OptionSpec, Options};
use crate::session::StatementSpec;
use crate::user_statement::{Keep, UserStatement};
use mydyno_tables::condition::Condition;
use mydyno_tables::own_tables::{OwnTables, TableSpec};
use mydyno_tables::prepare::Tuning;
use mydyno_tables::sql_text;

pub use place::MixError;
pub use run::Stream;

/// Key of a mix's tables in the mark.
pub const FAMILY: &str = "mix";

/// Options.
pub const OPTIONS: &[OptionSpec] = &[OptionSpec {
    name: "mix-file",
    form: Form::File,
    default: Default::Nothing,
    help: "the file that describes the mix",
}];

/// A mix that can be executed.
#[derive(Debug, Clone, PartialEq)]
pub struct Mix {
    /// One line about it; empty when the file has none.
    pub about: String,
    /// Pause of each connection between two transactions, in seconds; 0 without one.
    pub think_s: f64,
    tables: Vec<TableSpec>,
    checks: Vec<Condition>,
    program: program::Program,
    operations: Vec<OperationInfo>,
    statements: Vec<StatementSpec>,
    /// Position of each statement, as in `shop.toml:12:3`, and its effect.
    user_statements: Vec<UserStatement>,
    /// Hash of the file.
    content: String,
    seed: u64,
    step: u64,
}

impl Mix {
    /// The mix that the options name.
    ///
    /// # Errors
    /// The file cannot be used: all of its problems.
    pub fn new(options: &Options, seed: u64) -> Result<Self, Vec<OptionError>> {
        let impossible = OptionError::Impossible;
        let Some(file) = options.file("mix-file") else {
            return Err(vec![impossible("--mix-file must name the file that describes the mix".to_owned())]);
        };
        let name = file.path.rsplit('/').next().unwrap_or(file.path);
        let wrong = |errors: Vec<MixError>| errors.iter().map(|e| impossible(e.to_string())).collect();
        Self::parse(name, file.text, seed).map_err(wrong)
    }

    /// Parses a mix. `name` is that of the file, for messages.
    ///
    /// # Errors
    /// All mistakes, each with line and column.
    pub fn parse(name: &str, text: &str, seed: u64) -> Result<Self, Vec<MixError>> {
        let description = read::read(name, text)?;
        let mut mix = Self {
            about: description.about,
            think_s: description.think_s,
            tables: description.tables,
            checks: description.checks,
            program: program::Program::default(),
            operations: Vec::new(),
            statements: Vec::new(),
            user_statements: Vec::new(),
            content: mydyno_tables::fingerprint::short(text.as_bytes()),
            seed,
            step: 0,
        };
        mix.lay_out(description.transactions);
        Ok(mix)
    }

    /// The mix's tables in a database; `None` when it brings none.
    pub fn tables(&self, database: &str) -> Option<OwnTables> {
        (!self.tables.is_empty()).then(|| OwnTables {
            family: FAMILY,
            database: database.to_owned(),
            tables: self.tables.clone(),
            checks: self.checks.clone(),
            doubts: Vec::new(),
            of_seed: false,
            tuning: Tuning::default(),
            seed: self.seed,
        })
    }

    /// Operations, statements and the program. A mix of one statement is recorded once, as the transaction.
    fn lay_out(&mut self, transactions: Vec<described::Transaction>) {
        let single = match transactions.as_slice() {
            [only] => !only.begin && only.statements.len() == 1 && only.statements[0].repeat == 1,
            _ => false,
        };
        if !single {
            self.operation("transaction", OperationKind::Transaction, "");
        }
        let kind = if single { OperationKind::Transaction } else { OperationKind::Statement };
        let needs_begin = transactions.iter().any(|t| t.begin);
        let begin = needs_begin.then(|| self.plain("begin", "BEGIN"));
        let mut builder = program::Builder::default();
        for transaction in &transactions {
            builder.begin(transaction, begin);
            for statement in &transaction.statements {
                let number = self.statements.len() as u32;
                let operation = self.operation(&statement.name, kind, &statement.sql);
                self.statements.push(StatementSpec {
                    sql: statement.sql.clone(),
                    params: statement.params.iter().map(described::Param::wire_type).collect(),
                    operation,
                    keeps_row: !statement.keep.is_empty(),
                });
                self.user_statements.push(UserStatement {
                    place: statement.place.clone(),
                    sql: statement.sql.clone(),
                    keeps: statement
                        .keep
                        .iter()
                        .map(|k| if k.text.is_some() { Keep::Text } else { Keep::Int })
                        .collect(),
                    class: sql_text::classify(&statement.sql),
                });
                builder.statement(number, statement);
            }
            builder.end();
        }
        if needs_begin {
            builder.commit(self.plain("commit", "COMMIT"));
        }
        self.program = builder.build();
    }

    fn operation(&mut self, name: &str, kind: OperationKind, sql: &str) -> usize {
        self.operations.push(OperationInfo { name: name.to_owned(), kind, sql: sql.to_owned() });
        self.operations.len() - 1
    }

    /// Adds a statement without parameters that is not in the file, such as BEGIN.
    fn plain(&mut self, name: &str, sql: &str) -> u32 {
        let operation = self.operation(name, OperationKind::Statement, sql);
        self.statements.push(StatementSpec { sql: sql.to_owned(), operation, ..StatementSpec::default() });
        self.statements.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests;
