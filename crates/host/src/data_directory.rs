//! Recognises data directories of servers by their files. MariaDB, and MySQL up to 5.7, treat each folder in one as a
//! schema.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::HostError;

/// Files that identify a data directory of any server: InnoDB's system tablespace, MySQL 8's dictionary, and a file of
/// the table `mysql.general_log`. A folder `mysql` alone does not: `/var/lib` has one as well.
pub const FILES: [&str; 3] = ["ibdata1", "mysql.ibd", "mysql/general_log.CSM"];

/// Whether the folder is a data directory.
pub fn is_one(folder: &Path) -> bool {
    FILES.iter().any(|name| folder.join(name).exists())
}

/// Checks that a folder that mydyno is about to make is not inside a data directory after resolving links and mounts:
/// the home folder of the user `mysql` often is one. A folder that exists passes.
///
/// # Errors
/// It would be inside one; `variable` names the variable that selects another place.
pub fn check_outside(folder: &Path, variable: &'static str) -> Result<(), HostError> {
    let all = std::path::absolute(folder).map_err(|e| HostError::io("find", folder, e))?;
    // The nearest existing ancestor, resolved: components above a link lead elsewhere.
    let there: Option<PathBuf> = all.ancestors().find_map(|path| fs::canonicalize(path).ok());
    let inside = there.as_deref().and_then(|path| path.ancestors().find(|above| is_one(above)));
    match inside {
        Some(data) if !all.exists() => {
            Err(HostError::InDataDirectory { path: all, data: data.to_owned(), variable })
        }
        _ => Ok(()),
    }
}
