//! The cache of templates: the least recently used are evicted first, and none that is being copied.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use mydyno_linux::calls::files::try_lock;

use crate::copy::occupied_bytes;

/// File of a finished template: its recipe.
pub(crate) const RECIPE: &str = "template.json";
/// Number of templates that are kept beside a new one.
const KEPT: usize = 8;
/// Disk space that they may occupy.
const KEPT_BYTES: u64 = 2 << 30;
/// Age after which a half-made template that is not in the journal counts as abandoned by a command whose journal is
/// gone; making one never takes longer.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A template that a command is copying. The lock ends with the process.
#[derive(Debug)]
pub(crate) struct InUse(#[expect(dead_code, reason = "open for its lock")] File);

impl InUse {
    /// Marks a template as just used; `None` when it does not exist or is being removed.
    pub(crate) fn mark(recipe: &Path) -> Option<Self> {
        let file = File::open(recipe).ok()?;
        lock(&file, false).ok()?;
        // Another command may have removed or replaced it between opening and locking.
        let same = fs::metadata(recipe).ok()?.ino() == file.metadata().ok()?.ino();
        // The modification time is the time of the last use.
        let _ = file.set_modified(SystemTime::now());
        same.then_some(Self(file))
    }
}

/// Removes outdated templates, templates beyond the limits, and half-made or half-removed templates that the journal does not
/// list.
pub(crate) fn tidy(templates: &Path, outdated: &dyn Fn(&Path) -> bool, journalled: &dyn Fn(&Path) -> bool) {
    let Ok(entries) = fs::read_dir(templates) else { return };
    let mut kept = Vec::new();
    for path in entries.filter_map(|e| Some(e.ok()?.path())) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with(".old-") {
            let _ = fs::remove_dir_all(&path);
        } else if name.starts_with(".new-") {
            if is_older(&path, ABANDONED) && !journalled(&path) {
                let _ = fs::remove_dir_all(&path);
            }
        } else if outdated(&path) {
            remove(&path);
        } else if let Some(used) = modified(&path.join(RECIPE)) {
            kept.push((used, path));
        }
    }
    kept.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
    let mut bytes = 0;
    for (n, (_, path)) in kept.iter().enumerate() {
        bytes += occupied_bytes(path).unwrap_or_default();
        if n >= KEPT || bytes > KEPT_BYTES {
            remove(path);
        }
    }
}

/// Removes a template unless it is in use. It is renamed first, so that no command finds a part of it.
fn remove(template: &Path) {
    let Ok(recipe) = File::open(template.join(RECIPE)) else { return };
    if lock(&recipe, true).is_err() {
        return;
    }
    let name = template.file_name().unwrap_or_default().to_string_lossy();
    let old: PathBuf = template.with_file_name(format!(".old-{}-{name}", std::process::id()));
    if fs::rename(template, &old).is_ok() {
        let _ = fs::remove_dir_all(old);
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).ok()?.modified().ok()
}

fn is_older(path: &Path, age: Duration) -> bool {
    modified(path).and_then(|m| SystemTime::now().duration_since(m).ok()).is_some_and(|a| a > age)
}

/// Locks a file without waiting: flock(2). A lock that this open file held before is released in either case.
///
/// # Errors
/// `WouldBlock` when another open file has the lock, else the system call's.
pub(crate) fn lock(file: &File, exclusive: bool) -> io::Result<()> {
    if try_lock(file, exclusive)? { Ok(()) } else { Err(io::ErrorKind::WouldBlock.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(at: &Path, name: &str, used_hours_ago: u64) -> PathBuf {
        let path = at.join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join(RECIPE), "{}").unwrap();
        age(&path.join(RECIPE), used_hours_ago);
        path
    }

    fn age(path: &Path, hours: u64) {
        let then = SystemTime::now() - Duration::from_secs(hours * 3600);
        File::open(path).unwrap().set_modified(then).unwrap();
    }

    fn tidied(at: &Path) -> Vec<String> {
        tidy(at, &|_| false, &|path| path.ends_with(".new-2-journalled"));
        let mut names: Vec<String> =
            fs::read_dir(at).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_templates_that_were_not_used_for_longest_go_and_those_in_use_stay() {
        let temp = tempfile::tempdir().unwrap();
        for n in 0..KEPT as u64 + 3 {
            template(temp.path(), &format!("t{n:02}"), n + 1);
        }
        let oldest = temp.path().join("t10");
        let in_use = InUse::mark(&oldest.join(RECIPE)).unwrap();
        age(&oldest.join(RECIPE), 99);
        let names = tidied(temp.path());
        assert_eq!(names.len(), KEPT + 1, "{names:?}");
        assert!(oldest.exists() && !names.contains(&"t08".to_owned()), "{names:?}");
        drop(in_use);
        assert_eq!(tidied(temp.path()).len(), KEPT);
    }

    #[test]
    fn using_a_template_makes_it_the_last_to_go() {
        let temp = tempfile::tempdir().unwrap();
        for n in 0..=KEPT as u64 {
            template(temp.path(), &format!("t{n:02}"), n + 1);
        }
        drop(InUse::mark(&temp.path().join("t08").join(RECIPE)).unwrap());
        let names = tidied(temp.path());
        assert!(names.contains(&"t08".to_owned()) && !names.contains(&"t07".to_owned()), "{names:?}");
    }

    #[test]
    fn what_was_left_half_made_goes_unless_it_is_young_or_in_the_journal() {
        let temp = tempfile::tempdir().unwrap();
        for (name, hours) in [
            (".new-1-old", 2),
            (".new-2-journalled", 2),
            (".new-3-young", 0),
            (".old-4-gone", 0),
            ("other", 99),
        ] {
            fs::create_dir(temp.path().join(name)).unwrap();
            age(&temp.path().join(name), hours);
        }
        assert_eq!(tidied(temp.path()), [".new-2-journalled", ".new-3-young", "other"]);
    }
}
