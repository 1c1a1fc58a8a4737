//! The system calls that the standard library does not offer.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A buffer that direct I/O takes: its address is a multiple of 4096.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer is owned by this value alone and holds bytes.
unsafe impl Send for Aligned {}

impl Aligned {
    /// A buffer of so many bytes, filled with what does not compress.
    ///
    /// # Errors
    /// The length is 0 or too large for memory.
    pub fn new(length: usize) -> io::Result<Self> {
        let layout = Layout::from_size_align(length, 4096).map_err(|_| io::ErrorKind::InvalidInput)?;
        if length == 0 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the layout has a size above 0.
        let start = unsafe { alloc_zeroed(layout) };
        let start = NonNull::new(start).ok_or(io::ErrorKind::OutOfMemory)?;
        let mut buffer = Self { start, layout };
        crate::scratch::fill_with_noise(buffer.bytes());
        Ok(buffer)
    }

    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `size` initialised bytes that belong to this value, which is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.layout.size()) }
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout, and freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Gives a file a length with all its blocks reserved, not written: fallocate(2).
pub fn allocate(file: &File, length: u64) -> io::Result<()> {
    let length = libc::off_t::try_from(length).map_err(|_| io::ErrorKind::FileTooLarge)?;
    // SAFETY: fallocate(2) takes an open descriptor and integers.
    match unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// CPUs that this process may run on: sched_getaffinity(2).
pub fn allowed_cpus() -> Vec<usize> {
    // SAFETY: an all-zero `cpu_set_t` is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is valid for writing and its size is given; 0 is this thread.
    let done = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    if done != 0 {
        return vec![0];
    }
    // SAFETY: every index is below the set's size.
    (0..libc::CPU_SETSIZE as usize).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Keeps this thread on one CPU: sched_setaffinity(2).
pub fn stay_on(cpu: usize) -> io::Result<()> {
    // SAFETY: an all-zero `cpu_set_t` is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: `cpu` is below the set's size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: `set` is valid and its size is given; 0 is this thread.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Minor and major page faults of this process so far: getrusage(2).
pub fn faults() -> (u64, u64) {
    // SAFETY: an all-zero `rusage` is valid: it holds numbers only.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for writing.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
    (count(usage.ru_minflt), count(usage.ru_majflt))
}
