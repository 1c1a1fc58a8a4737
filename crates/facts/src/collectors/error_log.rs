//! The server's error log: crashes, corruption, starts that failed, and resources that ran out.

use std::collections::{BTreeSet, HashMap, VecDeque};

use serde_json::{Value, json};
use time::macros::format_description;
use time::{Date, OffsetDateTime, PrimitiveDateTime, Time};

use crate::bounds::shortened;
use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::error_log_accounts;
use crate::collectors::error_log_kinds::{BY_HOUR, KINDS, NO_THREAD, OF_START};
use crate::collectors::triggers::accounts;
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::{ReadOnly, Row};
use crate::wording::{Wording, first_of, mysql};

/// Messages of the error log.
pub static COLLECTOR: Collector = Collector {
    name: "error-log",
    cost: Cost { host_ms: 10, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact("server.error_log.source", "", "the file or table that was read"),
        fact("server.error_log.whole", "", "whether all of it was read: of a file the last 4 MiB are"),
        fact(
            "server.error_log.KIND.count",
            "count",
            "lines of one kind: crash, recovery, corruption, crashed_table, failed_start, disk_full, open_files, memory, stall, io_error, upgrade, missing_file, replication, plugin, unsafe, file_limit, host_name, event, long_undo, init_connect, logging_off, thread_stack, row_size, thread_pool, messages, tls, certificate_subject, same_uuid; of plugin, upgrade, file_limit, messages and tls those since the server last ended in order",
        ),
        fact(
            "server.error_log.KIND.last_age_s",
            "s",
            "age of the last of them; the time zone of the log is not known, so it can be wrong by half a day",
        ),
        fact("server.error_log.KIND.last_line", "", "the last of them"),
        fact(
            "server.error_log.same_uuid.last_hour",
            "count",
            "lines of this kind within the hour before the last of them",
        ),
        fact(
            "server.error_log.accounts.KIND",
            "",
            "accounts of lines of a kind, refused (logins) or aborted (connections), and numbers of replicas that began to read the binary log (dumps), the most frequent first: account, count, last_hour (lines within the hour before the last line of the kind), last_age_s; 5 at most",
        ),
        fact(
            "server.error_log.repeated",
            "",
            "the most frequent message of a file, numbers aside: line (the last such), count, lines (all that are read)",
        ),
    ],
    run: Run::Server(run),
};

/// Bytes that are read from the end of a file.
const TAIL: u64 = 4 << 20;

/// Longest line that is kept, in bytes.
const LONGEST_LINE: usize = 240;

