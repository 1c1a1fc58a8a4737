//! The ledger of verdicts in the state folder: one JSON line for each verdict, append-only.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use mydyno_linux::text::kib_field;
use mydyno_linux::{Root, cpus};
use mydyno_model::experiment::proved::{HostFingerprint, Proved, ProvedHere};
use mydyno_model::finding::Finding;

use crate::error::ProveError;

/// The ledger's file in the state folder, beside the records of runs. It is no change that has to be restored.
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
    // A single write keeps the lines of two commands apart.
    file.write_all(line.as_bytes()).and_then(|()| file.sync_all()).map_err(ProveError::io("write", path))
}

/// All verdicts, the oldest first, and the number of lines that cannot be parsed, such as one that a full disk cut off.
///
/// # Errors
/// The ledger exists and cannot be read.
pub fn read(state: &Path) -> Result<(Vec<Proved>, usize), ProveError> {
    let path = path(state);
    // A state folder of another user is no empty ledger.
    let exists = path.try_exists().map_err(ProveError::io("read", &path))?;
    if exists { read_file(&path) } else { Ok((Vec::new(), 0)) }
}

fn read_file(path: &Path) -> Result<(Vec<Proved>, usize), ProveError> {
    let about = fs::metadata(path).map_err(ProveError::io("read", path))?;
    if !about.is_file() || about.len() > LARGEST_BYTES {
        let why = format!("it is not a regular file of at most {LARGEST_BYTES} bytes");
        return Err(ProveError::Folder { path: path.to_owned(), why });
    }
    let text = fs::read_to_string(path).map_err(ProveError::io("read", path))?;
    let lines: Vec<Option<Proved>> = text.lines().map(|line| serde_json::from_str(line).ok()).collect();
    let damaged = lines.iter().filter(|line| line.is_none()).count();
    Ok((lines.into_iter().flatten().collect(), damaged))
}

/// Adds verdicts of another ledger, marked with the file that they come from; existing ones are left out. Returns the
/// number of added ones.
///
/// # Errors
/// The file cannot be read or has a line that is not a verdict, or the ledger cannot be read or written.
pub fn import(state: &Path, from: &Path) -> Result<usize, ProveError> {
    let (there, _) = read(state)?;
    let (lines, damaged) = read_file(from)?;
    if damaged > 0 || lines.is_empty() {
        let why = format!("it holds {} verdicts and {damaged} lines that are none", lines.len());
        return Err(ProveError::Folder { path: from.to_owned(), why });
    }
    let same =
        |a: &Proved, b: &Proved| (&a.at, &a.experiment, &a.answer) == (&b.at, &b.experiment, &b.answer);
    let mut added = 0;
    for line in lines.into_iter().filter(|line| !there.iter().any(|known| same(known, line))) {
        let imported = line.imported.clone().or_else(|| Some(from.display().to_string()));
        append(state, &Proved { imported, ..line })?;
        added += 1;
    }
    Ok(added)
}

/// Writes verdicts as JSON lines, in the format of [`import`].
///
/// # Errors
/// The file exists already or cannot be written.
pub fn export(verdicts: &[&Proved], to: &Path) -> Result<(), ProveError> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let mut file = opened.map_err(ProveError::io("create", to))?;
    let lines: String =
        verdicts.iter().map(|v| serde_json::to_string(v).unwrap_or_default() + "\n").collect();
    file.write_all(lines.as_bytes()).and_then(|()| file.sync_all()).map_err(ProveError::io("write", to))
}

/// This host.
pub fn fingerprint() -> HostFingerprint {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let id = read("/etc/machine-id");
    // FNV-1a, 64 bits: the id itself is confidential, machine-id(5).
    let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let digest = id.trim().bytes().fold(0xcbf2_9ce4_8422_2325, fold);
    HostFingerprint {
        machine: if id.trim().is_empty() { String::new() } else { format!("{digest:016x}") },
        kernel: Root::real().kernel_release(),
        cpu: cpus::model(&read("/proc/cpuinfo")).unwrap_or_default(),
        cpus: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: kib_field(&read("/proc/meminfo"), "MemTotal").unwrap_or(0),
    }
}

