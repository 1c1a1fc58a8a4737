//! `sql`: the user's own statements on existing tables.

use mydyno_model::record::{OperationInfo, OperationKind};
use mydyno_stats::rng::Rng;

use crate::data::Purpose;
use crate::draws::Draws;
use crate::options::{Default, Form, OptionError, OptionSpec, Options};
use crate::registered::{Registered, Request, Spec};
use crate::session::{Fault, Session, Statement, StatementSpec, Workload};
use crate::user_statement::UserStatement;
use mydyno_tables::sql_text::{self, Class, NotOne, Token};
use mydyno_tables::work_tables::WorkTables;

/// Options.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "sql",
        form: Form::Texts,
        default: Default::Nothing,
        help: "a statement without parameters; may be given several times, with a weight in front as in '70: SELECT 1'",
    },
    OptionSpec {
        name: "sql-file",
        form: Form::File,
        default: Default::Nothing,
        help: "a file of such statements with semicolons between them",
    },
    OptionSpec {
        name: "transaction",
        form: Form::Switch,
        default: Default::Switch(false),
        help: "ask all statements in their order, with BEGIN and COMMIT around them; else one is drawn by weight each time",
    },
    OptionSpec {
        name: "sql-protocol",
        form: Form::Choice(&["prepared", "text"]),
        default: Default::Word("prepared"),
        help: "prepare each statement once a connection, or send its text each time",
    },
];

/// Maximum weight.
const HEAVIEST: u64 = 1_000_000_000;

/// The workload with its statements.
#[derive(Debug, Clone)]
pub struct Sql {
    given: Vec<SqlStatement>,
    /// Sums of the weights up to and with each statement.
    up_to: Vec<u64>,
    transaction: bool,
    text: bool,
    seed: u64,
    operations: Vec<OperationInfo>,
    statements: Vec<StatementSpec>,
    user_statements: Vec<UserStatement>,
    begin: Statement,
    commit: Statement,
}

/// A statement of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SqlStatement {
    sql: String,
    weight: Option<u64>,
    place: String,
    operation: usize,
    statement: Statement,
}

/// The transactions of one connection.
pub type Stream = Draws<Rng>;

impl Sql {
    /// The workload with these options.
    ///
    /// # Errors
    /// Every text that is not exactly one statement or has parameters, and inconsistent options.
    pub fn new(options: &Options, seed: u64) -> Result<Self, Vec<OptionError>> {
        let (given, mut problems) = given(options);
        let transaction = options.switch("transaction");
        if given.is_empty() && problems.is_empty() {
            problems.push("--sql or --sql-file must give a statement".to_owned());
        }
        if transaction && given.iter().any(|g| g.weight.is_some()) {
            problems
                .push("--transaction asks every statement once, so that weights make no sense".to_owned());
        }
        let mut sum = 0;
        let up_to: Vec<u64> = given
            .iter()
            .map(|g| {
                sum += g.weight.unwrap_or(1);
                sum
            })
            .collect();
        if sum == 0 && !given.is_empty() {
            problems.push("--sql: at least one weight must be above 0".to_owned());
        }
        if !problems.is_empty() {
            return Err(problems.into_iter().map(OptionError::Impossible).collect());
        }
        let mut sql = Self {
            given,
            up_to,
            transaction,
            text: options.word("sql-protocol") == "text",
            seed,
            operations: Vec::new(),
            statements: Vec::new(),
            user_statements: Vec::new(),
            begin: Statement(0),
            commit: Statement(0),
        };
        sql.lay_out();
        Ok(sql)
    }

    /// Operations and statements. A single statement is recorded once, as the transaction.
    fn lay_out(&mut self) {
        let single = self.given.len() == 1 && !self.transaction;
        if !single {
            self.operation("transaction", OperationKind::Transaction, "");
        }
        if self.transaction {
            self.begin = self.plain("begin", "BEGIN");
        }
        let kind = if single { OperationKind::Transaction } else { OperationKind::Statement };
        let mut given = std::mem::take(&mut self.given);
        for (number, given) in given.iter_mut().enumerate() {
            given.operation = self.operation(&format!("statement_{}", number + 1), kind, &given.sql);
            given.statement = Statement(self.statements.len() as u32);
            if !self.text {
                self.statements.push(StatementSpec {
                    sql: given.sql.clone(),
                    params: Vec::new(),
                    operation: given.operation,
                    ..StatementSpec::default()
                });
            }
            self.user_statements.push(UserStatement {
                place: given.place.clone(),
                sql: given.sql.clone(),
                keeps: Vec::new(),
                class: sql_text::classify(&given.sql),
            });
        }
        self.given = given;
        if self.transaction {
            self.commit = self.plain("commit", "COMMIT");
        }
    }

