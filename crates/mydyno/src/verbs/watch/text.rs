//! An interval as a block of lines for people.

use mydyno_model::diagnosis::{DiagnosedBudget, Diagnosis};
use mydyno_model::profile::TimeClass;
use mydyno_model::text;
use mydyno_model::units::{show_bytes, show_seconds, show_us, three_digits};
use mydyno_model::watch::{StatementFigures, WatchInterval};

/// Columns of the time that begins a block; the other lines are indented by as many.
const MARGIN: usize = 10;

/// Columns of the titles of lines.
const TITLE: usize = 9;

/// Kinds of waits and statements that are shown, and the mean number of threads from which one is.
const MOST_SHOWN: usize = 3;
const SHOWN_THREADS: f64 = 0.01;

/// A transaction that is older is shown.
const OLD_TRANSACTION_S: f64 = 10.0;

/// Shares of the CPU, of the free memory or of one CPU, at which a figure that is otherwise left out is shown.
const SHOWN_CPU_SHARE: f64 = 0.005;

/// Classes of time with less are left out.
const SHOWN_SHARE: f64 = 0.005;

/// A CPU that is busier than this is named.
const HOT_SHARE: f64 = 0.9;

/// The block of an interval. What is absent, and what is zero in a healthy server, is left out.
pub fn block(interval: &WatchInterval, width: usize) -> String {
    let figures = Figures(interval);
    let mut lines = Vec::new();
    let mut add = |title: &str, parts: Vec<Option<String>>| {
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if !parts.is_empty() {
            lines.extend(wrapped(title, &parts, width.saturating_sub(MARGIN).max(40)));
        }
    };
    add("cpu", figures.cpu());
    add("memory", figures.memory());
    for disk in figures.disks() {
        add(&text::line(disk), figures.disk(disk));
    }
    add("server", figures.server());
    add("innodb", figures.innodb());
    add("files", figures.files());
    add("waits", figures.waits());
    add("replica", figures.replication());
    add("time", figures.budget());
    for statement in figures.statements(width.saturating_sub(MARGIN + TITLE)) {
        add("sql", vec![Some(statement)]);
    }
    add("sampling", figures.sampling());
    for event in &interval.events {
        add("event", vec![Some(text::line(&event.text))]);
    }
    let clock = interval.header.created.get(11..19).unwrap_or_default();
    let mut out = String::new();
    for (number, line) in lines.iter().enumerate() {
        let margin = if number == 0 { clock } else { "" };
        out.push_str(&format!("{margin:<MARGIN$}{line}\n"));
    }
    if lines.is_empty() {
        out = format!("{clock:<MARGIN$}nothing could be sampled\n");
    }
    out
}

/// The bottlenecks of a window, with their evidence and the next step.
pub fn diagnosis(diagnosis: &Diagnosis, width: usize) -> String {
    let mut out = format!("\nDiagnosis of {}", show_seconds(diagnosis.over_s));
    if diagnosis.bottlenecks.is_empty() {
        out.push_str(": no bottleneck that counters can show");
    }
    out.push('\n');
    if let Some(budget) = &diagnosis.budget {
        out.push_str(&time_budget(budget, width));
    }
    for found in &diagnosis.bottlenecks {
        let held = match found.held {
            held if held >= 0.995 => String::new(),
            held => format!(", in {} of the intervals", percent(held)),
        };
        out.push_str(&format!("{} ({}{held})\n", found.title, found.id));
        out.push_str(&format!(
            "    share of the running sessions' time, from counters: about {}\n",
            percent(found.share)
        ));
        let evidence: Vec<String> = found
            .evidence
            .iter()
            .map(|evidence| format!("{} {}", evidence.figure, three_digits(evidence.value)))
            .collect();
        for line in filled(&evidence.join(" · "), width.saturating_sub(4)) {
            out.push_str(&format!("    {line}\n"));
        }
        for sql in &found.statements {
            let words = format!("Statement: {}", statement(sql));
            out.push_str(&format!(
                "    {}\n",
                words.chars().take(width.saturating_sub(4)).collect::<String>()
            ));
        }
        for line in filled(&format!("Next: {}", found.next), width.saturating_sub(4)) {
            out.push_str(&format!("    {line}\n"));
        }
    }
    for not_said in &diagnosis.not_said {
        for line in filled(&format!("Not said: {}: {}", not_said.id, not_said.why), width) {
            out.push_str(&format!("{line}\n"));
        }
    }
    out
}

