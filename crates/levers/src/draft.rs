//! Levers while their list is being parsed.

use mydyno_host::emulated::DriveKind;
use mydyno_host::emulated::mechanism::CacheMode;
use mydyno_host::file_system::FileSystem;

use crate::lever_set::LeverSet;

/// The levers parsed so far.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) lever_set: LeverSet,
    /// The disk has several levers, which are checked together after the last one.
    pub(crate) disk: DiskDraft,
}

/// The levers of the server's own disk.
#[derive(Debug, Default)]
pub(crate) struct DiskDraft {
    pub(crate) file_system: Option<FileSystem>,
    pub(crate) bytes: Option<u64>,
    pub(crate) options: String,
    pub(crate) features: String,
    pub(crate) emulated: bool,
    pub(crate) cache: Option<CacheMode>,
    pub(crate) depth: Option<usize>,
    pub(crate) drive: Option<DriveKind>,
    pub(crate) heads: Option<usize>,
}
