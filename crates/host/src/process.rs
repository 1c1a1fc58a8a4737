//! Processes that mydyno starts and ends: each is journalled before it executes its program, and no other process is
//! ever killed.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use mydyno_journal::{
    Change, Closing, Context, Journal, JournalError, Lease, Machine, Outcome, Presence, ProcessIdentity,
};
use mydyno_linux::calls::processes;
use mydyno_linux::calls::processes::Signal;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cgroup::MadeGroup;
use crate::error::HostError;
use crate::limit::Limit;
use crate::numa::MemoryPolicy;
use crate::task::Attribute;
use crate::user::User;
use crate::view::View;
use mydyno_linux::calls::users::Credentials;
/// The identity of a process that mydyno started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedProcess {
    /// The process.
    #[serde(flatten)]
    pub identity: ProcessIdentity,
    /// The program that it executes.
    pub program: PathBuf,
}

/// Time limit for a killed process to release its memory.
const END_PATIENCE: Duration = Duration::from_secs(60);

/// A started process with its journal entry.
#[derive(Debug)]
pub struct Started {
    /// Its journal entry.
    pub id: u64,
    /// Its identity.
    pub identity: ProcessIdentity,
    /// The child, to be waited for.
    pub child: Child,
}

/// Starts a program in a new session, without the open files of this process except its standard streams.
///
/// The child waits at a barrier between fork and exec until the journal has its process id and start time. The barrier
/// is a pipe: when this process dies before that, the pipe closes and the child exits without having executed the
/// program. So the program never runs without a journal entry that identifies its process.
///
/// # Errors
/// The journal cannot be written or the program cannot be started; nothing then runs.
pub fn start(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    command: Command,
) -> Result<Started, HostError> {
    start_placed(journal, lease, purpose, command, &Placement::default())
}

/// Resources and identity of a process, set before it executes its program.
#[derive(Debug, Clone, Default)]
pub struct Placement<'a> {
    /// Its control group.
    pub group: Option<&'a MadeGroup>,
    /// Scheduling attributes; all its threads inherit them.
    pub scheduling: &'a [(Attribute, String)],
    /// Resource limits; its children inherit them.
    pub limits: &'a [(Limit, u64)],
    /// Where its memory is placed.
    pub memory_policy: Option<&'a MemoryPolicy>,
    /// The user that it becomes last: raising a limit needs root.
    pub user: Option<OtherUser<'a>>,
}

/// Another user, for a process that root starts.
#[derive(Debug, Clone, Copy)]
pub struct OtherUser<'a> {
    /// The user.
    pub user: &'a User,
    /// Folders that stay accessible under their own paths although only root may enter their parents: absolute, without
    /// symbolic links.
    pub folders: &'a [PathBuf],
}

impl Placement<'_> {
    fn put(&self, pid: u32) -> Result<(), HostError> {
        if let Some(group) = self.group {
            group.take_in(pid).map_err(|e| HostError::io("move a process into", &group.name, e))?;
        }
        for (attribute, value) in self.scheduling {
            attribute.give(pid, value)?;
        }
        for (limit, value) in self.limits {
            limit.give(pid, *value)?;
        }
        Ok(())
    }
}

