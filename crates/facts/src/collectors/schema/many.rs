//! Definitions of very many tables, schema by schema.
//!
//! Engine, options, columns and indexes stand in the definition of a table: servers before MySQL 8.0, and MariaDB, read one small
//! file for each and leave the table closed; later ones look into their dictionary.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::census::{Census, Part};
use super::drift;
use super::rows::{OURS, text, whole};
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError, quoted};
use crate::table_files::Listing;
use crate::wording::mysql;

/// Tables that one statement describes, as a rule.
const PIECE: u64 = 1000;

/// Pieces of one schema at most.
const PIECES: u64 = 40;

/// Tables of a schema that one statement describes where there is no dictionary: the server lists all files of the schema and reads
/// those of the tables, some 0.2 ms for each (0.14 on MariaDB 10.11, 0.18 on 11.4).
const AT_ONCE: u64 = 1000;

/// Tables that one statement describes by their names where there are more: some 0.5 ms for each, however many there are.
const NAMED_AT_ONCE: usize = 25;

/// Names that one statement lists where InnoDB's statistics do not know them: the server lists all files of the schema for each.
const LISTED_AT_ONCE: u64 = 20_000;

/// Tables below which a piece whose answer is too large is not cut again.
const SMALLEST: u64 = 16;

/// Share of the time in which tables that are unlike the others are looked for, and those of a schema at most.
const UNLIKE_OTHERS: f64 = 0.4;
const UNLIKE: usize = 200;

/// Tables of a schema of which one statement asks for those of other engines where there is no dictionary: the server reads a file
/// for each, 100,000 in 1.7 s (MariaDB 10.11).
const ENGINES_AT_ONCE: u64 = 5000;

/// Pauses after a statement, in times as long as it took: many follow one another.
const RESTS: u32 = 2;

/// Schemas from which on tables of one name may be those of tenants.
const SCHEMAS_ALIKE: usize = 10;

/// Time of one statement.
const LONGEST: Duration = Duration::from_secs(2);

/// A schema's tables whose names, byte by byte, lie behind one name and are not behind another.
#[derive(Clone, Copy)]
struct Range<'a> {
    schema: &'a str,
    /// Number of tables, about.
    tables: u64,
    from: Option<&'a str>,
    until: Option<&'a str>,
}

impl Range<'_> {
    fn condition(&self) -> Option<String> {
        let bound = |name: Option<&str>, sign: &str| match name {
            Some(name) => Some(format!(" AND CAST(TABLE_NAME AS BINARY) {sign} {}", quoted(name)?)),
            None => Some(String::new()),
        };
        Some(bound(self.from, ">")? + &bound(self.until, "<=")?)
    }
}

/// The tables of a schema that may be of another engine, each of which is looked up by its name; `None` where they are not known, or are
/// too many for that.
fn beside_innodb<'a>(files: &'a Listing, schema: &str) -> Option<Vec<&'a str>> {
    let of_schema = files.beside_innodb.as_ref()?.iter().filter(|file| file.schema == schema);
    let names: Vec<&str> = of_schema.take(UNLIKE + 1).map(|file| file.table.as_str()).collect();
    (names.len() <= UNLIKE).then_some(names)
}

/// Reads the definitions of all tables, those of the largest schema first, until `until`.
pub fn definitions(sql: &mut ReadOnly<'_>, files: &Listing, until: Instant, census: &mut Census) {
    sql.at_most(Some(LONGEST));
    sql.rest(RESTS);
    census.part = Part::Definition;
    let all = schemas(sql).unwrap_or_default();
    let schemas: Vec<(String, u64)> = all.iter().map(|(schema, of)| (schema.clone(), of.tables)).collect();
    let now = Instant::now();
    let first = now + until.saturating_duration_since(now).mul_f64(UNLIKE_OTHERS);
    census.engines_known = unlike_others(sql, &schemas, files, first, census);
    let has_dictionary = sql.has_dictionary();
    if all.len() >= SCHEMAS_ALIKE {
        for (schema, table) in drift::lacking(sql) {
            _ = census.tables(sql, &schema, &[&table]);
            census.finish_schema();
        }
    }
    for (schema, Counted { tables, in_statistics }) in all {
        if Instant::now() >= until {
            break;
        }
        // Tables that the statistics do not know may be of another engine, or have not been opened since these are kept.
        let are_known = in_statistics * 20 >= tables * 19;
        if !has_dictionary && tables > AT_ONCE || !are_known && tables > PIECE {
            by_names(sql, &schema, are_known, until, census);
        } else {
            by_ranges(sql, &schema, tables, until, census);
        }
        census.finish_schema();
    }
    census.part = Part::Whole;
    sql.at_most(None);
    sql.rest(1);
}

