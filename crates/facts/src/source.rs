//! Where facts are read from: the files of a Linux host below a root that tests can replace.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mydyno_linux::calls::{self, files};

use mydyno_model::facts::Status;
use thiserror::Error;

use crate::bounds::{LONGEST_REASON, open_regular, shortened};

/// The value that was read, or the reason why there is none.
pub type Read<T> = Result<T, Missing>;

/// Why something could not be had. The text is for people: it names what was read and, where there is one, the way out.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Missing {
    /// Permission was refused; the text says what would permit it.
    #[error("{0}")]
    Denied(String),
    /// This system does not have it.
    #[error("{0}")]
    Absent(String),
    /// It could not be read or understood.
    #[error("{0}")]
    Error(String),
}

impl Missing {
    /// The status of a fact that is missing for this reason.
    pub fn status(self) -> Status {
        match self {
            Self::Denied(why) => Status::Denied { why },
            Self::Absent(why) => Status::Absent { why },
            Self::Error(why) => Status::Error { why },
        }
    }

    /// The same with a text within bounds: it may quote what a server said.
    #[must_use]
    pub fn shortened(self) -> Self {
        let short = |why: String| shortened(why, 2 * LONGEST_REASON);
        match self {
            Self::Denied(why) => Self::Denied(short(why)),
            Self::Absent(why) => Self::Absent(short(why)),
            Self::Error(why) => Self::Error(short(why)),
        }
    }

    fn of(error: &io::Error, path: &str) -> Self {
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => Self::Denied(refusal(path, calls::effective_uid() == 0)),
            Some(libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ENXIO | libc::ESRCH) => {
                Self::Absent(format!("{path}: {}", reason(error)))
            }
            // Attributes that a driver registers and does not implement.
            Some(libc::EOPNOTSUPP | libc::EINVAL | libc::ENODATA) => {
                Self::Absent(format!("{path} is there but not implemented: {}", reason(error)))
            }
            _ => Self::Error(format!("{path}: {}", reason(error))),
        }
    }
}

/// The system's error text without the suffix `(os error N)` of the standard library.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn refusal(path: &str, to_root: bool) -> String {
    let remedy = if to_root {
        "a container, a security module or the kernel keeps it from root as well"
    } else if process_of(path).is_some() {
        "run mydyno as root or as the user that runs that process"
    } else {
        "run mydyno as root"
    };
    format!("{path}: permission refused; {remedy}")
}

/// The process that a path below /proc is about.
fn process_of(path: &str) -> Option<u32> {
    path.strip_prefix("/proc/")?.split('/').next()?.parse().ok()
}

/// Files larger than this are refused: nothing that a collector reads comes near it.
pub const LARGEST_FILE: u64 = 64 << 20;

/// A host's files. Cloning is cheap; a clone can be given to another thread.
///
/// All paths are absolute and mean the host's own; below a replaced root they are looked up there. Links whose text
/// is asked for are returned as they stand.
#[derive(Debug, Clone)]
pub struct Source {
    root: Arc<PathBuf>,
}

impl Default for Source {
    fn default() -> Self {
        Self::live()
    }
}

impl Source {
    /// This host.
    pub fn live() -> Self {
        Self::at("/")
    }

