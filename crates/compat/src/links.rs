//! Links under the names of the programs whose place this binary takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Names of the links.
pub const NAMES: [&str; 3] = ["sysbench", "mysqlslap", "mariadb-slap"];

/// Why a link was not made or removed.
#[derive(Debug, Error)]
pub enum LinkError {
    /// There is a file of this name that is no link to this binary.
    #[error("{} exists and is no link to mydyno: choose another folder, or move it away", .0.display())]
    Taken(PathBuf),
    /// The system's reason.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        what: &'static str,
        /// The link or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
}

/// Makes the links in an existing folder; those that are there already count. Nothing is made where a name is taken.
///
/// # Errors
/// A name is taken, or the system's.
pub fn install(folder: &Path, binary: &Path) -> Result<Vec<PathBuf>, LinkError> {
    let paths: Vec<PathBuf> = NAMES.iter().map(|name| folder.join(name)).collect();
    if let Some(taken) =
        paths.iter().find(|path| fs::symlink_metadata(path).is_ok() && !leads_to(path, binary))
    {
        return Err(LinkError::Taken(taken.clone()));
    }
    for path in paths.iter().filter(|path| fs::symlink_metadata(path).is_err()) {
        symlink(binary, path).map_err(|source| LinkError::Io { what: "make", path: path.clone(), source })?;
    }
    Ok(paths)
}

/// Removes the links to this binary; other files of these names stay. The links that were there.
///
/// # Errors
/// The system's.
pub fn remove(folder: &Path, binary: &Path) -> Result<Vec<PathBuf>, LinkError> {
    let paths: Vec<PathBuf> =
        NAMES.iter().map(|name| folder.join(name)).filter(|path| leads_to(path, binary)).collect();
    for path in &paths {
        fs::remove_file(path).map_err(|source| LinkError::Io {
            what: "remove",
            path: path.clone(),
            source,
        })?;
    }
    Ok(paths)
}

fn leads_to(link: &Path, binary: &Path) -> bool {
    fs::read_link(link).is_ok_and(|target| target == binary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_made_once_and_removed_and_other_files_stay() {
        let folder = tempfile::tempdir().unwrap();
        let binary = Path::new("/opt/mydyno");
        assert_eq!(install(folder.path(), binary).unwrap().len(), 3);
        assert_eq!(install(folder.path(), binary).unwrap().len(), 3);
        assert_eq!(remove(folder.path(), binary).unwrap().len(), 3);
        assert_eq!(remove(folder.path(), binary).unwrap().len(), 0);
        fs::write(folder.path().join("mysqlslap"), "theirs").unwrap();
        assert!(matches!(install(folder.path(), binary), Err(LinkError::Taken(_))));
        assert!(!folder.path().join("sysbench").exists());
        assert_eq!(remove(folder.path(), binary).unwrap().len(), 0);
        assert_eq!(fs::read_to_string(folder.path().join("mysqlslap")).unwrap(), "theirs");
    }
}
