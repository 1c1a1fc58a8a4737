//! Errors of claims and of lists of accepted findings.

pub use mydyno_settings::Problem;

/// Why claims cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JudgeError {
    /// Files that are not valid.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Files(Vec<Problem>),
    /// No claim has this id.
    #[error("no claim is called {name:?}{}; `mydyno claims` lists them", .near.as_ref().map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default())]
    NoSuchClaim {
        /// The requested id.
        name: String,
        /// The most similar id.
        near: Option<String>,
    },
    /// Rules for stacks that are not valid.
    #[error("the rules for stacks: {0}")]
    StackRules(String),
    /// Data of settings that are not valid, or a setting that does not exist.
    #[error(transparent)]
    Settings(#[from] mydyno_settings::SettingsError),
}
