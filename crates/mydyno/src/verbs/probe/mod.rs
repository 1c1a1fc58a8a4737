//! `mydyno probe`: small controlled probes of storage, memory and scheduler.

mod levers;
mod text;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use mydyno_host::Machine;
use mydyno_host::file_system::FileSystem;
use mydyno_model::Document;
use mydyno_model::probe::ProbeReport;
use mydyno_model::units::{parse_counts, parse_duration, parse_size};
use mydyno_probe::own_disk::{DiskVariant, Flushes};
use mydyno_probe::{
    ProbeError, Run, Timing, bandwidth, clock, fsync, ladder, malloc, random, spin, threads, unlink,
};
use mydyno_prove::hog;

use crate::failure::{Failure, Status};
use crate::private::{environment, open_host};
use crate::signals;
use crate::ui::Ui;
use levers::LeverArgs;

/// Longest time of a measure, as for the window of a bench.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// File of the document in the folder of `--out`.
const DOCUMENT: &str = "probe.json";

/// Options of `mydyno probe`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    probe: Probe,
    #[command(flatten)]
    levers: LeverArgs,
}

#[derive(Debug, Subcommand)]
enum Probe {
    /// Rate of writing and syncing a file, and whether syncs reach the disk.
    Fsync(Fsync),
    /// Random reads and writes with direct I/O, alone and beside a writer that syncs.
    Random(Random),
    /// Latencies from cache over memory, page cache and disk to a sync.
    Latency(Latency),
    /// Memory bandwidth.
    Memory(Common),
    /// Cost of reading the clock.
    Clock(Common),
    /// Costs of a spin loop's pause and of atomic operations.
    Spin(Common),
    /// Threads, mutexes and context switches.
    Threads(Threads),
    /// Allocating memory by size, threads, allocator and huge pages, with page faults counted.
    Malloc(Malloc),
    /// Removing large files.
    Unlink(Unlink),
    /// The process that takes memory beside the load of an experiment.
    #[command(hide = true)]
    MemoryChild {
        /// Bytes.
        bytes: u64,
        /// Process whose memory group it enters.
        server: u32,
        /// Process that it ends with.
        asker: u32,
    },
    /// The child process that `malloc` starts for each allocator.
    #[command(hide = true)]
    MallocChild {
        /// A document for itself.
        request: String,
    },
}

/// Options of every probe.
#[derive(Debug, ClapArgs)]
struct Common {
    /// Time of each measure, over all rounds.
    #[arg(long, value_name = "DURATION", default_value = "3s")]
    time: String,
    /// Warm-up before each measurement.
    #[arg(long, value_name = "DURATION", default_value = "200ms")]
    warmup: String,
    #[command(flatten)]
    rounds: Rounds,
}

/// Number and order of the measurements.
#[derive(Debug, ClapArgs)]
struct Rounds {
    /// Rounds: each measures everything in a random order, so that drift affects all measures alike.
    #[arg(long, value_name = "N", default_value_t = 3)]
    rounds: usize,
    #[command(flatten)]
    order: Order,
}

impl Rounds {
    /// The folder of the document.
    fn out(&self) -> Option<&Path> {
        self.order.out.as_deref()
    }
}

