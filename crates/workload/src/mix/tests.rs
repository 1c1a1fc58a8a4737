//! Mixes: reading of files, their mistakes, and the statements of transactions.

use std::fmt::Write as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use mydyno_wire::Value;
use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::registered::Registered as _;
use crate::session::{Answer, Fault, Kept, Param, Session, Statement, TransactionStream as _, Workload};

const SHOP: &str = include_str!("../../../../workloads/shop.toml");
const QUEUE: &str = include_str!("../../../../workloads/queue.toml");
const TIMELINE: &str = include_str!("../../../../workloads/timeline.toml");

/// Records the statements; answers each query for a row with `row`.
struct Notes<'a> {
    mix: &'a Mix,
    row: Option<Vec<Value>>,
    text: String,
}

impl Notes<'_> {
    fn note(&mut self, statement: Statement, params: &[Param<'_>]) {
        let spec = &self.mix.statements()[statement.0 as usize];
        let _ = write!(self.text, "{}", self.mix.operations()[spec.operation].name);
        for param in params {
            let _ = match param {
                Param::Int(n) => write!(self.text, " {n}"),
                Param::Double(x) => write!(self.text, " {x}"),
                Param::Bytes(bytes) => write!(self.text, " '{}'", String::from_utf8_lossy(bytes)),
                Param::Null => write!(self.text, " NULL"),
            };
        }
        self.text.push('\n');
    }
}

impl Session for Notes<'_> {
    async fn execute(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Answer, Fault> {
        self.note(statement, params);
        Ok(Answer { rows: 1, affected_rows: 1 })
    }

    async fn execute_keeping(&mut self, statement: Statement, params: &[Param<'_>]) -> Result<Kept, Fault> {
        self.note(statement, params);
        Ok(Kept { answer: Answer { rows: 1, affected_rows: 0 }, row: self.row.clone() })
    }

    async fn query(&mut self, _: usize, _: &[u8]) -> Result<Answer, Fault> {
        Ok(Answer::default())
    }
}

fn run_once(mix: &Mix, stream: &mut Stream, row: Option<Vec<Value>>) -> String {
    let mut notes = Notes { mix, row, text: String::new() };
    {
        let sent = pin!(mix.transaction(stream, &mut notes));
        let done = sent.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(done, Poll::Ready(Ok(()))));
    }
    notes.text
}

fn problems(text: &str) -> Vec<String> {
    Mix::parse("m.toml", text, 1).unwrap_err().iter().map(ToString::to_string).collect()
}

fn one(body: &str) -> Mix {
    Mix::parse("m.toml", &format!("[transactions.t]\n{body}"), 1).unwrap()
}

#[test]
fn the_first_operations_of_the_examples_stay_what_they_are() {
    let mut text = String::new();
    for (name, file) in [("shop", SHOP), ("queue", QUEUE), ("timeline", TIMELINE)] {
        let mix = Mix::parse(name, file, 1).unwrap();
        for connection in [0, 1] {
            let _ = writeln!(text, "# {name}, connection {connection}");
            let mut stream = mix.stream(connection);
            for _ in 0..8 {
                text.push_str(&run_once(&mix, &mut stream, Some(vec![Value::Int(42)])));
            }
        }
    }
    crate::golden::same("mixes.txt", &text);
}

