//! Who probably holds the locks of tables that others wait for, where the server does not tell it: by the tables that a silent
//! session has locked, by its last statements, or by how long it has slept.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::collectors::session_list::{LIST, text, without_port};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// Tables that sessions which wait for their client have locked (LOCK TABLES).
const LOCKED: [Wording; 1] = [(
    "SELECT t.PROCESSLIST_ID, COALESCE(t.PROCESSLIST_USER, ''), COALESCE(t.PROCESSLIST_HOST, ''), COALESCE(t.PROCESSLIST_TIME, 0), CONCAT(h.OBJECT_SCHEMA, '.', h.OBJECT_NAME) FROM performance_schema.table_handles h JOIN performance_schema.threads t ON t.THREAD_ID = h.OWNER_THREAD_ID WHERE h.EXTERNAL_LOCK IS NOT NULL AND h.EXTERNAL_LOCK <> '' AND t.PROCESSLIST_COMMAND = 'Sleep' AND t.PROCESSLIST_ID IS NOT NULL LIMIT 20",
    &[mysql(50_703..), mariadb(100_502..)],
)];

/// Silent sessions one of whose last statements was FLUSH or LOCK TABLES.
const FLUSHED: [Wording; 1] = [(
    "SELECT DISTINCT t.PROCESSLIST_ID, COALESCE(t.PROCESSLIST_USER, ''), COALESCE(t.PROCESSLIST_HOST, ''), COALESCE(t.PROCESSLIST_TIME, 0) FROM performance_schema.events_statements_history h JOIN performance_schema.threads t ON t.THREAD_ID = h.THREAD_ID WHERE h.EVENT_NAME IN ('statement/sql/flush', 'statement/sql/lock_tables') AND h.ERRORS = 0 AND t.PROCESSLIST_COMMAND = 'Sleep' AND t.PROCESSLIST_ID IS NOT NULL AND NOT EXISTS (SELECT 1 FROM performance_schema.events_statements_history u WHERE u.THREAD_ID = h.THREAD_ID AND u.EVENT_NAME = 'statement/sql/unlock_tables' AND u.EVENT_ID > h.EVENT_ID) LIMIT 5",
    &[mysql(50_605..), mariadb(100_502..)],
)];

/// Sessions of a list; more say nothing.
const FEW: usize = 5;

/// Whether the state of a session is a wait for a lock of a table, or of the server.
fn waits(state: &str) -> bool {
    state.starts_with("Waiting for ")
        && (state.ends_with(" metadata lock")
            || ["global read lock", "commit lock", "backup lock"].iter().any(|lock| state.ends_with(lock)))
}

/// Sessions that probably hold what others wait for, with the reason.
pub(super) fn probable(sql: &mut ReadOnly<'_>) -> Vec<Value> {
    let rows = sql.rows(LIST).unwrap_or_default();
    if !rows.iter().any(|row| waits(&text(row, 6))) {
        return Vec::new();
    }
    let entry = |row: &Row, why: String| {
        let session = text(row, 0).parse::<u64>().ok()?;
        let slept = text(row, 3).parse::<u64>().unwrap_or(0);
        let (user, host) = (text(row, 1), text(row, 2));
        Some(json!({"session": session, "user": user, "host": host, "idle_s": slept, "why": why}))
    };
    let mut found: Vec<Value> = Vec::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for row in first_of(sql, &LOCKED).1.map(|table| table.rows).unwrap_or_default() {
        if seen.insert(text(&row, 0)) {
            found.extend(entry(&row, format!("it has locked {} and is silent", text(&row, 4))));
        }
    }
    for row in first_of(sql, &FLUSHED).1.map(|table| table.rows).unwrap_or_default() {
        if seen.insert(text(&row, 0)) {
            found.extend(entry(&row, "FLUSH or LOCK TABLES was one of its last statements".to_owned()));
        }
    }
    if found.is_empty() {
        found = asleep_since_before(&rows);
        if found.len() > FEW {
            found = of_those_who_may(sql, &rows, found);
        }
    }
    found.truncate(FEW);
    found
}

