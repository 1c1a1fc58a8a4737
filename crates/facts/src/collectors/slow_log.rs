//! Statements of the slow log's end, where nothing else counts statements: MariaDB has performance_schema off by default. Values
//! are taken out before anything is kept.

use std::collections::BTreeMap;

use serde_json::Value;
use time::OffsetDateTime;

use crate::collector::{Collector, Cost, Run, fact};
use crate::collectors::slow_log_quotes::Quotes;
use crate::collectors::slow_log_text::{Normal, normalised};
use crate::collectors::statement_digest::Digest;
use crate::collectors::statement_hints::hint;
use crate::collectors::statement_sums::Digests;
use crate::collectors::statement_tables::{Known, explained, known, place};
use crate::context::{Context, Depth};
use crate::mounts;
use crate::readings::Readings;
use crate::source::{Missing, Read};
use crate::sql::ReadOnly;

/// Statements of the slow log.
pub static COLLECTOR: Collector = Collector {
    name: "slow-log",
    cost: Cost { host_ms: 5, server_ms: 5 },
    deadline_ms: 2000,
    depth: Depth::Audit,
    facts: &[
        fact(
            "server.slow_log.statements",
            "",
            "kinds of statement in the last 256 KiB of the slow log, of the last day, where performance_schema is off; the ten that took the most time: text (without values), schema, count, time_s, share (of the time of all that were read), rows_read and rows_sent (each time), scans (whether it reads 1,000 rows or more each time and few of them are for something), hint",
        ),
        fact("server.slow_log.window_s", "s", "time between the first and the last of these statements"),
        fact("server.slow_log.time_s", "s", "time that they took"),
    ],
    run: Run::Server(run),
};

/// Bytes that are read from the end of the file.
const TAIL: u64 = 256 << 10;

/// Longest text of a statement that is looked at, in bytes.
const LONGEST: usize = 8 << 10;

/// Kinds of statement that are kept.
const LISTED: usize = 10;

/// How old a statement may be.
const DAY_S: i64 = 86_400;

const ALL: [&str; 3] = ["server.slow_log.statements", "server.slow_log.window_s", "server.slow_log.time_s"];

fn run(context: &Context, sql: &mut ReadOnly<'_>, readings: &Readings) {
    let (path, text) = match text(context) {
        Ok(read) => read,
        Err(missing) => return readings.rest_is("slow_query_log_file", &missing),
    };
    let now_s = OffsetDateTime::now_utc().unix_timestamp();
    let escapes = !context.variable("sql_mode").is_some_and(|mode| mode.contains("NO_BACKSLASH_ESCAPES"));
    let is_recent = |entry: &Entry| entry.at_s.is_none_or(|at| now_s - at <= DAY_S);
    let entries: Vec<Entry> = entries(&text, escapes).into_iter().filter(is_recent).collect();
    let times = || entries.iter().filter_map(|entry| entry.at_s);
    let window = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    let kinds = kinds(&entries);
    let time_s: f64 = entries.iter().filter_map(|entry| entry.time_s).sum();
    let digests = Digests {
        // A share of nothing is nothing.
        time_s: time_s.max(1e-6),
        count: entries.len() as f64,
        all: kinds.iter().map(|kind| kind.digest.clone()).collect(),
        lost: 0.0,
        lost_s: 0.0,
    };
    let mut tables: BTreeMap<(String, String), Known> = BTreeMap::new();
    let mut list: Vec<Value> = Vec::new();
    for kind in kinds.iter().take(LISTED) {
        let table = place(&kind.digest).filter(|(schema, _)| !schema.is_empty());
        let known = match table.filter(|_| kind.reads_much()) {
            Some(at) => tables.entry(at.clone()).or_insert_with(|| known(context, sql, &at.0, &at.1)).clone(),
            None => Known::default(),
        };
        let by_number = kind.by_number(&known);
        let mut entry = digests.entry(&kind.digest);
        entry["scans"] = (kind.scans() || by_number.is_some() && kind.reads_much()).into();
        let told = by_number.or_else(|| explained(sql, &kind.digest, &known));
        let told = told.unwrap_or_else(|| hint(&kind.digest.text, &known.first));
        // What is left out of a text can be its WHERE.
        entry["hint"] = if kind.normal.cut { "" } else { told.as_str() }.into();
        list.push(entry);
    }
    readings.put(ALL[0], path.clone(), Ok(list));
    readings.put(ALL[1], path.clone(), Ok(window));
    readings.put(ALL[2], path, Ok(time_s));
}

