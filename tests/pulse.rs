//! A pulse beside a run: the longest time that a thread of this machine waited for a CPU.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time between two beats.
const BEAT: Duration = Duration::from_millis(5);

/// Runs it, and returns the longest oversleep of a thread beside it.
pub fn with_pulse<T>(run: impl FnOnce() -> T) -> (T, Duration) {
    // A run that panics drops its end, and so ends the pulse.
    let (running, over) = channel::<()>();
    std::thread::scope(|scope| {
        let pulse = scope.spawn(move || {
            let mut worst = Duration::ZERO;
            loop {
                let began = Instant::now();
                let beat = over.recv_timeout(BEAT);
                worst = worst.max(began.elapsed().saturating_sub(BEAT));
                if beat == Err(RecvTimeoutError::Disconnected) {
                    return worst;
                }
            }
        });
        let result = run();
        drop(running);
        (result, pulse.join().unwrap())
    })
}