/// Reads the tables of a schema by their names, a few in a statement. InnoDB's statistics tell the names where they know the tables,
/// else the server lists all of the schema for each page of them.
fn by_names(sql: &mut ReadOnly<'_>, schema: &str, are_known: bool, until: Instant, census: &mut Census) {
    let Some(in_schema) = quoted(schema) else { return };
    let page = if are_known { PIECE } else { LISTED_AT_ONCE };
    let mut behind = String::new();
    loop {
        let statement = if are_known {
            format!(
                "SELECT table_name FROM mysql.innodb_table_stats WHERE database_name = {in_schema}{behind} ORDER BY table_name LIMIT {page}"
            )
        } else {
            format!(
                "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {in_schema}{behind} ORDER BY TABLE_NAME LIMIT {page}"
            )
        };
        let names: Vec<String> =
            sql.rows(&statement).unwrap_or_default().into_iter().flatten().flatten().collect();
        // Each partition has a line of its own.
        let whole = |name: &'_ String| name.find("#P#").or_else(|| name.find("#p#")).unwrap_or(name.len());
        let mut tables: Vec<&str> = names.iter().map(|name| &name[..whole(name)]).collect();
        tables.dedup();
        for tables in tables.chunks(NAMED_AT_ONCE) {
            if Instant::now() >= until || census.tables(sql, schema, tables).is_err() {
                return;
            }
        }
        match names.last().and_then(|last| quoted(last)).filter(|_| names.len() as u64 >= page) {
            Some(last) => behind = format!(" AND table_name > {last}"),
            None => return,
        }
    }
}

/// Reads about so many tables of a schema by ranges of their names.
fn by_ranges(sql: &mut ReadOnly<'_>, schema: &str, tables: u64, until: Instant, census: &mut Census) {
    let piece = PIECE.max(tables / PIECES);
    let mut last: Option<String> = None;
    loop {
        let left = Range { schema, tables: piece, from: last.as_deref(), until: None };
        let end = if tables > piece { nth(sql, left, piece - 1) } else { None };
        let is_last = end.is_none();
        read(sql, Range { until: end.as_deref(), ..left }, until, census);
        if is_last || Instant::now() >= until {
            return;
        }
        last = end;
    }
}

/// Reads the definitions of tables of other engines than InnoDB and of tables with options of their own, of which there are few as
/// a rule. Whether all of them were found until `until`.
fn unlike_others(
    sql: &mut ReadOnly<'_>,
    schemas: &[(String, u64)],
    files: &Listing,
    until: Instant,
    census: &mut Census,
) -> bool {
    let has_dictionary = sql.has_dictionary();
    // MariaDB opens a table to tell its options.
    let tells_options = sql.dialect().is_some_and(|dialect| dialect.is(&[mysql(0..)]));
    let is =
        if tells_options { "(ENGINE <> 'InnoDB' OR CREATE_OPTIONS <> '')" } else { "ENGINE <> 'InnoDB'" };
    let mut all = true;
    for (schema, tables) in schemas {
        if Instant::now() >= until {
            return false;
        }
        if !has_dictionary && *tables > ENGINES_AT_ONCE {
            let names = beside_innodb(files, schema);
            all &= names.is_some();
            for name in names.unwrap_or_default() {
                if Instant::now() >= until {
                    return false;
                }
                all &= census.tables(sql, schema, &[name]).is_ok_and(|read| read == 1);
            }
            continue;
        }
        let Some(in_schema) = quoted(schema) else { continue };
        let statement = format!(
            "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = {in_schema} AND TABLE_TYPE IN ('BASE TABLE', 'SYSTEM VERSIONED') AND {is} LIMIT {UNLIKE}"
        );
        let Ok(rows) = sql.rows(&statement) else {
            all = false;
            continue;
        };
        all &= rows.len() < UNLIKE;
        let names: Vec<&str> = rows.iter().map(|row| text(row, 0)).collect();
        for names in names.chunks(NAMED_AT_ONCE) {
            all &= census.tables(sql, schema, names).is_ok_and(|read| read == names.len());
        }
    }
    all
}

