//! Tables whose columns and indexes tell what they are for, and that lack what such a table needs: logins that are not unique,
//! options of an application that it reads with every page.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::described::Column;
use super::indexes::Index;
use super::rows::{OURS, text, whole};
use super::statistics::statistics;
use crate::source::Read;
use crate::sql::{ReadOnly, Row, quoted};

/// Tables of people who log in; any other name may hold the same address twice.
const LOGINS: [&str; 13] = [
    "user",
    "users",
    "account",
    "accounts",
    "member",
    "members",
    "login",
    "logins",
    "subscriber",
    "subscribers",
    "benutzer",
    "abonnent",
    "abonnenten",
];

/// Columns by which such people are found, the most usual first.
const NAMES: [&str; 10] = [
    "email",
    "e_mail",
    "mail",
    "email_address",
    "username",
    "user_name",
    "login",
    "login_name",
    "loginname",
    "benutzername",
];

/// Columns of a table that holds the options of an application: WordPress and what is built on it.
const OPTIONS: [&str; 3] = ["option_name", "option_value", "autoload"];

/// Tables of options that are listed, and the size from which on they are.
const LARGEST: usize = 5;
const LARGE: u64 = 5 << 20;

/// Findings by the shapes of tables.
#[derive(Default)]
pub struct Shapes {
    without_unique: Vec<Value>,
    options: BTreeSet<String>,
    too_wide: Vec<Value>,
}

impl Shapes {
    /// Looks at one table, `schema.table`.
    pub fn table(&mut self, table: &str, columns: &[Column<'_>], indexes: &[Index]) {
        let has = |name: &&str| columns.iter().any(|column| column.name.eq_ignore_ascii_case(name));
        if OPTIONS.iter().all(has) {
            self.options.insert(table.to_owned());
        }
        let of_logins = table
            .split_once('.')
            .is_some_and(|(_, name)| LOGINS.iter().any(|login| name.eq_ignore_ascii_case(login)));
        if of_logins && let Some(name) = not_unique(columns, indexes) {
            self.without_unique.push(json!({"table": table, "column": name}));
        }
    }

    /// Looks at the row format of an InnoDB table.
    pub fn width(&mut self, table: &str, format: &str, columns: &[Column<'_>]) {
        let old = ["compact", "redundant"].iter().any(|old| format.eq_ignore_ascii_case(old));
        let bytes: u64 = columns.iter().map(in_row).sum();
        if old && bytes > 2 * HALF_A_PAGE {
            self.too_wide.push(json!({"table": table, "row_bytes": bytes, "columns": columns.len()}));
        }
    }

    /// Takes the tables whose rows may not fit into half a page.
    pub fn too_wide(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.too_wide)
    }

    /// Takes the tables of logins in which nothing is unique that people log in by.
    pub fn without_unique(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.without_unique)
    }

    /// Takes the names of tables of options.
    pub fn options(&mut self) -> BTreeSet<String> {
        std::mem::take(&mut self.options)
    }
}

/// Bytes that a row may have in a page of 16 KiB. Many tables from servers whose default was COMPACT may come to a little more and
/// never do; twice as much is listed.
const HALF_A_PAGE: u64 = 8126;

/// The most bytes of a column that the old row formats keep in the row: of long values the first 768.
fn in_row(column: &Column<'_>) -> u64 {
    const PREFIX: u64 = 768;
    let number = |text: &str| text.split_once('(')?.1.split([')', ',']).next()?.parse::<u64>().ok();
    let length = number(column.column_type).unwrap_or(1);
    let charset = column.collation.and_then(|collation| collation.split('_').next()).unwrap_or_default();
    let of_character = match charset.to_ascii_lowercase().as_str() {
        "utf8mb4" | "utf16" | "utf32" => 4,
        "utf8" | "utf8mb3" => 3,
        "ucs2" => 2,
        _ => 1,
    };
    match column.data_type.to_ascii_lowercase().as_str() {
        "char" | "varchar" | "binary" | "varbinary" => (length * of_character).min(PREFIX),
        "tinytext" | "tinyblob" => 255,
        "text" | "blob" | "mediumtext" | "mediumblob" | "longtext" | "longblob" | "json" => PREFIX,
        "tinyint" | "year" | "bit" | "enum" => 1,
        "smallint" => 2,
        "mediumint" | "date" | "time" => 3,
        "bigint" | "double" | "datetime" => 5,
        // Others are longer, or of a few bytes like these: the sum stays below what InnoDB reckons.
        _ => 4,
    }
}

