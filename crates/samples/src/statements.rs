//! Counters that the server reports itself, read by statements that only read.

use mydyno_facts::{ReadOnly, SqlError};

use crate::own_sessions::OwnSessions;
use crate::values::Values;

/// SHOW GLOBAL STATUS: every value that is a number, as `server.status.NAME` with the name in lower case.
///
/// The statement needs no privilege. On MySQL it sums the counters of all sessions, so its cost grows with them.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn status(sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
    for row in sql.rows("SHOW GLOBAL STATUS")? {
        let [Some(name), Some(text), ..] = &row[..] else { continue };
        values.set_some(&format!("server.status.{}", name.to_ascii_lowercase()), text.parse().ok());
    }
    Ok(())
}

/// Sessions by what they do, from SHOW PROCESSLIST without those of `own`:
/// `server.sessions.{all,sleeping,running,locked,metadata_locked,committing}_now`, the age in seconds of the oldest
/// statement that runs, `server.sessions.oldest_s_now`, and the replicas that receive the binary log, which are no sessions of
/// these, `server.sessions.replicas_now`.
///
/// Without the privilege PROCESS the server shows only sessions of mydyno's own account; `server.sessions.all_now` is
/// then smaller than `server.status.threads_connected`. The text of statements is not kept.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn sessions(sql: &mut ReadOnly<'_>, own: &OwnSessions, values: &mut Values) -> Result<(), SqlError> {
    let table = sql.table("SHOW PROCESSLIST")?;
    let (mut all, mut sleeping, mut running, mut oldest_s) = (0_u32, 0_u32, 0_u32, 0.0_f64);
    let (mut locked, mut metadata_locked, mut committing, mut replicas) = (0_u32, 0_u32, 0_u32, 0_u32);
    for row in 0..table.rows.len() {
        let command = table.cell(row, "Command").unwrap_or_default();
        replicas += u32::from(command.starts_with("Binlog Dump"));
        // Threads of the server itself, replicas that receive the binary log, and mydyno's own sessions.
        let is_own = table.cell(row, "Id").is_some_and(|id| own.has(id));
        if command == "Daemon" || command.starts_with("Binlog Dump") || is_own {
            continue;
        }
        all += 1;
        if command == "Sleep" {
            sleeping += 1;
            continue;
        }
        running += 1;
        let state = table.cell(row, "State").unwrap_or_default().to_ascii_lowercase();
        locked += u32::from(state.contains("lock"));
        metadata_locked += u32::from(state.contains("metadata lock"));
        committing += u32::from(state.contains("commit"));
        let age_s = table.cell(row, "Time").and_then(|text| text.parse().ok());
        oldest_s = oldest_s.max(age_s.unwrap_or(0.0));
    }
    for (name, value) in [
        ("all", all),
        ("sleeping", sleeping),
        ("running", running),
        ("locked", locked),
        ("metadata_locked", metadata_locked),
        ("committing", committing),
        ("replicas", replicas),
    ] {
        values.set(&format!("server.sessions.{name}_now"), f64::from(value));
    }
    values.set("server.sessions.oldest_s_now", oldest_s);
    Ok(())
}

/// Counters of information_schema.INNODB_METRICS that SHOW GLOBAL STATUS of some servers lacks: name there, name here.
const METRICS: [(&str, &str); 13] = [
    ("trx_rseg_history_len", "server.innodb.history_length_now"),
    ("lock_deadlocks", "server.innodb.deadlocks"),
    ("lock_timeouts", "server.innodb.lock_timeouts"),
    ("log_lsn_checkpoint_age", "server.innodb.checkpoint_age_bytes_now"),
    ("innodb_rwlock_s_spin_waits", "server.innodb.rwlock_s_spin_waits"),
    ("innodb_rwlock_s_spin_rounds", "server.innodb.rwlock_s_spin_rounds"),
    ("innodb_rwlock_s_os_waits", "server.innodb.rwlock_s_os_waits"),
    ("innodb_rwlock_x_spin_waits", "server.innodb.rwlock_x_spin_waits"),
    ("innodb_rwlock_x_spin_rounds", "server.innodb.rwlock_x_spin_rounds"),
    ("innodb_rwlock_x_os_waits", "server.innodb.rwlock_x_os_waits"),
    ("innodb_rwlock_sx_spin_waits", "server.innodb.rwlock_sx_spin_waits"),
    ("innodb_rwlock_sx_spin_rounds", "server.innodb.rwlock_sx_spin_rounds"),
    ("innodb_rwlock_sx_os_waits", "server.innodb.rwlock_sx_os_waits"),
];