/// As [`start`], with a placement that applies before the program runs.
///
/// # Errors
/// As [`start`], and the kernel refuses the placement; nothing then runs.
pub fn start_placed(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    command: Command,
    placement: &Placement,
) -> Result<Started, HostError> {
    let program = PathBuf::from(command.get_program());
    let fail = |source| HostError::Start { program: program.clone(), source };
    let guest = placement.user.map(|OtherUser { user, folders }| {
        let view = View { machine: lease.machine().clone(), user: user.clone(), folders: folders.to_vec() };
        (user, view)
    });
    let (user, view) = guest.unzip();
    // One start at a time: a child forked meanwhile would inherit this pipe's write end and keep the barrier from
    // closing.
    static STARTS: Mutex<()> = Mutex::new(());
    let one_start = STARTS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let (mut announcement, announce) = io::pipe().map_err(fail)?;
    let (barrier, mut release) = io::pipe().map_err(fail)?;
    let mut command = command;
    let credentials = user.map(User::credentials);
    wait_at_barrier(&mut command, Barrier { announce, barrier, release: release.as_raw_fd(), credentials });
    let policy = placement.memory_policy.cloned().map(|policy| (policy, lease.machine().clone()));
    // `spawn` returns only after exec, so it runs in another thread while this one releases the child. A private mount
    // namespace for another user is made in that thread, and the child inherits it, as it does the thread's memory policy.
    let spawning = thread::spawn(move || {
        policy.map_or(Ok(()), |(policy, machine)| policy.adopt(&machine)).map_err(Unspawned::Exec)?;
        view.map_or(Ok(()), |view| view.enter()).map_err(Unspawned::View)?;
        command.spawn().map_err(Unspawned::Exec)
    });
    let mut pid = [0u8; 4];
    let journalled = match announcement.read_exact(&mut pid) {
        Ok(()) => {
            let pid = u32::from_ne_bytes(pid);
            record(journal, lease, purpose, pid, &program).and_then(|recorded| {
                if let Err(error) = placement.put(pid) {
                    journal.close(recorded.0, Closing::Released, "it could not be put in its place")?;
                    return Err(error);
                }
                Ok(Some(recorded))
            })
        }
        // There was no fork; the thread returns the error.
        Err(_) => Ok(None),
    };
    if matches!(journalled, Ok(Some(_))) {
        release.write_all(&[1]).map_err(fail)?;
    }
    drop(release);
    let panicked = |_| Err(Unspawned::Exec(io::Error::other("the starting thread panicked")));
    let spawned = spawning.join().unwrap_or_else(panicked);
    drop(one_start);
    match (journalled, spawned) {
        (Ok(Some((id, identity))), Ok(child)) => Ok(Started { id, identity, child }),
        (Ok(Some((id, _))), Err(Unspawned::Exec(source))) => {
            journal.close(id, Closing::Released, "it did not start")?;
            // The child has exited, so the read ends. It has reported which call failed, if it was one for another
            // user.
            let mut call = [0u8; 1];
            let call = announcement
                .read_exact(&mut call)
                .ok()
                .and_then(|()| Credentials::CALLS.get(usize::from(call[0])));
            Err(match (call, user) {
                (Some(step), Some(user)) => HostError::Become { user: user.name().to_owned(), step, source },
                _ => fail(source),
            })
        }
        (Ok(_), Err(Unspawned::View(error))) => Err(error),
        (Ok(None), Err(Unspawned::Exec(e))) => Err(fail(e)),
        (Ok(None), Ok(_)) => Err(fail(io::Error::other("it started without saying its process id"))),
        (Err(error), _) => Err(error),
    }
}

fn record(
    journal: &Journal,
    lease: &Lease,
    purpose: &str,
    pid: u32,
    program: &Path,
) -> Result<(u64, ProcessIdentity), HostError> {
    let identity = lease.machine().identify(pid)?.ok_or_else(|| HostError::Start {
        program: program.to_owned(),
        source: io::Error::other("it ended before it started"),
    })?;
    let process = StartedProcess { identity: identity.clone(), program: program.to_owned() };
    Ok((journal.record(lease, purpose, process)?, identity))
}

/// The child's ends of the two pipes of the barrier.
struct Barrier {
    announce: io::PipeWriter,
    barrier: io::PipeReader,
    /// The parent's end, which the child must not keep.
    release: RawFd,
    /// The user that the child becomes after its release.
    credentials: Option<Credentials>,
}

/// The reason why no child exists.
enum Unspawned {
    View(HostError),
    Exec(io::Error),
}

fn wait_at_barrier(command: &mut Command, child: Barrier) {
    let inherited = open_files();
    let hold = move || {
        // SAFETY: close, setsid, fcntl, getpid, write and read are async-signal-safe (signal-safety(7)), close_range is a bare
        // system call; the descriptors are numbers of this child, and nothing here allocates.
        unsafe {
            libc::close(child.release);
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            // Another thread may have opened a file since the list was made; kernels before 5.11 know no such flag.
            let all = libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            if all != 0 {
                for fd in &inherited {
                    libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC);
                }
            }
        }
        (&child.announce).write_all(&std::process::id().to_ne_bytes())?;
        let mut open = [0u8; 1];
        (&child.barrier).read_exact(&mut open)?;
        match child.credentials.as_ref().map_or(Ok(()), Credentials::take) {
            Ok(()) => Ok(()),
            Err((call, error)) => (&child.announce).write_all(&[call]).and(Err(error)),
        }
    };
    // SAFETY: `hold` only makes the system calls named above and those of `Credentials`, so it may run between fork and exec.
    unsafe {
        command.pre_exec(hold);
    }
}

/// Descriptors of this process beyond the standard streams. They are closed on exec: the server would otherwise hold
/// inherited ones, such as a pipe, a lock or a deleted file, for as long as it lives.
fn open_files() -> Vec<RawFd> {
    let Ok(entries) = fs::read_dir("/proc/self/fd") else { return Vec::new() };
    entries.filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok()).filter(|fd| *fd > 2).collect()
}

impl Change for StartedProcess {
    fn kind(&self) -> &str {
        "process"
    }

    fn what(&self) -> String {
        format!("process {} ({})", self.identity.pid, self.program.display())
    }

    fn key(&self) -> String {
        format!("process:{}:{}", self.identity.pid, self.identity.start_ticks)
    }

    fn was(&self) -> Value {
        Value::from("absent")
    }

