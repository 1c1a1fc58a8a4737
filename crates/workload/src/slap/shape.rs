//! The options of `slap`, under mysqlslap's names, and the table that they describe.

use mydyno_tables::generator::Generator;
use mydyno_tables::own_tables::{ColumnSpec, OwnTables, TableSpec};
use mydyno_tables::prepare::Tuning;

use crate::options::{Default, Form, OptionError, OptionSpec, Options};

/// Key of the table in the mark.
const FAMILY: &str = "slap";

/// Name of the table.
pub const TABLE: &str = "t1";

/// Bytes of a text of mysqlslap's in its VARCHAR(128).
pub const TEXT_BYTES: u32 = 126;

const fn count(name: &'static str, min: u64, max: u64, default: u64, help: &'static str) -> OptionSpec {
    OptionSpec { name, form: Form::Count { min, max }, default: Default::Count(default), help }
}

const fn switch(name: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, form: Form::Switch, default: Default::Switch(false), help }
}

const fn columns(name: &'static str, index: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, form: Form::CountWith { max: 200, switch: index }, default: Default::Count(1), help }
}

/// Options, under mysqlslap's names.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "auto-generate-sql-load-type",
        form: Form::Choice(&["mixed", "update", "write", "key", "read"]),
        default: Default::Word("mixed"),
        help: "what is asked: whole-table reads, reads by key, inserts, updates, or inserts and reads in turn",
    },
    columns("number-int-cols", "int-cols-index", "columns of whole numbers; N:1 with an index on each"),
    columns(
        "number-char-cols",
        "char-cols-index",
        "columns of texts, VARCHAR(128); N:1 with an index on each",
    ),
    switch("int-cols-index", "an index on each column of whole numbers"),
    switch("char-cols-index", "an index on each column of texts"),
    switch("auto-generate-sql-add-autoincrement", "an AUTO_INCREMENT key"),
    switch("auto-generate-sql-guid-primary", "a primary key of GUIDs"),
    count(
        "auto-generate-sql-secondary-indexes",
        0,
        60,
        0,
        "further columns of GUIDs, each with a unique index",
    ),
    count("auto-generate-sql-write-number", 1, 1_000_000_000, 100, "rows in the beginning"),
    count(
        "auto-generate-sql-unique-write-number",
        1,
        1_000_000,
        10,
        "different inserts or updates, asked in turn",
    ),
    count("auto-generate-sql-unique-query-number", 1, 1_000_000, 10, "different reads, asked in turn"),
    count(
        "auto-generate-sql-execute-number",
        1,
        1_000_000,
        1,
        "statements of a transaction: as many as a client of mysqlslap asks in its life, whose time then is the transaction's",
    ),
    crate::engine::OPTION,
];

/// The primary key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    None,
    AutoIncrement,
    Guid,
}

/// The shape of the table.
#[derive(Debug, Clone)]
pub struct Shape {
    pub key: Key,
    /// Columns of whole numbers.
    pub ints: u64,
    /// Columns of texts.
    pub chars: u64,
    /// Columns of GUIDs beside the key.
    pub guids: u64,
}

impl Shape {
    /// The shape according to these options.
    ///
    /// # Errors
    /// Inconsistent options.
    pub fn new(options: &Options) -> Result<Self, Vec<OptionError>> {
        let mut errors = Vec::new();
        let key = match (
            options.switch("auto-generate-sql-add-autoincrement"),
            options.switch("auto-generate-sql-guid-primary"),
        ) {
            (false, false) => Key::None,
            (true, false) => Key::AutoIncrement,
            (false, true) => Key::Guid,
            (true, true) => {
                errors.push(
                    "give either --auto-generate-sql-add-autoincrement or --auto-generate-sql-guid-primary, not both",
                );
                Key::Guid
            }
        };
        let (ints, chars) = (options.count("number-int-cols"), options.count("number-char-cols"));
        if ints + chars == 0 {
            errors.push("the table needs a column: --number-int-cols or --number-char-cols above 0");
        }
        if options.word("auto-generate-sql-load-type") == "key" && key == Key::None {
            errors.push(
                "--auto-generate-sql-load-type=key needs a primary key: give --auto-generate-sql-add-autoincrement or --auto-generate-sql-guid-primary",
            );
        }
        if errors.is_empty() {
            let guids = options.count("auto-generate-sql-secondary-indexes");
            Ok(Self { key, ints, chars, guids })
        } else {
            Err(errors.into_iter().map(|e| OptionError::Impossible(e.to_owned())).collect())
        }
    }

    /// Names of the columns of whole numbers.
    pub fn ints(&self) -> impl Iterator<Item = String> {
        (1..=self.ints).map(|n| format!("intcol{n}"))
    }

    /// Names of the columns of texts.
    pub fn chars(&self) -> impl Iterator<Item = String> {
        (1..=self.chars).map(|n| format!("charcol{n}"))
    }
}

/// The table of a shape.
pub fn table(shape: &Shape, options: &Options, database: &str, seed: u64) -> OwnTables {
    let (mut definitions, mut columns) = (Vec::new(), Vec::new());
    let mut add = |definition: String, name: String, generator: Generator| {
        definitions.push(definition);
        columns.push(ColumnSpec { name, generator, place: String::new() });
    };
    match shape.key {
        Key::None => {}
        Key::AutoIncrement => {
            add("id serial".to_owned(), "id".to_owned(), Generator::Sequence { from: 1, step: 1 });
        }
        Key::Guid => add("id varchar(36) primary key".to_owned(), "id".to_owned(), Generator::Guid),
    }
    for n in 0..shape.guids {
        add(format!("id{n} varchar(36) unique key"), format!("id{n}"), Generator::Guid);
    }
    let indexed = |option: &str, name: &str| {
        if options.switch(option) { format!(", INDEX({name})") } else { String::new() }
    };
    for name in shape.ints() {
        let definition = format!("{name} INT(32){}", indexed("int-cols-index", &name));
        add(definition, name, Generator::Uniform { low: 0, high: i64::from(i32::MAX) });
    }
    for name in shape.chars() {
        let definition = format!("{name} VARCHAR(128){}", indexed("char-cols-index", &name));
        add(definition, name, Generator::Alphanumeric { min: TEXT_BYTES, max: TEXT_BYTES });
    }
    let engine = options.word(crate::engine::OPTION.name);
    let create = format!("CREATE TABLE {TABLE} ({}) ENGINE={engine}", definitions.join(","));
    let table = TableSpec {
        name: TABLE.to_owned(),
        create,
        columns,
        rows: options.count("auto-generate-sql-write-number"),
        after: Vec::new(),
        place: String::new(),
    };
    OwnTables {
        family: FAMILY,
        database: database.to_owned(),
        tables: vec![table],
        checks: Vec::new(),
        doubts: Vec::new(),
        // Statements contain GUIDs of rows, which are generated from the seed.
        of_seed: shape.key == Key::Guid,
        seed,
        tuning: Tuning::default(),
    }
}
