//! Triggers whose definer is no account: each statement that fires one fails.
//!
//! MySQL 8.0 finds triggers in its dictionary. Older servers and MariaDB open every table for them, but keep those of a table in
//! a text file beside it (TABLE.TRG), which is read where there are many tables and the server's host is this one.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::collectors::counted::few_tables;
use crate::context::Context;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row, SqlError};
use crate::table_files::{Listing, TableFile};

/// Triggers as all collectors need them: servers without a dictionary look for them beside each table.
pub(super) const TRIGGERS: &str = "SELECT TRIGGER_SCHEMA, TRIGGER_NAME, LEFT(ACTION_STATEMENT, 8000), '', DEFINER, SQL_MODE, CONCAT(EVENT_MANIPULATION, ' ON ', EVENT_OBJECT_TABLE), EVENT_OBJECT_TABLE, EVENT_OBJECT_SCHEMA FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA NOT IN ('mysql', 'sys') LIMIT 2000";
const ACCOUNTS: &str = "SELECT CONCAT(User, '@', Host) FROM mysql.user";

/// Files that are looked at, and the largest one.
const FILES: usize = 2000;
const LARGEST: u64 = 1 << 20;

/// Triggers that are named.
const NAMED: usize = 20;

/// A trigger whose definer is not there.
struct Trigger {
    name: String,
    table: String,
    definer: String,
}

/// Puts their number and their names; returns their definers.
pub(super) fn read(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) -> Vec<String> {
    let by_server = sql.has_dictionary();
    let (from, found) = match if by_server { Ok(()) } else { few_tables(sql) } {
        Ok(()) => ("information_schema.TRIGGERS", of_server(sql)),
        Err(many) => {
            let accounts = sql.rows(ACCOUNTS).map_err(|e| e.missing("SELECT on schema mysql"));
            let accounts = accounts.map(|rows| rows.into_iter().flatten().flatten().collect());
            let found = accounts.and_then(|accounts| of_files(context, &accounts));
            let why = |_: Missing| many.clone();
            ("the .TRG files of the data directory", found.map_err(why))
        }
    };
    readings.put("server.triggers.without_definer", from, found.as_ref().map(Vec::len).map_err(Clone::clone));
    let entry = |one: &Trigger| json!({"trigger": one.name, "table": one.table, "definer": one.definer});
    let named = found.as_ref().map(|all| all.iter().take(NAMED).map(entry).collect::<Vec<Value>>());
    readings.put("server.triggers.failing", from, named.map_err(Clone::clone));
    found.unwrap_or_default().into_iter().map(|one| one.definer).collect()
}

fn of_server(sql: &mut ReadOnly<'_>) -> Read<Vec<Trigger>> {
    let refused = |e: SqlError| e.missing("SELECT on schema mysql, and TRIGGER");
    let accounts = accounts(sql).map_err(refused)?;
    let rows = sql.shared(TRIGGERS).map_err(refused)?;
    let one = |row: &Row| {
        let cell = |place: usize| row.get(place)?.as_deref();
        let (schema, name, table, definer) = (cell(0)?, cell(1)?, cell(7)?, cell(4)?.to_owned());
        let is_there = accounts.contains(&by_host(&definer));
        let (name, table) = (format!("{schema}.{name}"), format!("{schema}.{table}"));
        (!is_there).then_some(Trigger { name, table, definer })
    };
    Ok(rows.iter().filter_map(one).collect())
}

/// The accounts of the server, as [`by_host`] writes them.
pub(super) fn accounts(sql: &mut ReadOnly<'_>) -> Result<BTreeSet<String>, SqlError> {
    let rows = sql.shared(ACCOUNTS)?;
    Ok(rows.iter().flatten().flatten().map(|name| by_host(name)).collect())
}

/// An account with its host in lower case, as servers compare hosts.
pub(super) fn by_host(account: &str) -> String {
    match account.rsplit_once('@') {
        Some((user, host)) => format!("{user}@{}", host.to_lowercase()),
        None => account.to_owned(),
    }
}

fn of_files(context: &Context, accounts: &BTreeSet<String>) -> Read<Vec<Trigger>> {
    let files = &Listing::of(context)?.of_triggers;
    if files.len() > FILES {
        return Err(Missing::Error(format!("there are triggers on more than {FILES} tables")));
    }
    let mut found = Vec::new();
    for TableFile { schema, table, path } in files {
        for (name, definer) in of_text(&context.source.text_within(path, LARGEST)?) {
            if !accounts.contains(&definer) {
                let name = format!("{schema}.{name}");
                found.push(Trigger { name, table: format!("{schema}.{table}"), definer });
            }
        }
    }
    Ok(found)
}