#[test]
fn every_mistake_of_a_file_is_told_at_once_with_its_place() {
    let text = "\
abot = 'a shop'

[tables.item]
create = 'CREATE TABLE thing (id INT)'
rows = -1
[tables.item.columns]
id = { unifrom = [1, 2] }
price = { uniform = [9, 1] }

[transactions.buy]
wieght = 3
values = { item = { zipfian = 'itme' }, n = { choice = [1, 'a'] } }
[[transactions.buy.statements]]
sql = 'SELECT 1; SELECT 2'
[[transactions.buy.statements]]
sql = 'SELECT a FROM item WHERE id = :itm'
[[transactions.buy.statements]]
sql = 'SELECT a FROM item WHERE id = ? AND b = ?'
params = [1]
";
    assert_eq!(
        problems(text),
        [
            "m.toml:1:1: a mix has no key \"abot\": did you mean about?",
            "m.toml:4:10: this should be CREATE TABLE item (…)",
            "m.toml:5:8: -1 is not a whole number from 0 to 10000000000",
            "m.toml:7:8: a generator has no key \"unifrom\": did you mean uniform?",
            "m.toml:8:21: a range goes upward: [1, 9]",
            "m.toml:11:1: a transaction has no key \"wieght\": did you mean weight?",
            "m.toml:12:31: the mix has no table \"itme\" (did you mean \"item\"?): give [lowest, highest] or a table",
            "m.toml:12:56: a choice is a list of texts, or of whole numbers",
            "m.toml:14:7: these are several statements: give one at a time",
            "m.toml:16:7: nothing gives :itm a value: name it in `values`, or in `keep` of an earlier statement, did you mean :item?",
            "m.toml:19:10: the statement has 2 `?` and 1 params",
        ]
    );
}

/// A mix with this in place of a table, a value, a statement or all of it.
fn with(table: &str, values: &str, statement: &str) -> String {
    format!("{table}\n[transactions.t]\nvalues = {{ {values} }}\nstatements = [\n{statement}\n]\n")
}

