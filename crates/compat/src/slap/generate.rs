//! The generated table, its rows and the queries of the five load types.

use mydyno_stats::rng::Rng;

use super::settings::Engine;

/// Characters of a generated text.
const TEXT: usize = 126;
/// Seed of the values, which are the same in every run, as those of mysqlslap.
const SEED: u64 = 1;

/// The primary key of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    None,
    AutoIncrement,
    Guid,
}

/// Kind of the generated statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadType {
    /// Inserts and reads in turn.
    Mixed,
    Update,
    Write,
    /// Reads of one row by its key.
    Key,
    /// Reads of the whole table.
    Read,
}

impl LoadType {
    /// The load type of a word, of which the first letter counts, as in mysqlslap.
    pub(super) fn of(word: &str) -> Option<Self> {
        let all = [Self::Mixed, Self::Update, Self::Write, Self::Key, Self::Read];
        all.into_iter().find(|load| load.name() == word)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Update => "update",
            Self::Write => "write",
            Self::Key => "key",
            Self::Read => "read",
        }
    }
}

/// The generated table and how many statements there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) key: Key,
    pub(super) load: LoadType,
    pub(super) guids: u64,
    pub(super) ints: u64,
    pub(super) index_ints: bool,
    pub(super) chars: u64,
    pub(super) index_chars: bool,
    /// The number of `--auto-generate-sql-write-number`; the statement that makes the table counts among it, as in mysqlslap.
    pub(super) rows: u64,
    pub(super) unique_inserts: u64,
    pub(super) unique_queries: u64,
}

/// Generated statements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Generated {
    pub(super) create: String,
    pub(super) inserts: Vec<String>,
    pub(super) queries: Vec<Query>,
}

/// A query of the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Query {
    Text(String),
    /// A text that ends with the key of a row, which each client draws.
    WithKey(String),
}

impl Shape {
    /// The statement that makes the table.
    pub(super) fn create(&self, engine: Option<&Engine>) -> String {
        let mut columns = Vec::new();
        match self.key {
            Key::None => {}
            Key::AutoIncrement => columns.push("id serial".to_owned()),
            Key::Guid => columns.push("id varchar(36) primary key".to_owned()),
        }
        columns.extend((0..self.guids).map(|i| format!("id{i} varchar(36) unique key")));
        columns.extend((1..=self.ints).map(|i| match self.index_ints {
            true => format!("intcol{i} INT(32), INDEX(intcol{i})"),
            false => format!("intcol{i} INT(32) "),
        }));
        columns.extend((1..=self.chars).map(|i| match self.index_chars {
            true => format!("charcol{i} VARCHAR(128), INDEX(charcol{i}) "),
            false => format!("charcol{i} VARCHAR(128)"),
        }));
        let mut text = format!("CREATE TABLE `t1` ({})", columns.join(","));
        if let Some(engine) = engine {
            text.push_str(&format!(" Engine = {}", engine.name));
            if let Some(option) = &engine.option {
                text.push_str(&format!(" {option}"));
            }
        }
        text
    }

    /// All statements of the table.
    pub(super) fn generate(&self, engine: Option<&Engine>) -> Generated {
        let mut rng = Rng::from_seed(SEED);
        let unique: Vec<String> = (0..self.unique_inserts).map(|_| self.insert(&mut rng)).collect();
        let inserts = (1..self.rows).zip(unique.iter().cycle()).map(|(_, insert)| insert.clone()).collect();
        // One query more than asked for, as mysqlslap makes.
        let queries = (0..=self.unique_queries).map(|i| self.query(i, &mut rng)).collect();
        Generated { create: self.create(engine), inserts, queries }
    }

    fn query(&self, position: u64, rng: &mut Rng) -> Query {
        match self.load {
            LoadType::Mixed if position.is_multiple_of(2) => Query::Text(self.insert(rng)),
            LoadType::Mixed => self.select(true),
            LoadType::Write => Query::Text(self.insert(rng)),
            LoadType::Update => self.update(rng),
            LoadType::Key => self.select(true),
            LoadType::Read => self.select(false),
        }
    }