/// Names and definers of the triggers in a .TRG file: lists of quoted texts behind `triggers=` and `definers=`.
fn of_text(text: &str) -> Vec<(String, String)> {
    let listed = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
        quoted(line)
    };
    let names = listed("triggers=").into_iter().map(|statement| name_of(&statement).unwrap_or_default());
    names.zip(listed("definers=")).collect()
}

/// The name behind the word TRIGGER, which the definer stands before.
fn name_of(statement: &str) -> Option<String> {
    const WORD: &str = "TRIGGER";
    let upper = statement.to_ascii_uppercase();
    let is_blank =
        |at: Option<usize>| at.and_then(|at| upper.as_bytes().get(at)).is_none_or(u8::is_ascii_whitespace);
    let is_word = |at: &usize| is_blank(at.checked_sub(1)) && is_blank(Some(at + WORD.len()));
    let at = upper.match_indices(WORD).map(|(at, _)| at).find(is_word)?;
    let mut rest = statement.get(at + WORD.len()..)?.trim_start();
    for word in ["IF", "NOT", "EXISTS"] {
        let first = rest.split_whitespace().next().unwrap_or_default();
        rest = if first.eq_ignore_ascii_case(word) { rest[first.len()..].trim_start() } else { rest };
    }
    let (first, rest) = identifier(rest)?;
    match rest.trim_start().strip_prefix('.') {
        Some(rest) => Some(identifier(rest.trim_start())?.0),
        None => Some(first),
    }
}

/// The identifier that a text begins with, in backticks or without, and the text behind it.
fn identifier(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('`') else {
        let end = text.find(|c: char| c == '.' || c == '`' || c.is_whitespace()).unwrap_or(text.len());
        return Some((text[..end].to_owned(), &text[end..])).filter(|(name, _)| !name.is_empty());
    };
    // Two backticks are one of the name.
    let mut name = String::new();
    let mut rest = quoted;
    loop {
        let (part, behind) = rest.split_once('`')?;
        name.push_str(part);
        match behind.strip_prefix('`') {
            Some(more) => {
                name.push('`');
                rest = more;
            }
            None => return Some((name, behind)),
        }
    }
}

/// Texts in single quotes with blanks between them; a backslash stands before a quote, a line's end and itself.
fn quoted(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut rest = line.chars();
    while rest.by_ref().any(|c| c == '\'') {
        let mut text = String::new();
        while let Some(c) = rest.next() {
            match c {
                '\'' => break,
                '\\' => match rest.next() {
                    Some('n') => text.push('\n'),
                    Some(other) => text.push(other),
                    None => {}
                },
                c => text.push(c),
            }
        }
        all.push(text);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_triggers_tells_their_names_and_definers() {
        let text = "TYPE=TRIGGERS\ntriggers='CREATE DEFINER=`leaver`@`%` TRIGGER orders_bi BEFORE INSERT ON orders FOR EACH ROW SET NEW.a=\\'x\\'' 'CREATE DEFINER=`root`@`localhost` TRIGGER `shop bu` BEFORE UPDATE ON orders FOR EACH ROW\\nSET NEW.a=1'\nsql_modes=1436549152 1436549152\ndefiners='leaver@%' 'root@localhost'\nclient_cs_names='utf8' 'utf8'\n";
        let of = |name: &str, definer: &str| (name.to_owned(), definer.to_owned());
        assert_eq!(of_text(text), [of("orders_bi", "leaver@%"), of("shop bu", "root@localhost")]);
        assert_eq!(of_text("TYPE=TRIGGERS\n"), []);
        for (statement, name) in [
            ("CREATE DEFINER=`a`@`%` TRIGGER `shop`.`orders_bi` BEFORE INSERT ON orders", "orders_bi"),
            ("CREATE TRIGGER shop . orders_bi BEFORE INSERT ON orders", "orders_bi"),
            ("CREATE DEFINER=`trigger`@`%` trigger\n if not exists `a``b`\nBEFORE", "a`b"),
        ] {
            assert_eq!(name_of(statement).as_deref(), Some(name), "{statement}");
        }
    }
}
