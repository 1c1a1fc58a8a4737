//! Properties of a table as the server created it, as far as filling depends on them.

use mydyno_settings::nearest;
use mydyno_wire::Client;

use super::{OwnTables, TableSpec};
use crate::generator::Generator;
use crate::mark;
use crate::prepare::ranges::Range;
use crate::prepare::{PrepareError, doing, inserting_at_once};

/// A table as it exists on the server.
#[derive(Debug, Clone)]
pub(super) struct ServerTable {
    /// Whether its rows are transactional.
    pub transactional: bool,
    /// Number of connections that insert into it in parallel.
    pub inserting_at_once: usize,
    /// The filled columns that the server returns as they were sent.
    pub digested: Vec<bool>,
    numbered: Option<Numbered>,
}

/// A column whose numbers identify rows.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Numbered {
    column: String,
    from: i64,
    step: i64,
}

/// A column as `information_schema` describes it.
struct Column {
    name: String,
    data_type: String,
    column_type: String,
    character_set: String,
    automatic: bool,
}

impl ServerTable {
    /// Reads the table's properties from the server.
    pub fn look(client: &mut Client, tables: &OwnTables, spec: &TableSpec) -> Result<Self, PrepareError> {
        let looking = || doing(format!("looking at table {}", spec.name));
        let of = format!(
            "TABLE_SCHEMA = {} AND TABLE_NAME = {}",
            mark::literal(&tables.database),
            mark::literal(&spec.name)
        );
        let engine = format!("SELECT LOWER(ENGINE) FROM information_schema.TABLES WHERE {of}");
        let engine = client.query(&engine).map_err(looking())?.scalar().unwrap_or_default().into_owned();
        let rolls_back = format!(
            "SELECT TRANSACTIONS FROM information_schema.ENGINES WHERE ENGINE = {}",
            mark::literal(&engine)
        );
        let rolls_back = client.query(&rolls_back).map_err(looking())?.scalar().as_deref() == Some("YES");
        let columns = format!(
            "SELECT COLUMN_NAME, LOWER(DATA_TYPE), LOWER(COLUMN_TYPE), COALESCE(CHARACTER_SET_NAME, ''), EXTRA LIKE '%auto_increment%' FROM information_schema.COLUMNS WHERE {of}"
        );
        let found = client.query(&columns).map_err(looking())?;
        let columns: Vec<Column> = (0..found.len())
            .map(|row| {
                let text = |column| found.text(row, column).unwrap_or_default().into_owned();
                Column {
                    name: text(0),
                    data_type: text(1),
                    column_type: text(2),
                    character_set: text(3),
                    automatic: text(4) == "1",
                }
            })
            .collect();
        if let Some(missing) =
            spec.columns.iter().find(|c| !columns.iter().any(|on| on.name.eq_ignore_ascii_case(&c.name)))
        {
            let names = columns.iter().map(|c| c.name.as_str());
            return Err(PrepareError::NoColumn {
                place: super::at(&missing.place),
                table: spec.name.clone(),
                column: missing.name.clone(),
                nearest: nearest(&missing.name, names.clone()).map(str::to_owned),
                names: names.collect::<Vec<_>>().join(", "),
            });
        }
        let column = |name: &str| columns.iter().find(|c| c.name.eq_ignore_ascii_case(name));
        let digested =
            spec.columns.iter().map(|c| column(&c.name).is_some_and(|on| reads_as_sent(&c.generator, on)));
        let automatic = spec.columns.iter().filter_map(|c| column(&c.name)).any(|c| c.automatic);
        let at_once = if automatic { inserting_at_once(client.server(), &engine) } else { usize::MAX };
        let whole = |name: &str| column(name).is_some_and(is_whole_number);
        let numbered = spec.columns.iter().filter(|c| whole(&c.name)).find_map(|c| {
            let (from, step) = match c.generator {
                Generator::Sequence { from, step } if step != 0 => (from, step),
                Generator::Unique => (1, 1),
                _ => return None,
            };
            // Numbers that overflow are not in the order of the rows.
            let last = i64::try_from(spec.rows).ok().and_then(|rows| step.checked_mul(rows))?;
            from.checked_add(last)?;
            Some(Numbered { column: c.name.clone(), from, step })
        });
        Ok(Self {
            transactional: rolls_back,
            inserting_at_once: at_once,
            digested: digested.collect(),
            numbered,
        })
    }