/// The slow log's file and its end.
fn text(context: &Context) -> Read<(String, String)> {
    let on = |name: &str| {
        context.variable(name).is_some_and(|value| value.eq_ignore_ascii_case("ON") || value == "1")
    };
    if on("performance_schema") {
        return Err(Missing::Absent(
            "performance_schema counts statements: the slow log is not read".to_owned(),
        ));
    }
    let to_file = context.variable("log_output").is_none_or(|to| to.to_ascii_uppercase().contains("FILE"));
    if !on("slow_query_log") || !to_file {
        return Err(Missing::Absent("the slow query log is off, or not written to a file".to_owned()));
    }
    let file = context.variable("slow_query_log_file").unwrap_or_default();
    let path = context.within_datadir(file);
    let server = context.server.as_ref().map_err(Clone::clone)?;
    let seen = format!("{}{path}", mounts::view(&context.source, server)?);
    let (text, _) = context.source.end_of(&seen, TAIL)?;
    Ok((path, text))
}

/// A statement of the log.
#[derive(Debug, Default, Clone, PartialEq)]
struct Entry {
    schema: String,
    at_s: Option<i64>,
    time_s: Option<f64>,
    lock_s: f64,
    sent: f64,
    read: f64,
    /// MySQL and old MariaDB do not tell it.
    affected: Option<f64>,
    full_scan: bool,
    statement: String,
}

/// The statements of a log, oldest first. A statement whose beginning is not in the text is left out. What looks like a line of the log
/// within a quoted text belongs to that text: tables of tickets and logs hold such lines.
fn entries(log: &str, escapes: bool) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    let mut now: Option<Entry> = None;
    let mut schema = String::new();
    let mut quotes = Quotes::new(escapes);
    let mut end = |entry: Option<Entry>| {
        found.extend(entry.filter(|entry| entry.time_s.is_some() && !entry.statement.is_empty()));
    };
    for line in log.lines() {
        let within = now.as_ref().is_some_and(|entry| !entry.statement.is_empty());
        // What the server writes at its start and after FLUSH LOGS.
        let is_head = !quotes.is_open()
            && (line.starts_with("Tcp port: ")
                || line.starts_with("Time  ")
                || line.contains(". started with:"));
        let begins = ["# Time: ", "# User@Host: "].iter().any(|start| line.starts_with(start));
        if is_head || begins && !quotes.is_open() {
            if within || is_head || now.is_none() {
                end(now.take());
                quotes = Quotes::new(escapes);
                now = (!is_head).then(|| Entry { schema: schema.clone(), ..Entry::default() });
            }
            continue;
        }
        let Some(entry) = now.as_mut() else { continue };
        if let Some(fields) = line.strip_prefix("# ").filter(|_| !within) {
            entry.take(fields);
        } else if let Some(name) = line.strip_prefix("use ").filter(|_| !within) {
            name.trim_end_matches(';').trim_matches('`').clone_into(&mut schema);
            entry.schema.clone_from(&schema);
        } else if let Some(at) = line.strip_prefix("SET timestamp=").filter(|_| !within) {
            let digits = at.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            entry.at_s = digits.parse().ok();
        } else if quotes.is_open() || !line.starts_with("# administrator command: ") {
            quotes.take(line);
            if entry.statement.len() < LONGEST {
                entry.statement.push_str(line);
                entry.statement.push('\n');
            }
        }
    }
    end(now);
    found
}

impl Entry {
    /// Takes the fields of a line as `Query_time: 0.04  Rows_sent: 1`.
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let number = || pair[1].parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
            match pair[0] {
                "Query_time:" => self.time_s = number(),
                "Lock_time:" => self.lock_s = number().unwrap_or(0.0),
                "Rows_sent:" => self.sent = number().unwrap_or(0.0),
                "Rows_examined:" => self.read = number().unwrap_or(0.0),
                "Rows_affected:" => self.affected = number(),
                "Full_scan:" => self.full_scan = pair[1] == "Yes",
                "Schema:" if !pair[1].ends_with(':') => pair[1].clone_into(&mut self.schema),
                _ => {}
            }
        }
    }
}