/// Checks that each text has one mistake, with this position and beginning.
fn check_mistakes(cases: Vec<(String, &str)>) {
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let mut problems = problems(&text);
        // Each mistake is reported once, apart from the one that a mix with nothing else has.
        if problems.len() > 1 {
            problems.retain(|p| !p.contains("a mix needs a transaction"));
        }
        if problems.len() != 1 || !problems[0].starts_with(&format!("m.toml:{expected}")) {
            wrong.push(format!("{text}\nexpected {expected}\n{problems:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn many(what: &str, count: usize) -> String {
    vec![what; count].join(", ")
}

#[test]
fn mistakes_of_a_file_and_its_transactions_have_line_and_column() {
    check_mistakes(vec![
        ("about = 1".to_owned(), "1:9: integer where a text is expected"),
        ("think_time = '5 parsecs'".to_owned(), "1:14: "),
        ("tables = 1".to_owned(), "1:10: integer where a table is expected"),
        ("checks = 1".to_owned(), "1:10: integer where a list is expected"),
        (
            "checks = [{ sql = 'DELETE FROM a', about = 'x', expect = 1 }]".to_owned(),
            "1:19: a check only reads",
        ),
        ("checks = [{ sql = 'SELECT 1', expect = 1 }]".to_owned(), "1:11: a check needs about"),
        ("".to_owned(), "1:1: a mix needs a transaction"),
        ("[transactions.t]\nweight = 1".to_owned(), "1:15: a transaction needs statements"),
        ("[transactions.t]\nstatements = []".to_owned(), "1:15: a transaction needs a statement"),
        (
            "[transactions.t]\nweight = 0\nstatements = [{ sql = 'SELECT 1' }]".to_owned(),
            "1:15: at least one transaction needs a weight above 0",
        ),
        (
            "[transactions.t]\nweight = -1\nstatements = [{ sql = 'SELECT 1' }]".to_owned(),
            "2:10: -1 is not a whole number from 0",
        ),
        (
            "[transactions.t]\nbegin = 'yes'\nstatements = [{ sql = 'SELECT 1' }]".to_owned(),
            "2:9: string where true or false is expected",
        ),
        (
            "[tables.'a b']\ncreate = 'CREATE TABLE `a b` (id INT)'".to_owned(),
            "1:9: \"a b\" is not a name for a table",
        ),
        ("[tables.a]\nrows = 1".to_owned(), "1:9: a table needs create"),
    ]);
}

#[test]
fn mistakes_of_a_table_have_line_and_column() {
    let table = |rest: &str| {
        with(&format!("[tables.a]\ncreate = 'CREATE TABLE a (id INT)'\n{rest}"), "", "{ sql = 'SELECT 1' }")
    };
    check_mistakes(vec![
        (table("rows = 1.5"), "3:8: float where a whole number is expected"),
        (table("rows = 99999999999999999999"), "3:8: the number does not fit 64 bits"),
        (table("rows = 5"), "1:9: table a has rows: [tables.a.columns] must say what is in them"),
        (
            table("rows = 5\n[tables.a.columns]\nid = { value = 'x' }"),
            "5:16: \"x\" can only be used in `params`",
        ),
        (table("rows = 5\n[tables.a.columns]\nid = 1.5"), "5:6: float is not a value"),
        (table("after = ['']"), "3:10: there is no statement in this text"),
        (table("after = ['DROP TABLE a']"), "3:10: after the rows may come"),
    ]);
}

#[test]
fn mistakes_of_a_value_have_line_and_column() {
    let value = |value: &str| with("", &format!("v = {value}"), "{ sql = 'SELECT :v' }");
    let names: Vec<String> = (0..33).map(|n| format!("v{n} = 1")).collect();
    check_mistakes(vec![
        (value("{ uniform = [1] }"), "3:28: a range is [lowest, highest]"),
        (value("{ uniform = [2, 1] }"), "3:28: a range goes upward: [1, 2]"),
        (value("{ uniform = [1, 2], zipfian = [1, 2] }"), "3:16: a generator has exactly one of"),
        (value("{ uniform = [1, 2], exponent = 1 }"), "3:36: a uniform generator has no key \"exponent\""),
        (value("{ zipfian = [1, 2], exponent = 0 }"), "3:47: an exponent lies above 0"),
        (value("{ zipfian = [1, 2], exponent = 'x' }"), "3:47: string where a number is expected"),
        (value("{ zipfian = [0, 9007199254740992] }"), "3:28: a zipfian range has at most 2^52 numbers"),
        (value("{ unique = false }"), "3:27: write unique = true"),
        (value("{ alphanumeric = 65536 }"), "3:33: lengths lie between 0 and 65535"),
        (value("{ choice = [] }"), "3:27: a choice is a list of texts"),
        (value("{ choice = [1, 'a'] }"), "3:27: a choice is a list of texts"),
        (value("{ choice = [1, 2], weights = [1] }"), "3:45: weights are 2 numbers"),
        (value("{ choice = [1], weights = [0] }"), "3:27: a choice needs a weight above 0"),
        (with("", &names.join(", "), "{ sql = 'SELECT 1' }"), "3:"),
    ]);
}

#[test]
fn mistakes_of_a_statement_have_line_and_column() {
    let statement = |statement: &str| with("", "", statement);
    check_mistakes(vec![
        (statement("1"), "5:1: integer where a table is expected"),
        (statement("{ sql = 'BEGIN' }"), "5:9: BEGIN and COMMIT are set by the transaction's `begin = true`"),
        (statement("{ sql = 'SELECT 1', repeat = 0 }"), "5:30: 0 is not a whole number from 1 to 100000"),
        (
            statement("{ sql = 'SELECT ?' }"),
            "5:9: the statement has 1 `?`: `params` must say what goes there",
        ),
        (statement("{ sql = 'SELECT :x' }"), "5:9: nothing gives :x a value"),
        (
            statement(&format!("{{ sql = 'SELECT {}', params = [{}] }}", many("?", 65), many("1", 65))),
            "5:9: a statement has at most 64 parameters",
        ),
        (
            statement("{ sql = 'SELECT 1', keep = { a = 'real' } }"),
            "5:34: a kept column is \"int\" or \"text\"",
        ),
        (
            statement(
                "{ sql = 'SELECT 1, 2', keep = { v = 'int' } },\n{ sql = 'SELECT 1', keep = { v = 'int' } }",
            ),
            "6:30: this transaction has a value \"v\" already",
        ),
        (
            statement(&format!(
                "{{ sql = 'SELECT {}', params = [{}] }}",
                many("?", 9),
                many("{ unique = true }", 9)
            )),
            "5:",
        ),
    ]);
}

#[test]
fn what_is_no_toml_is_told_with_its_place_too() {
    let problems = problems("about = 'a\n[tables.item\nrows = 1 2\n");
    assert!(problems.len() >= 2, "{problems:?}");
    assert!(problems[0].starts_with("m.toml:1:"), "{problems:?}");
}

#[test]
fn a_file_cannot_reach_into_other_databases_while_it_prepares() {
    let with = |create: &str, after: &str| {
        problems(&format!(
            "[tables.a]\ncreate = \"{create}\"\nafter = [\"{after}\"]\n[transactions.t]\nstatements = [{{ sql = 'SELECT 1' }}]"
        ))
    };
    let fine = ("CREATE TABLE a (id INT)", "CREATE INDEX i ON a (id)");
    for (create, after, reported) in [
        ("CREATE TABLE a AS SELECT * FROM prod.a", fine.1, "\"prod\" looks like another database"),
        ("DROP DATABASE prod", fine.1, "this should be CREATE TABLE a"),
        (fine.0, "DROP DATABASE prod", "after the rows may come"),
        (fine.0, "CREATE USER evil", "after the rows may come"),
        (fine.0, "CREATE INDEX i ON prod.a (id)", "\"prod\" looks like another database"),
        (fine.0, "CREATE INDEX i ON theirs (id)", "the mix has no table \"theirs\""),
        (fine.0, "ALTER DATABASE prod READ ONLY = 1", "after the rows may come"),
        (fine.0, "ALTER USER root IDENTIFIED BY ''", "after the rows may come"),
        (fine.0, "ALTER EVENT e DISABLE", "after the rows may come"),
        (fine.0, "ALTER TABLE theirs ADD c INT", "the mix has no table \"theirs\""),
        (fine.0, "ALTER TABLE a RENAME TO prod.a", "\"prod\" looks like another database"),
        (fine.0, "ALTER TABLE a /*! RENAME TO prod.a */", "a comment that servers execute"),
        (fine.0, "ANALYZE UPDATE a SET id = 1", "after the rows may come"),
        (fine.0, "DELETE FROM theirs", "the mix has no table \"theirs\""),
        ("CREATE TABLE a LIKE prod.a", fine.1, "\"prod\" looks like another database"),
        (fine.0, "DELETE FROM prod.a", "\"prod\" looks like another database"),
        (fine.0, "/*! DROP DATABASE prod */", "after the rows may come"),
    ] {
        let problems = with(create, after);
        assert!(problems.len() == 1 && problems[0].contains(reported), "{create}; {after}: {problems:?}");
    }
}

#[test]
fn named_values_are_drawn_once_and_marks_each_time() {
    let mix = one("values = { a = { unique = true } }
statements = [
  { name = 'x', sql = 'SELECT :a, :a', repeat = 2 },
  { name = 'y', sql = 'SELECT ?, ?', params = [{ sequence = 5 }, { value = 'a' }] },
]");
    let mut stream = mix.stream(3);
    let first = run_once(&mix, &mut stream, None);
    let second = run_once(&mix, &mut stream, None);
    let lines: Vec<&str> = first.lines().collect();
    assert_eq!(lines.len(), 5, "{first}");
    let unique = lines[1].rsplit(' ').next().unwrap();
    assert_eq!(
        lines,
        [
            "begin",
            &format!("t.x {unique} {unique}"),
            &format!("t.x {unique} {unique}"),
            &format!("t.y 5 {unique}"),
            "commit"
        ]
    );
    assert!(second.contains("t.y 6 ") && !second.contains(unique), "{second}");
}

#[test]
fn a_result_gives_values_to_later_statements_and_ends_the_transaction_without_a_row() {
    let mix = one("statements = [
  { name = 'x', sql = 'SELECT id, note FROM a', keep = { id = 'int', note = 'text' } },
  { name = 'y', sql = 'SELECT :note, :id' },
]");
    let row = vec![Value::UInt(7), Value::Bytes(b"so so".to_vec())];
    let sent = run_once(&mix, &mut mix.stream(0), Some(row));
    assert_eq!(sent, "begin\nt.x\nt.y 'so so' 7\ncommit\n");
    let nulls = run_once(&mix, &mut mix.stream(0), Some(vec![Value::Null, Value::Null]));
    assert_eq!(nulls, "begin\nt.x\nt.y NULL NULL\ncommit\n");
    assert_eq!(run_once(&mix, &mut mix.stream(0), None), "begin\nt.x\ncommit\n");
}

#[test]
fn a_single_statement_is_recorded_once_as_the_transaction() {
    let mix = one("statements = [{ name = 'x', sql = 'SELECT 1' }]");
    assert_eq!(mix.operations().len(), 1);
    assert_eq!(mix.operations()[0].kind, OperationKind::Transaction);
    assert!(!mix.transactional() && !mix.writes());
    let begun = one("begin = true\nstatements = [{ name = 'x', sql = 'SELECT 1' }]");
    assert_eq!(begun.operations().len(), 4);
    assert!(begun.transactional());
}

#[test]
fn transactions_come_as_often_as_their_weights_say() {
    let mix = Mix::parse(
        "m.toml",
        "[transactions.a]\nweight = 3\nstatements = [{ name = 'x', sql = 'SELECT 1' }]\n\
         [transactions.b]\nweight = 1\nstatements = [{ name = 'x', sql = 'SELECT 2' }]\n",
        1,
    )
    .unwrap();
    let mut stream = mix.stream(0);
    let rare = (0..20_000).filter(|_| run_once(&mix, &mut stream, None).starts_with("b.x")).count();
    // A quarter of 20,000; five standard errors are 306.
    assert!(rare.abs_diff(5_000) < 306, "{rare}");
}

#[test]
fn a_transaction_that_is_tried_again_asks_the_same() {
    let mix = Mix::parse("queue", QUEUE, 1).unwrap();
    let mut stream = mix.stream(0);
    for _ in 0..50 {
        stream.begin();
        let first = run_once(&mix, &mut stream, Some(vec![Value::Int(1)]));
        stream.redraw();
        assert_eq!(first, run_once(&mix, &mut stream, Some(vec![Value::Int(1)])));
    }
}

#[test]
fn the_same_seed_gives_each_connection_the_same_stream_and_others_another() {
    let mix = |seed| Mix::parse("shop", SHOP, seed).unwrap();
    let of = |mix: &Mix, connection| {
        let mut stream = mix.stream(connection);
        (0..20).map(|_| run_once(mix, &mut stream, Some(vec![Value::Int(1)]))).collect::<String>()
    };
    assert_eq!(of(&mix(1), 5), of(&mix(1), 5));
    assert_ne!(of(&mix(1), 5), of(&mix(1), 6));
    assert_ne!(of(&mix(1), 5), of(&mix(2), 5));
}

proptest! {
    #[test]
    fn any_text_is_a_mix_or_told_why_not(text in ".{0,200}") {
        if let Err(errors) = Mix::parse("m.toml", &text, 1) {
            prop_assert!(!errors.is_empty());
            let lines = text.matches('\n').count() + 1;
            prop_assert!(errors.iter().all(|e| e.line >= 1 && e.line <= lines && e.column >= 1));
        }
    }

    /// The cost of a file is bounded by its length: mistakes beyond a hundred are only counted.
    #[test]
    fn mistakes_beyond_a_hundred_are_counted(keys in 0usize..400) {
        let text: String = (0..keys).map(|n| format!("unknown_{n} = 1\n")).collect();
        let text = format!("{text}[transactions.t]\nstatements = [{{ sql = 'SELECT 1' }}]\n");
        let reported = Mix::parse("m.toml", &text, 1).map_or_else(|errors| errors, |_| Vec::new());
        prop_assert_eq!(reported.len(), keys.min(100) + usize::from(keys > 100));
        if keys > 100 {
            prop_assert_eq!(&reported[100].problem, &format!("and {} more mistakes", keys - 100));
        }
    }

    /// Cut anywhere, an example is a mix or a list of mistakes.
    #[test]
    fn a_file_that_is_cut_off_is_told_why_it_is_none(cut in 0usize..3000) {
        let end = (0..=cut.min(SHOP.len())).rev().find(|at| SHOP.is_char_boundary(*at)).unwrap_or(0);
        if let Err(errors) = Mix::parse("m.toml", &SHOP[..end], 1) {
            prop_assert!(!errors.is_empty());
        }
    }

    #[test]
    fn values_stay_what_their_generators_allow(seed: u64, connection in 0u64..100_000) {
        let mix = Mix::parse("m.toml", "[transactions.t]\nstatements = [{ name = 'x', sql = 'SELECT ?, ?, ?', params = [{ uniform = [-3, 3] }, { choice = ['a', 'bb'] }, { pattern = '##' }] }]", seed).unwrap();
        let sent = run_once(&mix, &mut mix.stream(connection), None);
        let parts: Vec<&str> = sent.trim_end().split(' ').collect();
        prop_assert_eq!(parts.len(), 4);
        prop_assert!((-3..=3).contains(&parts[1].parse::<i64>().unwrap()));
        prop_assert!(["'a'", "'bb'"].contains(&parts[2]));
        prop_assert!(parts[3].len() == 4 && parts[3][1..3].bytes().all(|b| b.is_ascii_digit()));
    }
}

#[test]
fn each_step_has_unique_numbers_of_its_own_and_draws_the_same_else() {
    let mix = one(
        "statements = [{ sql = 'INSERT INTO t VALUES (?, ?)', params = [{ unique = true }, { uniform = [1, 1000000] }] }]",
    );
    let of = |step| {
        let mix = mix.at_step(step).unwrap();
        run_once(&mix, &mut mix.stream(0), None)
    };
    let (first, second) = (of(0), of(1));
    let parts = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let (first, second) = (parts(&first), parts(&second));
    assert_ne!(first[1], second[1]);
    assert_eq!(first[2], second[2]);
}

#[test]
fn points_in_time_and_decimals_are_kept_as_their_texts() {
    let mix = one("statements = [
  { name = 'x', sql = 'SELECT a, b, c', keep = { a = 'text', b = 'text', c = 'text' } },
  { name = 'y', sql = 'SELECT :a, :b, :c' },
]");
    let date =
        |hour, micros| Value::DateTime { year: 2026, month: 2, day: 3, hour, minute: 0, second: 0, micros };
    let span = Value::Time { negative: true, days: 1, hours: 2, minutes: 3, seconds: 4, micros: 0 };
    let kept = |row| run_once(&mix, &mut mix.stream(0), Some(row));
    let sent = kept(vec![date(0, 0), date(4, 5), Value::Bytes(b"12.50".to_vec())]);
    assert!(sent.contains("y '2026-02-03' '2026-02-03 04:00:00.000005' '12.50'"), "{sent}");
    let sent = kept(vec![span, Value::Float(1.5), Value::Double(-2.25)]);
    assert!(sent.contains("y '-26:03:04' '1.5' '-2.25'"), "{sent}");
}

#[test]
fn fifty_thousand_unknown_keys_and_endless_lines_are_read() {
    let keys: String = (0..50_000).map(|n| format!("transactoins_{n} = 1\n")).collect();
    let statement = "{ sql = 'SELECT 1' },".repeat(20_000);
    let line = format!("[transactions.t]\nstatements = [{statement}]\n");
    assert_eq!(Mix::parse("m.toml", &format!("{keys}{line}"), 1).unwrap_err().len(), 101);
    assert!(Mix::parse("m.toml", &line, 1).is_ok());
    let key = "k".repeat(1 << 20);
    let reported = Mix::parse("m.toml", &format!("{key} = 1\n{line}"), 1).unwrap_err();
    assert!(reported[0].problem.len() < 400, "{} bytes", reported[0].problem.len());
}
