//! Jobs beside the load of a slice: each is a thread that ends with the slice.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mydyno_model::experiment::Role;
use mydyno_model::experiment::definition::{Job, Work};
use mydyno_model::units::{parse_duration, parse_size};
use mydyno_wire::{Client, ConnectOptions, WireError};

use crate::hog;

/// Interval at which a waiting job checks whether the slice has ended.
const LOOK: Duration = Duration::from_millis(5);
/// Bytes that are copied at a time.
const CHUNK: usize = 1 << 20;

/// Failure of a job that needs a private server.
const NO_SERVER: &str = "the job needs a private server, and there is none";

/// The environment of jobs.
pub(crate) struct Surroundings<'a> {
    /// The server that is loaded; `None` where a probe is the load.
    pub(crate) target: Option<&'a ConnectOptions>,
    /// The process of the server, where it is a private one.
    pub(crate) server: Option<u32>,
    /// The folder of the experiment, on the file system of the servers' data; files of jobs are unlinked at once.
    pub(crate) folder: &'a Path,
    /// Part that is cut from the beginning of the slice: times of jobs count from its end.
    pub(crate) settle: Duration,
}

/// Runs `load` with the jobs of an arm beside it. Returns its result, and the errors of jobs.
pub(crate) fn beside<T>(
    jobs: &[Job],
    arm: Role,
    around: &Surroundings<'_>,
    load: impl FnOnce() -> T,
) -> (T, Vec<String>) {
    // The second copy of the baseline has the baseline's jobs.
    let arm = if arm == Role::Again { Role::Baseline } else { arm };
    let own = jobs.iter().filter(|job| job.only.is_none_or(|only| only == arm));
    let ended = AtomicBool::new(false);
    let begin = Instant::now();
    thread::scope(|scope| {
        let ended = &ended;
        let threads: Vec<_> =
            own.map(|job| scope.spawn(move || carry_out(job, around, begin, ended))).collect();
        let result = load();
        ended.store(true, Ordering::Relaxed);
        let failures = threads.into_iter().filter_map(|thread| match thread.join() {
            Ok(done) => done.err(),
            Err(_) => Some("a job panicked".to_owned()),
        });
        (result, failures.collect())
    })
}

/// One job, from its start to its end or that of the slice.
fn carry_out(job: &Job, around: &Surroundings<'_>, begin: Instant, ended: &AtomicBool) -> Result<(), String> {
    let time = |text: &Option<String>| text.as_deref().and_then(|text| parse_duration(text).ok());
    let from = begin + around.settle + time(&job.at).unwrap_or_default();
    let until = time(&job.duration).map(|duration| from + duration);
    let over = || ended.load(Ordering::Relaxed) || until.is_some_and(|until| Instant::now() >= until);
    while Instant::now() < from {
        if ended.load(Ordering::Relaxed) {
            return Ok(());
        }
        thread::sleep(LOOK);
    }
    match &job.work {
        Work::Statement(sql) => {
            let target = around.target.ok_or(NO_SERVER)?;
            statement(sql, target, &over).map_err(|error| format!("job {sql:?}: {error}"))
        }
        Work::FileCopy(size) => {
            let bytes = parse_size(size).map_err(|e| e.to_string())?;
            copy(around.folder, bytes, &over).map_err(|e| format!("job file_copy {size}: {e}"))
        }
        Work::MemoryHog(size) => {
            let bytes = parse_size(size).map_err(|e| e.to_string())?;
            let server = around.server.ok_or(NO_SERVER)?;
            hog::beside(bytes, server, &over).map_err(|e| format!("job memory_hog {size}: {e}"))
        }
        Work::CpuHog(threads) => {
            thread::scope(|scope| {
                for _ in 0..*threads {
                    scope.spawn(|| {
                        while !over() {
                            std::hint::spin_loop();
                        }
                    });
                }
            });
            Ok(())
        }
        Work::ConnectionChurn(rate) => churn(*rate, around.target.ok_or(NO_SERVER)?, from, &over),
    }
}

