//! Memory by mmap(2): of huge pages, of files, or just page-aligned.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

/// Mapped memory, unmapped when it is dropped. Threads may use it side by side; what they read while others write is some
/// mixture of both.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory belongs to this value and is only accessed by copies and atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Zeroed memory, from the pool of huge pages where `huge` is set.
    ///
    /// # Errors
    /// The length is 0, or there is no such memory.
    pub fn anonymous(length: usize, huge: bool) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | if huge { libc::MAP_HUGETLB } else { 0 };
        Self::map(length, flags, -1)
    }

    /// The first bytes of a file, open for reading and writing; changes are the file's.
    ///
    /// # Errors
    /// The file cannot be mapped.
    pub fn of_file(file: &File, length: usize) -> io::Result<Self> {
        Self::map(length, libc::MAP_SHARED, file.as_raw_fd())
    }

    fn map(length: usize, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses the place, so no memory of this program is replaced.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), length, access, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, length })
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether it has no bytes, which no mapping has.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The address, for calls of the kernel.
    pub fn address(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies bytes from the place `at`; as many as there are.
    pub fn read(&self, at: usize, into: &mut [u8]) {
        let length = into.len().min(self.length.saturating_sub(at));
        // SAFETY: so many bytes lie behind `at` in this memory, and `into` is another.
        unsafe {
            std::ptr::copy_nonoverlapping(
                self.start.as_ptr().add(at.min(self.length)),
                into.as_mut_ptr(),
                length,
            )
        };
    }

    /// Copies bytes to the place `at`; as many as there is room for.
    pub fn write(&self, at: usize, from: &[u8]) {
        let length = from.len().min(self.length.saturating_sub(at));
        // SAFETY: as in `read`.
        unsafe {
            std::ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr().add(at.min(self.length)), length)
        };
    }

    /// The first bytes, for a thread that has the memory for itself.
    pub fn bytes(&self, length: usize) -> &[u8] {
        // SAFETY: so many bytes are in this memory, initialised by the kernel.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), length.min(self.length)) }
    }

    /// The first bytes, to be changed.
    pub fn bytes_mut(&mut self, length: usize) -> &mut [u8] {
        // SAFETY: as in `bytes`, and this value is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), length.min(self.length)) }
    }

    /// The memory as words.
    pub fn words(&self) -> &[AtomicUsize] {
        let count = self.length / size_of::<AtomicUsize>();
        // SAFETY: the memory is page-aligned, initialised by the kernel, and lives as long as this value.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), count) }
    }

    /// Writes changes of a file to its storage: msync(2).
    ///
    /// # Errors
    /// Writing failed.
    pub fn sync(&self) -> io::Result<()> {
        // SAFETY: the memory is this value's own.
        let synced = unsafe { libc::msync(self.start.as_ptr().cast(), self.length, libc::MS_SYNC) };
        if synced < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by this value and unmapped once.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn changes_of_a_mapped_file_are_the_files() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8192).unwrap();
        let mapping = Mapping::of_file(&file, 8192).unwrap();
        mapping.write(8190, b"abcdef");
        mapping.sync().unwrap();
        let mut read = [0; 2];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut read, 8190).unwrap();
        assert_eq!(&read, b"ab");
        mapping.read(8190, &mut read);
        assert_eq!(&read, b"ab");
        let memory = Mapping::anonymous(4096, false).unwrap();
        memory.words()[511].store(3, Relaxed);
        assert_eq!((memory.words().len(), memory.len()), (512, 4096));
        assert!(Mapping::anonymous(0, false).is_err());
    }
}
