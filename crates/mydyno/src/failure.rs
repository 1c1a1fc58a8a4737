//! The end of a command: exit statuses, and failures with their remedies.

use std::process::ExitCode;

/// Exit statuses that scripts may rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Success.
    Fine,
    /// A negative result: a bound is broken, no statement succeeded, data are inconsistent.
    Bad,
    /// A mistake in the command line or a plan.
    Usage,
    /// The environment prevents it: cannot connect, not permitted, no space.
    Environment,
    /// Interrupted by the user; the measurements so far are kept.
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

/// A command that failed.
#[derive(Debug)]
pub struct Failure {
    /// The exit status.
    pub status: Status,
    /// All problems, one sentence each.
    pub problems: Vec<String>,
}

impl Failure {
    /// A mistake in the command line or a plan.
    pub fn usage(problem: impl Into<String>) -> Self {
        Self { status: Status::Usage, problems: vec![problem.into()] }
    }

    /// The environment prevents it.
    pub fn environment(problem: impl Into<String>) -> Self {
        Self { status: Status::Environment, problems: vec![problem.into()] }
    }

    /// Replaces problems that repeat `word` by `instead`.
    pub fn hide(&mut self, word: &str, instead: &str) {
        let before = self.problems.len();
        self.problems.retain(|problem| !problem.contains(word));
        if self.problems.len() < before {
            self.problems.push(instead.to_owned());
        }
    }
}