/// MySQL keeps what it read of the log at its start, and what came since, in a ring in memory.
const TABLE: [Wording; 1] = [(
    "SELECT DATE_FORMAT(LOGGED, '%Y-%m-%dT%H:%i:%s'), PRIO, DATA FROM performance_schema.error_log WHERE PRIO = 'Error' OR DATA LIKE '%got signal %' OR DATA LIKE '%Starting crash recovery%' OR DATA LIKE '%Disk is full%' OR DATA LIKE '%intended loop took%' OR DATA LIKE '%log writer is waiting%' OR DATA LIKE '%Unsafe statement%' OR DATA LIKE '%max_open_files%' OR DATA LIKE '%could not be resolved%' OR DATA LIKE '%Difficult to find free blocks%' OR DATA LIKE '%init_connect command failed%' OR DATA LIKE '%Turning logging off%' OR DATA LIKE '%Thread stack overrun%' OR DATA LIKE '%maximum allowed size%' OR DATA LIKE '%Row size too large%' OR DATA LIKE '%create additional thread%' OR DATA LIKE '%mismatch: should be%' OR DATA LIKE '%Failed to set up SSL%' OR DATA LIKE '%SSL error%' OR DATA LIKE '%with the same%' OR DATA LIKE '%Shutdown complete%' OR DATA LIKE '%ready for connections%' ORDER BY LOGGED DESC LIMIT 5000",
    &[mysql(80_022..)],
)];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (source, text) = match of_file(context) {
        Ok((path, text, whole)) => (path, Ok((text, whole))),
        Err(of_file) => {
            let (statement, table) = first_of(sql, &TABLE);
            match table {
                Ok(table) => (statement.to_owned(), Ok((of_table(&table.rows), table.rows.len() < 5000))),
                // The file's reason says more than a table that this server may not have.
                Err(_) => ("log_error".to_owned(), Err(of_file)),
            }
        }
    };
    let (text, whole) = match text {
        Ok(read) => read,
        Err(missing) => {
            for kind in &KINDS {
                let id = format!("server.error_log.{}.count", kind.name);
                readings.put::<Value>(&id, source.clone(), Err(missing.clone()));
            }
            for kind in error_log_accounts::KINDS {
                let id = format!("server.error_log.accounts.{kind}");
                readings.put::<Value>(&id, source.clone(), Err(missing.clone()));
            }
            return readings.rest_is(&source, &missing);
        }
    };
    readings.put("server.error_log.source", source.clone(), Ok(source.clone()));
    readings.put("server.error_log.whole", source.clone(), Ok(whole));
    let told = match source.starts_with('/') {
        true => repeated(&text).ok_or_else(|| Missing::Absent("the log holds no message".to_owned())),
        false => Err(Missing::Absent("messages are counted in a file only".to_owned())),
    };
    readings.put("server.error_log.repeated", source.clone(), told);
    let now = OffsetDateTime::now_utc();
    let users = source.starts_with('/').then(|| accounts(sql).ok()).flatten();
    let no_users = BTreeSet::new();
    for (kind, mut accounts) in error_log_accounts::read(&text, now) {
        // Without the right to read the accounts each name may be none.
        if kind == "refused" {
            error_log_accounts::without_strangers(&mut accounts, users.as_ref().unwrap_or(&no_users));
        }
        let told = match source.starts_with('/') {
            true => Ok(accounts),
            // There would be too many of them among the lines that are asked for.
            false => Err(Missing::Absent("logins are looked for in a file only".to_owned())),
        };
        readings.put(&format!("server.error_log.accounts.{kind}"), source.clone(), told);
    }
    for (kind, found) in KINDS.iter().zip(found(&text)) {
        let id = |fact: &str| format!("server.error_log.{}.{fact}", kind.name);
        readings.put(&id("count"), source.clone(), Ok(found.count));
        if kind.name == BY_HOUR {
            readings.put(&id("last_hour"), source.clone(), Ok(found.hour.len()));
        }
        if let Some(line) = found.last {
            readings.put(
                &id("last_line"),
                source.clone(),
                Ok(shortened(told_to_no_client(line), LONGEST_LINE)),
            );
        }
        if let Some(at) = found.at {
            let age_s = (now - at.assume_utc()).as_seconds_f64().max(0.0);
            readings.put(&id("last_age_s"), source.clone(), Ok(age_s.round()));
        }
    }
}

/// The end of the log's file, and whether it is the whole.
fn of_file(context: &Context) -> Read<(String, String, bool)> {
    let log = context.variable("log_error").unwrap_or("stderr");
    let server = context.server.as_ref().map_err(Clone::clone)?;
    if ["stderr", ""].contains(&log) {
        let to = context.source.link(&server.file("fd/2")).unwrap_or_default();
        // A file that a shell or a service manager gave the server as its standard error is a log as any other.
        if !to.starts_with('/') || to.starts_with("/dev/") || to.ends_with(" (deleted)") {
            return Err(Missing::Absent(match to.as_str() {
                "/dev/null" => "the error log goes to standard error, which is /dev/null: nothing keeps it".to_owned(),
                to if to.ends_with(" (deleted)") => {
                    format!("the error log goes to standard error, a file that was deleted: {to}")
                }
                _ => "the error log goes to standard error, as to the journal of systemd: journalctl -u mariadb (or mysql)".to_owned(),
            }));
        }
        let seen = format!("{}{to}", mounts::view(&context.source, server)?);
        let (text, whole) = context.source.end_of(&seen, TAIL)?;
        return Ok((to, text, whole));
    }
    let path = match (log.strip_prefix('/'), context.variable("datadir")) {
        (Some(_), _) => log.to_owned(),
        (None, Some(datadir)) => {
            format!("{}/{}", datadir.trim_end_matches('/'), log.trim_start_matches("./"))
        }
        (None, None) => return Err(Missing::Absent(format!("{log} is below a datadir that is not known"))),
    };
    let seen = format!("{}{path}", mounts::view(&context.source, server)?);
    let (text, whole) = context.source.end_of(&seen, TAIL)?;
    Ok((path, text, whole))
}