/// The column by which people log in, where no unique index holds it or another such column.
fn not_unique<'a>(columns: &[Column<'a>], indexes: &[Index]) -> Option<&'a str> {
    let of_logins = |name: &str| {
        NAMES.iter().any(|login| name.to_ascii_lowercase().contains(login)) || name.contains(' ')
    };
    // An expression is named with blanks, and may be the name in lower case.
    let kept = indexes.iter().any(|i| i.unique && i.parts.iter().any(|(column, _)| of_logins(column)));
    let found = NAMES.iter().find_map(|name| {
        columns.iter().find(|c| c.collation.is_some() && c.name.eq_ignore_ascii_case(name)).map(|c| c.name)
    });
    found.filter(|_| !kept)
}

/// The largest tables of options, by InnoDB's statistics: their values are in the rows, whose number tells little.
///
/// # Errors
/// The server keeps no such statistics, or refuses them.
pub fn options_sizes(sql: &mut ReadOnly<'_>, tables: &BTreeSet<String>) -> Read<Vec<Value>> {
    if tables.is_empty() {
        return Ok(Vec::new());
    }
    let statement = format!(
        "SELECT CONCAT(database_name, '.', table_name), n_rows, clustered_index_size * @@innodb_page_size FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} AND LOWER(table_name) LIKE '%options' AND clustered_index_size * @@innodb_page_size >= {LARGE} ORDER BY clustered_index_size DESC LIMIT 100"
    );
    let rows = statistics(sql, &statement).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))?;
    let entry = |row: &Row| -> Read<Value> {
        Ok(json!({"table": text(row, 0), "bytes": whole(row, 2)?, "rows": whole(row, 1)?}))
    };
    rows.iter().filter(|row| tables.contains(text(row, 0))).take(LARGEST).map(entry).collect()
}

/// Tables whose rows have a mean size of more than half of max_allowed_packet, by the same statistics: the pages of long values
/// are among those of the rows. Of few rows the pages that are free tell more than the rows.
///
/// # Errors
/// The server keeps no such statistics, or refuses them.
pub fn beyond_packet(sql: &mut ReadOnly<'_>) -> Read<Vec<Value>> {
    let statement = format!(
        "SELECT CONCAT(database_name, '.', table_name), ROUND(clustered_index_size * @@innodb_page_size / n_rows), n_rows FROM mysql.innodb_table_stats WHERE database_name NOT IN {OURS} AND n_rows >= 10 AND clustered_index_size * @@innodb_page_size / n_rows > @@GLOBAL.max_allowed_packet / 2 ORDER BY 2 DESC LIMIT 20"
    );
    let found = statistics(sql, &statement).map_err(|e| e.missing("SELECT on mysql.innodb_table_stats"))?;
    let mut kept = Vec::new();
    for row in &found {
        let (table, mean, rows) = (text(row, 0), whole(row, 1)?, whole(row, 2)?);
        // Pages that are free, as in a queue that was emptied, are none of the rows'.
        let Some((free, packet)) = free_of_long(sql, table) else { continue };
        let mean = mean.saturating_sub(free / rows.max(1));
        if mean > packet / 2 {
            kept.push(json!({"table": table, "row_bytes": mean, "rows": rows}));
        }
    }
    Ok(kept)
}

/// Bytes that are free in a table's file, and max_allowed_packet; `None` for a table without a column that can hold megabytes.
fn free_of_long(sql: &mut ReadOnly<'_>, table: &str) -> Option<(u64, u64)> {
    // Each partition has statistics of its own.
    let [schema, table] = place(table.split("#P#").next()?.split("#p#").next()?)?;
    let statement = format!(
        "SELECT t.DATA_FREE, @@GLOBAL.max_allowed_packet FROM information_schema.TABLES t WHERE t.TABLE_SCHEMA = {schema} AND t.TABLE_NAME = {table} AND EXISTS (SELECT 1 FROM information_schema.COLUMNS c WHERE c.TABLE_SCHEMA = {schema} AND c.TABLE_NAME = {table} AND c.CHARACTER_MAXIMUM_LENGTH > 65535)"
    );
    let rows = sql.rows(&statement).ok()?;
    let row = rows.first()?;
    Some((whole(row, 0).unwrap_or(0), whole(row, 1).ok()?))
}

/// The name of a table in a condition on InnoDB's statistics.
fn place(table: &str) -> Option<[String; 2]> {
    let (schema, table) = table.split_once('.')?;
    Some([quoted(schema)?, quoted(table)?])
}

