//! Tables with the shapes and sizes of the compiler study's plans; names and contents are generated.

use mydyno_tables::condition::Condition;
use mydyno_tables::generator::{Generator, pattern};
use mydyno_tables::own_tables::{ColumnSpec, OwnTables, TableSpec};
use mydyno_tables::prepare::Tuning;

use super::FAMILY;

/// Rows of the table that the large UPDATE reads from its beginning to its end.
const RECORDS: u64 = 1_157_224;
/// Rows of the index that the aggregate reads, and of the table that the UPDATE joins last.
const SUBMISSIONS: u64 = 362_615;
/// Submissions of an account: the plan's 16 rows for each value of the key.
const PER_ACCOUNT: u64 = 16;
/// Groups of the derived table.
const GROUPS: u64 = 2_655;
/// Rows of the table that is joined with it.
const COMPANIES: u64 = 4_386;
/// Rows of the table that the small scan reads.
const NOTES: u64 = 1_589;
/// The lowest code of an owner: all have five digits, so that the key has the plan's seven bytes in latin1.
const FIRST_CODE: i64 = 10_000;

/// Rows by table, at a percentage of the study's.
struct Rows {
    records: u64,
    submissions: u64,
    accounts: u64,
    groups: u64,
    companies: u64,
    notes: u64,
}

impl Rows {
    fn at(percent: u64) -> Self {
        let of = |rows: u64| (rows * percent / 100).max(1);
        Self {
            records: of(RECORDS),
            submissions: of(SUBMISSIONS),
            accounts: of(SUBMISSIONS / PER_ACCOUNT),
            groups: of(GROUPS),
            companies: of(COMPANIES),
            notes: of(NOTES),
        }
    }
}

/// The tables in a database, at a percentage of the study's rows.
pub(super) fn tables(database: &str, engine: &str, percent: u64, seed: u64) -> OwnTables {
    let rows = Rows::at(percent);
    let tables = vec![
        records(engine, &rows),
        owners(engine, &rows),
        submissions(engine, &rows),
        accounts(engine, &rows),
        companies(engine, &rows),
        notes(engine, &rows),
    ];
    let count = |table: &TableSpec| Condition {
        about: format!("rows of {}", table.name),
        sql: format!("SELECT COUNT(*) FROM {}", table.name),
        expected: table.rows.to_string(),
    };
    let touched = Condition {
        about: "rows of study_record that were touched by half".to_owned(),
        sql: "SELECT COUNT(*) FROM study_record WHERE touched NOT IN (0, 1)".to_owned(),
        expected: "0".to_owned(),
    };
    OwnTables {
        family: FAMILY,
        database: database.to_owned(),
        checks: tables.iter().map(count).chain([touched]).collect(),
        tables,
        doubts: Vec::new(),
        of_seed: false,
        tuning: Tuning::default(),
        seed,
    }
}

fn column(name: &str, generator: Generator) -> ColumnSpec {
    ColumnSpec { name: name.to_owned(), generator, place: String::new() }
}

fn numbers() -> Generator {
    Generator::Sequence { from: 1, step: 1 }
}

fn up_to(high: u64) -> Generator {
    Generator::Uniform { low: 1, high: high as i64 }
}

/// A table without its indexes, which `after` makes, and with fresh statistics, so that all servers plan alike.
fn table(
    name: &str,
    engine: &str,
    columns: &str,
    rows: u64,
    filled: Vec<ColumnSpec>,
    indexes: &[&str],
) -> TableSpec {
    let analyze = format!("ANALYZE TABLE {name}");
    TableSpec {
        name: name.to_owned(),
        create: format!("CREATE TABLE {name} ({columns}) ENGINE={engine} DEFAULT CHARSET=latin1"),
        columns: filled,
        rows,
        after: indexes.iter().map(|index| (*index).to_owned()).chain([analyze]).collect(),
        place: String::new(),
    }
}

fn records(engine: &str, rows: &Rows) -> TableSpec {
    table(
        "study_record",
        engine,
        "id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, owner_code VARCHAR(5) NOT NULL, kind TINYINT NOT NULL, \
         touched TINYINT NOT NULL DEFAULT 0",
        rows.records,
        vec![
            column("id", numbers()),
            column("name", Generator::Pattern(pattern("@@@@@@####.c@"))),
            column("owner_code", Generator::Pattern(pattern("#####"))),
            column("kind", up_to(4)),
        ],
        &[],
    )
}

fn owners(engine: &str, rows: &Rows) -> TableSpec {
    table(
        "study_owner",
        engine,
        "account INT NOT NULL, code VARCHAR(5) NOT NULL PRIMARY KEY",
        rows.accounts,
        vec![column("account", numbers()), column("code", Generator::Sequence { from: FIRST_CODE, step: 1 })],
        &[],
    )
}

fn submissions(engine: &str, rows: &Rows) -> TableSpec {
    table(
        "study_submission",
        engine,
        "id INT NOT NULL PRIMARY KEY, submitter_id INT NOT NULL, item INT NOT NULL, state TINYINT NOT NULL",
        rows.submissions,
        vec![
            column("id", numbers()),
            column("submitter_id", up_to(rows.accounts)),
            column("item", up_to(rows.submissions)),
            column("state", up_to(4)),
        ],
        &[
            "CREATE INDEX submitter ON study_submission (submitter_id)",
            "CREATE INDEX submitter_item ON study_submission (submitter_id, item)",
        ],
    )
}

fn accounts(engine: &str, rows: &Rows) -> TableSpec {
    table(
        "study_account",
        engine,
        "id INT NOT NULL PRIMARY KEY, company_id INT NOT NULL, site VARCHAR(40) NOT NULL",
        rows.accounts,
        vec![
            column("id", numbers()),
            column("company_id", up_to(rows.groups)),
            column("site", Generator::Pattern(pattern("www.@@@@@@@@.c@"))),
        ],
        &[],
    )
}

fn companies(engine: &str, rows: &Rows) -> TableSpec {
    table(
        "study_company",
        engine,
        "id INT NOT NULL PRIMARY KEY, name VARCHAR(60) NOT NULL, items INT NOT NULL DEFAULT 0",
        rows.companies,
        vec![column("id", numbers()), column("name", Generator::Alphanumeric { min: 10, max: 60 })],
        &[],
    )
}

fn notes(engine: &str, rows: &Rows) -> TableSpec {
    table(
        "study_note",
        engine,
        "id INT NOT NULL PRIMARY KEY, title VARCHAR(200) NOT NULL, del_flag TINYINT NOT NULL",
        rows.notes,
        vec![
            column("id", numbers()),
            column("title", Generator::Alphanumeric { min: 40, max: 200 }),
            column("del_flag", Generator::Uniform { low: 0, high: 1 }),
        ],
        &[],
    )
}