/// Adds to each finding the newest verdict on its claim, from the experiment that its proof names. `server` is the
/// audited server by program and version.
pub fn beside(findings: &mut [Finding], ledger: &[Proved], host: &HostFingerprint, server: &str) {
    for finding in findings {
        let proof = &finding.proof;
        let is_its = |proved: &&Proved| {
            let of_proof =
                proof.experiment.is_some() && proof.experiment.as_ref() == Some(&proved.experiment);
            proved.claim.as_ref() == Some(&finding.claim) || (proved.claim.is_none() && of_proof)
        };
        finding.proved =
            ledger.iter().rev().find(is_its).map(|proved| here(proved, host, server)).into_iter().collect();
    }
}

fn here(proved: &Proved, host: &HostFingerprint, server: &str) -> ProvedHere {
    let mut changed = match &proved.fingerprint {
        Some(was) => was.changes(host),
        None => vec!["its host is not known".to_owned()],
    };
    match (version(&proved.server), version(server)) {
        (Some(was), Some(now)) if was != now => changed.push(format!("server {was} → {now}")),
        _ => {}
    }
    ProvedHere {
        at: proved.at.clone(),
        experiment: proved.experiment.clone(),
        verdict: proved.verdict,
        answer: proved.answer.clone(),
        changed,
    }
}

/// The first version in a text, as `10.11.6` in `MariaDB 10.11.6-log`.
fn version(text: &str) -> Option<&str> {
    let begin = text.find(|c: char| c.is_ascii_digit())?;
    let rest = &text[begin..];
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    Some(&rest[..end]).filter(|version| version.contains('.'))
}

#[cfg(test)]
mod tests {
    use mydyno_model::experiment::Finding as Answer;
    use serde_json::Map;

    use super::*;

    fn proved(experiment: &str) -> Proved {
        Proved {
            at: "2026-01-01T00:00:00Z".to_owned(),
            mydyno: "0.1.0".to_owned(),
            experiment: experiment.to_owned(),
            claim: Some("sync-binlog-mariadb".to_owned()),
            verdict: Answer::Supported,
            answer: "It is.".to_owned(),
            delta: 0.02,
            effect_ratio: None,
            scope: "this host".to_owned(),
            host: "Linux 6.1, 2 CPUs".to_owned(),
            server: "MariaDB 10.11".to_owned(),
            fingerprint: None,
            imported: None,
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

    #[test]
    fn a_state_folder_that_cannot_be_read_is_no_empty_ledger() {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("file");
        fs::write(&state, "").unwrap();
        assert!(read(&state).unwrap_err().to_string().contains("verdicts.jsonl"));
    }

    #[test]
    fn what_is_exported_is_imported_once_with_its_file() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = from.path().join("verdicts.jsonl");
        export(&[&proved("a"), &proved("b")], &file).unwrap();
        assert!(export(&[], &file).is_err(), "a file was written over");
        append(to.path(), &proved("a")).unwrap();
        assert_eq!(import(to.path(), &file).unwrap(), 1);
        assert_eq!(import(to.path(), &file).unwrap(), 0);
        let imported = Some(file.display().to_string());
        assert_eq!(read(to.path()).unwrap().0, [proved("a"), Proved { imported, ..proved("b") }]);
        fs::write(&file, "{}\n").unwrap();
        assert!(import(to.path(), &file).unwrap_err().to_string().contains("1 lines that are none"));
    }

    #[test]
    fn a_verdict_says_what_has_changed_since() {
        let host = fingerprint();
        assert!(host.cpus > 0 && host.memory_bytes > 0 && !host.kernel.is_empty(), "{host:?}");
        let now = |fingerprint: &HostFingerprint, server: &str| {
            let proved = Proved { fingerprint: Some(fingerprint.clone()), ..proved("a") };
            here(&proved, &host, server).changed
        };
        assert!(now(&host, "mariadb 10.11").is_empty());
        let older = HostFingerprint { kernel: "5.1".to_owned(), ..host.clone() };
        let changed = now(&older, "mariadb 11.4.2");
        assert!(changed.len() == 2 && changed[0].starts_with("kernel 5.1 → "), "{changed:?}");
        assert_eq!(changed[1], "server 10.11 → 11.4.2");
        assert_eq!(here(&proved("a"), &host, "").changed, ["its host is not known"]);
    }
}
