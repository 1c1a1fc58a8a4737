//! SHOW ENGINE INNODB STATUS: what its text says that no counter of the server does.
//!
//! The text also holds statements of others, literals included: only numbers of known lines are taken from it. Statements stand
//! in the sections of deadlocks, foreign keys and transactions; of sections before these the first one of its name is read, of
//! sections after them the last one, so that a statement cannot pose as one.

use mydyno_facts::{ReadOnly, SqlError};
use time::{Date, Month, PrimitiveDateTime, Time};

use crate::values::Values;

/// InnoDB's page size where the server has no variable of it.
const PAGE_BYTES: f64 = 16_384.0;

/// Reads the status again and again.
///
/// | value | meaning |
/// |---|---|
/// | `server.innodb_status.semaphore_waits` | waits of threads for a latch or mutex in the array of waits, since the start |
/// | `server.innodb_status.{mutex,rwlock_s,rwlock_x}_{spin_waits,spin_rounds,os_waits}` | since the start; MySQL until 5.6, MariaDB until 10.1 |
/// | `…latch_waiting_now`, `…longest_latch_wait_s_now` | threads that wait for a latch, and the longest of these waits |
/// | `…history_length_now` | row versions that wait for purge |
/// | `…transactions_now`, `…lock_waiting_now`, `…oldest_transaction_s_now` | active transactions, those of them that wait for a row lock, the age of the oldest |
/// | `…pending_log_writes_now`, `…pending_checkpoint_writes_now` | until MySQL 5.7 and MariaDB 10.5 |
/// | `…pending_page_reads_now`, `…pending_page_writes_now` | of the buffer pool |
/// | `…queries_inside_now`, `…queries_queued_now`, `…read_views_now` | threads in InnoDB and before it (`innodb_thread_concurrency`); open read views |
/// | `…latest_deadlock_s_now` | how long ago the latest deadlock was, since MySQL 5.6 and MariaDB 10.0 |
/// | `…redo_bytes`, `…redo_checkpoint_bytes` | log sequence numbers: the current one, that of the last checkpoint |
/// | `…checkpoint_max_age_bytes_now` | the checkpoint age at which statements wait, where the text or the size of the log files tells it |
#[derive(Debug, Default)]
pub struct InnodbStatus {
    /// The largest checkpoint age by the size of the log files, once it was asked for.
    max_age_bytes: Option<Option<f64>>,
}

impl InnodbStatus {
    /// Reads the status. It needs the privilege PROCESS.
    ///
    /// # Errors
    /// The server refuses, or the connection is lost.
    pub fn read(&mut self, sql: &mut ReadOnly<'_>, values: &mut Values) -> Result<(), SqlError> {
        let table = sql.table("SHOW ENGINE INNODB STATUS")?;
        parse(table.cell(0, "Status").unwrap_or_default(), values);
        let max_age = match self.max_age_bytes {
            Some(known) => known,
            None => *self.max_age_bytes.insert(max_age_by_files(sql)?),
        };
        let name = "server.innodb_status.checkpoint_max_age_bytes_now";
        if values.get(name).is_none() {
            values.set_some(name, max_age);
        }
        Ok(())
    }
}

/// The largest checkpoint age of servers whose redo log is a fixed number of files: `log_calc_max_ages` of InnoDB until MySQL
/// 8.0.29 and MariaDB 10.4.
fn max_age_by_files(sql: &mut ReadOnly<'_>) -> Result<Option<f64>, SqlError> {
    let rows = sql.rows("SHOW GLOBAL VARIABLES LIKE 'innodb%'")?;
    let number = |name: &str| {
        let of = |row: &&Vec<Option<String>>| row.first().is_some_and(|cell| cell.as_deref() == Some(name));
        rows.iter().find(of)?.get(1)?.as_deref()?.parse::<f64>().ok()
    };
    let (Some(bytes), Some(files)) = (number("innodb_log_file_size"), number("innodb_log_files_in_group"))
    else {
        return Ok(None);
    };
    let page = number("innodb_page_size").unwrap_or(PAGE_BYTES);
    let threads = number("innodb_thread_concurrency").unwrap_or(0.0);
    // A header of four blocks of 512 bytes in each file.
    let capacity = (bytes - 2_048.0) * files;
    let free = page * (4.0 * (10.0 + threads) + 8.0);
    let margin = capacity * 0.9 - free;
    Ok((margin > 0.0).then_some(margin * 0.9))
}

