//! Statements written by users: whether they may run, and whether the server accepts them.

use mydyno_tables::sql_text::{Class, named_databases};
use mydyno_wire::column::kind;
use mydyno_wire::{Client, Column, ServerVersion, WireError};
use mydyno_workload::user_statement::{Keep, UserStatement};

use crate::error::RunError;

/// The remedy for statements that may write to tables that mydyno did not make.
const ALLOW: &str = "give --allow-write if that is intended";

/// The database of a user's statements, and their permissions.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The database.
    pub database: &'a str,
    /// Whether mydyno made it, or makes the tables in it.
    pub ours: bool,
    /// Whether the sessions are READ ONLY, so that the server refuses writes that the text does not show.
    pub read_only: bool,
}

/// Every statement that may write to tables that mydyno did not make.
pub fn unpermitted(asked: &[UserStatement], place: Scope<'_>, allow_write: bool) -> Vec<String> {
    if allow_write {
        return Vec::new();
    }
    asked.iter().filter_map(|asked| reason(asked, place)).collect()
}

/// Statements that should run in READ ONLY sessions, which the server does not support: MySQL before 5.6.5 and MariaDB
/// before 10.0, <https://dev.mysql.com/doc/refman/5.6/en/set-transaction.html>.
pub fn unwatched(server: &ServerVersion, place: Scope<'_>, allow_write: bool) -> Option<String> {
    let has_them = if server.is_mariadb() { server.at_least(10, 0, 0) } else { server.at_least(5, 6, 5) };
    (place.read_only && !allow_write && !has_them).then(|| {
        format!(
            "the server ({}) has no transactions that only read, in which it would refuse what a statement's text does not tell, as of a stored function that writes: give --allow-write if these statements write nothing, or if that is intended",
            server.text
        )
    })
}

fn reason(asked: &UserStatement, at: Scope<'_>) -> Option<String> {
    let Scope { database, ours, read_only } = at;
    let UserStatement { place, sql, class, .. } = asked;
    match class {
        Class::Reads if read_only => None,
        // A function of that database may write.
        Class::Reads => elsewhere(&named_databases(sql), database).map(|name| {
            format!(
                "{place}: {} names {name:?}, which looks like another database than {database}, in a session that may write: {ALLOW}",
                shown(sql)
            )
        }),
        Class::Writes(_) if !ours => Some(format!(
            "{place}: {} changes or locks rows of a database that mydyno did not make: {ALLOW}",
            shown(sql)
        )),
        Class::Writes(named) => elsewhere(named, database).map(|name| {
            format!(
                "{place}: {} names {name:?}, which looks like another database than {database}: {ALLOW}",
                shown(sql)
            )
        }),
        Class::Other => Some(format!("{place}: {} is not known to only read: {ALLOW}", shown(sql))),
    }
}

/// The first other database that is named.
fn elsewhere<'a>(named: &'a [String], database: &str) -> Option<&'a String> {
    named.iter().find(|name| *name != database)
}

/// The beginning of a statement.
fn shown(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(60) {
        Some((end, _)) => format!("`{}…`", &line[..end]),
        None => format!("`{line}`"),
    }
}

/// The server's error for a statement that cannot be prepared (ER_UNSUPPORTED_PS): it is sent as text instead.
const NOT_PREPARABLE: u16 = 1295;

/// Prepares every statement on the server, so that a wrong column is found before the load starts.
///
/// # Errors
/// Every refused statement with its position; or the connection failed.
pub fn try_out(client: &mut Client, asked: &[UserStatement], database: &str) -> Result<(), RunError> {
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
                let (place, sql) = (&asked.place, shown(&asked.sql));
                let (keeps, columns) = (asked.keeps.len(), prepared.columns.len());
                if columns < keeps {
                    reasons
                        .push(format!("{place}: {sql} keeps {keeps} columns and its result has {columns}"));
                }
                for (keep, column) in asked.keeps.iter().zip(&prepared.columns) {
                    if *keep == Keep::Int && !is_whole(column) {
                        reasons.push(format!(
                            "{place}: {sql} keeps column {:?} as \"int\", and it holds no whole numbers: keep it as \"text\", or convert it with CAST",
                            column.name
                        ));
                    }
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

/// Whether a column may contain integers: text columns may.
fn is_whole(column: &Column) -> bool {
    match column.kind {
        kind::DECIMAL | kind::NEWDECIMAL => column.decimals == 0,
        kind::FLOAT | kind::DOUBLE | kind::BIT => false,
        kind::DATE | kind::DATETIME | kind::TIMESTAMP | kind::TIME => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_tables::sql_text::classify;

    const THEIRS: Scope<'_> = Scope { database: "shop", ours: false, read_only: false };
    const OURS: Scope<'_> = Scope { database: "mydyno", ours: true, read_only: false };

    fn asked(sql: &str) -> Vec<UserStatement> {
        let class = classify(sql);
        vec![UserStatement {
            place: "--sql (the 1.)".to_owned(),
            sql: sql.to_owned(),
            keeps: Vec::new(),
            class,
        }]
    }

    #[test]
    fn reads_of_users_tables_need_a_server_that_can_refuse_writes() {
        let reported = |version: &str, place, allow| {
            let server = ServerVersion::parse(version, 1, mydyno_wire::Capabilities::default());
            unwatched(&server, place, allow)
        };
        let watched = Scope { read_only: true, ..THEIRS };
        for old in ["5.5.62", "5.6.4", "5.5.68-MariaDB"] {
            assert!(reported(old, watched, false).unwrap().contains("--allow-write"), "{old}");
            assert_eq!(reported(old, watched, true), None);
            assert_eq!(reported(old, THEIRS, false), None);
        }
        for new in ["5.6.51", "8.0.36", "5.5.5-10.1.48-MariaDB"] {
            assert_eq!(reported(new, watched, false), None, "{new}");
        }
    }

    #[test]
    fn reading_needs_no_permission() {
        assert!(
            unpermitted(&asked("SELECT * FROM prod.t"), Scope { read_only: true, ..THEIRS }, false)
                .is_empty()
        );
        assert!(unpermitted(&asked("SELECT a FROM t WHERE t.a = 1"), OURS, false).is_empty());
    }

    #[test]
    fn reading_elsewhere_needs_a_session_that_cannot_write() {
        let reasons = unpermitted(&asked("SELECT a FROM t WHERE a = prod.f(1)"), OURS, false);
        assert!(reasons.len() == 1 && reasons[0].contains("\"prod\""), "{reasons:?}");
    }

    #[test]
    fn writing_to_somebodys_tables_needs_permission_by_name() {
        for sql in ["UPDATE t SET a = 1", "SELECT a FROM t FOR UPDATE", "DROP TABLE t"] {
            let reasons = unpermitted(&asked(sql), THEIRS, false);
            assert!(reasons.len() == 1 && reasons[0].contains("--allow-write"), "{sql}: {reasons:?}");
            assert!(unpermitted(&asked(sql), THEIRS, true).is_empty(), "{sql}");
        }
    }

    #[test]
    fn writing_to_our_own_tables_is_what_a_mix_does_but_only_there() {
        assert!(unpermitted(&asked("UPDATE item SET a = 1"), OURS, false).is_empty());
        assert!(unpermitted(&asked("UPDATE mydyno.item SET a = 1"), OURS, false).is_empty());
        let elsewhere = unpermitted(&asked("UPDATE prod.item SET a = 1"), OURS, false);
        assert!(elsewhere[0].contains("\"prod\""), "{elsewhere:?}");
        assert_eq!(unpermitted(&asked("DROP DATABASE prod"), OURS, false).len(), 1);
    }
}
