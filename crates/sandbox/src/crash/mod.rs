//! Crash tests: a private server under a load of commits crashes and recovers, and the acknowledged transactions that
//! survived are counted.

mod count;
mod load;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use mydyno_host::disk::Disk;
use mydyno_host::emulated::{DiskCommand, EmulatedDisk, LABEL, Pace};
use mydyno_host::folder as host_folder;
use mydyno_host::room::check_memory;
use mydyno_model::Header;
use mydyno_model::crash::{CrashBy, CrashReport};
use mydyno_model::server::ServerInfo;
use mydyno_wire::{Client, WireError};
use serde_json::Map;
use time::OffsetDateTime;

use crate::accounts::init_statements;
use crate::arrangement::{disk_folder, set_up_disk};
use crate::connect::connect_options;
use crate::error::SandboxError;
use crate::folder::ServerFolder;
use crate::list::down;
use crate::purpose;
use crate::site::{Progress, Site};
use crate::start::{StartOptions, start};
use crate::up::{Spec, up};
use count::{Counts, Row};
use load::{Ended, Load, TABLES};

/// Time limit of the load for the requested number of commits.
const LOAD_PATIENCE: Duration = Duration::from_secs(300);
/// Number of syncs that are timed.
const SYNCS: u32 = 8;
/// Variables that decide which commits a crash can lose.
const DURABILITY: [&str; 5] =
    ["innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_doublewrite", "innodb_flush_method"];

/// Parameters of a crash test.
#[derive(Debug, Clone)]
pub struct Crash {
    /// The server; it is made for this test and ended after it.
    pub server: Spec,
    /// Its levers as requested, for the report.
    pub levers: Vec<String>,
    /// The kind of crash.
    pub by: CrashBy,
    /// Number of acknowledged commits before the crash.
    pub commits: u64,
    /// Connections that commit.
    pub connections: usize,
}

/// Makes a server, loads it, crashes it, starts it again and counts the losses. Nothing of it is left afterwards.
///
/// # Errors
/// A power cut was requested without an emulated disk; the server could not be made, or acknowledged too few commits;
/// the user interrupted. A server that does not recover is a result, not an error.
pub fn crash(
    site: &Site,
    crash: &Crash,
    progress: &mut dyn FnMut(Progress),
) -> Result<CrashReport, SandboxError> {
    let arrangement = &crash.server.lever_set.arrangement;
    if crash.by == CrashBy::PowerCut && !arrangement.is_emulated() {
        return Err(bad("disk.medium", "file", "emulated, for a power cut: give disk.file_system as well"));
    }
    if !arrangement.limits.is_empty() {
        return Err(bad(
            "cgroup",
            "limits",
            "none in a crash: the server is started again without its group",
        ));
    }
    check_memory(site.lease.machine())?;
    check_time(site.state.path(), crash)?;
    let info = up(site, &crash.server, progress)?;
    let done = run(site, crash, &info, progress);
    match (done, down(site, &info.name)) {
        (Ok(report), Ok(_)) => Ok(report),
        (Err(error), Ok(_)) | (Ok(_), Err(error)) => Err(error),
        (Err(first), Err(then)) => {
            Err(SandboxError::NotUndone { error: Box::new(first), then: Box::new(then) })
        }
    }
}

/// Whether this many commits can be acknowledged within the time of a load: each connection records them one after the
/// other, synced. An unnamed file shows how long a sync takes here.
///
/// # Errors
/// They cannot, even if the server needed no time at all.
fn check_time(folder: &Path, crash: &Crash) -> Result<(), SandboxError> {
    let io = |e| SandboxError::io("sync a file in", folder, e);
    let mut options = OpenOptions::new();
    let unnamed = options.write(true).custom_flags(libc::O_TMPFILE).mode(0o600).open(folder);
    // Where the file system has no unnamed files, the load itself shows it.
    let Ok(mut file) = unnamed else { return Ok(()) };
    let begin = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[0; 8]).and_then(|()| file.sync_data()).map_err(io)?;
    }
    let sync_s = begin.elapsed().as_secs_f64() / f64::from(SYNCS);
    let each = crash.commits.div_ceil(crash.connections.max(1) as u64);
    let (needed_s, most_s) = (each as f64 * sync_s, LOAD_PATIENCE.as_secs());
    if needed_s <= most_s as f64 {
        return Ok(());
    }
    Err(SandboxError::TooManyCommits { commits: crash.commits, needed_s, most_s })
}

fn bad(id: &str, value: &str, takes: &str) -> SandboxError {
    SandboxError::LeverValue { id: id.to_owned(), value: value.to_owned(), takes: takes.to_owned() }
}

