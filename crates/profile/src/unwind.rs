//! User stacks from their registers and copied memory.

use std::fmt;

use framehop::{CacheNative, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder, UnwinderNative};

use crate::records::REGISTERS;

/// Most frames of a stack: recursion of a parser has hundreds.
const MOST_FRAMES: usize = 512;

/// Unwinds the stacks of one process.
#[derive(Default)]
pub struct StackUnwinder {
    unwinder: UnwinderNative<Vec<u8>, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl fmt::Debug for StackUnwinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StackUnwinder")
    }
}

impl StackUnwinder {
    /// The unwinder, to tell it of modules.
    pub fn modules(&mut self) -> &mut UnwinderNative<Vec<u8>, MayAllocateDuringUnwind> {
        &mut self.unwinder
    }

    /// Addresses inside of the calls of a stack, innermost first, and whether the stack reached its end.
    pub fn frames(&mut self, registers: &[u64; REGISTERS.len()], stack: &[u8]) -> (Vec<u64>, bool) {
        let (ip, sp, registers) = native(registers);
        let mut read = |address: u64| -> Result<u64, ()> {
            let at = usize::try_from(address.checked_sub(sp).ok_or(())?).map_err(|_| ())?;
            let word = stack.get(at..).and_then(|rest| rest.first_chunk::<8>()).ok_or(())?;
            Ok(u64::from_ne_bytes(*word))
        };
        let mut frames = Vec::new();
        let mut iter = self.unwinder.iter_frames(ip, registers, &mut self.cache, &mut read);
        while frames.len() < MOST_FRAMES {
            match iter.next() {
                Ok(Some(frame)) => frames.push(frame.address_for_lookup()),
                Ok(None) => return (frames, true),
                Err(_) => break,
            }
        }
        (frames, false)
    }
}

#[cfg(target_arch = "aarch64")]
fn native([fp, lr, sp, pc]: &[u64; 4]) -> (u64, u64, UnwindRegsNative) {
    (*pc, *sp, UnwindRegsNative::new(*lr, *sp, *fp))
}

#[cfg(not(target_arch = "aarch64"))]
fn native([bp, sp, ip]: &[u64; 3]) -> (u64, u64, UnwindRegsNative) {
    (*ip, *sp, UnwindRegsNative::new(*ip, *sp, *bp))
}
