//! Performance events of the kernel: perf_event_open(2), and the ring buffer of their records.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use super::page_bytes;

/// `perf_event_attr` of linux/perf_event.h as of its fifth published size: 112 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Attributes {
    /// `PERF_TYPE_*`.
    pub kind: u32,
    /// Size of this structure in bytes; [`open`] sets it.
    pub size: u32,
    /// The event of its kind.
    pub config: u64,
    /// One record every so many events, or records a second with the flag `freq`.
    pub sample_period: u64,
    /// `PERF_SAMPLE_*`: what a record holds.
    pub sample_type: u64,
    /// `PERF_FORMAT_*`.
    pub read_format: u64,
    /// The bits that follow `read_format`, from `disabled` on.
    pub flags: u64,
    /// Bytes in the ring that wake a reader.
    pub wakeup_watermark: u32,
    /// For breakpoints.
    pub bp_type: u32,
    /// For breakpoints and probes.
    pub config1: u64,
    /// For breakpoints and probes.
    pub config2: u64,
    /// For branch records.
    pub branch_sample_type: u64,
    /// Mask of the user registers that a record holds.
    pub sample_regs_user: u64,
    /// Bytes of the user stack that a record holds.
    pub sample_stack_user: u32,
    /// Clock of the time stamps, with the flag `use_clockid`.
    pub clockid: i32,
    /// Mask of registers at the interrupt.
    pub sample_regs_intr: u64,
    /// For the auxiliary ring.
    pub aux_watermark: u32,
    /// Most frames of a call chain; 0 is the kernel's limit.
    pub sample_max_stack: u16,
    /// Unused.
    pub reserved: u16,
}

/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// An open event.
#[derive(Debug)]
pub struct Event(OwnedFd);