/// Statements that differ in their values alone.
#[derive(Debug, Default)]
struct Kind {
    digest: Digest,
    normal: Normal,
    /// Rows that were changed, where the log tells it.
    affected: Option<f64>,
}

/// The kinds of statement, those that took the most time first; without those on the server's own tables.
fn kinds(entries: &[Entry]) -> Vec<Kind> {
    let mut kinds: BTreeMap<(String, String), Kind> = BTreeMap::new();
    for entry in entries {
        let normal = normalised(&entry.statement);
        let kind = kinds.entry((entry.schema.clone(), normal.text.clone())).or_default();
        let digest = &mut kind.digest;
        digest.schema.clone_from(&entry.schema);
        digest.text.clone_from(&normal.text);
        digest.count += 1.0;
        digest.time_s += entry.time_s.unwrap_or(0.0);
        digest.lock_s += entry.lock_s;
        digest.read += entry.read;
        digest.sent += entry.sent;
        digest.full_scans += f64::from(u8::from(entry.full_scan));
        if let Some(affected) = entry.affected {
            kind.affected = Some(kind.affected.unwrap_or(0.0) + affected);
        }
        kind.normal = normal;
    }
    let mut kinds: Vec<Kind> =
        kinds.into_values().filter(|kind| !kind.digest.of_server() && !kind.digest.is_overhead()).collect();
    kinds.sort_by(|one, other| other.digest.time_s.total_cmp(&one.digest.time_s));
    kinds
}

impl Kind {
    fn reads_much(&self) -> bool {
        let digest = &self.digest;
        !self.normal.cut && digest.read >= 1000.0 * digest.count && !digest.has("SQL_NO_CACHE")
    }

    /// Whether it reads much, and little of that is for something. The log tells no plan but with log_slow_verbosity: sums and
    /// groups read more than they send, and are left out unless it does.
    fn scans(&self) -> bool {
        let digest = &self.digest;
        let sums = ["GROUP BY", "COUNT (", "SUM (", "AVG (", "MIN (", "MAX (", "DISTINCT", "UNION"];
        let in_vain = match (digest.is(&["SELECT"]), self.affected) {
            (true, _) => digest.read >= 20.0 * digest.sent && !sums.iter().any(|part| digest.has(part)),
            (false, Some(affected)) => digest.is(&["UPDATE", "DELETE"]) && digest.read >= 20.0 * affected,
            (false, None) => false,
        };
        self.reads_much() && (in_vain || digest.is(&["SELECT"]) && digest.full_scans > 0.0)
    }

