//! Errors of bundles and of remote hosts.

use std::io;
use std::path::PathBuf;

use mydyno_model::DocumentError;
use thiserror::Error;

/// Why a bundle or another host gave no facts. A missing fact is not an error: the set holds it with a reason.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FactsError {
    /// A bundle could not be written.
    #[error("cannot write the bundle {path}: {source}; give another path with --save")]
    Save {
        /// The path of the bundle.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A bundle could not be read.
    #[error("cannot read the bundle {path}: {source}")]
    Load {
        /// The path of the bundle.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file is not a bundle.
    #[error("{path} is not a bundle of facts: {source}")]
    NotABundle {
        /// The file.
        path: PathBuf,
        /// The error.
        source: DocumentError,
    },
    /// A file is too large for a bundle.
    #[error("{path} has {bytes} bytes, more than a bundle of facts can have ({limit})")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// A list of a file is too long for a bundle.
    #[error("{path}: {fact} has {items} items, more than a bundle of facts can have ({limit})")]
    TooMany {
        /// The file.
        path: PathBuf,
        /// The fact.
        fact: String,
        /// Its length.
        items: usize,
        /// The limit.
        limit: usize,
    },
    /// A name that ssh would misunderstand.
    #[error("{0:?} is not a host for --ssh: give host, user@host or a name of your ssh configuration")]
    RemoteName(String),
    /// Another host gave no facts.
    #[error("no facts from {host} over ssh: {why}")]
    Remote {
        /// The host.
        host: String,
        /// The reason, and the way out.
        why: String,
    },
    /// The system could not provide random bytes.
    #[error("cannot hide names: the system gave no random bytes ({0})")]
    Random(String),
}