/// The numbers of the text, as values.
fn parse(text: &str, values: &mut Values) {
    let mut set = |name: &str, value: f64| values.set(&format!("server.innodb_status.{name}"), value);
    let sections = Sections::of(text);
    semaphores(sections.first("SEMAPHORES"), &mut set);
    if let Some(age_s) = latest_deadlock_s(text, &sections) {
        set("latest_deadlock_s_now", age_s);
    }
    transactions(sections.first("TRANSACTIONS"), text.contains("... truncated..."), &mut set);
    for line in sections.last("LOG") {
        if let [writes, checkpoints] = numbers(line)[..]
            && line.contains(" pending log ")
        {
            set("pending_log_writes_now", writes);
            set("pending_checkpoint_writes_now", checkpoints);
        }
        for (start, name) in [
            ("Log sequence number", "redo_bytes"),
            ("Last checkpoint at", "redo_checkpoint_bytes"),
            ("Max checkpoint age", "checkpoint_max_age_bytes_now"),
        ] {
            if let Some(value) = line.strip_prefix(start).and_then(|rest| rest.trim().parse().ok()) {
                set(name, value);
            }
        }
    }
    for line in sections.last("BUFFER POOL AND MEMORY") {
        if let (true, [reads]) = (line.starts_with("Pending reads"), &numbers(line)[..]) {
            set("pending_page_reads_now", *reads);
        }
        if line.starts_with("Pending writes:") {
            set("pending_page_writes_now", numbers(line).iter().sum());
        }
    }
    for line in sections.last("ROW OPERATIONS") {
        match numbers(line)[..] {
            [inside, queued] if line.contains(" queries inside InnoDB, ") => {
                set("queries_inside_now", inside);
                set("queries_queued_now", queued);
            }
            [views] if line.contains(" read views open inside InnoDB") => set("read_views_now", views),
            _ => {}
        }
    }
}

fn semaphores(lines: &[&str], set: &mut impl FnMut(&str, f64)) {
    let (mut waiting, mut longest_s) = (0.0, 0.0_f64);
    // Later servers count no spins of mutexes, and MySQL 9 leaves those of latches at zero; INNODB_METRICS has the latter.
    let counts_spins = lines.iter().any(|line| line.starts_with("Mutex spin waits"));
    for line in lines {
        if let Some(rest) = line.strip_prefix("OS WAIT ARRAY INFO: reservation count ") {
            numbers(rest).first().into_iter().for_each(|count| set("semaphore_waits", *count));
        }
        if line.starts_with("--Thread ") && line.contains(" has waited at ") {
            waiting += 1.0;
            let seconds = line.rsplit_once(" for ").and_then(|(_, rest)| numbers(rest).first().copied());
            longest_s = longest_s.max(seconds.unwrap_or(0.0));
        }
        for (start, kind) in
            [("Mutex spin waits", "mutex"), ("RW-shared spins", "rwlock_s"), ("RW-excl spins", "rwlock_x")]
        {
            if let ([spins, rounds, waits], true, true) =
                (&numbers(line)[..], counts_spins, line.starts_with(start))
            {
                set(&format!("{kind}_spin_waits"), *spins);
                set(&format!("{kind}_spin_rounds"), *rounds);
                set(&format!("{kind}_os_waits"), *waits);
            }
        }
    }
    if !lines.is_empty() {
        set("latch_waiting_now", waiting);
        set("longest_latch_wait_s_now", longest_s);
    }
}

