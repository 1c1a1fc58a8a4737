//! Files and file systems.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FallocateFlags, FlockOperation, IFlags, SeekFrom, StatVfsMountFlags, StatxFlags,
    access, fallocate, flock, ioctl_ficlone, ioctl_getflags, seek, statvfs, statx, syncfs,
};
use rustix::io::Errno;

/// Attributes of a file by statx(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes that the file system holds of it: less than its size where it has holes.
    pub allocated_bytes: u64,
    /// When it was last written, in seconds since 1970.
    pub modified_s: u64,
    /// Major and minor number of the device that holds it.
    pub device: (u32, u32),
    /// Major and minor number of the device that it is, for device files.
    pub special: (u32, u32),
    /// Mount that holds it; absent before Linux 5.8.
    pub mount_id: Option<u64>,
}

/// Reads attributes with statx(2), following links and without waking automounts.
///
/// # Errors
/// The system call's.
pub fn attributes(path: &Path) -> io::Result<Attributes> {
    let flags = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID;
    let found = statx(CWD, path, AtFlags::NO_AUTOMOUNT, flags).map_err(not_found_for_invalid)?;
    Ok(Attributes {
        mode: u32::from(found.stx_mode),
        uid: found.stx_uid,
        gid: found.stx_gid,
        size_bytes: found.stx_size,
        // In units of 512 bytes, whatever the file system's blocks are.
        allocated_bytes: found.stx_blocks.saturating_mul(512),
        modified_s: u64::try_from(found.stx_mtime.tv_sec).unwrap_or(0),
        device: (found.stx_dev_major, found.stx_dev_minor),
        special: (found.stx_rdev_major, found.stx_rdev_minor),
        mount_id: (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id),
    })
}

/// A path with a NUL byte names no file.
fn not_found_for_invalid(error: Errno) -> io::Error {
    match error {
        Errno::INVAL => Errno::NOENT.into(),
        other => other.into(),
    }
}

/// Space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size in bytes.
    pub size_bytes: u64,
    /// Free for unprivileged users, in bytes.
    pub available_bytes: u64,
    /// Free inodes; 0 of 0 where the file system has no fixed number.
    pub inodes_free: u64,
    /// Inodes.
    pub inodes: u64,
    /// Whether programs on it can neither be run nor loaded: mount option `noexec`.
    pub noexec: bool,
}

/// The space of the file system that holds a path: statvfs(3).
///
/// # Errors
/// The system call's.
pub fn space(path: &Path) -> io::Result<Space> {
    let found = statvfs(path).map_err(not_found_for_invalid)?;
    Ok(Space {
        size_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        inodes_free: found.f_ffree,
        inodes: found.f_files,
        noexec: found.f_flag.contains(StatVfsMountFlags::NOEXEC),
    })
}

/// Whether new files in a folder are written in place where the file system would copy on write: FS_NOCOW_FL of
/// ioctl_iflags(2).
///
/// # Errors
/// The system calls'; the file system may have no such flag.
pub fn no_cow(folder: &Path) -> io::Result<bool> {
    Ok(ioctl_getflags(File::open(folder)?)?.contains(IFlags::NOCOW))
}

/// The compatible and the incompatible features (the fields s_feature_compat and s_feature_incompat of the superblock) of
/// the ext4 that holds a path: EXT4_IOC_GET_TUNE_SB_PARAM of include/uapi/linux/ext4.h, since Linux 6.18. Every user may
/// ask, also where the device is withheld.
///
/// # Errors
/// The system calls'; ENOTTY in front of older kernels and other file systems.
pub fn ext4_features(path: &Path) -> io::Result<(u32, u32)> {
    const WORDS: usize = 58;
    const COMPATIBLE: usize = 16;
    /// _IOR('f', 45, struct ext4_tune_sb_params), a struct of 232 bytes.
    const GET_TUNE_SB_PARAM: u32 = 2 << 30 | ((WORDS * 4) as u32) << 16 | (b'f' as u32) << 8 | 45;
    let mut parameters = [0_u32; WORDS];
    let file = File::open(path)?;
    // SAFETY: the kernel writes 232 bytes, which `parameters` has, to the address, and keeps nothing of it.
    let status = unsafe { libc::ioctl(file.as_raw_fd(), GET_TUNE_SB_PARAM as _, parameters.as_mut_ptr()) };
    if status == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok((parameters[COMPATIBLE], parameters[COMPATIBLE + 1]))
    }
}

