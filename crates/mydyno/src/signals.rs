//! Signals: the first one stops a command and keeps the measurements, the second one ends the program at once.

use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mydyno_host::journal::Open;
use mydyno_host::{Host, HostError, restore};
use mydyno_linux::calls::this_process;
use mydyno_model::change::RestoreState;
use mydyno_sandbox::variable::PrivateServers;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Exit status after a second signal.
const INTERRUPTED: i32 = 130;
/// Time limit for restoring changes after a second signal. Remaining changes are left to `mydyno host restore`.
const LONGEST_CLEANUP: Duration = Duration::from_secs(10);

/// Set by the second signal.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Resets SIGINT to its default action where the process was started with it ignored, as shells without job control
/// start background jobs of a script.
pub fn accept_interrupts() {
    this_process::reset_ignored(SIGINT);
}

/// A flag that the first SIGINT, SIGTERM or SIGHUP sets. The second one restores the changes of this process (kills
/// private servers, restores settings) and ends the program, the third one ends it without that. A SIGHUP that was
/// ignored at the start, as under nohup, stays ignored.
///
/// # Errors
/// The system refuses it.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let failure = |e| Failure::environment(format!("cannot watch for signals: {e}"));
    let stop = Arc::new(AtomicBool::new(false));
    let (signals, written) = UnixStream::pair().map_err(failure)?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && this_process::ignores(signal) {
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

/// Keeps the main thread from ending the program during the cleanup of a second signal, which ends it itself.
pub fn wait_for_cleanup() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Restores all changes of this process. Other threads may make changes meanwhile, so the journal is read again until
/// it contains none, and is then sealed, since another thread may be about to write to it.
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
    /// The journal contains no change of this process.
    Done,
    /// Everything was restored.
    Again,
    /// A change could not be restored.
    Failed,
}

fn put_back_once() -> Result<Round, HostError> {
    let Some(host) = Host::find("interrupted")? else { return Ok(Round::Done) };
    let own = &host.lease.identity().process;
    let is_own = |open: &Open| open.kept_until.is_none() && open.lease.process == *own;
    if host.journal.seal(is_own)? {
        return Ok(Round::Done);
    }
    let open: Vec<Open> = host.journal.read()?.open.into_iter().filter(is_own).collect();
    let outcomes = restore::put_back(&host.journal, host.machine(), &open, &PrivateServers)?;
    let failed = outcomes.iter().any(|(_, outcome)| outcome.state == RestoreState::Failed);
    Ok(if failed { Round::Failed } else { Round::Again })
}
