//! The channels that a server replicates from.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::bounds::shortened;
use crate::collectors::server::typed;
use crate::collectors::{replication_filters, replication_unused};
use crate::context::Context;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mariadb, mysql};

/// All channels.
const REPLICATION: [Wording; 4] = [
    ("SHOW ALL REPLICAS STATUS", &[mariadb(100_501..)]),
    ("SHOW ALL SLAVES STATUS", &[mariadb(100_000..).until(100_501)]),
    ("SHOW REPLICA STATUS", &[mysql(80_022..)]),
    ("SHOW SLAVE STATUS", &[mysql(0..).until(80_022), mariadb(0..).until(100_000)]),
];

/// In MariaDB the status of the channel contains it.
const HEARTBEATS: [Wording; 1] = [(
    "SELECT CHANNEL_NAME, HEARTBEAT_INTERVAL FROM performance_schema.replication_connection_configuration",
    &[mysql(50_702..)],
)];

/// Errors of the applier's workers, which the channel's own error only refers to.
const WORKERS: [Wording; 1] = [(
    "SELECT CHANNEL_NAME, LAST_ERROR_NUMBER, LAST_ERROR_MESSAGE FROM performance_schema.replication_applier_status_by_worker WHERE LAST_ERROR_NUMBER > 0 ORDER BY LAST_ERROR_NUMBER LIMIT 20",
    &[mysql(50_702..)],
)];

/// The replicas that registered.
const REPLICAS: [Wording; 3] = [
    ("SHOW REPLICAS", &[mysql(80_022..)]),
    ("SHOW REPLICA HOSTS", &[mariadb(100_501..)]),
    ("SHOW SLAVE HOSTS", &[mysql(50_500..).until(80_022), mariadb(0..).until(100_501)]),
];

/// Facts of all channels together.
const OF_ALL: [&str; 5] = [
    "server.replication.channels",
    "server.replication_unused",
    "server.gtid.own_ids",
    "server.replication_stopped",
    "server.gtid.own",
];