/// Whether this user may write to a path, of a file system that may be read-only: access(2).
pub fn may_write(path: &Path) -> bool {
    access(path, Access::WRITE_OK).is_ok()
}

/// Gives a file a length with all its blocks reserved, not written: fallocate(2).
///
/// # Errors
/// The system call's.
pub fn allocate(file: impl AsFd, length: u64) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, length)?)
}

/// Makes a part of a file read as zeros without their being stored, its blocks still reserved: FALLOC_FL_ZERO_RANGE of fallocate(2).
/// `false` where the file system cannot.
///
/// # Errors
/// The system call's.
pub fn forget_zeros(file: impl AsFd, at: u64, length: u64) -> io::Result<bool> {
    match fallocate(file, FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE, at, length) {
        Ok(()) => Ok(true),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Sets blocks aside for a file up to a length, without changing its length: FALLOC_FL_KEEP_SIZE of fallocate(2). File systems
/// that cannot (EOPNOTSUPP, ENOSYS) are no error.
///
/// # Errors
/// The system call's.
pub fn reserve(file: impl AsFd, length: u64) -> io::Result<()> {
    match fallocate(file, FallocateFlags::KEEP_SIZE, 0, length) {
        Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

/// Shares all blocks of `source` with `target`: FICLONE of ioctl_ficlone(2). `false` where the file system cannot.
pub fn share_blocks(source: impl AsFd, target: impl AsFd) -> bool {
    ioctl_ficlone(target, source).is_ok()
}

/// The offset of the next byte at or behind `at` that is not in a hole: SEEK_DATA of lseek(2); `at` itself where the file system
/// does not tell. `None` behind the last one.
///
/// # Errors
/// The system call's.
pub fn next_data(file: impl AsFd, at: u64) -> io::Result<Option<u64>> {
    match seek(file, SeekFrom::Data(at)) {
        Ok(found) => Ok(Some(found)),
        Err(Errno::NXIO) => Ok(None),
        Err(Errno::INVAL) => Ok(Some(at)),
        Err(e) => Err(e.into()),
    }
}

/// Writes out what is dirty of the file system of a file: syncfs(2).
///
/// # Errors
/// The system call's.
pub fn sync_file_system(file: impl AsFd) -> io::Result<()> {
    Ok(syncfs(file)?)
}

/// Locks a file for this open file description without waiting: flock(2). `false` when another one has it.
///
/// # Errors
/// The system call's.
pub fn try_lock(file: impl AsFd, exclusive: bool) -> io::Result<bool> {
    let operation = match exclusive {
        true => FlockOperation::NonBlockingLockExclusive,
        false => FlockOperation::NonBlockingLockShared,
    };
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Unlocks a file for all copies of this open file description's descriptor: flock(2).
pub fn unlock(file: impl AsFd) {
    // Unlocking a file that is locked cannot fail.
    let _ = flock(file, FlockOperation::Unlock);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_nul_byte_is_not_there() {
        let path = Path::new("/proc/\0");
        assert_eq!(attributes(path).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(space(path).is_err() && !may_write(path));
    }

    #[test]
    fn blocks_that_are_reserved_do_not_change_the_length() {
        let file = tempfile::NamedTempFile::new().unwrap();
        reserve(&file, 8192).unwrap();
        assert_eq!(file.as_file().metadata().unwrap().len(), 0);
        allocate(&file, 4096).unwrap();
        assert_eq!(attributes(file.path()).unwrap().size_bytes, 4096);
        assert!(space(file.path()).unwrap().size_bytes > 0);
    }

    #[test]
    fn a_lock_is_given_up_for_all_copies_of_its_descriptor() {
        let temp = tempfile::NamedTempFile::new().unwrap();
        let (one, other) = (File::open(temp.path()).unwrap(), File::open(temp.path()).unwrap());
        assert!(try_lock(&one, true).unwrap() && !try_lock(&other, false).unwrap());
        // As fork(2) in another thread copies it.
        let copy = one.try_clone().unwrap();
        unlock(&one);
        assert!(try_lock(&other, true).unwrap());
        drop(copy);
    }
}
