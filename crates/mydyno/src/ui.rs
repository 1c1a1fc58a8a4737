//! The terminal: results on standard output, everything else on standard error.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mydyno_linux::calls::this_process::terminal_columns;
use mydyno_model::text;

use crate::failure::Failure;
use crate::prose::folded;
use crate::secrets::without_passwords;

/// Begins red text on a terminal.
const RED: &str = "\x1b[31m";
/// Ends it.
const COLOUR_END: &str = "\x1b[0m";

/// Output to the user.
#[derive(Debug, Clone)]
pub struct Ui {
    /// Results are documents on standard output.
    pub json: bool,
    /// Print no notes and no progress.
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
    /// Detects the terminal and `NO_COLOR`.
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

    /// Columns of standard output; 100 when it is not a terminal or does not report them.
    pub fn width(&self) -> usize {
        terminal_columns(std::io::stdout()).unwrap_or(100)
    }

    /// Columns of standard error where progress redraws its line; what is not a terminal, or does not report them, has any number.
    pub fn live_width(&self) -> usize {
        let columns = self.live.then(|| terminal_columns(std::io::stderr()));
        columns.flatten().unwrap_or(usize::MAX)
    }

    /// Whether standard output is a terminal.
    pub fn is_terminal(&self) -> bool {
        std::io::stdout().is_terminal()
    }

    /// Prints a result. A closed reader (`| head`) is no error.
    pub fn out(&self, text: &str) {
        let mut stdout = std::io::stdout().lock();
        let text = if self.json { text::json(text) } else { text.into() };
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        let written = write!(stdout, "{text}{newline}").and_then(|()| stdout.flush());
        if written.is_err_and(|e| e.kind() != ErrorKind::BrokenPipe) {
            self.lost.store(true, Ordering::Relaxed);
        }
    }

    /// Prints a result in sentences, as wide as the terminal.
    pub fn prose(&self, text: &str) {
        match self.is_terminal() {
            true => self.out(&folded(text, self.width())),
            false => self.out(text),
        }
    }

    /// Whether a result could not be written, for example for lack of space.
    pub fn lost_output(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// Prints a note on the current activity, unless `--quiet`.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{}", self.escaped(text));
        }
    }

    /// Prints a note that concerns other users as well, such as a change of the whole host, even with `--quiet`.
    pub fn always(&self, text: &str) {
        let shown = Self { quiet: false, ..self.clone() };
        shown.note(text);
    }

    /// A highlighted part of a note.
    pub fn highlight(&self, text: &str) -> String {
        if self.live_color { format!("{RED}{}{COLOUR_END}", text::visible(text)) } else { text.to_owned() }
    }

    /// Text without control sequences other than the colours of [`Self::highlight`].
    fn escaped(&self, text: &str) -> String {
        if !self.live_color {
            return text::visible(text).into_owned();
        }
        let without_end =
            |part: &str| part.split(COLOUR_END).map(text::visible).collect::<Vec<_>>().join(COLOUR_END);
        text.split(RED).map(without_end).collect::<Vec<_>>().join(RED)
    }

    /// Prints a failure and the remedy, whatever the verbosity, without the passwords of URLs.
    pub fn failure(&self, failure: &Failure) {
        let mut stderr = std::io::stderr().lock();
        for problem in &failure.problems {
            let _ = writeln!(stderr, "mydyno: {}", text::shown(&without_passwords(problem)));
        }
    }
}

/// Rows as lines with aligned columns.
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

/// Parses a size, as in `512M`.
///
/// # Errors
/// It is not a size.
pub fn size(text: &str) -> Result<u64, String> {
    mydyno_model::units::parse_size(text).map_err(|e| e.to_string())
}
