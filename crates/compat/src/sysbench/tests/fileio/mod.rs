//! The test `fileio`: reads, writes and syncs of files, in order or at random.

mod files;
mod plan;
mod size;
mod work;

use std::sync::{Arc, PoisonError};

use super::super::engine::Engine;
use super::super::log::{Level, Log};
use super::super::options::{Definition, Kind, Options, print_options};
use super::super::report::per_second;
use super::super::runner::{Reporter, Test, Worker, print_general};
use super::super::stats::{Count, Stat};
use super::{BuiltIn, Ready};
use files::{Files, Flags};
use plan::{Mode, Plan};
use size::{MIB, size_text};
use work::{FileWorker, Shared, Way};

pub(crate) const TEST: BuiltIn = BuiltIn {
    name: "fileio",
    summary: "reads, writes and syncs of files",
    options,
    prepare,
    commands: &[("prepare", make), ("cleanup", remove)],
};

fn options() -> Vec<Definition> {
    let option = Definition::new;
    vec![
        option("file-num", Kind::Int, Some("128"), "files"),
        // A size that help shows as a number.
        option("file-block-size", Kind::Double, Some("16384"), "bytes of a read or write"),
        option("file-total-size", Kind::Size, Some("2G"), "size of all files together"),
        option("file-test-mode", Kind::Text, None, "seqwr, seqrewr, seqrd, rndrd, rndwr or rndrw"),
        option(
            "file-io-mode",
            Kind::Text,
            Some("sync"),
            "sync, async (requests queued in the kernel) or mmap",
        ),
        option(
            "file-async-backlog",
            Kind::Int,
            Some("128"),
            "async: requests of a thread that are under way",
        ),
        option(
            "file-extra-flags",
            Kind::List,
            Some(""),
            "flags with which files are opened: sync, dsync, direct",
        ),
        option(
            "file-fsync-freq",
            Kind::Int,
            Some("100"),
            "sync all files after this many requests; 0 never does",
        ),
        option("file-fsync-all", Kind::Bool, Some("off"), "sync a file after each of its writes"),
        option("file-fsync-end", Kind::Bool, Some("on"), "sync all files at the end"),
        option("file-fsync-mode", Kind::Text, Some("fsync"), "fsync or fdatasync"),
        option(
            "file-merged-requests",
            Kind::Int,
            Some("0"),
            "in order: blocks of a request at most; 0 for one",
        ),
        option("file-rw-ratio", Kind::Double, Some("1.5"), "reads for each write of rndrw"),
    ]
}

fn files(options: &Options) -> Result<Files, String> {
    let number = options.int("file-num");
    let count = usize::try_from(number).ok().filter(|count| *count > 0);
    let count = count.ok_or_else(|| format!("Invalid value for file-num: {number}"))?;
    let total = options.size("file-total-size");
    if total == 0 {
        return Err(format!("Invalid value for file-total-size: {total}"));
    }
    let mut flags = Flags::default();
    for flag in options.list("file-extra-flags") {
        match flag.as_str() {
            "sync" => flags.sync = true,
            "dsync" => flags.dsync = true,
            "direct" => flags.direct = true,
            other => return Err(format!("Invalid value for file-extra-flags: {other}")),
        }
    }
    Ok(Files { count, bytes: total / count as u64, flags })
}

/// Bytes of a block.
fn block(options: &Options) -> Result<u64, String> {
    let block = options.size("file-block-size");
    match block {
        1..=0x7fff_ffff => Ok(block),
        _ => Err(format!("Invalid value for file-block-size: {block}.")),
    }
}

fn make(options: &Options, log: &Log) -> u8 {
    let made = files(options).and_then(|files| files.make(block(options)?, options.is_on("validate"), log));
    made.map_or_else(
        |text| {
            log.fatal(&text);
            1
        },
        |()| 0,
    )
}

fn remove(options: &Options, log: &Log) -> u8 {
    match files(options) {
        Ok(files) => {
            log.notice("Removing test files...");
            files.remove();
            0
        }
        Err(text) => {
            log.fatal(&text);
            1
        }
    }
}

fn prepare(options: &Options, threads: usize) -> Result<Ready, String> {
    let files = files(options)?;
    let word = |name: &str| options.text(name).unwrap_or_default();
    let mode = word("file-test-mode");
    if mode.is_empty() {
        let list = print_options(&self::options());
        return Err(format!("Missing required argument: --file-test-mode\n\nfileio options:\n{list}"));
    }
    let mode = Mode::of(mode).ok_or_else(|| format!("Invalid IO operations mode: {mode}."))?;
    let backlog = options.int("file-async-backlog");
    let way = match word("file-io-mode") {
        "sync" => Way::Sync,
        "mmap" => Way::Mapped,
        "async" => match usize::try_from(backlog).ok().filter(|backlog| *backlog > 0) {
            Some(backlog) => Way::Async(backlog),
            None => return Err(format!("Invalid value of file-async-backlog: {backlog}")),
        },
        other => return Err(format!("unknown I/O mode: {other}")),
    };
    let merged = options.int("file-merged-requests");
    let merged =
        u64::try_from(merged).map_err(|_| format!("Invalid value for file-merged-requests: {merged}."))?;
    let block = block(options)?;
    let ratio: f64 = word("file-rw-ratio").trim().parse().unwrap_or(0.0);
    if ratio < 0.0 {
        return Err(format!("Invalid value for --file-rw-ratio: {ratio:.6}."));
    }
    let data_only = match word("file-fsync-mode") {
        "fsync" => false,
        "fdatasync" => true,
        other => return Err(format!("Invalid fsync mode: {other}.")),
    };
    let each = options.is_on("file-fsync-all");
    let every = u64::try_from(options.int("file-fsync-freq")).unwrap_or(0);
    let plan = Plan {
        mode,
        files: files.count,
        bytes: files.bytes,
        block,
        merged,
        ratio,
        fsync_every: if each { 0 } else { every },
    };
    let shared = Arc::new(Shared::new(plan, files, way, options, data_only, threads));
    let of_mode = Arc::clone(&shared);
    Ok(Ready {
        test: Arc::new(FileTest { shared: Arc::clone(&shared) }),
        main: Box::new(FileReporter::new(shared)),
        print_mode: Box::new(move |log| of_mode.print_mode(log)),
    })
}

