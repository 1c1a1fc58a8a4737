//! `--password-file`.

use std::path::Path;

use super::{Environment, TargetError};
use crate::secret::Secret;

/// Largest file that is taken for a password or a key.
pub(super) const MAX_BYTES: usize = 64 << 10;

/// The first line of a file, without its end.
pub(super) fn read(
    path: &Path,
    environment: &Environment,
    notes: &mut Vec<String>,
) -> Result<Secret, TargetError> {
    let error = |source| TargetError::File { what: "the password file", path: path.to_owned(), source };
    let bytes = environment.read(path, MAX_BYTES).map_err(error)?;
    if environment.facts(path).is_ok_and(|facts| facts.is_file && facts.mode & 0o004 != 0) {
        let path = path.display();
        notes.push(format!("all users of this host can read the password file {path}: chmod 600 {path}"));
    }
    let line = bytes.split(|b| *b == b'\n').next().unwrap_or_default();
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if bytes.is_empty() {
        return Err(TargetError::PasswordFile { path: path.to_owned(), detail: "is empty" });
    }
    if line.contains(&0) {
        return Err(TargetError::PasswordFile { path: path.to_owned(), detail: "holds a NUL byte" });
    }
    Ok(Secret::new(line.to_vec()))
}
