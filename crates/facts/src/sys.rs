//! The system calls that the standard library does not offer.

use std::ffi::CString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Attributes of a file by statx(2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Type and permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Major and minor number of the device that holds it.
    pub device: (u32, u32),
    /// Major and minor number of the device that it is, for device files.
    pub special: (u32, u32),
    /// Mount that holds it; absent before Linux 5.8.
    pub mount_id: Option<u64>,
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
}

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::ENOENT))
}

/// statx(2), following links and without waking automounts.
///
/// # Errors
/// The system call's.
pub fn stat(path: &Path) -> io::Result<Stat> {
    let path = c_path(path)?;
    let mut buffer = MaybeUninit::<libc::statx>::zeroed();
    // SAFETY: the path is a C string that outlives the call and the buffer is a statx that the kernel fills.
    let rc = unsafe {
        libc::statx(
            libc::AT_FDCWD,
            path.as_ptr(),
            libc::AT_NO_AUTOMOUNT,
            libc::STATX_BASIC_STATS | libc::STATX_MNT_ID,
            buffer.as_mut_ptr(),
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all bit patterns are valid for this plain struct, and it was zeroed before the kernel filled it.
    let found = unsafe { buffer.assume_init() };
    Ok(Stat {
        mode: u32::from(found.stx_mode),
        uid: found.stx_uid,
        gid: found.stx_gid,
        size_bytes: found.stx_size,
        device: (found.stx_dev_major, found.stx_dev_minor),
        special: (found.stx_rdev_major, found.stx_rdev_minor),
        mount_id: (found.stx_mask & libc::STATX_MNT_ID != 0).then_some(found.stx_mnt_id),
    })
}

/// statvfs(3).
///
/// # Errors
/// The system call's.
pub fn space(path: &Path) -> io::Result<Space> {
    let path = c_path(path)?;
    let mut buffer = MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: as in `stat`.
    if unsafe { libc::statvfs(path.as_ptr(), buffer.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: as in `stat`.
    let found = unsafe { buffer.assume_init() };
    Ok(Space {
        size_bytes: found.f_blocks.saturating_mul(found.f_frsize),
        available_bytes: found.f_bavail.saturating_mul(found.f_frsize),
        inodes_free: found.f_ffree,
        inodes: found.f_files,
    })
}

/// The kernel's estimate of the accuracy of its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockState {
    /// Whether something sets the clock, by STA_UNSYNC of ntp_adjtime(3).
    pub synchronised: bool,
    /// Largest error in microseconds. It grows by half a millisecond a second while nothing sets the clock.
    pub max_error_us: i64,
}

/// Reads the state of the clock; nothing is adjusted.
///
/// # Errors
/// The system call's.
pub fn clock_state() -> io::Result<ClockState> {
    let mut buffer = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: the struct is zeroed, so that `modes` is 0 and nothing is set; the kernel fills the rest.
    if unsafe { libc::adjtimex(buffer.as_mut_ptr()) } == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: all bit patterns are valid for this plain struct, and it was zeroed before the kernel filled it.
    let found = unsafe { buffer.assume_init() };
    Ok(ClockState { synchronised: found.status & libc::STA_UNSYNC == 0, max_error_us: found.maxerror })
}

/// Whether new files in a folder are written in place where the file system would copy on write (FS_NOCOW_FL of
/// ioctl_iflags(2)).
///
/// # Errors
/// The system calls'; the file system may have no such flag.
pub fn no_cow(folder: &Path) -> io::Result<bool> {
    // FS_NOCOW_FL of linux/fs.h.
    const NO_COW: libc::c_long = 0x0080_0000;
    let file = std::fs::File::open(folder)?;
    let mut flags: libc::c_long = 0;
    // SAFETY: the descriptor is open and the kernel writes at most a long through the pointer.
    if unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &mut flags) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(flags & NO_COW != 0)
}

/// Clock ticks a second: the unit of CPU times in /proc.
pub fn ticks_per_s() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).ok().filter(|t| *t > 0).unwrap_or(100)
}

/// Size of a memory page in bytes.
pub fn page_bytes() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(bytes).ok().filter(|b| *b > 0).unwrap_or(4096)
}

/// The machine's architecture as the kernel names it, as in `x86_64`.
pub fn machine() -> Option<String> {
    let mut buffer = MaybeUninit::<libc::utsname>::zeroed();
    // SAFETY: the kernel fills the struct that the pointer is to.
    if unsafe { libc::uname(buffer.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: all bit patterns are valid for this plain struct.
    let found = unsafe { buffer.assume_init() };
    let bytes: Vec<u8> = found.machine.iter().map(|c| *c as u8).take_while(|b| *b != 0).collect();
    String::from_utf8(bytes).ok().filter(|s| !s.is_empty())
}

/// The hypervisor's signature (CPUID leaf 0x40000000); `None` on bare metal and on other processors.
#[cfg(target_arch = "x86_64")]
pub fn hypervisor_signature() -> Option<String> {
    use std::arch::x86_64::__cpuid;
    // Leaf 1, ECX bit 31 is reserved for hypervisors, and leaf 0x40000000 means something only when it is set.
    #[allow(unused_unsafe, reason = "the intrinsic is safe in newer compilers")]
    // SAFETY: every x86_64 processor has CPUID.
    let (features, leaf) = unsafe { (__cpuid(1), __cpuid(0x4000_0000)) };
    if features.ecx & (1 << 31) == 0 {
        return None;
    }
    let bytes: Vec<u8> = [leaf.ebx, leaf.ecx, leaf.edx].iter().flat_map(|r| r.to_le_bytes()).collect();
    Some(String::from_utf8_lossy(&bytes).trim_end_matches('\0').to_owned())
}

/// The hypervisor's signature: only x86 has one.
#[cfg(not(target_arch = "x86_64"))]
pub fn hypervisor_signature() -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_a_zero_byte_is_not_there() {
        let path = Path::new("/proc/\0");
        assert_eq!(stat(path).unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert!(space(path).is_err());
    }
}
