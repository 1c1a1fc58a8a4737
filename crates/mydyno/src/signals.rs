//! Signals: the first asks to stop and keeps what was measured, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// Exit status after a second signal.
const INTERRUPTED: i32 = 130;

/// A flag that SIGINT, SIGTERM and SIGHUP set; the second of them ends the program at once, and what it leaves is put
/// back by `mydyno host restore`. SIGHUP that is ignored from the start, as under nohup, stays ignored. SIGINT is heard also
/// where it was ignored: shells without job control start the background jobs of a script that way.
///
/// # Errors
/// The system does not allow it.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        if signal == SIGHUP && is_ignored(signal) {
            continue;
        }
        // In this order: the first signal finds the flag unset and sets it, the second finds it set.
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .map_err(|e| Failure::environment(format!("cannot watch for signals: {e}")))?;
    }
    Ok(stop)
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: an all-zero `sigaction` is valid: it holds numbers only.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: with no new action the call only writes the old one, which is valid for writing.
    let status = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) };
    status == 0 && action.sa_sigaction == libc::SIG_IGN
}
