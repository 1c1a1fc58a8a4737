//! Mounts and swap.

use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

fn c_string(text: &[u8]) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::ErrorKind::InvalidInput.into())
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Mounts a device: mount(2).
///
/// # Errors
/// The system call's.
pub fn mount(device: &Path, point: &Path, kind: &str, flags: u64, data: &str) -> io::Result<()> {
    let device = c_string(device.as_os_str().as_bytes())?;
    let point = c_string(point.as_os_str().as_bytes())?;
    let (kind, data) = (c_string(kind.as_bytes())?, c_string(data.as_bytes())?);
    // SAFETY: all four are C strings that live for the call.
    done(unsafe { libc::mount(device.as_ptr(), point.as_ptr(), kind.as_ptr(), flags, data.as_ptr().cast()) })
}

/// Unmounts what is on top of a mount point, never through a symbolic link: umount2(2).
///
/// # Errors
/// The system call's.
pub fn unmount(point: &Path) -> io::Result<()> {
    let point = c_string(point.as_os_str().as_bytes())?;
    // SAFETY: `point` is a C string that lives for the call.
    done(unsafe { libc::umount2(point.as_ptr(), libc::UMOUNT_NOFOLLOW) })
}

/// Gives the calling thread a private mount namespace, and with it its own current folder: unshare(2).
///
/// # Errors
/// The system call's.
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: unshare(2) takes flags.
    done(unsafe { libc::unshare(libc::CLONE_NEWNS) })
}

/// Detaches a mount, and the mounts below it, from the calling thread's namespace; processes that use it may continue:
/// umount2(2).
///
/// # Errors
/// The system call's.
pub fn detach(point: &Path) -> io::Result<()> {
    let point = c_string(point.as_os_str().as_bytes())?;
    // SAFETY: `point` is a C string that lives for the call.
    done(unsafe { libc::umount2(point.as_ptr(), libc::MNT_DETACH) })
}

/// Swaps to a file: swapon(2).
///
/// # Errors
/// The system call's.
pub fn swap_on(path: &Path) -> io::Result<()> {
    let path = c_string(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a C string that lives for the call.
    done(unsafe { libc::swapon(path.as_ptr(), 0) })
}

/// Stops swapping to a file; the kernel reads its pages back: swapoff(2).
///
/// # Errors
/// The system call's.
pub fn swap_off(path: &Path) -> io::Result<()> {
    let path = c_string(path.as_os_str().as_bytes())?;
    // SAFETY: `path` is a C string that lives for the call.
    done(unsafe { libc::swapoff(path.as_ptr()) })
}
