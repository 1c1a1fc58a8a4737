//! The NUMA memory policy of threads.

use std::io;

/// How the memory of a thread is placed on nodes: modes of set_mempolicy(2), include/uapi/linux/mempolicy.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum PolicyMode {
    /// The named node first, others when it is full.
    Preferred = 1,
    /// The named nodes only.
    Bind = 2,
    /// Page by page in turn over the named nodes.
    Interleave = 3,
    /// The node of the CPU that touches a page first.
    Local = 4,
}

/// Highest number of a node, plus 1: `MAX_NUMNODES` of a kernel with CONFIG_NODES_SHIFT=10.
const MOST_NODES: usize = 1024;
const BITS: usize = u64::BITS as usize;

/// Sets the policy of the calling thread, which its children inherit and keep across execve(2): set_mempolicy(2).
///
/// # Errors
/// A number of a node is too large, or the system call's.
pub fn set_memory_policy(mode: PolicyMode, nodes: &[usize]) -> io::Result<()> {
    if nodes.iter().any(|node| *node >= MOST_NODES) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut mask = [0u64; MOST_NODES / BITS];
    nodes.iter().for_each(|node| mask[node / BITS] |= 1 << (node % BITS));
    // The kernel reads one bit less than it is told: get_nodes of mm/mempolicy.c.
    let (mask, bits) = if nodes.is_empty() { (std::ptr::null(), 0) } else { (mask.as_ptr(), MOST_NODES + 1) };
    // SAFETY: the kernel reads at most `bits` - 1 bits of the mask, which has so many and outlives the call.
    match unsafe { libc::syscall(libc::SYS_set_mempolicy, mode as libc::c_long, mask, bits) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
