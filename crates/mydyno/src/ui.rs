//! The terminal: results on standard output, everything else on standard error.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_model::text;

use crate::failure::Failure;

/// Begins red text on a terminal.
const RED: &str = "\x1b[31m";
/// Ends it.
const COLOUR_END: &str = "\x1b[0m";

/// How to talk to the user.
#[derive(Debug, Clone)]
pub struct Ui {
    /// Results are documents on standard output.
    pub json: bool,
    /// No notes and no progress.
    pub quiet: bool,
    /// Colour on standard output.
    pub color: bool,
    /// Standard error is a terminal: progress may redraw its line.
    pub live: bool,
    /// Colour on standard error.
    live_color: bool,
    /// A result could not be written.
    lost: Arc<AtomicBool>,
}

impl Ui {
    /// Looks at the terminal and at `NO_COLOR`.
    pub fn detect(json: bool, quiet: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let live = !quiet && !dumb && std::io::stderr().is_terminal();
        Self {
            json,
            quiet,
            color: !json && !no_color && !dumb && std::io::stdout().is_terminal(),
            live,
            live_color: live && !no_color,
            lost: Arc::default(),
        }
    }

    /// Columns of standard output; 100 when it is not a terminal or says nothing.
    pub fn width(&self) -> usize {
        terminal_columns().unwrap_or(100)
    }

    /// A result. A reader that has gone away (`| head`) is not an error.
    pub fn out(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        let text = if self.json { text::json(text) } else { text.into() };
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let written = write!(stdout, "{text}{newline}").and_then(|()| stdout.flush());
        if written.is_err_and(|e| e.kind() != ErrorKind::BrokenPipe) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Whether a result could not be written, for want of space say.
    pub fn lost_output(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// A note about what is going on; not with `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{}", self.escaped(text));
        }
    }

    /// A note about something that concerns others than this command, such as a change of the whole host. Not even `--quiet`
    /// hides it.
    pub fn always(&self, text: &str) {
        let shown = Self { quiet: false, ..self.clone() };
        shown.note(text);
    }

    /// A part of a note that stands out.
    pub fn highlight(&self, text: &str) -> String {
        if self.live_color { format!("{RED}{}{COLOUR_END}", text::visible(text)) } else { text.to_owned() }
    }

    /// Text with nothing in it that steers the terminal but the colours of [`Self::highlight`].
    fn escaped(&self, text: &str) -> String {
        if !self.live_color {
            return text::visible(text).into_owned();
        }
        let without_end =
            |part: &str| part.split(COLOUR_END).map(text::visible).collect::<Vec<_>>().join(COLOUR_END);
        text.split(RED).map(without_end).collect::<Vec<_>>().join(RED)
    }

    /// Prints a failure and the way out, whatever the verbosity.
    pub fn failure(&self, failure: &Failure) {
        let mut stderr = std::io::stderr().lock();
        for problem in &failure.problems {
            let _ = writeln!(stderr, "mydyno: {}", text::shown(problem));
        }
    }
}

fn terminal_columns() -> Option<usize> {
    // SAFETY: an all-zero `winsize` is valid: it holds numbers only.
    let mut size: libc::winsize = unsafe { std::mem::zeroed() };
    // SAFETY: `size` is valid for writing; on what is not a terminal the call fails and changes nothing.
    let status = unsafe { libc::ioctl(libc::STDOUT_FILENO, libc::TIOCGWINSZ, &raw mut size) };
    (status == 0 && size.ws_col > 0).then(|| usize::from(size.ws_col))
}

/// Rows as lines with their cells below each other.
pub fn columns<const N: usize>(rows: &[[String; N]]) -> Vec<String> {
    let widths: Vec<usize> =
        (0..N).map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0)).collect();
    let line = |row: &[String; N]| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

/// A size as options take it, as in `512M`.
///
/// # Errors
/// It is none.
pub fn size(text: &str) -> Result<u64, String> {
    mydyno_model::units::parse_size(text).map_err(|e| e.to_string())
}