/// Opens an event for all processes on one CPU.
///
/// # Errors
/// EACCES or EPERM without the permission (`perf_event_paranoid`, CAP_PERFMON), ENOENT where this kernel lacks the event, ENOSYS
/// without the system call.
pub fn open(attributes: &Attributes, cpu: u32) -> io::Result<Event> {
    let attributes = Attributes { size: size_of::<Attributes>() as u32, ..*attributes };
    let everybody: libc::pid_t = -1;
    let no_group: libc::c_int = -1;
    // SAFETY: the kernel reads `size` bytes of the attributes, which outlive the call.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_perf_event_open,
            &raw const attributes,
            everybody,
            cpu as libc::c_int,
            no_group,
            CLOSE_ON_EXEC,
        )
    };
    match libc::c_int::try_from(fd) {
        // SAFETY: the descriptor is new and has no other owner.
        Ok(fd) if fd >= 0 => Ok(Event(unsafe { OwnedFd::from_raw_fd(fd) })),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `_IO('$', nr)` and `_IOR('$', nr, u64)`: the requests of linux/perf_event.h.
const ENABLE: u64 = 0x2400;
const DISABLE: u64 = 0x2401;
const SET_OUTPUT: u64 = 0x2405;
const ID: u64 = 0x8008_2407;

impl Event {
    /// Starts counting.
    ///
    /// # Errors
    /// The kernel's.
    pub fn enable(&self) -> io::Result<()> {
        self.control(ENABLE, 0)
    }

    /// Ends counting.
    ///
    /// # Errors
    /// The kernel's.
    pub fn disable(&self) -> io::Result<()> {
        self.control(DISABLE, 0)
    }

    /// Directs the records of an event into the ring of another event of the same CPU.
    ///
    /// # Errors
    /// The other event has no ring, or belongs to another CPU.
    pub fn into_ring_of(&self, other: &Event) -> io::Result<()> {
        self.control(SET_OUTPUT, other.0.as_raw_fd() as libc::c_ulong)
    }

    /// The identifier that its records carry.
    ///
    /// # Errors
    /// The kernel's.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the request writes eight bytes to the place that the pointer names.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), ID as _, &raw mut id) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(id) }
    }

    fn control(&self, request: u64, argument: libc::c_ulong) -> io::Result<()> {
        // SAFETY: these requests take a number.
        let status = unsafe { libc::ioctl(self.0.as_raw_fd(), request as _, argument) };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// The ring of an event: a page of the kernel's positions, then the records.
#[derive(Debug)]
pub struct Ring {
    start: NonNull<u8>,
    bytes: usize,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone; the kernel's side is synchronised by the atomic positions.
unsafe impl Send for Ring {}

/// Offsets of `data_head` and `data_tail` in `perf_event_mmap_page`.
const HEAD: usize = 1024;
const TAIL: usize = 1032;

impl Ring {
    /// Maps the ring of an event, with 2^`power` pages for records.
    ///
    /// # Errors
    /// EPERM beyond what `perf_event_mlock_kb` and RLIMIT_MEMLOCK permit.
    pub fn map(event: &Event, power: u32) -> io::Result<Self> {
        let data_bytes = page_bytes() << power;
        let bytes = page_bytes() + data_bytes;
        // SAFETY: a new mapping of a descriptor; no memory of this process is replaced.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.0.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(start.cast::<u8>()).filter(|_| start != libc::MAP_FAILED) {
            Some(start) => Ok(Self { start, bytes, data_bytes }),
            None => Err(io::Error::last_os_error()),
        }
    }

    fn position(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: the first page is mapped for the life of `self`, and both positions in it are aligned 64-bit words that the
        // kernel reads and writes atomically.
        unsafe { &*self.start.as_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Passes every unread record to `take`: its kind, its `misc` bits and its body. `buffer` is overwritten.
    pub fn drain(&mut self, buffer: &mut Vec<u8>, mut take: impl FnMut(u32, u16, &[u8])) {
        // Acquire: the records are written before the head (perf_output_put_handle in kernel/events/ring_buffer.c).
        let head = self.position(HEAD).load(Ordering::Acquire);
        let mut at = self.position(TAIL).load(Ordering::Relaxed);
        while head.wrapping_sub(at) >= 8 {
            let mut header = [0; 8];
            self.copy(at, &mut header);
            let kind = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]);
            let misc = u16::from_ne_bytes([header[4], header[5]]);
            let size = u64::from(u16::from_ne_bytes([header[6], header[7]]));
            if size < 8 || size > head.wrapping_sub(at) {
                // Nothing behind a damaged header can be read.
                at = head;
                break;
            }
            buffer.resize(size as usize - 8, 0);
            self.copy(at + 8, buffer);
            at += size;
            take(kind, misc, buffer);
        }
        // Release: from now on the kernel may overwrite the records that were copied.
        self.position(TAIL).store(at, Ordering::Release);
    }

    /// Copies from a position of the records, around their end.
    fn copy(&self, from: u64, to: &mut [u8]) {
        let at = (from % self.data_bytes as u64) as usize;
        let first = to.len().min(self.data_bytes - at);
        let (before, after) = to.split_at_mut(first);
        // SAFETY: both parts lie inside of the mapping's records: `at + first` ends at most at their end, the rest begins at their
        // start and is shorter than a record, which is shorter than the ring.
        unsafe {
            let data = self.start.as_ptr().add(self.bytes - self.data_bytes);
            std::ptr::copy_nonoverlapping(data.add(at), before.as_mut_ptr(), before.len());
            std::ptr::copy_nonoverlapping(data, after.as_mut_ptr(), after.len());
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and nothing borrows from it.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attributes_have_the_size_that_the_kernel_knows() {
        assert_eq!(size_of::<Attributes>(), 112);
        assert_eq!(std::mem::offset_of!(Attributes, sample_regs_user), 80);
        assert_eq!(std::mem::offset_of!(Attributes, sample_max_stack), 108);
    }

    #[test]
    fn switches_of_this_process_arrive_in_the_ring() {
        const SOFTWARE: u32 = 1;
        const CONTEXT_SWITCHES: u64 = 3;
        const TID: u64 = 1 << 1;
        let attributes = Attributes {
            kind: SOFTWARE,
            config: CONTEXT_SWITCHES,
            sample_period: 1,
            sample_type: TID,
            flags: 1,
            ..Attributes::default()
        };
        let cpus = std::thread::available_parallelism().unwrap().get() as u32;
        let opened: io::Result<Vec<Event>> = (0..cpus).map(|cpu| open(&attributes, cpu)).collect();
        let events = match opened {
            Ok(events) => events,
            Err(e) => return println!("not run: performance events are not permitted here: {e}"),
        };
        let mut rings: Vec<Ring> = events.iter().map(|event| Ring::map(event, 4).unwrap()).collect();
        events.iter().for_each(|event| event.enable().unwrap());
        for _ in 0..10 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        events.iter().for_each(|event| event.disable().unwrap());
        let (mut own, mut buffer) = (0, Vec::new());
        for ring in &mut rings {
            ring.drain(&mut buffer, |kind, _, record| {
                const SAMPLE: u32 = 9;
                let pid = u32::from_ne_bytes(record[..4].try_into().unwrap());
                own += usize::from(kind == SAMPLE && pid == std::process::id());
            });
        }
        assert!(own >= 10, "{own}");
    }
}