/// Reads a range, in halves where its answer is too large or too late.
fn read(sql: &mut ReadOnly<'_>, range: Range<'_>, until: Instant, census: &mut Census) {
    let Some(condition) = range.condition() else { return };
    if Instant::now() >= until {
        return;
    }
    let answer = census.among(sql, range.schema, &[condition]);
    let Err(error) = answer else { return };
    tracing::debug!(schema = range.schema, error = ?error.to_string(), "definitions");
    let is_too_much = error.is_late() || matches!(error, SqlError::TooLarge { .. });
    if !is_too_much || range.tables < SMALLEST {
        return;
    }
    // There may be fewer tables than the number says.
    let is_within = |name: &String| range.until.is_none_or(|end| name.as_str() < end);
    let halves = std::iter::successors(Some(range.tables / 2), |tables| Some(tables / 2));
    let middle = halves
        .take_while(|tables| *tables >= SMALLEST / 2)
        .find_map(|tables| Some((tables, nth(sql, range, tables).filter(is_within)?)));
    let Some((tables, middle)) = middle else { return };
    read(sql, Range { tables, until: Some(&middle), ..range }, until, census);
    read(sql, Range { tables, from: Some(&middle), ..range }, until, census);
}

/// The name of the table at a place within a range, by InnoDB's statistics.
fn nth(sql: &mut ReadOnly<'_>, range: Range<'_>, place: u64) -> Option<String> {
    let schema = quoted(range.schema)?;
    let behind = match range.from {
        Some(name) => format!(" AND table_name > {}", quoted(name)?),
        None => String::new(),
    };
    let statement = format!(
        "SELECT table_name FROM mysql.innodb_table_stats WHERE database_name = {schema}{behind} ORDER BY table_name LIMIT 1 OFFSET {place}"
    );
    sql.rows(&statement).ok()?.into_iter().next()?.into_iter().next()?
}

/// Tables of a schema.
struct Counted {
    tables: u64,
    /// Those that InnoDB's statistics know.
    in_statistics: u64,
}

