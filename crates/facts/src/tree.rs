//! A tree of files for tests that replaces a host's root.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Source;

/// A temporary folder with such files; dropping this removes it.
pub struct Tree(tempfile::TempDir);

impl Tree {
    /// A tree of files given by path; the leading slash is optional.
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

    /// The real path of a path of the host.
    pub fn at(&self, path: &str) -> PathBuf {
        self.path().join(path.trim_start_matches('/'))
    }

    /// A source that reads this tree.
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

    /// Makes a symbolic link to `target`, which is stored unchanged.
    pub fn link(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.in_its_folder(path)).unwrap();
    }

    /// Removes a file or a link.
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.at(path)).unwrap();
    }

    fn in_its_folder(&self, path: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}

/// A tree with these files, and a source that reads it.
pub fn tree(files: &[(&str, &str)]) -> (Tree, Source) {
    let tree = Tree::of(files);
    let source = tree.source();
    (tree, source)
}