fn run(
    site: &Site,
    crash: &Crash,
    info: &ServerInfo,
    progress: &mut dyn FnMut(Progress),
) -> Result<CrashReport, SandboxError> {
    let unreachable = |source| SandboxError::Unreachable { name: info.name.clone(), source };
    let folder = ServerFolder::of(site.state, &info.name);
    let log = folder.path().join("acknowledged");
    fs::create_dir(&log).map_err(|e| SandboxError::io("create", &log, e))?;
    let options = connect_options(info)?;
    let mut client = Client::connect(&options).map_err(unreachable)?;
    load::prepare(&mut client).map_err(unreachable)?;
    let durability = durability(&mut client).map_err(unreachable)?;
    drop(client);
    if let Some(disk) = EmulatedDisk::of(folder.path()) {
        // The copy of the template must be durable: the test concerns commits only.
        disk.settle(&folder.path().join("disk"))?;
    }
    let pace = Pace::of(EmulatedDisk::of(folder.path()).into_iter().collect());
    let load = Load::start(&options, crash.connections, &log).map_err(unreachable)?;
    host_folder::sync_names(&log)?;
    progress(Progress::Loading { commits: crash.commits });
    let begin = Instant::now();
    while load.acknowledged() < crash.commits && !load.has_ended() {
        site.check_cancelled()?;
        if begin.elapsed() >= LOAD_PATIENCE {
            break;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    if load.acknowledged() < crash.commits {
        // A crash before enough commits would prove nothing.
        load.over();
        let ended = load.end().map_err(|e| SandboxError::io("read", &log, e))?;
        return Err(too_few(&ended, crash.commits, begin.elapsed()));
    }
    progress(Progress::Crashing);
    load.over();
    let back = crash_and_recover(site, crash, &folder, progress);
    let workers = load.end().map_err(|e| SandboxError::io("read", &log, e))?.progress;
    let (back, not_recovered) = match back? {
        Ok(back) => (Some(back), None),
        Err(why) => (None, Some(why.to_string())),
    };
    let (rows, not_recovered) = match back.as_ref().map(|back| read_all(&back.info)).transpose() {
        Ok(rows) => (rows, not_recovered),
        Err(why) => (None, Some(format!("what is in its tables cannot be read: {why}"))),
    };
    // Rows that could not be read are unknown, neither lost nor present.
    let counts = rows.map(|[a, b]| count::count(&workers, [&a, &b]));
    let seen = |of: fn(&Counts) -> u64| counts.as_ref().map(of);
    let emulated = EmulatedDisk::of(folder.path());
    Ok(CrashReport {
        header: Header::of::<CrashReport>(OffsetDateTime::now_utc()),
        engine: info.engine.clone(),
        by: crash.by,
        disk: emulated.as_ref().map(|_| LABEL.to_owned()),
        levers: crash.levers.clone(),
        durability,
        connections: crash.connections as u64,
        commits_wanted: crash.commits,
        acknowledged: workers.iter().map(|worker| worker.acknowledged).sum(),
        lost: seen(|counts| counts.lost),
        torn: seen(|counts| counts.torn),
        never_sent: seen(|counts| counts.never_sent),
        in_doubt_present: seen(|counts| counts.in_doubt_present),
        mount_ms: back.as_ref().and_then(|back| back.mount).map(ms),
        recovery_ms: back.as_ref().map(|back| ms(back.recovery)),
        not_recovered,
        disk_lost_bytes: emulated.and_then(|disk| disk.state().ok()).map(|state| state.counters.lost_bytes),
        warnings: pace.warning().into_iter().collect(),
        extra: Map::new(),
    })
}

/// The reason why a load ended with too few commits.
fn too_few(ended: &Ended, wanted: u64, waited: Duration) -> SandboxError {
    let acknowledged = ended.progress.iter().map(|worker| worker.acknowledged).sum();
    let why = match &ended.why {
        Some(error) => format!("a connection of the load ended: {error}"),
        None => format!("{:.0} s were over", waited.as_secs_f64()),
    };
    SandboxError::TooFewCommits { acknowledged, wanted, why }
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn durability(client: &mut Client) -> Result<Vec<(String, String)>, WireError> {
    let names = DURABILITY.map(|name| format!("'{name}'")).join(", ");
    let rows = client.query(&format!("SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})"))?;
    let pair = |row| Some((rows.text(row, 0)?.into_owned(), rows.text(row, 1)?.into_owned()));
    Ok((0..rows.len()).filter_map(pair).collect())
}

/// ER_BAD_DB_ERROR and ER_NO_SUCH_TABLE.
const GONE: [u16; 2] = [1049, 1146];

/// The rows of both tables. A missing table is empty; one that cannot be read is an error.
fn read_all(server: &ServerInfo) -> Result<[Vec<Row>; 2], SandboxError> {
    let unreachable = |source| SandboxError::Unreachable { name: server.name.clone(), source };
    let mut client = Client::connect(&connect_options(server)?).map_err(unreachable)?;
    let mut of = |table: &str| match read(&mut client, table) {
        Err(WireError::Server(error)) if GONE.contains(&error.code) => Ok(vec![]),
        Err(source) => Err(SandboxError::Table { table: table.to_owned(), source }),
        Ok(rows) => Ok(rows),
    };
    Ok([of(TABLES[0])?, of(TABLES[1])?])
}

fn read(client: &mut Client, table: &str) -> Result<Vec<Row>, WireError> {
    let rows = client.query(&format!("SELECT worker, number, content FROM {table}"))?;
    // Numbers outside a worker's range were never sent.
    let row = |at| Row {
        worker: rows.number(at, 0).unwrap_or(u64::MAX),
        number: rows.number(at, 1).unwrap_or(u64::MAX),
        content: rows.text(at, 2).unwrap_or_default().into_owned(),
    };
    Ok((0..rows.len()).map(row).collect())
}

/// A recovered server.
struct Back {
    info: ServerInfo,
    mount: Option<Duration>,
    recovery: Duration,
}

/// The outer error: the crash itself failed, or the user interrupted. The inner one: the disk or the server did not
/// recover.
fn crash_and_recover(
    site: &Site,
    crash: &Crash,
    folder: &ServerFolder,
    progress: &mut dyn FnMut(Progress),
) -> Result<Result<Back, SandboxError>, SandboxError> {
    let purpose = purpose::of_server(&crash.server.name);
    let emulated = EmulatedDisk::of(folder.path()).filter(|_| crash.by == CrashBy::PowerCut);
    if let Some(disk) = &emulated {
        disk.send(DiskCommand::Cut)?;
    }
    kill(site, &purpose)?;
    let mut mount = None;
    if emulated.is_some() {
        disk_folder(site, folder.path(), &purpose).cut_power()?;
        let begin = Instant::now();
        match power_on(site, crash, folder.path(), &purpose) {
            Ok(_) => mount = Some(begin.elapsed()),
            Err(error) => return not_back(error),
        }
    }
    let begin = Instant::now();
    match start_again(site, crash, folder, &purpose, progress) {
        Ok(info) => Ok(Ok(Back { info, mount, recovery: begin.elapsed() })),
        Err(error) => not_back(error),
    }
}

/// An interruption by the user says nothing about the server.
fn not_back(error: SandboxError) -> Result<Result<Back, SandboxError>, SandboxError> {
    if matches!(error, SandboxError::Interrupted) { Err(error) } else { Ok(Err(error)) }
}

fn kill(site: &Site, purpose: &str) -> Result<(), SandboxError> {
    // The server is the last process that was started; that of an emulated disk was started before.
    let server = site
        .journal
        .read()?
        .open
        .into_iter()
        .rfind(|open| open.entry.purpose == purpose && open.entry.change.process().is_some());
    server.map_or(Ok(()), |server| site.undo_one(server.entry.id))
}

fn power_on(site: &Site, crash: &Crash, folder: &Path, purpose: &str) -> Result<Option<Disk>, SandboxError> {
    let arrangement = &crash.server.lever_set.arrangement;
    let Some(spec) = &arrangement.disk else { return Ok(None) };
    let disk = disk_folder(site, folder, purpose).power_on(spec)?;
    set_up_disk(site, arrangement, &disk.device, purpose)?;
    Ok(Some(disk))
}

/// Starts the server of a folder again, with its data unchanged.
fn start_again(
    site: &Site,
    crash: &Crash,
    folder: &ServerFolder,
    purpose: &str,
    progress: &mut dyn FnMut(Progress),
) -> Result<ServerInfo, SandboxError> {
    let spec = &crash.server;
    let install = spec.install()?;
    // The contents of its option file were reported at its first start.
    let settings = spec.settings(&install, &mut |_| {})?;
    let password_file = folder.password_file();
    let password =
        fs::read_to_string(&password_file).map_err(|e| SandboxError::io("read", &password_file, e))?;
    let password = password.trim_end();
    // A new log, so that the quoted lines of a failed start are from this start.
    let log = folder.log();
    fs::rename(&log, log.with_extension("log.before")).map_err(|e| SandboxError::io("rename", &log, e))?;
    folder.write_private(&folder.init_file(), &init_statements(&install.engine, password))?;
    let start_options =
        StartOptions { settings: &settings, arrangement: &spec.lever_set.arrangement, group: None };
    let ready = start(site, &install, &start_options, folder, purpose, password, progress)?;
    let Some(mut description) = folder.load()? else {
        return Err(SandboxError::NoSuchServer { name: spec.name.clone(), known: vec![] });
    };
    description.server.pid = Some(ready.started.identity.pid);
    description.server.port = ready.port;
    description.process = ready.started.identity;
    folder.save(&description)?;
    Ok(description.server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_few_commits_are_told_with_the_error_of_a_connection_or_the_time_that_was_over() {
        let progress =
            [(3, 4), (0, 0), (5, 5)].map(|(acknowledged, sent)| count::Progress { acknowledged, sent });
        let reported = |why| {
            let ended = Ended { progress: progress.to_vec(), why };
            too_few(&ended, 1000, Duration::from_millis(300_004)).to_string()
        };
        assert!(reported(None).starts_with("only 8 of 1000 commits were acknowledged"), "{}", reported(None));
        assert!(reported(None).contains("300 s were over"), "{}", reported(None));
        let full = WireError::Unsupported("the table is full".to_owned());
        assert!(reported(Some(full)).contains("ended: the table is full"));
    }
}