    fn operation(&mut self, name: &str, kind: OperationKind, sql: &str) -> usize {
        self.operations.push(OperationInfo { name: name.to_owned(), kind, sql: sql.to_owned() });
        self.operations.len() - 1
    }

    fn plain(&mut self, name: &str, sql: &str) -> Statement {
        let operation = self.operation(name, OperationKind::Statement, sql);
        self.statements.push(StatementSpec { sql: sql.to_owned(), operation, ..StatementSpec::default() });
        Statement(self.statements.len() as u32 - 1)
    }

    async fn send<S: Session>(&self, given: &SqlStatement, session: &mut S) -> Result<(), Fault> {
        if self.text {
            session.query(given.operation, given.sql.as_bytes()).await?;
        } else {
            session.execute(given.statement, &[]).await?;
        }
        Ok(())
    }
}

/// The statements of all options, and their mistakes.
fn given(options: &Options) -> (Vec<SqlStatement>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (number, text) in options.texts("sql").into_iter().enumerate() {
        one(text, format!("--sql (the {}.)", number + 1), &mut found, &mut problems);
    }
    if let Some(file) = options.file("sql-file") {
        for (text, at) in split(file.text) {
            let (line, _) = crate::mix::place::line_and_column(file.text, at);
            one(text, format!("{}:{line}", file.path), &mut found, &mut problems);
        }
    }
    (found, problems)
}

/// Adds one statement with its weight, or records its mistake.
fn one(text: &str, place: String, found: &mut Vec<SqlStatement>, problems: &mut Vec<String>) {
    let (weight, text) = match weighted(text) {
        Ok(parts) => parts,
        Err(weight) => {
            problems.push(format!("{place}: the weight {weight} is above {HEAVIEST}"));
            return;
        }
    };
    let sql = match sql_text::single(text) {
        Ok(sql) => sql.to_owned(),
        Err(NotOne::Empty) => {
            problems.push(format!("{place}: there is no statement in {text:?}"));
            return;
        }
        Err(NotOne::Several(_)) => {
            problems.push(format!(
                "{place}: several statements in one text: give --sql once each, or put them in a --sql-file"
            ));
            return;
        }
    };
    let tokens = sql_text::tokens(&sql);
    if tokens.iter().any(|(token, _)| *token == Token::Parameter) {
        problems
            .push(format!("{place}: `?` has no value here: parameters need a mix (docs/guides/mixes.md)"));
        return;
    }
    if let Some((Token::Word(word), _)) = tokens.first()
        && ["BEGIN", "START", "COMMIT", "ROLLBACK"].iter().any(|w| w.eq_ignore_ascii_case(word))
    {
        problems.push(format!("{place}: BEGIN and COMMIT are set by --transaction"));
        return;
    }
    found.push(SqlStatement { sql, weight, place, operation: 0, statement: Statement(0) });
}

/// Splits `70: SELECT 1` into a weight and a statement. No statement begins with a number and a colon.
fn weighted(text: &str) -> Result<(Option<u64>, &str), &str> {
    let trimmed = text.trim_start();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = trimmed.split_at(digits);
    match rest.trim_start().strip_prefix(':') {
        Some(sql) if digits > 0 => {
            let weight = number.parse().ok().filter(|weight| *weight <= HEAVIEST).ok_or(number)?;
            Ok((Some(weight), sql))
        }
        _ => Ok((None, text)),
    }
}

/// Statements separated by semicolons, with their positions; empty ones are skipped.
fn split(text: &str) -> Vec<(&str, usize)> {
    let tokens = sql_text::tokens(text);
    let mut statements = Vec::new();
    for part in tokens.split(|(token, _)| *token == Token::Mark(';')) {
        if let (Some((_, first)), Some((_, last))) = (part.first(), part.last()) {
            statements.push((&text[first.start..last.end], first.start));
        }
    }
    statements
}

/// Entries in the catalogue.
const SPECS: &[Spec] = &[Spec {
    name: "sql",
    summary: "your own statements on your own tables",
    transaction: "1 of the given statements, drawn by weight; with --transaction all of them, BEGIN and COMMIT around",
    options: OPTIONS,
    example: "--sandbox --sql 'SELECT 1' --connections 1,4,16 --time 10s",
}];

impl Registered for Sql {
    const SPECS: &'static [Spec] = SPECS;

    fn build(request: &Request<'_>) -> Result<(Self, WorkTables), Vec<OptionError>> {
        let tables = WorkTables::Users(request.database.to_owned());
        Ok((Self::new(request.options, request.seed)?, tables))
    }

    fn user_statements(&self) -> &[UserStatement] {
        &self.user_statements
    }
}

impl Workload for Sql {
    type Stream = Stream;

    fn operations(&self) -> &[OperationInfo] {
        &self.operations
    }

    fn statements(&self) -> &[StatementSpec] {
        &self.statements
    }

