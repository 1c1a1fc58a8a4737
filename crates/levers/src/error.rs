//! Errors of levers.

use mydyno_host::HostError;
use mydyno_sandbox::SandboxError;

/// A lever that does not exist, or a value that it does not take.
#[derive(Debug, thiserror::Error)]
pub enum LeverError {
    /// No lever has this name.
    #[error("there is no lever {name:?}{}; `mydyno host levers` lists them", nearest.as_ref().map(|n| format!(" (did you mean {n}?)")).unwrap_or_default())]
    Unknown {
        /// The requested name.
        name: String,
        /// The lever with the most similar name.
        nearest: Option<String>,
    },
    /// A value that the lever does not take.
    #[error("{id} cannot be {value:?}: it takes {takes}")]
    Value {
        /// The lever.
        id: String,
        /// The requested value.
        value: String,
        /// The form of its values.
        takes: String,
    },
    /// A lever of tables or of the workload, where no load runs.
    #[error("{lever} is turned by a load: give it to `mydyno bench WORKLOAD --sandbox`")]
    OfLoad {
        /// The lever with its value.
        lever: String,
    },
    /// A lever of the load generator, where no experiment runs.
    #[error(
        "{lever} belongs to the load generator of an experiment: give it to `mydyno compare` or `mydyno prove`"
    )]
    OfClient {
        /// The lever with its value.
        lever: String,
    },
    /// A lever that cannot be changed while a server runs.
    #[error(
        "{lever} takes effect when a server starts or its tables are made, so it cannot be swapped while one runs"
    )]
    NotInPlace {
        /// The lever with its value.
        lever: String,
    },
    /// The sandbox refuses the value or the change.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// The host refuses the value or the change.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl LeverError {
    pub(crate) fn value(id: &str, value: &str, takes: &str) -> Self {
        Self::Value { id: id.to_owned(), value: value.to_owned(), takes: takes.to_owned() }
    }
}