    /// A tree of files below `root` that stands for a host. System calls about a host (mount ids, free space) are not
    /// answered for it.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: Arc::new(root.into()) }
    }

    /// Whether this is the host that the program runs on.
    pub fn is_live(&self) -> bool {
        self.root.as_path() == Path::new("/")
    }

    /// Where a path of the host is found.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The text of a file, without white space at its end. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// Refused, not there, larger than [`LARGEST_FILE`] or not readable.
    pub fn read(&self, path: &str) -> Read<String> {
        let bytes = self.bytes(path)?;
        let text =
            String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        Ok(text.trim_end().to_owned())
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// As [`Source::read`].
    pub fn bytes(&self, path: &str) -> Read<Vec<u8>> {
        let file = self.open(path)?;
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(|e| Missing::of(&e, path))?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(Missing::Error(format!("{path}: larger than {} MiB", LARGEST_FILE >> 20)));
        }
        Ok(bytes)
    }

    /// The text of a regular file of at most `most` bytes; bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// As [`Source::read`]; it is larger, or not a regular file.
    pub fn text_within(&self, path: &str, most: u64) -> Read<String> {
        let failed = |e: &io::Error| Missing::of(e, path);
        let mut bytes = Vec::new();
        let file = open_regular(&self.path(path)).map_err(|e| failed(&e))?;
        file.take(most + 1).read_to_end(&mut bytes).map_err(|e| failed(&e))?;
        if bytes.len() as u64 > most {
            return Err(Missing::Error(format!("{path}: larger than {} MiB", most >> 20)));
        }
        let text =
            String::from_utf8(bytes).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        Ok(text.trim_end().to_owned())
    }

    /// The last lines of a regular file, at most `most` bytes, and whether they are the whole file; bytes that are not UTF-8
    /// are replaced.
    ///
    /// # Errors
    /// As [`Source::read`]; it is not a regular file.
    pub fn end_of(&self, path: &str, most: u64) -> Read<(String, bool)> {
        let failed = |e: &io::Error| Missing::of(e, path);
        let mut file = open_regular(&self.path(path)).map_err(|e| failed(&e))?;
        let size = file.metadata().map_err(|e| failed(&e))?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(most))).map_err(|e| failed(&e))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes).map_err(|e| failed(&e))?;
        let text = String::from_utf8_lossy(&bytes);
        let whole = size <= most;
        // The first line of a part is the end of one.
        let lines = if whole { &*text } else { text.split_once('\n').map_or("", |(_, lines)| lines) };
        Ok((lines.to_owned(), whole))
    }

    /// An open file, to be read again and again.
    ///
    /// # Errors
    /// Refused, not there or not readable.
    pub fn open(&self, path: &str) -> Read<File> {
        File::open(self.path(path)).map_err(|e| Missing::of(&e, path))
    }

    /// A regular file, to be read; devices and pipes are refused.
    ///
    /// # Errors
    /// As [`Source::open`]; it is not a regular file.
    pub fn open_file(&self, path: &str) -> Read<File> {
        open_regular(&self.path(path)).map_err(|e| Missing::of(&e, path))
    }

    /// Names in a folder, sorted.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn list(&self, path: &str) -> Read<Vec<String>> {
        let entries = std::fs::read_dir(self.path(path)).map_err(|e| Missing::of(&e, path))?;
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|e| Missing::of(&e, path))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// At most `most` names in a folder, sorted, and whether these are all: a folder may hold millions.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn list_some(&self, path: &str, most: usize) -> Read<(Vec<String>, bool)> {
        let mut entries = std::fs::read_dir(self.path(path)).map_err(|e| Missing::of(&e, path))?;
        let mut names = Vec::new();
        for entry in entries.by_ref().take(most) {
            let entry = entry.map_err(|e| Missing::of(&e, path))?;
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok((names, entries.next().is_none()))
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn link(&self, path: &str) -> Read<String> {
        let target = std::fs::read_link(self.path(path)).map_err(|e| Missing::of(&e, path))?;
        Ok(target.to_string_lossy().into_owned())
    }

    /// Whether a file or folder is there. What may not be looked at counts as not there.
    pub fn exists(&self, path: &str) -> bool {
        std::fs::symlink_metadata(self.path(path)).is_ok()
    }

    /// Owner, mode, size, device and mount of a file; links are followed.
    ///
    /// # Errors
    /// As [`Source::open`].
    pub fn stat(&self, path: &str) -> Read<files::Attributes> {
        files::attributes(&self.path(path)).map_err(|e| Missing::of(&e, path))
    }

    /// Size and free space of the file system that holds a path.
    ///
    /// # Errors
    /// As [`Source::open`]; absent for a tree that is not live.
    pub fn space(&self, path: &str) -> Read<files::Space> {
        self.must_be_live(path)?;
        files::space(&self.path(path)).map_err(|e| Missing::of(&e, path))
    }

    /// Id of the mount that holds a path, as in the first field of /proc/PID/mountinfo.
    ///
    /// # Errors
    /// As [`Source::open`]; absent before Linux 5.8 and for a tree that is not live.
    pub fn mount_id(&self, path: &str) -> Read<u64> {
        self.must_be_live(path)?;
        self.stat(path)?.mount_id.ok_or_else(|| {
            Missing::Absent(format!("{path}: this kernel does not tell mount ids (Linux 5.8 does)"))
        })
    }

    fn must_be_live(&self, path: &str) -> Read<()> {
        if self.is_live() {
            Ok(())
        } else {
            Err(Missing::Absent(format!("{path}: read from a copy, not from a live host")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Tree, tree};
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_path_is_looked_up_below_the_root() {
        let (_tree, source) = tree(&[("proc/sys/vm/swappiness", "60\n")]);
        assert_eq!(source.read("/proc/sys/vm/swappiness"), Ok("60".to_owned()));
        assert_eq!(source.list("/proc/sys/vm"), Ok(vec!["swappiness".to_owned()]));
        assert!(!source.is_live() && Source::live().is_live());
    }

    #[test]
    fn what_is_not_there_is_absent_and_named() {
        let missing = Tree::of(&[]).source().read("/proc/pressure/cpu").unwrap_err();
        assert_eq!(missing, Missing::Absent("/proc/pressure/cpu: No such file or directory".to_owned()));
    }

    #[test]
    fn a_refusal_says_what_would_permit_it() {
        let of = |path: &str| Missing::Denied(refusal(path, false));
        assert!(matches!(
            Missing::of(&io::Error::from_raw_os_error(libc::EPERM), "/sys/x"),
            Missing::Denied(_)
        ));
        assert!(refusal("/dev/sda", true).ends_with("from root as well"));
        assert_eq!(
            of("/proc/17/io"),
            Missing::Denied(
                "/proc/17/io: permission refused; run mydyno as root or as the user that runs that process"
                    .to_owned()
            )
        );
        assert_eq!(
            of("/sys/x"),
            Missing::Denied("/sys/x: permission refused; run mydyno as root".to_owned())
        );
    }

    #[test]
    fn the_end_of_a_file_begins_with_a_whole_line() {
        let (_tree, source) = tree(&[("var/log/x", "first\nsecond\nthird\n")]);
        assert_eq!(source.end_of("/var/log/x", 100), Ok(("first\nsecond\nthird\n".to_owned(), true)));
        assert_eq!(source.end_of("/var/log/x", 10), Ok(("third\n".to_owned(), false)));
        assert!(matches!(source.end_of("/var/log", 10), Err(Missing::Error(_))));
        assert!(matches!(source.end_of("/var/none", 10), Err(Missing::Absent(_))));
    }

    #[test]
    fn a_folder_read_as_a_file_is_an_error_and_bytes_that_are_no_text_are_replaced() {
        let (tree, source) = tree(&[]);
        tree.file("garbage", [b'a', 0xff, b'b', b'\n']);
        assert_eq!(source.read("/garbage"), Ok("a\u{fffd}b".to_owned()));
        assert!(matches!(source.read("/"), Err(Missing::Error(_))));
    }

    #[test]
    fn system_calls_are_not_answered_for_a_copy() {
        let (tree, source) = tree(&[]);
        std::fs::set_permissions(tree.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        assert!(matches!(source.space("/"), Err(Missing::Absent(_))));
        assert!(matches!(source.mount_id("/"), Err(Missing::Absent(_))));
    }
}