/// Puts the facts of all channels.
pub(super) fn read(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (statement, table) = first_of(sql, &REPLICATION);
    let table = table.map_err(|e| e.missing("REPLICATION CLIENT (REPLICA MONITOR in MariaDB)"));
    let mut table = match table {
        Ok(table) => table,
        Err(missing) => {
            for id in OF_ALL {
                readings.put::<Value>(id, statement, Err(missing.clone()));
            }
            return replication_filters::put_missing(statement, &missing, readings);
        }
    };
    let own = own_transactions(context);
    let unused = replication_unused::take(&mut table, own.as_ref().map_or(0, |own| own.0), context);
    readings.put("server.replication_unused", statement, Ok(unused));
    readings.put("server.replication.channels", statement, Ok(table.rows.len()));
    let own = match table.rows.is_empty() {
        true => Err(Missing::Absent("this server is no replica".to_owned())),
        false => own,
    };
    let ids = own.clone().map(|(_, ids)| ids.into_iter().map(Value::from).collect::<Vec<Value>>());
    readings.put("server.gtid.own", "SHOW GLOBAL VARIABLES", own.map(|(number, _)| number));
    readings.put("server.gtid.own_ids", "SHOW GLOBAL VARIABLES", ids);
    let heartbeats = match table.rows.is_empty() {
        true => Ok(vec![]),
        false => first_of(sql, &HEARTBEATS)
            .1
            .map(|t| t.rows)
            .map_err(|e| e.missing("SELECT on performance_schema")),
    };
    let workers = match table.rows.is_empty() {
        true => vec![],
        false => first_of(sql, &WORKERS).1.map(|t| t.rows).unwrap_or_default(),
    };
    let mut stopped: Vec<Value> = Vec::new();
    let mut patterns = Vec::new();
    for row in 0..table.rows.len() {
        let cell = |names: &[&str]| names.iter().find_map(|name| table.cell(row, name)).unwrap_or_default();
        let channel = match cell(&["Connection_name", "Channel_Name"]) {
            "" => "default",
            name => name,
        };
        for (fact, names) in [
            ("io_running", ["Replica_IO_Running", "Slave_IO_Running"]),
            ("sql_running", ["Replica_SQL_Running", "Slave_SQL_Running"]),
            ("lag_s", ["Seconds_Behind_Source", "Seconds_Behind_Master"]),
            ("delay_s", ["SQL_Delay", "SQL_Delay"]),
            ("heartbeat_s", ["Slave_heartbeat_period", "Slave_heartbeat_period"]),
            ("last_errno", ["Last_Errno", "Last_SQL_Errno"]),
            ("last_io_errno", ["Last_IO_Errno", "Last_IO_Errno"]),
            ("last_error", ["Last_SQL_Error", "Last_Error"]),
            ("last_io_error", ["Last_IO_Error", "Last_IO_Error"]),
            ("gtid_mode", ["Using_Gtid", "Auto_Position"]),
            ("encrypted", ["Source_SSL_Allowed", "Master_SSL_Allowed"]),
            ("user", ["Source_User", "Master_User"]),
            ("applier_state", ["Replica_SQL_Running_State", "Slave_SQL_Running_State"]),
            ("until", ["Until_Condition", "Until_Condition"]),
            ("skips", ["Skip_Counter", "SQL_Skip_Counter"]),
            ("retry_s", ["Connect_Retry", "Connect_Retry"]),
            ("source_id", ["Source_Server_Id", "Master_Server_Id"]),
        ] {
            let text = cell(&names);
            let value = match text {
                text if fact.ends_with("_error") => Ok(shortened(text.to_owned(), LONGEST_ERROR).into()),
                "" if fact == "heartbeat_s" => heartbeat(channel, &heartbeats),
                "" => Err(Missing::Absent(format!("the server does not tell {}", names[0]))),
                text => Ok(typed(fact, text)),
            };
            readings.put(&format!("server.replication.{channel}.{fact}"), statement, value);
        }
        let put = |fact: &str, from: &str, value: Read<Value>| {
            readings.put(&format!("server.replication.{channel}.{fact}"), from, value);
        };
        put("waiting_transactions", statement, waiting(&cell).map(Value::from));
        put("waiting_bytes", statement, waiting_bytes(&cell).map(Value::from));
        let failed = workers.iter().find(|row| row_is_of(row, channel));
        let error = failed.and_then(|row| row.get(2).cloned().flatten());
        let error = error.map(|text| Value::from(shortened(text, LONGEST_ERROR)));
        let none = || Missing::Absent("no worker tells an error".to_owned());
        let of_worker = error.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned();
        put("worker_error", "replication_applier_status_by_worker", error.ok_or_else(none));
        let runs = |names: &[&str]| cell(names).eq_ignore_ascii_case("Yes");
        if !runs(&["Replica_SQL_Running", "Slave_SQL_Running"])
            || !runs(&["Replica_IO_Running", "Slave_IO_Running"])
        {
            stopped.push(why_stopped(channel, &of_worker, &cell));
        }
        for (option, name) in [("ignore", "Replicate_Wild_Ignore_Table"), ("do", "Replicate_Wild_Do_Table")] {
            replication_filters::note(option, cell(&[name]), &mut patterns);
        }
        let set = FILTERS.iter().filter(|name| !cell(&[name]).is_empty());
        let filters: Vec<Value> = set.map(|name| Value::from(*name)).collect();
        readings.put(&format!("server.replication.{channel}.filters"), statement, Ok(filters));
    }
    readings.put("server.replication_stopped", statement, Ok(stopped));
    replication_filters::put(sql, statement, &patterns, readings);
}

/// Puts how many replicas read the binary log of this server, by the numbers that they give themselves: of several with one
/// number the server keeps the last.
pub(super) fn replicas(sql: &mut ReadOnly<'_>, dumps: Option<u64>, readings: &Readings) {
    const ID: &str = "server.replicas.numbers";
    if dumps == Some(0) {
        return readings.put(ID, "SHOW PROCESSLIST", Ok(0));
    }
    let (statement, table) = first_of(sql, &REPLICAS);
    let table = table.map_err(|e| e.missing("REPLICATION SLAVE (REPLICATION MASTER ADMIN in MariaDB)"));
    readings.put(ID, statement, table.map(|table| table.rows.len()));
}