/// The text of MySQL 9 at counters that it no longer counts.
const NOT_COUNTED: &str = "always 0";

/// Enabled counters of InnoDB, as `server.innodb.{history_length_now,deadlocks,lock_timeouts,checkpoint_age_bytes_now}` and
/// `server.innodb.rwlock_{s,x,sx}_{spin_waits,spin_rounds,os_waits}`. The table needs the privilege PROCESS.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn innodb_metrics(sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
    let names = METRICS.map(|(theirs, _)| format!("'{theirs}'")).join(", ");
    let table =
        sql.table(&format!("SELECT * FROM information_schema.INNODB_METRICS WHERE NAME IN ({names})"))?;
    for row in 0..table.rows.len() {
        // MySQL and older MariaDB: STATUS is `enabled` or `disabled`; MariaDB since 10.4: ENABLED is 1 or 0.
        let enabled = match (table.cell(row, "STATUS"), table.cell(row, "ENABLED")) {
            (Some(status), _) => status.eq_ignore_ascii_case("enabled"),
            (None, enabled) => enabled == Some("1"),
        };
        let counted = !table.cell(row, "COMMENT").is_some_and(|comment| comment.contains(NOT_COUNTED));
        let ours = METRICS.iter().find(|(theirs, _)| table.cell(row, "NAME") == Some(*theirs));
        if let (true, Some((_, ours))) = (enabled && counted, ours) {
            values.set_some(ours, table.cell(row, "COUNT").and_then(|text| text.parse().ok()));
        }
    }
    Ok(())
}

/// Kinds of files in the performance schema: event there, name here.
const FILES: [(&str, &str); 3] = [
    ("wait/io/file/innodb/innodb_data_file", "data"),
    ("wait/io/file/innodb/innodb_log_file", "redo"),
    ("wait/io/file/sql/binlog", "binlog"),
];

/// Calls to files and their times, from the performance schema where it is on:
/// `server.file.{data,redo,binlog}.{read,write,misc}{s,_s}`. Syncs are most of `misc`, which also counts opening and closing.
/// Without the performance schema there are no values.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn file_calls(sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
    let names = FILES.map(|(event, _)| format!("'{event}'")).join(", ");
    let table = sql.table(&format!(
        "SELECT * FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME IN ({names})"
    ))?;
    for row in 0..table.rows.len() {
        let Some((_, file)) = FILES.iter().find(|(event, _)| table.cell(row, "EVENT_NAME") == Some(*event))
        else {
            continue;
        };
        let number = |column: &str| table.cell(row, column).and_then(|text| text.parse::<f64>().ok());
        for call in ["READ", "WRITE", "MISC"] {
            let ours = format!("server.file.{file}.{}", call.to_ascii_lowercase());
            values.set_some(&format!("{ours}s"), number(&format!("COUNT_{call}")));
            // Timers are in picoseconds.
            values.set_some(&format!("{ours}_s"), number(&format!("SUM_TIMER_{call}")).map(|ps| ps * 1e-12));
        }
    }
    Ok(())
}

