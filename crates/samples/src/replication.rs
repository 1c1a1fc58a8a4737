//! The channels by which the server receives the changes of others.

use mydyno_facts::{ReadOnly, SqlError};

use crate::values::Values;

/// The error of a statement that this version does not know.
const SYNTAX_ERROR: u16 = 1064;

/// The statements for the channels: MariaDB since 10.0; MySQL since 8.0.22; MySQL until 8.3.
const STATEMENTS: [&str; 3] = ["SHOW ALL SLAVES STATUS", "SHOW REPLICA STATUS", "SHOW SLAVE STATUS"];

/// Reads the channels by the statement that the server knows.
///
/// | value | meaning |
/// |---|---|
/// | `server.replica.CHANNEL.lag_s_now` | seconds behind the source, as the server estimates them; absent while it does not know |
/// | `server.replica.CHANNEL.{receiver,applier}_now` | 1 while the thread that receives or applies changes runs, else 0 |
/// | `server.replica.CHANNEL.relay_bytes_now` | size of the relay logs |
/// | `server.replica.CHANNEL.error_now` | number of the last error; 0 without one |
#[derive(Debug, Default)]
pub struct Replication {
    known: Option<&'static str>,
}

impl Replication {
    /// Reads the channels; a server that is no replica has none. It needs the privilege REPLICATION CLIENT, in MariaDB since
    /// 10.5 REPLICA MONITOR. The statement waits while a channel is being stopped.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub fn read(&mut self, sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
        let mut ended = Ok(());
        for statement in STATEMENTS {
            if self.known.is_some_and(|known| known != statement) {
                continue;
            }
            match sql.table(statement) {
                Err(error @ SqlError::Refused { code: SYNTAX_ERROR, .. }) => ended = Err(error),
                Err(error) => return Err(error),
                Ok(table) => {
                    self.known = Some(statement);
                    channels(&table, values);
                    return Ok(());
                }
            }
        }
        ended
    }
}

fn channels(table: &mydyno_facts::Table, values: &mut Values) {
    for row in 0..table.rows.len() {
        let cell = |names: &[&str]| names.iter().find_map(|name| table.cell(row, name));
        let channel = cell(&["Connection_name", "Channel_Name"]).filter(|name| !name.is_empty());
        let channel = channel.unwrap_or("default");
        let mut set = |what: &str, value: Option<f64>| {
            values.set_some(&format!("server.replica.{channel}.{what}"), value);
        };
        let runs = |names: &[&str]| Some(f64::from(u8::from(cell(names)? == "Yes")));
        let number = |names: &[&str]| cell(names).and_then(|text| text.parse().ok());
        set("lag_s_now", number(&["Seconds_Behind_Source", "Seconds_Behind_Master"]));
        set("receiver_now", runs(&["Replica_IO_Running", "Slave_IO_Running"]));
        set("applier_now", runs(&["Replica_SQL_Running", "Slave_SQL_Running"]));
        set("relay_bytes_now", number(&["Relay_Log_Space"]));
        let errors = [number(&["Last_IO_Errno"]), number(&["Last_SQL_Errno"])];
        set("error_now", errors.into_iter().flatten().reduce(f64::max));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripted::{Scripted, read, table};

    fn refused(sql: &str) -> Result<mydyno_facts::Table, SqlError> {
        Err(SqlError::Refused { code: SYNTAX_ERROR, message: format!("error near {sql}") })
    }

    #[test]
    fn channels_of_both_families_have_the_same_names() {
        let mariadb = table(
            &[
                "Connection_name",
                "Slave_IO_Running",
                "Slave_SQL_Running",
                "Last_Errno",
                "Relay_Log_Space",
                "Seconds_Behind_Master",
                "Last_IO_Errno",
                "Last_SQL_Errno",
            ],
            &[&["", "Yes", "No", "1062", "5000", "7", "0", "1062"]],
        );
        let mysql = table(
            &[
                "Replica_IO_Running",
                "Replica_SQL_Running",
                "Relay_Log_Space",
                "Seconds_Behind_Source",
                "Last_IO_Errno",
                "Last_SQL_Errno",
                "Channel_Name",
            ],
            &[&["Yes", "No", "5000", "7", "0", "1062", ""]],
        );
        let wanted = [("lag_s_now", 7.0), ("receiver_now", 1.0), ("applier_now", 0.0)];
        let wanted = wanted.into_iter().chain([("relay_bytes_now", 5000.0), ("error_now", 1062.0)]);
        for (statement, answer) in [("SHOW ALL SLAVES STATUS", mariadb), ("SHOW REPLICA STATUS", mysql)] {
            let scripted = Scripted::by(move |sql| match sql == statement {
                true => Ok(answer.clone()),
                false => refused(sql),
            });
            let (values, ended) = read(scripted, |sql, values| Replication::default().read(sql, values));
            assert_eq!(ended, Ok(()), "{statement}");
            for (what, value) in wanted.clone() {
                assert_eq!(values.get(&format!("server.replica.default.{what}")), Some(value), "{what}");
            }
        }
    }

    #[test]
    fn a_lag_that_the_server_does_not_know_is_absent_and_a_server_without_channels_has_none() {
        let mut lagging = table(&["Connection_name", "Seconds_Behind_Master"], &[&["east", ""]]);
        lagging.rows[0][1] = None;
        let (values, _) =
            read(Scripted::always(lagging), |sql, values| Replication::default().read(sql, values));
        assert_eq!(values.numbers.len(), 0, "{values:?}");
        let none = table(&["Connection_name"], &[]);
        let (values, ended) =
            read(Scripted::always(none), |sql, values| Replication::default().read(sql, values));
        assert!(values.numbers.is_empty() && ended.is_ok());
    }

    #[test]
    fn a_server_that_knows_no_statement_says_so() {
        let (_, ended) = read(Scripted::by(refused), |sql, values| Replication::default().read(sql, values));
        assert!(matches!(ended, Err(SqlError::Refused { code: SYNTAX_ERROR, .. })));
    }
}