/// The channel with what it tells of its end: the worker's error, that of the applier, or that of the receiver.
fn why_stopped<'a>(channel: &str, of_worker: &str, cell: &impl Fn(&[&str]) -> &'a str) -> Value {
    let number = |names: &[&str]| cell(names).parse::<u64>().unwrap_or(0);
    let applier = (number(&["Last_SQL_Errno", "Last_Errno"]), cell(&["Last_SQL_Error", "Last_Error"]));
    let receiver = (number(&["Last_IO_Errno"]), cell(&["Last_IO_Error"]));
    let (code, text) = match (applier, receiver) {
        ((code, _), _) if !of_worker.is_empty() => (code, of_worker),
        ((code, text), _) if !text.is_empty() => (code, text),
        (_, (code, text)) if !text.is_empty() => (code, text),
        _ => (0, "none was told"),
    };
    let waiting = waiting(cell).unwrap_or(0);
    let mut told = json!({"channel": channel, "errno": code, "error": shortened(text.to_owned(), LONGEST_ERROR), "waiting": waiting});
    let told_at = if applier.1.is_empty() && of_worker.is_empty() {
        "Last_IO_Error_Timestamp"
    } else {
        "Last_SQL_Error_Timestamp"
    };
    if let Some(since) = since(cell(&[told_at])) {
        told["since"] = since.into();
    }
    told
}

/// The time of an error, as in `261128 23:04:52`, with the century; MariaDB tells none.
fn since(text: &str) -> Option<String> {
    let (day, time) = text.trim().split_once(' ')?;
    let is_day = day.len() == 6 && day.bytes().all(|byte| byte.is_ascii_digit());
    is_day.then(|| format!("20{}-{}-{} {}", &day[..2], &day[2..4], &day[4..], time.trim()))
}

/// Whether a row of performance_schema, which begins with the channel's name, is of this channel. In MySQL the default
/// channel has no name.
fn row_is_of(row: &Row, channel: &str) -> bool {
    let name = row.first().and_then(Option::as_deref).unwrap_or_default();
    name == channel || name.is_empty() && channel == "default"
}

/// Transactions that were fetched and not yet applied, by the global ids of both: also while the applier stands still, when
/// no time of lag is told.
fn waiting<'a>(cell: &impl Fn(&[&str]) -> &'a str) -> Read<u64> {
    let (fetched, applied) = (cell(&["Retrieved_Gtid_Set"]), cell(&["Executed_Gtid_Set"]));
    if !fetched.is_empty() {
        return Ok(missing_from(fetched, applied));
    }
    let (fetched, applied) = (cell(&["Gtid_IO_Pos"]), cell(&["Gtid_Slave_Pos"]));
    if fetched.is_empty() || cell(&["Using_Gtid"]).eq_ignore_ascii_case("No") {
        return Err(Missing::Absent("this channel tells no global ids".to_owned()));
    }
    Ok(behind_in_domains(fetched, applied))
}

/// Bytes of the source's binary log that were fetched and not yet applied, where both stand in one file.
fn waiting_bytes<'a>(cell: &impl Fn(&[&str]) -> &'a str) -> Read<u64> {
    let fetched = cell(&["Source_Log_File", "Master_Log_File"]);
    let applied = cell(&["Relay_Source_Log_File", "Relay_Master_Log_File"]);
    if fetched.is_empty() || fetched != applied {
        return Err(Missing::Absent(
            "what was fetched and what was applied stand in different files".to_owned(),
        ));
    }
    let number = |names: &[&str]| {
        let text = cell(names);
        text.parse::<u64>().map_err(|_| Missing::Error(format!("expected a number, found {text:?}")))
    };
    let fetched = number(&["Read_Source_Log_Pos", "Read_Master_Log_Pos"])?;
    Ok(fetched.saturating_sub(number(&["Exec_Source_Log_Pos", "Exec_Master_Log_Pos"])?))
}

