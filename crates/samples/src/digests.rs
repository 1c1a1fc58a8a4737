//! Statements by digest, from the performance schema where it is on.

use std::collections::BTreeMap;
use std::time::Instant;

use mydyno_facts::{ReadOnly, SqlError, Table};

use crate::values::Values;

/// Statements that one reading takes: those that ended since the last one, of them those with the longest time in all.
const MOST_READ: usize = 200;

/// Statements in a sample.
const MOST_FOLLOWED: usize = 20;

/// Statements whose latest counters are remembered.
const MOST_KNOWN: usize = 2_000;

/// The server's clock of LAST_SEEN has whole seconds in older versions.
const SLACK_S: u64 = 2;

/// Digits of the digest in names of values, and characters of the text.
const DIGITS: usize = 16;
const LONGEST_TEXT: usize = 300;

/// Counters: column, name of the value, factor to its unit. Times are in picoseconds.
const COLUMNS: [(&str, &str, f64); 9] = [
    ("COUNT_STAR", "statements", 1.0),
    ("SUM_TIMER_WAIT", "time_s", 1e-12),
    ("SUM_LOCK_TIME", "lock_s", 1e-12),
    ("SUM_ERRORS", "errors", 1.0),
    ("SUM_ROWS_AFFECTED", "rows_affected", 1.0),
    ("SUM_ROWS_SENT", "rows_sent", 1.0),
    ("SUM_ROWS_EXAMINED", "rows_examined", 1.0),
    ("SUM_CREATED_TMP_DISK_TABLES", "tmp_disk_tables", 1.0),
    ("SUM_NO_INDEX_USED", "no_index", 1.0),
];

/// The place of the time in [`COLUMNS`].
const TIME: usize = 1;

/// The last reading of a statement.
#[derive(Debug, Clone)]
struct Known {
    /// The whole digest.
    digest: String,
    counters: [Option<f64>; COLUMNS.len()],
    text: Option<String>,
}

/// Reads the statements that took the most time since the last reading, at most 20, as `server.digest.DIGEST@SCHEMA.NAME`:
/// `statements`, `time_s`, `lock_s`, `errors`, `rows_affected`, `rows_sent`, `rows_examined`, `tmp_disk_tables`, `no_index`.
/// DIGEST is the start of the server's digest, SCHEMA the default database of the sessions, if any. The texts have no literals.
#[derive(Debug, Default)]
pub struct Digests {
    known: BTreeMap<String, Known>,
    followed: Vec<String>,
    read_at: Option<Instant>,
}

impl Digests {
    /// Reads them. Without the performance schema, or without its statements, there are no values.
    ///
    /// # Errors
    /// The server refuses or has no such table (MySQL 5.5), or the connection is lost.
    pub fn read(&mut self, sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
        let columns = COLUMNS.map(|(column, _, _)| column).join(", ");
        // What did not end since then has the counters that are known.
        let since = self.read_at.map(|read| read.elapsed().as_secs() + SLACK_S);
        let since =
            since.map(|s| format!("AND LAST_SEEN >= NOW() - INTERVAL {s} SECOND ")).unwrap_or_default();
        let now = Instant::now();
        let table = sql.table(&format!(
            "SELECT SCHEMA_NAME, DIGEST, {columns} FROM performance_schema.events_statements_summary_by_digest \
             WHERE DIGEST IS NOT NULL {since}ORDER BY SUM_TIMER_WAIT DESC LIMIT {MOST_READ}"
        ))?;
        self.read_at = Some(now);
        let grown = self.take(&table);
        self.follow(&grown);
        self.fetch_texts(sql)?;
        for key in &self.followed {
            let Some(known) = self.known.get(key) else { continue };
            for ((_, name, factor), counter) in COLUMNS.iter().zip(known.counters) {
                values.set_some(&format!("server.digest.{key}.{name}"), counter.map(|n| n * factor));
            }
            if let Some(text) = &known.text {
                values.set_text(key, text);
            }
        }
        Ok(())
    }