/// All schemas of users with the number of their tables, the largest first, those behind that have no table of InnoDB.
fn schemas(sql: &mut ReadOnly<'_>) -> Read<Vec<(String, Counted)>> {
    let privilege = |e: SqlError| -> Missing { e.missing("SELECT on mysql.innodb_table_stats") };
    let counted = format!(
        "SELECT database_name, COUNT(DISTINCT SUBSTRING_INDEX(LOWER(table_name), '#p#', 1)) FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} GROUP BY database_name ORDER BY SUM(clustered_index_size + sum_of_other_index_sizes) DESC LIMIT 20000"
    );
    let number = |row: &Row| (text(row, 0).to_owned(), whole(row, 1).unwrap_or(0));
    let known: Vec<(String, u64)> = sql.rows(&counted).map_err(privilege)?.iter().map(number).collect();
    // Servers without a dictionary list the files of each folder for it, and open none.
    let all = format!(
        "SELECT TABLE_SCHEMA, COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA NOT IN {OURS} GROUP BY TABLE_SCHEMA LIMIT 20000"
    );
    let rows = sql.rows(&all).or_else(|_| {
        sql.rows(&format!(
            "SELECT SCHEMA_NAME, 0 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME NOT IN {OURS} LIMIT 20000"
        ))
    });
    let mut all: BTreeMap<String, u64> = rows.map_err(privilege)?.iter().map(number).collect();
    let mut found: Vec<(String, Counted)> = Vec::with_capacity(all.len());
    for (schema, in_statistics) in known {
        let tables = all.remove(&schema).unwrap_or(0).max(in_statistics);
        found.push((schema, Counted { tables, in_statistics }));
    }
    found.extend(all.into_iter().map(|(schema, tables)| (schema, Counted { tables, in_statistics: 0 })));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Sql, Table};

    /// Two schemas of 2,500 and 3 tables; notes the statements, and finds an answer on one range too large.
    struct Many(Vec<String>);
    impl Sql for Many {
        fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            self.0.push(sql.to_owned());
            let row = |cells: &[&str]| cells.iter().map(|cell| Some((*cell).to_owned())).collect();
            let rows = match sql {
                sql if sql.contains("GROUP BY database_name") => {
                    vec![row(&["large", "2500"]), row(&["small", "3"])]
                }
                sql if sql.contains("GROUP BY TABLE_SCHEMA") => {
                    vec![row(&["small", "3"]), row(&["other", "1"]), row(&["large", "2500"])]
                }
                sql if sql.contains("OFFSET 999") && !sql.contains("t2000") => {
                    vec![row(&[if sql.contains("t1000") { "t2000" } else { "t1000" }])]
                }
                sql if sql.contains("OFFSET 500") => vec![row(&["t1500"])],
                sql if sql.contains(".TABLES") && sql.contains("> 't1000'") && sql.contains("<= 't2000'") => {
                    return Err(SqlError::TooLarge { limit: 1 });
                }
                _ => vec![],
            };
            Ok(Table { columns: vec![], rows })
        }
    }

    #[test]
    fn all_schemas_are_read_in_pieces_and_one_that_is_too_large_in_halves() {
        let mut many = Many(vec![]);
        let mut sql = ReadOnly::new(&mut many);
        sql.speaks_to("8.0.36");
        definitions(
            &mut sql,
            &Listing::default(),
            Instant::now() + Duration::from_secs(3600),
            &mut Census::default(),
        );
        let asked = |schema: &str, condition: &str| {
            let end = format!("TABLE_SCHEMA = '{schema}'{condition}");
            many.0.iter().filter(|sql| sql.contains(".TABLES") && sql.ends_with(&end)).count()
        };
        let name = "CAST(TABLE_NAME AS BINARY)";
        assert_eq!(asked("large", &format!(" AND {name} <= 't1000'")), 1);
        assert_eq!(asked("large", &format!(" AND {name} > 't1000' AND {name} <= 't1500'")), 1);
        assert_eq!(asked("large", &format!(" AND {name} > 't1500' AND {name} <= 't2000'")), 1);
        assert_eq!(asked("large", &format!(" AND {name} > 't2000'")), 1);
        assert_eq!([asked("small", ""), asked("other", "")], [1, 1]);
    }

    #[test]
    fn a_schema_of_fewer_tables_than_a_piece_holds_is_halved_by_what_it_has() {
        /// A schema of 400 tables, which do not fit into one answer, nor do 200 of them.
        struct Wide(Vec<String>);
        impl Sql for Wide {
            fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
                self.0.push(sql.to_owned());
                let place = |sql: &str| sql.rsplit(' ').next().and_then(|n| n.parse::<usize>().ok());
                let behind = |sql: &str| {
                    let name = sql.split("table_name > 't").nth(1)?;
                    name.get(..3)?.parse::<usize>().ok()
                };
                let bound = |sign: &str| {
                    let name = sql.split(&format!("CAST(TABLE_NAME AS BINARY) {sign} 't")).nth(1)?;
                    name.get(..3)?.parse::<usize>().ok()
                };
                let rows = if sql.contains("GROUP BY") {
                    vec![vec![Some("wide".to_owned()), Some("400".to_owned())]]
                } else if sql.contains("OFFSET") {
                    let name = behind(sql).map_or(0, |n| n + 1) + place(sql).unwrap_or(0);
                    Vec::from_iter((name < 400).then(|| vec![Some(format!("t{name:03}"))]))
                } else if sql.contains(".TABLES")
                    && bound("<=").unwrap_or(399) - bound(">").map_or(0, |n| n + 1) >= 150
                {
                    return Err(SqlError::TooLarge { limit: 1 });
                } else {
                    vec![]
                };
                Ok(Table { columns: vec![], rows })
            }
        }
        let mut wide = Wide(vec![]);
        let mut sql = ReadOnly::new(&mut wide);
        sql.speaks_to("8.0.36");
        let until = Instant::now() + Duration::from_secs(3600);
        definitions(&mut sql, &Listing::default(), until, &mut Census::default());
        let ends = |end: &str| wide.0.iter().any(|sql| sql.contains(".TABLES") && sql.ends_with(end));
        assert!(ends("<= 't125'") && ends("> 't250'"), "{:#?}", wide.0);
    }

    #[test]
    fn without_a_dictionary_a_statement_looks_up_a_few_tables_by_their_names() {
        /// A schema of 1,003 names, of which one table has three partitions; notes the statements.
        struct Named(Vec<String>);
        impl Sql for Named {
            fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
                self.0.push(sql.to_owned());
                let row = |cell: String| vec![Some(cell)];
                let rows = if sql.contains("GROUP BY") {
                    vec![vec![Some("a".to_owned()), Some("1003".to_owned())]]
                } else if sql.contains("LIMIT 1000") && sql.contains("> 't0999'") {
                    (1000..1003).map(|n| row(format!("t{n:04}"))).collect()
                } else if sql.contains("LIMIT 1000") {
                    let parts = (0..3).map(|n| row(format!("p#P#{n}")));
                    parts.chain((3..1000).map(|n| row(format!("t{n:04}")))).collect()
                } else {
                    vec![]
                };
                Ok(Table { columns: vec![], rows })
            }
        }
        let mut named = Named(vec![]);
        let mut sql = ReadOnly::new(&mut named);
        sql.speaks_to("10.11.6-MariaDB");
        let until = Instant::now() + Duration::from_secs(3600);
        definitions(&mut sql, &Listing::default(), until, &mut Census::default());
        let asked: Vec<usize> = named
            .0
            .iter()
            .filter(|sql| sql.contains("information_schema.TABLES") && sql.contains("TABLE_NAME = "))
            .map(|sql| sql.matches("TABLE_NAME = ").count())
            .collect();
        assert_eq!((asked.len(), asked.iter().sum::<usize>()), (41, 1001), "{asked:?}");
        assert!(asked.iter().all(|tables| *tables <= NAMED_AT_ONCE));
        assert!(named.0.iter().any(|sql| sql.contains("TABLE_NAME = 'p' UNION ALL SELECT ")));
    }

    #[test]
    fn of_a_large_schema_tables_without_a_file_of_innodb_are_looked_up_by_name() {
        let tree = crate::tree::Tree::of(&[
            ("data/large/orders.frm", ""),
            ("data/large/orders.ibd", ""),
            ("data/large/parts.frm", ""),
            ("data/large/parts#P#p0.ibd", ""),
            ("data/large/docs.frm", ""),
            ("data/large/docs.MYI", ""),
            ("data/large/lookup.frm", ""),
            ("data/large/#sql-1.frm", ""),
            ("data/other/t.frm", ""),
        ]);
        let files = Listing::below(&tree.source(), "/data").unwrap();
        assert_eq!(beside_innodb(&files, "large"), Some(vec!["docs", "lookup"]));
        let mut many = Many(vec![]);
        let mut sql = ReadOnly::new(&mut many);
        sql.speaks_to("10.11.6-MariaDB");
        let schemas = [("large".to_owned(), ENGINES_AT_ONCE + 1), ("small".to_owned(), 10)];
        let until = Instant::now() + Duration::from_secs(3600);
        assert!(unlike_others(&mut sql, &schemas, &files, until, &mut Census::default()));
        assert!(!unlike_others(&mut sql, &schemas, &Listing::default(), until, &mut Census::default()));
        let asked = |schema: &str, of: &str| {
            many.0.iter().filter(|sql| sql.contains(&format!("= '{schema}' AND {of}"))).count()
        };
        assert_eq!(asked("large", "TABLE_NAME = 'docs'"), 1, "{:?}", many.0);
        assert_eq!(asked("large", "TABLE_NAME = 'lookup'"), 1);
        assert_eq!(asked("large", "TABLE_TYPE"), 0, "no statement reads all definitions: {:?}", many.0);
        assert_eq!(asked("small", "TABLE_TYPE"), 2);
    }

    #[test]
    fn tables_unlike_the_others_are_read_first() {
        let mut many = Many(vec![]);
        let mut sql = ReadOnly::new(&mut many);
        sql.speaks_to("5.7.44");
        let mut census = Census::default();
        definitions(&mut sql, &Listing::default(), Instant::now() + Duration::from_secs(3600), &mut census);
        assert!(census.engines_known);
        let place = |part: &str| many.0.iter().rposition(|sql| sql.contains(part)).unwrap();
        let all = many.0.iter().position(|sql| sql.contains("CREATE_OPTIONS FROM")).unwrap();
        assert!(place("ENGINE <> 'InnoDB'") < all, "{:?}", many.0);
    }

    #[test]
    fn the_definitions_of_servers_without_a_dictionary_open_no_table() {
        // What these columns tell, the server looks up in the open table; MariaDB also the options.
        let opening =
            ["AUTO_INCREMENT", "ROW_FORMAT", "DATA_LENGTH", "INDEX_TYPE", "TABLE_ROWS", "CARDINALITY"];
        for (version, options) in [("5.7.44", true), ("11.4.5-MariaDB", false)] {
            let mut many = Many(vec![]);
            let mut sql = ReadOnly::new(&mut many);
            sql.speaks_to(version);
            definitions(
                &mut sql,
                &Listing::default(),
                Instant::now() + Duration::from_secs(3600),
                &mut Census::default(),
            );
            let told: Vec<&String> =
                many.0.iter().filter(|sql| sql.contains("information_schema.TABLES")).collect();
            assert!(!told.is_empty());
            for sql in told {
                assert!(opening.iter().all(|column| !sql.contains(column)), "{sql}");
                let counts = sql.contains("GROUP BY TABLE_SCHEMA");
                assert_eq!(sql.contains("CREATE_OPTIONS"), options && !counts, "{sql}");
            }
        }
    }
}