    fn stream(&self, connection: u64) -> Stream {
        Draws::new(Rng::stream(self.seed, &[Purpose::Operations as u64, connection]))
    }

    fn transactional(&self) -> bool {
        self.transaction
    }

    fn writes(&self) -> bool {
        self.user_statements.iter().any(|statement| statement.class != Class::Reads)
    }

    async fn transaction<S: Session>(&self, stream: &mut Stream, session: &mut S) -> Result<(), Fault> {
        if self.transaction {
            session.execute(self.begin, &[]).await?;
            for given in &self.given {
                self.send(given, session).await?;
            }
            session.execute(self.commit, &[]).await?;
            return Ok(());
        }
        let chosen = match self.up_to.as_slice() {
            [_] => 0,
            sums => {
                let drawn = stream.current.below(sums[sums.len() - 1]);
                sums.partition_point(|sum| *sum <= drawn)
            }
        };
        self.send(&self.given[chosen], session).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::replay;

    fn sql(given: &[(&str, &str)]) -> Result<Sql, Vec<String>> {
        let given: Vec<(String, String)> =
            given.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        let options = Options::resolve("sql", OPTIONS, &given).unwrap();
        Sql::new(&options, 1).map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    fn sent(sql: &Sql, transactions: usize) -> Vec<String> {
        let mut sent = Vec::new();
        replay(sql, 0, transactions, &mut |a| sent.push(String::from_utf8_lossy(a.sql).into_owned()));
        sent
    }

    #[test]
    fn a_single_statement_is_the_transaction() {
        let one = sql(&[("sql", " SELECT 1; ")]).unwrap();
        assert_eq!(sent(&one, 2), ["SELECT 1", "SELECT 1"]);
        assert_eq!(one.operations().len(), 1);
        assert!(!one.transactional() && !one.writes());
    }

    #[test]
    fn statements_come_as_often_as_their_weights_say() {
        let two = sql(&[("sql", "3: SELECT 1"), ("sql", "1:SELECT 2")]).unwrap();
        let all = sent(&two, 20_000);
        let rare = all.iter().filter(|s| *s == "SELECT 2").count();
        // A quarter of 20,000; five standard errors are 306.
        assert!(rare.abs_diff(5_000) < 306, "{rare}");
    }

    #[test]
    fn a_transaction_asks_every_statement_in_its_order() {
        let all = [("sql", "UPDATE a SET b = 1"), ("sql", "SELECT 2"), ("transaction", "on")];
        let transaction = sql(&all).unwrap();
        assert_eq!(sent(&transaction, 1), ["BEGIN", "UPDATE a SET b = 1", "SELECT 2", "COMMIT"]);
        assert!(transaction.transactional() && transaction.writes());
    }

    #[test]
    fn the_text_protocol_prepares_nothing_of_the_users() {
        let text = sql(&[("sql", "SELECT 1"), ("sql-protocol", "text")]).unwrap();
        assert!(text.statements().is_empty());
        assert_eq!(sent(&text, 1), ["SELECT 1"]);
    }

    #[test]
    fn a_file_holds_statements_between_semicolons() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sql");
        let text = "-- reads\n70: SELECT ';' AS a;\n\n;\n30: SELECT 2 /* last; */\n";
        std::fs::write(&path, text).unwrap();
        let file = sql(&[("sql-file", path.to_str().unwrap())]).unwrap();
        let places: Vec<(&str, &str)> = file
            .user_statements()
            .iter()
            .map(|a| (a.sql.as_str(), a.place.rsplit('/').next().unwrap()))
            .collect();
        assert_eq!(places, [("SELECT ';' AS a", "s.sql:2"), ("SELECT 2", "s.sql:5")]);
        assert_eq!(file.up_to, [70, 100]);
    }

    #[test]
    fn every_statement_that_cannot_be_sent_is_named() {
        let problems = sql(&[
            ("sql", "SELECT 1; SELECT 2"),
            ("sql", "SELECT ?"),
            ("sql", "BEGIN"),
            ("sql", " "),
            ("sql", "99999999999: SELECT 1"),
        ])
        .unwrap_err();
        for (problem, reported) in problems.iter().zip([
            "several statements",
            "need a mix",
            "--transaction",
            "no statement",
            "weight",
        ]) {
            assert!(problem.contains(reported), "{reported}: {problem}");
        }
        assert_eq!(problems.len(), 5);
        assert!(sql(&[]).unwrap_err()[0].contains("must give a statement"));
        let weights = [("sql", "2: SELECT 1"), ("transaction", "on")];
        assert!(sql(&weights).unwrap_err()[0].contains("make no sense"));
    }

    #[test]
    fn the_first_operations_stay_what_they_are() {
        let two = sql(&[("sql", "3: SELECT 1"), ("sql", "1:SELECT 2")]).unwrap();
        crate::golden::same("sql.txt", &crate::golden::stream(&two, 12));
    }
}
