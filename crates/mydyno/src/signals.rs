//! Signals: the first asks to stop and keeps what was measured, the second ends the program.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::failure::Failure;

/// A flag that SIGINT, SIGTERM and SIGHUP set.
///
/// # Errors
/// The system does not allow it.
pub fn stop_flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::environment(format!("cannot watch for signals: {e}")))?;
    }
    Ok(stop)
}