/// Sends a statement. If it still runs at the end of the slice, KILL QUERY ends it, which is no failure: it ran beside
/// the slice all the time.
fn statement(sql: &str, target: &ConnectOptions, over: &(dyn Fn() -> bool + Sync)) -> Result<(), WireError> {
    let mut client = Client::connect(target)?;
    let id = client.session().connection_id;
    let answered = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            while !answered.load(Ordering::Relaxed) {
                if over() {
                    let killed = Client::connect(target)
                        .and_then(|mut other| other.query(&format!("KILL QUERY {id}")));
                    return killed.is_ok();
                }
                thread::sleep(LOOK);
            }
            false
        });
        let result = client.query(sql);
        answered.store(true, Ordering::Relaxed);
        match (result, watcher.join()) {
            (Err(WireError::Server(_)), Ok(true)) => Ok(()),
            (result, _) => result.map(drop),
        }
    })
}

/// Opens and closes this many connections a second, until the end of the slice.
fn churn(rate: u32, target: &ConnectOptions, from: Instant, over: &dyn Fn() -> bool) -> Result<(), String> {
    let mut opened: u32 = 0;
    while !over() {
        let due = from + Duration::from_secs_f64(f64::from(opened) / f64::from(rate.max(1)));
        if Instant::now() < due {
            thread::sleep(LOOK.min(due.saturating_duration_since(Instant::now())));
            continue;
        }
        Client::connect(target).map_err(|e| format!("job connection_churn: {e}"))?;
        opened += 1;
    }
    Ok(())
}

/// Copies a file of this many bytes repeatedly. Both files are unlinked as soon as they are open, so that nothing
/// remains of them however the command ends.
fn copy(folder: &Path, bytes: u64, over: &dyn Fn() -> bool) -> io::Result<()> {
    let (mut from, mut to) = (nameless(folder, "source")?, nameless(folder, "copy")?);
    let mut chunk = vec![0x5a; CHUNK];
    let mut left = bytes;
    while left > 0 && !over() {
        let part = left.min(CHUNK as u64) as usize;
        from.write_all(&chunk[..part])?;
        left -= part as u64;
    }
    while !over() {
        from.seek(SeekFrom::Start(0))?;
        to.seek(SeekFrom::Start(0))?;
        while !over() {
            let read = from.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            to.write_all(&chunk[..read])?;
        }
    }
    Ok(())
}

/// An unlinked file.
fn nameless(folder: &Path, name: &str) -> io::Result<File> {
    let path = folder.join(format!("job-{name}-{}", std::process::id()));
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
#[path = "../../../tests/until.rs"]
mod until;

#[cfg(test)]
mod tests {
    use mydyno_wire::Endpoint;

    use super::until::until;
    use super::*;

    fn job(work: Work) -> Job {
        Job { work, at: None, duration: None, only: None }
    }

    #[test]
    fn jobs_end_with_the_slice_and_leave_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = ConnectOptions::new(Endpoint::Unix("/nowhere".into()), "nobody");
        let around = Surroundings {
            target: Some(&target),
            server: None,
            folder: folder.path(),
            settle: Duration::ZERO,
        };
        let jobs = [job(Work::FileCopy("4M".to_owned())), job(Work::CpuHog(1))];
        let (result, failures) = beside(&jobs, Role::Again, &around, || {
            // The copy's files have no name, but an open one shows the name that it had.
            let path = folder.path().join("job-");
            let is_job = |file: &Path| file.to_string_lossy().starts_with(&*path.to_string_lossy());
            let open = || {
                fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            };
            until("the copy is at work", || open().any(|file| is_job(&file)));
            7
        });
        assert_eq!((result, failures), (7, vec![]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_job_of_the_other_arm_does_not_run_and_a_failure_is_told() {
        let target = ConnectOptions::new(Endpoint::Unix("/nowhere".into()), "nobody");
        let folder = Path::new("/nowhere/at/all");
        let around = Surroundings { target: Some(&target), server: None, folder, settle: Duration::ZERO };
        let copy = Job { only: Some(Role::Treatment), ..job(Work::FileCopy("1M".to_owned())) };
        let run = |arm| beside(std::slice::from_ref(&copy), arm, &around, || ()).1;
        assert_eq!(run(Role::Again), [""; 0]);
        assert!(run(Role::Treatment)[0].contains("file_copy 1M"), "{:?}", run(Role::Treatment));
    }
}
