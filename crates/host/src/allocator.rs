//! Memory allocators that a program can be started with, and their libraries on this host.

use std::path::{Path, PathBuf};

use crate::error::HostError;

/// An allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocator {
    /// The C library's own.
    Glibc,
    /// jemalloc.
    Jemalloc,
    /// tcmalloc.
    Tcmalloc,
    /// mimalloc.
    Mimalloc,
}

/// All allocators, the default first.
pub const ALLOCATORS: [Allocator; 4] =
    [Allocator::Glibc, Allocator::Jemalloc, Allocator::Tcmalloc, Allocator::Mimalloc];

/// Folders that are searched for libraries: those of Debian, of Fedora, and of builds from source.
const FOLDERS: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/lib64",
];

impl Allocator {
    /// The name of the lever's value.
    pub fn name(self) -> &'static str {
        match self {
            Self::Glibc => "glibc",
            Self::Jemalloc => "jemalloc",
            Self::Tcmalloc => "tcmalloc",
            Self::Mimalloc => "mimalloc",
        }
    }

    /// The allocator with this name.
    pub fn named(name: &str) -> Option<Self> {
        ALLOCATORS.into_iter().find(|a| a.name() == name)
    }

    /// The library to preload; `None` for the C library's own allocator.
    ///
    /// # Errors
    /// The library is not on this host; the error names the package that provides it.
    pub fn library(self) -> Result<Option<PathBuf>, HostError> {
        let extra = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let folders = std::env::split_paths(&extra)
            .filter(|f| f.is_absolute())
            .chain(FOLDERS.iter().map(PathBuf::from))
            .collect::<Vec<_>>();
        self.library_in(&folders)
    }

    fn library_in(self, folders: &[PathBuf]) -> Result<Option<PathBuf>, HostError> {
        let (names, package): (&[&str], _) = match self {
            Self::Glibc => return Ok(None),
            Self::Jemalloc => (&["libjemalloc.so.2", "libjemalloc.so.1"], "libjemalloc2 (Fedora: jemalloc)"),
            Self::Tcmalloc => (
                &["libtcmalloc_minimal.so.4", "libtcmalloc.so.4"],
                "libtcmalloc-minimal4 (Fedora: gperftools-libs)",
            ),
            Self::Mimalloc => {
                (&["libmimalloc.so.3", "libmimalloc.so.2"], "libmimalloc2.0 (Fedora: mimalloc)")
            }
        };
        let found = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
        found.map(Some).find(|path| path.as_deref().is_some_and(Path::is_file)).ok_or_else(|| {
            HostError::Missing {
                what: format!("the allocator {}", self.name()),
                missing: format!("there is no {} in the usual library folders", names[0]),
                remedy: format!("install {package}, or name its folder in LD_LIBRARY_PATH"),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocator_is_found_or_its_package_is_named() {
        let temp = tempfile::tempdir().unwrap();
        let folders = [temp.path().to_owned()];
        assert_eq!(Allocator::Glibc.library_in(&folders).unwrap(), None);
        let error = Allocator::Jemalloc.library_in(&folders).unwrap_err().to_string();
        assert!(error.contains("libjemalloc2") && error.contains("libjemalloc.so.2"), "{error}");
        let library = temp.path().join("libjemalloc.so.2");
        std::fs::write(&library, "").unwrap();
        assert_eq!(Allocator::Jemalloc.library_in(&folders).unwrap(), Some(library));
    }
}
