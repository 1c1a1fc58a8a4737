//! Views: those whose definer is gone, and those that name what is not there.
//!
//! MySQL 8.0 finds views in its dictionary. Older servers and MariaDB open every table to tell which of them are views, unless
//! SHOW FULL TABLES asks: that reads the first bytes of a file for each, 100,000 in 0.6 to 0.9 s. So the names of the views are read
//! in this way, or, where there are many tables and the server's host is this one, from the files beside which InnoDB has none; each
//! is then looked up by its name.

use serde_json::{Value, json};

use crate::collectors::counted::{count, few_enough, few_tables, no_tables};
use crate::context::Context;
use crate::readings::Readings;
use crate::source::{Missing, Read, Source};
use crate::sql::{ReadOnly, Row, quoted};
use crate::table_files::{Listing, TableFile};

const COUNTED: &str = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_TYPE = 'VIEW' AND TABLE_SCHEMA NOT IN ('mysql', 'sys')";
const DEFINERS: &str = "SELECT o.TABLE_SCHEMA, o.TABLE_NAME, o.DEFINER FROM information_schema.VIEWS o WHERE o.TABLE_SCHEMA NOT IN ('mysql', 'sys') AND o.DEFINER NOT IN (SELECT CONCAT(u.User, '@', u.Host) FROM mysql.user u)";
/// The server says it in the comment of the view. MariaDB opens the view only where more is asked for, as the number of rows.
const INVALID: &str = "SELECT CONCAT(TABLE_SCHEMA, '.', TABLE_NAME) FROM information_schema.TABLES WHERE TABLE_TYPE = 'VIEW' AND TABLE_SCHEMA NOT IN ('mysql', 'sys') AND TABLE_COMMENT LIKE '%references invalid table(s)%' AND COALESCE(TABLE_ROWS, 0) >= 0 ORDER BY TABLE_SCHEMA, TABLE_NAME LIMIT 20";
/// Views that read the table of accounts with the rights of their definer, and behind them those whose text is not shown.
const OF_ACCOUNTS: &str = "SELECT CONCAT(o.TABLE_SCHEMA, '.', o.TABLE_NAME), o.VIEW_DEFINITION = '' FROM information_schema.VIEWS o WHERE o.TABLE_SCHEMA NOT IN ('mysql', 'sys') AND o.SECURITY_TYPE = 'DEFINER' AND (o.VIEW_DEFINITION LIKE '%`mysql`.`user`%' OR o.VIEW_DEFINITION LIKE '%`mysql`.`global_priv`%' OR o.VIEW_DEFINITION = '') ORDER BY 2, 1 LIMIT 20";

/// Views that are asked for in one statement.
const MOST: u64 = 1000;
/// Views that are looked up one by one.
const ONE_BY_ONE: usize = 50;
/// Files that are looked into, and the largest one.
const FILES: usize = 5000;
const LARGEST: u64 = 1 << 20;

/// Numbers and names.
struct Found {
    failing: Vec<View>,
    invalid: Vec<Value>,
    /// Known or not apart from the others: it takes the texts of the views.
    of_accounts: Read<Vec<Value>>,
}

impl Default for Found {
    fn default() -> Self {
        Self { failing: vec![], invalid: vec![], of_accounts: Ok(vec![]) }
    }
}

/// A view whose definer is not there.
struct View {
    name: String,
    definer: String,
}

/// Views that are named.
const NAMED: usize = 20;

/// Puts the facts of views; returns the definers that are not there.
pub(super) fn read(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) -> Vec<String> {
    let found = match sql.has_dictionary() {
        true => all(sql),
        false => listed(context, sql).and_then(|views| looked_up(sql, &views)),
    };
    let number = found.as_ref().map(|found| found.failing.len()).map_err(Clone::clone);
    readings.put("server.views.without_definer", "information_schema.VIEWS", number);
    let entry = |view: &View| json!({"view": view.name, "definer": view.definer});
    let named =
        found.as_ref().map(|found| found.failing.iter().take(NAMED).map(entry).collect::<Vec<Value>>());
    readings.put("server.views.failing", "information_schema.VIEWS", named.map_err(Clone::clone));
    let invalid = found.as_ref().map(|found| found.invalid.clone()).map_err(Clone::clone);
    readings.put("server.views.invalid", "information_schema.TABLES", invalid);
    let of_accounts = found.as_ref().map_err(Clone::clone).and_then(|found| found.of_accounts.clone());
    readings.put("server.views.of_accounts", "information_schema.VIEWS", of_accounts);
    let failing = found.map(|found| found.failing).unwrap_or_default();
    failing.into_iter().take(NAMED).map(|view| view.definer).collect()
}

