//! The state of the kernel's clock: ntp_adjtime(3).

use std::io;
use std::mem::MaybeUninit;

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