/// Statements and their time, from the performance schema where it is on and counts statements: `server.statements.{count_all,time_s}`.
/// Without it, and where its statements are not counted, there are no values.
///
/// # Errors
/// The server refuses or has no such table (MySQL 5.5, MariaDB before 10.0), or the connection is lost.
pub fn statement_times(sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
    let table = sql.table(
        "SELECT SUM(COUNT_STAR) AS COUNT, SUM(SUM_TIMER_WAIT) AS TIME FROM performance_schema.events_statements_summary_global_by_event_name",
    )?;
    let number = |column: &str| table.cell(0, column).and_then(|text| text.parse::<f64>().ok());
    if let Some(count) = number("COUNT").filter(|count| *count > 0.0) {
        values.set("server.statements.count_all", count);
        // Timers are in picoseconds.
        values.set_some("server.statements.time_s", number("TIME").map(|ps| ps * 1e-12));
    }
    Ok(())
}

/// `ER_NO_SUCH_TABLE`, and `ER_TABLEACCESS_DENIED_ERROR`: what an account without rights on the schema is told of a table, there or not.
const NO_SUCH_TABLE: u16 = 1146;
const DENIED: u16 = 1142;

/// Errors of statements, where no counter of InnoDB can be trusted with deadlocks: MySQL 5.7.22 and 8.0.12 leave theirs at 0.
///
/// | value | meaning |
/// |---|---|
/// | `server.errors.deadlocks` | errors of a deadlock since the start; MySQL 8.0 and later |
/// | `server.errors.statements` | statements that ended in an error, of any kind; older ones with the performance schema |
///
/// A server with `Innodb_deadlocks`, as MariaDB, is not asked.
///
/// # Errors
/// The server refuses, or the connection is lost.
pub fn errors(sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
    if values.get("server.status.innodb_deadlocks").is_some() {
        return Ok(());
    }
    for (name, statement) in [
        (
            "server.errors.deadlocks",
            "SELECT SUM_ERROR_RAISED AS RAISED FROM performance_schema.events_errors_summary_global_by_error WHERE ERROR_NUMBER = 1213",
        ),
        (
            "server.errors.statements",
            "SELECT SUM(SUM_ERRORS) AS RAISED FROM performance_schema.events_statements_summary_global_by_event_name",
        ),
    ] {
        match sql.table(statement) {
            Ok(table) => {
                values.set_some(name, table.cell(0, "RAISED").and_then(|text| text.parse().ok()));
                return Ok(());
            }
            // Other servers have no such table.
            Err(SqlError::Refused { code: NO_SUCH_TABLE | DENIED, .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use mydyno_facts::is_status_gauge;

    use super::*;
    use crate::scripted::{Scripted, read, table};

    #[test]
    fn status_values_that_are_numbers_are_kept_under_lower_case_names() {
        let answer = table(
            &["Variable_name", "Value"],
            &[
                &["Questions", "42"],
                &["Innodb_row_lock_time_avg", "0.5"],
                &["Rsa_public_key", "PEM"],
                &["Odd", "inf"],
            ],
        );
        let (values, _) = read(Scripted::always(answer), status);
        let found: Vec<(&str, f64)> = values.numbers.iter().map(|(n, v)| (&**n, *v)).collect();
        assert_eq!(
            found,
            [("server.status.questions", 42.0), ("server.status.innodb_row_lock_time_avg", 0.5)]
        );
        assert!(is_status_gauge("threads_running") && !is_status_gauge("questions"));
    }

    #[test]
    fn sessions_are_counted_by_what_they_do() {
        let answer = table(
            &["Id", "User", "Host", "db", "Command", "Time", "State", "Info"],
            &[
                &["1", "event_scheduler", "localhost", "", "Daemon", "900", "Waiting on empty queue", ""],
                &["2", "a", "h", "d", "Sleep", "700", "", ""],
                &["3", "a", "h", "d", "Query", "12", "Waiting for table metadata lock", "ALTER"],
                &["4", "a", "h", "d", "Query", "3", "waiting for handler commit", "COMMIT"],
                &["6", "r", "h", "", "Binlog Dump GTID", "90", "Master has sent all binlog to slave", ""],
                &["9", "mydyno", "h", "", "Query", "0", "starting", "SHOW PROCESSLIST"],
                &["10", "mydyno", "h", "", "Query", "0", "starting", "SHOW ENGINE INNODB STATUS"],
            ],
        );
        let own = OwnSessions::default();
        ["9", "10"].into_iter().for_each(|id| own.add(id.to_owned()));
        let (values, _) = read(Scripted::always(answer), |sql, values| sessions(sql, &own, values));
        for (name, value) in [
            ("all", 3.0),
            ("sleeping", 1.0),
            ("running", 2.0),
            ("locked", 1.0),
            ("metadata_locked", 1.0),
            ("committing", 1.0),
            ("replicas", 1.0),
            ("oldest_s", 12.0),
        ] {
            assert_eq!(values.numbers[format!("server.sessions.{name}_now").as_str()], value, "{name}");
        }
    }

    #[test]
    fn metrics_that_are_not_enabled_are_left_out_in_both_dialects() {
        // MySQL 9.7 lists counters of latches that it does not count.
        let mysql = table(
            &["NAME", "COUNT", "STATUS", "COMMENT"],
            &[
                &["trx_rseg_history_len", "77", "enabled", "Length of the TRX_RSEG_HISTORY list"],
                &[
                    "log_lsn_checkpoint_age",
                    "0",
                    "disabled",
                    "Current LSN value minus LSN at last checkpoint",
                ],
                &["innodb_rwlock_s_spin_waits", "0", "enabled", "Deprecated counter, always 0"],
            ],
        );
        let mariadb = table(
            &["NAME", "COUNT", "ENABLED"],
            &[&["trx_rseg_history_len", "77", "1"], &["log_lsn_checkpoint_age", "0", "0"]],
        );
        for answer in [mysql, mariadb] {
            let (values, _) = read(Scripted::always(answer), innodb_metrics);
            let found: Vec<(&str, f64)> = values.numbers.iter().map(|(n, v)| (&**n, *v)).collect();
            assert_eq!(found, [("server.innodb.history_length_now", 77.0)]);
        }
    }

    #[test]
    fn calls_to_files_are_in_seconds() {
        let answer = table(
            &[
                "EVENT_NAME",
                "COUNT_READ",
                "SUM_TIMER_READ",
                "COUNT_WRITE",
                "SUM_TIMER_WRITE",
                "COUNT_MISC",
                "SUM_TIMER_MISC",
            ],
            &[&["wait/io/file/sql/binlog", "1", "0", "2", "500000000000", "3", "2000000000000"]],
        );
        let (values, _) = read(Scripted::always(answer), file_calls);
        assert_eq!(values.numbers["server.file.binlog.writes"], 2.0);
        assert_eq!(values.numbers["server.file.binlog.write_s"], 0.5);
        assert_eq!(values.numbers["server.file.binlog.miscs"], 3.0);
        assert_eq!(values.numbers["server.file.binlog.misc_s"], 2.0);
    }

    #[test]
    fn a_server_without_counts_of_errors_has_no_value() {
        let (values, _) = read(Scripted::always(table(&["RAISED"], &[&["411"]])), errors);
        assert_eq!(values.numbers["server.errors.deadlocks"], 411.0);
        let (values, _) = read(Scripted::always(table(&["RAISED"], &[&["411"]])), |sql, values| {
            values.set("server.status.innodb_deadlocks", 2.0);
            errors(sql, values)
        });
        assert_eq!(values.numbers.len(), 1, "{values:?}");
        for code in [1142, 1146] {
            let refused = SqlError::Refused { code, message: "no such table".to_owned() };
            let (values, ended) = read(Scripted::failing(refused), errors);
            assert!(values.numbers.is_empty() && ended.is_ok());
        }
    }

    #[test]
    fn a_server_that_refuses_or_is_gone_leaves_values_out() {
        let gone = SqlError::Connection("no complete answer within 5 s".to_owned());
        for reading in [status as fn(&mut ReadOnly<'_>, &mut Values) -> _, innodb_metrics, file_calls] {
            let (values, ended) = read(Scripted::failing(gone.clone()), reading);
            assert!(values.numbers.is_empty() && ended == Err(gone.clone()));
        }
    }
}
