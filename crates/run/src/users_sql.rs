//! Statements that users wrote: whether they may run, and whether the server takes them.

use mydyno_wire::{Client, WireError};
use mydyno_workload::mix::Asked;
use mydyno_workload::sql_text::Class;

use crate::error::RunError;

/// The way out for statements that may write where mydyno may not.
const ALLOW: &str = "give --allow-write if that is meant";

/// Every statement that may write where mydyno did not make the tables. `database` is where they run, `ours` whether
/// mydyno made it.
pub fn unpermitted(asked: &[Asked], database: &str, ours: bool, allow_write: bool) -> Vec<String> {
    if allow_write {
        return Vec::new();
    }
    asked.iter().filter_map(|asked| reason(asked, database, ours)).collect()
}

fn reason(asked: &Asked, database: &str, ours: bool) -> Option<String> {
    let Asked { place, sql, class, .. } = asked;
    match class {
        Class::Reads => None,
        Class::Writes(_) if !ours => Some(format!(
            "{place}: {} changes or locks rows of a database that mydyno did not make: {ALLOW}",
            shown(sql)
        )),
        Class::Writes(named) => named.iter().find(|name| *name != database).map(|name| {
            format!(
                "{place}: {} names {name:?}, which looks like another database than {database}: {ALLOW}",
                shown(sql)
            )
        }),
        Class::Other => Some(format!("{place}: {} is not known to only read: {ALLOW}", shown(sql))),
    }
}

/// The beginning of a statement.
fn shown(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("`{}…`", &line[..end]),
        None => format!("`{line}`"),
    }
}

/// The server's error for a statement that cannot be prepared (ER_UNSUPPORTED_PS): it is sent as text.
const NOT_PREPARABLE: u16 = 1295;

/// Lets the server prepare every statement, so that a wrong column is found before the load starts.
///
/// # Errors
/// Every statement that it refuses, with its place; or the connection failed.
pub fn try_out(client: &mut Client, asked: &[Asked], database: &str) -> Result<(), RunError> {
    if asked.is_empty() {
        return Ok(());
    }
    if !database.is_empty() {
        client.use_schema(database).map_err(RunError::wire("choosing the database"))?;
    }
    let mut reasons = Vec::new();
    for asked in asked {
        match client.prepare(&asked.sql) {
            Ok(prepared) => {
                let columns = prepared.columns.len();
                if columns < asked.keeps {
                    reasons.push(format!(
                        "{}: {} keeps {} columns and its result has {columns}",
                        asked.place,
                        shown(&asked.sql),
                        asked.keeps
                    ));
                }
                client.close_statement(&prepared).map_err(RunError::wire("trying out a statement"))?;
            }
            Err(WireError::Server(error)) if error.code == NOT_PREPARABLE => {}
            Err(WireError::Server(error)) => {
                reasons.push(format!("{}: {}: {}", asked.place, shown(&asked.sql), WireError::Server(error)));
            }
            Err(error) => return Err(RunError::wire("trying out a statement")(error)),
        }
    }
    if reasons.is_empty() { Ok(()) } else { Err(RunError::Guarded(reasons)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_workload::sql_text::classify;

    fn asked(sql: &str) -> Vec<Asked> {
        let class = classify(sql);
        vec![Asked { place: "--sql (the 1.)".to_owned(), sql: sql.to_owned(), keeps: 0, class }]
    }

    #[test]
    fn reading_needs_no_permission() {
        assert!(unpermitted(&asked("SELECT * FROM prod.t"), "shop", false, false).is_empty());
    }

    #[test]
    fn writing_to_somebodys_tables_needs_permission_by_name() {
        for sql in ["UPDATE t SET a = 1", "SELECT a FROM t FOR UPDATE", "DROP TABLE t"] {
            let reasons = unpermitted(&asked(sql), "shop", false, false);
            assert!(reasons.len() == 1 && reasons[0].contains("--allow-write"), "{sql}: {reasons:?}");
            assert!(unpermitted(&asked(sql), "shop", false, true).is_empty(), "{sql}");
        }
    }

    #[test]
    fn writing_to_our_own_tables_is_what_a_mix_does_but_only_there() {
        assert!(unpermitted(&asked("UPDATE item SET a = 1"), "mydyno", true, false).is_empty());
        assert!(unpermitted(&asked("UPDATE mydyno.item SET a = 1"), "mydyno", true, false).is_empty());
        let elsewhere = unpermitted(&asked("UPDATE prod.item SET a = 1"), "mydyno", true, false);
        assert!(elsewhere[0].contains("\"prod\""), "{elsewhere:?}");
        assert_eq!(unpermitted(&asked("DROP DATABASE prod"), "mydyno", true, false).len(), 1);
    }
}