/// Lines as the log's file has them, oldest first.
fn of_table(rows: &[Row]) -> String {
    let cell = |row: &Row, place: usize| row.get(place).cloned().flatten().unwrap_or_default();
    let lines = rows.iter().rev().map(|row| {
        let level = cell(row, 1).to_ascii_uppercase();
        format!("{} [{level}] {}", cell(row, 0), cell(row, 2).replace('\n', " "))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Lines of one kind.
#[derive(Default)]
struct Found<'a> {
    count: u64,
    last: Option<&'a str>,
    at: Option<PrimitiveDateTime>,
    /// Times of those within the hour before the last one, of the kind that is judged by it.
    hour: VecDeque<Option<PrimitiveDateTime>>,
}

fn found(log: &str) -> [Found<'_>; KINDS.len()] {
    let mut found: [Found<'_>; KINDS.len()] = Default::default();
    let mut at = None;
    // With innodb_fast_shutdown = 2 InnoDB recovers at the start after each orderly end.
    let mut in_order = false;
    for line in log.lines() {
        at = instant(line).or(at);
        in_order =
            (in_order || line.contains("Shutdown complete")) && !line.contains("ready for connections");
        let ends = line.contains("Shutdown complete");
        for (kind, found) in KINDS.iter().zip(&mut found) {
            if ends && OF_START.contains(&kind.name) {
                *found = Found::default();
            }
            let error = !kind.errors_only || line.contains("[ERROR]");
            let of_thread = kind.name == "memory" && line.contains(NO_THREAD);
            let of_order = kind.name == "recovery" && in_order;
            // MySQL 5.7 says so where nobody set up a certificate.
            let of_none = kind.name == "tls" && line.contains("not usable without certificate");
            if error
                && !of_thread
                && !of_order
                && !of_none
                && kind.texts.iter().any(|text| line.contains(text))
            {
                let told = found.last.filter(|last| kind.name == "corruption" && tells_more(last, line));
                found.count += 1;
                (found.last, found.at) = (told.or(Some(line.trim_end())), at);
                if kind.name == BY_HOUR {
                    found.hour.push_back(at);
                    let within = |then: &Option<PrimitiveDateTime>| {
                        then.zip(at).is_none_or(|(then, now)| now - then < time::Duration::HOUR)
                    };
                    while found.hour.front().is_some_and(|first| !within(first)) {
                        found.hour.pop_front();
                    }
                }
            }
        }
    }
    found
}

/// Whether an earlier line names a table with its schema or its file, and a later one does not.
fn tells_more(earlier: &str, later: &str) -> bool {
    let names_place = |line: &str| line.contains(".ibd") || line.contains("`.`");
    names_place(earlier) && !names_place(later)
}

/// A line without the words by which MySQL begins a message that it could give to no client, and which leave no room for it.
fn told_to_no_client(line: &str) -> String {
    const FROM: &str = "A message intended for a client cannot be sent there";
    const TO: &str = "instead: ";
    match (line.find(FROM), line.find(TO)) {
        (Some(from), Some(to)) if to > from => format!("{}{}", &line[..from], &line[to + TO.len()..]),
        _ => line.to_owned(),
    }
}

/// The most frequent message of a log. Two lines hold the same message where they differ in numbers alone, behind the time and the
/// number of the session, which end before the level in brackets.
fn repeated(log: &str) -> Option<Value> {
    let mut counts: HashMap<String, (u64, &str)> = HashMap::new();
    let mut lines = 0_u64;
    for line in log.lines() {
        lines += 1;
        let Some(from) = line.find('[') else { continue };
        let message: String =
            line[from..].chars().filter(|c| !c.is_ascii_digit()).take(LONGEST_LINE).collect();
        let entry = counts.entry(message).or_default();
        *entry = (entry.0 + 1, line);
    }
    let most = counts.into_iter().max_by(|(a, (m, _)), (b, (n, _))| m.cmp(n).then_with(|| b.cmp(a)));
    let (_, (count, line)) = most?;
    let line = shortened(line.trim_end().to_owned(), LONGEST_LINE);
    Some(json!({"line": line, "count": count, "lines": lines}))
}

/// The time at the beginning of a line: `2026-11-23 17:14:13` (MariaDB), `2026-11-23T17:14:13` (MySQL 5.7), or
/// `261123 17:14:13` (MariaDB's signal handler, and older servers).
pub(super) fn instant(line: &str) -> Option<PrimitiveDateTime> {
    let (day, rest) = match line.as_bytes().get(4)? {
        b'-' => {
            (Date::parse(line.get(..10)?, format_description!("[year]-[month]-[day]")).ok()?, line.get(11..)?)
        }
        _ => {
            let day = format!("20{}", line.get(..6)?);
            (Date::parse(&day, format_description!("[year][month][day]")).ok()?, line.get(7..)?)
        }
    };
    let rest = rest.trim_start();
    let time = match rest.as_bytes().get(1)? {
        b':' => format!("0{}", rest.get(..7)?),
        _ => rest.get(..8)?.to_owned(),
    };
    let time = Time::parse(&time, format_description!("[hour]:[minute]:[second]")).ok()?;
    Some(PrimitiveDateTime::new(day, time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    const LOG: &str = "\
2026-11-20  9:14:13 0 [Note] InnoDB: Starting crash recovery from checkpoint LSN=46590
2026-11-20 10:00:00 7 [ERROR] mariadbd: Table './shop/old' is marked as crashed and should be repaired
2026-11-20 10:00:01 7 [Warning] mariadbd: Disk is full writing './bin.000001' (Errcode: 28 \"No space left on device\").
261121 11:22:33 [ERROR] mysqld got signal 11 ;
Sorry, we probably made a mistake, and this is a bug.
2026-11-22 12:00:00 0 [ERROR] InnoDB: Database page corruption on disk or a failed read of file './shop/t.ibd'
2026-11-22 12:00:01 0 [Note] InnoDB: nothing is corrupt
2026-11-22 12:00:02 0 [ERROR] Aborting
2026-11-22T12:00:03.123456Z 0 [ERROR] [MY-010119] [Server] Aborting
";

    #[test]
    fn each_kind_of_line_is_counted_with_its_last_line_and_time() {
        let found = found(LOG);
        let by = |name: &str| &found[KINDS.iter().position(|kind| kind.name == name).unwrap()];
        for (name, count, at) in [
            ("crash", 1, Some(datetime!(2026-11-21 11:22:33))),
            ("recovery", 1, Some(datetime!(2026-11-20 9:14:13))),
            ("corruption", 1, Some(datetime!(2026-11-22 12:00:00))),
            ("crashed_table", 1, Some(datetime!(2026-11-20 10:00:00))),
            ("failed_start", 2, Some(datetime!(2026-11-22 12:00:03))),
            ("disk_full", 1, Some(datetime!(2026-11-20 10:00:01))),
            ("open_files", 0, None),
            ("memory", 0, None),
        ] {
            assert_eq!((by(name).count, by(name).at), (count, at), "{name}");
        }
        assert_eq!(by("crash").last, Some("261121 11:22:33 [ERROR] mysqld got signal 11 ;"));
    }

    #[test]
    fn a_recovery_after_an_orderly_end_is_none_from_a_crash() {
        let recovery =
            "2026-11-20 10:00:09 0 [Note] InnoDB: Starting crash recovery from checkpoint LSN=46590\n";
        let end = "2026-11-20 10:00:05 0 [Note] mariadbd: Shutdown complete\n";
        let ready = "2026-11-20 10:00:03 0 [Note] mariadbd: ready for connections.\n";
        let recoveries = |log: &[&str]| {
            let log = log.concat();
            let place = KINDS.iter().position(|kind| kind.name == "recovery").unwrap();
            found(&log)[place].count
        };
        assert_eq!(recoveries(&[ready, end, recovery, ready]), 0);
        assert_eq!(recoveries(&[ready, recovery, ready, end, recovery, ready, recovery]), 2);
    }

    #[test]
    fn what_a_start_told_is_forgotten_with_the_next_and_lines_within_an_hour_are_counted() {
        let tls = "2026-11-20 10:00:01 0 [ERROR] SSL error: Unable to get certificate\n";
        let end = "2026-11-20 11:00:00 0 [Note] mariadbd: Shutdown complete\n";
        let zombie = |time: &str| {
            format!("2026-11-20 {time} 9 [Note] found a zombie dump thread with the same UUID. Killing\n")
        };
        let log =
            [tls.to_owned(), zombie("10:00:02"), end.to_owned(), zombie("11:00:03"), zombie("11:59:59")]
                .concat();
        let of = |name: &str| KINDS.iter().position(|kind| kind.name == name).unwrap();
        let found = super::found(&log);
        assert_eq!((found[of("tls")].count, found[of("tls")].last), (0, None));
        assert_eq!((found[of("same_uuid")].count, found[of("same_uuid")].hour.len()), (3, 2));
        assert_eq!(super::found(tls)[of("tls")].count, 1);
        let issuer = "2026-11-20 10:00:01 3 [Note] X.509 issuer mismatch: should be '/CN=a' but is '/CN=b'";
        assert_eq!(super::found(issuer)[of("certificate_subject")].count, 1);
    }

    #[test]
    fn the_most_frequent_message_is_told_whatever_its_numbers() {
        let log = "\
2026-11-20 10:00:00 7 [Warning] Aborted connection 7 to db: 'shop' user: 'app'
2026-11-20 10:00:01 8 [Note] ready
2026-11-20 10:00:02 19 [Warning] Aborted connection 19 to db: 'shop' user: 'app'
a line without a level
";
        let told = repeated(log).unwrap();
        let line = "2026-11-20 10:00:02 19 [Warning] Aborted connection 19 to db: 'shop' user: 'app'";
        assert_eq!(told, json!({"line": line, "count": 2, "lines": 4}));
        assert_eq!(repeated("nothing here\n"), None);
    }

    #[test]
    fn a_line_without_a_time_has_none() {
        for line in ["", "2026", "Sorry, we probably made a mistake", "2026-13-01 00:00:00 x", "…………………"]
        {
            assert_eq!(instant(line), None, "{line}");
        }
    }

    #[test]
    fn rows_of_the_table_read_as_lines_of_the_file() {
        let row = |cells: [&str; 3]| cells.map(|cell| Some(cell.to_owned())).to_vec();
        let rows = [
            row(["2026-11-22T12:00:02", "Error", "Aborting"]),
            row(["2026-11-20T10:00:00", "Error", "Table './a/b' is marked as crashed"]),
        ];
        let text = of_table(&rows);
        let found = found(&text);
        assert_eq!((found[3].count, found[4].count), (1, 1));
        assert_eq!(found[4].at, Some(datetime!(2026-11-22 12:00:02)));
    }
}