fn rows(sql: &mut ReadOnly<'_>, statement: &str) -> Read<Vec<Row>> {
    sql.rows(statement).map_err(|e| e.missing("SELECT on schema mysql, and SHOW VIEW"))
}

fn number(rows: &[Row]) -> Read<u64> {
    count(rows).map(|number| number.as_u64().unwrap_or(0))
}

fn names(rows: Vec<Row>) -> impl Iterator<Item = String> {
    rows.into_iter().filter_map(|row| row.into_iter().next().flatten())
}

fn failing(rows: Vec<Row>) -> impl Iterator<Item = View> {
    rows.into_iter().filter_map(|row| {
        let mut cells = row.into_iter();
        let mut next = || cells.next().flatten();
        Some(View { name: format!("{}.{}", next()?, next()?), definer: next()? })
    })
}

/// All views, where there are not too many.
fn all(sql: &mut ReadOnly<'_>) -> Read<Found> {
    let views = number(&rows(sql, COUNTED)?)?;
    if views == 0 {
        return Ok(Found::default());
    }
    few_enough(&views.into(), MOST)?;
    of_all(sql)
}

fn of_all(sql: &mut ReadOnly<'_>) -> Read<Found> {
    let failing = failing(rows(sql, DEFINERS)?).collect();
    let invalid = names(rows(sql, INVALID)?).map(Value::from).collect();
    Ok(Found { failing, invalid, of_accounts: of_accounts(sql, OF_ACCOUNTS) })
}

/// The views that read the table of accounts. Where none is found and the text of one is not shown, nothing can be said.
fn of_accounts(sql: &mut ReadOnly<'_>, statement: &str) -> Read<Vec<Value>> {
    let (hidden, shown): (Vec<Row>, Vec<Row>) =
        rows(sql, statement)?.into_iter().partition(|row| row.get(1).and_then(Option::as_deref) == Some("1"));
    if shown.is_empty() && !hidden.is_empty() {
        return Err(Missing::Denied("the text of a view is shown with SHOW VIEW only".to_owned()));
    }
    Ok(names(shown).map(Value::from).collect())
}

/// The names of the views, by schema, of a server that has no dictionary to look into.
fn listed(context: &Context, sql: &mut ReadOnly<'_>) -> Read<Vec<(String, String)>> {
    if few_tables(sql).is_err() {
        let files = Listing::of(context).ok().and_then(|files| files.beside_innodb.as_deref());
        if let Some(Ok(views)) = files.map(|files| of_files(&context.source, files)) {
            return Ok(views);
        }
    }
    of_server(sql)
}

/// Looks up each view by its name where there are few.
fn looked_up(sql: &mut ReadOnly<'_>, views: &[(String, String)]) -> Read<Found> {
    if views.len() > ONE_BY_ONE {
        few_enough(&views.len().into(), MOST)?;
        few_tables(sql)
            .map_err(|_| Missing::Error(format!("not asked for, because there are {} views", views.len())))?;
        return of_all(sql);
    }
    let mut found = Found::default();
    let (mut accounts, mut unseen) = (Vec::new(), None);
    for (schema, view) in views {
        let (Some(in_schema), Some(is_view)) = (quoted(schema), quoted(view)) else { continue };
        let one = format!("TABLE_SCHEMA = {in_schema} AND TABLE_NAME = {is_view}");
        let definer = of_one(DEFINERS, "o.TABLE_SCHEMA NOT IN ('mysql', 'sys')", &one);
        found.failing.extend(failing(rows(sql, &definer)?));
        found.invalid.extend(
            names(rows(sql, &of_one(INVALID, "TABLE_SCHEMA NOT IN ('mysql', 'sys')", &one))?)
                .map(Value::from),
        );
        match of_accounts(sql, &of_one(OF_ACCOUNTS, "o.TABLE_SCHEMA NOT IN ('mysql', 'sys')", &one)) {
            Ok(named) => accounts.extend(named),
            Err(missing) => unseen = Some(missing),
        }
    }
    found.invalid.truncate(20);
    accounts.truncate(20);
    found.of_accounts = unseen.filter(|_| accounts.is_empty()).map_or(Ok(accounts), Err);
    Ok(found)
}

