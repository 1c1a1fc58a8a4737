//! The loop of a thread over its events.

use super::super::engine::Engine;

/// Runs `event` until there are no more; `event` gives `false` when the thread has no more work.
pub(super) fn run_events(engine: &Engine, thread: usize, mut event: impl FnMut() -> bool) -> bool {
    while let Some(begin) = engine.next_event(thread) {
        match event() {
            true => engine.event_ended(thread, begin),
            false => {
                engine.event_given_up(thread);
                break;
            }
        }
    }
    true
}
