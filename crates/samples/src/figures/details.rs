//! Figures of InnoDB's latches, and of waits, statements and replication where the server tells them.

use std::collections::BTreeSet;

use mydyno_model::sample::Sample;
use mydyno_model::watch::{StatementFigures, WaitFigures};

use super::{Figures, ratio};

/// Kinds of waits and statements that are listed: those with the most time.
const MOST: usize = 10;

/// Classes of waits: the start of the server's names, and the figure of the mean number of threads in one of them.
const CLASSES: [(&str, &str); 8] = [
    ("io/file/", "server.waits.file_threads"),
    ("io/socket/", "server.waits.socket_threads"),
    ("io/table/", "server.waits.table_threads"),
    ("lock/table/", "server.waits.table_lock_threads"),
    ("lock/metadata/", "server.waits.metadata_lock_threads"),
    ("synch/mutex/", "server.waits.mutex_threads"),
    // Reader-writer locks, those with shared exclusive modes and those that prefer readers.
    ("synch/", "server.waits.rwlock_threads"),
    ("synch/cond/", "server.waits.condition_threads"),
];

pub fn add(to: &mut Figures<'_>) {
    latches(to);
    let waits = to.waits();
    for (start, figure) in CLASSES {
        let is_of_class = |event: &str| match start {
            "synch/" => {
                event.starts_with("synch/") && !["mutex/", "cond/"].iter().any(|o| event[6..].starts_with(o))
            }
            start => event.starts_with(start),
        };
        let of_class = waits.iter().filter(|wait| is_of_class(&wait.event)).map(|wait| wait.threads);
        // Without a wait of the class its instruments may be off.
        to.set(figure, of_class.reduce(|sum, threads| sum + threads));
    }
    replication(to);
}

/// Spins and waits for latches: MySQL until 8 and MariaDB until 10.5 in InnoDB's metrics, MariaDB 10.1 also in the status, MySQL
/// 5.5 in the text of InnoDB's status only.
fn latches(to: &mut Figures<'_>) {
    for (count, figure) in
        [("spin_waits", "spins_per_s"), ("spin_rounds", "spin_rounds_per_s"), ("os_waits", "os_waits_per_s")]
    {
        let metrics = ["s", "x", "sx"].map(|mode| format!("server.innodb.rwlock_{mode}_{count}"));
        let text = ["s", "x"].map(|mode| format!("server.innodb_status.rwlock_{mode}_{count}"));
        let latches = to.sum_per_s(&metrics.each_ref().map(String::as_str));
        let latches = latches.or_else(|| to.sum_per_s(&text.each_ref().map(String::as_str)));
        to.set(&format!("innodb.rwlock_{figure}"), latches);
        let mutexes = to.per_s(&format!("server.status.innodb_mutex_{count}"));
        let mutexes = mutexes.or_else(|| to.per_s(&format!("server.innodb_status.mutex_{count}")));
        to.set(&format!("innodb.mutex_{figure}"), mutexes);
    }
}

fn replication(to: &mut Figures<'_>) {
    let channels: BTreeSet<&str> = to
        .after
        .values
        .keys()
        .filter_map(|name| Some(name.strip_prefix("server.replica.")?.rsplit_once('.')?.0))
        .collect();
    let now = |what: &str| -> Vec<f64> {
        let values = channels.iter().map(|channel| to.now(&format!("server.replica.{channel}.{what}_now")));
        values.flatten().collect()
    };
    let lag_s = now("lag_s").into_iter().reduce(f64::max);
    let (receivers, appliers) = (now("receiver"), now("applier"));
    let stopped = receivers.iter().chain(&appliers).filter(|runs| **runs == 0.0).count();
    let has_any = !receivers.is_empty() || !appliers.is_empty();
    to.set("server.replica.lag_s", lag_s);
    to.set("server.replica.stopped_threads", has_any.then_some(stopped as f64));
}

/// The waits with the most time between two samples, if they were read anew in between.
pub fn waits(before: &Sample, after: &Sample) -> Vec<WaitFigures> {
    let mut found = Figures::of(before, after).waits();
    found.truncate(MOST);
    found
}

/// The statements with the most time between two samples, if they were read anew in between.
pub fn statements(before: &Sample, after: &Sample) -> Vec<StatementFigures> {
    let of = Figures::of(before, after);
    let keys =
        after.values.keys().filter_map(|name| name.strip_prefix("server.digest.")?.strip_suffix(".time_s"));
    let mut found: Vec<StatementFigures> = keys.filter_map(|key| of.statement(key)).collect();
    found.sort_by(|a, b| b.threads.total_cmp(&a.threads));
    found.truncate(MOST);
    found
}

impl Figures<'_> {
    /// Waits that took time, the most first.
    fn waits(&self) -> Vec<WaitFigures> {
        let names = self.after.values.keys();
        let events = names.filter_map(|name| name.strip_prefix("server.waits.")?.strip_suffix(".time_s"));
        let mut found: Vec<WaitFigures> = events
            .filter_map(|event| {
                let (count, time) =
                    (format!("server.waits.{event}.waits"), format!("server.waits.{event}.time_s"));
                let threads = self.per_s(&time).filter(|threads| *threads > 0.0)?;
                let wait_us = ratio(self.grown(&time), self.grown(&count)).map(|s| s * 1e6);
                let waits_per_s = self.per_s(&count)?;
                Some(WaitFigures { event: event.to_owned(), threads, waits_per_s, wait_us })
            })
            .collect();
        found.sort_by(|a, b| b.threads.total_cmp(&a.threads));
        found
    }

    /// A statement that ended or took time.
    fn statement(&self, key: &str) -> Option<StatementFigures> {
        let name = |what: &str| format!("server.digest.{key}.{what}");
        let (ended, time_s) = (self.grown(&name("statements"))?, self.grown(&name("time_s"))?);
        if ended <= 0.0 && time_s <= 0.0 {
            return None;
        }
        let each = |what: &str| ratio(self.grown(&name(what)), Some(ended));
        let (digest, schema) = key.split_once('@').map_or((key, None), |(d, s)| (d, Some(s.to_owned())));
        let used = each("rows_sent").zip(each("rows_affected")).map(|(sent, changed)| sent + changed);
        Some(StatementFigures {
            digest: digest.to_owned(),
            schema,
            text: self.after.texts.get(key).filter(|text| !text.is_empty()).map(|text| (**text).to_owned()),
            threads: self.per_s(&name("time_s"))?,
            statements_per_s: self.per_s(&name("statements"))?,
            statement_us: each("time_s").map(|s| s * 1e6),
            lock_threads: self.per_s(&name("lock_s")),
            rows_examined: each("rows_examined"),
            rows_used: used,
            tmp_disk_tables_per_s: self.per_s(&name("tmp_disk_tables")),
            errors_per_s: self.per_s(&name("errors")),
        })
    }
}
