//! A host's files as a test wants them, in a folder that takes the place of its root.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Source;

/// A folder with such files; it is removed when this is dropped.
pub struct Tree(tempfile::TempDir);

impl Tree {
    /// With files by their paths, with or without the slash of the root.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for (path, text) in files {
            tree.file(path, text);
        }
        tree
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Where a path of the host is.
    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches('/'))
    }

    /// A source that reads it.
    pub fn source(&self) -> Source {
        Source::at(self.path())
    }

    /// Writes a file.
    pub fn file(&self, path: &str, text: impl AsRef<[u8]>) {
        fs::write(self.in_its_folder(path), text).unwrap();
    }

    /// Makes a folder.
    pub fn folder(&self, path: &str) {
        fs::create_dir_all(self.at(path)).unwrap();
    }

    /// Makes a symbolic link that leads to `target` as it stands there.
    pub fn link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.in_its_folder(path)).unwrap();
    }

    /// Takes away a file or a link.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).unwrap();
    }

    fn in_its_folder(&self, path: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

/// A tree with these files, and how it is read.
pub fn tree(files: &[(&str, &str)]) -> (Tree, Source) {
    let tree = Tree::of(files);
    let source = tree.source();
    (tree, source)
}
