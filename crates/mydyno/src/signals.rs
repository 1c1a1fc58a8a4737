//! Signals: the first one stops a command and keeps what was measured, the second one ends the program at once.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mydyno_host::journal::Open;
use mydyno_host::{Host, HostError, restore};
use mydyno_model::change::RestoreState;
use mydyno_sandbox::variable::PrivateServers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Exit status after a second signal.
const INTERRUPTED: i32 = 130;
/// How long changes are put back after a second signal. What is left then is for `mydyno host restore`.
const LONGEST_CLEANUP: Duration = Duration::from_secs(10);

/// Set by the second signal.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Gives SIGINT its default action where the process was started with it ignored: shells without job control start the
/// background jobs of a script that way.
pub fn accept_interrupts() {
    if is_ignored(SIGINT) {
        // SAFETY: SIG_DFL is a valid action; no handler of this program is replaced, because the signal is ignored.
        unsafe { libc::signal(SIGINT, libc::SIG_DFL) };
    }
}

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. The second one puts back what this process has changed (private
/// servers are killed, settings restored) and ends the program, the third one ends it without that. SIGHUP that is ignored
/// from the start, as under nohup, stays ignored.
///
/// # Errors
/// The system does not allow it.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let failure = |e| Failure::environment(format!("cannot watch for signals: {e}"));
    let stop = Arc::new(AtomicBool::new(false));
    let (signals, written) = UnixStream::pair().map_err(failure)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .and_then(|_| signal_hook::low_level::pipe::register(signal, written.try_clone()?))
            .map_err(failure)?;
    }
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || count(signals)).map_err(failure)?;
    Ok(stop)
}

/// Waits for the second and the third signal; each signal is one byte.
fn count(mut signals: UnixStream) {
    let mut byte = [0];
    let mut next = || signals.read_exact(&mut byte).is_ok();
    if !(next() && next()) {
        return;
    }
    ENDING.store(true, Ordering::SeqCst);
    let cleanup = std::thread::Builder::new().name("cleanup".to_owned()).spawn(|| {
        put_back();
        std::process::exit(INTERRUPTED)
    });
    if cleanup.is_ok() && !next() {
        std::thread::park();
    }
    std::process::exit(INTERRUPTED)
}

/// Keeps the main thread from ending the program while a second signal's cleanup runs, which ends it itself.
pub fn wait_for_cleanup() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Puts back all changes of this process. The other threads run on and may make changes meanwhile, so the journal is read
/// again until it holds none.
fn put_back() {
    let begin = Instant::now();
    while begin.elapsed() < LONGEST_CLEANUP {
        match put_back_once() {
            Ok(Round::Done) | Err(_) => return,
            Ok(Round::Again) => {}
            Ok(Round::Failed) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// The result of one pass over the journal.
enum Round {
    /// The journal holds no change of this process.
    Done,
    /// Everything was put back.
    Again,
    /// Something could not be put back.
    Failed,
}

fn put_back_once() -> Result<Round, HostError> {
    let Some(host) = Host::find("interrupted")? else { return Ok(Round::Done) };
    let own = &host.lease.identity().process;
    let is_own = |open: &Open| open.kept_until.is_none() && open.lease.process == *own;
    let open: Vec<Open> = host.journal.read()?.open.into_iter().filter(is_own).collect();
    if open.is_empty() {
        return Ok(Round::Done);
    }
    let outcomes = restore::put_back(&host.journal, host.machine(), &open, &PrivateServers)?;
    let failed = outcomes.iter().any(|(_, outcome)| outcome.state == RestoreState::Failed);
    Ok(if failed { Round::Failed } else { Round::Again })
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is valid: it holds numbers only.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action the call only writes the old one, which is valid for writing.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}
