//! Features of ext3 and ext4 that mydyno's own disks can be made with, or without.

use std::fmt;

use crate::error::HostError;
use crate::file_system::FileSystem;

/// Features of ext4(5) that mke2fs(8) may be given for a disk of mydyno's. The journal has a file system of its own in the
/// list of file systems, since its absence has a price.
const EXT: &[&str] = &[
    "64bit",
    "bigalloc",
    "dir_index",
    "dir_nlink",
    "ext_attr",
    "extent",
    "extra_isize",
    "fast_commit",
    "filetype",
    "flex_bg",
    "huge_file",
    "inline_data",
    "large_dir",
    "large_file",
    "metadata_csum",
    "sparse_super",
    "sparse_super2",
    "uninit_bg",
];
/// Another name of `extent`, which mke2fs(8) accepts.
const EXTENTS: &str = "extents";

/// Features of a file system, checked against the list; `^NAME` leaves one out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Features {
    list: Vec<String>,
}

impl Features {
    /// Reads features, as in `^dir_index,^extent`.
    ///
    /// # Errors
    /// One is not on the list, or the file system has none to choose.
    pub fn of(file_system: FileSystem, text: &str) -> Result<Self, HostError> {
        let known: &[&str] = if file_system.is_ext() { EXT } else { &[] };
        let list: Vec<String> = text.split(',').filter(|f| !f.is_empty()).map(str::to_owned).collect();
        let is_known = |feature: &&String| {
            let name = feature.strip_prefix('^').unwrap_or(feature);
            known.contains(&name) || (!known.is_empty() && name == EXTENTS)
        };
        match list.iter().find(|feature| !is_known(feature)) {
            None => Ok(Self { list }),
            Some(feature) => Err(HostError::Feature {
                feature: feature.clone(),
                file_system: file_system.name(),
                known: if known.is_empty() { "none".to_owned() } else { known.join(" ") },
            }),
        }
    }

    /// The argument of `mkfs -O` with further features before it; `None` without any.
    pub(crate) fn argument(&self, before: &[&str]) -> Option<String> {
        let all: Vec<&str> = before.iter().copied().chain(self.list.iter().map(String::as_str)).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.list.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_those_of_the_list_and_of_ext_alone() {
        let features = Features::of(FileSystem::Ext4, "^dir_index,^extents,large_dir").unwrap();
        assert_eq!(features.to_string(), "^dir_index,^extents,large_dir");
        let argument = features.argument(&["^has_journal"]);
        assert_eq!(argument.as_deref(), Some("^has_journal,^dir_index,^extents,large_dir"));
        assert_eq!(Features::of(FileSystem::Xfs, "").unwrap().argument(&[]), None);
        for (file_system, text) in [
            (FileSystem::Ext4, "^has_journal"),
            (FileSystem::Ext4, "journal_dev"),
            (FileSystem::Ext4, "^^extent"),
            (FileSystem::Ext3, "extent -E discard"),
            (FileSystem::Xfs, "dir_index"),
        ] {
            assert!(Features::of(file_system, text).is_err(), "{file_system} {text}");
        }
    }
}