    /// The hint for a text with an index that is compared with a number.
    fn by_number(&self, known: &Known) -> Option<String> {
        const TEXT: [&str; 2] = ["char", "varchar"];
        let column = self
            .normal
            .with_numbers
            .iter()
            .find(|name| known.first.get(*name).is_some_and(|kind| TEXT.contains(&kind.as_str())))?;
        Some(format!(
            "{column} is a text and is compared with a number, which its index does not find: each row is turned into a number. Send a text, in quotes"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARIADB: &str = "\
 the end of a statement;
# Time: 261128 23:11:59
# User@Host: app[app] @ localhost []
# Thread_id: 12  Schema: shop  QC_hit: No
# Query_time: 0.050000  Lock_time: 0.000100  Rows_sent: 1  Rows_examined: 200000
# Rows_affected: 0  Bytes_sent: 66
SET timestamp=1795907519;
SELECT * FROM products WHERE sku=10012345;
# User@Host: app[app] @ localhost []
# Thread_id: 12  Schema: shop  QC_hit: No
# Query_time: 0.070000  Lock_time: 0.000100  Rows_sent: 1  Rows_examined: 200000
# Rows_affected: 0  Bytes_sent: 66
SET timestamp=1795907520;
SELECT * FROM products
 WHERE sku=555;
# User@Host: app[app] @ localhost []
# Thread_id: 12  Schema: shop  QC_hit: No
# Query_time: 0.070000  Lock_time: 0.000100  Rows_sent: 0  Rows_examined: 0
# Rows_affected: 0  Bytes_sent: 11
# administrator command: Prepare;
";

    const MYSQL: &str = "\
/usr/sbin/mysqld, Version: 8.0.40 (MySQL). started with:
Tcp port: 3306  Unix socket: /run/mysqld/mysqld.sock
Time                 Id Command    Argument
# Time: 2026-11-28T23:11:03.424594Z
# User@Host: app[app] @ localhost []  Id:     8
# Query_time: 1.500000  Lock_time: 0.000000 Rows_sent: 10  Rows_examined: 5000
use crm;
SET timestamp=1795907463;
select a from t where b = 'x';
# Time: 2026-11-28T23:11:09.424594Z
# User@Host: app[app] @ localhost []  Id:     8
# Query_time: 2.500000  Lock_time: 0.000000 Rows_sent: 10  Rows_examined: 5000
SET timestamp=1795907469;
select a from t where b = 'y';
";

    #[test]
    fn statements_of_both_families_are_read_with_their_schema() {
        let found = entries(MARIADB, true);
        assert_eq!(found.len(), 2, "{found:?}");
        assert_eq!((found[0].schema.as_str(), found[0].at_s), ("shop", Some(1_795_907_519)));
        assert_eq!((found[1].time_s, found[1].read, found[1].affected), (Some(0.07), 200_000.0, Some(0.0)));
        assert!(found[1].statement.contains("WHERE sku=555"));
        let found = entries(MYSQL, true);
        assert_eq!(found.iter().map(|e| e.schema.as_str()).collect::<Vec<&str>>(), ["crm", "crm"]);
        let kinds = kinds(&found);
        assert_eq!((kinds.len(), kinds[0].digest.count, kinds[0].digest.time_s), (1, 2.0, 4.0));
        assert!(kinds[0].scans());
    }

    #[test]
    fn lines_of_a_log_within_a_quoted_text_are_of_the_text() {
        let head =
            "# User@Host: app[app] @ localhost []\n# Query_time: 1.0  Rows_sent: 1  Rows_examined: 5000\n";
        for (text, count) in [
            ("INSERT INTO n (a) VALUES ('x\n# secret')\n ON DUPLICATE KEY UPDATE b = 'secret';", 1),
            ("INSERT INTO n (a) VALUES ('x\n# Time: 1\n# Query_time: 2.0\nselect secret from secret;');", 1),
            ("INSERT INTO n (a) VALUES ('x\nTime  secret\nTcp port: secret'); # it's", 1),
            ("UPDATE n SET path = 'C:\\dir\\' , b = 'secret' WHERE c = 'secret';", 1),
        ] {
            let log = format!("{head}{text}\n");
            let found = entries(&log, true);
            assert_eq!(found.len(), count, "{text}");
            for entry in &found {
                let text = normalised(&entry.statement).text;
                assert!(!text.contains("secret"), "{text}");
            }
            if !text.contains("dir") {
                let both = format!("{log}{head}SELECT a FROM t;\n");
                assert_eq!(entries(&both, true).len(), 2, "{text}");
            }
        }
    }

    #[test]
    fn a_number_compared_with_a_text_is_told() {
        let kinds = kinds(&entries(MARIADB, true));
        let mut known = Known::default();
        assert_eq!(kinds[0].by_number(&known), None);
        known.first.insert("sku".to_owned(), "varchar".to_owned());
        assert!(kinds[0].by_number(&known).unwrap().starts_with("sku is a text"));
        assert!(!format!("{:?}", kinds[0].normal).contains("10012345"));
    }

    #[test]
    fn sums_count_where_the_log_tells_that_they_read_the_whole_table() {
        let of = |statement: &str, full_scan: bool| {
            let entry = Entry {
                time_s: Some(1.0),
                read: 50_000.0,
                sent: 1.0,
                full_scan,
                statement: statement.to_owned(),
                ..Entry::default()
            };
            kinds(&[entry])[0].scans()
        };
        assert!(
            !of("SELECT SUM(a) FROM t WHERE b > 3", false) && of("SELECT SUM(a) FROM t WHERE b > 3", true)
        );
        assert!(
            of("SELECT a FROM t WHERE b > 3", false) && !of("SELECT /*!40001 SQL_NO_CACHE */ a FROM t", true)
        );
    }
}