/// The order, and the destination of the document.
#[derive(Debug, ClapArgs)]
struct Order {
    /// Seed of the order, and of the positions of random reads and writes.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Also write the document into this folder, as probe.json.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
struct Fsync {
    /// Folder to measure: on the file system of the data or of the log, beside the data directory, not in it; file
    /// systems and disks differ.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Bytes of a write.
    #[arg(long, value_name = "SIZE", default_value = "4K")]
    block: String,
    /// Bytes of the file that is overwritten; all patterns need nine times that space. 64M, and 16M with
    /// --file-systems.
    #[arg(long, value_name = "SIZE")]
    size: Option<String>,
    /// Instead of the folder itself, measure a disk that mydyno makes in it for each of these: ext4, ext4-nojournal, ext3,
    /// xfs, btrfs (needs root, mkfs and loop devices).
    #[arg(long, value_name = "LIST")]
    file_systems: Option<String>,
    /// Whether their flushes reach the device below, each with its own disk: sent, suppressed.
    #[arg(long, value_name = "LIST", default_value = "sent", requires = "file_systems")]
    flushes: String,
    /// Which of overwrite, append, preallocated.
    #[arg(long, value_name = "LIST", default_value = "overwrite,append,preallocated")]
    patterns: String,
    /// Which of fsync, fdatasync, o_dsync.
    #[arg(long, value_name = "LIST", default_value = "fsync,fdatasync,o_dsync")]
    methods: String,
    /// With direct I/O (O_DIRECT).
    #[arg(long)]
    direct: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
struct Random {
    /// Folder to measure: beside a data directory, not in it.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Bytes of a read or write: a page.
    #[arg(long, value_name = "SIZE", default_value = "16K")]
    block: String,
    /// Bytes of the file.
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    size: String,
    /// Numbers of threads.
    #[arg(long, value_name = "LIST", default_value = "1,16")]
    threads: String,
    /// Which of read, write, beside (reads beside a writer that syncs).
    #[arg(long, value_name = "LIST", default_value = "read,write,beside")]
    what: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
struct Latency {
    /// Folder of the files that are read and written: beside a data directory, not in it. Without it only memory is
    /// measured.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Bytes of the file that is read with direct I/O.
    #[arg(long, value_name = "SIZE", default_value = "512M")]
    size: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
struct Threads {
    /// Numbers of threads that contend for one mutex.
    #[arg(long, value_name = "LIST", default_value = "2,16,64")]
    threads: String,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, ClapArgs)]
struct Malloc {
    /// Sizes.
    #[arg(long, value_name = "LIST", default_value = "256,16K,128K,256K,512K,2M,4M")]
    sizes: String,
    /// Numbers of threads.
    #[arg(long, value_name = "LIST", default_value = "1,16")]
    threads: String,
    /// Time of each measure, over all rounds.
    #[arg(long, value_name = "DURATION", default_value = "300ms")]
    time: String,
    /// Warm-up before each measurement.
    #[arg(long, value_name = "DURATION", default_value = "20ms")]
    warmup: String,
    #[command(flatten)]
    rounds: Rounds,
}

#[derive(Debug, ClapArgs)]
struct Unlink {
    /// Folder to measure: beside a data directory, not in it.
    #[arg(long, value_name = "DIR")]
    folder: PathBuf,
    /// Sizes of files.
    #[arg(long, value_name = "LIST", default_value = "64M,512M")]
    sizes: String,
    /// Files of each size.
    #[arg(long, value_name = "N", default_value_t = 10)]
    count: usize,
    #[command(flatten)]
    order: Order,
}

/// Runs a probe.
pub fn run(args: &Args, ui: &Ui) -> Result<Status, Failure> {
    if let Probe::MallocChild { request } = &args.probe {
        ui.out(&malloc::child::run(request).map_err(failure)?);
        return Ok(Status::Fine);
    }
    if let Probe::MemoryChild { bytes, server, asker } = args.probe {
        hog::child(bytes, server, asker).map_err(Failure::environment)?;
        return Ok(Status::Fine);
    }
    let stop = signals::stop_flag()?;
    let changed = args.levers.apply(ui)?;
    let probed = probe(&args.probe, &stop, ui);
    if let Some(changed) = &changed {
        changed.put_back(ui)?;
    }
    let (mut report, out) = probed?;
    if let Some(changed) = changed {
        report.parameters.insert("levers".to_owned(), changed.levers.into());
    }
    if let Some(folder) = out {
        write(folder, &report)?;
    }
    ui.out(&if ui.json { report.to_json() } else { text::of(&report) });
    Ok(if stop.load(Ordering::Relaxed) { Status::Interrupted } else { Status::Fine })
}

fn probe<'a>(
    probe: &'a Probe,
    stop: &AtomicBool,
    ui: &Ui,
) -> Result<(ProbeReport, Option<&'a Path>), Failure> {
    let mut note = |line: &str| ui.note(line);
    let run = &mut Run { timing: timing(probe)?, only: None, stop, progress: &mut note };
    let machine = || Machine::real().map_err(environment);
    let host = || open_host("probe");
    let (report, out) = match probe {
        Probe::Fsync(args) => {
            let variants = variants(args)?;
            let usual = if variants.is_empty() { "64M" } else { "16M" };
            let options = fsync::Options {
                folder: args.folder.clone(),
                block: size("block", &args.block)? as usize,
                bytes: size("size", args.size.as_deref().unwrap_or(usual))?,
                variants,
                patterns: names("patterns", &args.patterns, fsync::Pattern::named)?,
                methods: names("methods", &args.methods, fsync::Method::named)?,
                direct: args.direct,
            };
            (fsync::run(&host()?, &options, run), args.common.rounds.out())
        }
        Probe::Random(args) => {
            let what = names("what", &args.what, |name| {
                ["read", "write", "beside"].iter().position(|known| *known == name)
            })?;
            let options = random::Options {
                folder: args.folder.clone(),
                block: size("block", &args.block)? as usize,
                bytes: size("size", &args.size)?,
                threads: counts("threads", &args.threads)?,
                read: what.contains(&0),
                write: what.contains(&1),
                beside: what.contains(&2),
            };
            (random::run(&host()?, &options, run), args.common.rounds.out())
        }
        Probe::Latency(args) => {
            let options = ladder::Options { folder: args.folder.clone(), bytes: size("size", &args.size)? };
            let host = args.folder.is_some().then(host).transpose()?;
            (ladder::run(host.as_ref(), &machine()?, &options, run), args.common.rounds.out())
        }
        Probe::Memory(common) => (bandwidth::run(&machine()?, run), common.rounds.out()),
        Probe::Clock(common) => (clock::run(run), common.rounds.out()),
        Probe::Spin(common) => (spin::run(run), common.rounds.out()),
        Probe::Threads(args) => {
            let options = threads::Options { threads: counts("threads", &args.threads)? };
            (threads::run(&options, run), args.common.rounds.out())
        }
        Probe::Malloc(args) => {
            let program = std::env::current_exe()
                .map_err(|e| Failure::environment(format!("cannot find mydyno's own program: {e}")))?;
            let options = malloc::Options {
                sizes: sizes("sizes", &args.sizes)?.into_iter().map(|bytes| bytes as usize).collect(),
                threads: counts("threads", &args.threads)?,
                program: (program, malloc::CHILD.map(str::to_owned).into()),
            };
            (malloc::run(&machine()?, &options, run), args.rounds.out())
        }
        Probe::Unlink(args) => {
            let options = unlink::Options {
                folder: args.folder.clone(),
                sizes: sizes("sizes", &args.sizes)?,
                count: args.count,
            };
            (unlink::run(&host()?, &options, run), args.order.out.as_deref())
        }
        Probe::MallocChild { .. } | Probe::MemoryChild { .. } => {
            return Err(Failure::usage("this command is started by mydyno itself"));
        }
    };
    Ok((report.map_err(failure)?, out))
}

fn timing(probe: &Probe) -> Result<Timing, Failure> {
    let of = |rounds: &Rounds| (rounds.rounds, rounds.order.seed);
    let (time, warmup, (rounds, seed)) = match probe {
        Probe::Fsync(Fsync { common, .. })
        | Probe::Random(Random { common, .. })
        | Probe::Latency(Latency { common, .. })
        | Probe::Threads(Threads { common, .. })
        | Probe::Memory(common)
        | Probe::Clock(common)
        | Probe::Spin(common) => (common.time.as_str(), common.warmup.as_str(), of(&common.rounds)),
        Probe::Malloc(args) => (args.time.as_str(), args.warmup.as_str(), of(&args.rounds)),
        // Single events: as many rounds as files.
        Probe::Unlink(args) => ("0s", "0s", (args.count, args.order.seed)),
        Probe::MallocChild { .. } | Probe::MemoryChild { .. } => ("0s", "0s", (0, 0)),
    };
    let (time, warm_up) = (bounded("time", time)?, bounded("warmup", warmup)?);
    Ok(Timing { time, warm_up, rounds, seed })
}

fn failure(error: ProbeError) -> Failure {
    match error {
        ProbeError::Option { .. } => Failure::usage(error.to_string()),
        other => Failure::environment(other.to_string()),
    }
}

fn wrong(option: &str, problem: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("--{option}: {problem}"))
}

fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    parse_duration(text).map_err(|e| wrong(option, e))
}

