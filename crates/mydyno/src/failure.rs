//! How a command ends: exit statuses, and failures that name the way out.

use std::process::ExitCode;

/// Exit statuses that scripts may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Fine.
    Fine,
    /// The answer is bad: a bound broken, no successful statement, inconsistent data.
    Bad,
    /// The command line or a plan does not make sense.
    Usage,
    /// The environment does not allow it: cannot connect, not permitted, no space.
    Environment,
    /// Interrupted by the user; what was measured is kept.
    Interrupted,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(match status {
            Status::Fine => 0,
            Status::Bad => 1,
            Status::Usage => 2,
            Status::Environment => 3,
            Status::Interrupted => 130,
        })
    }
}

/// A command that could not do what it was asked for.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: Status,
    /// All problems that were found, one sentence each.
    pub problems: Vec<String>,
}

impl Failure {
    /// The command line or plan does not make sense.
    pub fn usage(problem: impl Into<String>) -> Self {
        Self { status: Status::Usage, problems: vec![problem.into()] }
    }

    /// The environment does not allow it.
    pub fn environment(problem: impl Into<String>) -> Self {
        Self { status: Status::Environment, problems: vec![problem.into()] }
    }

    /// Puts `instead` in the place of the problems that repeat `word`.
    pub fn hide(&mut self, word: &str, instead: &str) {
        let before = self.problems.len();
        self.problems.retain(|problem| !problem.contains(word));
        if self.problems.len() < before {
            self.problems.push(instead.to_owned());
        }
    }
}