    /// Whether the rows of a part can be identified, or are committed together.
    pub fn can_go_on(&self) -> bool {
        self.transactional || self.numbered.is_some()
    }

    /// The condition that selects the rows of a part, if there is one.
    pub fn part(&self, range: &Range) -> Option<String> {
        let Numbered { column, from, step } = self.numbered.as_ref()?;
        let value = |row: u64| from + step * (row as i64 - 1);
        let (one, other) = (value(range.first), value(range.last));
        Some(format!("{} BETWEEN {} AND {}", mark::quoted(column), one.min(other), one.max(other)))
    }
}

fn is_whole_number(column: &Column) -> bool {
    matches!(column.data_type.as_str(), "tinyint" | "smallint" | "mediumint" | "int" | "bigint")
        && !column.column_type.contains("zerofill")
}

/// Whether the server returns a column's values as the text that was sent.
fn reads_as_sent(generator: &Generator, column: &Column) -> bool {
    if !generator.is_text() {
        return is_whole_number(column);
    }
    let kept = match column.data_type.as_str() {
        "varchar" | "tinytext" | "text" | "mediumtext" | "longtext" => true,
        "char" => !generator.may_end_with_space(),
        _ => false,
    };
    // In these character sets ASCII is unchanged.
    let same = ["latin1", "ascii", "utf8", "utf8mb3", "utf8mb4"].contains(&column.character_set.as_str());
    kept && same && generator.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::{Constant, pattern};

    fn column(data_type: &str, column_type: &str, character_set: &str) -> Column {
        Column {
            name: "c".to_owned(),
            data_type: data_type.to_owned(),
            column_type: column_type.to_owned(),
            character_set: character_set.to_owned(),
            automatic: false,
        }
    }

    #[test]
    fn only_values_that_read_as_they_were_sent_are_digested() {
        let number = Generator::Sequence { from: 1, step: 1 };
        let text = |text: &str| Generator::Constant(Constant::Text(text.into()));
        for (generator, column, is) in [
            (&number, column("int", "int(11)", ""), true),
            (&number, column("int", "int(5) unsigned zerofill", ""), false),
            (&number, column("decimal", "decimal(10,2)", ""), false),
            (&number, column("varchar", "varchar(9)", "latin1"), false),
            (&text("plain "), column("varchar", "varchar(9)", "utf8mb4"), true),
            (&text("plain "), column("char", "char(9)", "utf8mb4"), false),
            (&Generator::Pattern(pattern("@@ #")), column("char", "char(9)", "latin1"), true),
            (&text("grün"), column("varchar", "varchar(9)", "utf8mb4"), false),
            (&text("plain"), column("varchar", "varchar(9)", "utf16"), false),
            (&text("2026-01-01"), column("date", "date", ""), false),
        ] {
            assert_eq!(reads_as_sent(generator, &column), is, "{generator:?} in {}", column.column_type);
        }
    }

    #[test]
    fn a_part_s_numbers_lie_between_those_of_its_ends_whatever_the_direction() {
        let table = |from, step| ServerTable {
            transactional: false,
            inserting_at_once: 1,
            digested: Vec::new(),
            numbered: Some(Numbered { column: "id".to_owned(), from, step }),
        };
        let range = Range { table: 0, first: 3, last: 5 };
        assert_eq!(table(10, 2).part(&range).unwrap(), "`id` BETWEEN 14 AND 18");
        assert_eq!(table(10, -2).part(&range).unwrap(), "`id` BETWEEN 2 AND 6");
    }
}
