//! A library for `LD_PRELOAD` that delays every sync of a file: it makes the system call, then sleeps.
//!
//! The package's build script builds it separately, and the program contains it. It must load into servers whose C
//! library is older than that of the build machine, so it links to no library and needs three unversioned symbols that
//! every C library for Linux has: `syscall`, `getenv`, `__errno_location`.
#![no_std]

use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn getenv(name: *const c_char) -> *const c_char;
    fn __errno_location() -> *mut c_int;
}

/// Numbers of system calls: arch/x86/entry/syscalls/syscall_64.tbl.
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64"))]
mod call {
    pub const CLOSE: i64 = 3;
    pub const MMAP: i64 = 9;
    pub const MSYNC: i64 = 26;
    pub const FSYNC: i64 = 74;
    pub const FDATASYNC: i64 = 75;
    pub const CLOCK_GETTIME: i64 = 228;
    pub const CLOCK_NANOSLEEP: i64 = 230;
    pub const OPENAT: i64 = 257;
}

/// Numbers of system calls: include/uapi/asm-generic/unistd.h.
#[cfg(any(target_arch = "aarch64", target_arch = "riscv64", target_arch = "loongarch64"))]
mod call {
    pub const OPENAT: i64 = 56;
    pub const CLOSE: i64 = 57;
    pub const FSYNC: i64 = 82;
    pub const FDATASYNC: i64 = 83;
    pub const CLOCK_GETTIME: i64 = 113;
    pub const CLOCK_NANOSLEEP: i64 = 115;
    pub const MMAP: i64 = 222;
    pub const MSYNC: i64 = 227;
}

const EINTR: c_int = 4;
const CLOCK_MONOTONIC: c_int = 1;
const TIMER_ABSTIME: c_int = 1;
const MS_SYNC: c_int = 4;
const AT_FDCWD: c_int = -100;
const O_RDWR: c_int = 2;
const O_CLOEXEC: c_int = 0o2_000_000;
const PROT_READ_AND_WRITE: c_int = 3;
const MAP_SHARED: c_int = 1;

/// Microseconds of each delay, in digits.
const DELAY: &CStr = c"MYDYNO_SYNC_DELAY_US";
/// A file whose first eight bytes are the number of syncs that were delayed.
const COUNT: &CStr = c"MYDYNO_SYNC_DELAY_COUNT";

#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: i64,
}

const UNREAD: u64 = u64::MAX;
static DELAY_US: AtomicU64 = AtomicU64::new(UNREAD);
static DELAYED: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// The delay. The environment is read at the first sync and not when the library is loaded, because the C library may
/// not have set up its own copy by then.
fn delay_us() -> u64 {
    match DELAY_US.load(Ordering::Acquire) {
        UNREAD => {
            let us = number(value(DELAY));
            if us > 0 {
                DELAYED.store(counter(), Ordering::Release);
            }
            // Concurrent threads read the same value.
            DELAY_US.store(us, Ordering::Release);
            us
        }
        us => us,
    }
}

fn value(name: &CStr) -> *const c_char {
    // SAFETY: the name ends with a NUL.
    unsafe { getenv(name.as_ptr()) }
}

/// The number at the beginning of a text; 0 without one. At most nine digits.
fn number(text: *const c_char) -> u64 {
    let mut number = 0;
    let mut at = text;
    for _ in 0..9 {
        if at.is_null() {
            break;
        }
        // SAFETY: `at` is within a text that ends with a NUL, and reading stops there.
        let byte = unsafe { *at } as u8;
        if !byte.is_ascii_digit() {
            break;
        }
        number = number * 10 + u64::from(byte - b'0');
        at = at.wrapping_add(1);
    }
    number
}

/// The counter in its file; `None` when there is no such file.
fn counter() -> *mut AtomicU64 {
    let path = value(COUNT);
    if path.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: openat, mmap and close as in syscall(2). The file is at least as long as the mapped value; if it were
    // not, this program's first sync would end it, which the program that started it would notice.
    unsafe {
        let file = syscall(call::OPENAT, AT_FDCWD, path, O_RDWR | O_CLOEXEC, 0 as c_int);
        if file < 0 {
            return ptr::null_mut();
        }
        let (file, offset) = (file as c_int, 0 as c_long);
        let size = size_of::<AtomicU64>();
        let at = syscall(
            call::MMAP,
            ptr::null_mut::<c_void>(),
            size,
            PROT_READ_AND_WRITE,
            MAP_SHARED,
            file,
            offset,
        );
        syscall(call::CLOSE, file);
        if at == -1 { ptr::null_mut() } else { ptr::with_exposed_provenance_mut(at as usize) }
    }
}

/// Sleeps until the delay is over, restarting after signals, and counts it. `errno` keeps the value of the system call.
fn delay() {
    // SAFETY: the address of this thread's errno, and two calls that write at most one `Timespec`.
    unsafe {
        let errno = __errno_location();
        let before = *errno;
        let us = delay_us();
        if us > 0 {
            let mut until = Timespec { seconds: 0, nanoseconds: 0 };
            syscall(call::CLOCK_GETTIME, CLOCK_MONOTONIC, &raw mut until);
            let nanoseconds = until.nanoseconds + (us % 1_000_000) as i64 * 1000;
            until.seconds += (us / 1_000_000) as i64 + nanoseconds / 1_000_000_000;
            until.nanoseconds = nanoseconds % 1_000_000_000;
            let none = ptr::null_mut::<Timespec>();
            let sleep =
                || syscall(call::CLOCK_NANOSLEEP, CLOCK_MONOTONIC, TIMER_ABSTIME, &raw const until, none);
            let mut slept = sleep();
            while slept != 0 && *errno == EINTR {
                slept = sleep();
            }
            let delayed = DELAYED.load(Ordering::Acquire);
            if slept == 0 && !delayed.is_null() {
                (*delayed).fetch_add(1, Ordering::Relaxed);
            }
        }
        *errno = before;
    }
}

#[unsafe(no_mangle)]
extern "C" fn fsync(file: c_int) -> c_int {
    // SAFETY: as fsync(2).
    let done = unsafe { syscall(call::FSYNC, file) };
    delay();
    done as c_int
}

#[unsafe(no_mangle)]
extern "C" fn fdatasync(file: c_int) -> c_int {
    // SAFETY: as fdatasync(2).
    let done = unsafe { syscall(call::FDATASYNC, file) };
    delay();
    done as c_int
}

/// Only a synchronous one waits for the disk: msync(2).
///
/// # Safety
/// As msync(2): the kernel checks the address.
#[unsafe(no_mangle)]
unsafe extern "C" fn msync(address: *mut c_void, length: usize, flags: c_int) -> c_int {
    // SAFETY: as msync(2).
    let done = unsafe { syscall(call::MSYNC, address, length, flags) };
    if flags & MS_SYNC != 0 {
        delay();
    }
    done as c_int
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
