//! Counters that the server reports itself, read by statements that only read.

use std::time::{Duration, Instant};

use mydyno_facts::{ReadOnly, Sql};

use crate::bus::Counters;
use crate::values::Values;

/// Time limit for the statements of one group at one instant.
const LIMIT: Duration = Duration::from_secs(5);

/// SHOW GLOBAL STATUS: every value that is a number, as `server.status.NAME` with the name in lower case.
///
/// The statement needs no privilege. On MySQL it sums the counters of all sessions, so its cost grows with them.
pub struct GlobalStatus<C>(pub C);

impl<C: Sql + Send> Counters for GlobalStatus<C> {
    fn group(&self) -> &'static str {
        "status"
    }

    fn read(&mut self, values: &mut Values) {
        for row in rows(&mut self.0, "SHOW GLOBAL STATUS") {
            let [Some(name), Some(text), ..] = &row[..] else { continue };
            values.set_some(&format!("server.status.{}", name.to_ascii_lowercase()), text.parse().ok());
        }
    }
}

/// Sessions by what they do, from SHOW PROCESSLIST: `server.sessions.{all,sleeping,running,locked}_now`, and the age of the
/// oldest statement that runs, `server.sessions.oldest_s_now`.
///
/// Without the privilege PROCESS the server shows only sessions of mydyno's own account; `server.sessions.all_now` is
/// then smaller than `server.status.threads_connected`. The text of statements is not kept.
pub struct Sessions<C>(pub C);

impl<C: Sql + Send> Counters for Sessions<C> {
    fn group(&self) -> &'static str {
        "sessions"
    }

    fn read(&mut self, values: &mut Values) {
        let mut sql = ReadOnly::new(&mut self.0);
        sql.until(Instant::now() + LIMIT);
        let Ok(table) = sql.table("SHOW PROCESSLIST") else { return };
        let (mut all, mut sleeping, mut running, mut locked, mut oldest_s) =
            (0_u32, 0_u32, 0_u32, 0_u32, 0.0_f64);
        for row in 0..table.rows.len() {
            let command = table.cell(row, "Command").unwrap_or_default();
            // Threads of the server itself, and replicas that receive the binary log.
            if command == "Daemon" || command.starts_with("Binlog Dump") {
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
            let age_s = table.cell(row, "Time").and_then(|text| text.parse().ok());
            oldest_s = oldest_s.max(age_s.unwrap_or(0.0));
        }
        for (name, value) in [("all", all), ("sleeping", sleeping), ("running", running), ("locked", locked)]
        {
            values.set(&format!("server.sessions.{name}_now"), f64::from(value));
        }
        values.set("server.sessions.oldest_s_now", oldest_s);
    }
}

/// The rows of a statement; none when it failed, so that its values are left out of the sample.
fn rows(connection: &mut impl Sql, statement: &str) -> Vec<mydyno_facts::Row> {
    let mut sql = ReadOnly::new(connection);
    sql.until(Instant::now() + LIMIT);
    sql.rows(statement).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mydyno_facts::{SqlError, Table, is_status_gauge};

    /// Answers every statement with the same table.
    struct Scripted(Result<Table, SqlError>);

    impl Sql for Scripted {
        fn table(&mut self, _: &str, _: Option<Duration>) -> Result<Table, SqlError> {
            self.0.clone()
        }
    }

    fn table(columns: &[&str], rows: &[&[&str]]) -> Scripted {
        let cells = |row: &&[&str]| row.iter().map(|cell| Some((*cell).to_owned())).collect();
        let columns = columns.iter().map(|c| (*c).to_owned()).collect();
        Scripted(Ok(Table { columns, rows: rows.iter().map(cells).collect() }))
    }

    fn read(mut counters: impl Counters) -> Values {
        let mut values = Values::default();
        counters.read(&mut values);
        values
    }

    #[test]
    fn status_values_that_are_numbers_are_kept_under_lower_case_names() {
        let values = read(GlobalStatus(table(
            &["Variable_name", "Value"],
            &[
                &["Questions", "42"],
                &["Innodb_row_lock_time_avg", "0.5"],
                &["Rsa_public_key", "PEM"],
                &["Odd", "inf"],
            ],
        )));
        let found: Vec<(&str, f64)> = values.0.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        assert_eq!(
            found,
            [("server.status.questions", 42.0), ("server.status.innodb_row_lock_time_avg", 0.5)]
        );
        assert!(is_status_gauge("threads_running") && !is_status_gauge("questions"));
    }

    #[test]
    fn sessions_are_counted_by_what_they_do() {
        let values = read(Sessions(table(
            &["Id", "User", "Host", "db", "Command", "Time", "State", "Info"],
            &[
                &["1", "event_scheduler", "localhost", "", "Daemon", "900", "Waiting on empty queue", ""],
                &["2", "a", "h", "d", "Sleep", "700", "", ""],
                &["3", "a", "h", "d", "Query", "12", "Waiting for table metadata lock", "ALTER"],
                &["4", "a", "h", "d", "Query", "3", "executing", "SELECT"],
            ],
        )));
        for (name, value) in
            [("all", 3.0), ("sleeping", 1.0), ("running", 2.0), ("locked", 1.0), ("oldest_s", 12.0)]
        {
            assert_eq!(values.0[&format!("server.sessions.{name}_now")], value, "{name}");
        }
    }

    #[test]
    fn a_server_that_refuses_or_is_gone_leaves_values_out() {
        let gone = SqlError::Connection("no complete answer within 5 s".to_owned());
        assert!(read(GlobalStatus(Scripted(Err(gone.clone())))).0.is_empty());
        assert!(read(Sessions(Scripted(Err(gone)))).0.is_empty());
    }
}