/// The names of views, by schema, that SHOW FULL TABLES lists.
fn of_server(sql: &mut ReadOnly<'_>) -> Read<Vec<(String, String)>> {
    let listed = no_tables(sql)?.into_iter();
    Ok(listed.filter(|[.., kind]| kind == "VIEW").map(|[schema, view, _]| (schema, view)).collect())
}

/// The names of views, by schema: the definition of one is a text that begins with its type.
fn of_files(source: &Source, files: &[TableFile]) -> Read<Vec<(String, String)>> {
    if files.len() > FILES {
        return Err(Missing::Error(format!("more than {FILES} tables have no file of InnoDB")));
    }
    let mut views = Vec::new();
    for TableFile { schema, table, path } in files {
        match source.text_within(path, LARGEST) {
            Ok(text) if text.starts_with("TYPE=VIEW") => views.push((schema.clone(), table.clone())),
            Err(denied @ Missing::Denied(_)) => return Err(denied),
            _ => {}
        }
    }
    Ok(views)
}

/// A statement about all views as one about a single one.
fn of_one(statement: &str, of_all: &str, of_one: &str) -> String {
    statement.replacen(of_all, of_one, 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::{Sql, SqlError, Table};
    use std::time::Duration;

    /// A server with a schema of two tables and one view; it notes the statements.
    #[derive(Default)]
    struct Server(Vec<String>);
    impl Sql for Server {
        fn table(&mut self, sql: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            self.0.push(sql.to_owned());
            let rows: &[&[&str]] = match sql {
                s if s.contains("SCHEMATA") => &[&["shop"]],
                s if s.starts_with("SHOW FULL TABLES") => {
                    &[&["a", "BASE TABLE"], &["b", "BASE TABLE"], &["v", "VIEW"]]
                }
                s if s.contains("o.DEFINER NOT IN") => &[&["shop", "v", "gone@localhost"]],
                _ => &[&["shop.v"]],
            };
            let row = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
            Ok(Table { columns: vec![], rows: rows.iter().map(row).collect() })
        }
    }

    #[test]
    fn a_server_without_a_dictionary_is_asked_for_each_view_by_its_name() {
        let mut server = Server::default();
        let mut sql = ReadOnly::new(&mut server);
        let views = of_server(&mut sql).unwrap();
        let found = looked_up(&mut sql, &views).unwrap();
        let [view] = &found.failing[..] else { panic!("one view") };
        assert_eq!((view.name.as_str(), view.definer.as_str()), ("shop.v", "gone@localhost"));
        assert_eq!(found.invalid, [Value::from("shop.v")]);
        assert_eq!(found.of_accounts, Ok(vec![Value::from("shop.v")]));
        let of_tables = server.0.iter().filter(|s| s.contains(".TABLES") || s.contains(".VIEWS"));
        for statement in of_tables {
            assert!(statement.contains("TABLE_SCHEMA = 'shop' AND TABLE_NAME = 'v'"), "{statement}");
        }
    }

    /// A server that shows the text of no view.
    struct Hiding;
    impl Sql for Hiding {
        fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            let row: Row = ["shop.v", "1"].map(|cell| Some(cell.to_owned())).to_vec();
            Ok(Table { columns: vec![], rows: vec![row] })
        }
    }

    #[test]
    fn views_whose_text_is_not_shown_are_not_taken_for_harmless_ones() {
        let found = of_accounts(&mut ReadOnly::new(&mut Hiding), OF_ACCOUNTS);
        assert!(matches!(found, Err(Missing::Denied(_))), "{found:?}");
    }

    #[test]
    fn a_view_is_told_from_a_table_by_its_definition() {
        let tree = crate::tree::Tree::of(&[
            ("data/shop/orders.frm", "\u{fe}\u{1}"),
            ("data/shop/orders.ibd", ""),
            ("data/shop/docs.frm", "\u{fe}\u{1}"),
            ("data/shop/paid@002dorders.frm", "TYPE=VIEW\nquery=select 1\n"),
        ]);
        let files = Listing::below(&tree.source(), "/data").unwrap().beside_innodb.unwrap();
        let views = of_files(&tree.source(), &files).unwrap();
        assert_eq!(views, [("shop".to_owned(), "paid-orders".to_owned())]);
    }
}
