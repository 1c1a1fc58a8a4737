//! Asynchronous I/O of the kernel on files: io_submit(2), io_getevents(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

use super::mapping::Mapping;

/// An event of io_getevents(2).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// A request that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Bytes that were moved, or the negative number of an error.
    pub result: i64,
    /// Bytes that were asked for.
    pub length: usize,
    /// Bytes were written.
    pub is_write: bool,
}

/// Requests of one thread, each with a buffer of its own.
#[derive(Debug)]
pub struct Queue {
    context: libc::c_ulong,
    buffers: Vec<Mapping>,
    lengths: Vec<(usize, bool)>,
    free: Vec<usize>,
}

/// A request as the kernel takes it: `struct iocb` of linux/aio_abi.h, which the C library of static binaries does not declare. What is
/// not set stays 0.
#[repr(C)]
#[derive(Default)]
struct Control {
    data: u64,
    /// Key and flags of the request, in the order of the machine's bytes.
    key_and_flags: [u32; 2],
    /// 0 reads, 1 writes.
    opcode: u16,
    priority: i16,
    descriptor: u32,
    buffer: u64,
    length: u64,
    offset: i64,
    reserved: u64,
    flags: u32,
    event_descriptor: u32,
}

impl Queue {
    /// A queue of so many requests of at most `block` bytes.
    ///
    /// # Errors
    /// Out of memory, or the system's limit of requests (fs.aio-max-nr) is reached.
    pub fn new(depth: usize, block: usize) -> io::Result<Self> {
        let buffers = (0..depth).map(|_| Mapping::anonymous(block, false)).collect::<io::Result<Vec<_>>>()?;
        let mut context: libc::c_ulong = 0;
        // SAFETY: `context` is valid for writing, and zero as the call demands.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, depth as libc::c_ulong, &raw mut context) };
        if made < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { context, buffers, lengths: vec![(0, false); depth], free: (0..depth).collect() })
    }

    /// Whether no further request has room.
    pub fn is_full(&self) -> bool {
        self.free.is_empty()
    }

    /// Whether no request is under way.
    pub fn is_idle(&self) -> bool {
        self.free.len() == self.buffers.len()
    }

    /// Submits a read of `length` bytes, or a write of `bytes`.
    ///
    /// # Errors
    /// The queue is full, or the kernel refuses.
    pub fn submit(
        &mut self,
        file: &File,
        offset: u64,
        length: usize,
        bytes: Option<&[u8]>,
    ) -> io::Result<()> {
        let slot = self.free.pop().ok_or(io::ErrorKind::WouldBlock)?;
        let buffer = &self.buffers[slot];
        let length = length.min(buffer.len());
        if let Some(bytes) = bytes {
            buffer.write(0, &bytes[..length.min(bytes.len())]);
        }
        let mut control = Control {
            data: slot as u64,
            opcode: u16::from(bytes.is_some()),
            descriptor: file.as_raw_fd() as u32,
            buffer: buffer.address() as u64,
            length: length as u64,
            offset: offset as i64,
            ..Control::default()
        };
        let mut list = [&raw mut control];
        // SAFETY: the kernel copies the request; its buffer lives as long as the queue, which waits for all at its end.
        let submitted = unsafe { libc::syscall(libc::SYS_io_submit, self.context, 1_i64, list.as_mut_ptr()) };
        if submitted != 1 {
            let error = io::Error::last_os_error();
            self.free.push(slot);
            return Err(error);
        }
        self.lengths[slot] = (length, bytes.is_some());
        Ok(())
    }

    /// Waits for at least so many requests and passes all that have ended to `take`.
    ///
    /// # Errors
    /// Only those that a defect of this program causes.
    pub fn wait(&mut self, least: usize, mut take: impl FnMut(Ended)) -> io::Result<()> {
        let under_way = self.buffers.len() - self.free.len();
        let mut events = vec![Event::default(); under_way];
        let least = least.min(under_way) as i64;
        let none = std::ptr::null_mut::<libc::timespec>();
        let count = loop {
            // SAFETY: `events` is valid for writing so many, and no time limit is given.
            let got = unsafe {
                libc::syscall(
                    libc::SYS_io_getevents,
                    self.context,
                    least,
                    under_way as i64,
                    events.as_mut_ptr(),
                    none,
                )
            };
            match usize::try_from(got) {
                Ok(count) => break count,
                Err(_) => match io::Error::last_os_error() {
                    e if e.kind() == io::ErrorKind::Interrupted => {}
                    e => return Err(e),
                },
            }
        };
        for event in &events[..count] {
            let slot = event.data as usize;
            let (length, is_write) = self.lengths[slot];
            self.free.push(slot);
            take(Ended { result: event.result, length, is_write });
        }
        Ok(())
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the context is this value's own; the call waits for what is under way.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn requests_end_with_their_bytes() {
        let file = tempfile::tempfile().unwrap();
        let mut queue = Queue::new(4, 4096).unwrap();
        for block in 0..4 {
            queue.submit(&file, block * 4096, 4096, Some(&[block as u8; 4096])).unwrap();
        }
        assert!(queue.is_full() && queue.submit(&file, 0, 1, None).is_err());
        let mut ended = Vec::new();
        queue.wait(4, |one| ended.push(one)).unwrap();
        assert_eq!(ended, [Ended { result: 4096, length: 4096, is_write: true }; 4]);
        let mut byte = [0];
        file.read_exact_at(&mut byte, 3 * 4096).unwrap();
        assert_eq!(byte, [3]);
        queue.submit(&file, 4 * 4096, 4096, None).unwrap();
        queue.wait(1, |one| assert_eq!(one.result, 0)).unwrap();
        assert!(queue.is_idle());
    }
}
