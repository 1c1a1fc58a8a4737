//! Files that are replaced as a whole: whoever reads one, and whoever looks after a crash of the program, finds what was there
//! before or all that is new.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The replacement of a file. The new one is written beside it, under a hidden name of this process's, and then renamed: rename(2).
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    path: &'a Path,
    mode: u32,
    synced: bool,
}

impl<'a> Replacement<'a> {
    /// Replaces `path`, or creates it; only its owner can read it.
    pub fn of(path: &'a Path) -> Self {
        Self { path, mode: 0o600, synced: false }
    }

    /// With other permissions, without those that the umask takes away.
    #[must_use]
    pub fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    /// On the disk before it has its name, so that a crash of the machine cannot leave an empty file under it: fsync(2).
    #[must_use]
    pub fn synced(self) -> Self {
        Self { synced: true, ..self }
    }

    /// Writes the new file. If that or `write` fails, the old one stays and nothing new is left.
    ///
    /// # Errors
    /// The folder is missing, not writable or full; the error of `write`.
    pub fn write<E: From<io::Error>>(self, write: impl FnOnce(&File) -> Result<(), E>) -> Result<(), E> {
        let beside = beside(self.path)?;
        let file = self.create(&beside)?;
        let sync = || if self.synced { file.sync_all() } else { Ok(()) };
        let written = write(&file)
            .and_then(|()| sync().map_err(E::from))
            .and_then(|()| fs::rename(&beside, self.path).map_err(E::from));
        if written.is_err() {
            // The error that is returned says more than that of removing what it left.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    /// Opens a file that did not exist: a link that somebody put there would lead elsewhere.
    fn create(&self, path: &Path) -> io::Result<File> {
        let open = || OpenOptions::new().write(true).create_new(true).mode(self.mode).open(path);
        match open() {
            // Left by a killed process that had the same number, as in containers.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| open()),
            other => other,
        }
    }
}

/// The name of the new file until it is whole.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let name =
        path.file_name().ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "it is not a file name"))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.new", std::process::id()));
    Ok(path.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn text(replacement: Replacement<'_>, text: &str) -> io::Result<()> {
        replacement.write(|mut file| file.write_all(text.as_bytes()))
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_only_once_the_new_one_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.json");
        text(Replacement::of(&path), "old").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let failed = Replacement::of(&path).write(|mut file| {
            file.write_all(b"half")?;
            assert_eq!(fs::read(&path).unwrap(), b"old");
            Err(io::Error::other("no more"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more");
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"old".to_vec(), vec!["report.json".into()])
        );
        text(Replacement::of(&path).mode(0o640).synced(), "new").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!((fs::read(&path).unwrap(), names(folder.path()).len()), (b"new".to_vec(), 1));
    }

    #[test]
    fn what_another_has_left_under_the_name_of_the_new_file_is_not_written_to() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("report.json"), folder.path().join("other"));
        fs::write(&other, "kept").unwrap();
        symlink(&other, beside(&path).unwrap()).unwrap();
        text(Replacement::of(&path), "new").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), fs::read(&other).unwrap()),
            (b"new".to_vec(), b"kept".to_vec())
        );
        assert!(!path.is_symlink() && names(folder.path()).len() == 2);
    }

    #[test]
    fn a_path_without_a_name_or_a_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        assert!(text(Replacement::of(Path::new("/")), "x").unwrap_err().to_string().contains("file name"));
        let missing = folder.path().join("missing/report.json");
        assert_eq!(text(Replacement::of(&missing), "x").unwrap_err().kind(), ErrorKind::NotFound);
        let taken = folder.path().join("folder");
        fs::create_dir(&taken).unwrap();
        assert!(text(Replacement::of(&taken), "x").is_err());
        assert_eq!(names(folder.path()), ["folder"]);
    }
}