/// As [`duration`], at most [`LONGEST`].
fn bounded(option: &str, text: &str) -> Result<Duration, Failure> {
    let time = duration(option, text)?;
    if time > LONGEST { Err(wrong(option, "longer than 7d: repeat the probe instead")) } else { Ok(time) }
}

fn size(option: &str, text: &str) -> Result<u64, Failure> {
    parse_size(text).map_err(|e| wrong(option, e))
}

fn sizes(option: &str, text: &str) -> Result<Vec<u64>, Failure> {
    text.split(',').map(|part| size(option, part.trim())).collect()
}

fn counts(option: &str, text: &str) -> Result<Vec<usize>, Failure> {
    parse_counts(text).map_err(|e| wrong(option, e))
}

/// The file systems of `--file-systems`, each with all of `--flushes`.
fn variants(args: &Fsync) -> Result<Vec<DiskVariant>, Failure> {
    let Some(list) = &args.file_systems else { return Ok(vec![]) };
    let mut variants: Vec<DiskVariant> = Vec::new();
    for file_system in names("file-systems", list, FileSystem::named)? {
        for flushes in names("flushes", &args.flushes, Flushes::named)? {
            let variant = DiskVariant { file_system, flushes };
            if !variants.contains(&variant) {
                variants.push(variant);
            }
        }
    }
    Ok(variants)
}

fn names<T>(option: &str, text: &str, named: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, Failure> {
    let one = |name: &str| {
        named(name.trim()).ok_or_else(|| wrong(option, format!("{name:?} is none of them: see --help")))
    };
    text.split(',').map(one).collect()
}

fn write(folder: &Path, report: &ProbeReport) -> Result<(), Failure> {
    let path = folder.join(DOCUMENT);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&path, report.to_json()))
        .map_err(|e| Failure::environment(format!("cannot write {}: {e}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_at_most_a_week() {
        assert_eq!(bounded("time", "7d").ok(), Some(LONGEST));
        let failure = bounded("time", "99999999999d").unwrap_err();
        assert!(failure.problems[0].starts_with("--time: longer than 7d"), "{failure:?}");
    }
}