    /// Remembers the rows; the time by which each grew.
    fn take(&mut self, table: &Table) -> BTreeMap<String, f64> {
        let mut grown = BTreeMap::new();
        for row in 0..table.rows.len() {
            let Some(digest) = table.cell(row, "DIGEST").filter(|d| is_digest(d)) else { continue };
            let start = digest.get(..DIGITS).unwrap_or(digest);
            let key = match table.cell(row, "SCHEMA_NAME").filter(|schema| !schema.is_empty()) {
                Some(schema) => format!("{start}@{schema}"),
                None => start.to_owned(),
            };
            let number = |column: &str| table.cell(row, column).and_then(|text| text.parse::<f64>().ok());
            let counters = COLUMNS.map(|(column, _, _)| number(column));
            let time = counters.get(TIME).copied().flatten().unwrap_or(0.0);
            let before = self.known.get(&key);
            let time_before = before.and_then(|known| known.counters[TIME]).filter(|before| *before <= time);
            grown.insert(key.clone(), time - time_before.unwrap_or(0.0));
            let text = before.and_then(|known| known.text.clone());
            self.known.insert(key, Known { digest: digest.to_owned(), counters, text });
        }
        if self.known.len() > MOST_KNOWN {
            let followed = &self.followed;
            self.known.retain(|key, _| grown.contains_key(key) || followed.contains(key));
        }
        grown
    }

    /// Chooses the statements of the sample: those that grew the most, before those that were in the last one.
    fn follow(&mut self, grown: &BTreeMap<String, f64>) {
        let mut ranked: Vec<(f64, String)> = grown.iter().map(|(key, time)| (*time, key.clone())).collect();
        let idle = self.followed.iter().filter(|key| !grown.contains_key(*key));
        ranked.extend(idle.map(|key| (0.0, key.clone())));
        ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        ranked.truncate(MOST_FOLLOWED);
        self.followed = ranked.into_iter().map(|(_, key)| key).collect();
    }

    /// Reads the texts that are not known yet.
    fn fetch_texts(&mut self, sql: &mut ReadOnly<'_>) -> Result<(), SqlError> {
        let lacking = |key: &&String| self.known.get(*key).is_some_and(|known| known.text.is_none());
        let lacking: Vec<String> = self.followed.iter().filter(lacking).cloned().collect();
        if lacking.is_empty() {
            return Ok(());
        }
        let digests = lacking.iter().filter_map(|key| self.known.get(key));
        let digests: Vec<String> = digests.map(|known| format!("'{}'", known.digest)).collect();
        let table = sql.table(&format!(
            "SELECT DIGEST, DIGEST_TEXT FROM performance_schema.events_statements_summary_by_digest WHERE DIGEST IN ({})",
            digests.join(", ")
        ))?;
        for key in lacking {
            let Some(known) = self.known.get_mut(&key) else { continue };
            let row = (0..table.rows.len()).find(|row| table.cell(*row, "DIGEST") == Some(&known.digest));
            // A statement that was removed meanwhile has no text.
            let text = row.and_then(|row| table.cell(row, "DIGEST_TEXT")).unwrap_or_default();
            known.text = Some(shortened(text));
        }
        Ok(())
    }
}

