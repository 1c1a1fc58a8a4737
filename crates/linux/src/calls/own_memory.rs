//! The memory of this process.

/// Has the C library take large allocations (128 KiB and more) from the kernel and give each back when it is freed, throughout: mallopt(3). By
/// default glibc raises the limit to the size of each such allocation that is freed, up to 32 MiB, and keeps what is freed below it. Best
/// effort; musl does so by itself.
pub fn give_large_allocations_back() {
    #[cfg(target_env = "gnu")]
    {
        const LARGE_BYTES: libc::c_int = 128 << 10;
        // SAFETY: takes no pointers, and only changes how later allocations are made.
        unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
    }
}

/// Gives back what a part of the work that has ended took: free memory between allocations, and pages of the program. The work that follows has the
/// pages that it needs back from the page cache.
pub fn give_back() {
    trim_heap();
    unmap_program();
}

/// Gives the kernel back the memory that is free between allocations: malloc_trim(3). Other C libraries than glibc keep none.
fn trim_heap() {
    #[cfg(target_env = "gnu")]
    {
        const KEPT_BYTES: libc::size_t = 0;
        // SAFETY: takes no pointers, and changes no memory that is allocated.
        unsafe { libc::malloc_trim(KEPT_BYTES) };
    }
}

/// Takes the pages of the program's code and constants out of this process: MADV_DONTNEED of madvise(2). They are counted as resident from their first use
/// on, and a program that has parsed its options, its rules and a server's settings has used most of itself.
fn unmap_program() {
    // SAFETY: the callback is called within the call, and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(unmap_first), std::ptr::null_mut()) };
}

/// Unmaps the pages of the first object, which is the program, and ends the iteration.
unsafe extern "C" fn unmap_first(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    _: *mut libc::c_void,
) -> libc::c_int {
    const ENDS: libc::c_int = 1;
    // SAFETY: the C library passes a valid structure, whose headers are those of a mapped object.
    let (base, headers) = unsafe {
        let info = &*info;
        (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)))
    };
    let page = super::page_bytes();
    for header in headers {
        // What was written at the start, such as relocations, belongs to segments that are writable at first.
        if header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0 {
            let from = (base + header.p_vaddr) as usize;
            let (start, end) = (from & !(page - 1), (from + header.p_filesz as usize) & !(page - 1));
            // SAFETY: the pages are those of a file, mapped privately and never written, so reading them again gives the same bytes. The last one
            // stays where the segment ends within it.
            unsafe {
                libc::madvise(start as *mut libc::c_void, end.saturating_sub(start), libc::MADV_DONTNEED)
            };
        }
    }
    ENDS
}

#[cfg(test)]
mod tests {
    use super::*;

    static CONSTANT: &str = include_str!("own_memory.rs");

    #[test]
    fn the_program_goes_on_with_the_same_code_and_constants() {
        give_large_allocations_back();
        let sum = |text: &str| {
            text.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
        };
        let (before, kept) = (sum(CONSTANT), vec![7_u8; 1 << 20]);
        give_back();
        assert_eq!(sum(std::hint::black_box(CONSTANT)), before);
        assert!(kept.iter().all(|byte| *byte == 7));
        std::thread::spawn(give_back).join().unwrap();
        assert_eq!(format!("{:?}", "1.5".parse::<f64>()), "Ok(1.5)");
    }
}