/// Where the time of statements went, in one paragraph.
fn time_budget(budget: &DiagnosedBudget, width: usize) -> String {
    let shares = budget.classes.iter().filter(|class| class.share >= SHOWN_SHARE).map(|class| {
        let range = class.low.zip(class.high);
        let range = range.map(|(low, high)| format!(" ({} to {})", percent(low), percent(high)));
        format!("{} {}{}", class.class.words(), percent(class.share), range.unwrap_or_default())
    });
    let text = format!(
        "Where the time of statements went ({} captures, {} threads at work on average): {}",
        budget.captures,
        three_digits(budget.busy_threads),
        shares.collect::<Vec<_>>().join(" · ")
    );
    let differ = budget.disagreements.iter().map(|found| {
        format!(
            "The counters say something else: {} {} threads by stacks, {} by {}",
            found.class.words(),
            three_digits(found.stacks_threads),
            three_digits(found.counted_threads),
            found.figure
        )
    });
    let sentences = std::iter::once(text).chain(differ);
    sentences.flat_map(|sentence| filled(&sentence, width)).map(|line| line + "\n").collect()
}

/// Words on lines of at most `width` characters, where they fit.
fn filled(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.chars().count() > width.max(40) {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// Parts on lines of at most `width` characters, separated by dots; the title stands on the first line only.
fn wrapped(title: &str, parts: &[String], width: usize) -> Vec<String> {
    let mut lines = vec![format!("{title:<TITLE$}")];
    let mut used = 0;
    for part in parts {
        let length = part.chars().count();
        let fits = used == 0 || TITLE + used + 3 + length <= width;
        if !fits {
            lines.push(" ".repeat(TITLE));
            used = 0;
        }
        let line = lines.last_mut().filter(|_| length > 0);
        if let Some(line) = line {
            if used > 0 {
                line.push_str(" · ");
                used += 3;
            }
            line.push_str(part);
            used += length;
        }
    }
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

struct Figures<'a>(&'a WatchInterval);

impl Figures<'_> {
    fn get(&self, name: &str) -> Option<f64> {
        self.0.figures.get(name).copied()
    }

    /// A figure that is shown only where it is above zero.
    fn some(&self, name: &str) -> Option<f64> {
        self.get(name).filter(|value| *value > 0.0)
    }

    fn cpu(&self) -> Vec<Option<String>> {
        let busy = self.get("host.cpu.busy_share").map(|busy| {
            let of = self.get("host.cpu.count").map(|count| format!(" of {count} CPUs")).unwrap_or_default();
            format!("{} busy{of}", percent(busy))
        });
        let share = |label: &str, name: &str| {
            let value = self.get(name).filter(|share| *share >= SHOWN_CPU_SHARE)?;
            Some(format!("{label} {}", percent(value)))
        };
        let several = self.get("host.cpu.count").is_some_and(|count| count > 1.0);
        let hottest = self.get("host.cpu.hottest_share").filter(|share| several && *share >= HOT_SHARE);
        let hottest = hottest
            .zip(self.get("host.cpu.hottest"))
            .map(|(share, cpu)| format!("cpu{cpu} alone {}", percent(share)));
        let pressure = |resource: &str| {
            let value = self.get(&format!("host.pressure.{resource}_share"))?;
            (value >= SHOWN_CPU_SHARE).then(|| format!("{resource} {}", percent(value)))
        };
        let pressure: Vec<String> = ["cpu", "io", "memory"].into_iter().filter_map(pressure).collect();
        vec![
            busy,
            share("user", "host.cpu.user_share"),
            share("system", "host.cpu.system_share"),
            share("iowait", "host.cpu.iowait_share"),
            share("steal", "host.cpu.steal_share"),
            hottest,
            self.get("host.load.running").map(|n| format!("runnable {n}")),
            self.some("host.load.blocked").map(|n| format!("blocked {n}")),
            self.get("host.context_switches_per_s").map(|n| format!("switches {}/s", count(n))),
            (!pressure.is_empty()).then(|| format!("pressure {}", pressure.join(", "))),
        ]
    }

    fn memory(&self) -> Vec<Option<String>> {
        let bytes = |label: &str, name: &str| Some(format!("{} {label}", show_bytes(self.get(name)?)));
        let pages = |label: &str, name: &str| Some(format!("{label} {} pages/s", count(self.some(name)?)));
        vec![
            bytes("available", "host.memory.available_bytes"),
            bytes("cached", "host.memory.cached_bytes"),
            bytes("dirty", "host.memory.dirty_bytes"),
            pages("swap in", "host.swap.in_pages_per_s"),
            pages("swap out", "host.swap.out_pages_per_s"),
            self.some("host.memory.major_faults_per_s").map(|n| format!("major faults {}/s", count(n))),
            self.some("host.memory.oom_kills").map(|n| format!("OOM kills {n}")),
        ]
    }

    /// Disks that did anything.
    fn disks(&self) -> Vec<&str> {
        let disks = self.0.figures.iter().filter_map(|(name, util)| {
            let (disk, what) = name.strip_prefix("host.disk.")?.rsplit_once('.')?;
            let requests = |what: &str| self.some(&format!("host.disk.{disk}.{what}")).is_some();
            let active = *util > 0.0 || requests("reads_per_s") || requests("writes_per_s");
            (what == "util_share" && active).then_some(disk)
        });
        disks.collect()
    }

    fn disk(&self, disk: &str) -> Vec<Option<String>> {
        let of = |what: &str| self.get(&format!("host.disk.{disk}.{what}"));
        let requests = |label: &str, rate: &str, bytes: &str, time: &str| {
            let rate = of(rate).filter(|rate| *rate > 0.0)?;
            let bytes = of(bytes).map(|b| format!(" {}/s", show_bytes(b))).unwrap_or_default();
            let time = of(time).map(|us| format!(" of {}", show_us(us))).unwrap_or_default();
            Some(format!("{label} {}/s{bytes}{time}", count(rate)))
        };
        vec![
            requests("reads", "reads_per_s", "read_bytes_per_s", "read_us"),
            requests("writes", "writes_per_s", "write_bytes_per_s", "write_us"),
            requests("flushes", "flushes_per_s", "", "flush_us"),
            of("util_share").map(|share| format!("busy {}", percent(share))),
            of("queue").map(|queue| format!("queue {}", three_digits(queue))),
        ]
    }

    /// Where the time of statements goes, in an interval with a capture: the four largest classes.
    fn budget(&self) -> Vec<Option<String>> {
        let Some(busy) = self.some("budget.busy_threads") else { return Vec::new() };
        let classes = TimeClass::ALL.into_iter().filter(|class| *class != TimeClass::ClientIdle);
        let mut classes: Vec<(f64, TimeClass)> = classes
            .filter_map(|class| Some((self.get(&format!("budget.{}_threads", class.key()))? / busy, class)))
            .filter(|(share, _)| *share >= SHOWN_SHARE)
            .collect();
        classes.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        let threads = Some(format!("{} threads at work", three_digits(busy)));
        let shares = classes
            .into_iter()
            .take(4)
            .map(|(share, class)| Some(format!("{} {}", class.words(), percent(share))));
        std::iter::once(threads).chain(shares).collect()
    }

    fn server(&self) -> Vec<Option<String>> {
        let rate = |label: &str, name: &str| Some(format!("{label} {}/s", count(self.some(name)?)));
        let threads = self.get("server.threads_running").map(|running| {
            let of = self.get("server.threads_connected").map(|all| format!(" of {all}")).unwrap_or_default();
            format!("threads {running}{of}")
        });
        let locked = self.some("server.sessions.metadata_locked");
        vec![
            self.get("server.cpus").map(|cpus| format!("{} CPUs", three_digits(cpus))),
            self.some("server.throttled_share").map(|share| format!("throttled {}", percent(share))),
            self.get("server.questions_per_s").map(|n| format!("queries {}/s", count(n))),
            self.get("server.transactions_per_s").map(|n| format!("transactions {}/s", count(n))),
            rate("rows read", "server.rows_read_per_s"),
            rate("rows written", "server.rows_written_per_s"),
            threads,
            locked.map(|n| format!("waiting for metadata locks {n}")),
            rate("slow queries", "server.slow_queries_per_s"),
            rate("disk temporary tables", "server.tmp_disk_tables_per_s"),
            rate("new connections", "server.connections_per_s"),
            rate("aborted connects", "server.aborted_connects_per_s"),
            rate("aborted clients", "server.aborted_clients_per_s"),
        ]
    }

    fn innodb(&self) -> Vec<Option<String>> {
        let rate = |label: &str, name: &str| Some(format!("{label} {}/s", count(self.some(name)?)));
        let age = self.get("innodb.checkpoint_age_bytes").map(|bytes| {
            let share = self.get("innodb.checkpoint_age_share");
            let share = share.map(|share| format!(" ({})", percent(share))).unwrap_or_default();
            format!("checkpoint age {}{share}", show_bytes(bytes))
        });
        // A hit rate of 99.96 % is not one of 100 %.
        let hits = self.get("innodb.pool_hit_share").map(|share| format!("pool hits {:.2} %", share * 100.0));
        let waiting =
            self.some("innodb.row_lock_waiting").or_else(|| self.some("innodb.row_lock_waiting_now"));
        vec![
            hits,
            rate("misses", "innodb.pool_misses_per_s"),
            rate("waits for free pages", "innodb.free_waits_per_s"),
            self.get("innodb.dirty_share").map(|share| format!("dirty {}", percent(share))),
            rate("flushed pages", "innodb.flushed_pages_per_s"),
            age,
            self.some("innodb.redo_bytes_per_s").map(|bytes| format!("redo {}/s", show_bytes(bytes))),
            rate("redo fsyncs", "innodb.redo_fsyncs_per_s"),
            rate("redo buffer waits", "innodb.redo_waits_per_s"),
            rate("binlog group commits", "server.binlog.group_commits_per_s"),
            rate("row-lock waits", "innodb.row_lock_waits_per_s"),
            waiting
                .filter(|n| *n >= SHOWN_THREADS)
                .map(|n| format!("waiting for row locks {}", three_digits(n))),
            rate("deadlocks", "innodb.deadlocks_per_s"),
            self.get("innodb.history_length").map(|n| format!("history {}", count(n))),
            self.some("innodb.latch_waiting").map(|n| format!("waiting for latches {n}")),
            rate("latch waits", "innodb.semaphore_waits_per_s"),
            rate("spin rounds", "innodb.rwlock_spin_rounds_per_s"),
            self.some("innodb.pending_reads").map(|n| format!("pending reads {n}")),
            self.some("innodb.pending_writes").map(|n| format!("pending writes {n}")),
            self.some("innodb.queries_queued").map(|n| format!("queued before InnoDB {n}")),
            self.get("innodb.oldest_transaction_s")
                .filter(|age_s| *age_s >= OLD_TRANSACTION_S)
                .map(|age_s| format!("oldest transaction {}", show_seconds(age_s))),
        ]
    }

    /// Waits of the server's threads, in an interval in which they were read.
    fn waits(&self) -> Vec<Option<String>> {
        let shown = self.0.waits.iter().filter(|wait| wait.threads >= SHOWN_THREADS).take(MOST_SHOWN);
        let words = shown.map(|wait| {
            let mean = wait.wait_us.map(|us| format!(" of {}", show_us(us))).unwrap_or_default();
            Some(format!("{} {} threads{mean}", text::line(&wait.event), three_digits(wait.threads)))
        });
        words.collect()
    }

    /// The statements that took the most time, in an interval in which that was read.
    fn statements(&self, width: usize) -> Vec<String> {
        let shown = self.0.statements.iter().filter(|sql| sql.threads >= SHOWN_THREADS).take(MOST_SHOWN);
        shown.map(|sql| statement(sql).chars().take(width.max(40)).collect()).collect()
    }

    fn replication(&self) -> Vec<Option<String>> {
        let replicas = self.some("server.sessions.replicas").map(|n| format!("sends to {n} replicas"));
        vec![
            self.get("server.replica.lag_s")
                .map(|lag_s| format!("behind its source {}", show_seconds(lag_s))),
            self.some("server.replica.stopped_threads").map(|n| format!("threads that do not run {n}")),
            replicas,
        ]
    }

    /// Mean times of calls to files, from the performance schema.
    fn files(&self) -> Vec<Option<String>> {
        let mean = |label: &str, name: &str| Some(format!("{label} {}", show_us(self.get(name)?)));
        vec![
            mean("data read", "server.file.data.read_us"),
            mean("data write", "server.file.data.write_us"),
            mean("redo sync", "server.file.redo.misc_us"),
            mean("binlog sync", "server.file.binlog.misc_us"),
        ]
    }

    /// Whether the figures can be trusted.
    fn sampling(&self) -> Vec<Option<String>> {
        let late = self.0.late_s.filter(|late_s| *late_s > 0.01);
        vec![
            late.map(|late_s| format!("late by {}", show_us(late_s * 1e6))),
            (self.0.missed > 0).then(|| format!("{} samples missed", self.0.missed)),
        ]
    }
}

/// A statement with its time, and its text without literals.
fn statement(sql: &StatementFigures) -> String {
    let mean = sql.statement_us.map(|us| format!(" of {}", show_us(us))).unwrap_or_default();
    let words = text::line(sql.text.as_deref().unwrap_or(&sql.digest));
    format!("{} threads · {}/s{mean} · {words}", three_digits(sql.threads), count(sql.statements_per_s))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A rate for people: `12.3k`, `4.56M`.
fn count(value: f64) -> String {
    match value {
        value if value >= 999.5e3 => format!("{}M", three_digits(value / 1e6)),
        value if value >= 9_995.0 => format!("{}k", three_digits(value / 1e3)),
        value => three_digits(value),
    }
}

#[cfg(test)]
mod tests {
    use mydyno_model::document::Header;
    use mydyno_model::watch::{WatchEvent, WatchEventKind};
    use time::macros::datetime;

    use super::*;

    fn interval(figures: &[(&str, f64)]) -> WatchInterval {
        WatchInterval {
            header: Header::of::<WatchInterval>(datetime!(2026-11-23 12:03:41 UTC)),
            at_s: 5.0,
            over_s: 1.0,
            late_s: Some(0.0001),
            missed: 0,
            figures: figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            waits: Vec::new(),
            statements: Vec::new(),
            events: Vec::new(),
            extra: serde_json::Map::new(),
        }
    }

    #[test]
    fn a_block_shows_what_there_is_and_leaves_out_idle_disks() {
        let shown = block(
            &interval(&[
                ("host.cpu.busy_share", 0.876),
                ("host.cpu.count", 2.0),
                ("host.cpu.steal_share", 0.001),
                ("host.disk.sda.util_share", 0.0),
                ("host.disk.vda.util_share", 0.45),
                ("host.disk.vda.writes_per_s", 812.0),
                ("host.disk.vda.write_bytes_per_s", 12.0 * 1024.0 * 1024.0),
                ("host.disk.vda.write_us", 1_200.0),
                ("server.questions_per_s", 12_345.0),
                ("server.threads_running", 9.0),
                ("server.threads_connected", 65.0),
                ("innodb.pool_hit_share", 0.9996),
                ("innodb.row_lock_waits_per_s", 0.0),
            ]),
            100,
        );
        let expected = "\
12:03:41  cpu      88 % busy of 2 CPUs
          vda      writes 812/s 12 MiB/s of 1.2 ms · busy 45 %
          server   queries 12.3k/s · threads 9 of 65
          innodb   pool hits 99.96 %
";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_narrow_terminal_gets_more_lines_and_hostile_names_do_not_steer_it() {
        let mut narrow = interval(&[
            ("host.memory.available_bytes", 1e9),
            ("host.memory.cached_bytes", 1e9),
            ("host.memory.dirty_bytes", 1e6),
            ("host.disk.\u{1b}[2J.util_share", 0.5),
        ]);
        let text = "the server is lost\u{1b}[31m".to_owned();
        narrow.events.push(WatchEvent { kind: WatchEventKind::ServerLost, text });
        let shown = block(&narrow, 60);
        assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert_eq!(shown.lines().filter(|line| line.contains("954 MiB")).count(), 1, "{shown}");
    }

    #[test]
    fn an_interval_without_figures_says_so() {
        assert!(block(&interval(&[]), 80).contains("nothing could be sampled"));
    }
}
