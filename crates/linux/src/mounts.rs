//! The mount table: proc_pid_mountinfo(5).

use std::path::{Path, PathBuf};

/// One mount. Bytes of paths that are not UTF-8 are replaced by the reader of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Its id, unique on a host while it is mounted.
    pub id: u64,
    /// Major and minor number of the file system's device; major 0 is not a block device.
    pub device: (u32, u32),
    /// The folder of the file system that is mounted, as in `/` or `/@subvolume`.
    pub root: String,
    /// The mount point.
    pub point: PathBuf,
    /// Options of the mount, as in `rw,noatime`.
    pub options: String,
    /// File system, as in `ext4`.
    pub kind: String,
    /// The mounted device or file system, as in `/dev/loop3`.
    pub source: PathBuf,
    /// Options of the file system, as in `rw,nobarrier`.
    pub super_options: String,
}

impl Mount {
    /// Reads one line. `None` for a line that is not in the form of the manual.
    pub fn parse(line: &str) -> Option<Self> {
        // Optional fields of any number stand between the sixth and the lone hyphen.
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ');
        let (id, _parent, device) = (left.next()?, left.next()?, left.next()?);
        let (root, point, options) = (left.next()?, left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (major, minor) = device.split_once(':')?;
        Some(Self {
            id: id.parse().ok()?,
            device: (major.parse().ok()?, minor.parse().ok()?),
            root: unescape(root),
            point: unescape(point).into(),
            options: options.to_owned(),
            kind: unescape(right.next()?),
            source: unescape(right.next()?).into(),
            super_options: right.next().unwrap_or_default().to_owned(),
        })
    }

    /// Whether the file system has an option, as in `memory` of a cgroup file system.
    pub fn has_super_option(&self, name: &str) -> bool {
        self.super_options.split(',').any(|option| option == name)
    }
}

/// Reads a mount table, oldest mount first. Lines that are not in the form of the manual are left out.
pub fn parse(text: &str) -> Vec<Mount> {
    text.lines().filter_map(Mount::parse).collect()
}

/// The mount that holds a path without symbolic links: the longest mount point, and of several on one point the last, which
/// covers the others.
pub fn holding<'a>(mounts: &'a [Mount], path: &Path) -> Option<&'a Mount> {
    let above = mounts.iter().enumerate().filter(|(_, mount)| path.starts_with(&mount.point));
    above.max_by_key(|(n, mount)| (mount.point.components().count(), *n)).map(|(_, mount)| mount)
}

/// Decodes the three octal digits behind a backslash with which the kernel writes space, tab, newline, `#` and backslash
/// (`mangle_path` of fs/seq_file.c). Anything else behind a backslash stays as it is.
pub fn unescape(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = bytes.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        plain.push(octal.unwrap_or(bytes[at]));
        at += if octal.is_some() { 4 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table with optional fields, escapes, mounts over mounts, a bind mount of an overlay and damaged lines.
    const ODD: &str = include_str!("../tests/fixtures/mountinfo-odd");

    #[test]
    fn optional_fields_and_escapes_are_read() {
        let mounts = parse(ODD);
        assert_eq!(mounts.len(), 9, "{mounts:#?}");
        let spaced = mounts.iter().find(|mount| mount.kind == "btrfs").unwrap();
        assert_eq!(spaced.point, Path::new("/var/lib x\ty\\z#"));
        assert_eq!((spaced.device, spaced.root.as_str()), ((8, 1), "/@"));
        assert_eq!(
            (spaced.options.as_str(), spaced.super_options.as_str()),
            ("rw,noatime", "rw,noatime,subvol=/@")
        );
        assert!(spaced.has_super_option("noatime") && !spaced.has_super_option("noat"));
        let fuse = mounts.iter().find(|mount| mount.kind == "fuse.sshfs").unwrap();
        assert_eq!(fuse.source, Path::new("me@host:/a b"));
    }

    #[test]
    fn the_longest_and_last_mount_holds_a_path() {
        let mounts = parse(ODD);
        let source =
            |path: &str| holding(&mounts, Path::new(path)).map(|mount| mount.source.display().to_string());
        assert_eq!(source("/data/mysql").as_deref(), Some("/dev/sdc"));
        assert_eq!(source("/data").as_deref(), Some("/dev/sdc"));
        assert_eq!(source("/dat/a").as_deref(), Some("/dev/root"));
        assert_eq!(source("/").as_deref(), Some("/dev/root"));
        assert_eq!(holding(&[], Path::new("/")), None);
    }

    #[test]
    fn what_is_no_escape_stays() {
        assert_eq!(unescape(r"/a\040b\134c\q"), r"/a b\c\q");
        assert_eq!(unescape(r"/\303\244"), "/ä");
        for text in [r"\", r"\04", r"\999", r"\400", "ä\\", "\\ä0"] {
            assert_eq!(unescape(text), text);
        }
    }
}