    fn now(&self) -> Value {
        Value::from("running")
    }

    /// The identity contains the boot id.
    fn ends_with_boot(&self) -> bool {
        false
    }

    fn process(&self) -> Option<&ProcessIdentity> {
        Some(&self.identity)
    }

    /// It may use everything of the same purpose.
    fn rests_on(&self, earlier: &dyn Change) -> bool {
        earlier.tree().is_some() || earlier.takes_processes()
    }

    fn rests_by_presumption(&self) -> bool {
        true
    }

    fn put_back(&self, context: &Context) -> Result<Outcome, JournalError> {
        Ok(match end(context.machine, &self.identity)? {
            Ended::Killed => Outcome::restored("ended"),
            Ended::Already(Presence::Recycled) => Outcome::left_alone(format!(
                "it had ended, and another process has the id {} now",
                self.identity.pid
            )),
            Ended::Already(Presence::OtherBoot) => Outcome::left_alone("it ended with an earlier boot"),
            Ended::Already(Presence::Unseen) => Outcome::left_alone(format!(
                "it belongs to {} {}, which cannot be seen from here",
                self.identity.place.host, self.identity.place.pid_namespace
            )),
            Ended::Already(_) => Outcome::restored("it had ended"),
            Ended::Not(why) => Outcome::failed(why),
        })
    }
}

/// The result of ending a process.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ran and was killed.
    Killed,
    /// It did not exist.
    Already(Presence),
    /// It still runs, with the reason.
    Not(String),
}

/// Sends SIGTERM to a process if it still is the one that was started.
///
/// # Errors
/// `/proc` cannot be read, or the signal cannot be sent.
pub fn ask_to_end(machine: &Machine, process: &ProcessIdentity) -> Result<(), HostError> {
    let fail = |e| HostError::io("send a signal to", machine.proc().join(process.pid.to_string()), e);
    let opened = match processes::open_pidfd(process.pid) {
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(()),
        opened => opened.map_err(fail)?,
    };
    if machine.presence(process)? != Presence::Running {
        return Ok(());
    }
    let sent = match &opened {
        Some(pidfd) => processes::signal_pidfd(pidfd, Signal::TERM),
        None => processes::signal_pid(process.pid, Signal::TERM),
    };
    match sent {
        Err(e) if e.raw_os_error() != Some(libc::ESRCH) => Err(fail(e)),
        _ => Ok(()),
    }
}

/// Sends SIGKILL to a process (its data are disposable) and waits until it has ended.
///
/// # Errors
/// `/proc` cannot be read.
pub fn end(machine: &Machine, process: &ProcessIdentity) -> Result<Ended, HostError> {
    // The descriptor is opened before the identity is checked, so it cannot refer to a later process with the same id.
    let opened = processes::open_pidfd(process.pid);
    match machine.presence(process)? {
        Presence::Running => {}
        gone => {
            if gone == Presence::Ended {
                processes::collect_child(process.pid);
            }
            return Ok(Ended::Already(gone));
        }
    }
    let pidfd = match opened {
        Ok(pidfd) => pidfd,
        // It ended meanwhile, or a seccomp filter forbids the call: the pid is used instead.
        Err(e) if matches!(e.raw_os_error(), Some(libc::ESRCH | libc::EPERM)) => None,
        Err(e) => return Ok(Ended::Not(format!("cannot open process {}: {e}", process.pid))),
    };
    let sent = match &pidfd {
        Some(pidfd) => processes::signal_pidfd(pidfd, Signal::KILL),
        None => processes::signal_pid(process.pid, Signal::KILL),
    };
    match sent {
        Ok(()) => {}
        Err(e) if e.raw_os_error() == Some(libc::ESRCH) => return Ok(Ended::Killed),
        Err(e) => {
            let pid = process.pid;
            return Ok(Ended::Not(format!(
                "cannot kill process {pid}: {e}: run it as the user that started it"
            )));
        }
    }
    let deadline = Instant::now() + END_PATIENCE;
    // Readable once all threads have ended: a leader can be a zombie while others still hold memory and files.
    let at_work = |pidfd: &Option<_>| match pidfd {
        Some(pidfd) => !processes::wait_readable(pidfd, Duration::ZERO).unwrap_or(true),
        None => false,
    };
    while machine.presence(process)? == Presence::Running || at_work(&pidfd) {
        if Instant::now() >= deadline {
            let (pid, waited_s) = (process.pid, END_PATIENCE.as_secs());
            return Ok(Ended::Not(format!("process {pid} did not end within {waited_s} s of SIGKILL")));
        }
        match &pidfd {
            Some(pidfd) => {
                let _ = processes::wait_readable(pidfd, Duration::from_millis(100));
            }
            None => thread::sleep(Duration::from_millis(2)),
        }
    }
    processes::collect_child(process.pid);
    Ok(Ended::Killed)
}
