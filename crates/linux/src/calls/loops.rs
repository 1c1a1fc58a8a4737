//! Loop devices: the ioctls of `linux/loop.h`, loop(4).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

const LOOP_CLR_FD: libc::Ioctl = 0x4C01;
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// Linux 5.8; it attaches and describes in one step.
const LOOP_CONFIGURE: libc::Ioctl = 0x4C0A;
const LOOP_CTL_GET_FREE: libc::Ioctl = 0x4C82;
/// Direct I/O on the backing file, where its file system supports it.
const LO_FLAGS_DIRECT_IO: u32 = 16;

/// `struct loop_info64`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Info {
    device: u64,
    inode: u64,
    rdevice: u64,
    offset: u64,
    size_limit: u64,
    number: u32,
    encrypt_type: u32,
    encrypt_key_size: u32,
    flags: u32,
    file_name: [u8; 64],
    crypt_name: [u8; 64],
    encrypt_key: [u8; 32],
    init: [u64; 2],
}

/// `struct loop_config`.
#[repr(C)]
struct Config {
    fd: u32,
    block_size: u32,
    info: Info,
    reserved: [u64; 8],
}

const NOTHING: Info = Info {
    device: 0,
    inode: 0,
    rdevice: 0,
    offset: 0,
    size_limit: 0,
    number: 0,
    encrypt_type: 0,
    encrypt_key_size: 0,
    flags: 0,
    file_name: [0; 64],
    crypt_name: [0; 64],
    encrypt_key: [0; 32],
    init: [0; 2],
};

/// The file that a device is attached to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// Inode of the backing file.
    pub inode: u64,
    /// The text that was given when it was attached; 63 bytes at most.
    pub label: String,
    /// Direct I/O on the backing file.
    pub direct_io: bool,
}

/// The number of a device that is free now; the kernel makes one if there is none.
///
/// # Errors
/// The system call's.
pub fn free_number(control: &File) -> io::Result<u32> {
    // SAFETY: LOOP_CTL_GET_FREE takes an open descriptor of /dev/loop-control and no argument.
    let number = unsafe { libc::ioctl(control.as_raw_fd(), LOOP_CTL_GET_FREE) };
    u32::try_from(number).map_err(|_| io::Error::last_os_error())
}

/// Attaches a file to a device. EBUSY when another process attached one first.
///
/// # Errors
/// The system call's.
pub fn attach(device: &File, backing: &File, label: &str) -> io::Result<()> {
    let mut info = Info { flags: LO_FLAGS_DIRECT_IO, ..NOTHING };
    let bytes = label.as_bytes();
    if bytes.len() >= info.file_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    info.file_name[..bytes.len()].copy_from_slice(bytes);
    let fd = u32::try_from(backing.as_raw_fd()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let config = Config { fd, block_size: 0, info, reserved: [0; 8] };
    // SAFETY: `config` has the layout of struct loop_config and lives for the call; both descriptors are open.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CONFIGURE, &raw const config) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The file that a device is attached to; `None` when it is free.
///
/// # Errors
/// The system call's.
pub fn attached(device: &File) -> io::Result<Option<Attached>> {
    let mut info = NOTHING;
    // SAFETY: `info` has the layout of struct loop_info64 and is filled in by the call.
    if unsafe { libc::ioctl(device.as_raw_fd(), LOOP_GET_STATUS64, &raw mut info) } == 0 {
        let label = info.file_name.split(|b| *b == 0).next().unwrap_or_default();
        let label = String::from_utf8_lossy(label).into_owned();
        let direct_io = info.flags & LO_FLAGS_DIRECT_IO != 0;
        return Ok(Some(Attached { inode: info.inode, label, direct_io }));
    }
    match io::Error::last_os_error() {
        e if e.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        e => Err(e),
    }
}

/// Detaches a device; one that is in use is detached when its last user closes it.
///
/// # Errors
/// The system call's.
pub fn detach(device: &File) -> io::Result<()> {
    // SAFETY: LOOP_CLR_FD takes an open descriptor and no argument.
    match unsafe { libc::ioctl(device.as_raw_fd(), LOOP_CLR_FD) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