    fn insert(&self, rng: &mut Rng) -> String {
        let mut values: Vec<String> = match self.key {
            Key::None => Vec::new(),
            Key::AutoIncrement => vec!["NULL".to_owned()],
            Key::Guid => vec!["uuid()".to_owned()],
        };
        values.extend((0..self.guids).map(|_| "uuid()".to_owned()));
        values.extend((0..self.ints).map(|_| rng.below(1 << 31).to_string()));
        values.extend((0..self.chars).map(|_| format!("'{}'", text(rng))));
        format!("INSERT INTO t1 VALUES ({})", values.join(","))
    }

    fn update(&self, rng: &mut Rng) -> Query {
        let mut sets: Vec<String> =
            (1..=self.ints).map(|i| format!("intcol{i} = {}", rng.below(1 << 31))).collect();
        sets.extend((1..=self.chars).map(|i| format!("charcol{i} = '{}'", text(rng))));
        self.by_key(format!("UPDATE t1 SET {}", sets.join(",")))
    }

    fn select(&self, one: bool) -> Query {
        let ints = (1..=self.ints).map(|i| format!("intcol{i}"));
        let columns: Vec<String> = ints.chain((1..=self.chars).map(|i| format!("charcol{i}"))).collect();
        let text = format!("SELECT {} FROM t1", columns.join(","));
        if one { self.by_key(text) } else { Query::Text(text) }
    }

    fn by_key(&self, text: String) -> Query {
        match self.key {
            Key::None => Query::Text(text),
            _ => Query::WithKey(format!("{text} WHERE id = ")),
        }
    }
}

fn text(rng: &mut Rng) -> String {
    const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    (0..TEXT).map(|_| char::from(LETTERS[rng.below(LETTERS.len() as u64) as usize])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(key: Key, load: LoadType) -> Shape {
        Shape {
            key,
            load,
            guids: 0,
            ints: 1,
            index_ints: false,
            chars: 1,
            index_chars: false,
            rows: 3,
            unique_inserts: 2,
            unique_queries: 3,
        }
    }

    #[test]
    fn tables_read_as_those_of_mysqlslap() {
        let plain = shape(Key::None, LoadType::Mixed);
        assert_eq!(plain.create(None), "CREATE TABLE `t1` (intcol1 INT(32) ,charcol1 VARCHAR(128))");
        let whole = Shape { guids: 1, ints: 2, index_ints: true, index_chars: true, key: Key::Guid, ..plain };
        let engine = Engine { name: "memory".into(), option: Some("max_rows=5".into()) };
        assert_eq!(
            whole.create(Some(&engine)),
            "CREATE TABLE `t1` (id varchar(36) primary key,id0 varchar(36) unique key,intcol1 INT(32), \
             INDEX(intcol1),intcol2 INT(32), INDEX(intcol2),charcol1 VARCHAR(128), INDEX(charcol1) ) Engine = memory \
             max_rows=5"
        );
    }

    #[test]
    fn loads_have_their_queries_and_two_generations_are_equal() {
        let generated = shape(Key::AutoIncrement, LoadType::Mixed).generate(None);
        assert_eq!((generated.inserts.len(), generated.queries.len()), (2, 4));
        assert!(
            matches!(&generated.queries[0], Query::Text(text) if text.starts_with("INSERT INTO t1 VALUES (NULL,"))
        );
        assert_eq!(
            generated.queries[1],
            Query::WithKey("SELECT intcol1,charcol1 FROM t1 WHERE id = ".into())
        );
        assert_eq!(generated, shape(Key::AutoIncrement, LoadType::Mixed).generate(None));
        let updates = shape(Key::None, LoadType::Update).generate(None);
        assert!(
            matches!(&updates.queries[0], Query::Text(text) if text.starts_with("UPDATE t1 SET intcol1 = "))
        );
    }
}
