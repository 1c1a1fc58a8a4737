//! The watch on a terminal: views by key, frozen and stepped back in time.

mod app;
mod views;

use std::io::{self, Stdout};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mydyno_model::diagnosis::Diagnosis;
use mydyno_run::watch::{self, Seen, WatchEnd, WatchPlan};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

use self::app::{Action, App, Message};
use crate::failure::Failure;
use crate::private;

/// Longest time until a key or an interval is shown.
const LOOK: Duration = Duration::from_millis(50);

/// Watches on the terminal until the user ends it or the plan does; how it ended, and the diagnosis of its last intervals.
///
/// # Errors
/// The server cannot be reached, or the terminal fails.
pub fn run(
    plan: &WatchPlan,
    color: bool,
    stop: &Arc<AtomicBool>,
) -> Result<(WatchEnd, Option<Box<Diagnosis>>), Failure> {
    let (send, messages) = channel();
    std::thread::scope(|scope| {
        let watching = scope.spawn(move || {
            watch::watch(plan, stop, &mut |seen: Seen<'_>| {
                // The screen goes first when the user ends the watch.
                let _ = send.send(Message::of(&seen));
            })
        });
        let shown = show(&messages, color, stop);
        // What fails because a signal came is an interruption; what the screen's end stops is not.
        let signalled = Arc::new(AtomicBool::new(stop.swap(true, Ordering::Relaxed)));
        let ended = watching.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let shown = shown.map_err(|e| Failure::environment(format!("the terminal: {e}")))?;
        let ended = ended.map_err(|e| private::or_interrupted(private::run_failure(e), &signalled))?;
        let diagnosis = shown.or_else(|| messages.try_iter().find_map(Message::diagnosis));
        Ok((ended, diagnosis))
    })
}

fn show(messages: &Receiver<Message>, color: bool, stop: &AtomicBool) -> io::Result<Option<Box<Diagnosis>>> {
    // Nothing is drawn before the watch begins: what fails until then is an error on a plain terminal.
    let Ok(first) = messages.recv() else { return Ok(None) };
    let mut app = App::new(color);
    app.take(first);
    let mut screen = Screen::open()?;
    let mut changed = true;
    loop {
        if changed {
            screen.0.draw(|frame| app.draw(frame))?;
        }
        changed = false;
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        loop {
            match messages.try_recv() {
                Ok(Message::Ends(diagnosis)) => return Ok(Some(diagnosis)),
                Ok(message) => {
                    app.take(message);
                    changed = true;
                }
                Err(std::sync::mpsc::TryRecvError::Disconnected) => return Ok(None),
                Err(std::sync::mpsc::TryRecvError::Empty) => break,
            }
        }
        if event::poll(LOOK)? {
            changed = true;
            let ends = match event::read()? {
                Event::Key(key) if key.kind != KeyEventKind::Release => app.key(key) == Action::End,
                _ => false,
            };
            if ends {
                return Ok(None);
            }
        }
    }
}

/// The terminal in its raw state; as it was before when this is dropped.
struct Screen(Terminal<CrosstermBackend<Stdout>>);

impl Screen {
    fn open() -> io::Result<Self> {
        enable_raw_mode()?;
        let mut out = io::stdout();
        let opened =
            execute!(out, EnterAlternateScreen).and_then(|()| Terminal::new(CrosstermBackend::new(out)));
        if opened.is_err() {
            let _ = disable_raw_mode();
        }
        opened.map(Self)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = execute!(self.0.backend_mut(), LeaveAlternateScreen);
        let _ = disable_raw_mode();
        let _ = self.0.show_cursor();
    }
}