/// Whether a text is a digest: MD5 or SHA-256 in hexadecimal digits.
fn is_digest(text: &str) -> bool {
    (DIGITS..=128).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The text on one line, cut to a limit.
fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line: String = line.chars().filter(|c| !c.is_control()).collect();
    match line.char_indices().nth(LONGEST_TEXT) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::scripted::Scripted;

    const SELECT: &str = "e19033140a2ee399b090c4cfba71c507aedf728937ed1ed75548848c2f865cfc";

    fn statements(rows: &[(&str, &str, &str, &str)]) -> Table {
        let columns = ["SCHEMA_NAME", "DIGEST", "COUNT_STAR", "SUM_TIMER_WAIT", "SUM_ROWS_EXAMINED"];
        let schema = |schema: &str| Some(schema.to_owned()).filter(|schema| !schema.is_empty());
        let rows = rows.iter().map(|(of, digest, count, time)| {
            let cells = [digest, count, time, &"40"].map(|cell| Some((*cell).to_owned()));
            std::iter::once(schema(of)).chain(cells).collect()
        });
        Table { columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() }
    }

    fn texts(digests: &[String]) -> Table {
        let columns = ["DIGEST", "DIGEST_TEXT"].map(str::to_owned).to_vec();
        let text = "SELECT `c`\nFROM `t`  WHERE `id` = ? ".to_owned();
        let rows = digests.iter().map(|digest| vec![Some(digest.clone()), Some(text.clone())]);
        Table { columns, rows: rows.collect() }
    }

    /// Reads each of the tables; the values of each reading, and the statements that were sent.
    fn readings(tables: Vec<Table>) -> (Vec<Values>, Vec<String>) {
        let sent = Arc::new(Mutex::new(Vec::new()));
        let (heard, count) = (Arc::clone(&sent), tables.len());
        let mut tables = tables.into_iter();
        let mut answer = Scripted::by(move |sql| {
            heard.lock().unwrap().push(sql.to_owned());
            Ok(match sql.contains("DIGEST_TEXT") {
                true => texts(&[SELECT.to_owned()]),
                false => tables.next().unwrap(),
            })
        });
        let mut digests = Digests::default();
        let read = |_| {
            let mut values = Values::default();
            digests.read(&mut ReadOnly::new(&mut answer), &mut values).unwrap();
            values
        };
        let values = (0..count).map(read).collect();
        let sent = sent.lock().unwrap().clone();
        (values, sent)
    }

    #[test]
    fn a_statement_has_counters_and_a_text_that_is_asked_for_once() {
        let one = statements(&[("sb", SELECT, "10", "2500000000000")]);
        let (values, sent) = readings(vec![one.clone(), one]);
        for values in values {
            let key = "e19033140a2ee399@sb";
            assert_eq!(values.get(&format!("server.digest.{key}.statements")), Some(10.0));
            assert_eq!(values.get(&format!("server.digest.{key}.time_s")), Some(2.5));
            assert_eq!(values.get(&format!("server.digest.{key}.rows_examined")), Some(40.0));
            assert_eq!(&*values.texts[key], "SELECT `c` FROM `t` WHERE `id` = ?");
        }
        assert_eq!(sent.iter().filter(|sql| sql.contains("DIGEST_TEXT")).count(), 1);
        assert!(!sent[0].contains("LAST_SEEN") && sent[2].contains("LAST_SEEN"), "{sent:?}");
    }

    #[test]
    fn those_that_grew_most_are_followed_and_one_that_rests_keeps_its_counters() {
        let digest = |n: usize| format!("{n:016x}{n:016x}");
        let many: Vec<(String, String)> =
            (0..30).map(|n| (digest(n), format!("{}000000000000", 100 - n))).collect();
        let rows: Vec<_> = many.iter().map(|(d, time)| ("", d.as_str(), "1", time.as_str())).collect();
        // Then only the last one runs, which was not among the first 20.
        let busy = [("", many[29].0.as_str(), "9", "99000000000000")];
        let (values, _) = readings(vec![statements(&rows), statements(&busy), statements(&[])]);
        let times = |values: &Values| -> Vec<usize> {
            let all = 0..30;
            let has = |n: &usize| values.get(&format!("server.digest.{n:016x}.time_s")).is_some();
            all.filter(has).collect()
        };
        let first: Vec<usize> = (0..20).collect();
        assert_eq!(times(&values[0]), first);
        let later: Vec<usize> = (0..19).chain([29]).collect();
        assert_eq!(times(&values[1]), later);
        assert_eq!(times(&values[2]), later, "nothing ran");
        assert_eq!(values[2].get(&format!("server.digest.{:016x}.time_s", 29)), Some(99.0));
    }

    #[test]
    fn what_is_no_digest_is_not_sent_back_to_the_server() {
        let forged = statements(&[("", "x' OR 1 -- 0123456789abcdef", "1", "1")]);
        let (values, sent) = readings(vec![forged]);
        assert!(values[0].numbers.is_empty() && sent.len() == 1, "{sent:?}");
        assert_eq!(shortened(&"é".repeat(400)).chars().count(), LONGEST_TEXT + 1);
    }
}
