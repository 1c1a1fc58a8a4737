//! Errors of a target's settings.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// One thing that is wrong with what was typed or read. No text holds a password.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TargetError {
    /// A password in a DSN.
    #[error(
        "--dsn holds a password, which others can read in the list of processes: leave it out (mysql://user@host/…) \
         and put it into a file of your own, named by ?password-file=PATH"
    )]
    PasswordInDsn,
    /// Another mistake in a DSN.
    #[error(
        "--dsn: {0}; the form is mysql://user@host:port/schema?socket=PATH&password-file=PATH&ssl-mode=MODE"
    )]
    Dsn(String),
    /// A file that cannot be read.
    #[error("cannot read {what} {}: {source}", path.display())]
    File {
        /// Its purpose.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A line of an option file.
    #[error("{}, line {line}: {detail}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The defect.
        detail: String,
    },
    /// Option files without an end.
    #[error(
        "{} is option file number {files}, with {bytes} bytes in all; at most {max_files} files and {max_bytes} bytes \
         are read: include fewer, or name one with --defaults-file",
        path.display()
    )]
    TooManyFiles {
        /// The file that was one too many.
        path: PathBuf,
        /// Number of files read.
        files: usize,
        /// Bytes read.
        bytes: usize,
        /// The bound on files.
        max_files: usize,
        /// The bound on bytes.
        max_bytes: usize,
    },
    /// A value that an option cannot have.
    #[error("{origin}: {value:?} is not a valid {option}; {expected}")]
    Value {
        /// The option.
        option: String,
        /// Its value.
        value: String,
        /// Where it stands.
        origin: String,
        /// The accepted values.
        expected: &'static str,
    },
    /// An option without its value.
    #[error("{origin}: {option} needs a value{hint}")]
    NoValue {
        /// The option.
        option: String,
        /// Where it stands.
        origin: String,
        /// Remedy, with its punctuation.
        hint: &'static str,
    },
    /// Two options that cannot be meant together.
    #[error("{first} and {second} name different servers: give one of them")]
    Conflict {
        /// One.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A login path that cannot be read.
    #[error("{}: {detail}; make it again with mysql_config_editor", path.display())]
    LoginPath {
        /// The file.
        path: PathBuf,
        /// The defect.
        detail: String,
    },
    /// A password file that holds none.
    #[error("the password file {} {detail}", path.display())]
    PasswordFile {
        /// The file.
        path: PathBuf,
        /// The defect.
        detail: &'static str,
    },
    /// Verification without anything to verify by.
    #[error("--ssl-mode=VERIFY_CA and VERIFY_IDENTITY need the certificate authority: give --ssl-ca=FILE")]
    MissingAuthority,
    /// A certificate without its key, or the other way round.
    #[error("--ssl-cert and --ssl-key belong together: give both or none")]
    HalfCertificate,
}