fn transactions(lines: &[&str], is_cut: bool, set: &mut impl FnMut(&str, f64)) {
    let (mut active, mut waiting, mut oldest_s) = (0.0, 0.0, 0.0_f64);
    let mut in_list = false;
    for line in lines {
        if let (false, Some(rest)) = (in_list, line.strip_prefix("History list length ")) {
            numbers(rest).first().into_iter().for_each(|length| set("history_length_now", *length));
        }
        in_list |= line.starts_with("LIST OF TRANSACTIONS");
        // Instead of a time a transaction may have `(PREPARED)` before it.
        if let Some((_, rest)) =
            line.strip_prefix("---TRANSACTION ").and_then(|rest| rest.split_once(", ACTIVE "))
        {
            active += 1.0;
            oldest_s = oldest_s.max(numbers(rest).first().copied().unwrap_or(0.0));
        }
        waiting += f64::from(u8::from(line.starts_with("LOCK WAIT ")));
    }
    // A text of more than 1 MiB lacks transactions in the middle.
    if in_list && !is_cut {
        set("transactions_now", active);
        set("lock_waiting_now", waiting);
        set("oldest_transaction_s_now", oldest_s);
    }
}

/// Seconds between the latest deadlock and the text itself; both are moments of the server's own clock and time zone.
fn latest_deadlock_s(text: &str, sections: &Sections<'_>) -> Option<f64> {
    let written = text.lines().find(|line| line.ends_with("INNODB MONITOR OUTPUT")).and_then(moment)?;
    let deadlock = sections.first("LATEST DETECTED DEADLOCK").first().copied().and_then(moment)?;
    Some((written - deadlock).as_seconds_f64().max(0.0))
}

/// The moment at the beginning of a line, such as `2026-11-29 01:55:01 0x7f8449ffb700`. MySQL 5.5 writes years of two digits.
fn moment(line: &str) -> Option<PrimitiveDateTime> {
    let mut parts = line.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    let mut part = || parts.next()?.parse::<u16>().ok();
    let (year, month, day) = (part().filter(|year| *year > 1_000)?, part()?, part()?);
    let (hour, minute, second) = (part()?, part()?, part()?);
    let byte = |number: u16| u8::try_from(number).ok();
    let date = Date::from_calendar_date(year.into(), Month::try_from(byte(month)?).ok()?, byte(day)?).ok()?;
    Some(date.with_time(Time::from_hms(byte(hour)?, byte(minute)?, byte(second)?).ok()?))
}

/// The lines of each section below its heading, which stands between two lines of dashes.
struct Sections<'a>(Vec<(&'a str, Vec<&'a str>)>);

impl<'a> Sections<'a> {
    fn of(text: &'a str) -> Self {
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let is_rule = |line: &str| line.len() >= 3 && line.bytes().all(|byte| byte == b'-');
        let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
        for (at, line) in lines.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|before| lines.get(before));
            let heads = before.is_some_and(|l| is_rule(l)) && lines.get(at + 1).is_some_and(|l| is_rule(l));
            if heads && !line.is_empty() {
                found.push((line, Vec::new()));
            } else if let Some((_, own)) = found.last_mut().filter(|_| !is_rule(line)) {
                own.push(line);
            }
        }
        Self(found)
    }

    fn first(&self, name: &str) -> &[&'a str] {
        self.0.iter().find(|(own, _)| *own == name).map_or(&[], |(_, lines)| lines)
    }

    fn last(&self, name: &str) -> &[&'a str] {
        self.0.iter().rfind(|(own, _)| *own == name).map_or(&[], |(_, lines)| lines)
    }
}

/// The numbers in a line, without sign.
fn numbers(line: &str) -> Vec<f64> {
    let words = line.split(|c: char| !c.is_ascii_digit() && c != '.');
    words.filter_map(|word| word.trim_matches('.').parse().ok()).collect()
}

#[cfg(test)]
mod tests;