/// About how many rows a table has; partitions have statistics of their own.
pub fn rows(sql: &mut ReadOnly<'_>, table: &str) -> Option<u64> {
    let [schema, table] = place(table)?;
    let statement = format!(
        "SELECT n_rows FROM mysql.innodb_table_stats WHERE database_name = {schema} AND table_name = {table}"
    );
    whole(statistics(sql, &statement).ok()?.first()?, 0).ok()
}

/// Indexes on first characters that know one value for a hundred rows or more, with that number of values.
pub fn few_values(sql: &mut ReadOnly<'_>, prefixes: Vec<Value>) -> Vec<Value> {
    const ROWS: u64 = 1000;
    let mut found = Vec::new();
    for mut entry in prefixes.into_iter().take(50) {
        let (Some([schema, table]), Some(index)) = (
            place(entry["table"].as_str().unwrap_or_default()),
            quoted(entry["index"].as_str().unwrap_or_default()),
        ) else {
            continue;
        };
        let statement = format!(
            "SELECT i.stat_value, t.n_rows FROM mysql.innodb_index_stats i JOIN mysql.innodb_table_stats t ON t.database_name = i.database_name AND t.table_name = i.table_name WHERE i.database_name = {schema} AND i.table_name = {table} AND i.index_name = {index} AND i.stat_name = 'n_diff_pfx01'"
        );
        let rows = statistics(sql, &statement).unwrap_or_default();
        let Some((values, all)) =
            rows.first().and_then(|row| Some((whole(row, 0).ok()?, whole(row, 1).ok()?)))
        else {
            continue;
        };
        if all >= ROWS && values * 100 <= all {
            entry["values"] = values.into();
            entry["rows"] = all.into();
            found.push(entry);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column<'a>(name: &'a str, collation: Option<&'a str>) -> Column<'a> {
        Column::of(name, "varchar(100)", collation)
    }

    fn index(unique: bool, columns: &[&str]) -> Index {
        Index {
            name: columns.join("_"),
            unique,
            kind: "BTREE".to_owned(),
            parts: columns.iter().map(|column| ((*column).to_owned(), None)).collect(),
            hidden: false,
        }
    }

    #[test]
    fn a_table_of_logins_is_listed_where_none_of_its_names_is_unique() {
        let text = Some("utf8mb4_general_ci");
        let columns = [column("id", None), column("Email", text), column("name", text)];
        let plain = [index(true, &["id"]), index(false, &["Email"])];
        let found = |table: &str, columns: &[Column<'_>], indexes: &[Index]| {
            let mut shapes = Shapes::default();
            shapes.table(table, columns, indexes);
            shapes.without_unique()
        };
        assert_eq!(found("crm.user", &columns, &plain), [json!({"table": "crm.user", "column": "Email"})]);
        for unique in [&["Email"][..], &["tenant_id", "Email"], &["email_lower"], &["username"]] {
            assert_eq!(
                found("crm.users", &columns, &[index(true, unique)]),
                Vec::<Value>::new(),
                "{unique:?}"
            );
        }
        let expression = index(true, &["expression of u"]);
        assert_eq!(found("crm.users", &columns, &[expression]), Vec::<Value>::new());
        assert_eq!(found("crm.wp_users", &columns, &plain), Vec::<Value>::new());
        assert_eq!(found("crm.users", &columns[..1], &plain), Vec::<Value>::new());
    }

    #[test]
    fn rows_are_too_wide_in_old_formats_alone() {
        let wide: Vec<Column<'_>> = (0..190).map(|_| column("a", Some("utf8mb4_bin"))).collect();
        let mut shapes = Shapes::default();
        shapes.width("erp.article", "Compact", &wide);
        shapes.width("erp.new", "Dynamic", &wide);
        shapes.width("erp.few", "Redundant", &wide[..20]);
        assert_eq!(shapes.too_wide(), [json!({"table": "erp.article", "row_bytes": 76000, "columns": 190})]);
        let long = Column::of("b", "longtext", None);
        assert_eq!((in_row(&long), in_row(&wide[0])), (768, 400));
    }

    #[test]
    fn a_table_of_options_is_known_by_its_columns() {
        let columns = ["option_id", "option_name", "option_value", "autoload"].map(|name| column(name, None));
        let mut shapes = Shapes::default();
        shapes.table("blog.wp_options", &columns, &[]);
        shapes.table("blog.x_options", &columns[..3], &[]);
        assert_eq!(shapes.options(), BTreeSet::from(["blog.wp_options".to_owned()]));
    }
}
