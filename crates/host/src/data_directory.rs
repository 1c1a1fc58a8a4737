//! Data directories of servers, known by what lies in them. MariaDB, and MySQL up to 5.7, take each folder in one for a schema.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::HostError;

/// Files that identify a data directory of any server: InnoDB's system tablespace, MySQL 8's dictionary, and a file of the
/// table `mysql.general_log`. A folder `mysql` alone is also what `/var/lib` has.
pub const FILES: [&str; 3] = ["ibdata1", "mysql.ibd", "mysql/general_log.CSM"];

/// Whether a folder is one.
pub fn is_one(folder: &Path) -> bool {
    FILES.iter().any(|name| folder.join(name).exists())
}

/// Checks that a folder of mydyno's own, unless it is there, would not come to lie in one, whatever links and mounts lead there:
/// the home folder of the user `mysql` often is one.
///
/// # Errors
/// It would; `variable` names another place for it.
pub fn check_outside(folder: &Path, variable: &'static str) -> Result<(), HostError> {
    let all = std::path::absolute(folder).map_err(|e| HostError::io("find", folder, e))?;
    // The nearest that is there, as it is: names above a link lead elsewhere.
    let there: Option<PathBuf> = all.ancestors().find_map(|path| fs::canonicalize(path).ok());
    let inside = there.as_deref().and_then(|path| path.ancestors().find(|above| is_one(above)));
    match inside {
        Some(data) if !all.exists() => {
            Err(HostError::InDataDirectory { path: all, data: data.to_owned(), variable })
        }
        _ => Ok(()),
    }
}