/// Transactions of the set `of` that are not in `from`, both in MySQL's form.
fn missing_from(of: &str, from: &str) -> u64 {
    let (of, from) = (intervals(of), intervals(from));
    of.iter()
        .map(|(owner, all)| {
            let known = from.get(owner).map_or(&[][..], Vec::as_slice);
            all.iter()
                .map(|one| one.1 - one.0 + 1 - known.iter().map(|k| common(*one, *k)).sum::<u64>())
                .sum::<u64>()
        })
        .sum()
}

/// Transactions that two intervals have in common.
fn common(one: (u64, u64), other: (u64, u64)) -> u64 {
    let (first, last) = (one.0.max(other.0), one.1.min(other.1));
    if first > last { 0 } else { last - first + 1 }
}

/// The intervals of a set by the server's id, with its tag where it has one; those of one id do not overlap.
fn intervals(set: &str) -> BTreeMap<String, Vec<(u64, u64)>> {
    let mut found: BTreeMap<String, Vec<(u64, u64)>> = BTreeMap::new();
    for part in set.split(',') {
        let mut pieces = part.trim().split(':');
        let Some(id) = pieces.next().map(str::to_ascii_lowercase) else { continue };
        let mut owner = id.clone();
        for piece in pieces {
            let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
            match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
                (Ok(first), Ok(last)) if last >= first => {
                    found.entry(owner.clone()).or_default().push((first, last))
                }
                (Ok(_), Ok(_)) => {}
                _ => owner = format!("{id}:{}", piece.trim()),
            }
        }
    }
    found
}

/// Transactions by which one position of MariaDB (domain-server-number, …) is behind another, summed over the domains.
fn behind_in_domains(fetched: &str, applied: &str) -> u64 {
    let numbers = |position: &str| -> BTreeMap<String, u64> {
        let one = |gtid: &str| {
            let mut parts = gtid.trim().split('-');
            let domain = parts.next()?.to_owned();
            Some((domain, parts.nth(1)?.parse().ok()?))
        };
        position.split(',').filter_map(one).collect()
    };
    let applied = numbers(applied);
    let behind =
        |(domain, number): (String, u64)| number.saturating_sub(applied.get(&domain).copied().unwrap_or(0));
    numbers(fetched).into_iter().map(behind).sum()
}

/// Longest text of an error that is kept, in bytes.
const LONGEST_ERROR: usize = 200;

/// Columns of a channel's status that hold filters, however these were set.
const FILTERS: [&str; 7] = [
    "Replicate_Do_DB",
    "Replicate_Ignore_DB",
    "Replicate_Do_Table",
    "Replicate_Ignore_Table",
    "Replicate_Wild_Do_Table",
    "Replicate_Wild_Ignore_Table",
    "Replicate_Do_Domain_Ids",
];

/// Transactions that began on this server, by its global ids: on a replica that was never a source they are changes that its
/// source does not have. Their number, and their ids.
fn own_transactions(context: &Context) -> Read<(u64, Vec<String>)> {
    if let Some(uuid) = context.variable("server_uuid") {
        let executed = context
            .variables
            .get("gtid_executed")
            .ok_or_else(|| Missing::Absent("this server has no gtid_executed".to_owned()))?;
        let of_this = executed
            .split(',')
            .map(str::trim)
            .filter(|part| part.split_once(':').is_some_and(|(owner, _)| owner.eq_ignore_ascii_case(uuid)));
        return Ok((transactions_of(executed, uuid), of_this.map(str::to_owned).collect()));
    }
    let last = context
        .variables
        .get("gtid_binlog_pos")
        .ok_or_else(|| Missing::Absent("this server has no gtid_binlog_pos".to_owned()))?;
    let id = context.variable("server_id").unwrap_or_default();
    let of_this = last.split(',').map(str::trim).filter(|gtid| gtid.split('-').nth(1) == Some(id));
    let ids: Vec<String> = of_this.map(str::to_owned).collect();
    Ok((ids.len() as u64, ids))
}

