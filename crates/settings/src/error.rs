//! Errors of settings.

use std::fmt;

/// One mistake in a file that people write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, as it was named.
    pub file: String,
    /// The line, where one is known; it counts from 1.
    pub line: Option<usize>,
    /// The mistake, and the way out.
    pub text: String,
}

impl Problem {
    /// A mistake of a file as a whole.
    pub fn of(file: &str, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: None, text: text.into() }
    }

    /// A mistake in one line.
    pub fn at(file: &str, line: usize, text: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line: Some(line), text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.text),
            None => write!(f, "{}: {}", self.file, self.text),
        }
    }
}

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// Files that are not valid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<Problem>),
    /// There is no knob with this name.
    #[error("no server variable, option or host setting is called {name:?}{}; `mydyno knobs` lists them", did_you_mean(.near))]
    NoSuchKnob {
        /// The given name.
        name: String,
        /// The most similar names.
        near: Vec<String>,
    },
    /// There is no lever with this name.
    #[error("{name:?} is not a lever{}; `mydyno host levers` lists them", did_you_mean(.near))]
    NoSuchLever {
        /// The given name.
        name: String,
        /// The most similar names.
        near: Vec<String>,
    },
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" (did you mean {}?)", near.join(" or ")) }
}
