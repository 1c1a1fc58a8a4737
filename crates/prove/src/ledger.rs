//! The ledger of verdicts beside the records of runs in the state folder: one JSON line for each verdict, appended and never rewritten.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mydyno_model::experiment::proved::Proved;

use crate::error::ProveError;

/// The ledger in the state folder, beside the records of runs: a record is kept, it is nothing to put back.
const LEDGER: &str = "runs/verdicts.jsonl";
/// Largest ledger that is read: 100,000 verdicts of a kilobyte.
const LARGEST_BYTES: u64 = 100 << 20;

/// Path of the ledger of a state folder.
pub fn path(state: &Path) -> PathBuf {
    state.join(LEDGER)
}

/// Appends a verdict, synced.
///
/// # Errors
/// The ledger cannot be written.
pub fn append(state: &Path, proved: &Proved) -> Result<(), ProveError> {
    let path = path(state);
    let folder = path.parent().unwrap_or(state);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(ProveError::io("create", folder))?;
    let mut line = serde_json::to_string(proved).unwrap_or_default();
    line.push('\n');
    let opened = OpenOptions::new().append(true).create(true).mode(0o600).open(&path);
    let mut file = opened.map_err(ProveError::io("open", &path))?;
    // One write keeps the lines of two commands apart.
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(ProveError::io("write", path))
}

/// All verdicts, the oldest first. Lines that cannot be read, as one that a full disk cut off, are passed over; their number is
/// returned beside.
///
/// # Errors
/// The ledger is there and cannot be read.
pub fn read(state: &Path) -> Result<(Vec<Proved>, usize), ProveError> {
    let path = path(state);
    let Ok(about) = fs::metadata(&path) else { return Ok((Vec::new(), 0)) };
    if !about.is_file() || about.len() > LARGEST_BYTES {
        let why = format!("it is no regular file of at most {LARGEST_BYTES} bytes");
        return Err(ProveError::Folder { path, why });
    }
    let text = fs::read_to_string(&path).map_err(ProveError::io("read", &path))?;
    let lines: Vec<Option<Proved>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
    let damaged = lines.iter().filter(|line| line.is_none()).count();
    Ok((lines.into_iter().flatten().collect(), damaged))
}

#[cfg(test)]
mod tests {
    use mydyno_model::experiment::Finding;
    use serde_json::Map;

    use super::*;

    fn proved(experiment: &str) -> Proved {
        Proved {
            at: "2026-01-01T00:00:00Z".to_owned(),
            mydyno: "0.1.0".to_owned(),
            experiment: experiment.to_owned(),
            claim: Some("sync-binlog-mariadb".to_owned()),
            verdict: Finding::Supported,
            answer: "It is.".to_owned(),
            delta: 0.02,
            effect_ratio: None,
            scope: "this host".to_owned(),
            host: "Linux 6.1, 2 CPUs".to_owned(),
            server: "MariaDB 10.11".to_owned(),
            folder: "/tmp/x".to_owned(),
            extra: Map::new(),
        }
    }

    #[test]
    fn verdicts_are_kept_in_their_order_and_a_damaged_line_is_counted() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(folder.path()).unwrap(), (vec![], 0));
        append(folder.path(), &proved("a")).unwrap();
        let cut = path(folder.path());
        let text = fs::read_to_string(&cut).unwrap();
        fs::write(&cut, format!("{text}{{\"at\":\n")).unwrap();
        append(folder.path(), &proved("b")).unwrap();
        assert_eq!(read(folder.path()).unwrap(), (vec![proved("a"), proved("b")], 1));
    }
}