/// Sessions that have slept since before the wait began, in the schema of those that wait: few of them are worth a look.
fn asleep_since_before(rows: &[Row]) -> Vec<Value> {
    let time = |row: &Row| text(row, 5).parse::<u64>().unwrap_or(0);
    let waiting = || rows.iter().filter(|row| waits(&text(row, 6)));
    let longest = waiting().map(&time).max().unwrap_or(0);
    let schemas: BTreeSet<String> =
        waiting().map(|row| text(row, 3)).filter(|name| !name.is_empty()).collect();
    let global = rows.iter().any(waits_for_all);
    let found: Vec<Value> = rows
        .iter()
        .filter(|row| text(row, 4) == "Sleep" && time(row) >= longest)
        .filter(|row| global || schemas.contains(&text(row, 3)))
        .filter_map(|row| {
            let session = text(row, 0).parse::<u64>().ok()?;
            let (user, host) = (text(row, 1), text(row, 2));
            Some(json!({
                "session": session, "user": user, "host": without_port(&host), "idle_s": time(row),
                "why": "it has been silent since before the wait began",
            }))
        })
        .collect();
    found
}

/// Whether a session waits for a lock of the whole server.
fn waits_for_all(row: &Row) -> bool {
    let state = text(row, 6);
    waits(&state) && !state.ends_with(" metadata lock")
}

/// Of many silent sessions, those whose account may lock the whole server, where that is what others wait for, and few of them.
fn of_those_who_may(sql: &mut ReadOnly<'_>, rows: &[Row], found: Vec<Value>) -> Vec<Value> {
    if !rows.iter().any(waits_for_all) {
        return Vec::new();
    }
    let users = sql.rows("SELECT DISTINCT User FROM mysql.user WHERE Reload_priv = 'Y' LIMIT 1000");
    let users: BTreeSet<String> = users.unwrap_or_default().into_iter().flatten().flatten().collect();
    let mut few: Vec<Value> = found;
    few.retain(|entry| entry["user"].as_str().is_some_and(|user| users.contains(user)));
    for entry in &mut few {
        entry["why"] =
            "it has been silent since before the wait began, and its account may lock the whole server"
                .into();
    }
    if few.len() > FEW { Vec::new() } else { few }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows one account that may lock the server.
    struct Nobody;
    impl crate::sql::Sql for Nobody {
        fn table(
            &mut self,
            _: &str,
            _: Option<std::time::Duration>,
        ) -> Result<crate::sql::Table, crate::sql::SqlError> {
            Ok(crate::sql::Table { columns: vec![], rows: vec![vec![Some("backup".to_owned())]] })
        }
    }

    #[test]
    fn of_a_pool_that_sleeps_the_one_that_may_lock_the_server_is_told() {
        let row = |id: &str, user: &str, command: &str, time: &str, state: &str| -> Row {
            [id, user, "h:77", "", command, time, state, ""].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let mut rows: Vec<Row> = (10..20).map(|id| row(&id.to_string(), "web", "Sleep", "900", "")).collect();
        rows.push(row("1", "web", "Query", "50", "Waiting for backup lock"));
        rows.push(row("2", "backup", "Sleep", "1400", ""));
        let found = of_those_who_may(&mut ReadOnly::new(&mut Nobody), &rows, asleep_since_before(&rows));
        assert_eq!(found.iter().map(|one| one["session"].as_u64()).collect::<Vec<_>>(), [Some(2)]);
        rows[10] = row("1", "web", "Query", "50", "Waiting for table metadata lock");
        assert!(
            of_those_who_may(&mut ReadOnly::new(&mut Nobody), &rows, asleep_since_before(&rows)).is_empty()
        );
    }

    #[test]
    fn who_is_silent_since_before_the_wait_is_suspected_where_there_are_few() {
        let row = |id: &str, schema: &str, command: &str, time: &str, state: &str| -> Row {
            [id, "app", "h:77", schema, command, time, state, ""].map(|cell| Some(cell.to_owned())).to_vec()
        };
        let rows = [
            row("1", "shop", "Query", "50", "Waiting for table metadata lock"),
            row("2", "shop", "Sleep", "3000", ""),
            row("3", "shop", "Sleep", "49", ""),
            row("4", "other", "Sleep", "3000", ""),
        ];
        let found = asleep_since_before(&rows);
        assert_eq!(found.iter().map(|one| one["session"].as_u64()).collect::<Vec<_>>(), [Some(2)]);
        let many: Vec<Row> = rows[..1].iter().cloned().chain((0..6).map(|_| rows[1].clone())).collect();
        let mut none = Nobody;
        assert!(
            of_those_who_may(&mut ReadOnly::new(&mut none), &many, asleep_since_before(&many)).is_empty()
        );
        let global = [row("1", "shop", "Query", "50", "Waiting for global read lock"), rows[3].clone()];
        assert_eq!(asleep_since_before(&global).len(), 1);
    }
}