struct FileTest {
    shared: Arc<Shared>,
}

impl Test for FileTest {
    fn begin(&self, engine: &Engine) -> bool {
        self.shared.open(&engine.log)
    }

    fn worker(&self, engine: &Arc<Engine>, thread: usize) -> Option<Box<dyn Worker>> {
        FileWorker::new(engine, thread, Arc::clone(&self.shared)).map(|worker| Box::new(worker) as _)
    }

    fn reporter(&self, _: &Arc<Engine>) -> Option<Box<dyn Reporter>> {
        Some(Box::new(FileReporter::new(Arc::clone(&self.shared))))
    }
}

/// Reports figures of files since its last report.
struct FileReporter {
    shared: Arc<Shared>,
    /// Bytes that were read and written at the last intermediate report.
    last: [u64; 2],
}

impl FileReporter {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, last: [0; 2] }
    }

    /// MiB/s that were read and written since the last report, whose bytes were `last`.
    fn throughput(&self, last: &mut [u64; 2], stat: &Stat) -> [f64; 2] {
        let now = self.shared.bytes();
        let since = [now[0] - last[0], now[1] - last[1]];
        *last = now;
        since.map(|bytes| per_second(bytes, stat) / MIB)
    }
}

impl Reporter for FileReporter {
    fn intermediate(&mut self, engine: &Engine, stat: &Stat) {
        let mut last = self.last;
        let [read, written] = self.throughput(&mut last, stat);
        self.last = last;
        engine.log.notice(&format!(
            "[ {:.0}s ] reads: {read:4.2} MiB/s writes: {written:4.2} MiB/s fsyncs: {:4.2}/s latency (ms,{}%): {:4.3}",
            stat.time_total,
            per_second(stat.totals.get(Count::Other), stat),
            engine.settings.percentile,
            stat.latency_pct * 1e3,
        ));
    }

    fn cumulative(&mut self, engine: &Engine, stat: &Stat) {
        // Checkpoints and the last report are of one series.
        let mut last = self.shared.last_report.lock().unwrap_or_else(PoisonError::into_inner);
        let [read, written] = self.throughput(&mut last, stat);
        let rate = |count: Count| per_second(stat.totals.get(count), stat);
        engine.log.text(&format!(
            "\nFile operations:\n    reads/s:                      {:4.2}\n    writes/s:                     {:4.2}\n    \
             fsyncs/s:                     {:4.2}\n\nThroughput:\n    read, MiB/s:                  {read:4.2}\n    \
             written, MiB/s:               {written:4.2}\n",
            rate(Count::Read),
            rate(Count::Write),
            rate(Count::Other),
        ));
        print_general(engine, stat);
    }
}

impl Shared {
    fn print_mode(&self, log: &Log) {
        let plan = &self.plan;
        log.notice(&format!("Extra file open flags: {}", self.files.flags.text()));
        log.notice(&format!("{} files, {} each", plan.files, size_text(plan.bytes)));
        log.notice(&format!("{} total file size", size_text(plan.bytes * plan.files as u64)));
        log.notice(&format!("Block size {}", size_text(plan.block)));
        if plan.mode.is_random() {
            log.notice(&format!("Number of IO requests: {}", self.events));
            log.notice(&format!("Read/Write ratio for combined random IO test: {:2.2}", plan.ratio));
        } else if plan.merged > 0 {
            let merged = size_text(plan.merged * plan.block);
            log.notice(&format!("Merging requests up to {merged} for sequential IO."));
        }
        if self.fsync_each {
            log.notice("Calling fsync() after each write operation.");
        } else {
            if plan.fsync_every > 0 {
                let every = plan.fsync_every;
                log.notice(&format!("Periodic FSYNC enabled, calling fsync() each {every} requests."));
            }
            if self.fsync_end {
                log.notice("Calling fsync() at the end of test, Enabled.");
            }
        }
        log.notice(match self.way {
            Way::Sync => "Using synchronous I/O mode",
            Way::Async(_) => "Using asynchronous I/O mode",
            Way::Mapped => "Using fast mmaped I/O mode",
        });
        if self.validate {
            log.notice("Using checksums validation.");
        }
        log.line(Level::Notice, plan.mode.text());
    }
}

#[cfg(test)]
mod tests;
