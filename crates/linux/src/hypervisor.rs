//! The hypervisor below this machine, as the processor reports it.

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
