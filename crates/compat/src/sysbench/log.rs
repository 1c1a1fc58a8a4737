//! Lines of output with levels, as sysbench prints them: all on standard output.

use std::sync::{Mutex, PoisonError};

use mydyno_model::text::visible;

use crate::streams::Streams;

/// Importance of a line; `--verbosity` names the last one that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Fatal,
    Alert,
    Warning,
    Notice,
    Info,
    Debug,
}

impl Level {
    pub(crate) fn of(number: i64) -> Option<Self> {
        [Self::Fatal, Self::Alert, Self::Warning, Self::Notice, Self::Info, Self::Debug]
            .get(usize::try_from(number).ok()?)
            .copied()
    }

    fn prefix(self) -> &'static str {
        match self {
            Self::Fatal => "FATAL: ",
            Self::Alert => "ALERT: ",
            Self::Warning => "WARNING: ",
            Self::Debug => "DEBUG: ",
            Self::Notice | Self::Info => "",
        }
    }
}

/// Prints lines; one that repeats the previous line is counted and not printed.
#[derive(Debug)]
pub(crate) struct Log {
    streams: Streams,
    verbosity: Level,
    last: Mutex<Last>,
}

#[derive(Debug, Default)]
struct Last {
    line: String,
    repeated: u64,
}

impl Log {
    pub(crate) fn new(streams: Streams, verbosity: Level) -> Self {
        Self { streams, verbosity, last: Mutex::default() }
    }

    pub(crate) fn streams(&self) -> &Streams {
        &self.streams
    }

    pub(crate) fn prints(&self, level: Level) -> bool {
        level <= self.verbosity
    }

    /// Prints a line where the level is among those that are printed.
    pub(crate) fn line(&self, level: Level, text: &str) {
        if !self.prints(level) {
            return;
        }
        // Hosts, options and messages of servers are texts of others.
        let line = format!("{}{}\n", level.prefix(), visible(text));
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.line == line {
            last.repeated += 1;
            return;
        }
        self.flush(&mut last);
        self.streams.output(line.as_bytes());
        last.line = line;
    }

    pub(crate) fn fatal(&self, text: &str) {
        self.line(Level::Fatal, text);
    }

    pub(crate) fn notice(&self, text: &str) {
        self.line(Level::Notice, text);
    }

    /// Prints a text as it is, where notices are printed.
    pub(crate) fn text(&self, text: &str) {
        if self.prints(Level::Notice) {
            let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
            self.flush(&mut last);
            last.line.clear();
            self.streams.output(text.as_bytes());
        }
    }

    fn flush(&self, last: &mut Last) {
        if last.repeated > 0 {
            let count = format!("(last message repeated {} times)\n", last.repeated);
            self.streams.output(count.as_bytes());
            last.repeated = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::testing::capture;

    #[test]
    fn equal_lines_are_counted_and_levels_have_prefixes() {
        let (streams, output, _) = capture("");
        let log = Log::new(streams, Level::Notice);
        log.notice("a");
        log.notice("a");
        log.notice("a");
        log.line(Level::Debug, "hidden");
        log.fatal("b");
        assert_eq!(output.text(), "a\n(last message repeated 2 times)\nFATAL: b\n");
    }
}
