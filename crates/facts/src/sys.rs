//! The state of the clock and the hypervisor's signature, which `rustix` does not offer.

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
