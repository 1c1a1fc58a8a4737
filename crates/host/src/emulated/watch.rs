//! Serves a disk under a watchdog, which ends it, or lets it serve without delays, before other processes have to wait
//! for it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use fuser::{Config, Session, SessionACL};
use mydyno_journal::Liveness;
use mydyno_journal::{Journal, Open};
use mydyno_journal::{Machine, ProcessIdentity};
use mydyno_linux::calls;

use super::control::{DiskCommand, KIND};
use super::service::{Drive, Files};
use super::{Serving, description};
use crate::error::HostError;
use crate::kinds::KINDS;
/// Period of the watchdog.
const POLL_EVERY: Duration = Duration::from_millis(100);
/// Period of its checks of memory and of the journal.
const CHECK_EVERY: Duration = Duration::from_secs(2);
/// Free memory below which the disk ends itself, before the kernel's out-of-memory killer acts.
const LEAST_FREE_BYTES: u64 = 512 << 20;
/// Longest delay of a request: after it the disk serves without delays, and its counters record that.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// Serves the disk of a folder until its mount is gone. To be called by its own process only: it locks all memory.
///
/// # Errors
/// It cannot be served, or the watchdog ended it: all requests fail from then on.
pub fn serve(folder: &Path) -> Result<(), HostError> {
    let path = description(folder);
    let text = fs::read(&path).map_err(|e| HostError::io("read", &path, e))?;
    let serving: Serving =
        serde_json::from_slice(&text).map_err(|e| HostError::io("read", &path, e.into()))?;
    let machine = Machine::real()?;
    let own = machine.identify(std::process::id())?;
    calls::processes::be_an_io_flusher();
    calls::processes::lock_memory().map_err(|e| HostError::io("lock the memory of", &path, e))?;
    let drive = Arc::new(Drive::new(serving.model.clone()));
    let turning = Arc::clone(&drive);
    thread::spawn(move || {
        // The default timer slack of a thread is 50 µs: prctl(2), PR_SET_TIMERSLACK.
        calls::scheduler::sleep_precisely();
        turning.turn()
    });
    let point = folder.join("emulated");
    let session = mount(&serving.source, &point)
        .and_then(|fuse| {
            let files = Files(Arc::clone(&drive));
            Session::from_fd(files, fuse.into(), SessionACL::Owner, Config::default())
        })
        .map_err(|e| HostError::io("mount FUSE at", &point, e))?;
    let session = thread::spawn(move || session.run());
    let journal = Journal::at(serving.journal, KINDS);
    let (mut checked, mut late) = (Instant::now(), false);
    while !session.is_finished() {
        thread::sleep(POLL_EVERY);
        let wait = drive.longest_wait();
        if (wait > LONGEST_WAIT) != late && (!late || wait.is_zero()) {
            late = !late;
            drive.skip_delays_while_late(late);
        }
        if checked.elapsed() >= CHECK_EVERY {
            checked = Instant::now();
            check_host(&machine, &journal, own.as_ref(), &drive)?;
        }
    }
    Ok(())
}

/// Mounts FUSE: Documentation/filesystems/fuse/fuse.rst of the kernel. fuser's own mount function is not used: its
/// session unmounts by path at its end, even if another program has mounted something there since (`is_mounted` of
/// fuser 0.18 reports every connection as mounted). The restore of this mount checks its source first.
fn mount(source: &str, point: &Path) -> io::Result<File> {
    let fuse = OpenOptions::new().read(true).write(true).open("/dev/fuse")?;
    let owner = calls::effective_uid();
    let options = format!("fd={},rootmode=40000,user_id={owner},group_id=0", fuse.as_raw_fd());
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    calls::mounts::mount(Path::new(source), point, KIND, flags, &options)?;
    Ok(fuse)
}

/// # Errors
/// The disk must end: memory is short, or the journal has no entry of this process.
fn check_host(
    machine: &Machine,
    journal: &Journal,
    own: Option<&ProcessIdentity>,
    drive: &Drive,
) -> Result<(), HostError> {
    let free = machine.available_bytes()?;
    if free < LEAST_FREE_BYTES {
        return Err(HostError::NoMemory { free: free.to_string(), needed: LEAST_FREE_BYTES.to_string() });
    }
    // A locked journal is read the next time.
    let Ok(replay) = journal.read() else { return Ok(()) };
    let ours = |open: &&Open| own.is_some() && open.entry.change.process() == own;
    let Some(open) = replay.open.iter().find(ours) else {
        let why = "no change in the journal is this process's".to_owned();
        return Err(HostError::Program { program: "the emulated disk".into(), why });
    };
    if open.kept_until.is_none() && open.lease.liveness(machine)? == Liveness::Dead {
        // The command that made it was killed: a global sync must not wait for the rest of the disk.
        drive.execute(DiskCommand::SkipDelays);
    }
    Ok(())
}
