//! Aligned memory, and CPUs of this process.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::io;
use std::ptr::NonNull;

use mydyno_linux::calls::scheduler;

/// A buffer for direct I/O: its address is a multiple of 4096.
#[derive(Debug)]
pub struct Aligned {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the buffer is owned by this value alone and holds bytes.
unsafe impl Send for Aligned {}

impl Aligned {
    /// A buffer of this length, filled with incompressible data.
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

/// CPUs that this process may run on; CPU 0 if the kernel does not report them.
pub fn allowed_cpus() -> Vec<usize> {
    scheduler::affinity(0).unwrap_or_else(|_| vec![0])
}

/// Pins this thread to one CPU.
pub fn stay_on(cpu: usize) -> io::Result<()> {
    scheduler::set_affinity(0, &[cpu])
}