/// Transactions of one server in a set of MySQL's global ids, as in `uuid:1-5:8,uuid:1`. Tags, which are no intervals, are
/// passed by.
fn transactions_of(set: &str, uuid: &str) -> u64 {
    let intervals = set.split(',').filter_map(|part| {
        let (owner, rest) = part.trim().split_once(':')?;
        owner.eq_ignore_ascii_case(uuid).then_some(rest)
    });
    let length = |interval: &str| {
        let (first, last) = interval.split_once('-').unwrap_or((interval, interval));
        let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
        Some(last.saturating_sub(first) + 1)
    };
    intervals.flat_map(|rest| rest.split(':')).filter_map(length).sum()
}

/// The heartbeat period of a channel. In MySQL the default channel has no name.
fn heartbeat(channel: &str, heartbeats: &Read<Vec<Row>>) -> Read<Value> {
    let rows = heartbeats.as_ref().map_err(Clone::clone)?;
    let of_channel = rows.iter().find_map(|row| match &row[..] {
        [Some(name), Some(period)] if name == channel || name.is_empty() && channel == "default" => {
            Some(period)
        }
        _ => None,
    });
    of_channel
        .map(|period| typed("heartbeat_s", period))
        .ok_or_else(|| Missing::Absent("the server does not tell the period of its heartbeats".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transactions_of_one_server_are_counted_over_all_intervals_of_its_id() {
        let set = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5:8,\n4e11fa47-71ca-11e1-9e33-c80aa9429562:1-100";
        assert_eq!(transactions_of(set, "3E11FA47-71CA-11E1-9E33-C80AA9429562"), 6);
        assert_eq!(transactions_of(set, "5e11fa47-71ca-11e1-9e33-c80aa9429562"), 0);
        assert_eq!(transactions_of("4e11fa47:tag:1-3:9", "4e11fa47"), 4);
        assert_eq!(transactions_of("", "4e11fa47"), 0);
    }

    #[test]
    fn a_channel_that_stopped_tells_its_own_error() {
        let cells = [
            ("Last_IO_Errno", "2003"),
            ("Last_IO_Error", "error connecting to source"),
            ("Last_SQL_Errno", "0"),
        ];
        let cell = |names: &[&str]| {
            names
                .iter()
                .find_map(|name| cells.iter().find(|(n, _)| n == name))
                .map_or("", |(_, value)| *value)
        };
        let found = why_stopped("dwh", "", &cell);
        assert_eq!(
            found,
            json!({"channel": "dwh", "errno": 2003, "error": "error connecting to source", "waiting": 0})
        );
        assert_eq!(why_stopped("dwh", "a worker's", &cell)["error"], "a worker's");
    }

    #[test]
    fn the_time_of_an_error_is_told_with_its_century() {
        assert_eq!(since("261128 23:04:52").as_deref(), Some("2026-11-28 23:04:52"));
        assert_eq!(since("261128  3:04:52").as_deref(), Some("2026-11-28 3:04:52"));
        assert_eq!(since(""), None);
    }

    #[test]
    fn what_was_fetched_and_not_applied_is_counted_over_intervals_tags_and_domains() {
        let (a, b) = ("3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562");
        assert_eq!(missing_from(&format!("{a}:1-10"), &format!("{a}:1-4:7")), 5);
        assert_eq!(missing_from(&format!("{a}:1-10,\n{b}:1-3"), &format!("{a}:1-20")), 3);
        assert_eq!(missing_from(&format!("{a}:1-10:tag:1-5"), &format!("{a}:1-10:tag:1-4")), 1);
        assert_eq!(missing_from("", &format!("{a}:1-4")), 0);
        assert_eq!(behind_in_domains("0-1-100,5-1-7", "0-1-90"), 17);
        assert_eq!(behind_in_domains("0-1-100", "0-2-100"), 0);
    }
}
